//! What operations on the rows of tensors share, whatever they compute.
//!
//! A [`Pipeline`] splits the rows of a problem into blocks, runs the blocks on threads and passes rows that the kernels
//! cannot read or write where they are through a stage. An operation gives it descriptors and a function that computes
//! a range of rows. [`ColumnSums`] are sums over rows whose bits do not depend on threads; [`schedule`] holds every
//! constant that decides how rows are read and written.

mod blocks;
mod columns;
mod pack;
mod parameter;
mod pipeline;
mod plain;
mod schedule;
mod slots;
mod stage;

pub(crate) use columns::{CHAIN_ROWS, ColumnSums, JoinEntry, join_entry};
pub(crate) use parameter::{Neutral, Parameters};
pub(crate) use pipeline::{Pipeline, Spec};
pub(crate) use plain::{PlainRow, PlainTensor, plain_fold};
pub(crate) use schedule::{Caches, Schedule};
pub(crate) use stage::{Operand, RowTensor, Staged, TENSORS};

use crate::tensor::{MemoryDesc, RowMap};

/// The outer dimensions of a tensor in the order in which rows are taken: that of the strides, so that neighbouring rows
/// are neighbours in memory, or the logical order where sums depend on it.
pub(crate) fn row_order(desc: &MemoryDesc, logical: bool) -> Vec<usize> {
    let outer = desc.ndims() - 1;
    if logical {
        return (0..outer).collect();
    }
    desc.order()[..=outer].iter().copied().filter(|dim| *dim != outer).collect()
}

/// Where the rows of a tensor begin if its outer dimensions are taken in an order.
pub(crate) fn row_map(desc: &MemoryDesc, order: &[usize]) -> RowMap {
    if desc.ndims() == 0 {
        return RowMap::new(&[], &[]);
    }
    let pick = |values: &[i64]| order.iter().map(|dim| values[*dim]).collect::<Vec<_>>();
    RowMap::new(&pick(desc.dims()), &pick(desc.strides()))
}
