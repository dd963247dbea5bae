//! Backward. Threads share the groups of keys. A group processes its keys in blocks and, for each block, all queries of
//! its heads in order, so every sum has a fixed order.

use super::backward_room::{Room, Sizes};
use super::blocks::Blocks;
use super::diff_mask::DiffMask;
use super::diff_tiles::DiffTiles;
use super::gradient::{DeltaEntry, Deltas, Matrix, Pairs, QUERIES, ScaleEntry, Scaled};
use super::inputs::{Bound, Inputs, Shared, floats};
use super::keys::Target;
use super::order::Right;
use super::problem::Sdpa;
use super::rows::Heads;
use super::score::ScoreRow;
use super::{BLOCK, diff_tile_kernel, gradient, tile_kernel};
use crate::error::Result;
use crate::primitive::Execution;
use crate::rows::{Slots, rooms};
use crate::simd::{LANES, Level};
use crate::threads::Length;
use norm_sys as sys;
use std::ops::Range;

/// Backward at a level.
pub(super) struct Backward {
    pub(super) inputs: Inputs,
    dst: Heads,
    diff_dst: Heads,
    diff_queries: Heads,
    diff_keys: Heads,
    diff_values: Heads,
    pub(super) diff_mask: Option<DiffMask>,
    pub(super) rooms: usize,
    pub(super) differentiate: gradient::Entry,
    deltas: DeltaEntry,
    scale: ScaleEntry,
    /// How pairs are computed on tiles; `None` without tiles.
    pub(super) tiles: Option<DiffTiles>,
}

impl Backward {
    pub(super) fn new(problem: &Sdpa, level: Level) -> Result<Self> {
        let shape = &problem.shape;
        let vectors = level.of_vectors();
        let on_tiles = level != vectors;
        Ok(Self {
            tiles: if on_tiles {
                Some(DiffTiles::new(
                    problem,
                    tile_kernel::entries(level),
                    diff_tile_kernel::entry(level),
                )?)
            } else {
                None
            },
            inputs: Inputs::new(problem, vectors)?,
            dst: Heads::new(problem, sys::NORM_ARG_DST, 2)?,
            diff_dst: Heads::new(problem, sys::NORM_ARG_DIFF_DST, 2)?,
            diff_queries: Heads::new(problem, sys::NORM_ARG_DIFF_QUERIES, 2)?,
            diff_keys: Heads::new(problem, sys::NORM_ARG_DIFF_KEYS, 3)?,
            diff_values: Heads::new(problem, sys::NORM_ARG_DIFF_VALUES, 2)?,
            diff_mask: DiffMask::new(problem)?,
            rooms: rooms().min(shape.batch * shape.groups).max(1),
            differentiate: gradient::entry(vectors, problem.is_bf16()),
            deltas: gradient::delta_entry(vectors),
            scale: gradient::scale_entry(vectors),
        })
    }

    fn sizes(&self) -> Sizes {
        let shape = &self.inputs.problem.shape;
        Sizes {
            key: shape.key_size.next_multiple_of(LANES),
            value: shape.value_size.next_multiple_of(LANES),
            queries: shape.heads_of_group() * shape.queries,
            mask: self.diff_mask.map_or(0, |mask| mask.part_size()),
            tiles: self.tiles.as_ref().map_or(0, DiffTiles::size),
        }
    }

    /// Bytes of the scratchpad: each head's parts of the gradients of sinks, as f64, and the rooms.
    pub(super) fn scratchpad_size(&self) -> usize {
        let room = self.sizes().of_room();
        let rooms = self.rooms.saturating_mul(room).saturating_mul(size_of::<f32>());
        rooms.saturating_add(self.sinks() * size_of::<f32>())
    }

    /// The size of the parts of sinks, in floats.
    fn sinks(&self) -> usize {
        let shape = &self.inputs.problem.shape;
        floats::<f64>(shape.batch * shape.heads)
    }

    fn room(&self, start: *mut f32, number: usize) -> Room {
        let sizes = self.sizes();
        sizes.room(start.wrapping_add(number * sizes.of_room()))
    }

