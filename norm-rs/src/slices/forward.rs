//! Forward normalization of slices.

use crate::data_type::{Float, Parameter};
use crate::error::Result;
use crate::layer_normalization::Flags;
use crate::tensors::{Forward, Input, Output, Pair, Statistics, rows};

/// The source and the destination as rows.
fn apart<'a, S: Float, D: Float>(src: &'a [S], cols: usize, dst: &'a mut [D]) -> Result<Pair<'a>> {
    let rows = rows("src", src.len(), cols)?;
    Ok(Pair::Apart(Input::rows("src", src, rows, cols)?, Output::rows("dst", dst, rows, cols)?))
}

fn in_place<T: Float>(src_dst: &mut [T], cols: usize) -> Result<Pair<'_>> {
    let rows = rows("src_dst", src_dst.len(), cols)?;
    Ok(Pair::InPlace(Output::rows("src_dst", src_dst, rows, cols)?))
}

fn call<'a, P: Parameter>(
    norm: Flags,
    scale: Option<&'a [P]>,
    shift: Option<&'a [P]>,
    epsilon: f32,
) -> Forward<'a> {
    Forward { norm, epsilon, scale: scale.map(Input::vector), shift: shift.map(Input::vector) }
}

/// Layer normalization of rows: `dst = (src - mean) / sqrt(variance + epsilon) * scale + shift`.
///
/// `src` and `dst` hold rows of `cols` elements; `scale` and `shift`, if given, have `cols`.
///
/// ```
/// let src = [1.0f32, 2.0, 3.0, 4.0, 6.0, 8.0];
/// let mut dst = [0.0f32; 6];
/// norm_rs::layer_norm(&src, 3, Some(&[1.0f32, 1.0, 2.0]), None, 1e-5, &mut dst)?;
/// assert!((dst[2] - 2.0 * 1.2247).abs() < 1e-3);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): a wrong length, `cols` 0,
/// or an epsilon that is negative or not finite.
pub fn layer_norm<S: Float, P: Parameter, D: Float>(
    src: &[S],
    cols: usize,
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
    dst: &mut [D],
) -> Result<()> {
    call(Flags::NONE, scale, shift, epsilon).inference(apart(src, cols, dst)?)
}

/// RMS normalization of rows: `dst = src / sqrt(mean of src^2 + epsilon) * scale + shift`.
///
/// `src` and `dst` hold rows of `cols` elements; `scale` and `shift`, if given, have `cols`.
///
/// ```
/// let src = [1.0f32, 7.0]; // the root of the mean square is 5
/// let mut dst = [0.0f32; 2];
/// norm_rs::rms_norm(&src, 2, Some(&[1.0f32, 10.0]), None, 0.0, &mut dst)?;
/// assert_eq!(dst, [0.2, 14.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm<S: Float, P: Parameter, D: Float>(
    src: &[S],
    cols: usize,
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
    dst: &mut [D],
) -> Result<()> {
    call(Flags::RMS_NORM, scale, shift, epsilon).inference(apart(src, cols, dst)?)
}

/// [`layer_norm`] that overwrites the source.
///
/// # Errors
/// As [`layer_norm`].
pub fn layer_norm_in_place<T: Float, P: Parameter>(
    src_dst: &mut [T],
    cols: usize,
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
) -> Result<()> {
    call(Flags::NONE, scale, shift, epsilon).inference(in_place(src_dst, cols)?)
}

/// [`rms_norm`] that overwrites the source.
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm_in_place<T: Float, P: Parameter>(
    src_dst: &mut [T],
    cols: usize,
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
) -> Result<()> {
    call(Flags::RMS_NORM, scale, shift, epsilon).inference(in_place(src_dst, cols)?)
}

/// [`layer_norm`] that also returns the statistics for
/// [`layer_norm_backward`](super::layer_norm_backward).
///
/// # Errors
/// As [`layer_norm`].
pub fn layer_norm_training<S: Float, P: Parameter, D: Float>(
    src: &[S],
    cols: usize,
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
    dst: &mut [D],
) -> Result<Statistics> {
    call(Flags::NONE, scale, shift, epsilon).training(apart(src, cols, dst)?)
}

/// [`rms_norm`] that also returns the statistics for
/// [`rms_norm_backward`](super::rms_norm_backward).
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm_training<S: Float, P: Parameter, D: Float>(
    src: &[S],
    cols: usize,
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
    dst: &mut [D],
) -> Result<Statistics> {
    call(Flags::RMS_NORM, scale, shift, epsilon).training(apart(src, cols, dst)?)
}
