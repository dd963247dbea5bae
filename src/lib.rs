//! libnorm: layer normalization and RMS normalization on the CPU, behind the C interface of
//! `include/norm.h`.
//!
//! The crate exports C functions and nothing else; a Rust program uses the crate `norm-rs`. Modules
//! import downwards only: `capi -> ops -> primitive -> {simd, tensor, threads}`, and all may use
//! `error`.

mod capi;
mod error;
mod ops;
mod primitive;
mod simd;
mod tensor;
mod threads;
