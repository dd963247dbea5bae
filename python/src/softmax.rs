//! Softmax and its logarithm: the functions that Python calls.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::primitive::{Arg, PropKind};
use norm_rs::softmax::Algorithm;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments;
use crate::call::{BACKWARD, FORWARD, Given, compute};
use crate::layout::check_overlaps;
use crate::output::{Output, allocate, expect_out};
use crate::plan::{Addresses, Operand, Operation, Problem};
use crate::tensor::{Tensor, tuple};

/// The dimension that `axis` means; negative ones count from the last.
fn resolve_axis(axis: i64, first: &Tensor<'_, '_>) -> PyResult<usize> {
    let count = first.shape.len() as i64;
    if count == 0 {
        return Err(PyValueError::new_err(format!(
            "{} has no dimensions: pass an array with at least one",
            first.name
        )));
    }
    let from_first = if axis < 0 { axis + count } else { axis };
    usize::try_from(from_first).ok().filter(|&axis| (axis as i64) < count).ok_or_else(|| {
        PyValueError::new_err(format!(
            "axis is {axis}, but {} has the shape {}: pass {} to {}",
            first.name,
            tuple(&first.shape),
            -count,
            count - 1
        ))
    })
}

/// The array of the result: the caller's, or a new one like `like`.
fn output<'a, 'py>(
    out: Given<'a, 'py>,
    like: &Tensor<'a, 'py>,
    types: &[DataType],
) -> PyResult<(Tensor<'a, 'py>, Output<'py>)> {
    expect_out("out", like, out)?;
    let Some(out) = out else { return allocate("out", like, like.data_type, &like.shape) };
    let tensor = Tensor::read_output("out", types, out)?;
    tensor.expect_shape(&like.shape, &format!("it is that of {}", like.name))?;
    Ok((tensor, Output::Array(out.clone())))
}

/// Computes `to` from inputs of the same shape. The last input may be the array of `to`.
fn run(
    py: Python<'_>,
    operation: Operation,
    prop_kind: PropKind,
    inputs: &[(Arg, &Tensor<'_, '_>)],
    to: (Arg, &Tensor<'_, '_>),
    lse: Option<&Tensor<'_, '_>>,
) -> PyResult<()> {
    let tensors: ArrayVec<&Tensor<'_, '_>, 2> = inputs.iter().map(|(_, tensor)| *tensor).collect();
    let last = *tensors.last().expect("an input");
    check_overlaps(&[to.1], &tensors, &[(last, to.1)])?;
    let mut operands = ArrayVec::new();
    let mut addresses = Addresses::new();
    for (arg, tensor) in inputs.iter().copied().chain([to]) {
        let strides = tensor.strides.clone();
        operands.push(Operand { arg, data_type: tensor.data_type, strides, dims: None });
        addresses.push(tensor.data);
    }
    if let Some(Tensor { data, data_type, shape, strides, .. }) = lse {
        let (strides, dims) = (strides.clone(), Some(shape.clone()));
        operands.push(Operand { arg: Arg::SoftmaxStats, data_type: *data_type, strides, dims });
        addresses.push(*data);
    }
    let dims = to.1.shape.clone();
    compute(py, &Problem { prop_kind, operation, dims, operands }, &addresses)
}

fn forward<'py>(
    algorithm: Algorithm,
    src: &Bound<'py, PyAny>,
    axis: i64,
    return_lse: bool,
    out: Given<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = Tensor::read("src", FORWARD, src)?;
    let axis = resolve_axis(axis, &given)?;
    let operation = Operation::Softmax { algorithm, axis };
    let (dst, result) = output(out, &given, FORWARD)?;
    let lse = return_lse.then(|| {
        let mut shape = given.shape.clone();
        shape[axis] = 1;
        allocate("lse", &given, DataType::F32, &shape)
    });
    let lse = lse.transpose()?;
    let (inputs, to) = ([(Arg::Src, &given)], (Arg::Dst, &dst));
    let stats = lse.as_ref().map(|(tensor, _)| tensor);
    run(src.py(), operation, PropKind::ForwardInference, &inputs, to, stats)?;
    let Some((_, lse)) = lse else { return result.finish() };
    Ok(PyTuple::new(src.py(), [result.finish()?, lse.finish()?])?.into_any())
}

