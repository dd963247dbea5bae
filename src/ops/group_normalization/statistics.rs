//! From the sums of a group's channels to its statistics and scalars, for all implementations.
//!
//! A sweep sums the values of each channel and the squares about one number for the whole group, its provisional mean.
//! The variance is the mean square less the square of the provisional mean's error. If that correction is too large, the
//! squares are summed again about the mean itself. If squares overflow or vanish in f32, the group needs f64.

use super::problem::Shape;

/// The statistics of a group, not yet rounded to f32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statistics {
    /// 0 with RMS.
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// What the sums of a group tell.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Statistics(Statistics),
    /// The mean; the squares must be summed about it.
    Mean(f64),
    /// f32 sums are not accurate.
    NeedsF64,
}

/// The positions of a channel that the provisional mean is taken from: as many as there are, rounded down to a power of
/// two, so that a constant group has its value as the mean, exactly.
const MOST_PROBES: usize = 8;

/// The number of probes of a channel.
#[inline(always)]
pub(super) fn probes(positions: usize) -> usize {
    let mut count = 1;
    while count < MOST_PROBES && 2 * count <= positions {
        count *= 2;
    }
    count
}

/// The position of a probe.
#[inline(always)]
pub(super) fn probe_at(probe: usize, probes: usize, positions: usize) -> usize {
    probe * (positions / probes)
}

/// The range of mean squares for which f32 sums are accurate. Above 2^128 squares overflow. From 2^-120 on, what
/// squares lose to underflow, at most 2^-150 each, is at most 2^-30 of their mean.
const SMALLEST_MEAN_SQUARE: f64 = f64::from_bits((1023 - 120) << 52);
const LARGEST_MEAN_SQUARE: f64 = f32::MAX as f64;

/// The largest part of the mean square that the squared error of the provisional mean may be. With half, the variance
/// is at least the other half, so subtracting at most doubles the relative error.
const NEAR: f64 = 0.5;

/// The bound of means that can be subtracted from every f32 without overflow: half the spacing below 2^128.
const LARGEST_MEAN: f32 = f32::from_bits((127 + 102) << 23);

/// Chains of sums over the channels of a group.
const CHAINS: usize = 4;

/// The sum over the channels of a group: channel `i` belongs to chain `i % 4`, and the chains are joined in pairs.
pub(super) fn join(channels: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut sums = [0.0; CHAINS];
    let whole = channels - channels % CHAINS;
    for first in (0..whole).step_by(CHAINS) {
        for (chain, sum) in sums.iter_mut().enumerate() {
            *sum += term(first + chain);
        }
    }
    for (channel, sum) in (whole..channels).zip(&mut sums) {
        *sum += term(channel);
    }
    let [a, b, c, d] = sums;
    (a + b) + (c + d)
}

/// The provisional mean of a group from the sums of its channels' probes.
pub(super) fn provisional_mean(sums: &[f32], probes: usize) -> f32 {
    (join(sums.len(), |i| f64::from(sums[i])) / (sums.len() * probes) as f64) as f32
}

/// What the sums of values and squares tell; with RMS only the squares count.
pub(super) fn found([values, squares]: [f64; 2], about: f32, elements: usize, rms: bool) -> Found {
    let mean_square = squares / elements as f64;
    if !is_accurate(mean_square) {
        return Found::NeedsF64;
    }
    if rms {
        return Found::Statistics(Statistics { mean: 0.0, variance: mean_square });
    }
    let mean = values / elements as f64;
    let offset = mean - f64::from(about);
    if offset * offset > mean_square * NEAR {
        return Found::Mean(mean);
    }
    Found::Statistics(Statistics { mean, variance: mean_square - offset * offset })
}

/// The statistics from squares about the mean rounded to f32.
pub(super) fn found_about_mean(squares: f64, mean: f64, elements: usize) -> Found {
    let mean_square = squares / elements as f64;
    if !is_accurate(mean_square) {
        return Found::NeedsF64;
    }
    let low = mean - f64::from(mean as f32);
    let variance = mean_square - low * low;
    Found::Statistics(Statistics { mean, variance: if variance < 0.0 { 0.0 } else { variance } })
}

/// Whether f32 sums of squares with this mean are accurate. NaN is not, and stays NaN in f64.
fn is_accurate(mean_square: f64) -> bool {
    (SMALLEST_MEAN_SQUARE..=LARGEST_MEAN_SQUARE).contains(&mean_square)
}

/// Whether a given mean can be subtracted in f32.
pub(super) fn mean_is_usable(mean: f32) -> bool {
    mean.abs() < LARGEST_MEAN
}

/// Whether backward can use a given variance, which may have overflowed or vanished in f32.
pub(super) fn variance_is_usable(variance: f32) -> bool {
    variance.is_normal() || variance.is_nan()
}

/// `1/sqrt(variance + epsilon)`, 0 where both are 0.
pub(super) fn reciprocal(variance: f64, epsilon: f64) -> f64 {
    let square = variance + epsilon;
    if square == 0.0 { 0.0 } else { 1.0 / square.sqrt() }
}

/// The numbers that a group's elements are normalized with: `xhat = (x - high)*r + low`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scalars {
    /// The mean, rounded.
    pub(super) high: f32,
    pub(super) r: f32,
    /// What the rounding of the mean takes away. `x - high` is 0 or at least as large as that rounding error, so the
    /// rounding of `low` is never magnified. -0 with RMS, which changes no bit.
    pub(super) low: f32,
}

impl Scalars {
    pub(super) fn new(found: &Statistics, epsilon: f64, rms: bool) -> Self {
        let high = found.mean as f32;
        let r = reciprocal(found.variance, epsilon) as f32;
        let low = ((f64::from(high) - found.mean) * f64::from(r)) as f32;
        Self { high, r, low: if rms { -0.0 } else { low } }
    }
}

/// The numbers that a group's gradient is computed with: `diff_src = d*r + shift - xhat*slope`, where
/// `xhat = (x - mean)*r`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slopes {
    /// `-r*sum(d)/M`; -0 with RMS.
    pub(super) shift: f32,
    /// `r*sum(d*xhat)/M`.
    pub(super) slope: f32,
}

impl Slopes {
    pub(super) fn new(r: f32, [d, d_xhat]: [f64; 2], shape: &Shape, rms: bool) -> Self {
        let part = f64::from(r) / shape.elements() as f64;
        let shift = if rms { -0.0 } else { -(part * d) as f32 };
        Self { shift, slope: (part * d_xhat) as f32 }
    }
}

/// A non-negative f32 as f64, even if the thread's floating-point mode treats subnormals as zeros.
pub(super) fn exact(x: f32) -> f64 {
    /// The unit of f32's subnormals, 2^-149.
    const SUBNORMAL: f64 = f64::from_bits((1023 - 149) << 52);
    if x.is_subnormal() { f64::from(x.to_bits()) * SUBNORMAL } else { f64::from(x) }
}
