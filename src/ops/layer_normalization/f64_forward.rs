//! Forward in f64. It computes all rows of a problem with an f64 tensor, and the rows that `forward` cannot: those for
//! which f32 is not accurate enough (squares overflow or vanish, or the mean is too large to subtract) and those that
//! need a second pass.
//!
//! Such rows are rare, so one function per level serves all types and flags and looks them up at run time. Rows of f64
//! have another.

use super::job::{Forward, StatisticsUse};
use super::row::two_pass;
use crate::heap::LINE;
use crate::rows::row_lanes::Normalizers;
use crate::rows::statistics::{NEAR, Statistics, reciprocal};
use crate::simd::{
    BLOCK, Element, F64, LANES, Level, Map, Number, Runtime, Simd, UpTo, WideElement, Width,
    entry_points, map, unroll,
};
use crate::tensor::DataType;
use std::ptr::null;

/// Two f64 terms per element.
pub(super) trait TwoTerms<S: Simd> {
    /// # Safety
    /// Elements `i` to `i + n - 1` exist; `n` is 16 for a full vector.
    unsafe fn terms(&self, i: usize, width: UpTo) -> [S::F64x16; 2];
}

/// The sums of a row's terms, each in the order of a fold. Prefetches `next`, a row of the same length or null.
///
/// # Safety
/// As [`fold`](crate::simd::fold).
#[inline(always)]
pub(super) unsafe fn totals<S: Simd, T: TwoTerms<S>>(
    cols: usize,
    terms: &T,
    next: *const u8,
) -> [f64; 2] {
    let mut totals = [0.0; 2];
    // SAFETY: guaranteed by the caller.
    unsafe {
        for block in (0..cols).step_by(BLOCK) {
            let end = cols.min(block + BLOCK);
            let mut lanes = [S::wide_zero(); 2];
            let mut i = block;
            while i < end {
                let n = LANES.min(end - i);
                if !next.is_null() {
                    for line in (0..size_of::<[f64; LANES]>()).step_by(LINE) {
                        S::prefetch(next.wrapping_add(i * size_of::<f64>() + line));
                    }
                }
                let terms = terms.terms(i, UpTo(n));
                unroll!(k in 2, {
                    let term = if n == LANES { terms[k] } else { S::wide_first_n(terms[k], n) };
                    lanes[k] = S::wide_add(lanes[k], term);
                });
                i += LANES;
            }
            unroll!(k in 2, {
                totals[k] += S::wide_sum(lanes[k]);
            });
        }
    }
    totals
}

/// The deviations of a row from a value, and their squares.
struct Deviations<S: Simd, E> {
    element: E,
    src: *const u8,
    about: S::F64x16,
}

impl<S: Simd, E: WideElement> TwoTerms<S> for Deviations<S, E> {
    #[inline(always)]
    unsafe fn terms(&self, i: usize, width: UpTo) -> [S::F64x16; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let d = S::wide_sub(self.element.get::<S>(self.src, i, width), self.about);
            [d, S::wide_mul(d, d)]
        }
    }
}

/// A vector of parameters; `neutral` if the pointer is null.
///
/// # Safety
/// Its elements exist from `i` on unless the pointer is null, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn parameter_or<S: Simd>(
    neutral: f32,
    p: *const f32,
    i: usize,
    width: impl Width,
) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe { if p.is_null() { S::splat(neutral) } else { width.load::<S>(p.add(i)) } }
}

/// The statistics of a row. The sums are about the mean of the first vector; if that is far from the row's mean, the
/// squares are summed again about the mean. Prefetches `next`, a row of the same length or null.
///
/// # Safety
/// There are `cols` elements, at least one, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn statistics<S: Simd, E: WideElement>(
    element: E,
    src: *const u8,
    cols: usize,
    rms: bool,
    next: *const u8,
) -> Statistics {
    let (n, first) = (cols as f64, cols.min(LANES));
    // A loop, so that a kernel has the sums once. The first pass is the mean of the first vector, which RMS skips.
    let (mut pass, mut about) = (usize::from(rms), 0.0);
    loop {
        let (cols, next) = match pass {
            0 => (first, null()),
            1 => (cols, next),
            _ => (cols, null()),
        };
        // SAFETY: guaranteed by the caller.
        let [sum, squares] = unsafe {
            let deviations = Deviations::<S, E> { element, src, about: S::wide_splat(about) };
            totals::<S, _>(cols, &deviations, next)
        };
        match pass {
            0 => about = sum / first as f64,
            1 if rms => return Statistics { mean: 0.0, variance: squares / n },
            1 => {
                let (offset, mean_square) = (sum / n, squares / n);
                let (mean, square) = (about + offset, offset * offset);
                if square <= mean_square * NEAR {
                    return Statistics { mean, variance: mean_square - square };
                }
                about = mean;
            }
            _ => return Statistics { mean: about, variance: squares / n },
        }
        pass += 1;
    }
}

/// `(x - mean) * r`, then scale and shift.
struct Normalize<'a, S: Simd, E> {
    job: &'a Forward<'a>,
    src_type: E,
    dst_type: E,
    src: *const u8,
    dst: *mut u8,
    mean: S::F64x16,
    r: S::F64x16,
    /// Whether dst is stored non-temporally.
    streams: bool,
}

