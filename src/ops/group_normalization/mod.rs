//! Group normalization and grouped RMS normalization.
//!
//! A tensor has N samples of C channels of P positions. The channels of a sample are divided into G groups of K = C/G,
//! and the M = K*P elements of a group share statistics. Forward: `dst = (x - mean)/sqrt(variance + epsilon)*scale +
//! shift` with scale and shift per channel; with `rms_norm` there is no mean and the variance is `sum(x^2)/M`.
//! Backward, with `r = 1/sqrt(variance + epsilon)`, `d = scale*diff_dst`, `xhat = (x - mean)*r`: `diff_src = r*(d -
//! sum(d)/M - xhat*sum(d*xhat)/M)`, without the `sum(d)` term with `rms_norm`, and `r*d` with `use_global_stats`.
//! `diff_scale = sum(diff_dst*xhat)` and `diff_shift = sum(diff_dst)` over samples and positions.
//!
//! Source: Wu and He, "Group Normalization" (2018).

mod channels_first;
mod channels_last;
mod kernel;
mod op;
mod plan;
mod position_sums;
mod problem;
mod reference;
mod stage;
mod statistics;
mod surround;
mod sweeps;
mod vector;
mod wide;
mod workspace;

pub(crate) use problem::{BackwardParameters, ForwardParameters, GroupNormalization};
