//! Layer and RMS normalization as custom operations.

use std::sync::OnceLock;

use ::candle_core::{
    CpuStorage, CustomOp1, CustomOp2, CustomOp3, Error, Layout, Result, Shape, Tensor,
};

use super::view::{Buffer, check_parameter, input, on_cpu, refused, vector};
use crate::layer_normalization::Flags;
use crate::tensors::{Backward, Forward, Pair, Statistics};

/// The most dimensions that the primitive supports.
const RANK: usize = 5;

/// Layer normalization along the last dimension: `(src - mean) / sqrt(variance + epsilon) * scale +
/// shift`.
///
/// `src` has any dimensions, `scale` and `shift`, if given, are vectors of the size of the last. The
/// result has the shape and the type of `src`.
///
/// # Errors
/// A tensor that is not on the CPU, a type or length that does not fit, a scale and a shift of
/// different types, or an epsilon that is negative or not finite. The error names the argument and
/// says what to change.
pub fn layer_norm(
    src: &Tensor,
    scale: Option<&Tensor>,
    shift: Option<&Tensor>,
    epsilon: f32,
) -> Result<Tensor> {
    apply(Flags::NONE, src, scale, shift, epsilon)
}

/// RMS normalization along the last dimension: `src / sqrt(mean of src^2 + epsilon) * scale +
/// shift`.
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm(
    src: &Tensor,
    scale: Option<&Tensor>,
    shift: Option<&Tensor>,
    epsilon: f32,
) -> Result<Tensor> {
    apply(Flags::RMS_NORM, src, scale, shift, epsilon)
}

fn apply(
    norm: Flags,
    src: &Tensor,
    scale: Option<&Tensor>,
    shift: Option<&Tensor>,
    epsilon: f32,
) -> Result<Tensor> {
    for (name, parameter) in [("scale", scale), ("shift", shift)] {
        parameter.map_or(Ok(()), |parameter| check_parameter(name, parameter))?;
    }
    let Some(&cols) = src.dims().last() else {
        return Err(refused("src", "has no dimensions; pass a tensor of rows"));
    };
    if !(2..=RANK).contains(&src.rank()) {
        let rows = src.reshape(((), cols))?;
        return apply(norm, &rows, scale, shift, epsilon)?.reshape(src.shape());
    }
    let op =
        Normalization { norm, epsilon, parameters: Parameters::None, statistics: OnceLock::new() };
    match (scale, shift) {
        (None, None) => src.apply_op1(op),
        (Some(scale), None) => {
            src.apply_op2(scale, Normalization { parameters: Parameters::Scale, ..op })
        }
        (None, Some(shift)) => {
            src.apply_op2(shift, Normalization { parameters: Parameters::Shift, ..op })
        }
        (Some(scale), Some(shift)) => {
            src.apply_op3(scale, shift, Normalization { parameters: Parameters::Both, ..op })
        }
    }
}

/// The arguments after the first one.
#[derive(Clone, Copy, PartialEq)]
enum Parameters {
    None,
    Scale,
    Shift,
    Both,
}

/// One application. It keeps the statistics for its backward pass.
struct Normalization {
    norm: Flags,
    epsilon: f32,
    parameters: Parameters,
    statistics: OnceLock<Statistics>,
}

