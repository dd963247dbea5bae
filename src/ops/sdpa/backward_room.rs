//! The buffers of a thread, backward.

use super::BLOCK;
use super::gradient::{Matrix, PAD, QUERIES, STEP};
use super::inputs::{floats, starts};
use super::keys::STAGED;
use super::score::ScoreRow;
use crate::simd::LANES;

/// The buffers of a thread.
pub(super) struct Room {
    pub(super) queries: Matrix,
    pub(super) diff_dst: Matrix,
    pub(super) dst: Matrix,
    pub(super) key_stage: *mut f32,
    pub(super) value_stage: *mut f32,
    pub(super) key_panels: *mut f32,
    pub(super) value_panels: *mut f32,
    pub(super) key_columns: *mut f32,
    pub(super) weights: Matrix,
    pub(super) diff_scores: Matrix,
    pub(super) rows: *mut ScoreRow,
    pub(super) of_sink: *mut f32,
    /// The gradients of a block of keys and values.
    pub(super) diff_keys: Matrix,
    pub(super) diff_values: Matrix,
    /// The gradients, logarithms and deltas of all queries of the group, head by head.
    pub(super) diff_queries: Matrix,
    pub(super) logarithms: *mut f32,
    pub(super) deltas: *mut f32,
    /// The sums of a part of the mask, and the same as f32.
    pub(super) mask_sums: *mut f64,
    pub(super) mask_stage: *mut f32,
    pub(super) tiles: *mut f32,
}

/// The number of buffers of a room.
const BUFFERS: usize = 20;

/// What the sizes of a room's buffers depend on.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// The row strides of keys and of values.
    pub(super) key: usize,
    pub(super) value: usize,
    /// The number of queries of a group.
    pub(super) queries: usize,
    /// The elements of a part of the mask.
    pub(super) mask: usize,
    /// The size of the room for tiles, in floats.
    pub(super) tiles: usize,
}

impl Sizes {
    /// The sizes of the buffers, in floats.
    fn all(&self) -> [usize; BUFFERS] {
        let Self { key, value, .. } = *self;
        let all = self.queries.next_multiple_of(LANES);
        let mask = self.mask.next_multiple_of(LANES);
        [
            QUERIES * (key + PAD),
            QUERIES * (value + PAD),
            QUERIES * value,
            STAGED * key,
            STAGED * value,
            BLOCK * key,
            BLOCK * value,
            BLOCK * key,
            QUERIES * STEP,
            QUERIES * STEP,
            floats::<ScoreRow>(QUERIES),
            QUERIES,
            BLOCK * key,
            BLOCK * value,
            self.queries.saturating_mul(key),
            all,
            all,
            2 * mask,
            mask,
            self.tiles,
        ]
    }

    /// The size of a room, in floats.
    pub(super) fn of_room(&self) -> usize {
        self.all().iter().fold(0usize, |sum, size| sum.saturating_add(*size))
    }

    /// A room.
    pub(super) fn room(&self, start: *mut f32) -> Room {
        let starts = starts(start, self.all());
        let matrix = |place: usize, step| Matrix { start: starts[place], step };
        let Self { key, value, .. } = *self;
        Room {
            queries: matrix(0, key + PAD),
            diff_dst: matrix(1, value + PAD),
            dst: matrix(2, value),
            key_stage: starts[3],
            value_stage: starts[4],
            key_panels: starts[5],
            value_panels: starts[6],
            key_columns: starts[7],
            weights: matrix(8, STEP),
            diff_scores: matrix(9, STEP),
            rows: starts[10].cast(),
            of_sink: starts[11],
            diff_keys: matrix(12, key),
            diff_values: matrix(13, value),
            diff_queries: matrix(14, key),
            logarithms: starts[15],
            deltas: starts[16],
            mask_sums: starts[17].cast(),
            mask_stage: starts[18],
            tiles: starts[19],
        }
    }
}
