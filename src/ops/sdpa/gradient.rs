//! A block of queries against a block of keys, backward.
//!
//! ```text
//! p = exp(s - logarithm);  dS = p * (diff_dst . v - delta) * slope of the soft cap
//! diff_q += dS K;  diff_v += P^T diff_dst;  diff_k += dS^T Q
//! ```

use super::BLOCK;
use super::ahead::Nothing;
use super::order::{
    Left, ROWS, Right, Run, by_rows, by_vectors, careful_product, is_finite, product,
};
use super::problem::Scoring;
use super::scales::Scales;
use super::score::{ScoreRow, WEIGHED_AT_ONCE, as_bf16, scores, seen};
use crate::simd::lanes::Lanes;
use crate::simd::{Fold, LANES, Level, Simd, Terms, Width, entry_points, fold, math, unroll};
use std::ops::Range;

/// Queries in a block.
pub(super) const QUERIES: usize = 64;
/// Padding between rows of left operands, in floats. With it, a column's elements are in different sets and banks of a
/// cache. It is half a vector, because rows are also read as vectors.
pub(super) const PAD: usize = LANES / 2;
/// The row stride of weights, in floats.
pub(super) const STEP: usize = BLOCK + PAD;

/// A matrix of f32 rows.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) start: *mut f32,
    pub(super) step: usize,
}

impl Matrix {
    #[inline(always)]
    pub(super) fn at(self, row: usize, col: usize) -> *mut f32 {
        self.start.wrapping_add(row * self.step + col)
    }

    /// The matrix from a row on.
    #[inline(always)]
    pub(super) fn from(self, row: usize) -> Self {
        Self { start: self.at(row, 0), ..self }
    }

    /// The matrix as a left operand.
    #[inline(always)]
    fn left(self) -> Left {
        Left { start: self.start, row: self.step, term: 1 }
    }

    /// The transposed matrix as a left operand.
    #[inline(always)]
    fn columns(self) -> Left {
        Left { start: self.start, row: 1, term: self.step }
    }

    /// The matrix as a right operand: its rows are the terms.
    #[inline(always)]
    fn right(self) -> Right {
        Right { start: self.start, term: self.step, panel: LANES }
    }
}

/// Queries against keys. The rows of matrices are padded to whole vectors.
pub(super) struct Pairs<'a> {
    pub(super) scoring: Scoring,
    pub(super) rows: &'a [ScoreRow],
    pub(super) logarithms: *const f32,
    pub(super) deltas: *const f32,
    pub(super) queries: Matrix,
    pub(super) diff_dst: Matrix,
    pub(super) key_size: usize,
    pub(super) value_size: usize,
    /// Whether to compute only dS, unrounded and after the soft cap.
    pub(super) scores_alone: bool,
    /// The index of the block's first key, and the number of its keys.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Panels of keys and of values with a vector per element, and panels of keys with a vector per key.
    pub(super) keys: Right,
    pub(super) values: Right,
    pub(super) key_columns: Right,
    /// Room for the weights and dS.
    pub(super) weights: Matrix,
    pub(super) diff_scores: Matrix,
    /// The sums of gradients. Those of keys and values begin with the block's first key.
    pub(super) diff_queries: Matrix,
    pub(super) diff_keys: Matrix,
    pub(super) diff_values: Matrix,
}

