//! Rows of keys and values packed as tiles, from any layout.

use super::inputs::Bound;
use super::rows::Heads;
use super::tiles::{PackEntry, Packing, TERMS};
use crate::simd::LANES;
use std::ops::Range;

/// The sequence and group of keys or values, and where rows whose elements are not adjacent are gathered.
pub(super) struct Gathered {
    pub(super) place: (usize, usize),
    /// Room for 16 rows in f32, and in bf16 rounded up to whole tiles.
    pub(super) stage: *mut f32,
    pub(super) rows: *mut u16,
    /// Packs rows of f32.
    pub(super) entry: PackEntry,
}

impl Bound<'_> {
    /// Packs keys or values, 16 at a time. `to` returns the place of a set, the stride, and the smallest suitable
    /// magnitude. Returns whether all numbers are suitable for tiles.
    ///
    /// # Safety
    /// The arguments were checked, the keys are within the length of the sequence, there is room for them, and tiles
    /// are granted to the process.
    pub(super) unsafe fn packed(
        &self,
        (heads, entry): (&Heads, PackEntry),
        gathered: &Gathered,
        keys: Range<usize>,
        to: impl Fn(usize) -> (*mut u16, usize, u16),
    ) -> bool {
        // Padded to whole tiles of terms.
        (0..keys.len().next_multiple_of(TERMS) / LANES).all(|set| {
            let first = keys.start + set * LANES;
            let (to, panel, least) = to(set);
            // SAFETY: guaranteed by the caller.
            unsafe {
                entry(&Packing {
                    rows: &self.tile_rows(heads, gathered, first..keys.end.min(first + LANES)),
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
    /// As [`packed`](Self::packed).
    unsafe fn tile_rows(
        &self,
        heads: &Heads,
        gathered: &Gathered,
        keys: Range<usize>,
    ) -> [*const u16; LANES] {
        let mut rows = [std::ptr::null(); LANES];
        if heads.element != 1 {
            // SAFETY: guaranteed by the caller.
            unsafe { self.gather(heads, gathered, keys, &mut rows) };
            return rows;
        }
        let (sequence, group) = gathered.place;
        let mut at = 0;
        while at < keys.len() {
            let key = keys.start + at;
            let run = self.sequences.run_from(key).min(keys.len() - at);
            // SAFETY: guaranteed by the caller.
            let (page, place) = unsafe { self.sequences.page_of(sequence, key) };
            let grid = heads.grid(self.arguments, (page, group), place..place + run);
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
    /// As [`packed`](Self::packed).
    unsafe fn gather(
        &self,
        heads: &Heads,
        gathered: &Gathered,
        keys: Range<usize>,
        rows: &mut [*const u16; LANES],
    ) {
        let panel = heads.size.next_multiple_of(TERMS);
        let count = keys.len();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let stage = (gathered.stage, heads.size);
            let (floats, float_step) = self.rows(heads, gathered.place, keys, stage);
            (gathered.entry)(&Packing {
                rows: &[std::ptr::null(); LANES],
                floats,
                float_step,
                count,
                cols: heads.size,
                is_left: false,
                to: gathered.rows,
                panel,
                least: 0,
            });
        }
        for (row, place) in rows[..count].iter_mut().enumerate() {
            *place = gathered.rows.wrapping_add(row * panel);
        }
    }
}
