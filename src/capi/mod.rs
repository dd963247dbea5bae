//! The C boundary: pointers, argument checks, statuses and the panic guard. No maths.
//!
//! There is one file per C object and one per operation. Every exported function is declared with
//! [`exported!`], which wraps it in the guard and checks its prototype against the header. Pointers
//! become references first ([`handle`]); everything behind that is safe code independent of C.

mod around;
mod attr;
mod binary;
mod control;
mod convert;
mod dropout;
mod eltwise;
mod engine;
mod explain;
mod gated;
mod group_normalization;
mod guard;
mod handle;
mod host_scalar;
mod kv_cache;
mod last_error;
mod layer_normalization;
mod memory;
mod memory_desc;
mod names;
#[cfg(feature = "onednn-abi")]
mod onednn;
mod pool;
mod post_ops;
mod primitive;
mod primitive_desc;
mod quantization;
mod reorder;
mod rope;
mod sdpa;
mod softmax;
mod softmax_stats;
mod status;
mod stream;

use guard::exported;
