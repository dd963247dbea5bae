//! Blocks of keys on tiles of bf16, where the processor has them: which problems and which numbers are fit for them, and
//! where tiles lie.
//!
//! The processor takes subnormals for zeros. Tiles are used where no partial sum can be one, and every number is finite: the elements of queries
//! and of the block's keys are 0 or at least 2^-56, and those of its values 2^-72 (weights are 0 or at least 2^-40).
//! Every partial sum is then a multiple of 2^-126. Other blocks take fused multiply-adds, with the same bits.

use super::BLOCK;
use super::blocks::{BlockKeys, whole_groups};
use super::forward::{Job, Room};
use super::inputs::{Inputs, floats};
use super::kernel::{Block, STEP};
use super::order::{GROUP, Left, Right};
use super::problem::Sdpa;
use super::rows::{Heads, Part};
use super::scales::Scales;
use super::score::ScoreRow;
use crate::error::{Error, Result};
use crate::simd::LANES;
use crate::tensor::DataType;
use norm_sys as sys;
use std::ops::Range;

/// Rows of queries that are multiplied at once, and results.
pub(super) const AT_ONCE: usize = 2 * LANES;
/// The terms of a tile, and the numbers of one.
pub(super) const TERMS: usize = GROUP;
pub(super) const NUMBERS: usize = LANES * TERMS;
/// Numbers between rows besides whole tiles: rows lie in different sets of a cache.
const APART: usize = 32;
/// The distance of rows of weights.
pub(super) const WEIGHT_STEP: usize = BLOCK + APART;

/// 2^-56 and 2^-72 in bf16.
const LEAST_OF_PAIRS: u16 = (127 - 56) << 7;
const LEAST_OF_VALUES: u16 = (127 - 72) << 7;

/// Rows against a block.
pub(super) struct TileBlock<'a> {
    /// Its queries, keys and values are not used; there is room for the weights of 32 rows.
    pub(super) block: &'a Block<'a>,
    /// Queries by rows, and their distance.
    pub(super) queries: *const u16,
    pub(super) query_step: usize,
    /// Tiles of 16 keys, as if they began with the first key of the block, and the distance of the next ones.
    pub(super) keys: *const u16,
    pub(super) key_panel: usize,
    /// Tiles of 16 elements of values, likewise.
    pub(super) values: *const u16,
    pub(super) value_panel: usize,
    /// Rooms for the weights of 32 rows in bf16, and for 32 by 32 products.
    pub(super) weights: *mut u16,
    pub(super) products: *mut f32,
}

/// Rows that become tiles.
pub(super) struct Packing<'a> {
    /// 16 rows of bf16; null for those that are missing, which become zeros.
    pub(super) rows: &'a [*const u16; LANES],
    /// Or rows of f32, their distance and number.
    pub(super) floats: *const f32,
    pub(super) float_step: usize,
    pub(super) count: usize,
    pub(super) cols: usize,
    pub(super) to: *mut u16,
    /// The distance of rows, or of tiles of other elements.
    pub(super) panel: usize,
    /// Smaller numbers than this are not fit.
    pub(super) least: u16,
}

/// The functions with tiles.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    pub(super) attend: unsafe fn(&TileBlock<'_>),
    pub(super) queries: unsafe fn(&Packing<'_>) -> bool,
    pub(super) keys: unsafe fn(&Packing<'_>) -> bool,
    pub(super) values: unsafe fn(&Packing<'_>) -> bool,
}

#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
fn entries() -> Option<Entries> {
    crate::simd::tiles::are_granted().then_some(super::tile_kernel::ENTRIES)
}

#[cfg(not(all(target_arch = "x86_64", feature = "avx512")))]
fn entries() -> Option<Entries> {
    None
}

/// Forward on tiles.
pub(super) struct Tiles {
    entries: Entries,
    /// Whole tiles of elements of keys and values.
    key_size: usize,
    value_size: usize,
}

/// The places of tiles in a room.
#[derive(Clone, Copy)]
struct Places {
    fit: *mut bool,
    queries: *mut u16,
    keys: *mut u16,
    values: *mut u16,
    weights: *mut u16,
    products: *mut f32,
    rows: *mut u16,
}

impl Tiles {
    /// How a problem runs on tiles, or why it does not.
    pub(super) fn new(problem: &Sdpa, inputs: &Inputs) -> Result<Self> {
        let shape = &problem.shape;
        let all_bf16 = [sys::NORM_ARG_QUERIES, sys::NORM_ARG_KEYS, sys::NORM_ARG_VALUES]
            .iter()
            .all(|id| problem.data_type(*id) == DataType::Bf16);
        let even = |size: usize| size > 0 && size.is_multiple_of(2);
        if !all_bf16 || inputs.key_scales.is_some() || inputs.value_scales.is_some() {
            return Err(Error::unimplemented("queries, keys and values are not all bf16"));
        }
        if !even(shape.key_size) || !even(shape.value_size) {
            return Err(Error::unimplemented("the size of a head is odd"));
        }
        let entries = entries()
            .ok_or(Error::unimplemented("the system does not let the process use tiles"))?;
        Ok(Self {
            entries,
            key_size: shape.key_size.next_multiple_of(TERMS),
            value_size: shape.value_size.next_multiple_of(2 * LANES),
        })
    }

    fn query_step(&self) -> usize {
        self.key_size + APART
    }

    /// Floats of the parts of a room, for a number of rows.
    fn sizes(&self, rows: usize) -> [usize; 7] {
        [
            floats::<bool>(1),
            floats::<u16>(rows.next_multiple_of(AT_ONCE) * self.query_step()),
            floats::<u16>(BLOCK * self.key_size),
            floats::<u16>(BLOCK * self.value_size),
            floats::<u16>(AT_ONCE * WEIGHT_STEP),
            AT_ONCE * AT_ONCE,
            floats::<u16>(LANES * self.key_size.max(self.value_size)),
        ]
    }

    /// Floats of a room.
    pub(super) fn size(&self, rows: usize) -> usize {
        self.sizes(rows).iter().sum()
    }

    /// Floats of the room for weights of f32.
    pub(super) const WEIGHTS: usize = AT_ONCE * STEP;

    fn places(&self, start: *mut f32, rows: usize) -> Places {
        let sizes = self.sizes(rows);
        let at = |place: usize| start.wrapping_add(sizes[..place].iter().sum());
        Places {
            fit: at(0).cast(),
            queries: at(1).cast(),
            keys: at(2).cast(),
            values: at(3).cast(),
            weights: at(4).cast(),
            products: at(5),
            rows: at(6).cast(),
        }
    }
}

impl Job<'_> {
    /// Packs the queries of a room.
    ///
    /// # Safety
    /// They are there, and the room is this thread's.
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
                to: places.queries,
                panel: tiles.query_step(),
                least: LEAST_OF_PAIRS,
            });
            places.fit.write(fit);
        }
    }

    /// Adds a block of keys as [`block`](Self::block) does, on tiles. Returns whether it was fit for them; else nothing
    /// was added.
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
                values: nothing,
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

    /// Packs keys or values, 16 at a time: those of set n to the place, with the distance and for the least number that
    /// `to` returns. Returns whether all are fit for tiles.
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
        // Whole tiles of terms.
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
                    to,
                    panel,
                    least,
                })
            }
        })
    }

    /// The rows of up to 16 keys or values, and null for those that are missing.
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

    /// Gathers rows whose elements are apart.
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
