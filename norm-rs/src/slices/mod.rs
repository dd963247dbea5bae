//! Operations on slices in one call: [`layer_norm`], [`rms_norm`], [`softmax`], [`log_softmax`] and
//! their in-place, training and backward forms. The crate root re-exports everything here.
//!
//! A slice holds dense rows of `cols` elements; the number of rows is its length divided by `cols`. Each tensor in a
//! call has its own element type, for example `bf16` rows with an `f32` scale. Rows are `f32`, `f64`, `bf16` or `f16`
//! ([`Float`](crate::Float)); scale, shift and their gradients `f32`, `bf16` or `f16`
//! ([`Parameter`](crate::Parameter)); statistics `f32`. For other layouts, integers and attributes use
//! [`layer_normalization`](crate::layer_normalization) and [`softmax`](mod@crate::softmax), which also have the
//! formulas.
//!
//! A call without scale and shift names a type for them: `None::<&[f32]>`.
//!
//! # Cost
//!
//! The first call with a combination of function, rows, `cols`, element types, epsilon and optional
//! arguments creates a primitive, which takes a few microseconds. Each thread caches the last
//! [`CACHED`] primitives. A later call adds a few tenths of a microsecond to the execution and
//! makes a few small allocations. To avoid that, create the objects once and reuse them.
//!
//! # Threads
//!
//! Every function may be called from any thread at any time. The functions use the library's threads
//! ([`set_num_threads`](crate::info::set_num_threads)), or those of a stream inside
//! [`on_stream`](crate::on_stream).

mod backward;
mod forward;
mod shapes;
mod softmax;

pub use crate::tensors::{CACHED, Statistics};
pub use backward::{
    Gradients, layer_norm_backward, layer_norm_backward_in_place, rms_norm_backward,
    rms_norm_backward_in_place,
};
pub use forward::{
    layer_norm, layer_norm_in_place, layer_norm_training, rms_norm, rms_norm_in_place,
    rms_norm_training,
};
pub use shapes::{
    layer_norm_axis, layer_norm_normalized_shape, rms_norm_axis, rms_norm_normalized_shape,
};
pub use softmax::{
    log_softmax, log_softmax_backward, log_softmax_backward_in_place, log_softmax_in_place,
    softmax, softmax_backward, softmax_backward_in_place, softmax_in_place,
};
