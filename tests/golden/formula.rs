//! The formulas in f64, with the magnitude of each result's terms, which bounds the error of an f32
//! computation.

use crate::library::{Inputs, Problem};
use norm_sys::*;

/// The expected output. `terms` is the sum of the absolute values of its summands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) value: Vec<f64>,
    pub(crate) terms: Vec<f64>,
}

impl Expected {
    /// The same terms with values from another source.
    pub(crate) fn with(&self, value: &[f64]) -> Self {
        assert_eq!(value.len(), self.value.len());
        Expected { value: value.to_vec(), terms: self.terms.clone() }
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Gradient {
    True,
    /// oneDNN's gradient with rms_norm: it subtracts the mean of d although forward subtracts no mean.
    KeepsMean,
    /// Omits 1/sqrt in the second term.
    MissesDivision,
}

pub(crate) fn divisor(problem: &Problem, variance: f64) -> f64 {
    1.0 / (variance + f64::from(problem.epsilon)).sqrt()
}

/// Mean (0 with rms_norm) and variance of each row.
pub(crate) fn statistics(problem: &Problem, src: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let count = problem.cols as f64;
    let row_statistics = |row: &[f64]| {
        let rms = problem.has(norm_rms_norm);
        let mean = if rms { 0.0 } else { row.iter().sum::<f64>() / count };
        (mean, row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count)
    };
    src.chunks_exact(problem.cols).map(row_statistics).unzip()
}

struct Row<'a> {
    src: &'a [f64],
    diff_dst: &'a [f64],
    mean: f64,
    r: f64,
}

fn rows<'a>(problem: &'a Problem, inputs: &'a Inputs) -> impl Iterator<Item = Row<'a>> {
    let diff_dst = if inputs.diff_dst.is_empty() { &inputs.src } else { &inputs.diff_dst };
    let pairs = inputs.src.chunks_exact(problem.cols).zip(diff_dst.chunks_exact(problem.cols));
    pairs.enumerate().map(|(row, (src, diff_dst))| Row {
        src,
        diff_dst,
        mean: if problem.has(norm_rms_norm) { 0.0 } else { inputs.mean[row] },
        r: divisor(problem, inputs.variance[row]),
    })
}

fn scale(problem: &Problem, inputs: &Inputs, col: usize) -> f64 {
    if problem.has(norm_use_scale) { inputs.scale[col] } else { 1.0 }
}

/// dst from the statistics in `inputs`.
pub(crate) fn forward(problem: &Problem, inputs: &Inputs) -> Expected {
    let mut dst = Expected::default();
    for row in rows(problem, inputs) {
        for (col, x) in row.src.iter().enumerate() {
            let scaled = (x - row.mean) * row.r * scale(problem, inputs, col);
            let shift = if problem.has(norm_use_shift) { inputs.shift[col] } else { 0.0 };
            dst.value.push(scaled + shift);
            dst.terms.push(scaled.abs() + shift.abs());
        }
    }
    dst
}

/// diff_src from the statistics in `inputs`. Its terms are those inside its sums, because rounding a product in f32
/// costs part of that product, however small the sum is.
pub(crate) fn diff_src(problem: &Problem, inputs: &Inputs, which: Gradient) -> Expected {
    let count = problem.cols as f64;
    let mut result = Expected::default();
    for row in rows(problem, inputs) {
        let d: Vec<_> =
            row.diff_dst.iter().enumerate().map(|(c, dy)| dy * scale(problem, inputs, c)).collect();
        let xhat: Vec<_> = row.src.iter().map(|x| (x - row.mean) * row.r).collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count;
        let products = || d.iter().zip(&xhat).map(|(d, x)| d * x);
        let mut first = mean(&mut d.iter().copied());
        let mut first_terms = mean(&mut d.iter().map(|d| d.abs()));
        let mut second = mean(&mut products());
        let mut second_terms = mean(&mut products().map(f64::abs));
        let subtracts_mean = !problem.has(norm_rms_norm) || matches!(which, Gradient::KeepsMean);
        if problem.has(norm_use_global_stats) || !subtracts_mean {
            (first, first_terms) = (0.0, 0.0);
        }
        if problem.has(norm_use_global_stats) {
            (second, second_terms) = (0.0, 0.0);
        }
        for (d, xhat) in d.iter().zip(&xhat) {
            let right = row.r * (d - first - xhat * second);
            result.value.push(match which {
                Gradient::MissesDivision => row.r * d - xhat * second,
                _ => right,
            });
            result.terms.push(row.r * (d.abs() + first_terms + xhat.abs() * second_terms));
        }
    }
    result
}

/// diff_scale and diff_shift.
pub(crate) fn columns(problem: &Problem, inputs: &Inputs) -> (Expected, Expected) {
    let zeros = || Expected { value: vec![0.0; problem.cols], terms: vec![0.0; problem.cols] };
    let (mut diff_scale, mut diff_shift) = (zeros(), zeros());
    for row in rows(problem, inputs) {
        for (col, (x, dy)) in row.src.iter().zip(row.diff_dst).enumerate() {
            let term = dy * (x - row.mean) * row.r;
            diff_scale.value[col] += term;
            diff_scale.terms[col] += term.abs();
            diff_shift.value[col] += dy;
            diff_shift.terms[col] += dy.abs();
        }
    }
    (diff_scale, diff_shift)
}

/// How much results may change when backward reads `used` instead of the exact statistics (both
/// like `inputs`): first-order terms with absolute values, plus 1% for higher orders. Returns
/// diff_src, then diff_scale.
///
/// With r' = r*(1 + p), mean' = mean + m:  xhat' = (xhat - m*r)*(1 + p), and so on.
pub(crate) fn sensitivity(
    problem: &Problem,
    exact: &Inputs,
    used: &Inputs,
) -> (Vec<f64>, Vec<f64>) {
    let count = problem.cols as f64;
    let (mut diff_src, mut diff_scale) = (Vec::new(), vec![0.0; problem.cols]);
    for (row, other) in rows(problem, exact).zip(rows(problem, used)) {
        let p = (other.r / row.r - 1.0).abs();
        let m = (other.mean - row.mean).abs() * row.r;
        let d = |col: usize| row.diff_dst[col] * scale(problem, exact, col);
        let xhat = |col: usize| (row.src[col] - row.mean) * row.r;
        let cols = 0..problem.cols;
        let rms = problem.has(norm_rms_norm);
        let first = if rms { 0.0 } else { (cols.clone().map(d).sum::<f64>() / count).abs() };
        let second = (cols.clone().map(|c| d(c) * xhat(c)).sum::<f64>() / count).abs();
        for (col, total) in cols.zip(&mut diff_scale) {
            let x = xhat(col).abs();
            let by_r = p * (d(col).abs() + first + 3.0 * x * second);
            let by_mean = m * (second + x * first);
            diff_src.push(1.01 * row.r * (by_r + by_mean));
            *total += 1.01 * row.diff_dst[col].abs() * (p * x + m);
        }
    }
    (diff_src, diff_scale)
}

/// The distance between adjacent numbers of the type at a value.
pub(crate) fn ulp(data_type: norm_data_type_t, value: f64) -> f64 {
    let (digits, least) = match data_type {
        norm_f32 => (24, -126),
        norm_bf16 => (8, -126),
        norm_f16 => (11, -14),
        _ => panic!("no ulp of data type {data_type}"),
    };
    let mut exponent = least;
    while 2f64.powi(exponent + 1) <= value.abs() {
        exponent += 1;
    }
    2f64.powi(exponent + 1 - digits)
}

/// Error bounds of dst or diff_src: 1 ulp plus 2^-22 of the terms.
pub(crate) fn element_bounds(problem: &Problem, expected: &Expected) -> Vec<f64> {
    let pairs = expected.value.iter().zip(&expected.terms);
    pairs.map(|(v, t)| ulp(problem.data, *v) + 2f64.powi(-22) * t).collect()
}

/// Error bounds of column sums: 4 f32 ulp of the sum of |term|, plus the rounding to half types.
pub(crate) fn column_bounds(problem: &Problem, expected: &Expected) -> Vec<f64> {
    let rounding = |value| match problem.parameters {
        norm_f32 => 0.0,
        half => ulp(half, value),
    };
    let pairs = expected.value.iter().zip(&expected.terms);
    pairs.map(|(v, t)| 4.0 * ulp(norm_f32, *t) + rounding(*v)).collect()
}

/// Error bounds of statistics: 4 ulp of the variance, and 4 ulp of mean|x| for the mean.
pub(crate) fn statistic_bounds(sizes: &[f64]) -> Vec<f64> {
    sizes.iter().map(|size| 4.0 * ulp(norm_f32, *size)).collect()
}

/// The largest error in units of its bound; above 1 is wrong. NaN counts as infinite.
pub(crate) fn worst(actual: &[f64], expected: &[f64], bounds: &[f64]) -> f64 {
    assert_eq!(actual.len(), expected.len());
    assert_eq!(actual.len(), bounds.len());
    let errors = actual.iter().zip(expected).zip(bounds);
    errors
        .map(|((a, e), bound)| {
            ((a - e).abs() / bound).max(if a.is_nan() { f64::INFINITY } else { 0.0 })
        })
        .fold(0.0, f64::max)
}
