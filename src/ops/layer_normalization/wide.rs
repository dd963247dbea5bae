//! Rows that the kernels leave: those that f32 does not carry, in f64 (squares that overflow or vanish, means
//! too large to subtract), and those whose statistics take another sweep.
//!
//! Such rows are rare, so one function per direction and level looks types and flags up as it goes.
//! The formulas are those of `forward` and `backward`.

use super::columns::ColumnSums;
use super::forward::low_term;
use super::job::{Backward, Forward, Given, StatisticsUse};
use super::row::{Statistics, again, reciprocal};
use crate::simd::{
    Element, Fold, LANES, Level, Map, Runtime, Simd, Term, Terms, add_wide, entry_points, fold, map,
};

/// A fold in f64 alone: one term per vector, whole or not.
trait WideTerms<S: Simd> {
    /// # Safety
    /// Elements `i` to `i + n - 1` are there; `n` is 16 for a whole vector.
    unsafe fn term(&self, i: usize, n: usize) -> S::D;
}

/// The fold of such terms.
struct InWide<'a, T>(&'a T);

impl<S: Simd, T: WideTerms<S>> Fold<S, 0> for InWide<'_, T> {
    const TERM: Term = Term::Wide;

    #[inline(always)]
    unsafe fn terms(&self, i: usize) -> Terms<S, 0> {
        // SAFETY: the caller's.
        unsafe { self.terms_n(i, LANES) }
    }
    #[inline(always)]
    unsafe fn terms_n(&self, i: usize, n: usize) -> Terms<S, 0> {
        // SAFETY: the caller's.
        unsafe { Terms::with_wide([], self.0.term(i, n)) }
    }
}

/// The sum of a row's terms.
///
/// # Safety
/// As [`fold`].
#[inline(always)]
unsafe fn sum<S: Simd, T: WideTerms<S>>(cols: usize, terms: &T) -> f64 {
    // SAFETY: the caller's.
    unsafe { fold::<S, 0, _>(cols, &InWide(terms)).terms }
}

/// The values of a row.
struct Values {
    element: Runtime,
    src: *const u8,
}

impl<S: Simd> WideTerms<S> for Values {
    #[inline(always)]
    unsafe fn term(&self, i: usize, n: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe { load_wide::<S>(self.element, self.src, i, n) }
    }
}

/// The squares of a row's distances from `mean`.
struct Squares<S: Simd> {
    element: Runtime,
    src: *const u8,
    mean: S::D,
}

impl<S: Simd> WideTerms<S> for Squares<S> {
    #[inline(always)]
    unsafe fn term(&self, i: usize, n: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe {
            let d = S::wide_sub(load_wide::<S>(self.element, self.src, i, n), self.mean);
            S::wide_mul(d, d)
        }
    }
}

/// `n` elements, 16 for a whole vector.
///
/// # Safety
/// They are there; the instruction set of `S` is too.
#[inline(always)]
unsafe fn load_wide<S: Simd>(element: Runtime, p: *const u8, i: usize, n: usize) -> S::D {
    // SAFETY: the caller's.
    unsafe { S::widen(load_lanes::<S>(element, p, i, n)) }
}

/// The same in f32.
///
/// # Safety
/// As [`load_wide`].
#[inline(always)]
unsafe fn load_lanes<S: Simd>(element: Runtime, p: *const u8, i: usize, n: usize) -> S::F {
    // SAFETY: the caller's.
    unsafe { if n == LANES { element.load::<S>(p, i) } else { element.load_n::<S>(p, i, n) } }
}

/// `n` parameters, 16 for a whole vector.
///
/// # Safety
/// As [`load_wide`].
#[inline(always)]
unsafe fn load_parameter<S: Simd>(p: *const f32, i: usize, n: usize) -> S::D {
    // SAFETY: the caller's.
    unsafe { S::widen(load_f32::<S>(p, i, n)) }
}

/// The same in f32.
///
/// # Safety
/// As [`load_wide`].
#[inline(always)]
unsafe fn load_f32<S: Simd>(p: *const f32, i: usize, n: usize) -> S::F {
    // SAFETY: the caller's.
    unsafe { if n == LANES { S::load(p.add(i)) } else { S::load_n(p.add(i), n) } }
}

/// Rounds and writes `n` elements, 16 for a whole vector.
///
/// # Safety
/// As [`load_wide`].
#[inline(always)]
unsafe fn store_narrow<S: Simd>(element: Runtime, p: *mut u8, i: usize, v: S::D, n: usize) {
    // SAFETY: the caller's.
    unsafe {
        let v = S::narrow(v);
        if n == LANES { element.store::<S>(p, i, v) } else { element.store_n::<S>(p, i, v, n) }
    }
}

