//! Forward. Threads share the queries in parts. Each part attends to the blocks of keys that it sees.

use super::blocks::{BlockKeys, Blocks, whole_groups};
use super::inputs::{Bound, Inputs, Shared, floats, starts};
use super::kernel::{Block, DotEntry, Entry, FinishEntry, Finished, JoinEntry, WEIGHTS};
use super::keys::{Runs, STAGED, Target};
use super::order::{Left, PAD, Right};
use super::problem::Sdpa;
use super::rows::{Heads, Part, Parts};
use super::scales::{ScalePlaces, Scales};
use super::score::{ScoreRow, State};
use super::tiles::Tiles;
use super::{BLOCK, kernel, order, tile_kernel};
use crate::error::Result;
use crate::primitive::Execution;
use crate::rows::{Slots, rooms};
use crate::simd::{LANES, Level};
use crate::threads::Length;
use norm_sys as sys;
use std::ops::Range;

/// Rows of a part: enough to make rearranging the keys cheap, and few enough for second-level caches.
const ROWS: usize = 768;
/// The most rows for which values are used in place instead of as panels.
const FEW_ROWS: usize = 16;

/// Forward at a level.
pub(super) struct Forward {
    pub(super) inputs: Inputs,
    dst: Heads,
    pub(super) rooms: usize,
    pub(super) attend: Entry,
    pub(super) multiply: DotEntry,
    pub(super) join: JoinEntry,
    finish: FinishEntry,
    /// How blocks are computed on tiles; `None` without tiles.
    pub(super) tiles: Option<Tiles>,
}

/// The buffers of a thread, in floats.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub(super) queries: *mut f32,
    pub(super) sums: *mut f32,
    pub(super) states: *mut State,
    ends: *mut f32,
    rows: *mut ScoreRow,
    pub(super) key_stage: *mut f32,
    pub(super) value_stage: *mut f32,
    keys: *mut f32,
    values: *mut f32,
    pub(super) weights: *mut f32,
    scales: *mut f32,
    pub(super) tiles: *mut f32,
}

impl Room {
    /// The room, with sums and states elsewhere.
    pub(super) fn with_results(&self, sums: *mut f32, states: *mut State) -> Self {
        Self { sums, states, ..*self }
    }
}

impl Forward {
    pub(super) fn new(problem: &Sdpa, level: Level) -> Result<Self> {
        let (rooms, vectors) = (rooms(), level.of_vectors());
        let inputs = Inputs::new(problem, vectors)?;
        let on_tiles = level != vectors;
        Ok(Self {
            tiles: if on_tiles {
                Some(Tiles::new(problem, &inputs, tile_kernel::entries(level))?)
            } else {
                None
            },
            inputs,
            dst: Heads::new(problem, sys::NORM_ARG_DST, 2)?,
            rooms,
            attend: kernel::entry(vectors, problem.is_bf16()),
            multiply: kernel::dot_entry(vectors, problem.is_bf16()),
            join: kernel::join_entry(vectors),
            finish: kernel::finish_entry(vectors),
        })
    }

    /// A few parts per thread.
    pub(super) fn parts(&self, threads: usize) -> Parts {
        let least = if threads == 1 { 1 } else { 3 * threads };
        Parts::new(self.inputs.problem.shape, ROWS, least)
    }

    pub(super) fn most_rows(&self) -> usize {
        self.parts(1).most_rows()
    }

    pub(super) fn value_step(&self) -> usize {
        self.inputs.problem.shape.value_size.next_multiple_of(LANES)
    }

    /// The row stride of queries.
    pub(super) fn query_step(&self) -> usize {
        self.inputs.problem.shape.key_size + PAD
    }

    /// The sizes of a room's buffers, in floats.
    fn sizes(&self) -> [usize; 12] {
        let (rows, size) = (self.most_rows(), self.inputs.problem.shape.key_size);
        let step = self.value_step();
        [
            floats::<f32>(rows * self.query_step()),
            floats::<f32>(rows * step),
            floats::<State>(rows),
            2 * floats::<f32>(rows),
            floats::<ScoreRow>(rows),
            floats::<f32>(STAGED * size),
            floats::<f32>(BLOCK * step),
            floats::<f32>(BLOCK * size),
            floats::<f32>(BLOCK * step),
            if self.tiles.is_some() { Tiles::WEIGHTS } else { WEIGHTS },
            2 * BLOCK,
            self.tiles.as_ref().map_or(0, |tiles| tiles.size(rows)),
        ]
    }

