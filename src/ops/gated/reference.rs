//! The formula for any layout and types, 16 elements at a time, with the bits of the vector implementations.

use super::functions::{Gradients, plain_backward, plain_forward};
use super::problem::Numbers;
use super::problem::{Gated, GatedFunction, Half, Part};
use super::vector::quantize;
use crate::error::Result;
use crate::heap::{Counted, counted, list, push};
use crate::primitive::{
    Arguments, BoundChain, Execution, Implementation, Padding, PostOpChain, Rows, Variant,
    chain_entry,
};
use crate::rows::{PLAIN_BLOCKS, PlainRow, PlainTensor, Quantize, spread, width_of};
use crate::simd::lanes::Lanes;
use crate::simd::portable::Portable;
use crate::simd::{LANES, Level};
use arrayvec::ArrayVec;

/// Supports every problem.
pub(super) fn make(
    problem: &Gated,
    variant: &'static Variant,
) -> Result<Box<Counted<dyn Implementation>>> {
    let outer = problem.inputs[0].desc.ndims() - 1;
    let order: ArrayVec<usize, { crate::tensor::MAX_NDIMS }> = (0..outer).collect();
    let sides = |parts: &[Part]| {
        let mut sides = list([])?;
        for part in parts {
            let (tensor, padding) = (PlainTensor::new(&part.desc)?, Padding::of(&part.desc)?);
            push(&mut sides, Side { argument: part.argument, tensor, half: part.half, padding })?;
        }
        Ok(sides)
    };
    Ok(counted(Reference {
        variant,
        function: problem.function,
        numbers: problem.numbers,
        forward: problem.prop_kind.is_forward(),
        rows: problem.rows,
        cols: problem.cols,
        inputs: sides(&problem.inputs)?,
        outputs: sides(&problem.outputs)?,
        chain: problem.chain(None)?,
        quantize: quantize(problem, &order),
    })?)
}

/// A tensor, or half of one.
struct Side {
    argument: i32,
    tensor: PlainTensor,
    half: Half,
    padding: Padding,
}

struct Reference {
    variant: &'static Variant,
    function: GatedFunction,
    numbers: Numbers,
    forward: bool,
    rows: usize,
    cols: usize,
    inputs: Vec<Side>,
    outputs: Vec<Side>,
    chain: Option<PostOpChain>,
    quantize: Option<Quantize>,
}

/// Rows of f32 in the scratchpad, one per block.
struct Scratchpad(*mut f32);

// SAFETY: see above.
unsafe impl Sync for Scratchpad {}

impl Scratchpad {
    fn row(&self, block: usize, cols: usize) -> *mut f32 {
        self.0.wrapping_add(block * cols)
    }
}

type Vector = [f32; LANES];

fn lanes(values: Vector) -> Lanes<Portable> {
    // SAFETY: there are 16, and every machine has the level.
    unsafe { Lanes::load(values.as_ptr(), LANES) }
}

fn vector(lanes: Lanes<Portable>) -> Vector {
    let mut values = [0.0; LANES];
    // SAFETY: there is room for 16.
    unsafe { lanes.store(values.as_mut_ptr(), LANES) };
    values
}

impl Implementation for Reference {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        let row = self.cols.saturating_mul(size_of::<f32>());
        row.saturating_mul(self.rows.min(PLAIN_BLOCKS))
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let (rows, cols) = (self.rows, self.cols);
        for side in &self.outputs {
            // SAFETY: the execution's buffers were checked.
            unsafe { side.padding.clear(execution.arguments.get(side.argument)) };
        }
        if rows == 0 || cols == 0 {
            return 1;
        }
        // SAFETY: as above.
        let bound = self.chain.as_ref().map(|chain| unsafe { chain.bind(execution.arguments) });
        let scratchpad = Scratchpad(execution.scratchpad.cast());
        let width = width_of(execution.threads, rows * cols);
        spread(execution, (rows, rows * cols), (width, PLAIN_BLOCKS), &|block, range| {
            let values = scratchpad.row(block, cols);
            for row in range {
                if self.forward {
                    self.forward_row(execution.arguments, row, values, bound.as_ref());
                } else {
                    self.backward_row(execution.arguments, row);
                }
            }
        })
    }
}

impl Reference {
    fn row<'a>(&self, arguments: &Arguments, side: &'a Side, row: usize) -> Row<'a> {
        let (first, every) = side.half.places(self.cols);
        let start = arguments.get(side.argument);
        // SAFETY: the execution's buffers were checked, and rows are given out once.
        let row = unsafe { side.tensor.row(start, row) };
        Row { row, first, every }
    }

    fn forward_row(
        &self,
        arguments: &Arguments,
        row: usize,
        values: *mut f32,
        bound: Option<&BoundChain<'_>>,
    ) {
        let cols = self.cols;
        let [gate, up] = [0, 1].map(|i| self.row(arguments, &self.inputs[i], row));
        let dst = self.row(arguments, &self.outputs[0], row);
        // SAFETY: the block has a row of the scratchpad.
        let stored = unsafe {
            values.write_bytes(0, cols);
            std::slice::from_raw_parts_mut(values, cols)
        };
        for col in (0..cols).step_by(LANES) {
            let n = LANES.min(cols - col);
            let inputs = [lanes(gate.get(col, n)), lanes(up.get(col, n))];
            let result = vector(plain_forward(self.function, self.numbers, inputs));
            stored[col..col + n].copy_from_slice(&result[..n]);
        }
        // SAFETY: the buffers were checked, and every machine has the level.
        unsafe {
            if let Some(bound) = bound {
                let rows = Rows { start: values, step: cols, cols, first_col: 0, inputs: None };
                chain_entry(Level::Portable)(bound, &rows, row, row + 1);
            }
            if let Some(quantize) = &self.quantize {
                quantize.row(Level::Portable, arguments, (row, 0), (values, cols));
            }
        }
        for (col, value) in stored.iter().enumerate() {
            dst.set(col, *value);
        }
    }

    fn backward_row(&self, arguments: &Arguments, row: usize) {
        let inputs = [0, 1, 2].map(|i| self.row(arguments, &self.inputs[i], row));
        for col in (0..self.cols).step_by(LANES) {
            let n = LANES.min(self.cols - col);
            let inputs = inputs.map(|row| lanes(row.get(col, n)));
            let Gradients { dst, gate, up } = plain_backward(self.function, self.numbers, inputs);
            for (side, result) in self.outputs.iter().zip([gate, up, dst]) {
                let output = self.row(arguments, side, row);
                for (i, value) in vector(result)[..n].iter().enumerate() {
                    output.set(col + i, *value);
                }
            }
        }
    }
}

/// A row of gate, up, dst or a gradient.
#[derive(Clone, Copy)]
struct Row<'a> {
    row: PlainRow<'a>,
    first: usize,
    every: usize,
}

impl Row<'_> {
    /// Up to 16 elements; missing ones are zeros.
    fn get(self, col: usize, n: usize) -> Vector {
        let mut values = [0.0; LANES];
        for (i, value) in values[..n].iter_mut().enumerate() {
            *value = self.row.get(self.first + (col + i) * self.every);
        }
        values
    }

    fn set(self, col: usize, value: f32) {
        self.row.set(self.first + col * self.every, value);
    }
}
