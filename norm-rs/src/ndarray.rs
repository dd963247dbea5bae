//! Operations on arrays of the crate `ndarray` 0.17, with the feature `ndarray`.
//!
//! The functions are those of [`slices`](crate::slices) for arrays of 1 to 5 dimensions (softmax: 6). Rows run along
//! the last axis; softmax takes the axis. Arrays and views may have any strides: views of every other row, transposed
//! arrays and broadcast inputs are read in place, without a copy. Axes that run backwards are refused. Scale, shift and
//! their gradients are contiguous vectors.
//!
//! ```
//! use ndarray::{array, s, Array2};
//!
//! let x = array![[1.0f32, 7.0], [9.0, 9.0], [7.0, 1.0]];
//! let mut y = Array2::<f32>::zeros((2, 2));
//! let scale = array![1.0f32, 10.0];
//! let every_other = x.slice(s![..;2, ..]);
//! norm_rs::ndarray::rms_norm(&every_other, Some(&scale), None, 0.0, &mut y)?;
//! assert_eq!(y, array![[0.2, 14.0], [1.4, 2.0]]);
//! # Ok::<(), norm_rs::Error>(())
//! ```
//!
//! If neither scale nor shift is given, name the type of the scale:
//!
//! ```
//! use ndarray::{ArrayRef1, array};
//!
//! let x = array![[1.0f32, 7.0]];
//! let mut y = x.clone();
//! norm_rs::ndarray::rms_norm(&x, None::<&ArrayRef1<f32>>, None, 0.0, &mut y)?;
//! assert_eq!(y, array![[0.2, 1.4]]);
//! # Ok::<(), norm_rs::Error>(())
//! ```
//!
//! Every function may be called from any thread; [`on_stream`](crate::on_stream) chooses the threads
//! that execute.

use ::ndarray::{ArrayRef, ArrayRef1, Dimension};

use crate::data_type::{Element, Float, Parameter};
use crate::error::{Error, Result};
use crate::layer_normalization::Flags;
use crate::softmax::Algorithm;
use crate::tensors::{
    Backward, Forward, Input, Output, Pair, RANK, Shape, SoftmaxDirection, Statistics, Tensor,
    softmax as run_softmax,
};

/// The most dimensions that normalization supports.
const NORM_RANK: usize = 5;

/// Describes an array. A vector is one row if `rows` is set.
fn tensor<T: Element, D: Dimension>(
    name: &'static str,
    array: &ArrayRef<T, D>,
    rows: bool,
) -> Result<Tensor> {
    let (mut dims, mut strides) = (array.shape().to_vec(), Vec::with_capacity(array.ndim()));
    for (axis, (&dim, &stride)) in dims.iter().zip(array.strides()).enumerate() {
        // The stride of an axis without a second index is arbitrary.
        let stride = if dim < 2 { 1 } else { stride };
        strides.push(usize::try_from(stride).map_err(|_| {
            Error::invalid(
                name,
                format_args!("has axis {axis} backwards; copy it with as_standard_layout()"),
            )
        })?);
    }
    if rows && dims.len() == 1 {
        dims.insert(0, 1);
        strides.insert(0, 1);
    }
    let most = if rows { NORM_RANK } else { RANK };
    if dims.is_empty() || dims.len() > most {
        return Err(Error::invalid(
            name,
            format_args!(
                "has {} dimensions, not 1 to {most}; change them with into_shape_with_order()",
                dims.len()
            ),
        ));
    }
    let shape = Shape::strided(&dims, &strides)
        .ok_or_else(|| Error::defect("more dimensions than were checked"))?;
    Ok(Tensor { data_type: T::DATA_TYPE, shape })
}