    pub(super) fn has_entropy(&self) -> bool {
        self.inputs.problem.has(sys::norm_sdpa_entropy)
    }

    /// The size of the entropies of all rows, in floats.
    fn entropies(&self) -> usize {
        let (problem, shape) = (&self.inputs.problem, &self.inputs.problem.shape);
        // The queries of packed sequences are those of the tensor.
        let sequences = if problem.has(sys::norm_sdpa_query_offsets) { 1 } else { shape.batch };
        let rows = sequences * shape.heads * shape.queries;
        if self.has_entropy() { floats::<f32>(rows) } else { 0 }
    }

    pub(super) fn scratchpad_size(&self) -> usize {
        let room = self.sizes().iter().sum::<usize>();
        let parts = self.parts(self.rooms);
        let rooms = if self.records() > 0 { self.rooms } else { self.rooms.min(parts.count()) };
        let floats = rooms.saturating_mul(room).saturating_add(self.entropies());
        floats.saturating_add(self.records()).saturating_mul(size_of::<f32>())
    }

    fn room(&self, start: *mut f32, number: usize) -> Room {
        let sizes = self.sizes();
        let room = start.wrapping_add(number * sizes.iter().sum::<usize>());
        let starts = starts(room, sizes);
        Room {
            queries: starts[0],
            sums: starts[1],
            states: starts[2].cast(),
            ends: starts[3],
            rows: starts[4].cast(),
            key_stage: starts[5],
            value_stage: starts[6],
            keys: starts[7],
            values: starts[8],
            weights: starts[9],
            scales: starts[10],
            tiles: starts[11],
        }
    }

    /// Runs the problem. Returns the number of threads that took part.
    pub(super) fn execute(&self, execution: &Execution<'_>) -> usize {
        if self.inputs.problem.is_empty() {
            return 1;
        }
        let width = self.inputs.width(execution, self.rooms);
        let scratchpad = execution.scratchpad.cast::<f32>();
        let job = Job {
            forward: self,
            bound: Bound::new(&self.inputs, execution.arguments),
            parts: self.parts(width),
            entropies: Shared(scratchpad),
            records: Shared(scratchpad.wrapping_add(self.entropies())),
            rooms: Shared(scratchpad.wrapping_add(self.entropies() + self.records())),
        };
        let threads = if self.splits(width, &job.parts) {
            job.run_split(execution, width)
        } else {
            // SAFETY: each part is given out once.
            job.run(execution, job.parts.count(), width, &|number, room| unsafe {
                job.part(&job.parts.part(number), room);
            })
        };
        if self.has_entropy() {
            // SAFETY: the arguments were checked, and the entropies of all rows were written.
            unsafe { job.mean_entropies() };
        }
        threads.max(1)
    }
}

/// An execution.
pub(super) struct Job<'a> {
    pub(super) forward: &'a Forward,
    pub(super) bound: Bound<'a>,
    pub(super) parts: Parts,
    entropies: Shared,
    /// Records of blocks that are joined later.
    pub(super) records: Shared,
    rooms: Shared,
}

