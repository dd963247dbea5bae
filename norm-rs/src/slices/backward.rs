//! Backward normalization of slices.

use crate::data_type::{Float, Parameter};
use crate::error::Result;
use crate::layer_normalization::Flags;
use crate::tensors::{Backward, Input, Output, Pair, Statistics};

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

impl Gradients<'_, f32> {
    /// No parameter gradients.
    pub fn none() -> Self {
        Self { diff_scale: None, diff_shift: None }
    }
}

/// The incoming gradient and its destination, as rows.
fn apart<'a, S: Float, D: Float>(
    statistics: &Statistics,
    diff_dst: &'a [S],
    diff_src: &'a mut [D],
) -> Result<Pair<'a>> {
    let (rows, cols) = (statistics.rows(), statistics.cols());
    let diff_dst = Input::rows("diff_dst", diff_dst, rows, cols)?;
    Ok(Pair::Apart(diff_dst, Output::rows("diff_src", diff_src, rows, cols)?))
}

fn in_place<'a, T: Float>(statistics: &Statistics, diff: &'a mut [T]) -> Result<Pair<'a>> {
    Ok(Pair::InPlace(Output::rows("diff", diff, statistics.rows(), statistics.cols())?))
}

fn call<'a, S: Float, P: Parameter, G: Parameter>(
    norm: Flags,
    src: &'a [S],
    statistics: &'a Statistics,
    scale: Option<&'a [P]>,
    gradients: Gradients<'a, G>,
) -> Result<Backward<'a>> {
    Ok(Backward {
        norm,
        src: Input::rows("src", src, statistics.rows(), statistics.cols())?,
        statistics,
        scale: scale.map(Input::vector),
        diff_scale: gradients.diff_scale.map(Output::vector),
        diff_shift: gradients.diff_shift.map(Output::vector),
    })
}

/// The gradient of [`layer_norm`](super::layer_norm): `diff_src` and, if requested, those of the
/// parameters.
///
/// `statistics` must come from the forward pass of the same `src`, and `scale` must be the same.
/// `src`, `diff_dst` and `diff_src` have the same number of rows.
///
/// ```
/// use norm_rs::{Gradients, layer_norm_backward, layer_norm_training};
///
/// let (src, scale, shift) = ([1.0f32, 2.0, 4.0, 8.0], [0.5f32, 2.0], [0.0, 1.0]);
/// let mut dst = [0.0f32; 4];
/// let statistics = layer_norm_training(&src, 2, Some(&scale), Some(&shift), 1e-5, &mut dst)?;
///
/// let diff_dst = [1.0f32, 0.5, 0.25, 2.0];
/// let (mut diff_src, mut diff_scale, mut diff_shift) = ([0.0f32; 4], [0.0f32; 2], [0.0; 2]);
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
pub fn layer_norm_backward<S: Float, P: Parameter, D: Float, E: Float, G: Parameter>(
    src: &[S],
    statistics: &Statistics,
    scale: Option<&[P]>,
    diff_dst: &[D],
    diff_src: &mut [E],
    gradients: Gradients<'_, G>,
) -> Result<()> {
    let call = call(Flags::NONE, src, statistics, scale, gradients)?;
    call.run(apart(statistics, diff_dst, diff_src)?)
}

/// The gradient of [`rms_norm`](super::rms_norm): `diff_src` and, if requested, those of the
/// parameters. There is no term for a mean, because none is subtracted.
///
/// Otherwise as [`layer_norm_backward`].
///
/// # Errors
/// As [`layer_norm_backward`].
pub fn rms_norm_backward<S: Float, P: Parameter, D: Float, E: Float, G: Parameter>(
    src: &[S],
    statistics: &Statistics,
    scale: Option<&[P]>,
    diff_dst: &[D],
    diff_src: &mut [E],
    gradients: Gradients<'_, G>,
) -> Result<()> {
    let call = call(Flags::RMS_NORM, src, statistics, scale, gradients)?;
    call.run(apart(statistics, diff_dst, diff_src)?)
}

/// [`layer_norm_backward`] that overwrites `diff_dst` with `diff_src`.
///
/// # Errors
/// As [`layer_norm_backward`].
pub fn layer_norm_backward_in_place<S: Float, P: Parameter, D: Float, G: Parameter>(
    src: &[S],
    statistics: &Statistics,
    scale: Option<&[P]>,
    diff: &mut [D],
    gradients: Gradients<'_, G>,
) -> Result<()> {
    let call = call(Flags::NONE, src, statistics, scale, gradients)?;
    call.run(in_place(statistics, diff)?)
}

/// [`rms_norm_backward`] that overwrites `diff_dst` with `diff_src`.
///
/// # Errors
/// As [`layer_norm_backward`].
pub fn rms_norm_backward_in_place<S: Float, P: Parameter, D: Float, G: Parameter>(
    src: &[S],
    statistics: &Statistics,
    scale: Option<&[P]>,
    diff: &mut [D],
    gradients: Gradients<'_, G>,
) -> Result<()> {
    let call = call(Flags::RMS_NORM, src, statistics, scale, gradients)?;
    call.run(in_place(statistics, diff)?)
}
