//! The oracle's gradient against central differences of its forward function.

use crate::all_flags;
use crate::mistakes::{self, Mistake};
use benchdnn::oracle::lnorm::{
    BackwardInput, Flags, ForwardInput, ForwardOutput, backward, forward,
};

const ROWS: usize = 5;
const COLS: usize = 19;
const EPSILON: f64 = 1.0 / 16.0;

/// A smooth, irregular sequence: sines of growing angles.
fn sequence(count: usize, from: f64, middle: f64, size: f64) -> Vec<f64> {
    (0..count)
        .map(|i| middle + size * (from + 1.7 * i as f64 + 0.01 * (i * i) as f64).sin())
        .collect()
}

/// The inputs of one problem. `loss` is the sum of diff_dst*dst, whose derivatives are the outputs of the backward
/// problem.
struct Problem {
    flags: Flags,
    src: Vec<f64>,
    scale: Vec<f64>,
    shift: Vec<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    diff_dst: Vec<f64>,
}

impl Problem {
    fn new(flags: Flags) -> Problem {
        let mut problem = Problem {
            flags,
            src: sequence(ROWS * COLS, 0.3, 0.4, 1.5),
            scale: sequence(COLS, 1.1, 1.3, 0.8),
            shift: sequence(COLS, 2.2, -0.2, 0.6),
            mean: sequence(ROWS, 0.7, 0.2, 0.3),
            variance: sequence(ROWS, 0.1, 2.5, 1.5),
            diff_dst: sequence(ROWS * COLS, 1.9, 0.5, 1.2),
        };
        if !flags.global_stats {
            let forward = problem.forward();
            (problem.mean, problem.variance) = (forward.mean, forward.variance);
        }
        problem
    }

    fn input(&self) -> ForwardInput<'_> {
        ForwardInput {
            rows: ROWS,
            cols: COLS,
            src: &self.src,
            scale: Some(&self.scale),
            shift: Some(&self.shift),
            mean: Some(&self.mean),
            variance: Some(&self.variance),
            epsilon: EPSILON,
            flags: self.flags,
        }
    }

    fn forward(&self) -> ForwardOutput {
        forward(&self.input())
    }

    fn backward_input(&self) -> BackwardInput<'_> {
        BackwardInput {
            rows: ROWS,
            cols: COLS,
            src: &self.src,
            diff_dst: &self.diff_dst,
            scale: Some(&self.scale),
            mean: Some(&self.mean),
            variance: &self.variance,
            epsilon: EPSILON,
            flags: self.flags,
        }
    }

    fn loss(&self) -> f64 {
        self.forward().dst.iter().zip(&self.diff_dst).map(|(dst, d)| dst * d).sum()
    }

    /// The derivative of the loss with respect to each element of one of the inputs.
    fn differences(mut self, input: fn(&mut Problem) -> &mut Vec<f64>) -> Vec<f64> {
        const STEP: f64 = 1.0 / 65536.0;
        (0..input(&mut self).len())
            .map(|i| {
                let value = input(&mut self)[i];
                let mut at = |x: f64| {
                    input(&mut self)[i] = x;
                    self.loss()
                };
                let slope = (at(value + STEP) - at(value - STEP)) / (2.0 * STEP);
                at(value);
                slope
            })
            .collect()
    }
}

/// The largest difference, relative to the largest entry of `expected`.
fn miss(got: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len());
    let largest = expected.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    let error = got.iter().zip(expected).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
    assert!(largest > 0.1, "nothing to compare with");
    error / largest
}

const AGREEMENT: f64 = 1e-7;

/// Weaker data would hide the known mistakes of the gradient.
#[test]
fn the_data_tells_the_gradients_apart() {
    let problem = Problem::new(Flags { scale: true, rms_norm: true, ..Flags::default() });
    for row in 0..ROWS {
        let rms = problem.variance[row].sqrt();
        assert!((rms - 1.0).abs() > 0.05, "row {row}: rms {rms}");
        let d = (0..COLS).map(|c| problem.scale[c] * problem.diff_dst[row * COLS + c]);
        let mean = d.sum::<f64>() / COLS as f64;
        assert!(mean.abs() > 0.05, "row {row}: mean(scale*diff_dst) {mean}");
    }
    assert!(problem.scale.iter().all(|scale| (scale - 1.0).abs() > 1e-3));
}

