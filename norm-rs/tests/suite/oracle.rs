//! The formulas in f64, as plain loops. Each value has the part of its error bound beyond the
//! rounding to its type: 2^-22 of the terms of its sum.

use norm_rs::layer_normalization::Flags;

/// A value and the allowed error beyond one ulp of the result.
pub(crate) type Expected = (f64, f64);

const TERMS: f64 = 1.0 / (1u32 << 22) as f64;
/// Four ulp of f32.
const FOUR_ULP: f64 = 1.0 / (1u32 << 21) as f64;

/// A normalization of dense rows. Scale and shift are used whatever the flags say.
pub(crate) struct Problem<'a> {
    pub(crate) flags: Flags,
    pub(crate) epsilon: f64,
    pub(crate) cols: usize,
    pub(crate) src: &'a [f64],
    pub(crate) scale: &'a [f64],
    pub(crate) shift: &'a [f64],
    /// Inputs: global statistics in forward, those of the forward pass in backward.
    pub(crate) mean: &'a [f64],
    pub(crate) variance: &'a [f64],
}

pub(crate) struct ForwardResult {
    pub(crate) dst: Vec<Expected>,
    pub(crate) mean: Vec<Expected>,
    pub(crate) variance: Vec<Expected>,
}

pub(crate) struct BackwardResult {
    pub(crate) diff_src: Vec<Expected>,
    pub(crate) diff_scale: Vec<Expected>,
    pub(crate) diff_shift: Vec<Expected>,
}

impl Problem<'_> {
    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.src.chunks(self.cols)
    }

    fn has(&self, flag: Flags) -> bool {
        self.flags.contains(flag)
    }

    fn scale(&self, col: usize) -> f64 {
        if self.has(Flags::SCALE) { self.scale[col] } else { 1.0 }
    }

    fn shift(&self, col: usize) -> f64 {
        if self.has(Flags::SHIFT) { self.shift[col] } else { 0.0 }
    }

    fn factor(&self, variance: f64) -> f64 {
        let sum = variance + self.epsilon;
        if sum == 0.0 { 0.0 } else { 1.0 / sum.sqrt() }
    }

    pub(crate) fn forward(&self) -> ForwardResult {
        let mut result = ForwardResult { dst: vec![], mean: vec![], variance: vec![] };
        for (row, x) in self.rows().enumerate() {
            let count = x.len() as f64;
            let (mut mean, mut variance) = (0.0, 0.0);
            if self.has(Flags::GLOBAL_STATS) {
                variance = self.variance[row];
                if !self.has(Flags::RMS_NORM) {
                    mean = self.mean[row];
                }
            } else {
                if !self.has(Flags::RMS_NORM) {
                    for x in x {
                        mean += x / count;
                    }
                }
                for x in x {
                    variance += (x - mean) * (x - mean) / count;
                }
            }
            let magnitude = x.iter().map(|x| x.abs()).sum::<f64>() / count;
            result.mean.push((mean, FOUR_ULP * magnitude));
            result.variance.push((variance, FOUR_ULP * variance));
            for (col, x) in x.iter().enumerate() {
                let product = (x - mean) * self.factor(variance) * self.scale(col);
                let shift = self.shift(col);
                result.dst.push((product + shift, TERMS * (product.abs() + shift.abs())));
            }
        }
        result
    }

    pub(crate) fn backward(&self, diff_dst: &[f64]) -> BackwardResult {
        let mut diff_src = vec![];
        let mut diff_scale = vec![(0.0, 0.0); self.cols];
        let mut diff_shift = vec![(0.0, 0.0); self.cols];
        for (row, x) in self.rows().enumerate() {
            let diff_dst = &diff_dst[row * self.cols..][..self.cols];
            let count = x.len() as f64;
            let mean = if self.has(Flags::RMS_NORM) { 0.0 } else { self.mean[row] };
            let r = self.factor(self.variance[row]);
            let xhat = |col: usize| (x[col] - mean) * r;
            let d = |col: usize| diff_dst[col] * self.scale(col);

            // The means of d and d*xhat, and of their absolute values.
            let (mut mean_d, mut mean_dx, mut abs_d, mut abs_dx) = (0.0, 0.0, 0.0, 0.0);
            if !self.has(Flags::GLOBAL_STATS) {
                for col in 0..self.cols {
                    if !self.has(Flags::RMS_NORM) {
                        mean_d += d(col) / count;
                        abs_d += d(col).abs() / count;
                    }
                    mean_dx += d(col) * xhat(col) / count;
                    abs_dx += (d(col) * xhat(col)).abs() / count;
                }
            }
            for col in 0..self.cols {
                let value = r * (d(col) - mean_d - xhat(col) * mean_dx);
                let terms = r * (d(col).abs() + abs_d + xhat(col).abs() * abs_dx);
                diff_src.push((value, TERMS * terms));
                for (sum, term) in [
                    (&mut diff_scale[col], diff_dst[col] * xhat(col)),
                    (&mut diff_shift[col], diff_dst[col]),
                ] {
                    *sum = (sum.0 + term, sum.1 + FOUR_ULP * term.abs());
                }
            }
        }
        BackwardResult { diff_src, diff_scale, diff_shift }
    }
}
