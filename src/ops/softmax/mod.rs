//! Softmax and logsoftmax along one dimension.
//!
//! Forward, per row x, with `m = max(x)` and `s = sum(exp(x - m))`: `dst = exp(x - m) / s`, or `dst = (x - m) - ln(s)`.
//! Backward, from dst alone: `diff_src = dst * (diff_dst - sum(diff_dst*dst))`, or
//! `diff_src = diff_dst - exp(dst) * sum(diff_dst)`.
//!
//! A row is everything along the axis; implementations see tensors with the axis moved to the end. Sums are those of
//! [`fold`](crate::simd::fold) over f32, whatever the types, and the quotient is a product with the reciprocal of the f64 sum,
//! rounded once. A row whose maximum is infinite is NaN, or zeros
//! if it is -inf and the algorithm says so. With an f64 tensor, all of this is f64.

mod kernel;
mod op;
mod problem;
mod reference;
mod vector;
mod wide;

pub(crate) use problem::{Softmax, SoftmaxAlgorithm};
