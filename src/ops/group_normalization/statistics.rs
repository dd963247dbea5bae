//! Statistics and scalars from the sums of a group's channels, for all implementations.
//!
//! A sweep sums the values of each channel, and the squares about one number for the whole group, its provisional mean.
//! The variance is the mean square less the square of the provisional mean's error. If that correction is too large,
//! the squares are summed again about the mean itself. If squares overflow or underflow in f32, the group needs f64.

use super::problem::Shape;
use crate::rows::row_lanes::variance_about;
use crate::rows::statistics::{Statistics, corrected, in_range, mean_residual, reciprocal};

/// The statistics from the sums of a group, or what is missing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Statistics(Statistics),
    /// The squares must be summed again, about this mean.
    Mean(f64),
    /// f32 sums are not accurate enough.
    NeedsF64,
}

/// The most positions of a channel in the provisional mean. Rounded down to a power of two, so that the mean of a
/// constant group is exact.
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

/// Chains of sums over the channels of a group.
const CHAINS: usize = 4;

/// The sum over the channels of a group. Channel `i` belongs to chain `i % 4`, and the chains are added in pairs.
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

/// Statistics from sums of values and squares; RMS uses only the squares.
pub(super) fn found([values, squares]: [f64; 2], about: f32, elements: usize, rms: bool) -> Found {
    let mean_square = squares / elements as f64;
    if !in_range(mean_square) {
        return Found::NeedsF64;
    }
    if rms {
        return Found::Statistics(Statistics { mean: 0.0, variance: mean_square });
    }
    let mean = values / elements as f64;
    // SAFETY: scalar code needs no instruction set.
    match unsafe { variance_about::<f64, false>(mean_square, mean, f64::from(about)) } {
        (variance, true) => Found::Statistics(Statistics { mean, variance }),
        (_, false) => Found::Mean(mean),
    }
}

/// The statistics from squares about the mean rounded to f32.
pub(super) fn found_about_mean(squares: f64, mean: f64, elements: usize) -> Found {
    let mean_square = squares / elements as f64;
    if !in_range(mean_square) {
        return Found::NeedsF64;
    }
    Found::Statistics(Statistics { mean, variance: corrected(mean_square, mean, mean as f32) })
}

/// The scalars that normalize a group's elements: `xhat = (x - high)*r + low`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scalars {
    /// The mean, rounded.
    pub(super) high: f32,
    pub(super) r: f32,
    /// The rounding error of the mean, times `r`. -0 with RMS, which changes no bit.
    pub(super) low: f32,
}

impl Scalars {
    pub(super) fn new(found: &Statistics, epsilon: f64, rms: bool) -> Self {
        let high = found.mean as f32;
        let r = reciprocal(found.variance, epsilon) as f32;
        let low = mean_residual(found.mean, high, r);
        Self { high, r, low: if rms { -0.0 } else { low } }
    }
}

/// The scalars of a group's gradient: `diff_src = d*r + shift - xhat*slope`, where `xhat = (x - mean)*r`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slopes {
    /// `-r*sum(d)/M`; -0 with RMS.
    pub(super) shift: f32,
    /// `r*sum(d*xhat)/M`.
    pub(super) slope: f32,
}

impl Slopes {
    pub(super) fn new(r: f32, [d, d_xhat]: [f64; 2], shape: &Shape, rms: bool) -> Self {
        let part = f64::from(r) / shape.counted_elements() as f64;
        let shift = if rms { -0.0 } else { -(part * d) as f32 };
        Self { shift, slope: (part * d_xhat) as f32 }
    }
}