impl Pairs<'_> {
    /// The dot products of some queries with keys, and of their rows of diff_dst with values.
    ///
    /// # Safety
    /// As [`differentiate`].
    #[inline(always)]
    unsafe fn dots<S: Simd, const BF16: bool>(&self, of: Range<usize>) {
        // SAFETY: guaranteed by the caller.
        let rows = unsafe { self.rows.get_unchecked(of.clone()) };
        let seen = seen(rows, self.first, self.count);
        let operands = [
            (self.queries, self.keys, self.key_size, self.weights),
            (self.diff_dst, self.values, self.value_size, self.diff_scores),
        ];
        // SAFETY: guaranteed by the caller.
        unsafe {
            for (rows, panels, size, to) in operands {
                by_vectors!(S, seen.start / LANES..seen.end / LANES, |at, C| {
                    by_rows!(S, BF16, false, of.len(), |row, R| {
                        let row = of.start + row;
                        let (left, right) = (rows.left().from(row, 0), panels.from(at, 0));
                        let dots = product::<S, BF16, R, C, _>(left, right, size, &mut Nothing);
                        unroll!(to 8: r in R, {
                            unroll!(c in C, {
                                S::store(to.at(row + r, (at + c) * LANES), dots[r][c]);
                            });
                        });
                    });
                });
            }
        }
    }

    /// Turns the dot products of a row into weights and dS. Both are 0 for keys that the row does not see.
    ///
    /// # Safety
    /// As [`differentiate`].
    #[inline(always)]
    pub(super) unsafe fn weigh<S: Simd, const BF16: bool>(&self, row: usize) {
        let of_row = &self.rows[row];
        let own = seen(std::slice::from_ref(of_row), self.first, self.count);
        let alone = of_row.scaled_alone((&self.scoring, Scales::NONE), self.first, &own);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let zero = Lanes::<S>::new(S::zero());
            let mut at = 0;
            while at < self.count {
                let (weights, diff) = (self.weights.at(row, at), self.diff_scores.at(row, at));
                if !own.contains(&at) {
                    zero.store(weights, LANES);
                    zero.store(diff, LANES);
                    at += LANES;
                    continue;
                }
                let many = WEIGHED_AT_ONCE * LANES;
                if S::MANY_REGISTERS && at >= alone.start && at + many <= alone.end {
                    let mut s = [zero; WEIGHED_AT_ONCE];
                    unroll!(v in WEIGHED_AT_ONCE, {
                        let dots = Lanes::<S>::load(weights.add(v * LANES), LANES);
                        s[v] = dots * self.scoring.scale;
                    });
                    self.weigh_vectors::<S, BF16, WEIGHED_AT_ONCE>((row, at), s, None);
                    at += many;
                    continue;
                }
                let dots = Lanes::<S>::load(weights, LANES);
                let (s, slope) = scores(&self.scoring, of_row, self.first + at, dots);
                self.weigh_vectors::<S, BF16, 1>((row, at), [s], slope);
                at += LANES;
            }
        }
    }

    /// The weights and dS of some scores, in place of their dot products.
    ///
    /// # Safety
    /// As [`differentiate`].
    #[inline(always)]
    unsafe fn weigh_vectors<S: Simd, const BF16: bool, const N: usize>(
        &self,
        (row, at): (usize, usize),
        s: [Lanes<S>; N],
        slope: Option<Lanes<S>>,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (logarithm, delta) = (*self.logarithms.add(row), *self.deltas.add(row));
            let mut x = s;
            unroll!(v in N, {
                x[v] = s[v] - logarithm;
            });
            let p = math::weights(x);
            unroll!(v in N, {
                let at = at + v * LANES;
                let (weights, diff) = (self.weights.at(row, at), self.diff_scores.at(row, at));
                // A masked key has weight 0, even if the logarithm is NaN.
                let p = s[v].eq(f32::NEG_INFINITY).select(0.0, p[v]);
                let mut ds = p * (Lanes::<S>::load(diff, LANES) - delta);
                if let Some(slope) = slope
                    && !self.scores_alone
                {
                    ds = ds * slope;
                }
                let ds = p.eq(0.0).select(0.0, ds);
                let rounds = BF16 && !self.scores_alone;
                let [p, ds] = if rounds { [as_bf16(p), as_bf16(ds)] } else { [p, ds] };
                p.store(weights, LANES);
                ds.store(diff, LANES);
            });
        }
    }

    /// The product to add to the gradients of some queries.
    ///
    /// # Safety
    /// The rows exist.
    #[inline(always)]
    unsafe fn of_queries(&self, rows: Range<usize>) -> Products {
        // SAFETY: guaranteed by the caller.
        let of_rows = unsafe { self.rows.get_unchecked(rows.clone()) };
        let seen = seen(of_rows, self.first, self.count);
        Products {
            left: self.diff_scores.left().from(rows.start, seen.start),
            right: self.key_columns.from(0, seen.start),
            rows: rows.len(),
            terms: seen.end.min(self.count).saturating_sub(seen.start),
            size: self.key_size,
            to: self.diff_queries.from(rows.start),
        }
    }

    /// The products to add to the gradients of some keys and their values.
    #[inline(always)]
    fn of_keys(&self, keys: Range<usize>) -> [Products; 2] {
        let products = |left: Matrix, right: Matrix, size, to: Matrix| Products {
            left: left.columns().from(keys.start, 0),
            right: right.right(),
            rows: keys.len(),
            terms: self.rows.len(),
            size,
            to: to.from(keys.start),
        };
        [
            products(self.weights, self.diff_dst, self.value_size, self.diff_values),
            products(self.diff_scores, self.queries, self.key_size, self.diff_keys),
        ]
    }
}

/// A product of matrices, of up to [`ROWS`] rows, to add to sums.
struct Products {
    left: Left,
    right: Right,
    rows: usize,
    terms: usize,
    /// The number of columns of the sums.
    size: usize,
    to: Matrix,
}

impl Products {
    /// # Safety
    /// As [`differentiate`].
    #[inline(always)]
    unsafe fn add<S: Simd, const BF16: bool>(&self) {
        let (to, terms) = (self.to, self.terms);
        // SAFETY: guaranteed by the caller.
        unsafe {
            by_vectors!(S, 0..self.size.div_ceil(LANES), |at, C| {
                by_rows!(S, BF16, false, self.rows, |row, R| {
                    let (left, right) = (self.left.from(row, 0), self.right.from(at, 0));
                    let products = product::<S, BF16, R, C, _>(left, right, terms, &mut Nothing);
                    let is_finite = is_finite::<S, R, C>(&products);
                    unroll!(to 8: r in R, {
                        unroll!(c in C, {
                            let sum = to.at(row + r, (at + c) * LANES);
                            let added = if is_finite {
                                products[r][c]
                            } else {
                                let right = [Run::all(right)];
                                let right = (right.as_slice(), c);
                                careful_product::<S, BF16>(left.from(r, 0), right, 0..terms)
                            };
                            S::store(sum, S::add(S::load(sum), added));
                        });
                    });
                });
            });
        }
    }
}

