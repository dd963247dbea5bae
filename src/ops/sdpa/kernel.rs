//! A strip of rows against a block of keys: dot products, weights, the product with values, and the join with the blocks
//! before.
//!
//! ```text
//! s = score(q . k);  m2 = max(s);  p = exp(s - m2);  l2 = sum(p);  o2 = sum(p * v)
//! M = max(m, m2);  e = exp(m - M);  e2 = exp(m2 - M)
//! l = l*e + l2*e2;  o = o*e + o2*e2
//! ```

use super::BLOCK;
use super::order::{Left, Right, by_rows, by_vectors, careful_product, is_finite, product};
use super::problem::Scoring;
use super::score::{ScoreRow, State, seen, weigh};
use crate::simd::lanes::Lanes;
use crate::simd::{LANES, Level, Simd, entry_points, math, unroll};
use std::ops::Range;

/// The most rows of a strip.
const MOST_ROWS: usize = 8;

/// Rows against a block.
pub(super) struct Block<'a> {
    pub(super) scoring: Scoring,
    pub(super) moments: bool,
    pub(super) rows: &'a [ScoreRow],
    /// A state per row.
    pub(super) states: *mut State,
    /// Queries by rows.
    pub(super) queries: Left,
    pub(super) key_size: usize,
    /// Panels of keys, a vector per element of a head.
    pub(super) keys: Right,
    /// The number of the block's first key, and of its keys.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Panels of values, a vector per key.
    pub(super) values: Right,
    pub(super) value_panels: usize,
    /// The sums of rows so far, whole vectors.
    pub(super) sums: *mut f32,
    pub(super) sum_step: usize,
    /// Room for [`MOST_ROWS`] rows of [`BLOCK`] weights.
    pub(super) weights: *mut f32,
}

/// Floats of the room for weights.
pub(super) const WEIGHTS: usize = MOST_ROWS * BLOCK;

impl Block<'_> {
    /// # Safety
    /// As [`attend`], for `R` rows from `row` on.
    #[inline(always)]
    unsafe fn strip<S: Simd, const BF16: bool, const R: usize>(&self, row: usize) {
        let rows = &self.rows[row..row + R];
        let seen = seen(rows, self.first, self.count);
        if seen.is_empty() {
            return;
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            let queries = self.queries.from(row, 0);
            by_vectors!(S, seen.start / LANES..seen.end / LANES, |at, C| {
                let keys = self.keys.from(at, 0);
                let dots = product::<S, BF16, R, C>(queries, keys, self.key_size);
                unroll!(to 8: r in R, {
                    unroll!(c in C, {
                        S::store(self.weights.add(r * BLOCK + (at + c) * LANES), dots[r][c]);
                    });
                });
            });
            let (before, after) = self.join_states::<S, BF16>(row, rows, &seen);
            let count = self.count.min(seen.end) - seen.start;
            let weights = Left { start: self.weights.add(seen.start), row: BLOCK, term: 1 };
            by_vectors!(S, 0..self.value_panels, |at, C| {
                let values = self.values.from(at, seen.start);
                let products = product::<S, BF16, R, C>(weights, values, count);
                let is_finite = is_finite::<S, R, C>(&products);
                unroll!(to 8: r in R, {
                    unroll!(c in C, {
                        let sum = self.sums.add((row + r) * self.sum_step + (at + c) * LANES);
                        let added = if is_finite {
                            products[r][c]
                        } else {
                            careful_product::<S, BF16>(weights.from(r, 0), values.from(c, 0), count)
                        };
                        let sums = Lanes::<S>::load(sum, LANES) * before[r];
                        Lanes::<S>::new(added).mul_add(after[r], sums).store(sum, LANES);
                    });
                });
            });
        }
    }

    /// Turns dot products into weights, and joins the states of the rows with those of the block. Returns the factors of
    /// the sums before and of the block.
    ///
    /// # Safety
    /// As [`strip`](Self::strip).
    #[inline(always)]
    unsafe fn join_states<S: Simd, const BF16: bool>(
        &self,
        row: usize,
        rows: &[ScoreRow],
        seen: &Range<usize>,
    ) -> ([f32; LANES], [f32; LANES]) {
        let (mut before, mut after) = ([0.0; LANES], [f32::NEG_INFINITY; LANES]);
        let mut blocks = [State::EMPTY; MOST_ROWS];
        // SAFETY: guaranteed by the caller.
        unsafe {
            for (r, row_of) in rows.iter().enumerate() {
                let weights = self.weights.add(r * BLOCK);
                let within = (self.first, seen.clone());
                let block =
                    weigh::<S, BF16>(&self.scoring, row_of, within, (weights, self.moments));
                let state = &*self.states.add(row + r);
                if !block.is_empty() {
                    let max = larger(state.max, block.max);
                    (before[r], after[r]) = (state.max - max, block.max - max);
                }
                blocks[r] = block;
            }
            weights_of::<S>(&mut before);
            weights_of::<S>(&mut after);
            for r in 0..rows.len() {
                let state = &mut *self.states.add(row + r);
                if !blocks[r].is_empty() {
                    let max = larger(state.max, blocks[r].max);
                    *state = state.joined(&blocks[r], max, [before[r], after[r]]);
                }
            }
        }
        (before, after)
    }
}

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn weights_of<S: Simd>(x: &mut [f32; LANES]) {
    // SAFETY: guaranteed by the caller.
    unsafe { math::weight(Lanes::<S>::load(x.as_ptr(), LANES)).store(x.as_mut_ptr(), LANES) };
}

