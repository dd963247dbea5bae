//! What both directions know of one row: its statistics, and when f32 does not carry them.

use crate::simd::{Element, Fold, Simd, WideFold, fold, fold_wide};

/// The statistics of a row, before rounding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statistics {
    /// 0 with RMS.
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// Below this mean square, squares that f32 loses could be missed in the sum; above 2^128 they
/// overflow. 2^-120 leaves 2^-30 for C subnormal products of relative error 1.
const SMALLEST: f64 = f64::from_bits((1023 - 120) << 52);
const LARGEST: f64 = f32::MAX as f64;

/// Whether f32 sums of squares with this mean are to be trusted. NaN is not: in f64 it is NaN too.
#[inline(always)]
pub(super) fn in_range(mean_square: f64) -> bool {
    (SMALLEST..=LARGEST).contains(&mean_square)
}

/// The largest mean that can be subtracted from every f32 without overflow: half the spacing below
/// 2^128.
const LARGEST_MEAN: f32 = f32::from_bits((127 + 102) << 23);

/// Whether a given mean can be subtracted in f32.
#[inline(always)]
pub(super) fn mean_in_range(mean: f32) -> bool {
    mean.abs() < LARGEST_MEAN
}

/// Whether a given variance tells what backward needs; if not, it has saturated or vanished in f32.
#[inline(always)]
pub(super) fn variance_tells(variance: f32) -> bool {
    variance.is_normal() || variance.is_nan()
}

/// `1/sqrt(variance + epsilon)`, 0 where both are 0.
#[inline(always)]
pub(super) fn reciprocal(variance: f64, epsilon: f64) -> f64 {
    let square = variance + epsilon;
    if square == 0.0 { 0.0 } else { 1.0 / square.sqrt() }
}

/// The squares of a row.
struct Squares<E> {
    element: E,
    src: *const u8,
}

impl<S: Simd, E: Element> Fold<S, 1> for Squares<E> {
    #[inline(always)]
    unsafe fn terms(&self, i: usize) -> [(S::F, S::F); 1] {
        // SAFETY: the caller's.
        let x = unsafe { self.element.load::<S>(self.src, i) };
        [(x, x)]
    }
    #[inline(always)]
    unsafe fn terms_n(&self, i: usize, n: usize) -> [(S::F, S::F); 1] {
        // SAFETY: the caller's.
        let x = unsafe { self.element.load_n::<S>(self.src, i, n) };
        [(x, x)]
    }
}

/// The squares of a row's distances from `mean`.
struct CentredSquares<S: Simd, E> {
    element: E,
    src: *const u8,
    mean: S::F,
}

impl<S: Simd, E: Element> Fold<S, 1> for CentredSquares<S, E> {
    #[inline(always)]
    unsafe fn terms(&self, i: usize) -> [(S::F, S::F); 1] {
        // SAFETY: the caller's.
        let d = unsafe { S::sub(self.element.load::<S>(self.src, i), self.mean) };
        [(d, d)]
    }
    #[inline(always)]
    unsafe fn terms_n(&self, i: usize, n: usize) -> [(S::F, S::F); 1] {
        // SAFETY: the caller's.
        let d = unsafe { S::sub(self.element.load_n::<S>(self.src, i, n), self.mean) };
        [(d, d)]
    }
}

/// The values of a row, in f64.
pub(super) struct WideValues<E> {
    pub(super) element: E,
    pub(super) src: *const u8,
}

impl<S: Simd, E: Element> WideFold<S> for WideValues<E> {
    #[inline(always)]
    unsafe fn term(&self, i: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe { self.element.load_widened::<S>(self.src, i) }
    }
    #[inline(always)]
    unsafe fn term_n(&self, i: usize, n: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe { S::widen(self.element.load_n::<S>(self.src, i, n)) }
    }
}

/// The mean of a row, summed in f64.
///
/// # Safety
/// `cols` elements are there; the instruction set of `S` is too.
#[inline(always)]
pub(super) unsafe fn mean<S: Simd, E: Element>(element: E, src: *const u8, cols: usize) -> f64 {
    // SAFETY: the caller's.
    unsafe { fold_wide::<S, _>(cols, &WideValues { element, src }) / cols as f64 }
}

/// The variance of a row of one element or more about its mean, which is 0 with RMS; `None` if its
/// squares leave the range of f32.
///
/// It is summed about the mean rounded to f32, and corrected by the square of what the rounding left:
/// the differences are exact where they are small.
///
/// # Safety
/// As [`mean`].
#[inline(always)]
pub(super) unsafe fn variance<S: Simd, E: Element, const RMS: bool>(
    element: E,
    src: *const u8,
    cols: usize,
    mean: f64,
) -> Option<f64> {
    let n = cols as f64;
    // SAFETY: the caller's.
    unsafe {
        if RMS {
            let [sum] = fold::<S, 1, _>(cols, &Squares { element, src });
            in_range(sum / n).then_some(sum / n)
        } else {
            let high = mean as f32;
            let terms = CentredSquares::<S, E> { element, src, mean: S::splat(high) };
            let [sum] = fold::<S, 1, _>(cols, &terms);
            in_range(sum / n).then(|| corrected(sum / n, mean, high))
        }
    }
}

/// The variance from the mean square about `high`, which differs from the mean by less than an ulp.
#[inline(always)]
pub(super) fn corrected(mean_square: f64, mean: f64, high: f32) -> f64 {
    let low = mean - f64::from(high);
    let variance = mean_square - low * low;
    if variance < 0.0 { 0.0 } else { variance }
}
