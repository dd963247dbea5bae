//! Explains the size of a normalization's output: how much of the input epsilon hides, what scale does, and what would
//! change it.
//!
//! This is a diagnostic tool, not part of a model's hot path: it reads tensors of any layout and computes in f64, one
//! element at a time, on the calling thread. It shares no formula with the kernels.

mod remedies;
mod subject;
mod text;

pub(crate) use remedies::{REMEDIES, Remedy, RemedyKind, remedies};
pub(crate) use subject::{Explanation, Subject, View, WARNINGS, explain};
pub(crate) use text::write_text;
