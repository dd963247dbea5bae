//! Functions of the elements of one array and of two.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::binary::Binary;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arguments::{self, described};
use crate::call::{Given, compute};
use crate::functions;
use crate::hints;
use crate::layout::check_overlaps;
use crate::output::{Output, allocate, expect_out};
use crate::plan::{Addresses, Operand, Operation, Problem, Strides};
use crate::tensor::{Tensor, tuple};

/// Element types of the forward pass; the last one is for functions of one array only.
const FORWARD: [DataType; 9] = [
    DataType::F32,
    DataType::Bf16,
    DataType::F16,
    DataType::S32,
    DataType::S8,
    DataType::U8,
    DataType::F8E4m3,
    DataType::F8E5m2,
    DataType::F64,
];
const OF_ONE: &[DataType] = &FORWARD;
const OF_TWO: &[DataType] = FORWARD.split_last().expect("types").1;
/// Element types of the backward pass.
const BACKWARD: &[DataType] = &[
    DataType::F32,
    DataType::Bf16,
    DataType::F16,
    DataType::F8E4m3,
    DataType::F8E5m2,
    DataType::F64,
];

/// The names of functions of two arrays.
const BINARY: [(&str, Option<Binary>); 13] = [
    ("add", Some(Binary::Add)),
    ("div", Some(Binary::Div)),
    ("eq", Some(Binary::Eq)),
    ("ge", Some(Binary::Ge)),
    ("gt", Some(Binary::Gt)),
    ("le", Some(Binary::Le)),
    ("lt", Some(Binary::Lt)),
    ("max", Some(Binary::Max)),
    ("min", Some(Binary::Min)),
    ("mul", Some(Binary::Mul)),
    ("ne", Some(Binary::Ne)),
    ("select", None),
    ("sub", Some(Binary::Sub)),
];

/// Looks up the value of a name, or of another name for it.
pub(crate) fn named<T: Copy>(parameter: &str, name: &str, names: &[(&str, T)]) -> PyResult<T> {
    let other = match name {
        "silu" => "swish",
        "sigmoid" => "logistic",
        _ => name,
    };
    let found = names.iter().find(|(own, _)| [name, other].contains(own));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(own, _)| *own).collect();
        let hint = hints::of_value(name, &names).map(|hint| format!("; {hint}"));
        let (hint, names) = (hint.unwrap_or_default(), names.join(", "));
        PyValueError::new_err(format!("{parameter} is {name:?}: pass one of {names}{hint}"))
    })
}

/// The array of the result: the caller's, or a new one of this shape, from the library of `like`.
pub(crate) fn output<'a, 'py>(
    name: &'static str,
    out: Given<'a, 'py>,
    like: &Tensor<'a, 'py>,
    (types, shape, why): (&[DataType], &[usize], &str),
) -> PyResult<(Tensor<'a, 'py>, Output<'py>)> {
    let Some(out) = out else { return allocate(name, like, like.data_type, shape) };
    let tensor = Tensor::read_output(name, types, out)?;
    tensor.expect_shape(shape, why)?;
    Ok((tensor, Output::Array(out.clone())))
}

/// Computes outputs from inputs, which may differ in shape.
pub(crate) fn run(
    py: Python<'_>,
    operation: Operation,
    prop_kind: PropKind,
    tensors: &[(Arg, &Tensor<'_, '_>)],
) -> PyResult<()> {
    let (mut operands, mut addresses) = (ArrayVec::new(), Addresses::new());
    for (arg, tensor) in tensors.iter().copied() {
        let (strides, dims) = (tensor.strides.clone(), Some(tensor.shape.clone()));
        operands.push(Operand { arg, data_type: tensor.data_type, strides, dims });
        addresses.push(tensor.data);
    }
    let dims = tensors[0].1.shape.clone();
    compute(py, &Problem { prop_kind, operation, dims, operands }, &addresses)
}

