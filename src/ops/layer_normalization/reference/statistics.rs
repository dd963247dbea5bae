//! The statistics of a row, with the roundings of the kernels.

use super::super::row::{PROVISIONAL_COLS, at_most_16_bits};
use super::row::RowView;
use super::sums::{fold, fold_f64, halve};
use crate::rows::statistics::{NEAR, Statistics, corrected, in_range, per_col};
use crate::simd::LANES;
use crate::tensor::DataType;

/// The statistics of a row, in f64 throughout.
pub(super) fn f64_statistics(src: RowView<'_>, cols: usize, rms: bool) -> Statistics {
    let n = cols as f64;
    let x = |col| src.get_f64(col);
    let squares_about = |about: f64| {
        let square = |col| {
            let d = x(col) - about;
            d * d
        };
        fold_f64(cols, square) / n
    };
    if rms {
        return Statistics { mean: 0.0, variance: squares_about(0.0) };
    }
    let first = cols.min(LANES);
    let about = fold_f64(first, x) / first as f64;
    let offset = fold_f64(cols, |col| x(col) - about) / n;
    let (mean, square, mean_square) = (about + offset, offset * offset, squares_about(about));
    let near = square <= mean_square * NEAR;
    let variance = if near { mean_square - square } else { squares_about(mean) };
    Statistics { mean, variance }
}

/// The statistics of a row for a type of dst; `None` if the row needs f64. Does what `Moments::statistics` does, then,
/// if that gives none, what `row::two_pass` does.
pub(super) fn statistics(
    src: RowView<'_>,
    cols: usize,
    rms: bool,
    dst: DataType,
) -> Option<Statistics> {
    let provisional_mean = provisional_mean(src, cols, rms, dst);
    let provisional = provisional_mean as f32;
    let mean = if rms || cols <= PROVISIONAL_COLS {
        provisional_mean
    } else if at_most_16_bits(dst) {
        f64::from(provisional) + per_col(fold(cols, |col| (src.get(col) - provisional, 1.0)), cols)
    } else {
        per_col(fold_f64(cols, |col| f64::from(src.get(col))), cols)
    };
    let offset = mean - f64::from(provisional);
    let found = mean_square(src, cols, provisional);
    let near = rms || offset * offset <= found * NEAR;
    if in_range(found) && near {
        let variance = if rms { found } else { found - offset * offset };
        return Some(Statistics { mean, variance });
    }
    two_pass(src, cols, rms)
}

/// Does what `row::two_pass` does.
fn two_pass(src: RowView<'_>, cols: usize, rms: bool) -> Option<Statistics> {
    let values = |col| f64::from(src.get(col));
    let mean = if rms { 0.0 } else { per_col(fold_f64(cols, values), cols) };
    let mut about = provisional_mean(src, cols, rms, DataType::F32) as f32;
    let mut found = mean_square(src, cols, about);
    if !rms && found != 0.0 {
        about = mean as f32;
        found = mean_square(src, cols, about);
    }
    if found == 0.0 {
        let constant = (0..cols).all(|col| src.get(col) == about);
        return constant.then_some(Statistics { mean: f64::from(about), variance: 0.0 });
    }
    in_range(found).then(|| Statistics { mean, variance: corrected(found, mean, about) })
}

/// The mean of the squares about a value, 0 with RMS.
fn mean_square(src: RowView<'_>, cols: usize, about: f32) -> f64 {
    let deviation = |col| src.get(col) - about;
    per_col(fold(cols, |col| (deviation(col), deviation(col))), cols)
}

/// Does what `row::provisional_mean` does.
fn provisional_mean(src: RowView<'_>, cols: usize, rms: bool, dst: DataType) -> f64 {
    if rms {
        return 0.0;
    }
    if cols <= PROVISIONAL_COLS {
        let narrow = src.data_type.is_half() && at_most_16_bits(dst);
        let sum = if narrow {
            fold(cols, |col| (src.get(col), 1.0))
        } else {
            fold_f64(cols, |col| f64::from(src.get(col)))
        };
        return per_col(sum, cols);
    }
    let x = |v: usize, lane: usize| src.get(v * LANES + lane);
    let lane = |lane: usize| f64::from((x(0, lane) + x(1, lane)) + (x(2, lane) + x(3, lane)));
    per_col(halve(std::array::from_fn(lane)), PROVISIONAL_COLS)
}
