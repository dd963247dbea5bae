//! A function of every element, and its gradient.
//!
//! Forward is `dst = f(src)`, then the post-operations. Backward is `diff_src = diff_dst * f'(src)`; some functions
//! compute it from dst instead of src. The functions are in `src/simd/math/`; `Elementwise` in `src/rows/` runs them.

mod op;
mod problem;

pub(crate) use problem::{Eltwise, EltwiseFunction};
