//! Reorder: a tensor brought into another layout and another element type.
//!
//! Each element: `x = src_scale*(src - src_zero_point)`; with a sum, `x += sum_scale*dst`, dst as it was before;
//! `dst = x/dst_scale + dst_zero_point`, rounded to nearest even; integers saturate and NaN becomes 0. What fills
//! up the blocks of dst becomes zeros. Arithmetic is f32, or f64 where one of the types is s32 or f64, each step
//! rounded by itself, so that every implementation gives the same bits.

mod convert;
mod nest;
mod problem;
mod reference;
mod runs;

pub(crate) use problem::Reorder;
