//! An element-wise function of two tensors, or a selection between them by a third.
//!
//! `dst = f(scale0*src0, scale1*src1)`, then the post-operations. Sources are broadcast. The functions are those of the
//! post-operation; `Elementwise` in `src/rows/` runs them.

mod op;
mod problem;

pub(crate) use problem::Binary;
