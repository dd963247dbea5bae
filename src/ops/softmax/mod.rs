//! Softmax and logsoftmax along one dimension.
//!
//! Forward, per row x, with `m = max(x)` and `s = sum(exp(x - m))`: `dst = exp(x - m) / s`, or `dst = (x - m) - ln(s)`.
//! Backward, from dst alone: `diff_src = dst * (diff_dst - sum(diff_dst*dst))`, or
//! `diff_src = diff_dst - exp(dst) * sum(diff_dst)`.
//!
//! A row runs along the axis; implementations see tensors with the axis moved to the end. Sums are those of
//! [`fold`](crate::simd::fold) over f32, whatever the types, and the quotient is a product with the reciprocal of the
//! f64 sum, rounded once. A row whose maximum is infinite becomes NaN, or zeros if the maximum is -inf and the
//! algorithm says so. If a tensor is f64, everything is computed in f64.

mod kernel;
mod op;
mod problem;
mod reference;
mod sweeps;
mod vector;
mod wide;

pub(crate) use problem::{Softmax, SoftmaxAlgorithm};
