//! Forward functions on slices.

use super::cache::{Problem, plan};
use super::{expect_len, flag_if, rows};
use crate::data_type::Float;
use crate::error::Result;
use crate::layer_normalization::Flags;
use crate::memory::Memory;
use crate::primitive::{Arg, Args, PropKind};

/// Row statistics of a training forward pass, for the backward pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    pub(super) cols: usize,
    pub(super) epsilon: f32,
    pub(super) norm: Flags,
    pub(super) mean: Vec<f32>,
    pub(super) variance: Vec<f32>,
}

impl Statistics {
    /// The mean of each row; empty for RMS normalization.
    pub fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// The population variance of each row, without epsilon. For RMS normalization, the mean of its
    /// squares.
    pub fn variance(&self) -> &[f32] {
        &self.variance
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.variance.len()
    }

    /// The elements per row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The epsilon of the forward pass.
    pub fn epsilon(&self) -> f32 {
        self.epsilon
    }
}

/// The source and the destination.
enum Data<'a, T> {
    Apart { src: &'a [T], dst: &'a mut [T] },
    InPlace(&'a mut [T]),
}

impl<T> Data<'_, T> {
    fn len(&self) -> usize {
        match self {
            Self::Apart { src, .. } => src.len(),
            Self::InPlace(src_dst) => src_dst.len(),
        }
    }
}

/// Common arguments of the forward functions; `norm` is `NONE` or `RMS_NORM`.
struct Call<'a, T> {
    norm: Flags,
    cols: usize,
    scale: Option<&'a [T]>,
    shift: Option<&'a [T]>,
    epsilon: f32,
}

impl<T: Float> Call<'_, T> {
    fn inference(&self, data: Data<'_, T>) -> Result<()> {
        self.run(PropKind::ForwardInference, data, &mut [], &mut [])
    }

    fn training(&self, data: Data<'_, T>) -> Result<Statistics> {
        let rows = rows(data.len(), self.cols)?;
        let mut mean = vec![0.0; if self.norm == Flags::NONE { rows } else { 0 }];
        let mut variance = vec![0.0; rows];
        self.run(PropKind::ForwardTraining, data, &mut mean, &mut variance)?;
        let &Call { norm, cols, epsilon, .. } = self;
        Ok(Statistics { cols, epsilon, norm, mean, variance })
    }

    /// `mean` and `variance` are only used in training.
    fn run(
        &self,
        prop_kind: PropKind,
        data: Data<'_, T>,
        mean: &mut [f32],
        variance: &mut [f32],
    ) -> Result<()> {
        let &Call { norm, cols, scale, shift, epsilon } = self;
        let rows = rows(data.len(), cols)?;
        if let Data::Apart { src, dst } = &data {
            expect_len("dst", dst.len(), src.len())?;
        }
        scale.map_or(Ok(()), |scale| expect_len("scale", scale.len(), cols))?;
        shift.map_or(Ok(()), |shift| expect_len("shift", shift.len(), cols))?;

        let flags =
            norm | flag_if(scale.is_some(), Flags::SCALE) | flag_if(shift.is_some(), Flags::SHIFT);
        let data_type = T::DATA_TYPE;
        let plan = plan(&Problem { prop_kind, rows, cols, data_type, flags, epsilon })?;
        let engine = &plan.engine;

        let (src, mut dst, scale_memory, shift_memory, mut mean_memory, mut variance_memory);
        let mut args = Args::new();
        match data {
            Data::Apart { src: from, dst: to } => {
                src = Memory::from_slice(engine, &plan.rows, from)?;
                dst = Memory::from_mut_slice(engine, &plan.rows, to)?;
                args = args.input(Arg::Src, &src).output(Arg::Dst, &mut dst);
            }
            Data::InPlace(src_dst) => {
                dst = Memory::from_mut_slice(engine, &plan.rows, src_dst)?;
                args = args.in_place(Arg::Src, Arg::Dst, &mut dst);
            }
        }
        if let Some(scale) = scale {
            scale_memory = Memory::from_slice(engine, &plan.params, scale)?;
            args = args.input(Arg::Scale, &scale_memory);
        }
        if let Some(shift) = shift {
            shift_memory = Memory::from_slice(engine, &plan.params, shift)?;
            args = args.input(Arg::Shift, &shift_memory);
        }
        if prop_kind == PropKind::ForwardTraining {
            variance_memory = Memory::from_mut_slice(engine, &plan.stats, variance)?;
            args = args.output(Arg::Variance, &mut variance_memory);
            if norm == Flags::NONE {
                mean_memory = Memory::from_mut_slice(engine, &plan.stats, mean)?;
                args = args.output(Arg::Mean, &mut mean_memory);
            }
        }
        plan.primitive.execute(&plan.stream, args)
    }
}