/// Adds the gradients of a block of queries and a block of keys.
///
/// # Safety
/// The matrices and masks exist, no other thread writes them, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn differentiate<S: Simd, const BF16: bool>(pairs: &Pairs<'_>) {
    let seen = seen(pairs.rows, pairs.first, pairs.count);
    if seen.is_empty() {
        return;
    }
    let rows = pairs.rows.len();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut row = 0;
        while row < rows {
            pairs.dots::<S, BF16>(row..rows.min(row + ROWS));
            row += ROWS;
        }
        for row in 0..rows {
            pairs.weigh::<S, BF16>(row);
        }
        if pairs.scores_alone {
            return;
        }
        // A single loop, so the products are compiled only once.
        let (mut row, mut key, end) = (0, seen.start, seen.end.min(pairs.count));
        let mut next = None;
        loop {
            let products = if let Some(products) = next.take() {
                products
            } else if row < rows {
                row += ROWS;
                pairs.of_queries(row - ROWS..rows.min(row))
            } else if key < end {
                key += ROWS;
                let [first, second] = pairs.of_keys(key - ROWS..end.min(key));
                next = Some(second);
                first
            } else {
                return;
            };
            products.add::<S, BF16>();
        }
    }
}

entry_points! {
    /// Gradients of a block, per level.
    mod entries: differentiate<; const BF16: bool>(pairs: &Pairs<'_>) -> ();
}

pub(super) type Entry = unsafe fn(&Pairs<'_>);

pub(super) fn entry(level: Level, is_bf16: bool) -> Entry {
    if is_bf16 {
        entries::at::<true>(level).unwrap_or(entries::portable::entry_portable::<true>)
    } else {
        entries::at::<false>(level).unwrap_or(entries::portable::entry_portable::<false>)
    }
}

/// The rows of dst and of its gradient, and the results.
pub(super) struct Deltas {
    pub(super) dst: Matrix,
    pub(super) diff_dst: Matrix,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) logarithms: *const f32,
    /// The logit of the sink; -Inf without one.
    pub(super) sink: f32,
    /// The sum of `diff_dst * dst` of each row, and that sum times the weight of the sink.
    pub(super) deltas: *mut f32,
    pub(super) of_sink: *mut f32,
}

/// The factors of a row's terms.
struct Factors(*const f32, *const f32);

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd> Fold<S, 1> for Factors {
    #[inline(always)]
    unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, 1> {
        unsafe {
            Terms::products([(width.load::<S>(self.0.add(i)), width.load::<S>(self.1.add(i)))])
        }
    }
}

/// # Safety
/// As [`differentiate`].
#[inline(always)]
unsafe fn sum_rows<S: Simd>(job: &Deltas) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for row in 0..job.rows {
            let products = Factors(job.diff_dst.at(row, 0), job.dst.at(row, 0));
            let delta = fold::<S, 1, _>(job.cols, &products).products[0] as f32;
            job.deltas.add(row).write(delta);
            // The logarithm of a row that sees neither keys nor a sink is -Inf, too.
            let mut of_sink = 0.0;
            if job.sink != f32::NEG_INFINITY {
                let distance = S::splat(job.sink - *job.logarithms.add(row));
                of_sink = math::exp(Lanes::<S>::new(distance)).largest() * delta;
            }
            job.of_sink.add(row).write(of_sink);
        }
    }
}

entry_points! {
    /// Sums of rows, per level.
    mod delta_entries: sum_rows<>(job: &Deltas) -> ();
}

pub(super) type DeltaEntry = unsafe fn(&Deltas);

pub(super) fn delta_entry(level: Level) -> DeltaEntry {
    delta_entries::at(level).unwrap_or(delta_entries::portable::entry_portable)
}

/// Rows that are multiplied by a factor.
pub(super) struct Scaled {
    pub(super) matrix: Matrix,
    pub(super) rows: usize,
    pub(super) factor: f32,
}

/// # Safety
/// As [`differentiate`].
#[inline(always)]
unsafe fn scale<S: Simd>(job: &Scaled) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut at = 0;
        while at < job.rows * job.matrix.step {
            let place = job.matrix.start.add(at);
            S::store(place, S::mul(S::load(place), S::splat(job.factor)));
            at += LANES;
        }
    }
}

entry_points! {
    /// Scaling, per level.
    mod scale_entries: scale<>(job: &Scaled) -> ();
}

pub(super) type ScaleEntry = unsafe fn(&Scaled);

pub(super) fn scale_entry(level: Level) -> ScaleEntry {
    scale_entries::at(level).unwrap_or(scale_entries::portable::entry_portable)
}
