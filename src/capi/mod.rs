//! The C boundary: pointers, checks, statuses, the panic guard. No maths.
//!
//! One file per C object and one per operation. Every exported function is declared with
//! [`exported!`], which wraps it in the guard and asserts that its prototype is the header's. Inside,
//! pointers become references first ([`handle`]) and everything behind is safe code that never heard
//! of C.

mod attr;
mod control;
mod convert;
mod engine;
mod guard;
mod handle;
mod last_error;
mod layer_normalization;
mod memory;
mod memory_desc;
mod names;
#[cfg(feature = "onednn-abi")]
mod onednn;
mod post_ops;
mod primitive;
mod primitive_desc;
mod quantization;
mod reorder;
mod softmax;
mod status;
mod stream;

use guard::exported;
