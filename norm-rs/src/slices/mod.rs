//! One line per normalization, on slices: [`layer_norm`], [`rms_norm`] and their in-place, training
//! and backward forms. Everything here is also at the crate's root.
//!
//! A slice holds dense rows of `cols` elements; the number of rows is its length divided by `cols`.
//! All slices of one call have one element type (statistics are `f32`); other mixes, other layouts
//! and more than one precision per call are for
//! [`layer_normalization`](crate::layer_normalization). The formulas stand there too.
//!
//! # Cost
//!
//! The first call with a combination of function, rows, `cols`, element type, epsilon and optional
//! arguments creates a primitive: a few microseconds. Each thread keeps the last [`CACHED`] that it
//! used, so that later calls only look theirs up and wrap the slices: a few tenths of a microsecond
//! on top of the execution, and a few small allocations. Where that matters, objects that are made
//! once save it.
//!
//! The functions use the library's threads
//! ([`set_num_threads`](crate::info::set_num_threads)); for threads of your own there is
//! [`Stream::set_parallel_for`](crate::Stream::set_parallel_for).

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

/// How many rows of `cols` elements a slice of `len` holds.
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

/// Refuses a slice that has another length than it should.
fn expect_len(name: &'static str, len: usize, expected: usize) -> Result<()> {
    if len == expected {
        return Ok(());
    }
    Err(Error::invalid(name, format_args!("has {len} elements instead of {expected}")))
}

/// `flag` if an argument is given.
fn flag_if(given: bool, flag: Flags) -> Flags {
    if given { flag } else { Flags::NONE }
}
