//! A block of queries against a block of keys on tiles, backward: packs the keys, and runs the kernel.

use super::backward::{Job, KeyPanels, Keys, Queries};
use super::backward_room::Room;
use super::diff_tiles::{DiffTiles, KEY_PANEL, LEAST_OF_INPUTS, TilePairs};
use super::gradient::Matrix;
use super::inputs::Inputs;
use super::score::ScoreRow;
use super::tile_rows::Gathered;
use super::tiles::{AT_ONCE, NUMBERS};
use crate::simd::LANES;

impl Job<'_> {
    /// Packs a block of keys and values. Returns whether their numbers are suitable for tiles.
    ///
    /// # Safety
    /// The arguments were checked, the room belongs to this thread, and tiles are granted to the process.
    pub(super) unsafe fn pack_keys(&self, tiles: &DiffTiles, keys: &Keys, room: &Room) -> bool {
        let Inputs { keys: key_heads, values: value_heads, .. } = &self.backward.inputs;
        let (entries, places) = (&tiles.entries, tiles.places(room.tiles));
        let gathered = |stage| Gathered {
            place: (keys.sequence, keys.group),
            stage,
            rows: places.rows,
            entry: entries.queries,
        };
        let of_elements = |to: *mut u16, size: usize| {
            move |set: usize| (to.wrapping_add(set * LANES * size), LANES * size, LEAST_OF_INPUTS)
        };
        let of_keys = |set: usize| {
            (places.key_terms.wrapping_add(set * NUMBERS / 2), KEY_PANEL, LEAST_OF_INPUTS)
        };
        let (of_key, of_value) = (gathered(room.key_stage), gathered(room.value_stage));
        let there = || keys.there.clone();
        // SAFETY: guaranteed by the caller; the places have room for a block.
        unsafe {
            let to = of_elements(places.keys, tiles.key_size);
            self.bound.packed((key_heads, entries.keys), &of_key, there(), to)
                && self.bound.packed((key_heads, entries.values), &of_key, there(), of_keys)
                && {
                    let to = of_elements(places.values, tiles.value_size);
                    self.bound.packed((value_heads, entries.keys), &of_value, there(), to)
                }
        }
    }

    /// Adds the gradients of a block of queries and of `count` keys from `first` on tiles. Returns false, with nothing
    /// added, if the numbers are unsuitable.
    ///
    /// # Safety
    /// As [`pack_keys`](Self::pack_keys), after it. The queries and gradients of dst were loaded.
    pub(super) unsafe fn pairs_on_tiles(
        &self,
        tiles: &DiffTiles,
        block: &Queries,
        (rows, of_keys): (&[ScoreRow], (usize, usize)),
        room: &Room,
    ) -> bool {
        let padded = rows.len().next_multiple_of(AT_ONCE);
        // SAFETY: guaranteed by the caller.
        unsafe {
            for matrix in [room.queries, room.diff_dst, room.weights, room.diff_scores] {
                let Matrix { start, step } = matrix.from(rows.len());
                start.write_bytes(0, (padded - rows.len()) * step);
            }
            (tiles.differentiate)(&TilePairs {
                pairs: &self.pairs(block, rows, of_keys, &KeyPanels::NONE, room),
                places: tiles.places(room.tiles),
                key_size: tiles.key_size,
                value_size: tiles.value_size,
            })
        }
    }
}
