//! Forward: parts of the queries on threads, each against the blocks of keys that it sees.

use super::inputs::{Bound, Inputs, Shared, floats, rooms};
use super::kernel::{Block, Entry, FinishEntry, Finished, WEIGHTS};
use super::order::{GROUP, Left, Right};
use super::panels::Panels;
use super::problem::Sdpa;
use super::rows::{Heads, Part, Parts};
use super::score::{ScoreRow, State};
use super::{BLOCK, kernel};
use crate::error::Result;
use crate::primitive::Execution;
use crate::rows::Slots;
use crate::simd::{LANES, Level};
use crate::threads::Length;
use norm_sys as sys;
use std::ops::Range;

/// Rows of a part: enough for the rearrangement of keys to cost little, and few enough for second-level caches.
const ROWS: usize = 96;
/// The most rows for which values are not rearranged.
const FEW_ROWS: usize = 16;
/// Forward at a level.
pub(super) struct Forward {
    inputs: Inputs,
    dst: Heads,
    rooms: usize,
    attend: Entry,
    finish: FinishEntry,
}

/// The buffers of a thread, in floats.
#[derive(Clone, Copy)]
struct Room {
    queries: *mut f32,
    sums: *mut f32,
    states: *mut State,
    ends: *mut f32,
    rows: *mut ScoreRow,
    stage: *mut f32,
    keys: *mut f32,
    values: *mut f32,
    weights: *mut f32,
}

impl Forward {
    pub(super) fn new(problem: &Sdpa, level: Level) -> Result<Self> {
        let rooms = rooms();
        Ok(Self {
            inputs: Inputs::new(problem, level)?,
            dst: Heads::new(problem, sys::NORM_ARG_DST, 2)?,
            rooms,
            attend: kernel::entry(level, problem.is_bf16()),
            finish: kernel::finish_entry(level),
        })
    }

    /// The parts for a number of threads: a few for each.
    fn parts(&self, threads: usize) -> Parts {
        let least = if threads == 1 { 1 } else { 3 * threads };
        Parts::new(self.inputs.problem.shape, ROWS, least)
    }

    fn most_rows(&self) -> usize {
        self.parts(1).most_rows()
    }

    fn value_step(&self) -> usize {
        self.inputs.problem.shape.value_size.next_multiple_of(LANES)
    }

    /// Floats of the parts of a room.
    fn sizes(&self) -> [usize; 9] {
        let (rows, size) = (self.most_rows(), self.inputs.problem.shape.key_size);
        let step = self.value_step();
        [
            floats::<f32>(rows * size),
            floats::<f32>(rows * step),
            floats::<State>(rows),
            2 * floats::<f32>(rows),
            floats::<ScoreRow>(rows),
            floats::<f32>(BLOCK * size.max(step)),
            floats::<f32>(BLOCK * size),
            floats::<f32>(BLOCK * step),
            WEIGHTS,
        ]
    }

    fn has_entropy(&self) -> bool {
        self.inputs.problem.has(sys::norm_sdpa_entropy)
    }

    /// Floats of the entropies of all rows.
    fn entropies(&self) -> usize {
        let shape = &self.inputs.problem.shape;
        let rows = shape.batch * shape.heads * shape.queries;
        if self.has_entropy() { floats::<f32>(rows) } else { 0 }
    }

    pub(super) fn scratchpad_size(&self) -> usize {
        let room = self.sizes().iter().sum::<usize>();
        let rooms = self.rooms.min(self.parts(self.rooms).count());
        rooms.saturating_mul(room).saturating_add(self.entropies()).saturating_mul(size_of::<f32>())
    }

    fn room(&self, start: *mut f32, number: usize) -> Room {
        let sizes = self.sizes();
        let mut at = start.wrapping_add(number * sizes.iter().sum::<usize>());
        let mut next = |place: usize| {
            let found = at;
            at = at.wrapping_add(sizes[place]);
            found
        };
        Room {
            queries: next(0),
            sums: next(1),
            states: next(2).cast(),
            ends: next(3),
            rows: next(4).cast(),
            stage: next(5),
            keys: next(6),
            values: next(7),
            weights: next(8),
        }
    }

