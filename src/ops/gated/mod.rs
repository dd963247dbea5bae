//! Gated activation: a function of a gate times another tensor, `up`, and the gradients.
//!
//! `dst = f(min(gate, limit)) * (up within +-limit, + shift)`. Gate and up are two tensors or halves of one; every half, and
//! every interleaved one, is a tensor with an offset and strides, so implementations know a packing only by its views.
//! Elements are computed in f32 by the functions of `functions.rs`, which the reference shares; nothing depends on where an
//! element lies.

mod functions;
mod kernel;
mod op;
mod problem;
mod reference;
mod vector;
mod view;

pub(crate) use problem::{Backward, Common, Forward, Gated, GatedFunction, Packing};
