//! Operations with gradients on tensors of the crate [`candle_core`] 0.11, with the feature
//! `candle`.
//!
//! Each function is a custom operation: its result belongs to candle's graph, and
//! [`Tensor::backward`](candle_core::Tensor::backward) calls this library for the gradients. Tensors are on the CPU.
//! Views with any strides are used in place. Rows are f32, bf16, f16 or f64; scale and shift f32,
//! bf16 or f16, whatever the rows are. The result and the gradient of `src` have the type of `src`, the parameters'
//! gradients those of the parameters.
//!
//! ```
//! use candle_core::{Device, Tensor, Var};
//!
//! let x = Tensor::new(&[[1f32, 7.0], [3.0, 4.0]], &Device::Cpu)?;
//! let scale = Var::new(&[1f32, 1.0], &Device::Cpu)?;
//! let y = norm_rs::candle::rms_norm(&x, Some(&scale), None, 1e-5)?;
//! let gradients = y.sum_all()?.backward()?;
//! let diff_scale = gradients.get(&scale).expect("scale is a variable").to_vec1::<f32>()?;
//! assert!((diff_scale[0] - (1.0 / 5.0 + 3.0 / 12.5f32.sqrt())).abs() < 1e-4);
//! # Ok::<(), candle_core::Error>(())
//! ```
//!
//! Every function may be called from any thread; [`on_stream`](crate::on_stream) chooses the threads
//! that execute.

mod normalization;
mod softmax;
mod view;

pub use normalization::{layer_norm, rms_norm};
pub use softmax::{log_softmax, softmax};
