//! From dot products to scores, and from the scores of a block to weights.
//!
//! A score is computed in these steps, each rounded to f32: times the key's scale if keys are quantized; times scale;
//! `cap * tanh(s/cap)`; plus slope times distance; plus the mask. A masked key has the score -Inf. The weight of a key
//! is `exp(s - m)`, where m is the largest score of the block, and 0 below 2^-40. Weights are added in 16 lanes, key j
//! in lane j mod 16.

use super::BLOCK;
use super::mask::MaskRow;
use super::order::GROUP;
use super::problem::Scoring;
use super::scales::Scales;
use crate::simd::lanes::Lanes;
use crate::simd::{LANES, Simd, math, unroll};
use std::ops::Range;

/// A row of scores: a query of a head.
#[derive(Clone)]
pub(super) struct ScoreRow {
    /// The keys that the row sees by their positions.
    pub(super) keys: Range<usize>,
    /// The row also sees the keys below this index, which is at most the first of `keys`.
    pub(super) kept: usize,
    /// The position of the query.
    pub(super) position: i64,
    /// `None` if scores have no distance term.
    pub(super) slope: Option<f32>,
    pub(super) mask: MaskRow,
}

impl ScoreRow {
    /// The keys of a block, in whole vectors within a range, whose scores are just their dot products times scale. The
    /// block begins at `first`.
    #[inline(always)]
    pub(super) fn scaled_alone(
        &self,
        (scoring, scales): (&Scoring, Scales),
        first: usize,
        within: &Range<usize>,
    ) -> Range<usize> {
        let more = scoring.soft_cap > 0.0 || self.slope.is_some() || !self.mask.start.is_null();
        if more || !scales.keys.is_null() {
            return 0..0;
        }
        let start = self.keys.start.saturating_sub(first).next_multiple_of(LANES);
        let end = self.keys.end.saturating_sub(first) / LANES * LANES;
        start.max(within.start)..end.min(within.end)
    }
}

/// The keys of a block that at least one of the rows sees, rounded to whole groups and vectors.
#[inline(always)]
pub(super) fn seen(rows: &[ScoreRow], first_key: usize, count: usize) -> Range<usize> {
    let (mut first, mut end) = (BLOCK, 0);
    for row in rows {
        let from = row.keys.start.max(first_key);
        let to = row.keys.end.min(first_key + count);
        if from < to {
            first = first.min(from - first_key);
            end = end.max(to - first_key);
        }
        if first_key < row.kept {
            first = 0;
            end = end.max(count.min(row.kept - first_key));
        }
    }
    if first >= end { 0..0 } else { first / GROUP * GROUP..end.next_multiple_of(LANES) }
}

/// What a row keeps of the previous blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// The largest score.
    pub(super) max: f32,
    /// The sum of `exp(s - max)`.
    pub(super) sum: f32,
    /// The same without a sink, and the sum of `exp(s - max) * (s - max)`.
    pub(super) keys: f32,
    pub(super) moment: f32,
}

impl State {
    pub(super) const EMPTY: Self =
        Self { max: f32::NEG_INFINITY, sum: 0.0, keys: 0.0, moment: 0.0 };

    /// A sink acts as a block before all others.
    pub(super) fn of_sink(sink: f32) -> Self {
        Self { max: sink, sum: 1.0, ..Self::EMPTY }
    }

    /// Whether no key was seen. NaN counts as seen.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.sum == 0.0
    }

    /// The state joined with that of another block. The factors are those of the previous weights and of the block's.
    #[inline(always)]
    pub(super) fn joined(&self, block: &Self, max: f32, [before, after]: [f32; 2]) -> Self {
        let join = |a: f32, b: f32| b.mul_add(after, a * before);
        // A moment is relative to the maximum.
        let moved = |state: &Self, factor: f32| match factor {
            0.0 => 0.0,
            _ => state.keys.mul_add(state.max - max, state.moment),
        };
        Self {
            max,
            sum: join(self.sum, block.sum),
            keys: join(self.keys, block.keys),
            moment: join(moved(self, before), moved(block, after)),
        }
    }

    /// The logarithm of the sum of `exp(s)`.
    #[inline(always)]
    pub(super) fn logarithm(&self, log: f32) -> f32 {
        if self.is_empty() { f32::NEG_INFINITY } else { self.max + log }
    }

    /// The entropy of the weights of keys, with the logarithm of the sum.
    #[inline(always)]
    pub(super) fn entropy(&self, log: f32) -> f32 {
        if self.is_empty() { 0.0 } else { (self.keys.mul_add(log, -self.moment)) / self.sum }
    }
}

