//! Blocks of keys on tiles: packs them, and checks that their numbers are suitable.

use super::BLOCK;
use super::blocks::{BlockKeys, whole_groups};
use super::forward::{Job, Room};
use super::inputs::Inputs;
use super::kernel::Block;
use super::order::{Left, Right};
use super::rows::Part;
use super::scales::Scales;
use super::score::ScoreRow;
use super::tile_rows::Gathered;
use super::tiles::{LEAST_OF_PAIRS, LEAST_OF_VALUES, NUMBERS, Packing, TERMS, TileBlock, Tiles};
use crate::simd::LANES;

impl Job<'_> {
    /// Packs the queries of a room.
    ///
    /// # Safety
    /// The queries were loaded, and the room belongs to this thread.
    pub(super) unsafe fn pack_queries(&self, tiles: &Tiles, room: &Room, rows: usize) {
        let places = tiles.places(room.tiles, self.forward.most_rows());
        // SAFETY: guaranteed by the caller; tiles are granted to the process.
        unsafe {
            let fit = (tiles.entries.queries)(&Packing {
                rows: &[std::ptr::null(); LANES],
                floats: room.queries,
                float_step: self.forward.query_step(),
                count: rows,
                cols: self.forward.inputs.problem.shape.key_size,
                is_left: true,
                to: places.queries,
                panel: tiles.query_step(),
                least: LEAST_OF_PAIRS,
            });
            places.fit.write(fit);
        }
    }

    /// Adds a block of keys on tiles, as [`block`](Self::block) does without. Returns false, with nothing added, if its
    /// numbers are unsuitable.
    ///
    /// # Safety
    /// As [`block`](Self::block), after [`pack_queries`](Self::pack_queries).
    pub(super) unsafe fn block_on_tiles(
        &self,
        tiles: &Tiles,
        part: &Part,
        (room, rows): (&Room, &[ScoreRow]),
        (first, within): &BlockKeys,
    ) -> bool {
        let Inputs { problem, keys, values, .. } = &self.forward.inputs;
        let places = tiles.places(room.tiles, self.forward.most_rows());
        let place = (part.sequence, part.group);
        let packed = whole_groups(*first, within);
        let start = packed.start - first;
        let (key_panel, value_panel) = (LANES * tiles.key_size, BLOCK * LANES);
        let step = self.forward.value_step();
        let entries = &tiles.entries;
        let gathered = |stage| Gathered { place, stage, rows: places.rows, entry: entries.queries };
        let of_keys = |set| (places.keys.wrapping_add(set * key_panel), key_panel, LEAST_OF_PAIRS);
        let of_values = |set: usize| {
            (places.values.wrapping_add(set * NUMBERS / 2), value_panel, LEAST_OF_VALUES)
        };
        let (from_keys, from_values) = (gathered(room.key_stage), gathered(room.value_stage));
        // SAFETY: guaranteed by the caller; tiles are granted to the process.
        unsafe {
            let fit = *places.fit
                && self.bound.packed((keys, entries.keys), &from_keys, packed.clone(), of_keys)
                && self.bound.packed((values, entries.values), &from_values, packed, of_values);
            if !fit {
                return false;
            }
            let block = Block {
                scoring: problem.scoring,
                scales: Scales::NONE,
                moments: self.forward.has_entropy(),
                rows,
                states: room.states,
                queries: Left { start: std::ptr::null(), row: 0, term: 0 },
                key_size: problem.shape.key_size,
                keys: Right::NONE,
                first: *first,
                count: within.end - first,
                values: &[],
                value_panels: step / LANES,
                sums: room.sums,
                sum_step: step,
                weights: room.weights,
                next: None,
            };
            (entries.attend)(&TileBlock {
                block: &block,
                queries: places.queries,
                query_step: tiles.query_step(),
                keys: places.keys.wrapping_sub(start / LANES * key_panel),
                key_panel,
                values: places.values.wrapping_sub(start / TERMS * NUMBERS),
                value_panel,
                weights: places.weights,
                products: places.products,
            });
            true
        }
    }
}
