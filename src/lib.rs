//! libnorm: normalizations, softmax, rope, gated activations and attention on the CPU, with the C API of
//! `include/norm.h`.
//!
//! The crate exports C functions only. Rust programs use the crate `norm-rs`. Modules import
//! downwards only: `capi -> {ops, cache} -> rows -> primitive -> {simd, tensor, threads}`, and every module
//! may use the files beside this one.

mod cache;
mod capi;
mod environment;
mod error;
mod fork;
mod heap;
mod mark;
mod ops;
mod per_thread;
mod primitive;
mod rows;
mod simd;
mod tensor;
mod text;
mod threads;