/// Applies a function to every element of an array.
///
/// Parameters
/// ----------
/// src : array of 1 to 12 dimensions
///     float32, bfloat16, float16, float64, int32, int8, uint8, float8_e4m3fn or float8_e5m2; any non-negative
///     strides.
/// function : str
///     One of those below; formulas in docs/primitives/eltwise.md.
/// alpha, beta : float, optional
///     The parameters of the function:
///
///     function      formula                           alpha  beta
///     relu          x, or alpha*x below 0             0
///     elu           x, or alpha*(exp(x) - 1) below 0  1
///     swish, silu   x/(1 + exp(-alpha*x))             1
///     soft_relu     log(1 + exp(alpha*x))/alpha       1
///     linear        alpha*x + beta                    1      0
///     hardsigmoid   alpha*x + beta, from 0 to 1       1/6    0.5
///     hardswish     x*hardsigmoid(x)                  1/6    0.5
///     clip          x, from alpha to beta             both must be passed
///     pow           alpha*x**beta                     both must be passed
///
///     "abs", "exp", "gelu_erf", "gelu_tanh", "log", "logistic" (or "sigmoid"), "mish", "round", "sqrt", "square" and
///     "tanh" have none, and ignore them.
/// out : array of the shape of src
///     Where to write the result, in any of the types of src; pass src itself to work in place. It may be
///     omitted unless src has integers.
///
/// Returns
/// -------
/// out, or a new array of the library, shape and element type of src.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, function, alpha=None, beta=None, *, out=None))]
pub(crate) fn eltwise<'py>(
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::function)] function: &str,
    #[pyo3(from_py_with = arguments::alpha)] alpha: Option<f64>,
    #[pyo3(from_py_with = arguments::beta)] beta: Option<f64>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let operation = functions::operation(function, alpha, beta, false)?;
    let given = Tensor::read("src", OF_ONE, src)?;
    expect_out("out", &given, out)?;
    let (dst, result) = output("out", out, &given, (OF_ONE, &given.shape, "it is that of src"))?;
    check_overlaps(&[&dst], &[&given], &[(&given, &dst)])?;
    run(src.py(), operation, PropKind::ForwardInference, &[(Arg::Src, &given), (Arg::Dst, &dst)])?;
    result.finish()
}

/// The gradient of an element-wise function: diff_dst * f'(src).
///
/// Parameters
/// ----------
/// diff_dst : array of the shape of src
///     The gradient of the result: float32, bfloat16, float16, float64, float8_e4m3fn or float8_e5m2.
/// src : array of 1 to 12 dimensions
///     The input of the forward pass, or its result with from_dst; the same types.
/// function, alpha, beta
///     As in the forward pass.
/// from_dst : bool
///     src is the result of the forward pass, which may have overwritten its input. For "relu" and "elu" with an
///     alpha of 0 or more, "tanh", "logistic", "exp" and "sqrt".
/// out : array of the shape of src, optional
///     Where to write the result; pass diff_dst or src itself to work in place.
///
/// Returns
/// -------
/// out, or a new array of the library, shape and element type of src.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, src, function, alpha=None, beta=None, *, from_dst=false, out=None))]
pub(crate) fn eltwise_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::function)] function: &str,
    #[pyo3(from_py_with = arguments::alpha)] alpha: Option<f64>,
    #[pyo3(from_py_with = arguments::beta)] beta: Option<f64>,
    #[pyo3(from_py_with = arguments::from_dst)] from_dst: bool,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let operation = functions::operation(function, alpha, beta, from_dst)?;
    let given = Tensor::read("src", BACKWARD, src)?;
    let gradient = Tensor::read("diff_dst", BACKWARD, diff_dst)?;
    gradient.expect_shape(&given.shape, "it is that of src")?;
    let (to, result) = output("out", out, &given, (BACKWARD, &given.shape, "it is that of src"))?;
    check_overlaps(&[&to], &[&given, &gradient], &[(&gradient, &to), (&given, &to)])?;
    let data = if from_dst { Arg::Dst } else { Arg::Src };
    let tensors = [(data, &given), (Arg::DiffDst, &gradient), (Arg::DiffSrc, &to)];
    run(src.py(), operation, PropKind::BackwardData, &tensors)?;
    result.finish()
}

/// The error for an argument of `binary` that is no array: a number becomes one that broadcasts with the other.
fn number_error(
    name: &str,
    object: &Bound<'_, PyAny>,
    other: &Tensor<'_, '_>,
    error: PyErr,
) -> PyErr {
    let is_array = object.hasattr("__dlpack__").unwrap_or(false);
    if is_array || object.extract::<f64>().is_err() {
        return error;
    }
    let (what, shape) = (described(object), tuple(&vec![1; other.shape.len()]));
    PyTypeError::new_err(format!(
        "{name} is {what}: pass an array of the shape {shape}, such as numpy.full({shape}, {object}, numpy.float32)"
    ))
}

