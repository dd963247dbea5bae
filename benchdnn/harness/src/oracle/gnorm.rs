//! Group normalization and grouped RMS normalization in f64.
//!
//! Per group `x` of `M` elements, with `r = 1/sqrt(variance + epsilon)` (0 where that sum is 0) and a
//! scale and a shift for each channel:
//!
//! ```text
//! group norm   mean = sum(x)/M       variance = sum((x - mean)^2)/M    xhat = (x - mean)*r
//! rms_norm     no mean               variance = sum(x^2)/M             xhat = x*r
//! forward      dst = scale*xhat + shift
//! backward     d = scale*diff_dst
//!   group norm     diff_src = r*(d - sum(d)/M - xhat*sum(d*xhat)/M)
//!   rms_norm       diff_src = r*(d - xhat*sum(d*xhat)/M)
//!   global_stats   diff_src = r*d
//!   per channel    diff_scale = sum(diff_dst*xhat)    diff_shift = sum(diff_dst)
//! ```
//!
//! A partial RMS normalization takes `variance` over the first `k` elements of a group, those of its
//! first channels: `diff_src[i] = r*(d[i] - [i < k] xhat[i]*sum(d*xhat)/k)`.
//!
//! Wu and He, Group Normalization (2018). Each result comes with its `terms`, as in [`lnorm`].
//!
//! [`lnorm`]: super::lnorm

use super::lnorm::{Around, is_out_of_range};
use super::moved::Moved;
use super::normalization::{BackwardOutput, Flags, ForwardOutput, reciprocal_root};
use super::sum::pairwise;
use crate::parallel;

/// The sizes of a tensor, whose elements are in the order of samples, channels and positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Samples.
    pub samples: usize,
    /// Channels.
    pub channels: usize,
    /// Groups of channels.
    pub groups: usize,
    /// Positions of a channel.
    pub positions: usize,
}

impl Sizes {
    /// Elements of a group.
    pub fn elements(&self) -> usize {
        self.channels / self.groups * self.positions
    }

    /// Groups of all samples.
    pub fn all_groups(&self) -> usize {
        self.samples * self.groups
    }

    /// The channel of element `i` of a group, counted over all samples.
    fn channel(&self, group: usize, i: usize) -> usize {
        group % self.groups * (self.channels / self.groups) + i / self.positions
    }
}

/// The inputs of a problem. Those that it does not need are not read.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The sizes of the tensors.
    pub sizes: Sizes,
    /// A value per element.
    pub src: &'a [f64],
    /// A value per element, backward.
    pub diff_dst: &'a [f64],
    /// A factor per channel; needed with `flags.scale`.
    pub scale: Option<&'a [f64]>,
    /// A summand per channel; needed with `flags.shift`, forward.
    pub shift: Option<&'a [f64]>,
    /// A mean per group, for backward or with `flags.global_stats`; `None` with RMS normalization.
    pub mean: Option<&'a [f64]>,
    /// A variance per group, likewise. In backward, zero, subnormal in f32 and +Inf are unusable, so the statistics are
    /// computed from `src`, unless they are global.
    pub variance: Option<&'a [f64]>,
    /// Added to the variance inside the root.
    pub epsilon: f64,
    /// The kind of normalization.
    pub flags: Flags,
}

impl Input<'_> {
    fn scale(&self, group: usize, i: usize) -> f64 {
        self.scale.map_or(1.0, |scale| scale[self.sizes.channel(group, i)])
    }

    fn shift(&self, group: usize, i: usize) -> f64 {
        self.shift.map_or(0.0, |shift| shift[self.sizes.channel(group, i)])
    }

    fn r(&self, variance: f64) -> f64 {
        reciprocal_root(variance, self.epsilon)
    }

    /// Mean (0 for RMS normalization), variance and mean of `|x|` of a group; over its first elements if the norm is
    /// partial.
    fn statistics(&self, x: &[f64], counted: usize) -> (f64, f64, f64) {
        let x = &x[..counted];
        let count = x.len() as f64;
        let (mean, mean_abs) = match self.flags.rms_norm {
            true => (0.0, 0.0),
            false => {
                let [sum, sum_abs] = pairwise(x.len(), &|i| [x[i], x[i].abs()]);
                (sum / count, sum_abs / count)
            }
        };
        let [squares] = pairwise(x.len(), &|i| [(x[i] - mean) * (x[i] - mean)]);
        (mean, squares / count, mean_abs)
    }

    /// How far errors move the results. The groups are rows.
    fn moved_with(&self, around: Around<'_>, fill: impl FnOnce(&Moved<'_>)) {
        let elements = self.sizes.elements();
        fill(&Moved {
            cols: elements,
            counted: around.counted(elements),
            src: self.src,
            src_errors: around.src_errors,
            epsilon: self.epsilon,
            flags: self.flags,
            scale: &|group, i| self.scale(group, i),
            channel: &|group, i| self.sizes.channel(group, i),
        });
    }

    /// The given mean and variance of a group.
    fn given(&self, group: usize) -> Option<(f64, f64)> {
        let variance = self.variance?[group];
        Some((self.mean.map_or(0.0, |mean| mean[group]), variance))
    }
}

/// Forward, by the formulas at the top.
pub fn forward(input: &Input<'_>) -> ForwardOutput {
    forward_with(input, Around::default())
}