/// The statistics of a row.
///
/// # Safety
/// `cols` elements are there, at least one; the instruction set of `S` is too.
#[inline(always)]
unsafe fn statistics<S: Simd>(
    element: Runtime,
    src: *const u8,
    cols: usize,
    rms: bool,
) -> Statistics {
    // SAFETY: the caller's.
    unsafe {
        let n = cols as f64;
        let mean = if rms { 0.0 } else { sum::<S, _>(cols, &Values { element, src }) / n };
        let squares = Squares::<S> { element, src, mean: S::wide_splat(mean) };
        Statistics { mean, variance: sum::<S, _>(cols, &squares) / n }
    }
}

/// `(x - mean) * r`, then scale and shift.
struct Normalize<'a, S: Simd> {
    job: &'a Forward,
    src: *const u8,
    dst: *mut u8,
    mean: S::D,
    r: S::D,
}

impl<S: Simd> Map<S> for Normalize<'_, S> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { self.apply_n(i, LANES) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        let job = self.job;
        // SAFETY: the caller's; scale and shift are null or as long as a row.
        unsafe {
            let x = load_wide::<S>(<Runtime>::of(job.src_type), self.src, i, n);
            let xhat = S::wide_mul(S::wide_sub(x, self.mean), self.r);
            let value = match (job.scale.is_null(), job.shift.is_null()) {
                (true, true) => xhat,
                (false, true) => S::wide_mul(xhat, load_parameter::<S>(job.scale, i, n)),
                (true, false) => S::wide_add(xhat, load_parameter::<S>(job.shift, i, n)),
                (false, false) => {
                    let scale = load_parameter::<S>(job.scale, i, n);
                    S::wide_fma(xhat, scale, load_parameter::<S>(job.shift, i, n))
                }
            };
            store_narrow::<S>(<Runtime>::of(job.dst_type), self.dst, i, value, n);
        }
    }
}

/// The same in f32, with the roundings of `forward`.
struct NarrowNormalize<'a> {
    job: &'a Forward,
    src: *const u8,
    dst: *mut u8,
    high: f32,
    low: f32,
    r: f32,
}

impl<'a> NarrowNormalize<'a> {
    #[inline(always)]
    fn new(job: &'a Forward, src: *const u8, dst: *mut u8, found: &Statistics) -> Self {
        let high = found.mean as f32;
        let r = reciprocal(found.variance, job.epsilon) as f32;
        Self { job, src, dst, high, low: low_term(found.mean, high, r), r }
    }
}

impl<S: Simd> Map<S> for NarrowNormalize<'_> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { Map::<S>::apply_n(self, i, LANES) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        let job = self.job;
        // SAFETY: the caller's; scale and shift are null or as long as a row.
        unsafe {
            let x = load_lanes::<S>(<Runtime>::of(job.src_type), self.src, i, n);
            let r = S::splat(self.r);
            let xhat = if job.rms {
                S::mul(x, r)
            } else {
                S::fma(S::sub(x, S::splat(self.high)), r, S::splat(self.low))
            };
            let value = match (job.scale.is_null(), job.shift.is_null()) {
                (true, true) => xhat,
                (false, true) => S::mul(xhat, load_f32::<S>(job.scale, i, n)),
                (true, false) => S::add(xhat, load_f32::<S>(job.shift, i, n)),
                (false, false) => {
                    S::fma(xhat, load_f32::<S>(job.scale, i, n), load_f32::<S>(job.shift, i, n))
                }
            };
            let element = <Runtime>::of(job.dst_type);
            if n == LANES {
                element.store::<S>(self.dst, i, value);
            } else {
                element.store_n::<S>(self.dst, i, value, n);
            }
        }
    }
}

/// One row forward.
///
/// # Safety
/// The row is there and this thread's; `cols` is not 0; the instruction set of `S` is there.
#[inline(always)]
unsafe fn forward_row<S: Simd>(job: &Forward, row: usize) {
    // SAFETY: the caller's.
    unsafe {
        let src = job.src.add(job.src_rows.offset(row) * job.src_type.size());
        let dst = job.dst.add(job.dst_rows.offset(row) * job.dst_type.size());
        let element = <Runtime>::of(job.src_type);
        let found = if job.statistics == StatisticsUse::Given {
            let (mean, variance) = job.given_values(row);
            Statistics { mean: f64::from(mean), variance: f64::from(variance) }
        } else {
            let narrow = if job.rms {
                again::<S, Runtime, true>(element, src, job.cols)
            } else {
                again::<S, Runtime, false>(element, src, job.cols)
            };
            if let Some(found) = narrow {
                job.write(row, &found);
                map::<S, _>(job.cols, &NarrowNormalize::new(job, src, dst, &found));
                return;
            }
            statistics::<S>(element, src, job.cols, job.rms)
        };
        job.write(row, &found);
        let mean = S::wide_splat(found.mean);
        let r = S::wide_splat(reciprocal(found.variance, job.epsilon));
        map(job.cols, &Normalize::<S> { job, src, dst, mean, r });
    }
}

/// A row backward. As a fold it sums `d`, or `d*xhat`.
struct Gradient<'a, S: Simd> {
    job: &'a Backward,
    src: *const u8,
    diff_dst: *const u8,
    diff_src: *mut u8,
    /// The block's sums; null for those that are not asked for.
    diff_scale: *mut f64,
    diff_shift: *mut f64,
    mean: S::D,
    r: S::D,
    shift: S::D,
    slope: S::D,
    with_xhat: bool,
}

