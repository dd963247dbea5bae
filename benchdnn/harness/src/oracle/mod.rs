//! The expected results of each operation, in f64 and as plain as the formula.
//!
//! It has one module per operation. It imports nothing from the library and shares no code with it:
//! two implementations that agree because they share a mistake would prove nothing.

pub mod binary;
pub mod dropout;
pub mod dynamic;
pub mod eltwise;
pub mod estimate;
pub mod gated;
pub mod gnorm;
pub mod lnorm;
mod moved;
mod normalization;
pub mod post_ops;
pub mod reorder;
pub mod rope;
pub mod sdpa;
pub mod softmax;
pub mod steps;
mod sum;
