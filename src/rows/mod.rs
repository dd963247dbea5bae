//! Processing of tensors row by row, shared by all operations.
//!
//! A [`Pipeline`] splits the rows of a problem into blocks, runs the blocks on threads, and stages rows that the kernels
//! cannot access in place. An operation supplies descriptors and a function that computes a range of rows. [`ColumnSums`]
//! are sums over rows whose bits do not depend on the threads. [`schedule`] holds all tuning constants.

mod blocks;
mod columns;
mod pack;
mod parameter;
mod pipeline;
pub(crate) mod schedule;
mod slots;
mod stage;

pub(crate) use columns::{CHAIN_ROWS, ColumnSums, JoinEntry, join_entry};
pub(crate) use parameter::{Neutral, Parameters};
pub(crate) use pipeline::{Pipeline, Spec};
pub(crate) use schedule::Schedule;
pub(crate) use stage::{Operand, Staged};

use crate::tensor::{MemoryDesc, RowMap};

/// The outer dimensions of a tensor in the order in which rows are processed: the order of strides, so that consecutive
/// rows are adjacent in memory, or the logical order if sums depend on it.
pub(crate) fn row_order(desc: &MemoryDesc, logical: bool) -> Vec<usize> {
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
    let pick = |values: &[i64]| order.iter().map(|dim| values[*dim]).collect::<Vec<_>>();
    RowMap::new(&pick(desc.dims()), &pick(desc.strides()))
}
