//! Layer normalization and RMS normalization in f64.
//!
//! Per row `x` of `cols` elements, with `r = 1/sqrt(variance + epsilon)` (0 where that sum is 0):
//!
//! ```text
//! layer norm   mean = sum(x)/cols    variance = sum((x - mean)^2)/cols    xhat = (x - mean)*r
//! rms_norm     no mean               variance = sum(x^2)/cols             xhat = x*r
//! forward      dst = scale*xhat + shift
//! backward     d = scale*diff_dst
//!   layer norm     diff_src = r*(d - sum(d)/cols - xhat*sum(d*xhat)/cols)
//!   rms_norm       diff_src = r*(d - xhat*sum(d*xhat)/cols)
//!   global_stats   diff_src = r*d
//!   over the rows  diff_scale = sum(diff_dst*xhat)    diff_shift = sum(diff_dst)
//! ```
//!
//! A partial RMS normalization ([`Around::partial`]) takes `variance` over the first `k` elements:
//! `diff_src[i] = r*(d[i] - [i < k] xhat[i]*sum(d*xhat)/k)`. [`steps`](super::steps) has the steps
//! before and after a normalization.
//!
//! Ba, Kiros and Hinton, Layer Normalization (2016); Zhang and Sennrich, Root Mean Square Layer
//! Normalization (2019). The gradients are these formulas' derivatives; central differences of
//! [`forward`] confirm them in the tests.
//!
//! Each result comes with its `terms`: the sum of the absolute values of its summands. Rounding
//! errors are proportional to them, so the tolerances are multiples of them.

use super::moved::Moved;
use super::normalization::reciprocal_root;
pub use super::normalization::{BackwardOutput, Flags, ForwardOutput};
use super::sum::pairwise;
use crate::parallel::{self, GRAIN};

/// What a problem has that oneDNN lacks, and the errors of computed inputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Around<'a> {
    /// The number of elements in the mean square; 0 for the whole row.
    pub partial: usize,
    /// The possible error of each element of src; empty if they are exact.
    pub src_errors: &'a [f64],
    /// The same for diff_dst.
    pub diff_dst_errors: &'a [f64],
}

impl Around<'_> {
    /// The number of a row's elements in the statistics.
    pub(super) fn counted(&self, cols: usize) -> usize {
        if self.partial == 0 { cols } else { self.partial }
    }
}

/// A forward problem. `src` is row-major; inputs that the flags do not need are not read.
#[derive(Clone, Copy, Debug)]
pub struct ForwardInput<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// `rows * cols` values.
    pub src: &'a [f64],
    /// `cols` factors; needed with `flags.scale`.
    pub scale: Option<&'a [f64]>,
    /// `cols` summands; needed with `flags.shift`.
    pub shift: Option<&'a [f64]>,
    /// `rows` means; needed with `flags.global_stats`, except with `flags.rms_norm`.
    pub mean: Option<&'a [f64]>,
    /// `rows` variances; needed with `flags.global_stats`.
    pub variance: Option<&'a [f64]>,
    /// Added to the variance inside the root.
    pub epsilon: f64,
    /// The kind of normalization.
    pub flags: Flags,
}

/// A backward problem. `src` and `diff_dst` are row-major; inputs that the flags do not need are
/// not read.
#[derive(Clone, Copy, Debug)]
pub struct BackwardInput<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// `rows * cols` values.
    pub src: &'a [f64],
    /// `rows * cols` values.
    pub diff_dst: &'a [f64],
    /// `cols` factors; needed with `flags.scale`.
    pub scale: Option<&'a [f64]>,
    /// `rows` means; needed except with `flags.rms_norm`.
    pub mean: Option<&'a [f64]>,
    /// `rows` variances. If a row's variance is zero, subnormal in f32 or +Inf, its statistics are unusable, and both
    /// are computed from `src`, unless they are global.
    pub variance: &'a [f64],
    /// Added to the variance inside the root.
    pub epsilon: f64,
    /// The kind of normalization.
    pub flags: Flags,
}