fn input<'a, T: Element, D: Dimension>(
    name: &'static str,
    array: &'a ArrayRef<T, D>,
    rows: bool,
) -> Result<Input<'a>> {
    let tensor = tensor(name, array, rows)?;
    // SAFETY: the pointer is to the first element of an array with these dimensions and strides,
    // none of them negative, which is borrowed for 'a.
    Ok(unsafe { Input::from_raw(tensor, array.as_ptr().cast()) })
}

fn output<'a, T: Element, D: Dimension>(
    name: &'static str,
    array: &'a mut ArrayRef<T, D>,
    rows: bool,
) -> Result<Output<'a>> {
    let tensor = tensor(name, array, rows)?;
    // SAFETY: as above, and the borrow is exclusive: no element of a mutable array is another's.
    Ok(unsafe { Output::from_raw(tensor, array.as_mut_ptr().cast()) })
}

/// Describes two arrays of the same dimensions.
fn apart<'a, S: Element, T: Element, D: Dimension>(
    [from_name, to_name]: [&'static str; 2],
    from: &'a ArrayRef<S, D>,
    to: &'a mut ArrayRef<T, D>,
    rows: bool,
) -> Result<Pair<'a>> {
    same_dims(to_name, to, from_name, from)?;
    Ok(Pair::Apart(input(from_name, from, rows)?, output(to_name, to, rows)?))
}

fn same_dims<S, T, D: Dimension>(
    name: &'static str,
    array: &ArrayRef<S, D>,
    other_name: &str,
    other: &ArrayRef<T, D>,
) -> Result<()> {
    if array.shape() == other.shape() {
        return Ok(());
    }
    let (is, should) = (array.shape(), other.shape());
    Err(Error::invalid(
        name,
        format_args!("is {is:?}, but {other_name} {should:?}; pass equal shapes"),
    ))
}

/// Describes a parameter, which is contiguous.
fn vector<'a, P: Parameter>(
    name: &'static str,
    array: Option<&'a ArrayRef1<P>>,
) -> Result<Option<Input<'a>>> {
    let slice = |array: &'a ArrayRef1<P>| array.as_slice().ok_or_else(|| scattered(name));
    Ok(array.map(slice).transpose()?.map(Input::vector))
}

fn vector_mut<'a, P: Parameter>(
    name: &'static str,
    array: Option<&'a mut ArrayRef1<P>>,
) -> Result<Option<Output<'a>>> {
    let slice = |array: &'a mut ArrayRef1<P>| array.as_slice_mut().ok_or_else(|| scattered(name));
    Ok(array.map(slice).transpose()?.map(Output::vector))
}

fn scattered(name: &'static str) -> Error {
    Error::invalid(name, "is not contiguous; copy it with as_standard_layout()")
}

fn call<'a, P: Parameter>(
    norm: Flags,
    scale: Option<&'a ArrayRef1<P>>,
    shift: Option<&'a ArrayRef1<P>>,
    epsilon: f32,
) -> Result<Forward<'a>> {
    Ok(Forward { norm, epsilon, scale: vector("scale", scale)?, shift: vector("shift", shift)? })
}

/// Layer normalization along the last axis; see [`layer_norm`](crate::layer_norm).
///
/// `src` and `dst` have the same shape, `scale` and `shift` one element per column.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): shapes that differ, more
/// than 5 dimensions, an axis that runs backwards, a scale or shift that is not contiguous or whose
/// length is not the number of columns, or an epsilon that is negative or not finite.
pub fn layer_norm<S: Float, P: Parameter, T: Float, D: Dimension>(
    src: &ArrayRef<S, D>,
    scale: Option<&ArrayRef1<P>>,
    shift: Option<&ArrayRef1<P>>,
    epsilon: f32,
    dst: &mut ArrayRef<T, D>,
) -> Result<()> {
    call(Flags::NONE, scale, shift, epsilon)?.inference(apart(["src", "dst"], src, dst, true)?)
}

