//! Blocks of keys on bf16 tiles, if the processor has them: which problems and which numbers are suitable, and where
//! tiles are stored.
//!
//! The processor treats subnormals as zeros. So tiles are used only if every number is finite and no partial sum can be
//! subnormal: the elements of queries and of the block's keys are 0 or at least 2^-56 in magnitude, and those of its
//! values 2^-72 (weights are 0 or at least 2^-40). Backward has limits of its own. Every partial sum is then a multiple
//! of 2^-126. Other blocks use fused multiply-adds, with the same bits.

use super::BLOCK;
use super::inputs::{Inputs, floats, starts};
use super::kernel::{Block, STEP};
use super::order::GROUP;
use super::problem::Sdpa;
use crate::error::{Error, Result};
use crate::simd::LANES;
use crate::tensor::DataType;
use norm_sys as sys;

/// Rows of queries, and results, that are multiplied at once.
pub(super) const AT_ONCE: usize = 2 * LANES;
/// The terms of a tile, and the number of its elements.
pub(super) const TERMS: usize = GROUP;
pub(super) const NUMBERS: usize = LANES * TERMS;
/// Padding between rows, so that rows are in different sets of a cache.
pub(super) const APART: usize = 32;
/// The row stride of weights.
pub(super) const WEIGHT_STEP: usize = BLOCK + APART;

/// 2^-56 and 2^-72 in bf16.
pub(super) const LEAST_OF_PAIRS: u16 = (127 - 56) << 7;
pub(super) const LEAST_OF_VALUES: u16 = (127 - 72) << 7;

/// Rows against a block.
#[cfg_attr(
    not(all(target_arch = "x86_64", feature = "avx512")),
    allow(dead_code, reason = "no kernel reads it")
)]
pub(super) struct TileBlock<'a> {
    /// Its queries, keys and values are not used. It has room for the weights of 32 rows.
    pub(super) block: &'a Block<'a>,
    /// Queries by rows, and the row stride.
    pub(super) queries: *const u16,
    pub(super) query_step: usize,
    /// Tiles of 16 keys, offset as if they began with the block's first key, and their stride.
    pub(super) keys: *const u16,
    pub(super) key_panel: usize,
    /// Tiles of 16 elements of values, likewise.
    pub(super) values: *const u16,
    pub(super) value_panel: usize,
    /// Room for the weights of 32 rows in bf16, and for 32 x 32 products.
    pub(super) weights: *mut u16,
    pub(super) products: *mut f32,
}

/// Rows to be packed as tiles.
#[cfg_attr(
    not(all(target_arch = "x86_64", feature = "avx512")),
    allow(dead_code, reason = "no kernel reads it")
)]
pub(super) struct Packing<'a> {
    /// 16 rows of bf16; null for missing ones, which become zeros.
    pub(super) rows: &'a [*const u16; LANES],
    /// Alternatively, rows of f32: address, stride, number.
    pub(super) floats: *const f32,
    pub(super) float_step: usize,
    pub(super) count: usize,
    pub(super) cols: usize,
    /// Whether the rows of f32 are a left operand; otherwise their elements stay in order.
    pub(super) is_left: bool,
    pub(super) to: *mut u16,
    /// The stride of rows, or of tiles of other elements.
    pub(super) panel: usize,
    /// Magnitudes below this are unsuitable, except 0.
    pub(super) least: u16,
}

/// Packs rows. Returns whether their numbers are suitable for tiles.
pub(super) type PackEntry = unsafe fn(&Packing<'_>) -> bool;

/// The functions that use tiles.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    pub(super) attend: unsafe fn(&TileBlock<'_>),
    pub(super) queries: PackEntry,
    pub(super) keys: PackEntry,
    pub(super) values: PackEntry,
}

/// Forward on tiles.
pub(super) struct Tiles {
    pub(super) entries: Entries,
    /// Sizes of keys and values, rounded up to whole tiles.
    pub(super) key_size: usize,
    pub(super) value_size: usize,
}

/// Where a room stores tiles.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) fit: *mut bool,
    pub(super) queries: *mut u16,
    pub(super) keys: *mut u16,
    pub(super) values: *mut u16,
    pub(super) weights: *mut u16,
    pub(super) products: *mut f32,
    pub(super) rows: *mut u16,
}

/// The functions for a problem, or why it does not run on tiles.
pub(super) fn usable<T>(problem: &Sdpa, entries: Option<T>) -> Result<T> {
    let even = |size: usize| size > 0 && size.is_multiple_of(2);
    if !even(problem.shape.key_size) || !even(problem.shape.value_size) {
        return Err(Error::unimplemented("the size of a head is odd"));
    }
    entries.ok_or(Error::unimplemented(
        "the process may not use the instructions, or they are slow here",
    ))
}

impl Tiles {
    /// How a problem runs on tiles, or why it does not.
    pub(super) fn new(problem: &Sdpa, inputs: &Inputs, entries: Option<Entries>) -> Result<Self> {
        let ids = [sys::NORM_ARG_QUERIES, sys::NORM_ARG_KEYS, sys::NORM_ARG_VALUES];
        let all_bf16 = ids.into_iter().all(|id| problem.data_type(id) == DataType::Bf16);
        if !all_bf16 || inputs.key_scales.is_some() || inputs.value_scales.is_some() {
            return Err(Error::unimplemented("queries, keys and values are not all bf16"));
        }
        let shape = &problem.shape;
        Ok(Self {
            entries: usable(problem, entries)?,
            key_size: shape.key_size.next_multiple_of(TERMS),
            value_size: shape.value_size.next_multiple_of(2 * LANES),
        })
    }

    pub(super) fn query_step(&self) -> usize {
        self.key_size + APART
    }

    /// The sizes of a room's parts for a number of rows, in floats.
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

    /// The size of a room, in floats.
    pub(super) fn size(&self, rows: usize) -> usize {
        self.sizes(rows).iter().sum()
    }

    /// The size of the room for f32 weights, in floats.
    pub(super) const WEIGHTS: usize = AT_ONCE * STEP;

    pub(super) fn places(&self, start: *mut f32, rows: usize) -> Places {
        let starts = starts(start, self.sizes(rows));
        let at = |place: usize| starts[place];
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
