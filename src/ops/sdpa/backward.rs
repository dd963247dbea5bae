//! Backward: the groups of keys on threads, each with the queries of its heads, in their order.

use super::BLOCK;
use super::blocks::Blocks;
use super::gradient::{self, DeltaEntry, Deltas, Matrix, Pairs, QUERIES, STEP, ScaleEntry, Scaled};
use super::inputs::{Bound, Inputs, Shared, floats, rooms};
use super::order::GROUP;
use super::panels::Later;
use super::problem::Sdpa;
use super::rows::Heads;
use super::score::ScoreRow;
use crate::error::Result;
use crate::primitive::Execution;
use crate::rows::Slots;
use crate::simd::{LANES, Level};
use crate::threads::Length;
use norm_sys as sys;
use std::ops::Range;

/// Backward at a level.
pub(super) struct Backward {
    inputs: Inputs,
    dst: Heads,
    diff_dst: Heads,
    diff_queries: Heads,
    diff_keys: Heads,
    diff_values: Heads,
    rooms: usize,
    differentiate: gradient::Entry,
    deltas: DeltaEntry,
    scale: ScaleEntry,
}

/// The buffers of a thread.
struct Room {
    queries: Matrix,
    diff_dst: Matrix,
    dst: Matrix,
    diff_queries: Matrix,
    key_stage: Matrix,
    value_stage: Matrix,
    key_panels: *mut f32,
    value_panels: *mut f32,
    weights: Matrix,
    diff_scores: Matrix,
    rows: *mut ScoreRow,
    logarithms: *mut f32,
    deltas: *mut f32,
    of_sink: *mut f32,
    /// The sums of all keys of the group.
    diff_keys: Matrix,
    diff_values: Matrix,
}

/// The number of buffers of a room.
const BUFFERS: usize = 16;

impl Backward {
    pub(super) fn new(problem: &Sdpa, level: Level) -> Result<Self> {
        let shape = &problem.shape;
        Ok(Self {
            inputs: Inputs::new(problem, level)?,
            dst: Heads::new(problem, sys::NORM_ARG_DST, 2)?,
            diff_dst: Heads::new(problem, sys::NORM_ARG_DIFF_DST, 2)?,
            diff_queries: Heads::new(problem, sys::NORM_ARG_DIFF_QUERIES, 2)?,
            diff_keys: Heads::new(problem, sys::NORM_ARG_DIFF_KEYS, 3)?,
            diff_values: Heads::new(problem, sys::NORM_ARG_DIFF_VALUES, 2)?,
            rooms: rooms().min(shape.batch * shape.groups).max(1),
            differentiate: gradient::entry(level, problem.is_bf16()),
            deltas: gradient::delta_entry(level),
            scale: gradient::scale_entry(level),
        })
    }

    /// The distances of rows of keys and of values in buffers.
    fn steps(&self) -> (usize, usize) {
        let shape = &self.inputs.problem.shape;
        (shape.key_size.next_multiple_of(LANES), shape.value_size.next_multiple_of(LANES))
    }

    /// Floats of the buffers of a room.
    fn sizes(&self) -> [usize; BUFFERS] {
        let (key, value) = self.steps();
        let keys = self.inputs.problem.shape.keys;
        [
            QUERIES * key,
            QUERIES * value,
            QUERIES * value,
            QUERIES * key,
            BLOCK * key,
            BLOCK * value,
            BLOCK * key,
            BLOCK * value,
            QUERIES * STEP,
            QUERIES * STEP,
            floats::<ScoreRow>(QUERIES),
            QUERIES,
            QUERIES,
            QUERIES,
            keys.saturating_mul(key),
            keys.saturating_mul(value),
        ]
    }

    /// Bytes: the part of each head in the gradients of sinks, as f64, and the rooms.
    pub(super) fn scratchpad_size(&self) -> usize {
        let room = self.sizes().iter().fold(0usize, |sum, size| sum.saturating_add(*size));
        let rooms = self.rooms.saturating_mul(room).saturating_mul(size_of::<f32>());
        rooms.saturating_add(self.sinks() * size_of::<f32>())
    }

    /// Floats of the parts of sinks.
    fn sinks(&self) -> usize {
        let shape = &self.inputs.problem.shape;
        floats::<f64>(shape.batch * shape.heads)
    }