/// Mean (0 for RMS normalization), variance and mean of `|x|` of a row.
fn statistics(x: &[f64], rms_norm: bool) -> (f64, f64, f64) {
    if x.is_empty() {
        return (0.0, 0.0, 0.0);
    }
    let count = x.len() as f64;
    let (mean, mean_abs) = if rms_norm {
        (0.0, 0.0)
    } else {
        let [sum, sum_abs] = pairwise(x.len(), &|c| [x[c], x[c].abs()]);
        (sum / count, sum_abs / count)
    };
    let [squares] = pairwise(x.len(), &|c| {
        let deviation = x[c] - mean;
        [deviation * deviation]
    });
    (mean, squares / count, mean_abs)
}

/// The given values if the flags need them, else `count` times the neutral value.
fn values(name: &str, used: bool, given: Option<&[f64]>, count: usize, neutral: f64) -> Vec<f64> {
    if !used {
        return vec![neutral; count];
    }
    let given = given.unwrap_or_else(|| panic!("the flags need {name}"));
    assert_eq!(given.len(), count, "the number of values in {name}");
    given.to_vec()
}

/// Calls `fill` with how far errors move the results; `scale` has a factor per column.
fn moved(
    src: &[f64],
    (epsilon, flags): (f64, Flags),
    around: Around<'_>,
    scale: &[f64],
    fill: impl FnOnce(&Moved<'_>),
) {
    let cols = scale.len();
    fill(&Moved {
        cols,
        counted: around.counted(cols),
        src,
        src_errors: around.src_errors,
        epsilon,
        flags,
        scale: &|_, c| scale[c],
        channel: &|_, c| c,
    });
}

/// Forward, by the formulas at the top.
///
/// # Panics
/// If an input that the flags need is missing or has the wrong length.
pub fn forward(input: &ForwardInput<'_>) -> ForwardOutput {
    forward_with(input, Around::default())
}

/// The same, including what oneDNN lacks.
///
/// # Panics
/// As [`forward`].
pub fn forward_with(input: &ForwardInput<'_>, around: Around<'_>) -> ForwardOutput {
    let ForwardInput { rows, cols, src, epsilon, flags, .. } = *input;
    let counted = around.counted(cols);
    assert_eq!(src.len(), rows * cols, "src has rows * cols values");
    let scale = values("scale", flags.scale, input.scale, cols, 1.0);
    let shift = values("shift", flags.shift, input.shift, cols, 0.0);
    let (given_mean, given_variance) = if flags.global_stats {
        let mean = values("mean", !flags.rms_norm, input.mean, rows, 0.0);
        (mean, values("variance", true, input.variance, rows, 0.0))
    } else {
        (Vec::new(), Vec::new())
    };

    let mut output = ForwardOutput {
        dst: vec![0.0; rows * cols],
        mean: vec![0.0; rows],
        variance: vec![0.0; rows],
        dst_terms: vec![0.0; rows * cols],
        mean_terms: vec![0.0; rows],
        ..ForwardOutput::default()
    };
    if cols > 0 {
        let values = output.dst.chunks_mut(cols).zip(output.dst_terms.chunks_mut(cols));
        let of_row = output.mean.iter_mut().zip(&mut output.variance).zip(&mut output.mean_terms);
        let rows = values.zip(src.chunks(cols)).zip(of_row);
        parallel::for_each(rows, GRAIN.div_ceil(cols), &|row, (((dst, terms), x), found)| {
            let ((mean, variance), mean_terms) = found;
            (*mean, *variance, *mean_terms) = if flags.global_stats {
                (given_mean[row], given_variance[row], 0.0)
            } else {
                statistics(&x[..counted], flags.rms_norm)
            };
            let r = reciprocal_root(*variance, epsilon);
            let columns = x.iter().zip(&scale).zip(&shift);
            for ((dst, terms), ((x, scale), shift)) in dst.iter_mut().zip(terms).zip(columns) {
                let scaled = (x - *mean) * r * scale;
                *dst = scaled + shift;
                *terms = scaled.abs() + shift.abs();
            }
        });
    }
    if !around.src_errors.is_empty() {
        moved(src, (epsilon, flags), around, &scale, |moved| moved.forward(&mut output));
    }
    if flags.rms_norm {
        output.mean = Vec::new();
    }
    if flags.rms_norm || flags.global_stats {
        output.mean_terms = Vec::new();
    }
    output
}

/// Whether a given variance is unusable: the row's squares underflowed or overflowed in f32.
pub fn is_out_of_range(variance: f64) -> bool {
    variance == f64::INFINITY || (0.0..f64::from(f32::MIN_POSITIVE)).contains(&variance)
}

/// Sums over rows, one value per column.
struct ColumnSums {
    scale: Vec<f64>,
    scale_terms: Vec<f64>,
    shift: Vec<f64>,
    shift_terms: Vec<f64>,
}

impl ColumnSums {
    fn add(&mut self, other: &ColumnSums) {
        for (mine, others) in [
            (&mut self.scale, &other.scale),
            (&mut self.scale_terms, &other.scale_terms),
            (&mut self.shift, &other.shift),
            (&mut self.shift_terms, &other.shift_terms),
        ] {
            mine.iter_mut().zip(others).for_each(|(mine, others)| *mine += others);
        }
    }
}

/// A backward problem with defaults for absent inputs.
struct Backward<'a> {
    input: &'a BackwardInput<'a>,
    around: Around<'a>,
    scale: Vec<f64>,
    mean: Vec<f64>,
    /// The number of rows whose column sums are added sequentially. Larger ranges are halved, to keep the error small.
    block: usize,
}