/// Layer normalization of rows: `dst = (src - mean) / sqrt(variance + epsilon) * scale + shift`.
///
/// `src` and `dst` hold rows of `cols` elements; `scale` and `shift`, if given, have `cols`.
///
/// ```
/// let src = [1.0f32, 2.0, 3.0, 4.0, 6.0, 8.0];
/// let mut dst = [0.0; 6];
/// norm_rs::layer_norm(&src, 3, Some(&[1.0, 1.0, 2.0]), None, 1e-5, &mut dst)?;
/// assert!((dst[2] - 2.0 * 1.2247).abs() < 1e-3);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): a wrong length, `cols` 0,
/// or an epsilon that is negative or not finite.
pub fn layer_norm<T: Float>(
    src: &[T],
    cols: usize,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
    epsilon: f32,
    dst: &mut [T],
) -> Result<()> {
    Call { norm: Flags::NONE, cols, scale, shift, epsilon }.inference(Data::Apart { src, dst })
}

/// RMS normalization of rows: `dst = src / sqrt(mean of src^2 + epsilon) * scale + shift`.
///
/// `src` and `dst` hold rows of `cols` elements; `scale` and `shift`, if given, have `cols`.
///
/// ```
/// let src = [1.0f32, 7.0]; // the root of the mean square is 5
/// let mut dst = [0.0; 2];
/// norm_rs::rms_norm(&src, 2, None, None, 0.0, &mut dst)?;
/// assert_eq!(dst, [0.2, 1.4]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm<T: Float>(
    src: &[T],
    cols: usize,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
    epsilon: f32,
    dst: &mut [T],
) -> Result<()> {
    Call { norm: Flags::RMS_NORM, cols, scale, shift, epsilon }.inference(Data::Apart { src, dst })
}

/// [`layer_norm`] that overwrites the source.
///
/// # Errors
/// As [`layer_norm`].
pub fn layer_norm_in_place<T: Float>(
    src_dst: &mut [T],
    cols: usize,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
    epsilon: f32,
) -> Result<()> {
    Call { norm: Flags::NONE, cols, scale, shift, epsilon }.inference(Data::InPlace(src_dst))
}

/// [`rms_norm`] that overwrites the source.
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm_in_place<T: Float>(
    src_dst: &mut [T],
    cols: usize,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
    epsilon: f32,
) -> Result<()> {
    Call { norm: Flags::RMS_NORM, cols, scale, shift, epsilon }.inference(Data::InPlace(src_dst))
}

/// [`layer_norm`] that also returns the statistics for
/// [`layer_norm_backward`](super::layer_norm_backward).
///
/// # Errors
/// As [`layer_norm`].
pub fn layer_norm_training<T: Float>(
    src: &[T],
    cols: usize,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
    epsilon: f32,
    dst: &mut [T],
) -> Result<Statistics> {
    Call { norm: Flags::NONE, cols, scale, shift, epsilon }.training(Data::Apart { src, dst })
}

/// [`rms_norm`] that also returns the statistics for
/// [`rms_norm_backward`](super::rms_norm_backward).
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm_training<T: Float>(
    src: &[T],
    cols: usize,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
    epsilon: f32,
    dst: &mut [T],
) -> Result<Statistics> {
    Call { norm: Flags::RMS_NORM, cols, scale, shift, epsilon }.training(Data::Apart { src, dst })
}
