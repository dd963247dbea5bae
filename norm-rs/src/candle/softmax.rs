//! Softmax as a custom operation.

use ::candle_core::shape::Dim;
use ::candle_core::{CpuStorage, CustomOp1, Error, Layout, Result, Shape, Tensor};

use super::view::{Buffer, input, on_cpu, refused};
use crate::softmax::Algorithm;
use crate::tensors::{Pair, RANK, SoftmaxDirection, softmax as run};

/// Softmax along dimension `dim`. The result has the shape and the type of `src`.
///
/// # Errors
/// A tensor that is not on the CPU, a type that softmax does not have, or more than 6 dimensions.
/// The error names the argument and says what to change.
pub fn softmax<D: Dim>(src: &Tensor, dim: D) -> Result<Tensor> {
    apply(Algorithm::Accurate, src, dim)
}

/// The logarithm of [`softmax`] along dimension `dim`.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax<D: Dim>(src: &Tensor, dim: D) -> Result<Tensor> {
    apply(Algorithm::Log, src, dim)
}

fn apply<D: Dim>(algorithm: Algorithm, src: &Tensor, dim: D) -> Result<Tensor> {
    let axis = dim.to_index(src.shape(), "softmax")?;
    if src.rank() > RANK {
        let rank = src.rank();
        return Err(refused("src", format_args!("has {rank} dimensions; reshape it to {RANK}")));
    }
    src.apply_op1(Softmax { algorithm, axis })
}

struct Softmax {
    algorithm: Algorithm,
    axis: usize,
}

impl CustomOp1 for Softmax {
    fn name(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Log => "log_softmax",
            _ => "softmax",
        }
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let src = input("src", storage, layout)?;
        let mut dst = Buffer::like(&src)?;
        let pair = Pair::Apart(src, dst.output(layout.dims())?);
        run(self.algorithm, self.axis, SoftmaxDirection::Forward, pair).map_err(Error::wrap)?;
        Ok((dst.into_storage(), layout.shape().clone()))
    }

    fn bwd(&self, _src: &Tensor, dst: &Tensor, diff_dst: &Tensor) -> Result<Option<Tensor>> {
        let (dst_storage, dst_layout) = dst.storage_and_layout();
        let (diff_storage, diff_layout) = diff_dst.storage_and_layout();
        let dst = input("dst", on_cpu("dst", &dst_storage)?, dst_layout)?;
        let diff_dst = input("diff_dst", on_cpu("diff_dst", &diff_storage)?, diff_layout)?;
        let mut diff_src = Buffer::like(&dst)?;
        let pair = Pair::Apart(diff_dst, diff_src.output(dst_layout.dims())?);
        let direction = SoftmaxDirection::Backward { dst };
        run(self.algorithm, self.axis, direction, pair).map_err(Error::wrap)?;
        diff_src.into_tensor(dst_layout.dims()).map(Some)
    }
}