impl<S: Simd, E: WideElement> Map<S> for Normalize<'_, S, E> {
    const UNROLL: usize = 2;

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        let job = self.job;
        // SAFETY: guaranteed by the caller; scale and shift are as long as a row.
        unsafe {
            let x = self.src_type.get::<S>(self.src, i, width);
            let xhat = S::wide_mul(S::wide_sub(x, self.mean), self.r);
            let scale = S::widen(parameter_or::<S>(1.0, job.scale, i, width));
            let shift = S::widen(parameter_or::<S>(-0.0, job.shift, i, width));
            let value = S::wide_fma(xhat, scale, shift);
            if self.streams && width.n() == LANES {
                self.dst_type.stream::<S>(self.dst, i, value);
            } else {
                self.dst_type.put::<S>(self.dst, i, value, width);
            }
        }
    }
}

/// `(x - mean) * r`, then scale and shift, with the f32 roundings of `forward`.
struct F32Normalize<'a> {
    job: &'a Forward<'a>,
    src: *const u8,
    dst: *mut u8,
    high: f32,
    low: f32,
    r: f32,
}

impl<'a> F32Normalize<'a> {
    #[inline(always)]
    fn new(job: &'a Forward<'a>, src: *const u8, dst: *mut u8, found: &Statistics) -> Self {
        // SAFETY: scalar code needs no instruction set.
        let Normalizers { high, low, r } =
            unsafe { Normalizers::<f64>::new::<false>(found.mean, found.variance, job.epsilon) };
        Self { job, src, dst, high, low, r }
    }
}

impl<S: Simd> Map<S> for F32Normalize<'_> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        let job = self.job;
        // SAFETY: guaranteed by the caller; scale and shift are as long as a row.
        unsafe {
            let x = width.load_as::<S, Runtime>(Element::of(job.src_type), self.src, i);
            let r = S::splat(self.r);
            let xhat = if job.rms {
                S::mul(x, r)
            } else {
                S::fma(S::sub(x, S::splat(self.high)), r, S::splat(self.low))
            };
            let scale = parameter_or::<S>(1.0, job.scale, i, width);
            let shift = parameter_or::<S>(-0.0, job.shift, i, width);
            let value = S::fma(xhat, scale, shift);
            let element = Runtime::of(job.dst_type).scaled(job.factors).with_post_ops(job.post_ops);
            width.store_as::<S, _>(element, self.dst, i, value);
        }
    }
}

/// Forward over one row.
///
/// # Safety
/// The row exists and belongs to this thread, `cols` is not 0, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn forward_row<S: Simd, E: WideElement>(job: &Forward<'_>, row: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let src = job.src.wrapping_add(job.src_rows.offset(row) * job.src_type.size());
        let dst = job.dst.wrapping_add(job.dst_rows.offset(row) * job.dst_type.size());
        let found = if job.statistics == StatisticsUse::Given {
            let (mean, variance) = job.given_values(row);
            Statistics { mean: f64::from(mean), variance: f64::from(variance) }
        } else {
            if const { !E::DOUBLE } && !job.has_f64() {
                let element = Element::of(job.src_type);
                let in_f32 = two_pass::<S, Runtime>(element, src, job.stat_cols, job.rms);
                if let Some(found) = in_f32 {
                    job.write(row, &found);
                    map::<S, _>(job.cols, &F32Normalize::new(job, src, dst, &found));
                    return;
                }
            }
            let next = if job.prefetches {
                job.src.wrapping_add(job.src_rows.offset(row + 1) * job.src_type.size())
            } else {
                null()
            };
            statistics::<S, _>(E::of(job.src_type), src, job.stat_cols, job.rms, next)
        };
        job.write(row, &found);
        let mean = S::wide_splat(found.mean);
        let r = S::wide_splat(reciprocal(found.variance, job.epsilon));
        let src_type = E::of(job.src_type);
        let dst_type = E::of(job.dst_type).scaled(job.factors).with_post_ops(job.post_ops);
        let dst_type = dst_type.rounded_again(job.rounded_again);
        let streams = job.streams && dst_type.streams(dst);
        map(job.cols, &Normalize::<S, _> { job, src_type, dst_type, src, dst, mean, r, streams });
    }
}

/// Forward over rows.
///
/// # Safety
/// As [`forward_row`].
#[inline(always)]
unsafe fn forward_rows<S: Simd, E: WideElement>(job: &Forward<'_>, first: usize, last: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for row in first..last {
            forward_row::<S, E>(job, row);
        }
        if job.streams {
            S::stream_fence();
        }
    }
}

entry_points! {
    /// Forward in f64, per level.
    mod entries: forward_rows<E: WideElement>(
        job: &Forward<'_>, first: usize, last: usize
    ) -> ();
}

/// Runs rows from the first index to before the second.
pub(super) type Entry = unsafe fn(&Forward<'_>, usize, usize);

/// The entry for types of src and dst.
pub(super) fn entry(level: Level, src: DataType, dst: DataType) -> Entry {
    let entry = match (src, dst) {
        (DataType::F64, DataType::F64) => entries::at::<F64>(level),
        _ => entries::at::<Number>(level),
    };
    entry.unwrap_or(entries::portable::entry_portable::<Number>)
}