/// RMS normalization along the last axis; see [`rms_norm`](crate::rms_norm).
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm<S: Float, P: Parameter, T: Float, D: Dimension>(
    src: &ArrayRef<S, D>,
    scale: Option<&ArrayRef1<P>>,
    shift: Option<&ArrayRef1<P>>,
    epsilon: f32,
    dst: &mut ArrayRef<T, D>,
) -> Result<()> {
    call(Flags::RMS_NORM, scale, shift, epsilon)?.inference(apart(["src", "dst"], src, dst, true)?)
}

/// [`layer_norm`] that also returns the statistics, in the order of the outer indices.
///
/// # Errors
/// As [`layer_norm`].
pub fn layer_norm_training<S: Float, P: Parameter, T: Float, D: Dimension>(
    src: &ArrayRef<S, D>,
    scale: Option<&ArrayRef1<P>>,
    shift: Option<&ArrayRef1<P>>,
    epsilon: f32,
    dst: &mut ArrayRef<T, D>,
) -> Result<Statistics> {
    call(Flags::NONE, scale, shift, epsilon)?.training(apart(["src", "dst"], src, dst, true)?)
}

/// [`rms_norm`] that also returns the statistics, in the order of the outer indices.
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm_training<S: Float, P: Parameter, T: Float, D: Dimension>(
    src: &ArrayRef<S, D>,
    scale: Option<&ArrayRef1<P>>,
    shift: Option<&ArrayRef1<P>>,
    epsilon: f32,
    dst: &mut ArrayRef<T, D>,
) -> Result<Statistics> {
    call(Flags::RMS_NORM, scale, shift, epsilon)?.training(apart(["src", "dst"], src, dst, true)?)
}

/// Outputs for the gradients of the parameters; [`Gradients::none`] for frozen parameters.
#[derive(Debug)]
pub struct Gradients<'a, T> {
    /// The gradient of the scale, one element per column; requires a scale.
    pub diff_scale: Option<&'a mut ArrayRef1<T>>,
    /// The gradient of the shift, one element per column.
    pub diff_shift: Option<&'a mut ArrayRef1<T>>,
}

impl Gradients<'_, f32> {
    /// No parameter gradients.
    pub fn none() -> Self {
        Self { diff_scale: None, diff_shift: None }
    }
}

/// The gradient of [`layer_norm`]; see [`layer_norm_backward`](crate::layer_norm_backward).
///
/// `src`, `diff_dst` and `diff_src` have the same shape.
///
/// # Errors
/// As [`layer_norm`]; also `diff_scale` without `scale`, and statistics of other rows or of the
/// other normalization.
pub fn layer_norm_backward<S, P, T, E, G, D>(
    src: &ArrayRef<S, D>,
    statistics: &Statistics,
    scale: Option<&ArrayRef1<P>>,
    diff_dst: &ArrayRef<T, D>,
    diff_src: &mut ArrayRef<E, D>,
    gradients: Gradients<'_, G>,
) -> Result<()>
where
    S: Float,
    P: Parameter,
    T: Float,
    E: Float,
    G: Parameter,
    D: Dimension,
{
    backward(Flags::NONE, src, statistics, scale, diff_dst, diff_src, gradients)
}

/// The gradient of [`rms_norm`]; see [`rms_norm_backward`](crate::rms_norm_backward).
///
/// # Errors
/// As [`layer_norm_backward`].
pub fn rms_norm_backward<S, P, T, E, G, D>(
    src: &ArrayRef<S, D>,
    statistics: &Statistics,
    scale: Option<&ArrayRef1<P>>,
    diff_dst: &ArrayRef<T, D>,
    diff_src: &mut ArrayRef<E, D>,
    gradients: Gradients<'_, G>,
) -> Result<()>
where
    S: Float,
    P: Parameter,
    T: Float,
    E: Float,
    G: Parameter,
    D: Dimension,
{
    backward(Flags::RMS_NORM, src, statistics, scale, diff_dst, diff_src, gradients)
}

