//! A function of every element, and its gradient.
//!
//! Forward `dst = f(src)`, then the post-operations. Backward `diff_src = diff_dst * f'(src)`, for some functions from dst. The
//! functions are in `src/simd/math/`; `Elementwise` in `src/rows/` runs them.

mod op;
mod problem;

pub(crate) use problem::{Eltwise, EltwiseFunction};
