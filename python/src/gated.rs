//! Gated activation: SwiGLU, GEGLU, ReGLU, GLU.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::gated::{Activation, Packing};
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments;
use crate::call::{Given, QUANTIZED, outs};
use crate::elementwise::{named, output, run};
use crate::layout::check_overlaps;
use crate::output::{Output, allocate};
use crate::plan::{Gated, Operation, Strides};
use crate::scales::{SCALES, check_scales, group_of};
use crate::tensor::{Tensor, tuple};

/// Element types of inputs and gradients.
const FLOATS: &[DataType] = &[DataType::F32, DataType::Bf16, DataType::F16];
/// Element types of the result.
const RESULTS: &[DataType] = &[
    DataType::F32,
    DataType::Bf16,
    DataType::F16,
    DataType::S8,
    DataType::U8,
    DataType::F8E4m3,
    DataType::F8E5m2,
];

/// The names of packings.
const PACKINGS: [(&str, Packing); 3] = [
    ("gate_first", Packing::GateFirst),
    ("up_first", Packing::UpFirst),
    ("interleaved", Packing::Interleaved),
];

/// The keywords of both directions.
struct Keywords<'a> {
    activation: &'a str,
    packing: Option<&'a str>,
    alpha: Option<f64>,
    limit: Option<f64>,
    shift: f64,
}

impl Keywords<'_> {
    /// The operation on one array or on two, without dynamic scales.
    fn operation(&self, separate: bool) -> PyResult<Gated> {
        let alpha = self.alpha.map(|alpha| alpha as f32);
        let activations = [
            ("swish", Activation::Swish(alpha.unwrap_or(1.0))),
            ("gelu_erf", Activation::GeluErf),
            ("gelu_tanh", Activation::GeluTanh),
            ("relu", Activation::Relu(alpha.unwrap_or(0.0))),
            ("logistic", Activation::Logistic),
            ("linear", Activation::Linear(alpha.unwrap_or(1.0))),
        ];
        let packing = match (self.packing, separate) {
            (Some(packing), false) => Some(named("packing", packing, &PACKINGS)?),
            (None, true) => None,
            _ => {
                return Err(PyValueError::new_err(
                    "packing says where gate and up are in src: pass either up or packing, one of gate_first, up_first, \
                     interleaved",
                ));
            }
        };
        Ok(Gated {
            activation: named("activation", self.activation, &activations)?,
            packing,
            limit: self.limit.map_or(f32::INFINITY, |limit| limit as f32),
            shift: self.shift as f32,
            group: 0,
        })
    }
}

/// src and up, and the shape of dst.
fn inputs<'a, 'py>(
    src: &'a Bound<'py, PyAny>,
    up: Given<'a, 'py>,
) -> PyResult<(Tensor<'a, 'py>, Option<Tensor<'a, 'py>>, Strides)> {
    let given = Tensor::read("src", FLOATS, src)?;
    let mut shape: Strides = given.shape.iter().copied().collect();
    let Some(up) = up else {
        match shape.last_mut() {
            Some(last) if *last % 2 == 0 => *last /= 2,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "src has the shape {}: pass a last dimension of even size, for gate and up",
                    tuple(&given.shape)
                )));
            }
        }
        return Ok((given, None, shape));
    };
    let up = Tensor::read("up", FLOATS, up)?;
    up.expect_shape(&given.shape, "it is that of src")?;
    Ok((given, Some(up), shape))
}

/// Gated activation, the middle of a transformer's feed-forward layer.
///
///     g = min(gate, limit), u = clip(up, -limit, limit) + shift
///     dst = f(g) * u
///
/// Parameters
/// ----------
/// src : array of shape (..., 2C), or the gate of shape (..., C)
///     float32, bfloat16 or float16; any non-negative strides.
/// up : array of shape (..., C), optional
///     The second factor. Without it, src contains both, and packing says how.
/// activation : str
///     f: "swish" or "silu" (SwiGLU), "gelu_erf", "gelu_tanh", "relu", "logistic" or "sigmoid" (GLU), or "linear"
///     (bilinear).
/// packing : str
///     "gate_first" or "up_first", for halves of the last dimension, or "interleaved". There is no default.
/// alpha : float, optional
///     For swish (default 1), relu (0) and linear (1).
/// limit : float, optional
///     Above 0; GPT-OSS uses 7, with alpha 1.702 and shift 1.
/// shift : float
///     Added to up.
/// out : array of shape (..., C), optional
///     Where to write the result: float32, bfloat16, float16, int8, uint8, float8_e4m3fn or float8_e5m2. Pass src
///     itself, or up, to work in place.
///
/// Returns
/// -------
/// out, or a new array of the library and element type of src.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, up=None, *, activation="swish", packing=None, alpha=None, limit=None, shift=0.0, out=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn gated<'py>(
    src: &Bound<'py, PyAny>,
    up: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::activation)] activation: &str,
    #[pyo3(from_py_with = arguments::packing)] packing: Option<&str>,
    #[pyo3(from_py_with = arguments::alpha)] alpha: Option<f64>,
    #[pyo3(from_py_with = arguments::limit)] limit: Option<f64>,
    #[pyo3(from_py_with = arguments::shift)] shift: f64,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = Keywords { activation, packing, alpha, limit, shift };
    let operation = keywords.operation(up.is_some())?;
    let (given, up, shape) = inputs(src, up)?;
    let expected = (RESULTS, &shape[..], "it is that of the result");
    let (dst, result) = output("out", out, &given, expected)?;
    forward(src.py(), operation, (&given, up.as_ref()), &[(Arg::Dst, &dst)])?;
    result.finish()
}