fn backward<S: Float, P: Parameter, T: Float, E: Float, G: Parameter, D: Dimension>(
    norm: Flags,
    src: &ArrayRef<S, D>,
    statistics: &Statistics,
    scale: Option<&ArrayRef1<P>>,
    diff_dst: &ArrayRef<T, D>,
    diff_src: &mut ArrayRef<E, D>,
    gradients: Gradients<'_, G>,
) -> Result<()> {
    same_dims("diff_dst", diff_dst, "src", src)?;
    let call = Backward {
        norm,
        src: input("src", src, true)?,
        statistics,
        scale: vector("scale", scale)?,
        diff_scale: vector_mut("diff_scale", gradients.diff_scale)?,
        diff_shift: vector_mut("diff_shift", gradients.diff_shift)?,
    };
    call.run(apart(["diff_dst", "diff_src"], diff_dst, diff_src, true)?)
}

/// Softmax along `axis`, counted from 0; see [`softmax`](crate::softmax()).
///
/// ```
/// use ndarray::{Array2, array};
///
/// let x = array![[0.0f32, 1.0], [0.0, 1.0]];
/// let mut y = Array2::<f32>::zeros((2, 2));
/// norm_rs::ndarray::softmax(&x, 0, &mut y)?;
/// assert_eq!(y, array![[0.5, 0.5], [0.5, 0.5]]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): shapes that differ, more
/// than 6 dimensions, an axis that runs backwards or does not exist.
/// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented): an element type that
/// [`softmax`](mod@crate::softmax) does not list.
pub fn softmax<S: Float, T: Float, D: Dimension>(
    src: &ArrayRef<S, D>,
    axis: usize,
    dst: &mut ArrayRef<T, D>,
) -> Result<()> {
    let pair = apart(["src", "dst"], src, dst, false)?;
    run_softmax(Algorithm::Accurate, axis, SoftmaxDirection::Forward, pair)
}

/// The logarithm of [`softmax`] along `axis`.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax<S: Float, T: Float, D: Dimension>(
    src: &ArrayRef<S, D>,
    axis: usize,
    dst: &mut ArrayRef<T, D>,
) -> Result<()> {
    let pair = apart(["src", "dst"], src, dst, false)?;
    run_softmax(Algorithm::Log, axis, SoftmaxDirection::Forward, pair)
}

/// The gradient of [`softmax`] along `axis`, from its result `dst`.
///
/// # Errors
/// As [`softmax`].
pub fn softmax_backward<S: Float, T: Float, E: Float, D: Dimension>(
    dst: &ArrayRef<S, D>,
    axis: usize,
    diff_dst: &ArrayRef<T, D>,
    diff_src: &mut ArrayRef<E, D>,
) -> Result<()> {
    softmax_gradient(Algorithm::Accurate, dst, axis, diff_dst, diff_src)
}

/// The gradient of [`log_softmax`] along `axis`, from its result `dst`.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax_backward<S: Float, T: Float, E: Float, D: Dimension>(
    dst: &ArrayRef<S, D>,
    axis: usize,
    diff_dst: &ArrayRef<T, D>,
    diff_src: &mut ArrayRef<E, D>,
) -> Result<()> {
    softmax_gradient(Algorithm::Log, dst, axis, diff_dst, diff_src)
}

fn softmax_gradient<S: Float, T: Float, E: Float, D: Dimension>(
    algorithm: Algorithm,
    dst: &ArrayRef<S, D>,
    axis: usize,
    diff_dst: &ArrayRef<T, D>,
    diff_src: &mut ArrayRef<E, D>,
) -> Result<()> {
    same_dims("diff_dst", diff_dst, "dst", dst)?;
    let dst = input("dst", dst, false)?;
    let pair = apart(["diff_dst", "diff_src"], diff_dst, diff_src, false)?;
    run_softmax(algorithm, axis, SoftmaxDirection::Backward { dst }, pair)
}
