//! Layer normalization and RMS normalization: the problem, its checks and its implementations.
//!
//! Forward, per row x of C elements: `dst = (x - mean) / sqrt(variance + epsilon) * scale + shift`
//! with the population variance; with `rms_norm` there is no mean and the variance is `sum(x^2)/C`.
//! Backward, with `r = 1/sqrt(variance + epsilon)`, `d = scale*diff_dst`, `xhat = (x - mean)*r`:
//! `diff_src = r*(d - sum(d)/C - xhat*sum(d*xhat)/C)`; with `rms_norm` no `sum(d)` term, since no mean
//! is subtracted; with `use_global_stats` the statistics are constants and `diff_src = r*d`.
//! `diff_scale = sum over rows of diff_dst*xhat`, `diff_shift = sum over rows of diff_dst`.
//!
//! Sources: Ba, Kiros and Hinton, "Layer Normalization" (2016); Zhang and Sennrich, "Root Mean Square
//! Layer Normalization" (2019).

mod backward;
mod chain;
mod dense;
mod dense_stages;
mod f64_backward;
mod f64_forward;
mod forward;
mod gradient;
mod job;
mod normalize;
mod op;
mod plan;
mod problem;
mod reference;
mod row;
mod schedule;
mod short;
mod short_backward;
mod short_forward;
mod simd_impl;
mod types;

pub(crate) use problem::{BackwardParameters, ForwardParameters, LayerNormalization};
