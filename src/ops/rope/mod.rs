//! Rotary position embedding, forward and backward, with an optional RMS normalization of each head before it.
//!
//! The cosines and sines of a token's angles are computed once ([`angles`]). Then the pairs of all its heads are
//! rotated, directly on the tensors' types ([`kernel`]): with `t = position * frequency`, `a' = a cos(t) - b sin(t)`
//! and `b' = a sin(t) + b cos(t)`. The first products are exact for f32 results. Backward negates the sines and then,
//! with a normalization, computes its gradient ([`through`]). Angles and their reduction are f64, so they are accurate
//! at any position; only the sine and the cosine are rounded.
//!
//! The dimensions of a tensor are split into tokens, which have their own positions, and heads, which share them
//! ([`plan`]). [`frequencies`] has the formulas for the configurations of models, [`permute`] the conversion of
//! weights.

mod angles;
mod frequencies;
mod kernel;
mod norm;
mod op;
mod permute;
mod plan;
mod positions;
mod problem;
mod reference;
mod through;
mod vector;

pub(crate) use frequencies::{Scaling, frequencies};
pub(crate) use permute::{Permuted, permute};
pub(crate) use problem::{AngleSource, Pairing, Parameters, Rope};
pub(crate) use through::{Normalized, RopeThroughNorm};