/// Computes outputs, the first of which is dst.
fn forward(
    py: Python<'_>,
    operation: Gated,
    (src, up): (&Tensor<'_, '_>, Option<&Tensor<'_, '_>>),
    outputs: &[(Arg, &Tensor<'_, '_>)],
) -> PyResult<()> {
    let mut tensors: ArrayVec<_, 5> = ArrayVec::from_iter([(Arg::Src, src)]);
    tensors.extend(up.map(|up| (Arg::Src1, up)));
    let read: ArrayVec<_, 2> = tensors.iter().map(|(_, tensor)| *tensor).collect();
    let written: ArrayVec<_, 3> = outputs.iter().map(|(_, tensor)| *tensor).collect();
    let in_place: ArrayVec<_, 2> = read.iter().map(|tensor| (*tensor, written[0])).collect();
    check_overlaps(&written, &read, &in_place)?;
    tensors.extend(outputs.iter().copied());
    run(py, Operation::Gated(operation), PropKind::ForwardInference, &tensors)
}

/// Gated activation, quantized with scales computed from the result.
///
///     y = gated(src, up)
///     scales = max(abs(y)) / largest value of the type, for each group of a row; 1 for a group of zeros
///     out = y / scales, rounded to nearest even
///
/// Parameters
/// ----------
/// src, up, activation, packing, alpha, limit, shift
///     As for gated: src is an array of shape (..., 2C), or the gate of shape (..., C).
/// out : array of shape (..., C)
///     Where to write the result: int8, uint8, float8_e4m3fn or float8_e5m2.
/// group : int, optional
///     How many elements share a scale, a divisor of C; C by default.
/// scales : array of shape (..., C / group), optional
///     As for layer_norm_quantized.
///
/// Returns
/// -------
/// (out, scales)
///     scales is float32 of shape (..., C / group) unless it was passed. With uint8 there is a third element, int32
///     zero points of the same shape, and y = (out - zero_points) * scales.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, up=None, *, activation="swish", packing=None, alpha=None, limit=None, shift=0.0, out,
                    group=None, scales=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn gated_quantized<'py>(
    src: &Bound<'py, PyAny>,
    up: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::activation)] activation: &str,
    #[pyo3(from_py_with = arguments::packing)] packing: Option<&str>,
    #[pyo3(from_py_with = arguments::alpha)] alpha: Option<f64>,
    #[pyo3(from_py_with = arguments::limit)] limit: Option<f64>,
    #[pyo3(from_py_with = arguments::shift)] shift: f64,
    out: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::group)] group: Option<usize>,
    scales: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let keywords = Keywords { activation, packing, alpha, limit, shift };
    let operation = keywords.operation(up.is_some())?;
    let (given, up, shape) = inputs(src, up)?;
    let Some((last, rows)) = shape.split_last() else {
        return Err(PyValueError::new_err(
            "src has no dimensions: pass an array with at least one",
        ));
    };
    let group = group_of(group, *last, "the result")?;
    let of_scales: Strides = rows.iter().copied().chain([last / group]).collect();
    let dst = Tensor::read_output("out", QUANTIZED, out)?;
    dst.expect_shape(&shape, "it is that of the result")?;
    let new = |data_type| allocate("scales", &given, data_type, &of_scales);
    let (scales, of_scales) = match scales {
        None => new(DataType::F32)?,
        Some(scales) => {
            let tensor = Tensor::read_output("scales", SCALES, scales)?;
            tensor.expect_shape(&of_scales, "one element for each group of the result")?;
            tensor.expect_dense()?;
            check_scales(&tensor, group, &dst)?;
            (tensor, Output::Array(scales.clone()))
        }
    };
    let points = (dst.data_type == DataType::U8).then(|| new(DataType::S32)).transpose()?;
    let mut outputs = vec![(Arg::Dst, &dst), (Arg::DstScale, &scales)];
    outputs.extend(points.as_ref().map(|(points, _)| (Arg::DstZeroPoint, points)));
    forward(src.py(), Gated { group, ..operation }, (&given, up.as_ref()), &outputs)?;
    let results = [Some(of_scales), points.map(|(_, points)| points)].into_iter().flatten();
    let results = results.map(Output::finish).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(src.py(), std::iter::once(out.clone()).chain(results).collect::<Vec<_>>())
}