impl Backward<'_> {
    /// Writes `diff_src` and its terms for the rows from `first`, and returns their column sums.
    fn rows(&self, first: usize, diff_src: &mut [f64], terms: &mut [f64]) -> ColumnSums {
        let cols = self.input.cols;
        let count = diff_src.len() / cols;
        if count > self.block {
            let half = count / 2;
            let (upper, lower) = diff_src.split_at_mut(half * cols);
            let (upper_terms, lower_terms) = terms.split_at_mut(half * cols);
            let (mut sums, more) = rayon::join(
                || self.rows(first, upper, upper_terms),
                || self.rows(first + half, lower, lower_terms),
            );
            sums.add(&more);
            return sums;
        }
        let columns = |used: bool| vec![0.0; if used { cols } else { 0 }];
        let flags = self.input.flags;
        let mut sums = ColumnSums {
            scale: columns(flags.scale),
            scale_terms: columns(flags.scale),
            shift: columns(flags.shift),
            shift_terms: columns(flags.shift),
        };
        let chunks = diff_src.chunks_mut(cols).zip(terms.chunks_mut(cols));
        for (row, (diff_src, terms)) in (first..).zip(chunks) {
            self.row(row, diff_src, terms, &mut sums);
        }
        sums
    }

    fn row(&self, row: usize, diff_src: &mut [f64], terms: &mut [f64], sums: &mut ColumnSums) {
        let BackwardInput { cols, epsilon, flags, .. } = *self.input;
        let src = &self.input.src[row * cols..][..cols];
        let diff_dst = &self.input.diff_dst[row * cols..][..cols];
        let scale = &self.scale[..cols];
        let (mut mean, mut variance) = (self.mean[row], self.input.variance[row]);
        if !flags.global_stats && is_out_of_range(variance) {
            (mean, variance, _) = statistics(&src[..self.around.counted(cols)], flags.rms_norm);
        }
        let r = reciprocal_root(variance, epsilon);
        let xhat = |c: usize| (src[c] - mean) * r;
        let counted = self.around.counted(cols);

        // The means over the row stay 0 if the flags omit them from diff_src.
        let (mut of_d, mut of_d_abs, mut of_dx, mut of_dx_abs) = (0.0, 0.0, 0.0, 0.0);
        if !flags.global_stats {
            let sums = pairwise(cols, &|c| {
                let d = scale[c] * diff_dst[c];
                let dx = d * xhat(c);
                [d, d.abs(), dx, dx.abs()]
            });
            let [d, d_abs, dx, dx_abs] = sums;
            (of_dx, of_dx_abs) = (dx / counted as f64, dx_abs / counted as f64);
            if !flags.rms_norm {
                (of_d, of_d_abs) = (d / cols as f64, d_abs / cols as f64);
            }
        }
        let outputs = diff_src.iter_mut().zip(terms);
        for ((c, d), (diff_src, terms)) in diff_dst.iter().enumerate().zip(outputs) {
            let d = scale[c] * d;
            if flags.global_stats {
                *diff_src = r * d;
                *terms = r * d.abs();
            } else {
                // The statistics do not depend on the elements outside a partial norm.
                let xhat = if c < counted { xhat(c) } else { 0.0 };
                *diff_src = r * (d - of_d - xhat * of_dx);
                *terms = r * (d.abs() + of_d_abs + xhat.abs() * of_dx_abs);
            }
        }
        let columns = sums.scale.iter_mut().zip(&mut sums.scale_terms);
        for ((c, diff_dst), (sum, terms)) in diff_dst.iter().enumerate().zip(columns) {
            let term = diff_dst * xhat(c);
            *sum += term;
            *terms += term.abs();
        }
        let columns = sums.shift.iter_mut().zip(&mut sums.shift_terms);
        for (diff_dst, (sum, terms)) in diff_dst.iter().zip(columns) {
            *sum += diff_dst;
            *terms += diff_dst.abs();
        }
    }
}

