//! Gated activation: a function of a gate times another tensor, `up`, and the gradients.
//!
//! `dst = f(min(gate, limit)) * (clamp(up, -limit, limit) + shift)`. Gate and up are two tensors or the halves of one.
//! A half, interleaved or not, is a tensor with an offset and strides, so implementations see only views.
//! `functions.rs` computes elements in f32, independent of their position; the reference shares it.

mod functions;
mod kernel;
mod op;
mod problem;
mod reference;
#[cfg(test)]
mod tests;
mod vector;
mod view;

pub(crate) use problem::{Backward, Common, Forward, Gated, GatedFunction, Packing};
