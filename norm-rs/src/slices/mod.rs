//! Normalization of slices in one call: [`layer_norm`], [`rms_norm`] and their in-place, training
//! and backward forms. The crate root re-exports everything here.
//!
//! A slice holds dense rows of `cols` elements; the number of rows is its length divided by `cols`.
//! All slices of a call have the same element type (statistics are `f32`). For mixed types and
//! other layouts use [`layer_normalization`](crate::layer_normalization), which also has the
//! formulas.
//!
//! # Cost
//!
//! The first call with a combination of function, rows, `cols`, element type, epsilon and optional
//! arguments creates a primitive, which takes a few microseconds. Each thread caches the last
//! [`CACHED`] primitives. A later call adds a few tenths of a microsecond to the execution and
//! makes a few small allocations. To avoid that, create the objects once and reuse them.
//!
//! The functions use the library's threads ([`set_num_threads`](crate::info::set_num_threads)). To
//! use your own threads, see [`Stream::set_parallel_for`](crate::Stream::set_parallel_for).

mod backward;
mod cache;
mod forward;

pub use backward::{
    Gradients, layer_norm_backward, layer_norm_backward_in_place, rms_norm_backward,
    rms_norm_backward_in_place,
};
pub use cache::CACHED;
pub use forward::{
    Statistics, layer_norm, layer_norm_in_place, layer_norm_training, rms_norm, rms_norm_in_place,
    rms_norm_training,
};

use crate::error::{Error, Result};
use crate::layer_normalization::Flags;

/// The number of rows of `cols` elements in a slice of `len`.
fn rows(len: usize, cols: usize) -> Result<usize> {
    if cols == 0 {
        return Err(Error::invalid("cols", "is 0"));
    }
    if !len.is_multiple_of(cols) {
        return Err(Error::invalid(
            "src",
            format_args!("has {len} elements, not a multiple of {cols}"),
        ));
    }
    Ok(len / cols)
}

/// Rejects a slice of the wrong length.
fn expect_len(name: &'static str, len: usize, expected: usize) -> Result<()> {
    if len == expected {
        return Ok(());
    }
    Err(Error::invalid(name, format_args!("has {len} elements instead of {expected}")))
}

/// `flag` if an argument is present.
fn flag_if(given: bool, flag: Flags) -> Flags {
    if given { flag } else { Flags::NONE }
}