/// Backward, by the formulas at the top.
///
/// # Panics
/// If an input that the flags need is missing or has the wrong length.
pub fn backward(input: &BackwardInput<'_>) -> BackwardOutput {
    backward_with(input, Around::default())
}

/// The same, including what oneDNN lacks.
///
/// # Panics
/// As [`backward`].
pub fn backward_with(input: &BackwardInput<'_>, around: Around<'_>) -> BackwardOutput {
    let BackwardInput { rows, cols, src, diff_dst, variance, flags, .. } = *input;
    assert_eq!(src.len(), rows * cols, "src has rows * cols values");
    assert_eq!(diff_dst.len(), rows * cols, "diff_dst has rows * cols values");
    assert_eq!(variance.len(), rows, "variance has one value per row");
    let problem = Backward {
        input,
        around,
        scale: values("scale", flags.scale, input.scale, cols, 1.0),
        mean: values("mean", !flags.rms_norm, input.mean, rows, 0.0),
        block: (GRAIN / cols.max(1)).clamp(16, 256),
    };
    let mut diff_src = vec![0.0; rows * cols];
    let mut diff_src_terms = vec![0.0; rows * cols];
    let sums = if cols == 0 {
        ColumnSums { scale: vec![], scale_terms: vec![], shift: vec![], shift_terms: vec![] }
    } else {
        problem.rows(0, &mut diff_src, &mut diff_src_terms)
    };
    let mut output = BackwardOutput {
        diff_src,
        diff_scale: sums.scale,
        diff_shift: sums.shift,
        diff_src_terms,
        diff_scale_terms: sums.scale_terms,
        diff_shift_terms: sums.shift_terms,
        ..BackwardOutput::default()
    };
    let statistics =
        |row: usize| (problem.mean[row], reciprocal_root(variance[row], input.epsilon));
    moved(src, (input.epsilon, flags), around, &problem.scale, |moved| {
        moved.backward(&statistics, (diff_dst, around.diff_dst_errors), &mut output);
    });
    output
}
