//! The formula as plain loops over scalars, for any layout and types, with the bits of the vector implementations.

use super::problem::{Softmax, SoftmaxAlgorithm};
use crate::error::Result;
use crate::heap::{Counted, counted};
use crate::primitive::{
    BoundChain, Execution, Implementation, Padding, PostOpChain, Rows, Variant, chain_entry,
};
use crate::rows::{PlainRow, PlainTensor, plain_fold};
use crate::simd::lanes::Lanes;
use crate::simd::portable::Portable;
use crate::simd::{LANES, Level, math};
use crate::tensor::MemoryDesc;
use crate::threads::Length;
use norm_sys as sys;

/// Parts that rows are cut into, each with a row of f32.
const MAX_BLOCKS: usize = 16;

/// Takes every problem.
pub(super) fn make(
    problem: &Softmax,
    variant: &'static Variant,
) -> Result<Box<Counted<dyn Implementation>>> {
    let p = problem;
    let forward = p.prop_kind.is_forward();
    let tensor = |desc: &MemoryDesc| PlainTensor::new(&p.axis_last(desc));
    let (input, output) = if forward { (&p.src, &p.dst) } else { (&p.diff_dst, &p.diff_src) };
    let ids = if forward {
        [sys::NORM_ARG_SRC, sys::NORM_ARG_DST]
    } else {
        [sys::NORM_ARG_DIFF_DST, sys::NORM_ARG_DIFF_SRC]
    };
    Ok(counted(Reference {
        variant,
        forward,
        algorithm: p.algorithm,
        rows: p.rows,
        cols: p.cols,
        ids,
        input: tensor(input)?,
        output: tensor(output)?,
        dst: tensor(&p.dst)?,
        steps: PostOpChain::new(&p.attr_axis_last()?, &p.axis_last(&p.dst), None)?,
        padding: Padding::of(output)?,
    })?)
}

struct Reference {
    variant: &'static Variant,
    forward: bool,
    algorithm: SoftmaxAlgorithm,
    rows: usize,
    cols: usize,
    /// The arguments of input and output.
    ids: [i32; 2],
    /// src, or diff_dst.
    input: PlainTensor,
    /// dst, or diff_src.
    output: PlainTensor,
    dst: PlainTensor,
    steps: Option<PostOpChain>,
    /// Of the output.
    padding: Padding,
}

impl Implementation for Reference {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        self.blocks().saturating_mul(self.cols).saturating_mul(size_of::<f32>())
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let arguments = execution.arguments;
        // SAFETY: the execution's buffers were checked.
        unsafe { self.padding.clear(arguments.get(self.ids[1])) };
        // SAFETY: the execution's buffers were checked.
        let bound = self.steps.as_ref().map(|steps| unsafe { steps.bind(arguments) });
        let (blocks, width) = (self.blocks(), execution.threads.count());
        let values = Values(execution.scratchpad.cast());
        let threads = execution.run(blocks, width, Length::Long, &|block| {
            // SAFETY: the block's part of the scratchpad.
            let values = unsafe { values.of_block(block, self.cols) };
            let [input, output] = self.ids.map(|id| arguments.get(id));
            let dst = arguments.get(sys::NORM_ARG_DST);
            for row in self.rows * block / blocks..self.rows * (block + 1) / blocks {
                // SAFETY: the execution's buffers were checked, and rows are given out once.
                let (input, output, dst) = unsafe {
                    (
                        self.input.row(input, row),
                        self.output.row(output, row),
                        self.dst.row(dst, row),
                    )
                };
                if self.forward {
                    self.forward_row(input, values);
                    step(bound.as_ref(), values, row);
                } else {
                    self.backward_row(input, dst, values);
                }
                for (col, value) in values.iter().enumerate() {
                    output.set(col, *value);
                }
            }
        });
        threads.max(1)
    }
}

/// Rows of f32 in the scratchpad.
struct Values(*mut f32);

// SAFETY: each is one block's.
unsafe impl Sync for Values {}

impl Values {
    /// # Safety
    /// The scratchpad has a row for the block, which is this thread's.
    #[allow(clippy::mut_from_ref, reason = "each block has a row of its own")]
    unsafe fn of_block(&self, block: usize, cols: usize) -> &mut [f32] {
        // SAFETY: the caller's; the scratchpad is aligned.
        unsafe { std::slice::from_raw_parts_mut(self.0.wrapping_add(block * cols), cols) }
    }
}

impl Reference {
    fn blocks(&self) -> usize {
        if self.cols == 0 { 0 } else { self.rows.min(MAX_BLOCKS) }
    }

    fn forward_row(&self, src: PlainRow<'_>, values: &mut [f32]) {
        let max = (0..self.cols).fold(f32::NEG_INFINITY, |max, col| {
            let x = src.get(col);
            if x > max { x } else { max }
        });
        let distance = |col| src.get(col) - max;
        for (col, value) in values.iter_mut().enumerate() {
            *value = distance(col);
        }
        each(values, math::exp);
        let sum = plain_fold(self.cols, |col| (values[col], 1.0));
        match self.algorithm {
            SoftmaxAlgorithm::Accurate => {
                let reciprocal = (1.0 / sum) as f32;
                for value in values {
                    *value *= reciprocal;
                }
            }
            SoftmaxAlgorithm::Log => {
                let mut log = [sum as f32];
                each(&mut log, math::log);
                for (col, value) in values.iter_mut().enumerate() {
                    *value = distance(col) - log[0];
                }
            }
        }
    }

    fn backward_row(&self, diff_dst: PlainRow<'_>, dst: PlainRow<'_>, values: &mut [f32]) {
        for (col, value) in values.iter_mut().enumerate() {
            *value = dst.get(col);
        }
        match self.algorithm {
            SoftmaxAlgorithm::Accurate => {
                let sum = plain_fold(self.cols, |col| (diff_dst.get(col), values[col])) as f32;
                for (col, value) in values.iter_mut().enumerate() {
                    *value *= diff_dst.get(col) - sum;
                }
            }
            SoftmaxAlgorithm::Log => {
                let sum = plain_fold(self.cols, |col| (diff_dst.get(col), 1.0)) as f32;
                each(values, math::exp);
                for (col, value) in values.iter_mut().enumerate() {
                    *value = (-*value).mul_add(sum, diff_dst.get(col));
                }
            }
        }
    }
}

/// Takes the steps of attributes on a row.
fn step(bound: Option<&BoundChain<'_>>, values: &mut [f32], row: usize) {
    let Some(bound) = bound else { return };
    let rows = Rows { start: values.as_mut_ptr(), step: values.len(), cols: values.len() };
    // SAFETY: the row is there, and so are the execution's buffers; every machine has the level.
    unsafe { chain_entry(Level::Portable)(bound, &rows, row, row + 1) }
}

/// A function of every value.
fn each(values: &mut [f32], f: fn(Lanes<Portable>) -> Lanes<Portable>) {
    for values in values.chunks_mut(LANES) {
        // SAFETY: 1 to 16 values, on what every machine has.
        unsafe {
            f(Lanes::load(values.as_ptr(), values.len())).store(values.as_mut_ptr(), values.len())
        }
    }
}
