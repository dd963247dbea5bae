//! Layer normalization, RMS normalization, attention, softmax and more on the CPU, forward and
//! backward: the safe Rust API of libnorm.
//!
//! # In one line
//!
//! ```
//! let src = [3.0f32, -1.0, 2.0, 5.0, 0.5, 1.0]; // two rows of three
//! let scale = [1.0f32, 0.5, 2.0];
//! let mut dst = [0.0f32; 6];
//! norm_rs::rms_norm(&src, 3, Some(&scale), None, 1e-5, &mut dst)?;
//!
//! let rms = ((9.0 + 1.0 + 4.0) / 3.0f32 + 1e-5).sqrt();
//! assert!((dst[0] - 3.0 / rms).abs() < 1e-6);
//! # Ok::<(), norm_rs::Error>(())
//! ```
//!
//! [`slices`] has [`layer_norm`], [`softmax()`], the in-place and training forms, and their gradients. Elements are
//! `f32`, `f64`, [`bf16`] or [`f16`](struct@f16), in any combination.
//!
//! # With objects
//!
//! The objects are those of oneDNN. An [`Engine`] and [`MemoryDesc`]s make a primitive
//! ([`layer_normalization::Forward`]). A descriptor and a buffer make a [`Memory`]. The primitive
//! executes on a [`Stream`]. Objects support any strides, any mix of element types and reused
//! buffers.
//!
//! ```
//! use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
//! use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream, bf16};
//!
//! let engine = Engine::cpu()?;
//! let stream = Stream::new(&engine)?;
//!
//! // Two rows of four bf16, padded to six; the result is dense f32.
//! let src_desc = MemoryDesc::with_strides(&[2, 4], DataType::Bf16, &[6, 1])?;
//! let dst_desc = MemoryDesc::dense(&[2, 4], DataType::F32)?;
//! let layer_norm = Forward::inference(&engine, &src_desc)
//!     .dst(&dst_desc)
//!     .epsilon(1e-5)
//!     .flags(Flags::SCALE)
//!     .build()?;
//!
//! let x: Vec<bf16> = (0..12).map(|i| bf16::from_f32(i as f32)).collect();
//! let scale_desc = MemoryDesc::dense(&[4], DataType::F32)?;
//! let src = Memory::from_slice(&engine, &src_desc, &x)?;
//! let scale = Memory::from_slice(&engine, &scale_desc, &[1.0f32, 1.0, 1.0, 3.0])?;
//! let mut dst = Memory::new(&engine, &dst_desc)?;
//! layer_norm.execute(&stream, ForwardArgs::new(&src, &mut dst).scale(&scale))?;
//!
//! // The rows are 0 1 2 3 and 6 7 8 9: mean 1.5 and 7.5, variance 1.25.
//! let r = 1.0 / (1.25f32 + 1e-5).sqrt();
//! let dst = dst.as_slice::<f32>()?;
//! assert!((dst[0] + 1.5 * r).abs() < 1e-6 && (dst[7] - 3.0 * 1.5 * r).abs() < 1e-6);
//! # Ok::<(), norm_rs::Error>(())
//! ```
//!
//! # Safety and reproducibility
//!
//! Only memory over raw buffers ([`Memory::from_raw`]) needs `unsafe`, and no safe call causes
//! undefined behaviour. Buffers are checked against their descriptors and outlive the memory over
//! them. Outputs are borrowed exclusively. Threads can share primitives; each thread has its own
//! [`Stream`] and outputs. Results have the same bits on every instruction set and for every number
//! of threads.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `half` (default) | [`bf16`] and [`f16`](struct@f16) |
//! | `ndarray` | the module `ndarray`: the functions on arrays with any strides |
//! | `rayon` | `Stream::on_rayon` and `Stream::on_rayon_pool`: executions on rayon's threads |
//! | `candle` | the module `candle`: operations with gradients on candle's tensors |
//!
//! # Linking
//!
//! | feature | the library comes from |
//! |---|---|
//! | `bundled` (default) | the `libnorm` crate, compiled into the program |
//! | `system` | an installed `libnorm.so`: in the directory `NORM_LIB_DIR` if that is set at build time, otherwise where pkg-config finds it |
//! | `avx2`, `avx512` (default) | `bundled` has kernels for these instruction sets, besides portable code and NEON |
//!
//! If both are enabled, `system` wins, because it is never enabled by default. To avoid compiling
//! the `libnorm` crate, use
//! `default-features = false, features = ["system", "half"]`.

#[cfg(not(any(feature = "bundled", feature = "system")))]
compile_error!("norm-rs needs the feature `bundled` (the default) or `system`");

// Names the crate so that its exported functions are linked.
#[cfg(all(feature = "bundled", not(feature = "system")))]
use norm as _;

mod args;
mod handle;
mod in_place;
mod parallel_for;
mod tensors;

pub mod attr;
pub mod binary;
#[cfg(feature = "candle")]
pub mod candle;
pub mod data_type;
pub mod eltwise;
pub mod engine;
pub mod error;
pub mod explain;
pub mod gated;
pub mod group_normalization;
pub mod info;
pub mod kv_cache;
pub mod layer_normalization;
pub mod memory;
pub mod memory_desc;
#[cfg(feature = "ndarray")]
pub mod ndarray;
pub mod post_ops;
pub mod primitive;
#[cfg(feature = "rayon")]
mod rayon;
pub mod reorder;
pub mod rope;
pub mod sdpa;
pub mod slices;
pub mod softmax;
pub mod stream;
pub mod tag;

pub use attr::{Attr, DynamicScale, Gating, ResidualRounding, ScratchpadMode};
pub use data_type::{DataType, Element, Float, Parameter};
pub use engine::{Engine, EngineKind};
pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "half")]
pub use half::{bf16, f16};
pub use memory::Memory;
pub use memory_desc::{Dims, MemoryDesc};
pub use slices::{
    Gradients, Statistics, layer_norm, layer_norm_axis, layer_norm_backward,
    layer_norm_backward_in_place, layer_norm_in_place, layer_norm_normalized_shape,
    layer_norm_training, log_softmax, log_softmax_backward, log_softmax_backward_in_place,
    log_softmax_in_place, rms_norm, rms_norm_axis, rms_norm_backward, rms_norm_backward_in_place,
    rms_norm_in_place, rms_norm_normalized_shape, rms_norm_training, softmax, softmax_backward,
    softmax_backward_in_place, softmax_in_place,
};
pub use stream::Stream;
pub use tag::Tag;
pub use tensors::on_stream;

/// Compiles and runs the examples of the project's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme_of_the_project {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/getting-started.md")]
mod five_minutes {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/rust.md")]
mod guide {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/from-pytorch.md")]
mod from_pytorch {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/five-minutes-rust.md")]
mod first_programs {}