/// The lane numbers.
pub(super) const LANE: [f32; LANES] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

/// The lane numbers as integers, to which other bits are added.
const LANE_BITS: [f32; LANES] = {
    let mut bits = [0.0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = f32::from_bits(lane as u32);
        lane += 1;
    }
    bits
};

/// The scores of 16 keys from `key`, from their dot products, and the derivative of the soft cap.
///
/// # Safety
/// The mask has the keys that the row sees, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn scores<S: Simd>(
    scoring: &Scoring,
    row: &ScoreRow,
    key: usize,
    dots: Lanes<S>,
) -> (Lanes<S>, Option<Lanes<S>>) {
    let mut s = dots * scoring.scale;
    let mut slope = None;
    if scoring.soft_cap > 0.0 {
        let t = math::tanh(s / scoring.soft_cap);
        s = t * scoring.soft_cap;
        slope = Some(t.neg_mul_add(t, t.all(1.0)));
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        if let Some(slope) = row.slope {
            let first = (key as i64).wrapping_sub(row.position) as i32;
            let distance = Lanes::<S>::load(LANE_BITS.as_ptr(), LANES);
            let distance = distance.bits_add(f32::from_bits(first.cast_unsigned())).as_integer();
            s = s + distance * slope;
        }
        let seen = row.keys.start.max(key)..row.keys.end.min(key + LANES);
        let kept = row.kept.max(key).min(key + LANES);
        let end = if seen.is_empty() { kept } else { seen.end };
        let first = if kept > key { key } else { seen.start };
        if first >= end {
            return (s.all(f32::NEG_INFINITY), slope);
        }
        s = row.mask.applied(key, first..end, s);
        if seen.len() < LANES {
            let lane = Lanes::<S>::load(LANE.as_ptr(), LANES);
            let number = |of: usize| (of - key) as f32;
            let mut shown =
                lane.lt(number(seen.start.min(key + LANES))).select(f32::NEG_INFINITY, s);
            if kept > key {
                shown = lane.lt(number(kept)).select(s, shown);
            }
            s = lane.lt(number(end)).select(shown, f32::NEG_INFINITY);
        }
    }
    (s, slope)
}

/// f32 rounded to bf16.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn as_bf16<S: Simd>(v: Lanes<S>) -> Lanes<S> {
    // SAFETY: guaranteed by the caller.
    unsafe { Lanes::new(S::from_bf16(S::to_bf16(v.vector()))) }
}

/// Where the weights of a row go.
pub(super) trait Sink<S: Simd> {
    /// Stores the weights of the `N` vectors of keys from `at` on in the block.
    ///
    /// # Safety
    /// There is room for them, and the CPU supports the instruction set of `S`.
    unsafe fn store<const N: usize>(&self, at: usize, weights: [Lanes<S>; N]);
}

/// A row of f32, rounded to bf16 with `BF16`.
pub(super) struct Floats<const BF16: bool>(pub(super) *mut f32);

impl<S: Simd, const BF16: bool> Sink<S> for Floats<BF16> {
    #[inline(always)]
    unsafe fn store<const N: usize>(&self, at: usize, weights: [Lanes<S>; N]) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            unroll!(v in N, {
                let weights = if BF16 { as_bf16(weights[v]) } else { weights[v] };
                weights.store(self.0.add(at + v * LANES), LANES);
            });
        }
    }
}