impl<S: Simd> Gradient<'_, S> {
    /// `diff_dst`, `d` and `xhat` of a vector.
    ///
    /// # Safety
    /// As [`Map`].
    #[inline(always)]
    unsafe fn load(&self, i: usize, n: usize) -> (S::D, S::D, S::D) {
        let job = self.job;
        // SAFETY: the caller's; scale is null or as long as a row.
        unsafe {
            let x = load_wide::<S>(<Runtime>::of(job.src_type), self.src, i, n);
            let dd = load_wide::<S>(<Runtime>::of(job.diff_dst_type), self.diff_dst, i, n);
            let xhat = S::wide_mul(S::wide_sub(x, self.mean), self.r);
            if job.scale.is_null() {
                return (dd, dd, xhat);
            }
            (dd, S::wide_mul(load_parameter::<S>(job.scale, i, n), dd), xhat)
        }
    }
}

impl<S: Simd> WideTerms<S> for Gradient<'_, S> {
    #[inline(always)]
    unsafe fn term(&self, i: usize, n: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe {
            let (_, d, xhat) = self.load(i, n);
            if self.with_xhat { S::wide_mul(d, xhat) } else { d }
        }
    }
}

impl<S: Simd> Map<S> for Gradient<'_, S> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { self.apply_n(i, LANES) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        let job = self.job;
        // SAFETY: the caller's; sums are null or as long as a row.
        unsafe {
            let (dd, d, xhat) = self.load(i, n);
            let scaled = S::wide_mul(d, self.r);
            let bend = S::wide_mul(xhat, self.slope);
            let value = match (job.global_stats, job.rms) {
                (true, _) => scaled,
                (false, true) => S::wide_sub(scaled, bend),
                (false, false) => S::wide_sub(S::wide_sub(scaled, self.shift), bend),
            };
            store_narrow::<S>(<Runtime>::of(job.diff_src_type), self.diff_src, i, value, n);
            if !self.diff_scale.is_null() {
                add_wide::<S>(self.diff_scale.add(i), S::wide_mul(dd, xhat), n);
            }
            if !self.diff_shift.is_null() {
                add_wide::<S>(self.diff_shift.add(i), dd, n);
            }
        }
    }
}

/// One row backward.
///
/// # Safety
/// The row and its block's sums are there and this thread's; `cols` is not 0; the instruction set of
/// `S` is there.
#[inline(always)]
unsafe fn backward_row<S: Simd>(job: &Backward, row: usize, sums: *mut f64) {
    let cols = job.cols;
    // SAFETY: the caller's.
    unsafe {
        let src = job.src.add(job.src_rows.offset(row) * job.src_type.size());
        let found = match job.given(row) {
            Given::Narrow(found) | Given::Wide(found) => found,
            Given::Anew => statistics::<S>(<Runtime>::of(job.src_type), src, cols, job.rms),
        };
        let r = reciprocal(found.variance, job.epsilon);
        let per_col = r / cols as f64;
        let ColumnSums { diff_scale, diff_shift, .. } = job.sums(sums);
        let mut gradient = Gradient::<S> {
            job,
            src,
            diff_dst: job.diff_dst.add(job.diff_dst_rows.offset(row) * job.diff_dst_type.size()),
            diff_src: job.diff_src.add(job.diff_src_rows.offset(row) * job.diff_src_type.size()),
            diff_scale,
            diff_shift,
            mean: S::wide_splat(found.mean),
            r: S::wide_splat(r),
            shift: S::wide_splat(0.0),
            slope: S::wide_splat(0.0),
            with_xhat: false,
        };
        if !job.global_stats {
            if !job.rms {
                gradient.shift = S::wide_splat(per_col * sum::<S, _>(cols, &gradient));
            }
            gradient.with_xhat = true;
            gradient.slope = S::wide_splat(per_col * sum::<S, _>(cols, &gradient));
        }
        map(cols, &gradient);
    }
}

entry_points! {
    /// A row forward, per level.
    mod forward_entries: forward_row<>(job: &Forward, row: usize) -> ();
}

entry_points! {
    /// A row backward, per level.
    mod backward_entries: backward_row<>(
        job: &Backward, row: usize, sums: *mut f64
    ) -> ();
}

/// Runs one row of a job.
pub(super) type ForwardEntry = unsafe fn(&Forward, usize);
/// Runs one row of a job into its block's column sums.
pub(super) type BackwardEntry = unsafe fn(&Backward, usize, *mut f64);

pub(super) fn forward_entry(level: Level) -> ForwardEntry {
    forward_entries::at(level).unwrap_or(forward_entries::entry_portable)
}

pub(super) fn backward_entry(level: Level) -> BackwardEntry {
    backward_entries::at(level).unwrap_or(backward_entries::entry_portable)
}
