//! Published numbers: the effect of epsilon on small activations, and a worked example that is often computed wrongly.

use crate::formula::{self, statistics};
use crate::library::{Forward, Inputs, Problem, round_to};
use norm_sys::*;

/// The root mean square.
fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

fn f32s(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    values.into_iter().map(|x| round_to(norm_f32, x)).collect()
}

/// Runs one f32 row on every implementation; each result must be within the bounds of the f64
/// formula.
fn run(
    flags: norm_normalization_flags_t,
    epsilon: f32,
    src: Vec<f64>,
    scale: Vec<f64>,
) -> Vec<Forward> {
    let (rows, cols, data, parameters) = (1, src.len(), norm_f32, norm_f32);
    let problem = Problem { rows, cols, data, parameters, flags, epsilon };
    let (mean, variance) = statistics(&problem, &src);
    let inputs = Inputs { src, scale, mean, variance, ..Inputs::default() };
    let expected = formula::forward(&problem, &inputs);
    let bounds = formula::element_bounds(&problem, &expected);
    let results: Vec<_> = (0..).map_while(|number| problem.forward(&inputs, number)).collect();
    assert!(results.len() >= 2, "implementations are missing");
    for result in &results {
        let worst = formula::worst(&result.dst, &expected.value, &bounds);
        assert!(worst <= 1.0, "{}: {worst} times the bound", result.implementation);
    }
    results
}

#[track_caller]
fn near(actual: f64, published: f64, tolerance: f64) {
    let error = (actual - published).abs();
    assert!(error <= tolerance, "{actual} is not {published}: off by {error}");
}

/// f32 has about 7 digits, as many as were published.
const RELATIVE: f64 = 2e-7;

/// n = 2048, x_i = 0.007*sin(i/100), weight 0.046, epsilon 1e-5. Without epsilon the result is
/// 0.046.
#[test]
fn small_activations_are_damped_by_epsilon() {
    let src = f32s((0..2048).map(|i| 0.007 * (f64::from(i) / 100.0).sin()));
    near(rms(&src), 0.0049557304, 1e-10);
    for result in run(norm_rms_norm | norm_use_scale, 1e-5, src.clone(), f32s([0.046; 2048])) {
        let mean_square = result.variance[0];
        near(mean_square, 2.4559264e-5, 2.5e-5 * RELATIVE);
        let divisor = (mean_square + 1e-5).sqrt();
        near(divisor, 0.0058787128, 0.006 * RELATIVE);
        near(mean_square.sqrt() / divisor, 0.8429958, RELATIVE);
        let out = rms(&result.dst);
        near(out, 0.0387778086, 0.04 * RELATIVE);
        assert!((out - 0.046).abs() > 0.005, "epsilon was left out");
    }
}

/// The root mean square after normalization is rms/sqrt(rms^2 + epsilon).
#[test]
fn output_rms_ratio() {
    for size in [1.0, 0.1, 0.01, 0.005, 1e-3, 1e-4] {
        for epsilon in [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3] {
            let size = round_to(norm_f32, size);
            let src = (0..30).map(|i| if i % 3 == 0 { -size } else { size }).collect();
            let epsilon = epsilon as f32;
            let law = size / (size * size + f64::from(epsilon)).sqrt();
            for result in run(norm_rms_norm, epsilon, src, vec![]) {
                near(rms(&result.dst), law, law * RELATIVE);
                near(result.variance[0], size * size, size * size * RELATIVE);
            }
        }
    }
    // Two entries of the table, with digits computed independently of this code.
    for (size, published) in [(0.1, 0.9995004), (0.005, 0.8451543)] {
        for result in run(norm_rms_norm, 1e-5, f32s([size; 17]), vec![]) {
            near(rms(&result.dst), published, 1.5e-7);
        }
    }
}

/// With weights, the rms of the output is sqrt(sum((x*w)^2))/(r*sqrt(n)). It is ratio*rms(w) only
/// if w is not correlated with |x|.
#[test]
fn weights_correlated_with_activations() {
    let src = f32s((0..500).map(|i| 0.007 * (f64::from(i) / 50.0).sin()));
    let aligned = f32s(src.iter().map(|x| 0.002 + 8.0 * x.abs()));
    let uniform = f32s([0.046; 500]);
    let damped = |weight: &[f64]| rms(&src) / (rms(&src).powi(2) + 1e-5).sqrt() * rms(weight);
    for (weight, is_law) in [(&uniform, true), (&aligned, false)] {
        let divisor = (rms(&src).powi(2) + 1e-5).sqrt();
        let products: Vec<_> = src.iter().zip(weight).map(|(x, w)| x * w).collect();
        let general = rms(&products) / divisor;
        let flags = norm_rms_norm | norm_use_scale;
        for result in run(flags, 1e-5, src.clone(), weight.clone()) {
            let out = rms(&result.dst);
            near(out, general, general * RELATIVE);
            let off = (out / damped(weight) - 1.0).abs();
            assert!(if is_law { off < 1e-6 } else { off > 0.1 }, "off by {off}");
        }
    }
}

/// x = [1, 3, 5, 7]: the root mean square is sqrt(21), the population standard deviation sqrt(5). Layer normalization
/// does not use the sample standard deviation, 2.58.
#[test]
fn population_variance() {
    let src = vec![1.0, 3.0, 5.0, 7.0];
    for result in run(norm_rms_norm, 0.0, src.clone(), vec![]) {
        assert_eq!(result.variance, [21.0]);
        assert!(result.mean.is_empty());
        for (actual, published) in result.dst.iter().zip([0.21822, 0.65465, 1.09109, 1.52753]) {
            near(*actual, published, 5e-6);
        }
    }
    for result in run(norm_normalization_flags_none, 0.0, src, vec![]) {
        assert_eq!((result.mean[0], result.variance[0]), (4.0, 5.0));
        for (actual, published) in result.dst.iter().zip([-1.34164, -0.44721, 0.44721, 1.34164]) {
            near(*actual, published, 5e-6);
        }
        assert!((result.dst[3] - 3.0 / 2.5819889).abs() > 0.1, "the deviation of a sample");
    }
}