#[test]
fn central_differences_confirm_every_gradient() {
    for flags in all_flags() {
        let problem = Problem::new(flags);
        let gradient = backward(&problem.backward_input());

        let error = miss(&gradient.diff_src, &Problem::new(flags).differences(|p| &mut p.src));
        assert!(error < AGREEMENT, "{flags:?}: diff_src misses by {error:e}");
        if flags.scale {
            let expected = Problem::new(flags).differences(|p| &mut p.scale);
            let error = miss(&gradient.diff_scale, &expected);
            assert!(error < AGREEMENT, "{flags:?}: diff_scale misses by {error:e}");
        }
        if flags.shift {
            let expected = Problem::new(flags).differences(|p| &mut p.shift);
            let error = miss(&gradient.diff_shift, &expected);
            assert!(error < AGREEMENT, "{flags:?}: diff_shift misses by {error:e}");
        }
        assert_eq!(gradient.diff_scale.is_empty(), !flags.scale);
        assert_eq!(gradient.diff_shift.is_empty(), !flags.shift);
    }
}

#[test]
fn known_wrong_gradients_miss_by_far() {
    for flags in all_flags() {
        let problem = Problem::new(flags);
        let input = problem.backward_input();
        let expected = Problem::new(flags).differences(|p| &mut p.src);
        let error = |mistake| miss(&mistakes::backward(mistake, &input).diff_src, &expected);

        let none = error(Mistake::None);
        assert!(none < AGREEMENT, "{flags:?}: without a mistake {none:e}");
        if flags.global_stats {
            continue; // the gradient has neither of the terms in question
        }
        let missing = error(Mistake::FactorMissing);
        assert!(missing > 100.0 * AGREEMENT, "{flags:?}: a missing factor misses by {missing:e}");
        if flags.rms_norm {
            let kept = error(Mistake::MeanTermKept);
            assert!(kept > 100.0 * AGREEMENT, "{flags:?}: the mean's term misses by {kept:e}");
        }
    }
}

/// The terms bound the result and are no larger than their parts.
#[test]
fn terms_are_the_sums_of_absolute_values() {
    for flags in all_flags() {
        let problem = Problem::new(flags);
        let output = problem.forward();
        for (i, (dst, terms)) in output.dst.iter().zip(&output.dst_terms).enumerate() {
            let shift = if flags.shift { problem.shift[i % COLS] } else { 0.0 };
            let expected = (dst - shift).abs() + shift.abs();
            assert!((terms - expected).abs() < 1e-12, "{flags:?}: dst {i}");
        }
        let gradient = backward(&problem.backward_input());
        for row in 0..ROWS {
            let mean = if flags.rms_norm { 0.0 } else { problem.mean[row] };
            let r = 1.0 / (problem.variance[row] + EPSILON).sqrt();
            let xhat = |c: usize| (problem.src[row * COLS + c] - mean) * r;
            let d = |c: usize| {
                let scale = if flags.scale { problem.scale[c] } else { 1.0 };
                problem.diff_dst[row * COLS + c] * scale
            };
            let d_abs = (0..COLS).map(|c| d(c).abs()).sum::<f64>() / COLS as f64;
            let dx_abs = (0..COLS).map(|c| (d(c) * xhat(c)).abs()).sum::<f64>() / COLS as f64;
            for c in 0..COLS {
                let expected = match (flags.global_stats, flags.rms_norm) {
                    (true, _) => r * d(c).abs(),
                    (false, true) => r * (d(c).abs() + xhat(c).abs() * dx_abs),
                    (false, false) => r * (d(c).abs() + d_abs + xhat(c).abs() * dx_abs),
                };
                let terms = gradient.diff_src_terms[row * COLS + c];
                assert!((terms - expected).abs() < 1e-12 * expected, "{flags:?}: {row}, {c}");
            }
        }
        for (c, terms) in gradient.diff_shift_terms.iter().enumerate() {
            let expected: f64 = (0..ROWS).map(|row| problem.diff_dst[row * COLS + c].abs()).sum();
            assert!((terms - expected).abs() < 1e-12, "{flags:?}: diff_shift {c}");
        }
    }
}
