//! Softmax of slices.

use crate::data_type::Float;
use crate::error::Result;
use crate::softmax::Algorithm;
use crate::tensors::{Input, Output, Pair, SoftmaxDirection, rows, softmax as run};

/// Rows lie along the second dimension.
const AXIS: usize = 1;

fn forward<S: Float, D: Float>(
    algorithm: Algorithm,
    src: &[S],
    cols: usize,
    dst: &mut [D],
) -> Result<()> {
    let rows = rows("src", src.len(), cols)?;
    let src = Input::rows("src", src, rows, cols)?;
    let pair = Pair::Apart(src, Output::rows("dst", dst, rows, cols)?);
    run(algorithm, AXIS, SoftmaxDirection::Forward, pair)
}

fn forward_in_place<T: Float>(algorithm: Algorithm, src_dst: &mut [T], cols: usize) -> Result<()> {
    let rows = rows("src_dst", src_dst.len(), cols)?;
    let pair = Pair::InPlace(Output::rows("src_dst", src_dst, rows, cols)?);
    run(algorithm, AXIS, SoftmaxDirection::Forward, pair)
}

fn backward<S: Float, D: Float, E: Float>(
    algorithm: Algorithm,
    dst: &[S],
    cols: usize,
    diff_dst: &[D],
    diff_src: &mut [E],
) -> Result<()> {
    let rows = rows("dst", dst.len(), cols)?;
    let dst = Input::rows("dst", dst, rows, cols)?;
    let diff_dst = Input::rows("diff_dst", diff_dst, rows, cols)?;
    let pair = Pair::Apart(diff_dst, Output::rows("diff_src", diff_src, rows, cols)?);
    run(algorithm, AXIS, SoftmaxDirection::Backward { dst }, pair)
}

fn backward_in_place<S: Float, D: Float>(
    algorithm: Algorithm,
    dst: &[S],
    cols: usize,
    diff: &mut [D],
) -> Result<()> {
    let rows = rows("dst", dst.len(), cols)?;
    let dst = Input::rows("dst", dst, rows, cols)?;
    let pair = Pair::InPlace(Output::rows("diff", diff, rows, cols)?);
    run(algorithm, AXIS, SoftmaxDirection::Backward { dst }, pair)
}

/// Softmax of rows: `dst = exp(src - max) / sum(exp(src - max))`.
///
/// `src` and `dst` hold rows of `cols` elements.
///
/// ```
/// let mut dst = [0.0f32; 4];
/// norm_rs::softmax(&[0.0f32, 0.0, 5.0, 5.0], 2, &mut dst)?;
/// assert_eq!(dst, [0.5; 4]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): a wrong length or `cols` 0.
/// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented): an element type that
/// [`softmax`](mod@crate::softmax) does not list.
pub fn softmax<S: Float, D: Float>(src: &[S], cols: usize, dst: &mut [D]) -> Result<()> {
    forward(Algorithm::Accurate, src, cols, dst)
}

/// The logarithm of [`softmax`]: `dst = (src - max) - ln(sum(exp(src - max)))`.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax<S: Float, D: Float>(src: &[S], cols: usize, dst: &mut [D]) -> Result<()> {
    forward(Algorithm::Log, src, cols, dst)
}

/// [`softmax`] that overwrites the source.
///
/// # Errors
/// As [`softmax`].
pub fn softmax_in_place<T: Float>(src_dst: &mut [T], cols: usize) -> Result<()> {
    forward_in_place(Algorithm::Accurate, src_dst, cols)
}

/// [`log_softmax`] that overwrites the source.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax_in_place<T: Float>(src_dst: &mut [T], cols: usize) -> Result<()> {
    forward_in_place(Algorithm::Log, src_dst, cols)
}

/// The gradient of [`softmax`], from its result: `diff_src = dst*(diff_dst - sum(diff_dst*dst))`.
///
/// `dst`, `diff_dst` and `diff_src` hold rows of `cols` elements.
///
/// ```
/// let mut diff_src = [0.0f32; 2];
/// norm_rs::softmax_backward(&[0.5f32, 0.5], 2, &[1.0f32, 3.0], &mut diff_src)?;
/// assert_eq!(diff_src, [-0.5, 0.5]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// As [`softmax`].
pub fn softmax_backward<S: Float, D: Float, E: Float>(
    dst: &[S],
    cols: usize,
    diff_dst: &[D],
    diff_src: &mut [E],
) -> Result<()> {
    backward(Algorithm::Accurate, dst, cols, diff_dst, diff_src)
}

/// The gradient of [`log_softmax`], from its result: `diff_src = diff_dst -
/// exp(dst)*sum(diff_dst)`.
///
/// Otherwise as [`softmax_backward`].
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax_backward<S: Float, D: Float, E: Float>(
    dst: &[S],
    cols: usize,
    diff_dst: &[D],
    diff_src: &mut [E],
) -> Result<()> {
    backward(Algorithm::Log, dst, cols, diff_dst, diff_src)
}

/// [`softmax_backward`] that overwrites `diff_dst` with `diff_src`.
///
/// # Errors
/// As [`softmax`].
pub fn softmax_backward_in_place<S: Float, D: Float>(
    dst: &[S],
    cols: usize,
    diff: &mut [D],
) -> Result<()> {
    backward_in_place(Algorithm::Accurate, dst, cols, diff)
}

/// [`log_softmax_backward`] that overwrites `diff_dst` with `diff_src`.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax_backward_in_place<S: Float, D: Float>(
    dst: &[S],
    cols: usize,
    diff: &mut [D],
) -> Result<()> {
    backward_in_place(Algorithm::Log, dst, cols, diff)
}