    fn room(&self, start: *mut f32, number: usize) -> Room {
        let (sizes, (key, value)) = (self.sizes(), self.steps());
        let mut at = start.wrapping_add(number * sizes.iter().sum::<usize>());
        let starts = sizes.map(|size| {
            let found = at;
            at = at.wrapping_add(size);
            found
        });
        let matrix = |place: usize, step| Matrix { start: starts[place], step };
        Room {
            queries: matrix(0, key),
            diff_dst: matrix(1, value),
            dst: matrix(2, value),
            diff_queries: matrix(3, key),
            key_stage: matrix(4, key),
            value_stage: matrix(5, value),
            key_panels: starts[6],
            value_panels: starts[7],
            weights: matrix(8, STEP),
            diff_scores: matrix(9, STEP),
            rows: starts[10].cast(),
            logarithms: starts[11],
            deltas: starts[12],
            of_sink: starts[13],
            diff_keys: matrix(14, key),
            diff_values: matrix(15, value),
        }
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
        let to = execution.arguments.get(sys::NORM_ARG_DIFF_SINKS).cast::<f32>();
        if !to.is_null() {
            // SAFETY: the parts of all heads were written.
            unsafe { add_sinks(sinks.get().cast(), (shape.batch, shape.heads), to) };
        }
        threads.max(1)
    }
}

/// The gradients of sinks, from the parts of sequences in their order.
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
struct Job<'a> {
    backward: &'a Backward,
    bound: Bound<'a>,
}

/// A block of queries of a head.
struct Queries {
    sequence: usize,
    head: usize,
    group: usize,
    queries: Range<usize>,
}

