//! Blocks of keys on tiles: packs them, and checks that their numbers are suitable.

use super::BLOCK;
use super::blocks::{BlockKeys, whole_groups};
use super::forward::{Job, Room};
use super::inputs::Inputs;
use super::kernel::Block;
use super::order::{Left, Right};
use super::rows::{Heads, Part};
use super::scales::Scales;
use super::score::ScoreRow;
use super::tiles::{LEAST_OF_PAIRS, LEAST_OF_VALUES, NUMBERS, Packing, TERMS, TileBlock, Tiles};
use crate::simd::LANES;
use std::ops::Range;

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
        let nothing = Right { start: std::ptr::null(), term: 0, panel: 0 };
        let entries = &tiles.entries;
        // SAFETY: guaranteed by the caller; tiles are granted to the process.
        unsafe {
            if !*places.fit
                || !self.packed((keys, entries.keys), room, (place, packed.clone()), |set| {
                    (places.keys.wrapping_add(set * key_panel), key_panel, LEAST_OF_PAIRS)
                })
                || !self.packed((values, entries.values), room, (place, packed), |set| {
                    let to = places.values.wrapping_add(set * NUMBERS / 2);
                    (to, value_panel, LEAST_OF_VALUES)
                })
            {
                return false;
            }
            let block = Block {
                scoring: problem.scoring,
                scales: Scales { keys: std::ptr::null(), values: std::ptr::null() },
                moments: self.forward.has_entropy(),
                rows,
                states: room.states,
                queries: Left { start: std::ptr::null(), row: 0, term: 0 },
                key_size: problem.shape.key_size,
                keys: nothing,
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

    /// Packs keys or values, 16 at a time. `to` returns the place of a set, the stride, and the smallest suitable
    /// magnitude. Returns whether all numbers are suitable for tiles.
    ///
    /// # Safety
    /// As [`block`](Self::block).
    unsafe fn packed(
        &self,
        (heads, entry): (&Heads, unsafe fn(&Packing<'_>) -> bool),
        room: &Room,
        (place, keys): ((usize, usize), Range<usize>),
        to: impl Fn(usize) -> (*mut u16, usize, u16),
    ) -> bool {
        // Padded to whole tiles of terms.
        (0..keys.len().next_multiple_of(TERMS) / LANES).all(|set| {
            let first = keys.start + set * LANES;
            let (to, panel, least) = to(set);
            // SAFETY: guaranteed by the caller.
            unsafe {
                entry(&Packing {
                    rows: &self.rows_of(heads, room, place, first..keys.end.min(first + LANES)),
                    floats: std::ptr::null(),
                    float_step: 0,
                    count: 0,
                    cols: heads.size,
                    is_left: false,
                    to,
                    panel,
                    least,
                })
            }
        })
    }

    /// The rows of up to 16 keys or values; null for missing ones.
    ///
    /// # Safety
    /// As [`block`](Self::block).
    unsafe fn rows_of(
        &self,
        heads: &Heads,
        room: &Room,
        (sequence, group): (usize, usize),
        keys: Range<usize>,
    ) -> [*const u16; LANES] {
        let mut rows = [std::ptr::null(); LANES];
        if heads.element != 1 {
            // SAFETY: guaranteed by the caller; the stage has room for as many rows.
            unsafe { self.stage_rows(heads, room, (sequence, group), keys, &mut rows) };
            return rows;
        }
        let mut at = 0;
        while at < keys.len() {
            let key = keys.start + at;
            let run = self.bound.sequences.run_from(key).min(keys.len() - at);
            // SAFETY: guaranteed by the caller.
            let (page, place) = unsafe { self.bound.sequences.page_of(sequence, key) };
            let grid = heads.grid(self.bound.arguments, (page, group), place..place + run);
            let start = grid.start.cast_const().cast::<u16>();
            for (i, row) in rows[at..at + run].iter_mut().enumerate() {
                *row = start.wrapping_add(i * grid.row_step);
            }
            at += run;
        }
        rows
    }

    /// Gathers rows whose elements are not adjacent.
    ///
    /// # Safety
    /// As [`rows_of`](Self::rows_of).
    unsafe fn stage_rows(
        &self,
        heads: &Heads,
        room: &Room,
        place: (usize, usize),
        keys: Range<usize>,
        rows: &mut [*const u16; LANES],
    ) {
        let Some(tiles) = &self.forward.tiles else { return };
        let to = tiles.places(room.tiles, self.forward.most_rows()).rows;
        let panel = heads.size.next_multiple_of(TERMS);
        let count = keys.len();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let is_key = heads.size == self.forward.inputs.problem.shape.key_size;
            let stage = if is_key { room.key_stage } else { room.value_stage };
            let (floats, float_step) = self.bound.rows(heads, place, keys, (stage, heads.size));
            (tiles.entries.queries)(&Packing {
                rows: &[std::ptr::null(); LANES],
                floats,
                float_step,
                count,
                cols: heads.size,
                is_left: false,
                to,
                panel,
                least: 0,
            });
        }
        for (row, place) in rows[..count].iter_mut().enumerate() {
            *place = to.wrapping_add(row * panel);
        }
    }
}
