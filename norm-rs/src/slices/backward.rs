//! Backward functions on slices.

use super::cache::{Problem, plan};
use super::forward::Statistics;
use super::{expect_len, flag_if};
use crate::data_type::Float;
use crate::error::{Error, Result};
use crate::layer_normalization::Flags;
use crate::memory::Memory;
use crate::primitive::{Arg, Args, PropKind};

/// Outputs for the gradients of the parameters; [`Gradients::none`] for frozen parameters.
///
/// They are sums over all rows, of `cols` elements each: `diff_scale = sum(diff_dst*xhat)` and
/// `diff_shift = sum(diff_dst)`.
#[derive(Debug)]
pub struct Gradients<'a, T> {
    /// The gradient of the scale; requires a scale.
    pub diff_scale: Option<&'a mut [T]>,
    /// The gradient of the shift.
    pub diff_shift: Option<&'a mut [T]>,
}

impl<T> Gradients<'_, T> {
    /// No parameter gradients.
    pub fn none() -> Self {
        Self { diff_scale: None, diff_shift: None }
    }
}

/// The incoming gradient and its destination.
enum Data<'a, T> {
    Apart { diff_dst: &'a [T], diff_src: &'a mut [T] },
    InPlace(&'a mut [T]),
}

fn backward<T: Float>(
    norm: Flags,
    src: &[T],
    statistics: &Statistics,
    scale: Option<&[T]>,
    data: Data<'_, T>,
    gradients: Gradients<'_, T>,
) -> Result<()> {
    let &Statistics { cols, epsilon, .. } = statistics;
    let rows = statistics.rows();
    let Gradients { diff_scale, diff_shift } = gradients;
    if statistics.norm != norm {
        return Err(Error::invalid("statistics", "belong to the other normalization"));
    }
    expect_len("src", src.len(), rows * cols)?;
    match &data {
        Data::Apart { diff_dst, diff_src } => {
            expect_len("diff_dst", diff_dst.len(), src.len())?;
            expect_len("diff_src", diff_src.len(), src.len())?;
        }
        Data::InPlace(diff) => expect_len("diff", diff.len(), src.len())?,
    }
    scale.map_or(Ok(()), |scale| expect_len("scale", scale.len(), cols))?;
    if let Some(diff_scale) = &diff_scale {
        expect_len("diff_scale", diff_scale.len(), cols)?;
        if scale.is_none() {
            return Err(Error::invalid("diff_scale", "needs a scale"));
        }
    }
    if let Some(diff_shift) = &diff_shift {
        expect_len("diff_shift", diff_shift.len(), cols)?;
    }

    let frozen = diff_scale.is_none() && diff_shift.is_none();
    let prop_kind = if frozen { PropKind::BackwardData } else { PropKind::Backward };
    let flags =
        norm | flag_if(scale.is_some(), Flags::SCALE) | flag_if(diff_shift.is_some(), Flags::SHIFT);
    let data_type = T::DATA_TYPE;
    let plan = plan(&Problem { prop_kind, rows, cols, data_type, flags, epsilon })?;
    let engine = &plan.engine;

    let (diff_dst, mut diff_src, scale_memory, mut diff_scale_memory, mut diff_shift_memory);
    let mean;
    let src = Memory::from_slice(engine, &plan.rows, src)?;
    let variance = Memory::from_slice(engine, &plan.stats, &statistics.variance)?;
    let mut args = Args::new().input(Arg::Src, &src).input(Arg::Variance, &variance);
    if norm == Flags::NONE {
        mean = Memory::from_slice(engine, &plan.stats, &statistics.mean)?;
        args = args.input(Arg::Mean, &mean);
    }
    match data {
        Data::Apart { diff_dst: from, diff_src: to } => {
            diff_dst = Memory::from_slice(engine, &plan.rows, from)?;
            diff_src = Memory::from_mut_slice(engine, &plan.rows, to)?;
            args = args.input(Arg::DiffDst, &diff_dst).output(Arg::DiffSrc, &mut diff_src);
        }
        Data::InPlace(diff) => {
            diff_src = Memory::from_mut_slice(engine, &plan.rows, diff)?;
            args = args.in_place(Arg::DiffDst, Arg::DiffSrc, &mut diff_src);
        }
    }
    if let Some(scale) = scale {
        scale_memory = Memory::from_slice(engine, &plan.params, scale)?;
        args = args.input(Arg::Scale, &scale_memory);
        if !frozen {
            // The primitive writes both gradients or neither; an unrequested one is discarded.
            diff_scale_memory = match diff_scale {
                Some(diff_scale) => Memory::from_mut_slice(engine, &plan.params, diff_scale)?,
                None => Memory::new(engine, &plan.params)?,
            };
            args = args.output(Arg::DiffScale, &mut diff_scale_memory);
        }
    }
    if let Some(diff_shift) = diff_shift {
        diff_shift_memory = Memory::from_mut_slice(engine, &plan.params, diff_shift)?;
        args = args.output(Arg::DiffShift, &mut diff_shift_memory);
    }
    plan.primitive.execute(&plan.stream, args)
}

