//! Rows against a block of keys: dot products, weights, the product with values, and the join with the previous blocks.
//!
//! ```text
//! s = score(q . k);  m2 = max(s);  p = exp(s - m2);  l2 = sum(p);  o2 = sum(p * v)
//! M = max(m, m2);  e = exp(m - M);  e2 = exp(m2 - M)
//! l = l*e + l2*e2;  o = o*e + o2*e2
//! ```

use super::BLOCK;
use super::ahead::{Ahead, Nothing, Sets};
use super::order::{
    GROUP, Left, PAD, ROWS, Right, Run, by_rows, by_vectors, careful_product, is_finite, product,
    product_of_runs,
};
use super::problem::Scoring;
use super::scales::Scales;
use super::score::{Floats, ScoreRow, Sink, State, seen, weigh};
use crate::simd::lanes::Lanes;
use crate::simd::{LANES, Level, Simd, entry_points, math, unroll};
use std::ops::Range;

/// The row stride of weights.
pub(super) const STEP: usize = BLOCK + PAD;
/// Sets of [`LANES`] keys in a block.
pub(super) const SETS: usize = BLOCK / LANES;
/// The most rows whose states are joined at once, in whole vectors.
const MOST_ROWS: usize = ROWS.next_multiple_of(LANES);
/// A factor for each row.
pub(super) type Factors = [f32; MOST_ROWS];

/// Rows against a block.
pub(super) struct Block<'a> {
    pub(super) scoring: Scoring,
    pub(super) scales: Scales,
    pub(super) moments: bool,
    pub(super) rows: &'a [ScoreRow],
    /// A state per row.
    pub(super) states: *mut State,
    /// The queries, by rows.
    pub(super) queries: Left,
    pub(super) key_size: usize,
    /// Panels of keys, a vector per element of a head.
    pub(super) keys: Right,
    /// The index of the block's first key, and the number of its keys.
    pub(super) first: usize,
    pub(super) count: usize,
    /// The values, a vector per key, in runs of keys.
    pub(super) values: &'a [Run],
    pub(super) value_panels: usize,
    /// The sums of the rows so far, in whole vectors.
    pub(super) sums: *mut f32,
    pub(super) sum_step: usize,
    /// Room for [`ROWS`] rows of [`BLOCK`] weights.
    pub(super) weights: *mut f32,
    /// With fewer than [`ROWS`] rows, the values to prefetch. The weights then already contain the dot products.
    pub(super) next: Option<&'a Sets<SETS>>,
}

/// Floats of the room for weights.
pub(super) const WEIGHTS: usize = ROWS * STEP;

