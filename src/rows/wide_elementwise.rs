//! Reference implementations of elementwise primitives in f64: one element at a time, in any layout. Post-operations
//! are computed in f32, so these have none.

use super::elementwise::Elementwise;
use super::plain::PlainTensor;
use super::schedule::PLAIN_BLOCKS;
use crate::error::{Error, Result};
use crate::heap::{Counted, counted};
use crate::primitive::{Execution, INPUTS, Implementation, Padding, Variant, WideFunction};
use crate::threads::Length;
use arrayvec::ArrayVec;
use std::ops::Range;

struct Reference {
    variant: &'static Variant,
    rows: usize,
    cols: usize,
    inputs: ArrayVec<(i32, PlainTensor), INPUTS>,
    output: (i32, PlainTensor),
    function: WideFunction,
    /// The padding of the output.
    padding: Padding,
}

impl Elementwise<'_> {
    /// The reference implementation in f64.
    pub(super) fn wide(
        &self,
        variant: &'static Variant,
    ) -> Result<Box<Counted<dyn Implementation>>> {
        let (id, dst) = self.output;
        let dims = dst.dims();
        let cols = dims.last().map_or(0, |cols| *cols as usize);
        let outer = &dims[..dims.len().saturating_sub(1)];
        let mut inputs = ArrayVec::new();
        for (id, desc) in &self.inputs {
            inputs.push((*id, PlainTensor::new(desc)?));
        }
        let function = WideFunction::new(self.start)
            .ok_or_else(|| Error::unimplemented("f64 with a function of two tensors"))?;
        Ok(counted(Reference {
            variant,
            rows: outer.iter().product::<i64>() as usize,
            cols,
            inputs,
            output: (id, PlainTensor::new(dst)?),
            function,
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
        let shared = Shared { addresses, dst };
        // A single row is split, too.
        let pieces = PLAIN_BLOCKS.div_ceil(self.rows.min(PLAIN_BLOCKS)).min(self.cols);
        let blocks = self.rows.min(PLAIN_BLOCKS);
        let width = execution.threads.count();
        let threads = execution.run(blocks * pieces, width, Length::Long, &|part| {
            let (block, piece) = (part / pieces, part % pieces);
            let cols = self.cols * piece / pieces..self.cols * (piece + 1) / pieces;
            for row in self.rows * block / blocks..self.rows * (block + 1) / blocks {
                self.elements(&shared, row, cols.clone());
            }
        });
        // SAFETY: the execution's buffers were checked.
        unsafe { self.padding.clear(dst) };
        threads.max(1)
    }
}

/// The addresses of an execution.
struct Shared {
    addresses: [*mut u8; INPUTS],
    dst: *mut u8,
}

// SAFETY: threads write disjoint elements through the addresses.
unsafe impl Sync for Shared {}

impl Reference {
    /// Computes elements of a row.
    fn elements<'t>(&'t self, shared: &Shared, row: usize, cols: Range<usize>) {
        let row_of = |tensor: &'t PlainTensor, address| {
            // SAFETY: the execution's buffers were checked, and elements are given out once.
            unsafe { tensor.row(address, row) }
        };
        let input = |i: usize| Some(row_of(&self.inputs.get(i)?.1, shared.addresses[i]));
        let (xs, ys) = (input(0), input(1));
        let output = row_of(&self.output.1, shared.dst);
        for col in cols {
            let [x, y] = [xs, ys].map(|input| input.map_or(0.0, |input| input.get_wide(col)));
            output.set_wide(col, self.function.of(x, y));
        }
    }
}