impl Job<'_> {
    /// The gradients of a group: of its keys and values, and of the queries of its heads.
    ///
    /// # Safety
    /// The arguments were checked, and the group and the room are this thread's.
    unsafe fn group(&self, (sequence, group): (usize, usize), room: &Room, sinks: *mut f64) {
        let backward = self.backward;
        let shape = &backward.inputs.problem.shape;
        let (key_step, value_step) = backward.steps();
        let heads = shape.heads_of_group();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (queries, _) = self.bound.sequences.lengths(sequence);
            self.clear(room);
            for head in group * heads..(group + 1) * heads {
                let mut of_sink = 0.0;
                for first in (0..shape.queries).step_by(QUERIES) {
                    let end = shape.queries.min(first + QUERIES);
                    let there = first..end.min(queries).max(first);
                    let block = Queries { sequence, head, group, queries: there };
                    of_sink = self.queries(&block, end - first, room, of_sink);
                }
                sinks.add(sequence * shape.heads + head).write(of_sink);
            }
            let scaled = Scaled {
                matrix: room.diff_keys,
                rows: shape.keys,
                factor: backward.inputs.problem.scoring.scale,
            };
            (backward.scale)(&scaled);
            let (arguments, place) = (self.bound.arguments, (sequence, group));
            let grids = &backward.inputs.grids;
            let keys = backward.diff_keys.grid(arguments, place, 0..shape.keys);
            grids.store(&keys, room.diff_keys.start, key_step);
            let values = backward.diff_values.grid(arguments, place, 0..shape.keys);
            grids.store(&values, room.diff_values.start, value_step);
        }
    }

    /// Zeros for sums, and for the elements between rows.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn clear(&self, room: &Room) {
        let keys = self.backward.inputs.problem.shape.keys;
        let matrices = [
            (room.queries, QUERIES),
            (room.diff_dst, QUERIES),
            (room.dst, QUERIES),
            (room.key_stage, BLOCK),
            (room.value_stage, BLOCK),
            (room.diff_keys, keys),
            (room.diff_values, keys),
        ];
        for (matrix, rows) in matrices {
            // SAFETY: guaranteed by the caller.
            unsafe { matrix.start.write_bytes(0, rows * matrix.step) };
        }
    }

    /// Computes the gradients of a block of queries and stores `all` rows, zeros beyond the length. Returns the running sum
    /// for the sink.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn queries(&self, block: &Queries, all: usize, room: &Room, sum: f64) -> f64 {
        let backward = self.backward;
        let Inputs { problem, grids, queries, .. } = &backward.inputs;
        let (place, arguments) = ((block.sequence, block.head), self.bound.arguments);
        let count = block.queries.len();
        // SAFETY: guaranteed by the caller.
        unsafe {
            for (at, query) in block.queries.clone().enumerate() {
                room.rows.add(at).write(self.bound.score_row(block.sequence, block.head, query));
            }
            let loads = [
                (queries, room.queries),
                (&backward.diff_dst, room.diff_dst),
                (&backward.dst, room.dst),
            ];
            for (heads, to) in loads {
                let grid = heads.grid(arguments, place, block.queries.clone());
                grids.load(&grid, to.start, to.step);
            }
            room.diff_queries.start.write_bytes(0, QUERIES * room.diff_queries.step);
            let sum = self.deltas(block, room, sum);
            let rows = std::slice::from_raw_parts(room.rows, count);
            for (block_first, keys) in Blocks::of(rows) {
                self.pairs(block, room, rows, (block_first, keys));
            }
            let factor = problem.scoring.scale;
            (backward.scale)(&Scaled { matrix: room.diff_queries, rows: count, factor });
            let start = block.queries.start;
            let grid = backward.diff_queries.grid(arguments, place, start..start + all);
            grids.store(&grid, room.diff_queries.start, room.diff_queries.step);
            sum
        }
    }

    /// The sums of the rows of a block, and the sum for the sink.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn deltas(&self, block: &Queries, room: &Room, sum: f64) -> f64 {
        let shape = &self.backward.inputs.problem.shape;
        let count = block.queries.len();
        let row = (block.sequence * shape.heads + block.head) * shape.queries + block.queries.start;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let workspace = self.bound.arguments.get(sys::NORM_ARG_WORKSPACE).cast::<f32>();
            for at in 0..count {
                room.logarithms.add(at).write(workspace.add(row + at).read_unaligned());
            }
            let sink = self.bound.of_head(sys::NORM_ARG_SINKS, block.head);
            (self.backward.deltas)(&Deltas {
                dst: room.dst,
                diff_dst: room.diff_dst,
                rows: count,
                cols: shape.value_size,
                logarithms: room.logarithms,
                sink: sink.unwrap_or(f32::NEG_INFINITY),
                deltas: room.deltas,
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

    /// Adds the gradients of a block of queries and the block of keys that begins at `first`. The queries see keys in
    /// `within` alone.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn pairs(
        &self,
        block: &Queries,
        room: &Room,
        rows: &[ScoreRow],
        (first, within): (usize, Range<usize>),
    ) {
        let backward = self.backward;
        let Inputs { problem, keys: key_heads, values: value_heads, .. } = &backward.inputs;
        let (size, value_size) = (problem.shape.key_size, problem.shape.value_size);
        let start = (within.start - first) / GROUP * GROUP;
        let keys = first + start..within.end;
        let place = (block.sequence, block.group);
        // SAFETY: guaranteed by the caller.
        unsafe {
            // Rows that are read as whole vectors are staged unless they have whole vectors.
            let stage = |matrix: Matrix| (matrix.start, matrix.step);
            let key_rows = if size == room.key_stage.step {
                self.bound.rows(key_heads, place, keys.clone(), stage(room.key_stage))
            } else {
                self.bound.staged(key_heads, place, keys.clone(), stage(room.key_stage))
            };
            let value_rows =
                self.bound.rows(value_heads, place, keys.clone(), stage(room.value_stage));
            let (counts, later) = ((keys.len(), size), [Later::NONE; 2]);
            let key_panels = self.bound.panels_of_rows(key_rows, counts, room.key_panels, later);
            let counts = (keys.len(), value_size);
            let value_panels =
                self.bound.panels_of_rows(value_rows, counts, room.value_panels, later);
            let sums = |matrix: Matrix| Matrix {
                start: matrix.start.wrapping_add(first * matrix.step),
                ..matrix
            };
            let key_rows = Matrix {
                start: key_rows.0.wrapping_sub(start * key_rows.1).cast_mut(),
                step: key_rows.1,
            };
            (backward.differentiate)(&Pairs {
                scoring: problem.scoring,
                rows,
                logarithms: room.logarithms,
                deltas: room.deltas,
                queries: room.queries,
                diff_dst: room.diff_dst,
                key_size: size,
                value_size,
                first,
                count: within.end - first,
                keys: key_panels.of_block(start),
                values: value_panels.of_block(start),
                key_rows,
                weights: room.weights,
                diff_scores: room.diff_scores,
                diff_queries: room.diff_queries,
                diff_keys: sums(room.diff_keys),
                diff_values: sums(room.diff_values),
            });
        }
    }
}