impl Normalization {
    fn title(&self) -> &'static str {
        if self.norm == Flags::NONE { "layer_norm" } else { "rms_norm" }
    }

    fn forward(
        &self,
        src: (&CpuStorage, &Layout),
        scale: Option<(&CpuStorage, &Layout)>,
        shift: Option<(&CpuStorage, &Layout)>,
    ) -> Result<(CpuStorage, Shape)> {
        let dims = src.1.dims();
        let src = input("src", src.0, src.1)?;
        let scale = scale.map(|(storage, layout)| vector("scale", storage, layout)).transpose()?;
        let shift = shift.map(|(storage, layout)| vector("shift", storage, layout)).transpose()?;
        let mut dst = Buffer::like(&src)?;
        let call = Forward { norm: self.norm, epsilon: self.epsilon, scale, shift };
        let statistics = call.training(Pair::Apart(src, dst.output(dims)?)).map_err(Error::wrap)?;
        // A second execution has the same tensors and therefore the same statistics.
        let _ = self.statistics.set(statistics);
        Ok((dst.into_storage(), Shape::from(dims)))
    }

    /// The gradients of src, of scale and of shift.
    fn backward(
        &self,
        src: &Tensor,
        scale: Option<&Tensor>,
        shift: Option<&Tensor>,
        diff_dst: &Tensor,
    ) -> Result<[Option<Tensor>; 3]> {
        let statistics = self
            .statistics
            .get()
            .ok_or_else(|| refused("statistics", "are missing: forward did not run"))?;
        let (src_storage, src_layout) = src.storage_and_layout();
        let (diff_storage, diff_layout) = diff_dst.storage_and_layout();
        let src = input("src", on_cpu("src", &src_storage)?, src_layout)?;
        let diff_dst = input("diff_dst", on_cpu("diff_dst", &diff_storage)?, diff_layout)?;
        let dims = src_layout.dims();
        let cols = dims.last().copied().unwrap_or(0);
        let mut diff_src = Buffer::like(&src)?;
        let mut diff_scale = scale.map(|scale| Buffer::zeros(scale.dtype(), cols)).transpose()?;
        let mut diff_shift = shift.map(|shift| Buffer::zeros(shift.dtype(), cols)).transpose()?;

        let scale = scale.map(Tensor::storage_and_layout);
        let scale = scale
            .as_ref()
            .map(|(storage, layout)| vector("scale", on_cpu("scale", storage)?, layout));
        let call = Backward {
            norm: self.norm,
            src,
            statistics,
            scale: scale.transpose()?,
            diff_scale: diff_scale.as_mut().map(|sum| sum.output(&[cols])).transpose()?,
            diff_shift: diff_shift.as_mut().map(|sum| sum.output(&[cols])).transpose()?,
        };
        call.run(Pair::Apart(diff_dst, diff_src.output(dims)?)).map_err(Error::wrap)?;
        let sum = |buffer: Option<Buffer>| buffer.map(|b| b.into_tensor(&[cols])).transpose();
        Ok([Some(diff_src.into_tensor(dims)?), sum(diff_scale)?, sum(diff_shift)?])
    }
}

impl CustomOp1 for Normalization {
    fn name(&self) -> &'static str {
        self.title()
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        self.forward((storage, layout), None, None)
    }

    fn bwd(&self, src: &Tensor, _dst: &Tensor, diff_dst: &Tensor) -> Result<Option<Tensor>> {
        let [diff_src, ..] = self.backward(src, None, None, diff_dst)?;
        Ok(diff_src)
    }
}

impl CustomOp2 for Normalization {
    fn name(&self) -> &'static str {
        self.title()
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (scale, shift) = match self.parameters {
            Parameters::Shift => (None, Some((s2, l2))),
            _ => (Some((s2, l2)), None),
        };
        self.forward((s1, l1), scale, shift)
    }

    fn bwd(
        &self,
        src: &Tensor,
        parameter: &Tensor,
        _dst: &Tensor,
        diff_dst: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok(match self.parameters {
            Parameters::Shift => {
                let [diff_src, _, diff_shift] =
                    self.backward(src, None, Some(parameter), diff_dst)?;
                (diff_src, diff_shift)
            }
            _ => {
                let [diff_src, diff_scale, _] =
                    self.backward(src, Some(parameter), None, diff_dst)?;
                (diff_src, diff_scale)
            }
        })
    }
}

impl CustomOp3 for Normalization {
    fn name(&self) -> &'static str {
        self.title()
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
        s3: &CpuStorage,
        l3: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward((s1, l1), Some((s2, l2)), Some((s3, l3)))
    }

    fn bwd(
        &self,
        src: &Tensor,
        scale: &Tensor,
        shift: &Tensor,
        _dst: &Tensor,
        diff_dst: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let [diff_src, diff_scale, diff_shift] =
            self.backward(src, Some(scale), Some(shift), diff_dst)?;
        Ok((diff_src, diff_scale, diff_shift))
    }
}