/// The gradient of [`layer_norm`](super::layer_norm): `diff_src` and, if requested, those of the
/// parameters.
///
/// `statistics` must come from [`layer_norm_training`](super::layer_norm_training) with the same
/// `src`, and `scale` must be the same. `src`, `diff_dst` and `diff_src` have the same number of
/// rows.
///
/// ```
/// use norm_rs::{Gradients, layer_norm_backward, layer_norm_training};
///
/// let (src, scale, shift) = ([1.0f32, 2.0, 4.0, 8.0], [0.5, 2.0], [0.0, 1.0]);
/// let mut dst = [0.0; 4];
/// let statistics = layer_norm_training(&src, 2, Some(&scale), Some(&shift), 1e-5, &mut dst)?;
///
/// let diff_dst = [1.0, 0.5, 0.25, 2.0];
/// let (mut diff_src, mut diff_scale, mut diff_shift) = ([0.0; 4], [0.0; 2], [0.0; 2]);
/// let gradients =
///     Gradients { diff_scale: Some(&mut diff_scale), diff_shift: Some(&mut diff_shift) };
/// layer_norm_backward(&src, &statistics, Some(&scale), &diff_dst, &mut diff_src, gradients)?;
/// assert_eq!(diff_shift, [1.25, 2.5]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): a wrong length,
/// `diff_scale` without `scale`, or statistics of the other normalization.
pub fn layer_norm_backward<T: Float>(
    src: &[T],
    statistics: &Statistics,
    scale: Option<&[T]>,
    diff_dst: &[T],
    diff_src: &mut [T],
    gradients: Gradients<'_, T>,
) -> Result<()> {
    let data = Data::Apart { diff_dst, diff_src };
    backward(Flags::NONE, src, statistics, scale, data, gradients)
}

/// The gradient of [`rms_norm`](super::rms_norm): `diff_src` and, if requested, those of the
/// parameters.
///
/// `statistics` must come from [`rms_norm_training`](super::rms_norm_training) with the same `src`;
/// otherwise as [`layer_norm_backward`].
///
/// # Errors
/// As [`layer_norm_backward`].
pub fn rms_norm_backward<T: Float>(
    src: &[T],
    statistics: &Statistics,
    scale: Option<&[T]>,
    diff_dst: &[T],
    diff_src: &mut [T],
    gradients: Gradients<'_, T>,
) -> Result<()> {
    let data = Data::Apart { diff_dst, diff_src };
    backward(Flags::RMS_NORM, src, statistics, scale, data, gradients)
}

/// [`layer_norm_backward`] that overwrites `diff_dst` with `diff_src`.
///
/// # Errors
/// As [`layer_norm_backward`].
pub fn layer_norm_backward_in_place<T: Float>(
    src: &[T],
    statistics: &Statistics,
    scale: Option<&[T]>,
    diff: &mut [T],
    gradients: Gradients<'_, T>,
) -> Result<()> {
    backward(Flags::NONE, src, statistics, scale, Data::InPlace(diff), gradients)
}

/// [`rms_norm_backward`] that overwrites `diff_dst` with `diff_src`.
///
/// # Errors
/// As [`layer_norm_backward`].
pub fn rms_norm_backward_in_place<T: Float>(
    src: &[T],
    statistics: &Statistics,
    scale: Option<&[T]>,
    diff: &mut [T],
    gradients: Gradients<'_, T>,
) -> Result<()> {
    backward(Flags::RMS_NORM, src, statistics, scale, Data::InPlace(diff), gradients)
}
