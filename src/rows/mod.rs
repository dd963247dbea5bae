//! Processing of tensors row by row, shared by all operations.
//!
//! A [`Pipeline`] splits the rows of a problem into blocks, runs the blocks on threads, and stages rows that the
//! kernels cannot access in place. An operation supplies descriptors and a function that computes a range of rows.
//! [`ColumnSums`] are sums over rows whose bits do not depend on the threads. [`schedule`] has the tuning constants
//! that operations share.

mod around;
mod around_normalization;
mod blocks;
mod chunks;
mod collapse;
mod columns;
mod combine;
mod elementwise;
mod elementwise_side;
mod fence;
mod grid;
mod many;
mod order;
mod pack;
mod parameter;
mod pipeline;
mod plain;
mod plain_elementwise;
mod plain_rows;
mod quantize;
mod residual;
mod rooms;
pub(crate) mod row_lanes;
mod rows_of;
mod schedule;
mod sections;
mod slots;
mod spread;
mod stage;
pub(crate) mod statistics;
mod transfer;
mod wide_elementwise;

pub(crate) use around::{Around, Normalized};
pub(crate) use chunks::{Chunk, Chunks};
pub(crate) use columns::{CHAIN_ROWS, ColumnSums, JoinEntry, join_entry};
pub(crate) use elementwise::Elementwise;
pub(crate) use fence::Fence;
pub(crate) use grid::{Grid, Grids};
pub(crate) use many::{Many, execute_many};
pub(crate) use order::{row_map, row_order};
pub(crate) use parameter::{Neutral, Parameter, STATIC_COLS};
pub(crate) use pipeline::{Pipeline, Spec};
pub(crate) use plain::{PlainRow, PlainTensor, halve, plain_fold, plain_map, wide_fold};
pub(crate) use plain_rows::PlainRows;
pub(crate) use quantize::{Memory, Quantize};
pub(crate) use rooms::{OpenRooms, Rooms, rooms};
pub(crate) use rows_of::RowsOf;
pub(crate) use schedule::{
    ALIASED, BLOCKS_PER_THREAD, Caches, PAGE, PLAIN_BLOCKS, STREAMED_BYTES_OF_SEVERAL, Schedule,
};
pub(crate) use sections::{Section, Sections};
pub(crate) use slots::Slots;
pub(crate) use spread::{length_of, spread, width_of};
pub(crate) use stage::{Operand, RowTensor, Staged, TENSORS, has_dense_rows};
pub(crate) use transfer::{QuantizedTransfer, Transfer};