impl Job<'_> {
    /// Runs tasks on up to `width` threads, each with a room.
    pub(super) fn run(
        &self,
        execution: &Execution<'_>,
        tasks: usize,
        width: usize,
        task: &(dyn Fn(usize, &Room) + Sync),
    ) -> usize {
        let width = width.min(tasks).max(1);
        let slots = Slots::new(width);
        execution.run(tasks, width, Length::Long, &|number| {
            let slot = slots.take();
            task(number, &self.forward.room(self.rooms.get(), slot.number()));
        })
    }

    /// # Safety
    /// The arguments were checked, the part and the room are this thread's, and the machine has the level.
    unsafe fn part(&self, part: &Part, room: &Room) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if !self.is_stored(part) {
                return;
            }
            let rows = self.begin(part, room);
            self.blocks(part, room, rows, Blocks::of(rows));
            self.finish(part, room, rows.len());
        }
    }

    /// Whether a part has rows to store in dst. Beyond a packed sequence, dst has the rows of other sequences.
    ///
    /// # Safety
    /// The arguments were checked.
    pub(super) unsafe fn is_stored(&self, part: &Part) -> bool {
        let sequences = &self.bound.sequences;
        // SAFETY: guaranteed by the caller.
        let (length, _) = unsafe { sequences.lengths(part.sequence) };
        part.queries.start < sequences.stored_queries(length)
    }

    /// Loads the queries of a part that are within the length, and resets their states.
    ///
    /// # Safety
    /// As [`part`](Self::part).
    pub(super) unsafe fn begin<'r>(&self, part: &Part, room: &'r Room) -> &'r [ScoreRow] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let lengths = self.bound.sequences.lengths(part.sequence);
            let end = part.queries.end.min(lengths.0).max(part.queries.start);
            let seen = Part { queries: part.queries.start..end, ..part.clone() };
            let count = seen.rows();
            for row in 0..count {
                let (query, head) = seen.row(row);
                room.rows.add(row).write(self.bound.score_row(part.sequence, head, query));
                let sink = self.bound.of_head(sys::NORM_ARG_SINKS, head);
                room.states.add(row).write(sink.map_or(State::EMPTY, State::of_sink));
            }
            self.load_queries(&seen, room.queries, self.forward.query_step());
            if let Some(tiles) = &self.forward.tiles {
                self.pack_queries(tiles, room, count);
            }
            room.sums.write_bytes(0, part.rows() * self.forward.value_step());
            room.scales.write_bytes(0, 2 * BLOCK);
            std::slice::from_raw_parts(room.rows, count)
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

    /// Adds blocks of keys.
    ///
    /// # Safety
    /// As [`part`](Self::part).
    unsafe fn blocks(&self, part: &Part, room: &Room, rows: &[ScoreRow], blocks: Blocks) {
        let mut blocks = blocks.peekable();
        while let Some(keys) = blocks.next() {
            // SAFETY: guaranteed by the caller.
            unsafe { self.block(part, room, rows, (keys, blocks.peek())) };
        }
    }

    /// Adds a block of keys that begins at `first`. The rows see no keys outside `within`. Few rows meanwhile prefetch
    /// the block `next`.
    ///
    /// # Safety
    /// As [`part`](Self::part).
    pub(super) unsafe fn block(
        &self,
        part: &Part,
        room: &Room,
        rows: &[ScoreRow],
        ((first, within), next): (BlockKeys, Option<&BlockKeys>),
    ) {
        let Forward { inputs: Inputs { problem, .. }, attend, tiles, .. } = self.forward;
        if let Some(tiles) = tiles.as_ref().filter(|_| rows.len() >= order::ROWS) {
            let keys = (first, within.clone());
            // SAFETY: guaranteed by the caller.
            if unsafe { self.block_on_tiles(tiles, part, (room, rows), &keys) } {
                return;
            }
        }
        let (size, step) = (problem.shape.key_size, self.forward.value_step());
        let keys = whole_groups(first, &within);
        let start = keys.start - first;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let place = (part.sequence, part.group);
            let values = self.values(place, room, (first, keys.clone()), rows.len());
            let scales = self.scales(place, room, (first, keys.clone()));
            let to = Target { panels: room.keys, stage: room.key_stage, stage_step: size };
            let mut block = Block {
                scoring: problem.scoring,
                scales,
                moments: self.forward.has_entropy(),
                rows,
                states: room.states,
                queries: Left { start: room.queries, row: self.forward.query_step(), term: 1 },
                key_size: size,
                keys: Right { start: room.keys, term: LANES, panel: size * LANES },
                first,
                count: within.end - first,
                values: values.as_slice(),
                value_panels: step / LANES,
                sums: room.sums,
                sum_step: step,
                weights: room.weights,
                next: None,
            };
            if rows.len() < order::ROWS {
                self.few_rows(block, place, (keys, next), &to);
                return;
            }
            let heads = (&self.forward.inputs.keys, Some(&self.forward.inputs.values));
            block.keys = self.bound.row_panels(heads, place, keys, &to).of_block(start);
            attend(&block);
        }
    }

    /// The values of a range of the block that begins at `first`: in place if rows are few, else as panels.
    ///
    /// # Safety
    /// As [`part`](Self::part).
    unsafe fn values(
        &self,
        place: (usize, usize),
        room: &Room,
        (first, keys): (usize, Range<usize>),
        rows: usize,
    ) -> Runs {
        let values = &self.forward.inputs.values;
        let stage_step = self.forward.value_step();
        let to = Target { panels: room.values, stage: room.value_stage, stage_step };
        // SAFETY: guaranteed by the caller.
        unsafe {
            if rows <= FEW_ROWS && values.size == stage_step {
                return self.bound.in_place(values, place, (first, keys), &to);
            }
            let start = keys.start - first;
            let panels = self.bound.column_panels(values, place, keys, &to);
            Runs::one(panels.offset(start))
        }
    }

    /// The scales of a range of the block that begins at `first`.
    ///
    /// # Safety
    /// As [`part`](Self::part).
    unsafe fn scales(
        &self,
        place: (usize, usize),
        room: &Room,
        (first, keys): (usize, Range<usize>),
    ) -> Scales {
        let Inputs { key_scales, value_scales, .. } = self.forward.inputs;
        let of = |places: Option<ScalePlaces>, to: *mut f32| {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let start =
                    self.bound.scales(places, place, keys.clone(), to.add(keys.start - first));
                if start.is_null() { start } else { to }
            }
        };
        Scales {
            keys: of(key_scales, room.scales),
            values: of(value_scales, room.scales.wrapping_add(BLOCK)),
        }
    }

    /// Stores a part. Its first `there` rows are within the length.
    ///
    /// # Safety
    /// As [`part`](Self::part).
    pub(super) unsafe fn finish(&self, part: &Part, room: &Room, there: usize) {
        let (forward, entropies) = (self.forward, self.entropies.get());
        let (step, heads, count) = (forward.value_step(), part.heads.len(), part.rows());
        let (logarithms, row_entropies) =
            (room.ends, room.ends.wrapping_add(floats::<f32>(forward.most_rows())));
        let workspace = self.bound.arguments.get(sys::NORM_ARG_WORKSPACE).cast::<f32>();
        // SAFETY: guaranteed by the caller.
        unsafe {
            // Queries beyond the length have zeros as results.
            for row in there..count {
                room.states.add(row).write(State::EMPTY);
            }
            (forward.finish)(&Finished {
                states: room.states,
                count,
                sums: room.sums,
                step,
                logarithms,
                entropies: row_entropies,
            });
            let (length, _) = self.bound.sequences.lengths(part.sequence);
            let end = self.bound.sequences.stored_queries(length).min(part.queries.end);
            let stored = part.queries.start..end.max(part.queries.start);
            for (at, head) in part.heads.clone().enumerate() {
                let place = (part.sequence, head);
                let grid = forward.dst.grid(self.bound.arguments, place, stored.clone());
                forward.inputs.grids.store(&grid, room.sums.add(at * step), heads * step);
            }
            for row in 0..count {
                let (query, head) = part.row(row);
                if !stored.contains(&query) {
                    continue;
                }
                let at = self.bound.sequences.row(part.sequence, head, query);
                if !workspace.is_null() {
                    workspace.add(at).write_unaligned(*logarithms.add(row));
                }
                if forward.has_entropy() {
                    entropies.add(at).write(*row_entropies.add(row));
                }
            }
        }
    }

    /// Computes the mean entropy of each head over its queries.
    ///
    /// # Safety
    /// The arguments were checked, and there is an entropy for each row.
    unsafe fn mean_entropies(&self) {
        let (entropies, sequences) = (self.entropies.get(), &self.bound.sequences);
        let shape = &self.forward.inputs.problem.shape;
        let to = self.bound.arguments.get(sys::NORM_ARG_ENTROPY).cast::<f32>();
        for at in 0..shape.batch * shape.heads {
            let (sequence, head) = (at / shape.heads, at % shape.heads);
            // SAFETY: guaranteed by the caller.
            unsafe {
                let (queries, _) = sequences.lengths(sequence);
                let first = entropies.add(sequences.row(sequence, head, 0));
                to.add(at).write_unaligned(mean(std::slice::from_raw_parts(first, queries)));
            }
        }
    }
}

/// The mean of entropies, computed in f64; 0 if there are none.
pub(super) fn mean(entropies: &[f32]) -> f32 {
    let sum = entropies.iter().fold(0.0, |sum, entropy| sum + f64::from(*entropy));
    if entropies.is_empty() { 0.0 } else { (sum / entropies.len() as f64) as f32 }
}
