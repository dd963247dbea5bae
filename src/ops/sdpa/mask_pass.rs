//! The gradient of a mask that is added to scores: a separate pass over the pairs of queries and keys.
//!
//! The gradient of a mask element is the f64 sum of its scores' gradients, in ascending order of sequences, heads,
//! blocks of queries, blocks of keys, queries and keys. Each element belongs to one thread, so each sum has a fixed
//! order.

use super::BLOCK;
use super::backward::{Job, Keys, Queries};
use super::backward_room::Room;
use super::blocks::Blocks;
use super::diff_mask::DiffMask;
use super::gradient::{Pairs, QUERIES};
use std::ops::Range;

/// The indices that share one index of the mask.
fn sharing(index: usize, dim: usize, all: usize) -> Range<usize> {
    if dim == 1 { 0..all } else { index..index + 1 }
}

impl Job<'_> {
    /// Computes and stores a part of the gradient.
    ///
    /// # Safety
    /// The arguments were checked, and the part and the room are this thread's.
    pub(super) unsafe fn mask_part(&self, mask: &DiffMask, number: usize, room: &Room) {
        let shape = &self.backward.inputs.problem.shape;
        let (place, block) = (number / mask.blocks(), number % mask.blocks());
        let (sequence, head) = (place / mask.dims[1], place % mask.dims[1]);
        let first = block * QUERIES;
        let rows = first..mask.dims[2].min(first + QUERIES);
        let count = rows.len() * mask.dims[3];
        // SAFETY: guaranteed by the caller; the room has a part.
        unsafe {
            self.clear(room);
            room.mask_sums.write_bytes(0, count);
            for sequence in sharing(sequence, mask.dims[0], shape.batch) {
                let (length, keys) = self.bound.sequences.lengths(sequence);
                for head in sharing(head, mask.dims[1], shape.heads) {
                    let blocks = self.blocks(sequence, head, length);
                    let own = |of: &Queries| mask.dims[2] == 1 || of.queries.start == first;
                    for block in blocks.filter(own) {
                        self.add_to_mask(mask, &block, (sequence, head, keys), room);
                    }
                }
            }
            for at in 0..count {
                room.mask_stage.add(at).write(*room.mask_sums.add(at) as f32);
            }
            let grid = mask.heads.grid(self.bound.arguments, (sequence, head), rows);
            self.backward.inputs.grids.store(&grid, room.mask_stage, mask.dims[3]);
        }
    }

    /// Adds the gradients of the scores of a block of queries.
    ///
    /// # Safety
    /// As [`mask_part`](Self::mask_part).
    unsafe fn add_to_mask(
        &self,
        mask: &DiffMask,
        block: &Queries,
        (sequence, head, length): (usize, usize, usize),
        room: &Room,
    ) {
        let inputs = &self.backward.inputs;
        let group = head / inputs.problem.shape.heads_of_group();
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.deltas(block, room, 0.0);
            self.load(&inputs.queries, block, room.queries);
            let rows = self.rows(block, room);
            for (first, within) in Blocks::of(rows) {
                let there = first..length.min(first + BLOCK);
                let panels = self.panels(&Keys { sequence, group, first, there }, room);
                let count = within.end - first;
                let pairs = self.pairs(block, rows, (first, count), &panels, room);
                (self.backward.differentiate)(&Pairs { scores_alone: true, ..pairs });
                for row in 0..rows.len() {
                    let to = if mask.dims[2] == 1 { 0 } else { row * mask.dims[3] };
                    let scores = room.diff_scores.from(row).start;
                    for key in 0..count {
                        let at = to + if mask.dims[3] == 1 { 0 } else { first + key };
                        *room.mask_sums.add(at) += f64::from(*scores.add(key));
                    }
                }
            }
        }
    }
}
