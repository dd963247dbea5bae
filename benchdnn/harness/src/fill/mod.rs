//! Data: exact data for comparing with the oracle, random data for comparing the library with itself, and
//! quickly made data for measuring.
//!
//! The same problem, fill and seed give the same data on every machine and thread count. Each
//! driver has a module here for its own tensors; all share the data of attributes.

mod attribute;
pub mod elementwise;
mod gated;
mod generator;
pub mod gnorm;
pub mod lnorm;
mod reorder;
mod rope;
pub mod sdpa;
mod softmax;
mod steps;

pub use attribute::{attribute, before};
pub use gated::{GatedData, gated};
pub use reorder::reorder;
pub use rope::{RopeData, RopeFill, rope};
pub use softmax::{SoftmaxData, softmax};

/// What data is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Statistics that are exact in f32 in any order of summation, and results that expose the known mistakes; for
    /// correctness.
    Exact,
    /// Realistic values, and rows of extreme magnitude; for comparing bits.
    Random,
    /// Moderate values, made quickly; for performance.
    Perf,
}
