//! The known mistakes of layer and RMS normalization, as in a faulty library.
//!
//! Written independently of the oracle, with plain loops. The tests first check that without a
//! mistake it agrees with the oracle.

use benchdnn::oracle::lnorm::{BackwardInput, ForwardInput};

/// The mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Nothing.
    None,
    /// RMS normalization's gradient keeps layer normalization's term of the mean, `sum(d)/cols`.
    MeanTermKept,
    /// The part of the gradient through the statistics is not multiplied by `r`.
    FactorMissing,
    /// `1/(sqrt(variance) + epsilon)`.
    EpsilonOutside,
    /// The variance is divided by `cols - 1`.
    SampleVariance,
    /// The last element of a row is omitted from the sums over the row.
    TailNotSummed,
    /// The last element of a row is not written, and stays 0.
    TailNotWritten,
}

/// `dst`, `mean` and `variance`.
pub(crate) struct Forward {
    pub(crate) dst: Vec<f64>,
    pub(crate) mean: Vec<f64>,
    pub(crate) variance: Vec<f64>,
}

/// `diff_src`, `diff_scale` and `diff_shift`; the last two with any flags.
pub(crate) struct Backward {
    pub(crate) diff_src: Vec<f64>,
    pub(crate) diff_scale: Vec<f64>,
    pub(crate) diff_shift: Vec<f64>,
}

fn factor(mistake: Mistake, variance: f64, epsilon: f64) -> f64 {
    match mistake {
        _ if variance + epsilon == 0.0 => 0.0,
        Mistake::EpsilonOutside => 1.0 / (variance.sqrt() + epsilon),
        _ => 1.0 / (variance + epsilon).sqrt(),
    }
}

pub(crate) fn forward(mistake: Mistake, input: &ForwardInput<'_>) -> Forward {
    let (rows, cols, flags) = (input.rows, input.cols, input.flags);
    let count = cols as f64;
    let summed = if mistake == Mistake::TailNotSummed { cols - 1 } else { cols };
    let mut out = Forward { dst: vec![0.0; rows * cols], mean: vec![], variance: vec![] };
    for row in 0..rows {
        let x = &input.src[row * cols..][..cols];
        let mut mean = 0.0;
        if !flags.rms_norm {
            mean = match flags.global_stats {
                true => input.mean.unwrap()[row],
                false => x[..summed].iter().sum::<f64>() / count,
            };
        }
        let squares: f64 = x[..summed].iter().map(|x| (x - mean).powi(2)).sum();
        let variance = match (flags.global_stats, mistake) {
            (true, _) => input.variance.unwrap()[row],
            (false, Mistake::SampleVariance) => squares / (count - 1.0),
            (false, _) => squares / count,
        };
        let r = factor(mistake, variance, input.epsilon);
        let written = if mistake == Mistake::TailNotWritten { cols - 1 } else { cols };
        for (c, x) in x.iter().enumerate().take(written) {
            let scale = if flags.scale { input.scale.unwrap()[c] } else { 1.0 };
            let shift = if flags.shift { input.shift.unwrap()[c] } else { 0.0 };
            out.dst[row * cols + c] = scale * (x - mean) * r + shift;
        }
        out.mean.push(mean);
        out.variance.push(variance);
    }
    out
}

pub(crate) fn backward(mistake: Mistake, input: &BackwardInput<'_>) -> Backward {
    let (rows, cols, flags) = (input.rows, input.cols, input.flags);
    let count = cols as f64;
    let mut out = Backward {
        diff_src: vec![0.0; rows * cols],
        diff_scale: vec![0.0; cols],
        diff_shift: vec![0.0; cols],
    };
    for row in 0..rows {
        let x = &input.src[row * cols..][..cols];
        let diff_dst = &input.diff_dst[row * cols..][..cols];
        let mean = if flags.rms_norm { 0.0 } else { input.mean.unwrap()[row] };
        let r = factor(mistake, input.variance[row], input.epsilon);
        let xhat = |c: usize| (x[c] - mean) * r;
        let d = |c: usize| diff_dst[c] * if flags.scale { input.scale.unwrap()[c] } else { 1.0 };

        let summed = if mistake == Mistake::TailNotSummed { cols - 1 } else { cols };
        let mut of_d = (0..summed).map(d).sum::<f64>() / count;
        let mut of_dx = (0..summed).map(|c| d(c) * xhat(c)).sum::<f64>() / count;
        if flags.rms_norm && mistake != Mistake::MeanTermKept {
            of_d = 0.0;
        }
        if flags.global_stats {
            (of_d, of_dx) = (0.0, 0.0);
        }
        let written = if mistake == Mistake::TailNotWritten { cols - 1 } else { cols };
        for (c, diff_dst) in diff_dst.iter().enumerate().take(written) {
            let through = of_d + xhat(c) * of_dx;
            out.diff_src[row * cols + c] = match mistake {
                Mistake::FactorMissing => r * d(c) - through,
                _ => r * (d(c) - through),
            };
            out.diff_scale[c] += diff_dst * xhat(c);
            out.diff_shift[c] += diff_dst;
        }
    }
    out
}