    /// Runs the problem. Returns the number of threads that took part.
    pub(super) fn execute(&self, execution: &Execution<'_>) -> usize {
        let shape = &self.inputs.problem.shape;
        if self.inputs.problem.is_empty() {
            return 1;
        }
        let width = self.inputs.width(execution, self.rooms);
        let bound = Bound::new(&self.inputs, execution.arguments);
        let sinks = Shared(execution.scratchpad.cast());
        let start = Shared(sinks.get().wrapping_add(self.sinks()));
        let job = Job { backward: self, bound };
        let slots = Slots::new(self.rooms);
        let groups = shape.batch * shape.groups;
        let threads = execution.run(groups, width, Length::Long, &|number| {
            let slot = slots.take();
            let room = self.room(start.get(), slot.number());
            let place = (number / shape.groups, number % shape.groups);
            // SAFETY: the execution's buffers were checked, groups are given out once, a room has one thread at a time,
            // and the machine has the level.
            unsafe { job.group(place, &room, sinks.get().cast()) };
        });
        if let Some(mask) = self.diff_mask {
            execution.run(mask.parts(), width, Length::Long, &|number| {
                let slot = slots.take();
                let room = self.room(start.get(), slot.number());
                // SAFETY: as above, for parts of the mask.
                unsafe { job.mask_part(&mask, number, &room) };
            });
        }
        let to = execution.arguments.get(sys::NORM_ARG_DIFF_SINKS).cast::<f32>();
        if !to.is_null() {
            // SAFETY: the parts of all heads were written.
            unsafe { add_sinks(sinks.get().cast(), (shape.batch, shape.heads), to) };
        }
        threads.max(1)
    }
}

/// Adds the parts of the sequences, in order, to get the gradients of sinks.
///
/// # Safety
/// There is a part for each sequence and head, and room for the gradients.
pub(super) unsafe fn add_sinks(parts: *const f64, (batch, heads): (usize, usize), to: *mut f32) {
    for head in 0..heads {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let part = |sequence| *parts.add(sequence * heads + head);
            let sum = (0..batch).fold(0.0, |sum, sequence| sum + part(sequence));
            to.add(head).write_unaligned(-sum as f32);
        }
    }
}

/// An execution.
pub(super) struct Job<'a> {
    pub(super) backward: &'a Backward,
    pub(super) bound: Bound<'a>,
}

/// A block of queries of a head.
pub(super) struct Queries {
    sequence: usize,
    head: usize,
    pub(super) queries: Range<usize>,
    /// The index of the first one within the group.
    first: usize,
}

/// A block of keys.
pub(super) struct Keys {
    pub(super) sequence: usize,
    pub(super) group: usize,
    pub(super) first: usize,
    /// The keys within the length.
    pub(super) there: Range<usize>,
}

