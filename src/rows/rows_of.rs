//! The rows of an argument, for steps that access it in place.

use super::order::row_map;
use crate::primitive::Arguments;
use crate::tensor::{DataType, MemoryDesc, RowMap};

/// The rows of a tensor that is an argument.
#[derive(Clone, Copy)]
pub(crate) struct RowsOf {
    argument: i32,
    pub(super) data_type: DataType,
    pub(super) rows: RowMap,
    /// The stride of the last dimension, in elements.
    pub(super) step: usize,
}

impl RowsOf {
    /// The rows of a strided tensor in an order of its outer dimensions.
    pub(crate) fn new(argument: i32, desc: &MemoryDesc, order: &[usize]) -> Self {
        Self {
            argument,
            data_type: desc.data_type().unwrap_or(DataType::F32),
            rows: row_map(desc, order),
            step: match (desc.dims().last(), desc.strides().last()) {
                (Some(1), _) | (_, None) => 1,
                (_, Some(step)) => *step as usize,
            },
        }
    }

    /// The address of a row's element.
    pub(super) fn at(&self, arguments: &Arguments, row: usize, col: usize) -> *mut u8 {
        let offset = self.rows.offset(row) + col * self.step;
        arguments.get(self.argument).wrapping_add(offset * self.data_type.size())
    }
}
