//! The rules for statistics that normalizations share: when f32 is accurate enough for sums of squares, and which
//! scalars normalize the elements.
//!
//! Squares are summed about a number near the mean. The variance is the mean square less the square of that number's
//! error. If that correction is too large, the squares are summed again about the mean itself; if squares overflow or
//! underflow in f32, f64 is used.

/// The statistics of a row or group, not yet rounded to f32.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statistics {
    /// 0 with RMS.
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// `sum / cols`, accurate to the last bit. The reciprocal is the same for all rows, and a product has less latency.
#[inline(always)]
pub(crate) fn per_col(sum: f64, cols: usize) -> f64 {
    sum * (1.0 / cols as f64)
}

/// The range of mean squares for which f32 sums are accurate. Above 2^128, squares overflow. From 2^-120, underflow
/// loses at most 2^-150 per square, which is at most 2^-30 of their mean.
pub(crate) const SMALLEST_MEAN_SQUARE: f64 = f64::from_bits((1023 - 120) << 52);
pub(crate) const LARGEST_MEAN_SQUARE: f64 = f32::MAX as f64;

/// Whether f32 sums of squares with this mean are accurate. False for NaN, which stays NaN in f64.
#[inline(always)]
pub(crate) fn in_range(mean_square: f64) -> bool {
    (SMALLEST_MEAN_SQUARE..=LARGEST_MEAN_SQUARE).contains(&mean_square)
}

/// The bound of means that can be subtracted from every f32 without overflow: half the spacing below 2^128.
pub(crate) const LARGEST_MEAN: f32 = f32::from_bits((127 + 102) << 23);

/// Whether a given mean can be subtracted in f32.
#[inline(always)]
pub(crate) fn mean_in_range(mean: f32) -> bool {
    mean.abs() < LARGEST_MEAN
}

/// Whether backward can use a given variance, which may have overflowed or underflowed in f32.
#[inline(always)]
pub(crate) fn variance_is_usable(variance: f32) -> bool {
    variance.is_normal() || variance.is_nan()
}

/// `1/sqrt(variance + epsilon)`, 0 where both are 0.
#[inline(always)]
pub(crate) fn reciprocal(variance: f64, epsilon: f64) -> f64 {
    let square = variance + epsilon;
    if square == 0.0 { 0.0 } else { 1.0 / square.sqrt() }
}

/// The `low` of `xhat = (x - high)*r + low`, where `high` is the mean rounded to f32. `x - high` is 0 or at least as
/// large as the rounding error of `high`, so the rounding of `low` is never magnified.
#[inline(always)]
pub(crate) fn mean_residual(mean: f64, high: f32, r: f32) -> f32 {
    ((f64::from(high) - mean) * f64::from(r)) as f32
}

/// The largest share of the mean square that the squared error of the provisional mean may have. With half, the
/// variance is at least the other half, so subtracting at most doubles the relative error.
pub(crate) const NEAR: f64 = 0.5;

/// The variance from the mean square about `high`, which differs from the mean by less than an ulp of f32.
#[inline(always)]
pub(crate) fn corrected(mean_square: f64, mean: f64, high: f32) -> f64 {
    let low = mean - f64::from(high);
    let variance = mean_square - low * low;
    if variance < 0.0 { 0.0 } else { variance }
}

/// A non-negative f32 as f64, even if the thread's floating-point mode treats subnormals as zeros.
pub(crate) fn exact(x: f32) -> f64 {
    /// The unit of f32's subnormals, 2^-149.
    const SUBNORMAL: f64 = f64::from_bits((1023 - 149) << 52);
    if x.is_subnormal() { f64::from(x.to_bits()) * SUBNORMAL } else { f64::from(x) }
}
