//! Runs reference implementations on rows.
//!
//! The implementation computes each row as f32 in the scratchpad. This module applies post-operations, converts to the
//! output's type and zeros its padding.

use super::plain::{PlainRow, PlainTensor};
use super::schedule::PLAIN_BLOCKS;
use super::stage::TENSORS;
use crate::error::Result;
use crate::primitive::{Execution, Padding, PostOpChain, Rows, chain_entry};
use crate::simd::Level;
use crate::tensor::MemoryDesc;
use crate::threads::Length;

/// Computes one row from the rows of all tensors.
pub(crate) type PlainKernel<'a> = dyn Fn([PlainRow<'_>; TENSORS], &mut [f32]) + Sync + 'a;

/// Computes one row of the output from the rows of all tensors. Its first argument is the index of the block and that
/// of the row.
pub(crate) type RowVisitor<'a> = dyn Fn((usize, usize), [PlainRow<'_>; TENSORS]) + Sync + 'a;

/// The tensors of a problem, in any layout.
pub(crate) struct PlainRows {
    rows: usize,
    cols: usize,
    /// The argument ids of the tensors.
    ids: [i32; TENSORS],
    tensors: [PlainTensor; TENSORS],
    output: usize,
    chain: Option<PostOpChain>,
    /// The padding of the output.
    padding: Padding,
}

impl PlainRows {
    /// For tensors with the dimensions of the first one. Places after the output may be empty, or outputs with one
    /// element per row that the kernel writes.
    pub(crate) fn new(
        ids: [i32; TENSORS],
        descs: &[MemoryDesc; TENSORS],
        output: usize,
        chain: Option<PostOpChain>,
    ) -> Result<Self> {
        let dims = descs[0].dims();
        let cols = dims.last().map_or(0, |cols| *cols as usize);
        let outer = &dims[..dims.len().saturating_sub(1)];
        let [first, second, third] = descs;
        Ok(Self {
            rows: outer.iter().product::<i64>() as usize,
            cols,
            ids,
            tensors: [
                PlainTensor::new(first)?,
                PlainTensor::new(second)?,
                PlainTensor::new(third)?,
            ],
            output,
            chain,
            padding: Padding::of(&descs[output])?,
        })
    }

    fn blocks(&self) -> usize {
        if self.cols == 0 && self.ids[self.output + 1..].iter().all(|id| *id == 0) {
            0
        } else {
            self.rows.min(PLAIN_BLOCKS)
        }
    }

    pub(crate) fn scratchpad_size(&self) -> usize {
        self.blocks().saturating_mul(self.cols).saturating_mul(size_of::<f32>())
    }

    /// Runs a kernel over all rows. Returns the number of threads that took part.
    pub(crate) fn run(&self, execution: &Execution<'_>, kernel: &PlainKernel<'_>) -> usize {
        // SAFETY: the execution's buffers were checked.
        let bound = unsafe { self.chain.as_ref().map(|chain| chain.bind(execution.arguments)) };
        let scratchpad = Shared(execution.scratchpad.cast::<f32>());
        self.each(execution, &|(block, row), rows| {
            let start = scratchpad.get().wrapping_add(block * self.cols);
            // SAFETY: the aligned scratchpad has a row for each block.
            let values = unsafe { std::slice::from_raw_parts_mut(start, self.cols) };
            kernel(rows, values);
            if let Some(bound) = &bound {
                let (step, cols) = (self.cols, self.cols);
                let rows =
                    Rows { start: values.as_mut_ptr(), step, cols, first_col: 0, inputs: None };
                // SAFETY: as above; every machine has the level.
                unsafe { chain_entry(Level::Portable)(bound, &rows, row, row + 1) };
            }
            for (col, value) in values.iter().enumerate() {
                rows[self.output].set(col, *value);
            }
        })
    }

    /// Visits every row. Returns the number of threads that took part.
    pub(crate) fn each(&self, execution: &Execution<'_>, visit: &RowVisitor<'_>) -> usize {
        let addresses = self.ids.map(|id| execution.arguments.get(id));
        // SAFETY: the execution's buffers were checked.
        unsafe { self.padding.clear(addresses[self.output]) };
        let (blocks, width) = (self.blocks(), execution.threads.count());
        let starts = Shared(addresses);
        let threads = execution.run(blocks, width, Length::Long, &|block| {
            for row in self.rows * block / blocks..self.rows * (block + 1) / blocks {
                let tensor = |i: usize| {
                    // SAFETY: the execution's buffers were checked, and rows are given out once.
                    unsafe { self.tensors[i].row(starts.get()[i], row) }
                };
                // Rows of places without an argument are not accessed.
                let rows =
                    [0, 1, 2].map(|i| tensor(if self.ids[i] == 0 { self.output } else { i }));
                visit((block, row), rows);
            }
        });
        threads.max(1)
    }

    /// The number of elements in a row.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }
}

/// Addresses that threads share; each accesses its own rows.
struct Shared<T>(T);

// SAFETY: see above.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    fn get(&self) -> T {
        self.0
    }
}
