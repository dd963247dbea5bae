//! How far the errors of computed inputs move the results, to first order: the absolute values of
//! the derivatives times the errors.

use super::{
    Around, Backward, BackwardOutput, ForwardInput, ForwardOutput, pairwise, reciprocal_root,
};
use rayon::prelude::*;

/// Fills what has `moved` in its name.
pub(super) fn forward(
    input: &ForwardInput<'_>,
    around: Around<'_>,
    scale: &[f64],
    output: &mut ForwardOutput,
) {
    let ForwardInput { rows, cols, src, epsilon, flags, .. } = *input;
    let counted = around.counted(cols);
    output.dst_moved = vec![0.0; rows * cols];
    output.mean_moved = vec![0.0; rows];
    output.variance_moved = vec![0.0; rows];
    if cols == 0 {
        return;
    }
    let statistics = output.mean.par_iter().zip(&output.variance);
    (output.dst_moved.par_chunks_mut(cols))
        .zip(src.par_chunks(cols).zip(around.src_errors.par_chunks(cols)))
        .zip(output.mean_moved.par_iter_mut().zip(&mut output.variance_moved))
        .zip(statistics)
        .for_each(|(((moved, (x, errors)), (mean_moved, variance_moved)), (mean, variance))| {
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
                *moved = scale[c].abs() * r * inner;
            }
        });
}

/// The same for backward.
pub(super) fn backward(problem: &Backward<'_>, output: &mut BackwardOutput) {
    let Backward { input, around, scale, mean, .. } = problem;
    let (cols, flags) = (input.cols, input.flags);
    if cols == 0 || (around.src_errors.is_empty() && around.diff_dst_errors.is_empty()) {
        return;
    }
    let counted = around.counted(cols);
    output.diff_src_moved = vec![0.0; input.rows * cols];
    output.diff_scale_moved = vec![0.0; output.diff_scale.len()];
    output.diff_shift_moved = vec![0.0; output.diff_shift.len()];
    for (row, moved) in output.diff_src_moved.chunks_mut(cols).enumerate() {
        let of_row = |errors: &[f64], c: usize| errors.get(row * cols + c).copied().unwrap_or(0.0);
        let r = reciprocal_root(input.variance[row], input.epsilon);
        let xhat = |c: usize| (input.src[row * cols + c] - mean[row]) * r;
        let diff_dst = |c: usize| input.diff_dst[row * cols + c];
        let xhat_error = |c: usize| r * of_row(around.src_errors, c);
        let error = |c: usize| of_row(around.diff_dst_errors, c);
        let (mut by_d, mut by_dx, mut of_dx) = (0.0, 0.0, 0.0);
        if !flags.global_stats {
            let sums = pairwise(cols, &|c| {
                let (d, d_error) = (scale[c] * diff_dst(c), scale[c].abs() * error(c));
                let dx_error = d_error * xhat(c).abs() + d.abs() * xhat_error(c);
                [d_error, dx_error, d * xhat(c)]
            });
            by_d = if flags.rms_norm { 0.0 } else { sums[0] / cols as f64 };
            (by_dx, of_dx) = (sums[1] / counted as f64, sums[2] / counted as f64);
        }
        for (c, moved) in moved.iter_mut().enumerate() {
            let by_root = xhat(c).abs() * by_dx + xhat_error(c) * of_dx.abs();
            let by_root = if c < counted { by_root } else { 0.0 };
            *moved = r * (scale[c].abs() * error(c) + by_d + by_root);
        }
        for (c, moved) in output.diff_scale_moved.iter_mut().enumerate() {
            *moved += error(c) * xhat(c).abs() + diff_dst(c).abs() * xhat_error(c);
        }
        for (c, moved) in output.diff_shift_moved.iter_mut().enumerate() {
            *moved += error(c);
        }
    }
}
