//! The operations. Each owns its formula, its checks and its implementations, and imports no other.

pub(crate) mod layer_normalization;
pub(crate) mod reorder;
pub(crate) mod softmax;
