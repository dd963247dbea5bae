//! Primitives on borrowed tensors: what the functions on slices, arrays and other libraries' tensors
//! share.
//!
//! A call describes its tensors ([`Tensor`], [`Input`], [`Output`]), takes the primitive for them
//! from the thread's cache and executes it. Everything here is independent of element types at
//! compile time, so that each combination of them costs no code.

mod cache;
mod normalization;
mod softmax;
mod statistics;
mod stream_scope;
mod view;

pub use cache::CACHED;
pub(crate) use normalization::{Backward, Forward};
pub(crate) use softmax::{Direction as SoftmaxDirection, run as softmax};
pub use statistics::Statistics;
pub use stream_scope::on_stream;
pub(crate) use stream_scope::with_current;
pub(crate) use view::{Input, Output, Pair, rows};
#[cfg(any(feature = "ndarray", feature = "candle"))]
pub(crate) use view::{RANK, Shape, Tensor};