/// The same with errors of computed inputs.
pub fn forward_with(input: &Input<'_>, around: Around<'_>) -> ForwardOutput {
    let Input { sizes, src, flags, .. } = *input;
    let (elements, groups) = (sizes.elements(), sizes.all_groups());
    let mut output = ForwardOutput {
        dst: vec![0.0; src.len()],
        mean: vec![0.0; groups],
        variance: vec![0.0; groups],
        dst_terms: vec![0.0; src.len()],
        mean_terms: vec![0.0; groups],
        ..ForwardOutput::default()
    };
    if elements > 0 {
        let values = output.dst.chunks_mut(elements).zip(output.dst_terms.chunks_mut(elements));
        let of_group = output.mean.iter_mut().zip(&mut output.variance).zip(&mut output.mean_terms);
        let groups = values.zip(src.chunks(elements)).zip(of_group);
        parallel::for_each(groups, 1, &|group, (((dst, terms), x), found)| {
            let ((mean, variance), mean_terms) = found;
            (*mean, *variance, *mean_terms) = match input.given(group) {
                Some((mean, variance)) if flags.global_stats => (mean, variance, 0.0),
                _ => input.statistics(x, around.counted(elements)),
            };
            let r = input.r(*variance);
            for (i, (dst, terms)) in dst.iter_mut().zip(terms).enumerate() {
                let scaled = (x[i] - *mean) * r * input.scale(group, i);
                let shift = input.shift(group, i);
                *dst = scaled + shift;
                *terms = scaled.abs() + shift.abs();
            }
        });
    }
    if !around.src_errors.is_empty() {
        input.moved_with(around, |moved| moved.forward(&mut output));
    }
    if flags.rms_norm {
        output.mean = Vec::new();
    }
    if flags.rms_norm || flags.global_stats {
        output.mean_terms = Vec::new();
    }
    output
}

/// Backward, by the formulas at the top.
pub fn backward(input: &Input<'_>) -> BackwardOutput {
    backward_with(input, Around::default())
}

/// The same with errors of computed inputs.
pub fn backward_with(input: &Input<'_>, around: Around<'_>) -> BackwardOutput {
    let Input { sizes, src, diff_dst, flags, .. } = *input;
    let elements = sizes.elements();
    // Mean and 1/root of each group.
    let statistics: Vec<(f64, f64)> = parallel::map(0..sizes.all_groups(), 1, &|group, _| {
        let own = || {
            let x = &src[group * elements..][..elements];
            let (mean, variance, _) = input.statistics(x, around.counted(elements));
            (mean, variance)
        };
        let (mean, variance) = match input.given(group) {
            Some(given) if flags.global_stats || !is_out_of_range(given.1) => given,
            _ => own(),
        };
        (mean, input.r(variance))
    });
    let mut output = BackwardOutput {
        diff_src: vec![0.0; src.len()],
        diff_src_terms: vec![0.0; src.len()],
        ..BackwardOutput::default()
    };
    if elements > 0 {
        let terms = output.diff_src_terms.chunks_mut(elements);
        let groups = output.diff_src.chunks_mut(elements).zip(terms);
        parallel::for_each(groups, 1, &|group, (diff_src, terms)| {
            let counted = around.counted(elements);
            gradient_of_group(input, (group, statistics[group], counted), diff_src, terms);
        });
    }
    // The sums of diff_dst*xhat, diff_dst, and their absolute values, for a channel.
    let sums = |channel: usize, _| {
        pairwise(sizes.samples * sizes.positions, &|i| {
            let (sample, position) = (i / sizes.positions, i % sizes.positions);
            let at = (sample * sizes.channels + channel) * sizes.positions + position;
            let (mean, r) = statistics[at / elements];
            let of_xhat = diff_dst[at] * ((src[at] - mean) * r);
            [of_xhat, of_xhat.abs(), diff_dst[at], diff_dst[at].abs()]
        })
    };
    let sums: Vec<[f64; 4]> = parallel::map(0..sizes.channels, 1, &sums);
    let column = |index: usize| sums.iter().map(|sums| sums[index]).collect();
    if flags.scale {
        (output.diff_scale, output.diff_scale_terms) = (column(0), column(1));
    }
    if flags.shift {
        (output.diff_shift, output.diff_shift_terms) = (column(2), column(3));
    }
    let errors = (diff_dst, around.diff_dst_errors);
    input.moved_with(around, |moved| {
        moved.backward(&|group| statistics[group], errors, &mut output);
    });
    output
}

fn gradient_of_group(
    input: &Input<'_>,
    (group, (mean, r), counted): (usize, (f64, f64), usize),
    diff_src: &mut [f64],
    terms: &mut [f64],
) {
    let elements = diff_src.len();
    let x = &input.src[group * elements..][..elements];
    let diff_dst = &input.diff_dst[group * elements..][..elements];
    let xhat = |i: usize| (x[i] - mean) * r;
    let d = |i: usize| input.scale(group, i) * diff_dst[i];
    let sums = pairwise(elements, &|i| {
        let dx = d(i) * xhat(i);
        [d(i), d(i).abs(), dx, dx.abs()]
    });
    let [of_d, of_d_abs, of_dx, of_dx_abs] = match input.flags {
        Flags { global_stats: true, .. } => [0.0; 4],
        Flags { rms_norm: true, .. } => [0.0, 0.0, sums[2], sums[3]],
        _ => sums,
    }
    .map(|sum| sum / counted as f64);
    for (i, (diff_src, terms)) in diff_src.iter_mut().zip(terms).enumerate() {
        // Global statistics are constants, and those of a partial norm do not depend on the other elements. So xhat,
        // which may be NaN, does not enter the result.
        let constant = input.flags.global_stats || i >= counted;
        let slope = if constant { 0.0 } else { xhat(i) * of_dx };
        let slope_abs = if constant { 0.0 } else { xhat(i).abs() * of_dx_abs };
        *diff_src = r * (d(i) - of_d - slope);
        *terms = r * (d(i).abs() + of_d_abs + slope_abs);
    }
}
