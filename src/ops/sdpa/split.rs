//! Forward with few queries: threads share the blocks of keys of a part.
//!
//! Each block is computed separately and recorded. The blocks of a part are then joined from left to right, so the bits
//! are those of a single thread.

use super::BLOCK;
use super::blocks::Blocks;
use super::forward::{Forward, Job, Room};
use super::inputs::floats;
use super::kernel::Joined;
use super::rows::Parts;
use super::score::State;
use crate::primitive::Execution;

/// The size of a record in floats: the sums and the states of a part's rows.
struct Record {
    sums: usize,
    states: usize,
}

impl Record {
    fn size(&self) -> usize {
        self.sums + self.states
    }
}

impl Forward {
    fn record(&self, parts: &Parts) -> Record {
        let rows = parts.most_rows();
        Record { sums: floats::<f32>(rows * self.value_step()), states: floats::<State>(rows) }
    }

    /// The number of blocks of the longest sequence.
    fn blocks(&self) -> usize {
        self.inputs.problem.shape.keys.div_ceil(BLOCK)
    }

    /// The size of the records of all parts, in floats; 0 unless there are fewer parts than the threads need.
    fn records_of(&self, width: usize, parts: &Parts) -> usize {
        if width < 2 || parts.count() >= 2 * width || self.blocks() < 2 {
            return 0;
        }
        self.record(parts).size().saturating_mul(self.blocks()).saturating_mul(parts.count())
    }

    /// The size of the room for records, in floats.
    pub(super) fn records(&self) -> usize {
        self.records_of(self.rooms, &self.parts(self.rooms))
    }

    /// Whether threads share the keys of a part.
    pub(super) fn splits(&self, width: usize, parts: &Parts) -> bool {
        (1..=self.records()).contains(&self.records_of(width, parts))
    }
}

impl Job<'_> {
    /// Runs the problem on up to `width` threads. Returns the number of those that took part.
    pub(super) fn run_split(&self, execution: &Execution<'_>, width: usize) -> usize {
        let parts = self.parts.count();
        let pieces = (4 * width).div_ceil(parts).min(self.forward.blocks());
        let threads = self.run(execution, parts * pieces, width, &|number, room| {
            // SAFETY: the execution's buffers were checked, each piece is given out once, a room has one thread at a
            // time, and the machine has the level.
            unsafe { self.record_piece(number / pieces, (number % pieces, pieces), room) };
        });
        // SAFETY: as above; all blocks were recorded.
        self.run(execution, parts, width, &|number, room| unsafe { self.join(number, room) });
        threads
    }

    /// The room of a thread, with a record's sums and states.
    fn recorded(&self, part: usize, block: usize, room: &Room) -> Room {
        let record = self.forward.record(&self.parts);
        let number = part * self.forward.blocks() + block;
        let sums = self.records.get().wrapping_add(number * record.size());
        room.with_results(sums, sums.wrapping_add(record.sums).cast())
    }

    /// Computes a piece of a part's blocks and records them.
    ///
    /// # Safety
    /// The arguments were checked, the piece and the room belong to this thread, and the machine has the level.
    unsafe fn record_piece(&self, number: usize, (piece, pieces): (usize, usize), room: &Room) {
        let part = self.parts.part(number);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if !self.is_stored(&part) {
                return;
            }
            let rows = self.begin(&part, room);
            let all = Blocks::of(rows).left();
            let of_piece = all * piece / pieces..all * (piece + 1) / pieces;
            let blocks = Blocks::of(rows).enumerate();
            let mut blocks = blocks.skip(of_piece.start).take(of_piece.len()).peekable();
            while let Some((block, keys)) = blocks.next() {
                let recorded = self.recorded(number, block, room);
                let size = self.forward.record(&self.parts).sums;
                recorded.sums.write_bytes(0, size);
                for row in 0..rows.len() {
                    recorded.states.add(row).write(State::EMPTY);
                }
                let next = blocks.peek().map(|(_, keys)| keys);
                self.block(&part, &recorded, rows, (keys, next));
            }
        }
    }

    /// Joins the records of a part, and stores the results.
    ///
    /// # Safety
    /// As [`record_piece`](Self::record_piece), after all pieces.
    unsafe fn join(&self, number: usize, room: &Room) {
        let part = self.parts.part(number);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if !self.is_stored(&part) {
                return;
            }
            let rows = self.begin(&part, room);
            for block in 0..Blocks::of(rows).left() {
                let recorded = self.recorded(number, block, room);
                (self.forward.join)(&Joined {
                    states: room.states,
                    sums: room.sums,
                    block_states: recorded.states,
                    block_sums: recorded.sums,
                    count: rows.len(),
                    step: self.forward.value_step(),
                });
            }
            self.finish(&part, room, rows.len());
        }
    }
}
