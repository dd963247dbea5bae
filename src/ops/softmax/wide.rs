//! Rows in f64, for any layout and types. Nothing is kept between the sweeps over a row.
//!
//! ```text
//! forward            max = max(x);  sum = fold(exp(x - max))
//!   accurate         dst = exp(x - max)/sum, 0 for a row of zeros
//!   log              dst = (x - max) - log(sum)
//!   stats            max + log(sum)
//! backward accurate  sum = fold(diff_dst*dst);         diff_src = dst * (diff_dst - sum)
//!   log              sum = fold(diff_dst);             diff_src = diff_dst - exp(dst)*sum
//! ```
//!
//! The exponential also includes the rounding error of `x - max`, as a factor.

use super::problem::SoftmaxAlgorithm;
use crate::rows::{PlainRow, wide_fold};
use crate::simd::math::wide as math;

/// `x - max` and its rounding error.
fn distance(x: f64, max: f64) -> (f64, f64) {
    let rounded = x - max;
    if !rounded.is_finite() {
        return (rounded, 0.0);
    }
    let there = rounded - x;
    (rounded, (x - (rounded - there)) - (max + there))
}

pub(super) fn forward_row(
    algorithm: SoftmaxAlgorithm,
    cols: usize,
    [src, dst]: [PlainRow<'_>; 2],
    stats: Option<PlainRow<'_>>,
) {
    let largest = (0..cols).fold(f64::NEG_INFINITY, |max, col| {
        let x = src.get_wide(col);
        if x > max { x } else { max }
    });
    let max = algorithm.distance_from(largest);
    let power = |col| {
        let (distance, tail) = distance(src.get_wide(col), max);
        math::exp_of_sum(distance, tail)
    };
    let sum = wide_fold(cols, power);
    let log = math::log(sum);
    // dst may be src.
    let nan = stats.is_some() && (0..cols).any(|col| src.get_wide(col).is_nan());
    for col in 0..cols {
        let value = if algorithm == SoftmaxAlgorithm::Log {
            let (distance, tail) = distance(src.get_wide(col), max);
            (distance - log) + tail
        } else if sum == 0.0 {
            0.0
        } else {
            power(col) / sum
        };
        dst.set_wide(col, value);
    }
    if let Some(stats) = stats {
        let value = if largest.is_infinite() { largest } else { max + log };
        stats.set_wide(0, if nan { f64::NAN } else { value });
    }
}

pub(super) fn backward_row(
    algorithm: SoftmaxAlgorithm,
    cols: usize,
    [dst, diff_dst, diff_src]: [PlainRow<'_>; 3],
) {
    let log = algorithm == SoftmaxAlgorithm::Log;
    let sum = wide_fold(cols, |col| {
        let factor = if log { 1.0 } else { dst.get_wide(col) };
        diff_dst.get_wide(col) * factor
    });
    for col in 0..cols {
        let (y, g) = (dst.get_wide(col), diff_dst.get_wide(col));
        diff_src.set_wide(col, if log { g - math::exp(y) * sum } else { y * (g - sum) });
    }
}
