//! Forward normalization of slices with dimensions: over several trailing ones, or along any one.

use crate::data_type::{Float, Parameter};
use crate::error::{Error, Result};
use crate::layer_normalization::Flags;
use crate::tensors::{Forward, Input, Output, Pair};

/// Layer normalization over trailing dimensions together, as PyTorch's `layer_norm` with a
/// `normalized_shape`: each row is a block of this shape.
///
/// `src` and `dst` hold rows of `normalized_shape`; `scale` and `shift`, if given, are one block.
/// The rows are dense, so this is [`layer_norm`](super::layer_norm) with `cols` the product of the shape;
/// its training and backward forms work in the same way.
///
/// ```
/// // Two blocks of 2x3.
/// let src = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
/// let mut dst = [0.0f32; 12];
/// norm_rs::layer_norm_normalized_shape(&src, &[2, 3], None::<&[f32]>, None, 0.0, &mut dst)?;
/// assert_eq!(dst[6..], [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// As [`layer_norm`](super::layer_norm); an empty shape, or one whose product overflows.
pub fn layer_norm_normalized_shape<S: Float, P: Parameter, D: Float>(
    src: &[S],
    normalized_shape: &[usize],
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
    dst: &mut [D],
) -> Result<()> {
    super::layer_norm(src, product(normalized_shape)?, scale, shift, epsilon, dst)
}

/// RMS normalization over several trailing dimensions; see [`layer_norm_normalized_shape`].
///
/// PyTorch's `eps=None` corresponds to [`DataType::machine_epsilon`](crate::DataType::machine_epsilon) of the type of
/// src.
///
/// # Errors
/// As [`layer_norm_normalized_shape`].
pub fn rms_norm_normalized_shape<S: Float, P: Parameter, D: Float>(
    src: &[S],
    normalized_shape: &[usize],
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
    dst: &mut [D],
) -> Result<()> {
    super::rms_norm(src, product(normalized_shape)?, scale, shift, epsilon, dst)
}

/// Layer normalization along any axis, as Keras' `LayerNormalization(axis)`, using strides instead of a copy.
///
/// `src` and `dst` are dense tensors of `dims`; `scale` and `shift`, if given, have `dims[axis]` elements.
///
/// ```
/// // Columns of a 2x3 matrix.
/// let src = [1.0f32, 5.0, -2.0, 3.0, 5.0, 2.0];
/// let mut dst = [0.0f32; 6];
/// norm_rs::layer_norm_axis(&src, &[2, 3], 0, None::<&[f32]>, None, 0.0, &mut dst)?;
/// assert_eq!(dst, [-1.0, 0.0, -1.0, 1.0, 0.0, 1.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): an axis that `dims` does not have, a wrong
/// length, or an epsilon that is negative or not finite.
pub fn layer_norm_axis<S: Float, P: Parameter, D: Float>(
    src: &[S],
    dims: &[usize],
    axis: usize,
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
    dst: &mut [D],
) -> Result<()> {
    along(Flags::NONE, (src, dst), (dims, axis), (scale, shift), epsilon)
}

/// RMS normalization along any axis; see [`layer_norm_axis`].
///
/// # Errors
/// As [`layer_norm_axis`].
pub fn rms_norm_axis<S: Float, P: Parameter, D: Float>(
    src: &[S],
    dims: &[usize],
    axis: usize,
    scale: Option<&[P]>,
    shift: Option<&[P]>,
    epsilon: f32,
    dst: &mut [D],
) -> Result<()> {
    along(Flags::RMS_NORM, (src, dst), (dims, axis), (scale, shift), epsilon)
}

fn along<S: Float, P: Parameter, D: Float>(
    norm: Flags,
    (src, dst): (&[S], &mut [D]),
    (dims, axis): (&[usize], usize),
    (scale, shift): (Option<&[P]>, Option<&[P]>),
    epsilon: f32,
) -> Result<()> {
    let Some(&len) = dims.get(axis) else {
        return Err(match dims.len() {
            0 => Error::invalid("dims", "has no dimensions; pass at least one"),
            count => Error::invalid(
                "axis",
                format_args!("is {axis}, but dims has {count} dimensions; pass 0 to {}", count - 1),
            ),
        });
    };
    // Joins the dimensions before the axis, and those after it.
    let (outer, inner) = (product_of(&dims[..axis])?, product_of(&dims[axis + 1..])?);
    let input = Input::along("src", src, [outer, len, inner])?;
    let output = Output::along("dst", dst, [outer, len, inner])?;
    let (scale, shift) = (scale.map(Input::vector), shift.map(Input::vector));
    Forward { norm, epsilon, scale, shift }.inference(Pair::Apart(input, output))
}

fn product(normalized_shape: &[usize]) -> Result<usize> {
    if normalized_shape.is_empty() {
        return Err(Error::invalid("normalized_shape", "is empty; pass the trailing dimensions"));
    }
    product_of(normalized_shape)
}

fn product_of(dims: &[usize]) -> Result<usize> {
    dims.iter().try_fold(1usize, |product, dim| product.checked_mul(*dim)).ok_or_else(|| {
        Error::invalid("dims", format_args!("are {dims:?}, more elements than memory has"))
    })
}
