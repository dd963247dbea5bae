//! The operations. Each owns its formula, checks and implementations, and imports no other operation.

pub(crate) mod binary;
pub(crate) mod eltwise;
pub(crate) mod explain;
pub(crate) mod gated;
pub(crate) mod group_normalization;
pub(crate) mod layer_normalization;
pub(crate) mod reorder;
pub(crate) mod rope;
pub(crate) mod sdpa;
pub(crate) mod softmax;