/// Applies a function to the elements of two arrays, with broadcasting.
///
/// Parameters
/// ----------
/// src0, src1 : arrays with the same number of dimensions, 1 to 12
///     float32, bfloat16, float16, int32, int8, uint8, float8_e4m3fn or float8_e5m2. Their sizes are the same
///     in each dimension, or one is 1.
/// function : str
///     "add", "div", "max", "min", "mul" or "sub"; "eq", "ge", "gt", "le", "lt" or "ne", which give 1 or 0;
///     "select": src0 where the condition is not 0, else src1.
/// condition : array of bool, int8 or uint8
///     With "select" only: the sizes of the result, or 1.
/// out : array of the shape of the result, optional
///     Where to write the result, in any of the types; pass src0 or src1 itself to work in place.
///
/// Returns
/// -------
/// out, or a new array of the library and element type of src0.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src0, src1, function, *, condition=None, out=None))]
pub(crate) fn binary<'py>(
    src0: &Bound<'py, PyAny>,
    src1: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::function)] function: &str,
    condition: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let of_two = named("function", function, &BINARY)?;
    let condition = condition.map(|object| Tensor::read_condition("condition", object));
    let condition = condition.transpose()?;
    check_condition(function, of_two.is_none(), condition.is_some())?;
    let (first, second) = (Tensor::read("src0", OF_TWO, src0), Tensor::read("src1", OF_TWO, src1));
    let (first, second) = match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(error), Ok(other)) => return Err(number_error("src0", src0, &other, error)),
        (Ok(other), Err(error)) => return Err(number_error("src1", src1, &other, error)),
        (Err(error), Err(_)) => return Err(error),
    };
    let shape = broadcast(&first, &second, condition.as_ref())?;
    let expected = (OF_TWO, &shape[..], "it is that of the result");
    let (dst, result) = output("out", out, &first, expected)?;
    let mut read: ArrayVec<_, 3> = ArrayVec::from_iter([&first, &second]);
    read.extend(&condition);
    check_overlaps(&[&dst], &read, &[(&first, &dst), (&second, &dst)])?;
    let mut tensors: ArrayVec<_, 4> = ArrayVec::new();
    tensors.extend([(Arg::Src, &first), (Arg::Src1, &second)]);
    tensors.extend(condition.as_ref().map(|condition| (Arg::Src2, condition)));
    tensors.push((Arg::Dst, &dst));
    run(src0.py(), Operation::Binary(of_two), PropKind::ForwardInference, &tensors)?;
    result.finish()
}

/// Refuses a condition that is not used, and its absence.
fn check_condition(function: &str, needed: bool, given: bool) -> PyResult<()> {
    match (needed, given) {
        (true, false) => Err(PyValueError::new_err(
            "condition is missing: select needs an array of bool, int8 or uint8, 0 where src1 is selected",
        )),
        (false, true) => Err(PyValueError::new_err(format!(
            "condition is given, but function is {function:?}: pass function=\"select\", or leave condition out"
        ))),
        _ => Ok(()),
    }
}

/// The shape of the result.
fn broadcast(
    first: &Tensor<'_, '_>,
    second: &Tensor<'_, '_>,
    condition: Option<&Tensor<'_, '_>>,
) -> PyResult<Strides> {
    let fits = |(a, b): (&usize, &usize)| a == b || *a == 1 || *b == 1;
    let same_count = first.shape.len() == second.shape.len();
    if !same_count || !first.shape.iter().zip(&second.shape).all(fits) {
        return Err(PyValueError::new_err(format!(
            "src1 has the shape {}, which does not broadcast with that of src0, {}: pass as many dimensions, each of the \
             same size or 1",
            tuple(&second.shape),
            tuple(&first.shape)
        )));
    }
    let wider = |(a, b): (&usize, &usize)| if *a == 1 { *b } else { *a };
    let shape: Strides = first.shape.iter().zip(&second.shape).map(wider).collect();
    let Some(condition) = condition else { return Ok(shape) };
    let fits = |(own, of_result): (&usize, &usize)| own == of_result || *own == 1;
    if condition.shape.len() != shape.len() || !condition.shape.iter().zip(&shape).all(fits) {
        return Err(PyValueError::new_err(format!(
            "condition has the shape {}, but the result has {}: pass as many dimensions, each of the same size or 1",
            tuple(&condition.shape),
            tuple(&shape)
        )));
    }
    Ok(shape)
}
