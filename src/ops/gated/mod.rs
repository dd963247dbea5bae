//! Gated activation: a function of a gate times another tensor, `up`, and the gradients.
//!
//! `dst = f(min(gate, limit)) * (up within +-limit, + shift)`. Gate and up are two tensors or halves of one; every
//! half, interleaved or not, is a tensor with an offset and strides, so implementations see a packing only as views.
//! Elements are computed in f32 by `functions.rs`, which the reference shares, whatever their position.

mod functions;
mod kernel;
mod op;
mod problem;
mod reference;
mod vector;
mod view;

pub(crate) use problem::{Backward, Common, Forward, Gated, GatedFunction, Packing};