#[inline(always)]
pub(super) fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// Adds a block to all rows.
///
/// # Safety
/// The matrices and masks exist, no other thread writes them, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn attend<S: Simd, const BF16: bool>(block: &Block<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        by_rows!(S, BF16, block.rows.len(), |row, R| block.strip::<S, BF16, R>(row));
    }
}

entry_points! {
    /// Attention to a block, per level.
    mod entries: attend<; const BF16: bool>(block: &Block<'_>) -> ();
}

pub(super) type Entry = unsafe fn(&Block<'_>);

pub(super) fn entry(level: Level, is_bf16: bool) -> Entry {
    if is_bf16 {
        entries::at::<true>(level).unwrap_or(entries::portable::entry_portable::<true>)
    } else {
        entries::at::<false>(level).unwrap_or(entries::portable::entry_portable::<false>)
    }
}

/// Rows that are complete.
pub(super) struct Finished {
    pub(super) states: *const State,
    pub(super) count: usize,
    pub(super) sums: *mut f32,
    pub(super) step: usize,
    /// For each row, the logarithm of its sum of `exp(s)`, and its entropy.
    pub(super) logarithms: *mut f32,
    pub(super) entropies: *mut f32,
}

/// Divides the sums of rows by those of their weights: `(o + 0) * (1/l)`.
///
/// # Safety
/// As [`attend`].
#[inline(always)]
unsafe fn finish<S: Simd>(job: &Finished) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for row in 0..job.count {
            let state = &*job.states.add(row);
            let reciprocal = if state.is_empty() { 0.0 } else { 1.0 / state.sum };
            let sums = job.sums.add(row * job.step);
            let mut col = 0;
            while col < job.step {
                let value = (Lanes::<S>::load(sums.add(col), LANES) + 0.0) * reciprocal;
                value.store(sums.add(col), LANES);
                col += LANES;
            }
            let log = math::log(Lanes::<S>::new(S::splat(state.sum))).largest();
            job.logarithms.add(row).write(state.logarithm(log));
            job.entropies.add(row).write(state.entropy(log));
        }
    }
}

entry_points! {
    /// The end of rows, per level.
    mod finish_entries: finish<>(job: &Finished) -> ();
}

pub(super) type FinishEntry = unsafe fn(&Finished);

pub(super) fn finish_entry(level: Level) -> FinishEntry {
    finish_entries::at(level).unwrap_or(finish_entries::portable::entry_portable)
}
