//! The rules of [`statistics`](super::statistics) for one, four or sixteen rows at once, one row per lane.
//!
//! Kernels for long rows compute the scalars of a row as `f64`. Those for short rows use the lanes of a vector, because
//! square roots and divisions would dominate. Each rule is written once, generic over [`RowLanes`], so all give the
//! same bits.

use super::statistics::{
    LARGEST_MEAN, LARGEST_MEAN_SQUARE, NEAR, SMALLEST_MEAN_SQUARE, per_col, reciprocal,
};
use crate::simd::{FOUR, LANES, Quad, Simd};

/// One f64 per row.
///
/// # Safety
/// Every function needs the instruction set of the vectors, and stores need elements of any alignment.
pub(crate) trait RowLanes: Copy {
    /// How many rows.
    const ROWS: usize;
    /// One f32 per row.
    type Rounded: Copy;

    unsafe fn splat(x: f64) -> Self;
    unsafe fn add(a: Self, b: Self) -> Self;
    unsafe fn sub(a: Self, b: Self) -> Self;
    unsafe fn mul(a: Self, b: Self) -> Self;
    /// `1/sqrt(v)`. For 0, `f64` returns 0; vectors never get 0.
    unsafe fn reciprocal_root(v: Self) -> Self;
    /// Rounded to f32, to nearest even.
    unsafe fn round(v: Self) -> Self::Rounded;
    unsafe fn widen(v: Self::Rounded) -> Self;
    /// Stores [`ROWS`](RowLanes::ROWS) f32, rounded as by [`round`](RowLanes::round).
    unsafe fn store_rounded(p: *mut f32, v: Self);
    /// Whether `low <= v <= high` in all lanes; false for NaN.
    unsafe fn all_between(v: Self, low: f64, high: f64) -> bool;
    /// Whether non-negative numbers are at most `bound` in all lanes; false for NaN.
    unsafe fn all_at_most(v: Self, bound: Self) -> bool;
}

/// [`per_col`] of each row.
///
/// # Safety
/// As [`RowLanes`].
#[inline(always)]
pub(crate) unsafe fn per_col_of<L: RowLanes>(sums: L, cols: usize) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe { L::mul(sums, L::splat(per_col(1.0, cols))) }
}

/// The variances from the mean squares about `about`, which is near the mean and unused with RMS, and whether f32 sums
/// are accurate enough for all of them. If not, a row needs a second pass or f64.
///
/// # Safety
/// As [`RowLanes`].
#[inline(always)]
pub(crate) unsafe fn variance_about<L: RowLanes, const RMS: bool>(
    mean_square: L,
    mean: L,
    about: L,
) -> (L, bool) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let in_range = L::all_between(mean_square, SMALLEST_MEAN_SQUARE, LARGEST_MEAN_SQUARE);
        if RMS {
            return (mean_square, in_range);
        }
        let offset = L::sub(mean, about);
        let square = L::mul(offset, offset);
        let near = L::all_at_most(square, L::mul(mean_square, L::splat(NEAR)));
        (L::sub(mean_square, square), in_range & near)
    }
}

/// The scalars that normalize rows: `xhat = (x - high)*r + low`.
pub(crate) struct Normalizers<L: RowLanes> {
    /// The mean, rounded.
    pub(crate) high: L::Rounded,
    /// `(high - mean)*r`. `x - high` is 0 or at least as large as the rounding error of `high`, so the rounding of
    /// `low` is never magnified.
    pub(crate) low: L::Rounded,
    /// `1/sqrt(variance + epsilon)`.
    pub(crate) r: L::Rounded,
}

impl<L: RowLanes> Normalizers<L> {
    /// `high` and `low` are 0 with RMS.
    ///
    /// # Safety
    /// As [`RowLanes`].
    #[inline(always)]
    pub(crate) unsafe fn new<const RMS: bool>(mean: L, variance: L, epsilon: f64) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let r = L::round(L::reciprocal_root(L::add(variance, L::splat(epsilon))));
            if RMS {
                let zero = L::round(L::splat(0.0));
                return Self { high: zero, low: zero, r };
            }
            let high = L::round(mean);
            let low = L::mul(L::sub(L::widen(high), mean), L::widen(r));
            Self { high, low: L::round(low), r }
        }
    }
}

/// The `shift` and `slope` of rows backward: `diff_src = r*d + shift - xhat*slope` with `shift = -r*sum(d)/cols` and
/// `slope = r*sum(d*xhat)/cols`.
///
/// # Safety
/// As [`RowLanes`].
#[inline(always)]
pub(crate) unsafe fn slopes<L: RowLanes>(
    r: L::Rounded,
    cols: usize,
    [d, d_xhat]: [L; 2],
) -> [L::Rounded; 2] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let per_col = per_col_of(L::widen(r), cols);
        let shift = L::mul(L::mul(per_col, d), L::splat(-1.0));
        [L::round(shift), L::round(L::mul(per_col, d_xhat))]
    }
}