impl Block<'_> {
    /// Adds the block to some rows.
    ///
    /// # Safety
    /// As [`attend`].
    #[inline(always)]
    unsafe fn rows<S: Simd, const BF16: bool>(&self, of: Range<usize>) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let rows = self.rows.get_unchecked(of.clone());
            let seen = seen(rows, self.first, self.count);
            if seen.is_empty() {
                return;
            }
            if self.next.is_none() {
                by_vectors!(S, seen.start / LANES..seen.end / LANES, |at, C| {
                    by_rows!(S, BF16, false, rows.len(), |row, R| {
                        let place = (of.start + row, at);
                        self.multiply_keys::<S, BF16, R, C, _>(self.keys, place, row, &mut Nothing);
                    });
                });
            }
            let factors = self
                .join_states::<S, _>(of.start, rows, &seen, |_, weights| Floats::<BF16>(weights));
            let within = seen.start..self.count.min(seen.end);
            if let Some(next) = self.next {
                by_vectors!(S, 0..self.value_panels, |at, C| {
                    let mut ahead = next.lines(at, self.value_panels);
                    by_rows!(S, BF16, true, rows.len(), |row, R| {
                        let place = (of.start + row, at);
                        let keys = within.clone();
                        self.add_values::<S, BF16, R, C, _>(
                            place,
                            row,
                            (keys, &mut ahead),
                            &factors,
                        );
                    });
                });
            } else {
                by_vectors!(S, 0..self.value_panels, |at, C| {
                    by_rows!(S, BF16, false, rows.len(), |row, R| {
                        let place = (of.start + row, at);
                        let keys = within.clone();
                        self.add_values::<S, BF16, R, C, _>(
                            place,
                            row,
                            (keys, &mut Nothing),
                            &factors,
                        );
                    });
                });
            }
        }
    }

    /// Stores the dot products of `R` rows and `C` vectors of keys in the room for weights, from row `to`.
    ///
    /// # Safety
    /// As [`attend`].
    #[inline(always)]
    unsafe fn multiply_keys<S: Simd, const BF16: bool, const R: usize, const C: usize, A: Ahead>(
        &self,
        keys: Right,
        (row, at): (usize, usize),
        to: usize,
        ahead: &mut A,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (queries, keys) = (self.queries.from(row, 0), keys.from(at, 0));
            let dots = product::<S, BF16, R, C, A>(queries, keys, self.key_size, ahead);
            unroll!(to 8: r in R, {
                unroll!(c in C, {
                    S::store(self.weights.add((to + r) * STEP + (at + c) * LANES), dots[r][c]);
                });
            });
        }
    }

    /// Adds the products of weights and values to the sums of `R` rows and `C` vectors. The weights of the first row
    /// are in row `from`.
    ///
    /// # Safety
    /// As [`attend`].
    #[inline(always)]
    unsafe fn add_values<S: Simd, const BF16: bool, const R: usize, const C: usize, A: Ahead>(
        &self,
        (row, at): (usize, usize),
        from: usize,
        (keys, ahead): (Range<usize>, &mut A),
        (before, after): &(Factors, Factors),
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let start = self.weights.add(from * STEP + keys.start);
            let weights = Left { start, row: STEP, term: 1 };
            let (values, all) = ((self.values, at), keys.clone());
            let products = product_of_runs::<S, BF16, R, C, A>(weights, values, all, ahead);
            let is_finite = is_finite::<S, R, C>(&products);
            unroll!(to 8: r in R, {
                unroll!(c in C, {
                    let sum = self.sums.add((row + r) * self.sum_step + (at + c) * LANES);
                    let added = if is_finite {
                        products[r][c]
                    } else {
                        let (weights, values) = (weights.from(r, 0), (self.values, at + c));
                        careful_product::<S, BF16>(weights, values, keys.clone())
                    };
                    let before = *before.get_unchecked(from + r);
                    let after = *after.get_unchecked(from + r);
                    let sums = Lanes::<S>::load(sum, LANES) * before;
                    Lanes::<S>::new(added).mul_add(after, sums).store(sum, LANES);
                });
            });
        }
    }

    /// Turns dot products into weights, and joins the rows' states with those of the block. Returns the factors of the
    /// previous sums and of the block.
    ///
    /// # Safety
    /// As [`attend`].
    #[inline(always)]
    pub(super) unsafe fn join_states<S: Simd, W: Sink<S>>(
        &self,
        row: usize,
        rows: &[ScoreRow],
        seen: &Range<usize>,
        sink: impl Fn(usize, *mut f32) -> W,
    ) -> (Factors, Factors) {
        let mut blocks = [State::EMPTY; MOST_ROWS];
        // SAFETY: guaranteed by the caller.
        unsafe {
            for (r, row_of) in rows.iter().enumerate() {
                let weights = self.weights.add(r * STEP);
                let within = (self.first, seen.clone());
                *blocks.get_unchecked_mut(r) = weigh::<S, W>(
                    (&self.scoring, self.scales),
                    row_of,
                    within,
                    (weights, self.moments),
                    &sink(r, weights),
                );
            }
            joined::<S>(self.states.add(row), blocks.get_unchecked(..rows.len()))
        }
    }
}

/// Joins the states of up to [`MOST_ROWS`] rows with those of a block. Returns the factors of the previous sums and of
/// the block.
///
/// # Safety
/// There are as many states, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn joined<S: Simd>(states: *mut State, blocks: &[State]) -> (Factors, Factors) {
    let mut before: Factors = [0.0; _];
    let mut after: Factors = [f32::NEG_INFINITY; _];
    // SAFETY: guaranteed by the caller.
    unsafe {
        for (r, block) in blocks.iter().enumerate() {
            let state = &*states.add(r);
            if !block.is_empty() {
                let max = larger(state.max, block.max);
                *before.get_unchecked_mut(r) = state.max - max;
                *after.get_unchecked_mut(r) = block.max - max;
            }
        }
        weights_of::<S>(&mut before);
        weights_of::<S>(&mut after);
        for (r, block) in blocks.iter().enumerate() {
            let state = &mut *states.add(r);
            if !block.is_empty() {
                let max = larger(state.max, block.max);
                let factors = [*before.get_unchecked(r), *after.get_unchecked(r)];
                *state = state.joined(block, max, factors);
            }
        }
    }
    (before, after)
}

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn weights_of<S: Simd>(x: &mut Factors) {
    for x in x.as_chunks_mut::<LANES>().0 {
        // SAFETY: guaranteed by the caller.
        unsafe { math::weight(Lanes::<S>::load(x.as_ptr(), LANES)).store(x.as_mut_ptr(), LANES) };
    }
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
        let mut row = 0;
        while row < block.rows.len() {
            let end = block.rows.len().min(row + ROWS);
            block.rows::<S, BF16>(row..end);
            row = end;
        }
    }
}