/// The scores of a row in a block, and their largest. The weights of its vectors can be summed.
struct Weighing<'a, S: Simd, W> {
    scores: *const f32,
    /// The scales of the values, or null.
    scales: *const f32,
    /// What the weights are relative to.
    from: f32,
    sink: &'a W,
    sum: Lanes<S>,
    /// The sum of weights times relative scores, if there is one.
    moment: Option<Lanes<S>>,
}

impl<S: Simd, W: Sink<S>> Weighing<'_, S, W> {
    /// # Safety
    /// As [`weigh`].
    #[inline(always)]
    unsafe fn vectors<const N: usize>(&mut self, at: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut x = [self.sum; N];
            unroll!(v in N, {
                x[v] = Lanes::<S>::load(self.scores.add(at + v * LANES), LANES) - self.from;
            });
            let mut weights = math::weights(x);
            if let Some(moment) = &mut self.moment {
                unroll!(v in N, {
                    *moment = weights[v].mul_add(x[v].all(-30.0).max(x[v]), *moment);
                });
            }
            unroll!(v in N, {
                self.sum = self.sum + weights[v];
            });
            if !self.scales.is_null() {
                unroll!(v in N, {
                    let p = weights[v];
                    let scales = Lanes::<S>::load(self.scales.add(at + v * LANES), LANES);
                    // The scales of masked keys may be anything.
                    weights[v] = p.eq(0.0).select(p, p * scales);
                });
            }
            self.sink.store(at, weights);
        }
    }
}

/// Vectors of weights that are computed at once, if there are enough registers.
pub(super) const WEIGHED_AT_ONCE: usize = 4;

/// Turns the dot products of a row with the keys `first + within` of the block that begins at `first` into weights. The
/// range begins and ends at multiples of 16. After they are summed, weights are multiplied by the values' scales, if
/// any.
///
/// # Safety
/// There are [`BLOCK`] values; otherwise as [`scores`].
#[inline(always)]
pub(super) unsafe fn weigh<S: Simd, W: Sink<S>>(
    (scoring, scales): (&Scoring, Scales),
    row: &ScoreRow,
    (first, within): (usize, Range<usize>),
    (values, moments): (*mut f32, bool),
    sink: &W,
) -> State {
    debug_assert!(within.end <= BLOCK);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let zero = Lanes::<S>::new(S::zero());
        let mut largest = zero.all(f32::NEG_INFINITY);
        let scaled_alone = row.scaled_alone((scoring, scales), first, &within);
        let mut at = within.start;
        while at < within.end {
            if scaled_alone.contains(&at) {
                // The common case.
                while at < scaled_alone.end {
                    let s = Lanes::<S>::load(values.add(at), LANES) * scoring.scale;
                    s.store(values.add(at), LANES);
                    largest = s.max(largest);
                    at += LANES;
                }
                continue;
            }
            let mut dots = Lanes::<S>::load(values.add(at), LANES);
            if !scales.keys.is_null() {
                dots = dots * Lanes::<S>::load(scales.keys.add(at), LANES);
            }
            let (s, _) = scores(scoring, row, first + at, dots);
            s.store(values.add(at), LANES);
            largest = s.max(largest);
            at += LANES;
        }
        let max = largest.largest();
        // A row without a maximum has no scores other than -Inf and NaN.
        let from = if max == f32::NEG_INFINITY { 0.0 } else { max };
        let moment = moments.then_some(zero);
        let scales = scales.values;
        let mut weighing = Weighing { scores: values, scales, from, sink, sum: zero, moment };
        let mut at = within.start;
        if S::MANY_REGISTERS {
            while at + WEIGHED_AT_ONCE * LANES <= within.end {
                weighing.vectors::<WEIGHED_AT_ONCE>(at);
                at += WEIGHED_AT_ONCE * LANES;
            }
        }
        while at < within.end {
            weighing.vectors::<1>(at);
            at += LANES;
        }
        let sum = weighing.sum.total();
        let moment = if let Some(moment) = weighing.moment { moment.total() } else { 0.0 };
        State { max, sum, keys: sum, moment }
    }
}