/// The gradient of gated, from its inputs.
///
/// Parameters
/// ----------
/// diff_dst : array of the shape of the result
///     The gradient of the result: float32, bfloat16 or float16.
/// src, up, activation, packing, alpha, limit, shift
///     As in the forward pass.
/// return_dst : bool
///     Also return the result of the forward pass, in the element type of src, so that it need not be stored.
/// out : array of the shape of src, optional
///     Where to write the result; None for a new array. With up a tuple (diff_gate, diff_up), with return_dst a
///     tuple that ends with dst. Pass src, up or diff_dst itself to work in place.
///
/// Returns
/// -------
/// diff_src, or (diff_gate, diff_up) if up was given: out, or new arrays of the library and element type of src.
/// With return_dst a tuple that ends with dst. The gradient is 0 beyond the limits.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, src, up=None, *, activation="swish", packing=None, alpha=None, limit=None, shift=0.0,
                    return_dst=false, out=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn gated_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    src: &Bound<'py, PyAny>,
    up: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::activation)] activation: &str,
    #[pyo3(from_py_with = arguments::packing)] packing: Option<&str>,
    #[pyo3(from_py_with = arguments::alpha)] alpha: Option<f64>,
    #[pyo3(from_py_with = arguments::limit)] limit: Option<f64>,
    #[pyo3(from_py_with = arguments::shift)] shift: f64,
    #[pyo3(from_py_with = arguments::return_dst)] return_dst: bool,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = Keywords { activation, packing, alpha, limit, shift };
    let operation = Operation::Gated(keywords.operation(up.is_some())?);
    let (given, up, shape) = inputs(src, up)?;
    let gradient = Tensor::read("diff_dst", FLOATS, diff_dst)?;
    gradient.expect_shape(&shape, "it is that of the result")?;
    let outs = backward_outs(out, up.is_some(), return_dst)?;
    let like_src = (FLOATS, &given.shape[..], "it is that of src");
    let single = up.is_none() && !return_dst;
    let first_name = if single { "out" } else { "out[0]" };
    let (diff_src, first) = output(first_name, outs[0].as_ref(), &given, like_src)?;
    let beside = up.as_ref().map(|up| output("out[1]", outs[1].as_ref(), up, like_src));
    let beside = beside.transpose()?;
    let last_name = if up.is_some() { "out[2]" } else { "out[1]" };
    let dst = return_dst.then(|| {
        let expected = (FLOATS, &shape[..], "it is that of the result");
        output(last_name, outs[2].as_ref(), &given, expected)
    });
    let dst = dst.transpose()?;
    let mut inputs = vec![(Arg::Src, &given), (Arg::DiffDst, &gradient)];
    inputs.extend(up.as_ref().map(|up| (Arg::Src1, up)));
    let mut outputs = vec![(Arg::DiffSrc, &diff_src)];
    outputs.extend(beside.as_ref().map(|(diff_up, _)| (Arg::DiffSrc1, diff_up)));
    outputs.extend(dst.as_ref().map(|(dst, _)| (Arg::Dst, dst)));
    backward(src.py(), operation, &inputs, &outputs)?;
    if single {
        return first.finish();
    }
    let results = [Some(first), beside.map(|(_, own)| own), dst.map(|(_, own)| own)];
    let results = results.into_iter().flatten().map(Output::finish);
    Ok(PyTuple::new(src.py(), results.collect::<PyResult<Vec<_>>>()?)?.into_any())
}

/// Computes outputs, each of which may be one of the inputs.
fn backward(
    py: Python<'_>,
    operation: Operation,
    inputs: &[(Arg, &Tensor<'_, '_>)],
    outputs: &[(Arg, &Tensor<'_, '_>)],
) -> PyResult<()> {
    let read: ArrayVec<_, 3> = inputs.iter().map(|(_, tensor)| *tensor).collect();
    let written: ArrayVec<_, 3> = outputs.iter().map(|(_, tensor)| *tensor).collect();
    let pairs = read.iter().flat_map(|input| written.iter().map(move |output| (*input, *output)));
    check_overlaps(&written, &read, &pairs.collect::<ArrayVec<_, 9>>())?;
    run(py, operation, PropKind::BackwardData, &[inputs, outputs].concat())
}

/// The elements of `out`, for diff_src, diff_up and dst.
fn backward_outs<'py>(
    out: Given<'_, 'py>,
    separate: bool,
    return_dst: bool,
) -> PyResult<[Option<Bound<'py, PyAny>>; 3]> {
    Ok(match (separate, return_dst) {
        (false, false) => [out.cloned(), None, None],
        (false, true) => outs(out, "diff_src, dst").map(|[first, dst]| [first, None, dst])?,
        (true, false) => outs(out, "diff_gate, diff_up").map(|[gate, up]| [gate, up, None])?,
        (true, true) => outs(out, "diff_gate, diff_up, dst")?,
    })
}
