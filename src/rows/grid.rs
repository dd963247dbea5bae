//! Matrices as f32 in a buffer: loaded from tensors of any type and strides, and rounded and stored to them.

use super::pack::{Entry, Packing, entries};
use crate::simd::Level;
use crate::tensor::{DataType, RowMap};

/// A matrix in a tensor.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    /// The address of the first element.
    pub(crate) start: *mut u8,
    pub(crate) data_type: DataType,
    pub(crate) rows: usize,
    /// The strides of rows and of the elements of a row.
    pub(crate) row_step: usize,
    pub(crate) step: usize,
    pub(crate) cols: usize,
}

/// The functions of a level.
#[derive(Clone, Copy)]
pub(crate) struct Grids {
    pack: Entry,
    unpack: Entry,
}

impl Grids {
    pub(crate) fn new(level: Level) -> Self {
        let (pack, unpack) = entries(level);
        Self { pack, unpack }
    }

    /// Loads a matrix into rows of f32 with a stride.
    ///
    /// # Safety
    /// The elements and the room exist, no other thread writes them, and the CPU supports the level.
    pub(crate) unsafe fn load(&self, grid: &Grid, to: *mut f32, step: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.pack)(&packing(grid, to, step), 0, grid.rows) };
    }

    /// Rounds rows of f32 to a matrix.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    pub(crate) unsafe fn store(&self, grid: &Grid, from: *mut f32, step: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.unpack)(&packing(grid, from, step), 0, grid.rows) };
    }
}

fn packing(grid: &Grid, stage: *mut f32, stage_step: usize) -> Packing {
    let elements = (grid.start, grid.data_type, grid.step);
    let rows = RowMap::every(grid.row_step);
    Packing { rows, stage_step, ..Packing::of_row(elements, grid.cols, stage) }
}
