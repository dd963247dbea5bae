//! The addresses of the elements of gate, up, dst and the gradients.

use super::problem::{Half, Part};
use crate::primitive::Arguments;
use crate::rows::row_map;
use crate::tensor::{DataType, RowMap};

/// A strided tensor, or half of one, as rows.
#[derive(Clone, Copy)]
pub(super) struct View {
    argument: i32,
    pub(super) data_type: DataType,
    rows: RowMap,
    /// The first element of row 0 and the distance between elements of a row, in elements of the tensor.
    first: usize,
    pub(super) step: usize,
    /// Whether it alternates with the other half.
    pub(super) paired: bool,
    cols: usize,
}

impl View {
    /// The rows in an order of the outer dimensions.
    pub(super) fn new(part: &Part, cols: usize, order: &[usize]) -> Self {
        let Part { argument, desc, half } = part;
        let stride = match (desc.dims().last(), desc.strides().last()) {
            (Some(1), _) | (_, None) => 1,
            (_, Some(step)) => *step as usize,
        };
        let (first, every) = half.places(cols);
        Self {
            argument: *argument,
            data_type: desc.data_type().unwrap_or(DataType::F32),
            rows: row_map(desc, order),
            first: first * stride,
            // A single element has no successor.
            step: if cols <= 1 { 1 } else { every * stride },
            paired: every * stride == 2 && stride == 1,
            cols,
        }
    }

    /// Whether the distance from the last element of a row to the next row is that between elements.
    pub(super) fn is_even(&self) -> bool {
        self.rows.step() == Some(self.step * self.cols)
    }

    /// All rows as one, if they are even.
    pub(super) fn joined(self, rows: usize) -> Self {
        Self { rows: RowMap::every(0), cols: self.cols * rows, ..self }
    }

    /// The address of an element.
    pub(super) fn at(&self, arguments: &Arguments, row: usize, col: usize) -> *mut u8 {
        let offset = self.first + self.rows.offset(row) + col * self.step;
        arguments.get(self.argument).wrapping_add(offset * self.data_type.size())
    }
}

/// Whether two parts of the same buffer coincide.
pub(super) fn coincide(a: &Part, b: &Part, cols: usize) -> bool {
    let (a_half, b_half) = (a.half.places(cols), b.half.places(cols));
    if a.desc.is_blocked() || b.desc.is_blocked() {
        let same_half = (a.half == Half::Whole) == (b.half == Half::Whole) && a_half == b_half;
        return a.desc.same_layout(&b.desc) && same_half;
    }
    let last = |part: &Part| part.desc.strides().last().copied().unwrap_or(1) as usize;
    let outer = |part: &Part| {
        let dims = part.desc.dims().iter().zip(part.desc.strides());
        dims.take(part.desc.ndims().saturating_sub(1))
            .map(|(dim, stride)| if *dim == 1 { 0 } else { *stride })
            .collect::<arrayvec::ArrayVec<i64, { crate::tensor::MAX_NDIMS }>>()
    };
    a.desc.data_type() == b.desc.data_type()
        && a_half.0 * last(a) == b_half.0 * last(b)
        && (cols <= 1 || a_half.1 * last(a) == b_half.1 * last(b))
        && outer(a) == outer(b)
}
