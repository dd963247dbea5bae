//! Reorder: copies a tensor into another layout and data type.
//!
//! For each element `x = src_scale*(src - src_zero_point)`; with a sum, `x += sum_scale*dst`, where
//! dst is the previous content; `dst = x/dst_scale + dst_zero_point`, rounded to nearest even.
//! Integers saturate and NaN becomes 0; e8m0 is rounded down. Block padding of dst is set to zero.
//! Arithmetic is f32, or f64 if a type is s32, s64 or f64. Every step is rounded separately, so that
//! all implementations give the same bits.

mod convert;
mod nest;
mod op;
mod problem;
mod reference;
mod runs;

pub(crate) use problem::Reorder;