    /// Runs the problem. Returns the number of threads that took part.
    pub(super) fn execute(&self, execution: &Execution<'_>) -> usize {
        if self.inputs.problem.is_empty() {
            return 1;
        }
        let width = self.inputs.width(execution, self.rooms);
        let parts = self.parts(width);
        let rooms = width.min(self.parts(self.rooms).count()).max(1);
        let scratchpad = Shared(execution.scratchpad.cast::<f32>());
        let entropies = Shared(scratchpad.0);
        let start = Shared(scratchpad.0.wrapping_add(self.entropies()));
        let slots = Slots::new(rooms);
        let job = Job { forward: self, bound: Bound::new(&self.inputs, execution.arguments) };
        let threads = execution.run(parts.count(), rooms, Length::Long, &|number| {
            let slot = slots.take();
            let room = self.room(start.get(), slot.number());
            // SAFETY: the execution's buffers were checked, parts are given out once, a room has one thread at a time,
            // and the machine has the level.
            unsafe { job.part(&parts.part(number), &room, entropies.get()) };
        });
        if self.has_entropy() {
            // SAFETY: as above; the entropies of all rows were written.
            unsafe { job.mean_entropies(entropies.get()) };
        }
        threads.max(1)
    }
}

/// An execution.
struct Job<'a> {
    forward: &'a Forward,
    bound: Bound<'a>,
}

