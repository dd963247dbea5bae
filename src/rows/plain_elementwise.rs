//! Reference implementations of elementwise primitives: one element at a time, in any layout, with the chain in
//! portable code.

use super::elementwise::Elementwise;
use super::plain::PlainTensor;
use super::schedule::PLAIN_BLOCKS;
use crate::error::Result;
use crate::heap::{Counted, counted};
use crate::primitive::{
    Ahead, BoundChain, Execution, INPUTS, Implementation, InputRows, Inputs, Padding, PostOpChain,
    Rows, Variant, chain_entry,
};
use crate::simd::Level;
use crate::threads::Length;
use arrayvec::ArrayVec;

/// Elements of a row that are computed together.
const CHUNK: usize = 256;

struct Reference {
    variant: &'static Variant,
    rows: usize,
    cols: usize,
    inputs: ArrayVec<(i32, PlainTensor), INPUTS>,
    output: (i32, PlainTensor),
    chain: PostOpChain,
    /// The padding of the output.
    padding: Padding,
}

impl Elementwise<'_> {
    /// The reference implementation, which supports every problem.
    pub(super) fn plain(
        &self,
        variant: &'static Variant,
    ) -> Result<Box<Counted<dyn Implementation>>> {
        let (id, dst) = self.output;
        let dims = dst.dims();
        let cols = dims.last().map_or(0, |cols| *cols as usize);
        let outer = &dims[..dims.len().saturating_sub(1)];
        let mut inputs = ArrayVec::new();
        for (id, desc) in &self.inputs {
            inputs.push((*id, PlainTensor::broadcast(desc, dims)?));
        }
        Ok(counted(Reference {
            variant,
            rows: outer.iter().product::<i64>() as usize,
            cols,
            inputs,
            output: (id, PlainTensor::new(dst)?),
            chain: self.chain(self.attr, dst, None)?,
            padding: Padding::of(dst)?,
        })?)
    }
}

impl Implementation for Reference {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        0
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        if self.rows * self.cols == 0 {
            return 1;
        }
        let dst = execution.arguments.get(self.output.0);
        let mut addresses = [dst; INPUTS];
        for (address, (id, _)) in addresses.iter_mut().zip(&self.inputs) {
            *address = execution.arguments.get(*id);
        }
        // SAFETY: the execution's buffers were checked.
        let bound = unsafe { self.chain.bind(execution.arguments) };
        let shared = Shared { bound, addresses, dst };
        let (blocks, width) = (self.rows.min(PLAIN_BLOCKS), execution.threads.count());
        let threads = execution.run(blocks, width, Length::Long, &|block| {
            for row in self.rows * block / blocks..self.rows * (block + 1) / blocks {
                for col in (0..self.cols).step_by(CHUNK) {
                    self.elements(&shared, row, (col, CHUNK.min(self.cols - col)));
                }
            }
        });
        // SAFETY: the execution's buffers were checked.
        unsafe { self.padding.clear(dst) };
        threads.max(1)
    }
}

/// The data shared by the threads of an execution.
struct Shared<'a> {
    bound: BoundChain<'a>,
    addresses: [*mut u8; INPUTS],
    dst: *mut u8,
}

// SAFETY: threads write disjoint rows through the addresses.
unsafe impl Sync for Shared<'_> {}

impl Reference {
    /// Computes `count` elements of a row.
    fn elements(&self, shared: &Shared<'_>, row: usize, (first_col, count): (usize, usize)) {
        let mut values = [[0.0f32; CHUNK]; INPUTS];
        for (i, (_, tensor)) in self.inputs.iter().enumerate() {
            // SAFETY: the execution's buffers were checked.
            let elements = unsafe { tensor.row(shared.addresses[i], row) };
            for (at, value) in values[i][..count].iter_mut().enumerate() {
                *value = elements.get(first_col + at);
            }
        }
        let mut results = [0.0f32; CHUNK];
        let inputs = values.each_mut().map(|v| InputRows {
            start: v.as_mut_ptr(),
            step: CHUNK,
            ahead: Ahead::NONE,
        });
        let start = results.as_mut_ptr();
        let inputs = Some(Inputs { rows: &inputs, streams: false, prefetches: false });
        let rows = Rows { start, step: CHUNK, cols: count, first_col, inputs };
        // SAFETY: as above; every machine has the level, and rows are given out once.
        unsafe {
            chain_entry(Level::Portable)(&shared.bound, &rows, row, row + 1);
            let elements = self.output.1.row(shared.dst, row);
            for (at, value) in results[..count].iter().enumerate() {
                elements.set(first_col + at, *value);
            }
        }
    }
}