/// Fewer than [`ROWS`] rows against some keys of a block.
pub(super) struct FewRows<'a> {
    pub(super) block: &'a Block<'a>,
    /// The keys' panels, offset as if they began with the block's first key, and their vectors.
    pub(super) keys: Right,
    pub(super) vectors: Range<usize>,
    /// The keys to prefetch.
    pub(super) next: &'a Sets<{ GROUP / LANES }>,
}

/// Stores dot products in the room for weights.
///
/// # Safety
/// As [`attend`].
#[inline(always)]
unsafe fn multiply<S: Simd, const BF16: bool>(job: &FewRows<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut ahead = job.next.lines(0, 1);
        by_vectors!(S, job.vectors.clone(), |at, C| {
            by_rows!(S, BF16, true, job.block.rows.len(), |row, R| {
                let place = (row, at);
                job.block.multiply_keys::<S, BF16, R, C, _>(job.keys, place, row, &mut ahead);
            });
        });
    }
}

entry_points! {
    /// Dot products of few rows, per level.
    mod dot_entries: multiply<; const BF16: bool>(job: &FewRows<'_>) -> ();
}

pub(super) type DotEntry = unsafe fn(&FewRows<'_>);

pub(super) fn dot_entry(level: Level, is_bf16: bool) -> DotEntry {
    if is_bf16 {
        dot_entries::at::<true>(level).unwrap_or(dot_entries::portable::entry_portable::<true>)
    } else {
        dot_entries::at::<false>(level).unwrap_or(dot_entries::portable::entry_portable::<false>)
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

/// Rows and the result of a separate block of keys, to be joined.
pub(super) struct Joined {
    pub(super) states: *mut State,
    pub(super) sums: *mut f32,
    pub(super) block_states: *const State,
    pub(super) block_sums: *const f32,
    pub(super) count: usize,
    /// The row stride of sums.
    pub(super) step: usize,
}

/// # Safety
/// As [`attend`].
#[inline(always)]
unsafe fn join<S: Simd>(job: &Joined) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut row = 0;
        while row < job.count {
            let rows = ROWS.min(job.count - row);
            let blocks = std::slice::from_raw_parts(job.block_states.add(row), rows);
            let (before, after) = joined::<S>(job.states.add(row), blocks);
            for r in 0..rows {
                let (before, after) = (*before.get_unchecked(r), *after.get_unchecked(r));
                let mut col = (row + r) * job.step;
                while col < (row + r + 1) * job.step {
                    let sums = Lanes::<S>::load(job.sums.add(col), LANES) * before;
                    let block = Lanes::<S>::load(job.block_sums.add(col), LANES);
                    block.mul_add(after, sums).store(job.sums.add(col), LANES);
                    col += LANES;
                }
            }
            row += rows;
        }
    }
}

entry_points! {
    /// The join of rows with a block, per level.
    mod join_entries: join<>(job: &Joined) -> ();
}

pub(super) type JoinEntry = unsafe fn(&Joined);

pub(super) fn join_entry(level: Level) -> JoinEntry {
    join_entries::at(level).unwrap_or(join_entries::portable::entry_portable)
}

/// Rows that are complete.
pub(super) struct Finished {
    pub(super) states: *const State,
    pub(super) count: usize,
    pub(super) sums: *mut f32,
    pub(super) step: usize,
    /// The logarithm of each row's sum of `exp(s)`, and its entropy.
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
    /// The division at the end, per level.
    mod finish_entries: finish<>(job: &Finished) -> ();
}

pub(super) type FinishEntry = unsafe fn(&Finished);

pub(super) fn finish_entry(level: Level) -> FinishEntry {
    finish_entries::at(level).unwrap_or(finish_entries::portable::entry_portable)
}