fn backward<'py>(
    algorithm: Algorithm,
    diff_dst: &Bound<'py, PyAny>,
    dst: &Bound<'py, PyAny>,
    axis: i64,
    out: Given<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let gradient = Tensor::read("diff_dst", BACKWARD, diff_dst)?;
    let given = Tensor::read("dst", BACKWARD, dst)?;
    gradient.expect_shape(&given.shape, "it is that of dst")?;
    let operation = Operation::Softmax { algorithm, axis: resolve_axis(axis, &given)? };
    let (diff_src, result) = output(out, &given, BACKWARD)?;
    let inputs = [(Arg::Dst, &given), (Arg::DiffDst, &gradient)];
    run(dst.py(), operation, PropKind::BackwardData, &inputs, (Arg::DiffSrc, &diff_src), None)?;
    result.finish()
}

/// Softmax along one dimension of an array.
///
///     dst = exp(x - max(x)) / sum(exp(x - max(x)))
///
/// for each row x along the axis. A row with NaN or +Inf, or of only -Inf, becomes NaN.
///
/// Parameters
/// ----------
/// src : array of 1 to 12 dimensions
///     float32, bfloat16, float16, float64, int8, uint8, float8_e4m3fn or float8_e5m2; any non-negative strides.
/// axis : int
///     The dimension of the rows, from 0, or from -1 backwards.
/// inf_as_zero : bool
///     Whether a row of only -Inf, as masks may create, becomes zeros.
/// return_lse : bool
///     Also return log(sum(exp(x))) of each row: float32, the shape of src with 1 for the axis.
/// out : array of the shape of src
///     Where to write the result, in any of the types of src; pass src itself to work in place. It may be
///     omitted unless src is int8 or uint8.
///
/// Returns
/// -------
/// out, or a new array of the library, shape and element type of src. With return_lse, a tuple of it and the
/// logarithms.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, axis=-1, *, inf_as_zero=false, return_lse=false, out=None),
       text_signature = "(src, axis=-1, *, inf_as_zero=False, return_lse=False, out=None)")]
pub(crate) fn softmax<'py>(
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::axis)] axis: i64,
    #[pyo3(from_py_with = arguments::inf_as_zero)] inf_as_zero: bool,
    #[pyo3(from_py_with = arguments::return_lse)] return_lse: bool,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let algorithm = if inf_as_zero { Algorithm::AccurateInfAsZero } else { Algorithm::Accurate };
    forward(algorithm, src, axis, return_lse, out)
}

/// The logarithm of softmax along one dimension of an array.
///
///     dst = (x - max(x)) - log(sum(exp(x - max(x))))
///
/// for each row x along the axis.
///
/// Parameters
/// ----------
/// src : array of 1 to 12 dimensions
/// axis : int
/// return_lse : bool
/// out : array of the shape of src, optional
///     As for softmax.
///
/// Returns
/// -------
/// out, or a new array of the library, shape and element type of src. With return_lse, a tuple of it and the
/// logarithms, float32 of the shape of src with 1 for the axis.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, axis=-1, *, return_lse=false, out=None),
       text_signature = "(src, axis=-1, *, return_lse=False, out=None)")]
pub(crate) fn log_softmax<'py>(
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::axis)] axis: i64,
    #[pyo3(from_py_with = arguments::return_lse)] return_lse: bool,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    forward(Algorithm::Log, src, axis, return_lse, out)
}

/// The gradient of softmax, from its result.
///
///     diff_src = dst * (diff_dst - sum(diff_dst * dst))
///
/// for each row along the axis.
///
/// Parameters
/// ----------
/// diff_dst : array of the shape of dst
///     The gradient of the result: float32, bfloat16, float16 or float64.
/// dst : array of 1 to 12 dimensions
///     The result of softmax: float32, bfloat16, float16 or float64.
/// axis : int
///     As for softmax.
/// out : array of the shape of dst, optional
///     Where to write the result: float32, bfloat16, float16 or float64; pass diff_dst itself to work in place.
///
/// Returns
/// -------
/// out, or a new array of the library, shape and element type of dst.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, dst, axis=-1, *, out=None),
       text_signature = "(diff_dst, dst, axis=-1, *, out=None)")]
pub(crate) fn softmax_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    dst: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::axis)] axis: i64,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    backward(Algorithm::Accurate, diff_dst, dst, axis, out)
}

/// The gradient of log_softmax, from its result.
///
///     diff_src = diff_dst - exp(dst) * sum(diff_dst)
///
/// for each row along the axis.
///
/// Parameters
/// ----------
/// diff_dst : array of the shape of dst
/// dst : array of 1 to 12 dimensions
/// axis : int
/// out : array of the shape of dst, optional
///     As for softmax_backward.
///
/// Returns
/// -------
/// out, or a new array of the library, shape and element type of dst.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, dst, axis=-1, *, out=None),
       text_signature = "(diff_dst, dst, axis=-1, *, out=None)")]
pub(crate) fn log_softmax_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    dst: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::axis)] axis: i64,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    backward(Algorithm::Log, diff_dst, dst, axis, out)
}