impl Job<'_> {
    /// Computes the gradients of a group: of its keys and values, and of the queries of its heads.
    ///
    /// # Safety
    /// The arguments were checked, and the group and the room belong to this thread.
    unsafe fn group(&self, (sequence, group): (usize, usize), room: &Room, sinks: *mut f64) {
        let shape = &self.backward.inputs.problem.shape;
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.clear(room);
            let sums = room.diff_queries;
            sums.start.write_bytes(0, self.backward.sizes().queries * sums.step);
            let (queries, keys) = self.bound.sequences.lengths(sequence);
            for head in self.heads(group) {
                let mut of_sink = 0.0;
                for block in self.blocks(sequence, head, queries) {
                    of_sink = self.deltas(&block, room, of_sink);
                }
                sinks.add(sequence * shape.heads + head).write(of_sink);
            }
            let stored = self.bound.sequences.stored_keys(keys);
            for first in (0..stored).step_by(BLOCK) {
                let end = stored.min(first + BLOCK);
                let there = first..end.min(keys).max(first);
                self.keys(&Keys { sequence, group, first, there }, end - first, queries, room);
            }
            for head in self.heads(group) {
                self.store_queries((sequence, head), queries, room);
            }
        }
    }

    fn heads(&self, group: usize) -> Range<usize> {
        let heads = self.backward.inputs.problem.shape.heads_of_group();
        group * heads..(group + 1) * heads
    }

    /// The blocks of a head's queries that are within the length.
    pub(super) fn blocks(
        &self,
        sequence: usize,
        head: usize,
        length: usize,
    ) -> impl Iterator<Item = Queries> {
        let shape = self.backward.inputs.problem.shape;
        (0..length).step_by(QUERIES).map(move |start| Queries {
            sequence,
            head,
            queries: start..length.min(start + QUERIES),
            first: head % shape.heads_of_group() * shape.queries + start,
        })
    }

    /// Zeroes the padding between rows.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    pub(super) unsafe fn clear(&self, room: &Room) {
        for matrix in [room.queries, room.diff_dst, room.dst] {
            // SAFETY: guaranteed by the caller.
            unsafe { matrix.start.write_bytes(0, QUERIES * matrix.step) };
        }
    }

    /// Loads rows of a block of queries.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    pub(super) unsafe fn load(&self, heads: &Heads, block: &Queries, to: Matrix) {
        let place = (block.sequence, block.head);
        let grid = heads.grid(self.bound.arguments, place, block.queries.clone());
        // SAFETY: guaranteed by the caller.
        unsafe { self.backward.inputs.grids.load(&grid, to.start, to.step) };
    }

    /// Stores the gradients of a head's queries; `length` of them are within the sequence.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn store_queries(&self, place: (usize, usize), length: usize, room: &Room) {
        let backward = self.backward;
        let Inputs { problem, grids, .. } = &backward.inputs;
        let shape = &problem.shape;
        let matrix = room.diff_queries.from(place.1 % shape.heads_of_group() * shape.queries);
        let stored = self.bound.sequences.stored_queries(length);
        let grid = backward.diff_queries.grid(self.bound.arguments, place, 0..stored);
        // SAFETY: guaranteed by the caller.
        unsafe {
            (backward.scale)(&Scaled { matrix, rows: length, factor: problem.scoring.scale });
            grids.store(&grid, matrix.start, matrix.step);
        }
    }

    /// Computes the deltas of a block's rows. Returns the running sum for the sink.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    pub(super) unsafe fn deltas(&self, block: &Queries, room: &Room, sum: f64) -> f64 {
        let backward = self.backward;
        let shape = &backward.inputs.problem.shape;
        let count = block.queries.len();
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.load(&backward.diff_dst, block, room.diff_dst);
            self.load(&backward.dst, block, room.dst);
            let workspace = self.bound.arguments.get(sys::NORM_ARG_WORKSPACE).cast::<f32>();
            let row = self.bound.sequences.row(block.sequence, block.head, block.queries.start);
            let logarithms = room.logarithms.add(block.first);
            for at in 0..count {
                logarithms.add(at).write(workspace.add(row + at).read_unaligned());
            }
            let sink = self.bound.of_head(sys::NORM_ARG_SINKS, block.head);
            (backward.deltas)(&Deltas {
                dst: room.dst,
                diff_dst: room.diff_dst,
                rows: count,
                cols: shape.value_size,
                logarithms,
                sink: sink.unwrap_or(f32::NEG_INFINITY),
                deltas: room.deltas.add(block.first),
                of_sink: room.of_sink,
            });
            let parts = std::slice::from_raw_parts(room.of_sink, count);
            if sink.is_none() {
                0.0
            } else {
                parts.iter().fold(sum, |sum, part| sum + f64::from(*part))
            }
        }
    }

    /// Adds the gradients of a block of keys over all queries of the group. Stores those of `all` keys, with zeros
    /// beyond the length.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn keys(&self, keys: &Keys, all: usize, queries: usize, room: &Room) {
        let backward = self.backward;
        let Inputs { problem, grids, .. } = &backward.inputs;
        let (arguments, place) = (self.bound.arguments, (keys.sequence, keys.group));
        let (mut panels, mut are_packed) = (None, None);
        // SAFETY: guaranteed by the caller.
        unsafe {
            for matrix in [room.diff_keys, room.diff_values] {
                matrix.start.write_bytes(0, all * matrix.step);
            }
            for head in self.heads(keys.group) {
                for block in self.blocks(keys.sequence, head, queries) {
                    let rows = self.rows(&block, room);
                    let Some(within) = Blocks::of(rows).at(keys.first) else { continue };
                    self.load(&backward.inputs.queries, &block, room.queries);
                    self.load(&backward.diff_dst, &block, room.diff_dst);
                    let of_keys = (keys.first, within.end - keys.first);
                    if let Some(tiles) = &backward.tiles {
                        let pack = || self.pack_keys(tiles, keys, room);
                        if *are_packed.get_or_insert_with(pack)
                            && self.pairs_on_tiles(tiles, &block, (rows, of_keys), room)
                        {
                            continue;
                        }
                    }
                    let panels = panels.get_or_insert_with(|| self.panels(keys, room));
                    (backward.differentiate)(&self.pairs(&block, rows, of_keys, panels, room));
                }
            }
            let factor = problem.scoring.scale;
            (backward.scale)(&Scaled { matrix: room.diff_keys, rows: all, factor });
            for (heads, from) in
                [(&backward.diff_keys, room.diff_keys), (&backward.diff_values, room.diff_values)]
            {
                let grid = heads.grid(arguments, place, keys.first..keys.first + all);
                grids.store(&grid, from.start, from.step);
            }
        }
    }

    /// # Safety
    /// As [`group`](Self::group).
    pub(super) unsafe fn rows<'r>(&self, block: &Queries, room: &'r Room) -> &'r [ScoreRow] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            for (at, query) in block.queries.clone().enumerate() {
                room.rows.add(at).write(self.bound.score_row(block.sequence, block.head, query));
            }
            std::slice::from_raw_parts(room.rows, block.queries.len())
        }
    }

    /// The panels of a block of keys.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    pub(super) unsafe fn panels(&self, keys: &Keys, room: &Room) -> KeyPanels {
        let Inputs { keys: key_heads, values: value_heads, .. } = &self.backward.inputs;
        let Sizes { key: key_step, value: value_step, .. } = self.backward.sizes();
        let (place, all) = ((keys.sequence, keys.group), || keys.there.clone());
        let of_keys = |panels| Target { panels, stage: room.key_stage, stage_step: key_step };
        let of_values =
            Target { panels: room.value_panels, stage: room.value_stage, stage_step: value_step };
        let key_rows = (key_heads, Some(value_heads));
        let value_rows = (value_heads, Some(key_heads));
        // SAFETY: guaranteed by the caller.
        unsafe {
            KeyPanels {
                keys: self.bound.row_panels(key_rows, place, all(), &of_keys(room.key_panels)),
                values: self.bound.row_panels(value_rows, place, all(), &of_values),
                columns: {
                    let to = of_keys(room.key_columns);
                    self.bound.column_panels(key_heads, place, all(), &to)
                },
            }
        }
    }

    /// A block of queries, and `count` keys from `first`.
    pub(super) fn pairs<'p>(
        &self,
        block: &Queries,
        rows: &'p [ScoreRow],
        (first, count): (usize, usize),
        panels: &KeyPanels,
        room: &Room,
    ) -> Pairs<'p> {
        let problem = &self.backward.inputs.problem;
        Pairs {
            scoring: problem.scoring,
            rows,
            logarithms: room.logarithms.wrapping_add(block.first),
            deltas: room.deltas.wrapping_add(block.first),
            queries: room.queries,
            diff_dst: room.diff_dst,
            key_size: problem.shape.key_size,
            value_size: problem.shape.value_size,
            scores_alone: false,
            first,
            count,
            keys: panels.keys,
            values: panels.values,
            key_columns: panels.columns,
            weights: room.weights,
            diff_scores: room.diff_scores,
            diff_queries: room.diff_queries.from(block.first),
            diff_keys: room.diff_keys,
            diff_values: room.diff_values,
        }
    }
}

/// A block of keys and values as right operands.
pub(super) struct KeyPanels {
    keys: Right,
    values: Right,
    columns: Right,
}

impl KeyPanels {
    /// Of pairs on tiles.
    pub(super) const NONE: Self =
        Self { keys: Right::NONE, values: Right::NONE, columns: Right::NONE };
}