impl Job<'_> {
    /// # Safety
    /// The arguments were checked, and the part and the room are this thread's.
    unsafe fn part(&self, part: &Part, room: &Room, entropies: *mut f32) {
        let Self { forward, .. } = self;
        let problem = &forward.inputs.problem;
        let steps = (problem.shape.key_size, forward.value_step());
        // SAFETY: guaranteed by the caller.
        unsafe {
            let lengths = self.bound.sequences.lengths(part.sequence);
            let there = part.queries.start..part.queries.end.min(lengths.0).max(part.queries.start);
            let seen = Part { queries: there.clone(), ..part.clone() };
            let count = seen.rows();
            for row in 0..count {
                let (query, head) = seen.row(row);
                room.rows.add(row).write(self.bound.score_row(part.sequence, head, query));
                let sink = self.bound.of_head(sys::NORM_ARG_SINKS, head);
                room.states.add(row).write(sink.map_or(State::EMPTY, State::of_sink));
            }
            self.load_queries(&seen, room.queries, steps.0);
            room.sums.write_bytes(0, part.rows() * steps.1);
            let rows = std::slice::from_raw_parts(room.rows, count);
            let keys = range_of(rows);
            for first in (keys.start / BLOCK * BLOCK..keys.end).step_by(BLOCK) {
                let within = keys.start.max(first)..keys.end.min(first + BLOCK);
                self.block(part, room, rows, (first, within));
            }
            // Queries beyond the length give zeros.
            for row in count..part.rows() {
                room.states.add(row).write(State::EMPTY);
            }
            self.finish(part, room, entropies);
        }
    }

    /// # Safety
    /// As [`part`](Self::part).
    unsafe fn load_queries(&self, part: &Part, to: *mut f32, step: usize) {
        let heads = part.heads.len();
        for (at, head) in part.heads.clone().enumerate() {
            let place = (part.sequence, head);
            let grid =
                self.forward.inputs.queries.grid(self.bound.arguments, place, part.queries.clone());
            // SAFETY: guaranteed by the caller.
            unsafe { self.forward.inputs.grids.load(&grid, to.add(at * step), heads * step) };
        }
    }

    /// Adds the block of keys that begins at `first`. The rows see keys in `within` alone.
    ///
    /// # Safety
    /// As [`part`](Self::part).
    unsafe fn block(
        &self,
        part: &Part,
        room: &Room,
        rows: &[ScoreRow],
        (first, within): (usize, Range<usize>),
    ) {
        let Forward { inputs: Inputs { problem, keys: key_heads, .. }, attend, .. } = self.forward;
        let (size, step) = (problem.shape.key_size, self.forward.value_step());
        // Whole groups of keys.
        let start = first + (within.start - first) / GROUP * GROUP;
        let keys = start..within.end;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let place = (part.sequence, part.group);
            let key_rows = self.bound.rows(key_heads, place, keys.clone(), (room.stage, size));
            let panels = self.bound.panels_of_rows(key_rows, (keys.len(), size), room.keys);
            let values = self.values(part, room, keys.clone(), rows.len());
            attend(&Block {
                scoring: problem.scoring,
                moments: self.forward.has_entropy(),
                rows,
                states: room.states,
                queries: Left { start: room.queries, row: size, term: 1 },
                key_size: size,
                keys: panels.of_block(start - first),
                first,
                count: within.end - first,
                values: Right {
                    start: values.start.wrapping_sub((start - first) * values.term),
                    ..values
                },
                value_panels: step / LANES,
                sums: room.sums,
                sum_step: step,
                weights: room.weights,
            });
        }
    }

    /// Panels of the values of a range.
    ///
    /// # Safety
    /// As [`part`](Self::part).
    unsafe fn values(&self, part: &Part, room: &Room, keys: Range<usize>, rows: usize) -> Right {
        let inputs = &self.forward.inputs;
        let (cols, stage_step) = (inputs.problem.shape.value_size, self.forward.value_step());
        let count = keys.len();
        let (place, stage) = ((part.sequence, part.group), (room.stage, stage_step));
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (rows_start, step) = self.bound.rows(&inputs.values, place, keys, stage);
            if rows <= FEW_ROWS && cols == stage_step {
                return Right { start: rows_start, term: step, panel: LANES };
            }
            let (panels, panel) = (room.values, count * LANES);
            let rows = rows_start;
            (inputs.panels)(&Panels { rows, step, count, cols, of_rows: false, panels, panel });
            Right { start: panels, term: LANES, panel }
        }
    }

    /// # Safety
    /// As [`part`](Self::part).
    unsafe fn finish(&self, part: &Part, room: &Room, entropies: *mut f32) {
        let forward = self.forward;
        let (step, heads, count) = (forward.value_step(), part.heads.len(), part.rows());
        let shape = &forward.inputs.problem.shape;
        let (logarithms, row_entropies) =
            (room.ends, room.ends.wrapping_add(floats::<f32>(forward.most_rows())));
        let workspace = self.bound.arguments.get(sys::NORM_ARG_WORKSPACE).cast::<f32>();
        // SAFETY: guaranteed by the caller.
        unsafe {
            (forward.finish)(&Finished {
                states: room.states,
                count,
                sums: room.sums,
                step,
                logarithms,
                entropies: row_entropies,
            });
            for (at, head) in part.heads.clone().enumerate() {
                let place = (part.sequence, head);
                let grid = forward.dst.grid(self.bound.arguments, place, part.queries.clone());
                forward.inputs.grids.store(&grid, room.sums.add(at * step), heads * step);
            }
            for row in 0..count {
                let (query, head) = part.row(row);
                let at = (part.sequence * shape.heads + head) * shape.queries + query;
                if !workspace.is_null() {
                    workspace.add(at).write_unaligned(*logarithms.add(row));
                }
                if forward.has_entropy() {
                    entropies.add(at).write(*row_entropies.add(row));
                }
            }
        }
    }

    /// The means over the queries of each head.
    ///
    /// # Safety
    /// The arguments were checked, and there is an entropy for each row.
    unsafe fn mean_entropies(&self, entropies: *const f32) {
        let shape = &self.forward.inputs.problem.shape;
        let to = self.bound.arguments.get(sys::NORM_ARG_ENTROPY).cast::<f32>();
        for (at, sequence) in (0..shape.batch * shape.heads).map(|at| (at, at / shape.heads)) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let (queries, _) = self.bound.sequences.lengths(sequence);
                let rows = std::slice::from_raw_parts(entropies.add(at * shape.queries), queries);
                to.add(at).write_unaligned(mean(rows));
            }
        }
    }
}

/// The mean of entropies, in f64; 0 of none.
pub(super) fn mean(entropies: &[f32]) -> f32 {
    let sum = entropies.iter().fold(0.0, |sum, entropy| sum + f64::from(*entropy));
    if entropies.is_empty() { 0.0 } else { (sum / entropies.len() as f64) as f32 }
}

/// The keys that any row sees.
fn range_of(rows: &[ScoreRow]) -> Range<usize> {
    let seen = || rows.iter().filter(|row| !row.keys.is_empty());
    let first = seen().map(|row| row.keys.start).min().unwrap_or(0);
    first..seen().map(|row| row.keys.end).max().unwrap_or(0)
}
