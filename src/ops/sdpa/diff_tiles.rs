//! Backward on tiles: which problems are suitable, and where a room stores operands.
//!
//! The elements of queries, keys and values are 0 or at least 2^-40 in magnitude, those of the gradients of dst and of
//! scores 2^-72.

use super::BLOCK;
use super::gradient::{Pairs, QUERIES};
use super::inputs::{floats, starts};
use super::problem::Sdpa;
use super::tiles::{APART, AT_ONCE, Entries, TERMS, WEIGHT_STEP, usable};
use crate::error::{Error, Result};
use crate::simd::LANES;
use crate::tensor::DataType;
use norm_sys as sys;

/// 2^-40 and 2^-72 in bf16.
pub(super) const LEAST_OF_INPUTS: u16 = (127 - 40) << 7;
#[cfg_attr(
    not(all(target_arch = "x86_64", feature = "avx512")),
    allow(dead_code, reason = "no kernel reads it")
)]
pub(super) const LEAST_OF_GRADIENTS: u16 = (127 - 72) << 7;

/// The row stride of weights and dS by keys.
pub(super) const COLUMN_STEP: usize = QUERIES + APART;
/// The stride of tiles of 16 elements whose terms are queries.
#[cfg_attr(
    not(all(target_arch = "x86_64", feature = "avx512")),
    allow(dead_code, reason = "no kernel reads it")
)]
pub(super) const QUERY_PANEL: usize = LANES * QUERIES;
/// The stride of tiles of 16 elements whose terms are keys.
pub(super) const KEY_PANEL: usize = LANES * BLOCK;

/// A block of queries against a block of keys on tiles.
#[cfg_attr(
    not(all(target_arch = "x86_64", feature = "avx512")),
    allow(dead_code, reason = "no kernel reads it")
)]
pub(super) struct TilePairs<'a> {
    /// Its panels are not used.
    pub(super) pairs: &'a Pairs<'a>,
    pub(super) places: Places,
    /// Sizes of keys and values, rounded up to whole tiles.
    pub(super) key_size: usize,
    pub(super) value_size: usize,
}

/// Where a room stores tiles.
#[cfg_attr(
    not(all(target_arch = "x86_64", feature = "avx512")),
    allow(dead_code, reason = "no kernel reads it")
)]
#[derive(Clone, Copy)]
pub(super) struct Places {
    /// Queries and the gradients of dst by rows, as left operands.
    pub(super) queries: *mut u16,
    pub(super) diff_dst: *mut u16,
    /// The same as right operands; terms are queries.
    pub(super) query_terms: *mut u16,
    pub(super) diff_dst_terms: *mut u16,
    /// Keys and values as right operands; terms are elements.
    pub(super) keys: *mut u16,
    pub(super) values: *mut u16,
    /// Keys as right operands; terms are keys.
    pub(super) key_terms: *mut u16,
    /// dS as left operands, by queries and by keys, and weights by keys.
    pub(super) diff_scores: *mut u16,
    pub(super) diff_score_columns: *mut u16,
    pub(super) weight_columns: *mut u16,
    /// 32 x 32 products.
    pub(super) products: *mut f32,
    /// 16 gathered rows.
    pub(super) rows: *mut u16,
}

/// Adds the gradients of a block of queries and a block of keys. Returns false, with nothing added, if numbers are
/// unsuitable for tiles.
pub(super) type Entry = unsafe fn(&TilePairs<'_>) -> bool;

/// Backward on tiles.
pub(super) struct DiffTiles {
    pub(super) entries: Entries,
    pub(super) differentiate: Entry,
    /// Sizes of keys and values, rounded up to whole tiles.
    pub(super) key_size: usize,
    pub(super) value_size: usize,
}

impl DiffTiles {
    /// How a problem runs on tiles, or why it does not.
    pub(super) fn new(
        problem: &Sdpa,
        entries: Option<Entries>,
        differentiate: Option<Entry>,
    ) -> Result<Self> {
        let ids = [
            sys::NORM_ARG_QUERIES,
            sys::NORM_ARG_KEYS,
            sys::NORM_ARG_VALUES,
            sys::NORM_ARG_DIFF_DST,
        ];
        if ids.into_iter().any(|id| problem.data_type(id) != DataType::Bf16) {
            let text = "queries, keys, values and the gradient of dst are not all bf16";
            return Err(Error::unimplemented(text));
        }
        let (entries, differentiate) = usable(problem, entries.zip(differentiate))?;
        Ok(Self {
            entries,
            differentiate,
            key_size: problem.shape.key_size.next_multiple_of(TERMS),
            value_size: problem.shape.value_size.next_multiple_of(TERMS),
        })
    }

    /// The sizes of a room's parts, in floats.
    fn sizes(&self) -> [usize; 12] {
        let Self { key_size, value_size, .. } = *self;
        [
            QUERIES * (key_size + APART),
            QUERIES * (value_size + APART),
            QUERIES * key_size,
            QUERIES * value_size,
            BLOCK * key_size,
            BLOCK * value_size,
            BLOCK * key_size,
            QUERIES * WEIGHT_STEP,
            BLOCK * COLUMN_STEP,
            BLOCK * COLUMN_STEP,
            2 * AT_ONCE * AT_ONCE,
            LANES * key_size.max(value_size),
        ]
        .map(floats::<u16>)
    }

    /// The size of a room, in floats.
    pub(super) fn size(&self) -> usize {
        self.sizes().iter().sum()
    }

    pub(super) fn places(&self, start: *mut f32) -> Places {
        let starts = starts(start, self.sizes());
        let at = |place: usize| starts[place].cast();
        Places {
            queries: at(0),
            diff_dst: at(1),
            query_terms: at(2),
            diff_dst_terms: at(3),
            keys: at(4),
            values: at(5),
            key_terms: at(6),
            diff_scores: at(7),
            diff_score_columns: at(8),
            weight_columns: at(9),
            products: starts[10],
            rows: at(11),
        }
    }
}
