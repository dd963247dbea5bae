//! The rows of a tensor in any layout, element by element.

use crate::error::Result;
use crate::simd::{read_scalar, read_wide, write_scalar, write_wide};
use crate::tensor::{DataType, DimOffsets, MemoryDesc, Offsets, Support};

/// The locations of a tensor's elements.
pub(super) struct Tensor {
    pub(super) rows: Offsets,
    pub(super) cols: DimOffsets,
}

impl Tensor {
    pub(super) fn new(desc: &MemoryDesc) -> Result<Self> {
        let (rows, cols) = Offsets::of(desc)?.split_last();
        Ok(Self { rows, cols })
    }

    pub(super) fn row(&self, data_type: DataType, start: *mut u8, row: usize) -> RowView<'_> {
        RowView { data_type, start, offset: self.rows.offset(row), cols: &self.cols }
    }
}

/// A row of a tensor.
#[derive(Clone, Copy)]
pub(super) struct RowView<'a> {
    pub(super) data_type: DataType,
    pub(super) start: *mut u8,
    pub(super) offset: usize,
    pub(super) cols: &'a DimOffsets,
}

impl RowView<'_> {
    pub(super) fn get(self, col: usize) -> f32 {
        // SAFETY: the execution's buffers were checked to hold every element of the descriptor.
        unsafe { read_scalar(self.data_type, self.start, self.offset + self.cols.offset(col)) }
    }

    pub(super) fn set(self, col: usize, value: f32) {
        // SAFETY: as above, and rows of an output do not overlap.
        unsafe {
            write_scalar(self.data_type, self.start, self.offset + self.cols.offset(col), value)
        }
    }

    pub(super) fn get_f64(self, col: usize) -> f64 {
        // SAFETY: as `get`.
        unsafe { read_wide(self.data_type, self.start, self.offset + self.cols.offset(col)) }
    }

    pub(super) fn set_f64(self, col: usize, value: f64) {
        if self.data_type.support() == Support::Forward && !self.data_type.is_integer() {
            // Rounded to f32 first, as on a stage.
            return self.set(col, value as f32);
        }
        // SAFETY: as `set`.
        unsafe {
            write_wide(self.data_type, self.start, self.offset + self.cols.offset(col), value)
        }
    }
}

/// An f32 parameter; null if absent.
#[derive(Clone, Copy)]
pub(super) struct Parameter(pub(super) *const f32);

impl Parameter {
    pub(super) fn get(self, col: usize) -> Option<f32> {
        // SAFETY: the execution's parameters were checked to have as many elements as a row.
        (!self.0.is_null()).then(|| unsafe { self.0.add(col).read_unaligned() })
    }
}