/// Whether f32 is accurate enough for all given statistics: no variance overflowed or vanished, and every mean can be
/// subtracted. False for NaN; the rule for one row then decides.
///
/// # Safety
/// As [`RowLanes`].
#[inline(always)]
pub(crate) unsafe fn given_in_range<L: RowLanes, const RMS: bool>(mean: L, variance: L) -> bool {
    let largest = f64::from(LARGEST_MEAN.next_down());
    // SAFETY: guaranteed by the caller.
    unsafe {
        let normal = L::all_between(variance, f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX));
        normal && (RMS || L::all_between(mean, -largest, largest))
    }
}

impl RowLanes for f64 {
    const ROWS: usize = 1;
    type Rounded = f32;

    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        x
    }
    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        a + b
    }
    #[inline(always)]
    unsafe fn sub(a: Self, b: Self) -> Self {
        a - b
    }
    #[inline(always)]
    unsafe fn mul(a: Self, b: Self) -> Self {
        a * b
    }
    #[inline(always)]
    unsafe fn reciprocal_root(v: Self) -> Self {
        reciprocal(v, 0.0)
    }
    #[inline(always)]
    unsafe fn round(v: Self) -> f32 {
        v as f32
    }
    #[inline(always)]
    unsafe fn widen(v: f32) -> Self {
        v.into()
    }
    #[inline(always)]
    unsafe fn store_rounded(p: *mut f32, v: Self) {
        // SAFETY: guaranteed by the caller.
        unsafe { p.write_unaligned(v as f32) }
    }
    #[inline(always)]
    unsafe fn all_between(v: Self, low: f64, high: f64) -> bool {
        (low..=high).contains(&v)
    }
    #[inline(always)]
    unsafe fn all_at_most(v: Self, bound: Self) -> bool {
        v <= bound
    }
}

/// Four rows.
#[derive(Clone, Copy)]
pub(crate) struct Four<S: Simd>(pub(crate) S::F64x4);

// SAFETY of every block below: the trait's contract.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd> RowLanes for Four<S> {
    const ROWS: usize = FOUR;
    type Rounded = [f32; FOUR];

    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        unsafe { Self(S::F64x4::splat(x)) }
    }
    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        unsafe { Self(S::F64x4::add(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self, b: Self) -> Self {
        unsafe { Self(S::F64x4::sub(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self, b: Self) -> Self {
        unsafe { Self(S::F64x4::mul(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn reciprocal_root(v: Self) -> Self {
        unsafe { Self(S::F64x4::div(S::F64x4::splat(1.0), S::F64x4::sqrt(v.0))) }
    }
    #[inline(always)]
    unsafe fn round(v: Self) -> Self::Rounded {
        let mut rounded = [0.0; FOUR];
        unsafe { Self::store_rounded(rounded.as_mut_ptr(), v) };
        rounded
    }
    #[inline(always)]
    unsafe fn widen(v: Self::Rounded) -> Self {
        unsafe { Self(S::F64x4::load_widened(v.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn store_rounded(p: *mut f32, v: Self) {
        unsafe { S::F64x4::store_narrowed(p, v.0) }
    }
    #[inline(always)]
    unsafe fn all_between(v: Self, low: f64, high: f64) -> bool {
        unsafe { S::F64x4::all_between(v.0, S::F64x4::splat(low), S::F64x4::splat(high)) }
    }
    #[inline(always)]
    unsafe fn all_at_most(v: Self, bound: Self) -> bool {
        unsafe { S::F64x4::all_between(v.0, S::F64x4::splat(0.0), bound.0) }
    }
}

/// Sixteen rows.
#[derive(Clone, Copy)]
pub(crate) struct Sixteen<S: Simd>(pub(crate) S::F64x16);

// SAFETY of every block below: the trait's contract.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd> RowLanes for Sixteen<S> {
    const ROWS: usize = LANES;
    type Rounded = S::F32x16;

    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        unsafe { Self(S::wide_splat(x)) }
    }
    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        unsafe { Self(S::wide_add(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self, b: Self) -> Self {
        unsafe { Self(S::wide_sub(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self, b: Self) -> Self {
        unsafe { Self(S::wide_mul(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn reciprocal_root(v: Self) -> Self {
        unsafe { Self(S::wide_div(S::wide_splat(1.0), S::wide_sqrt(v.0))) }
    }
    #[inline(always)]
    unsafe fn round(v: Self) -> S::F32x16 {
        unsafe { S::narrow(v.0) }
    }
    #[inline(always)]
    unsafe fn widen(v: S::F32x16) -> Self {
        unsafe { Self(S::widen(v)) }
    }
    #[inline(always)]
    unsafe fn store_rounded(p: *mut f32, v: Self) {
        unsafe { S::store(p, Self::round(v)) }
    }
    #[inline(always)]
    unsafe fn all_between(v: Self, low: f64, high: f64) -> bool {
        unsafe { S::wide_all_between(v.0, low, high) }
    }
    #[inline(always)]
    unsafe fn all_at_most(v: Self, bound: Self) -> bool {
        unsafe { S::wide_all_between(S::wide_sub(bound.0, v.0), 0.0, f64::MAX) }
    }
}

#[cfg(test)]
mod tests;
