//! The order in which the rows of a tensor are processed.

use crate::tensor::{MAX_NDIMS, MemoryDesc, RowMap};
use arrayvec::ArrayVec;

/// The outer dimensions of a tensor in the order in which rows are processed: the order of strides, so that consecutive
/// rows are adjacent in memory, or the logical order if sums depend on it.
pub(crate) fn row_order(desc: &MemoryDesc, logical: bool) -> ArrayVec<usize, MAX_NDIMS> {
    let outer = desc.ndims() - 1;
    if logical {
        return (0..outer).collect();
    }
    desc.order()[..=outer].iter().copied().filter(|dim| *dim != outer).collect()
}

/// The offsets of a tensor's rows for an order of its outer dimensions.
pub(crate) fn row_map(desc: &MemoryDesc, order: &[usize]) -> RowMap {
    if desc.ndims() == 0 {
        return RowMap::new(&[], &[]);
    }
    let pick =
        |values: &[i64]| order.iter().map(|dim| values[*dim]).collect::<ArrayVec<_, MAX_NDIMS>>();
    RowMap::new(&pick(desc.dims()), &pick(desc.strides()))
}
