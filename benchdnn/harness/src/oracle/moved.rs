//! How far the errors of computed inputs move the results of a normalization, to first order: the absolute
//! values of the derivatives times the errors.

use super::normalization::{BackwardOutput, Flags, ForwardOutput, reciprocal_root};
use super::sum::pairwise;
use crate::parallel;

/// Rows with computed or given statistics. The rows of a group normalization are its groups.
pub(super) struct Moved<'a> {
    /// Elements of a row.
    pub(super) cols: usize,
    /// The number of a row's elements in the statistics.
    pub(super) counted: usize,
    /// The elements.
    pub(super) src: &'a [f64],
    /// Their possible errors; empty if they are exact.
    pub(super) src_errors: &'a [f64],
    pub(super) epsilon: f64,
    pub(super) flags: Flags,
    /// The factor of a row's element.
    pub(super) scale: &'a (dyn Fn(usize, usize) -> f64 + Sync),
    /// The index of that factor.
    pub(super) channel: &'a (dyn Fn(usize, usize) -> usize + Sync),
}

impl Moved<'_> {
    /// Fills the fields with `moved` in their names.
    pub(super) fn forward(&self, output: &mut ForwardOutput) {
        let Moved { cols, counted, src, src_errors, epsilon, flags, scale, .. } = *self;
        let rows = output.variance.len();
        output.dst_moved = vec![0.0; rows * cols];
        output.mean_moved = vec![0.0; rows];
        output.variance_moved = vec![0.0; rows];
        if cols == 0 {
            return;
        }
        let statistics = output.mean.iter().zip(&output.variance);
        let statistics_moved = output.mean_moved.iter_mut().zip(&mut output.variance_moved);
        let rows = (output.dst_moved.chunks_mut(cols))
            .zip(src.chunks(cols).zip(src_errors.chunks(cols)))
            .zip(statistics_moved.zip(statistics));
        parallel::for_each(rows, 1, &|row, ((moved, (x, errors)), (found_moved, found))| {
            let ((mean_moved, variance_moved), (mean, variance)) = (found_moved, found);
            let r = reciprocal_root(*variance, epsilon);
            let away = |c: usize| (x[c] - mean).abs();
            let (mut by_mean, mut by_root) = (0.0, 0.0);
            if !flags.global_stats {
                let [weighted] = pairwise(counted, &|c| [away(c) * errors[c]]);
                by_root = weighted / counted as f64;
                *variance_moved = 2.0 * by_root;
                if !flags.rms_norm {
                    let [sum] = pairwise(cols, &|c| [errors[c]]);
                    by_mean = sum / cols as f64;
                    *mean_moved = by_mean;
                }
            }
            for (c, moved) in moved.iter_mut().enumerate() {
                let inner = errors[c] + by_mean + away(c) * r * r * by_root;
                *moved = scale(row, c).abs() * r * inner;
            }
        });
    }

    /// The same for backward, with the mean and `1/root` of each row, and diff_dst with its errors.
    pub(super) fn backward(
        &self,
        statistics: &(dyn Fn(usize) -> (f64, f64) + Sync),
        (diff_dst, diff_dst_errors): (&[f64], &[f64]),
        output: &mut BackwardOutput,
    ) {
        let Moved { cols, counted, src, src_errors, flags, scale, channel, .. } = *self;
        if cols == 0 || (src_errors.is_empty() && diff_dst_errors.is_empty()) {
            return;
        }
        output.diff_src_moved = vec![0.0; src.len()];
        output.diff_scale_moved = vec![0.0; output.diff_scale.len()];
        output.diff_shift_moved = vec![0.0; output.diff_shift.len()];
        for (row, moved) in output.diff_src_moved.chunks_mut(cols).enumerate() {
            let of_row =
                |errors: &[f64], c: usize| errors.get(row * cols + c).copied().unwrap_or(0.0);
            let (mean, r) = statistics(row);
            let xhat = |c: usize| (src[row * cols + c] - mean) * r;
            let diff_dst = |c: usize| diff_dst[row * cols + c];
            let xhat_error = |c: usize| r * of_row(src_errors, c);
            let error = |c: usize| of_row(diff_dst_errors, c);
            let (mut by_d, mut by_dx, mut of_dx) = (0.0, 0.0, 0.0);
            if !flags.global_stats {
                let sums = pairwise(cols, &|c| {
                    let scale = scale(row, c);
                    let (d, d_error) = (scale * diff_dst(c), scale.abs() * error(c));
                    let dx_error = d_error * xhat(c).abs() + d.abs() * xhat_error(c);
                    [d_error, dx_error, d * xhat(c)]
                });
                by_d = if flags.rms_norm { 0.0 } else { sums[0] / cols as f64 };
                (by_dx, of_dx) = (sums[1] / counted as f64, sums[2] / counted as f64);
            }
            for (c, moved) in moved.iter_mut().enumerate() {
                let by_root = xhat(c).abs() * by_dx + xhat_error(c) * of_dx.abs();
                let by_root = if c < counted { by_root } else { 0.0 };
                *moved = r * (scale(row, c).abs() * error(c) + by_d + by_root);
            }
            for c in 0..cols {
                let at = channel(row, c);
                if let Some(moved) = output.diff_scale_moved.get_mut(at) {
                    *moved += error(c) * xhat(c).abs() + diff_dst(c).abs() * xhat_error(c);
                }
                if let Some(moved) = output.diff_shift_moved.get_mut(at) {
                    *moved += error(c);
                }
            }
        }
    }
}
