//! Gated activation: SwiGLU, GEGLU, ReGLU, GLU.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::gated::{Activation, Packing};
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments;
use crate::call::Given;
use crate::elementwise::{named, output, run};
use crate::layout::check_overlaps;
use crate::plan::{Gated, Operation, Strides};
use crate::tensor::{Tensor, tuple};

/// Element types of inputs and gradients.
const FLOATS: &[DataType] = &[DataType::F32, DataType::Bf16, DataType::F16];

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
    /// The operation on one array or on two.
    fn operation(&self, separate: bool) -> PyResult<Operation> {
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
        Ok(Operation::Gated(Gated {
            activation: named("activation", self.activation, &activations)?,
            packing,
            limit: self.limit.map_or(f32::INFINITY, |limit| limit as f32),
            shift: self.shift as f32,
        }))
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
///     Where to write the result: float32, bfloat16 or float16.
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
    let expected = (FLOATS, &shape[..], "it is that of the result");
    let (dst, result) = output("out", out, &given, expected)?;
    let mut tensors: ArrayVec<_, 3> = ArrayVec::new();
    tensors.push((Arg::Src, &given));
    tensors.extend(up.as_ref().map(|up| (Arg::Src1, up)));
    let read: ArrayVec<&Tensor<'_, '_>, 2> = tensors.iter().map(|(_, tensor)| *tensor).collect();
    let in_place: ArrayVec<_, 2> = up.iter().flat_map(|up| [(&given, &dst), (up, &dst)]).collect();
    check_overlaps(&[&dst], &read, &in_place)?;
    tensors.push((Arg::Dst, &dst));
    run(src.py(), operation, PropKind::ForwardInference, &tensors)?;
    result.finish()
}

/// The gradient of gated, from its inputs.
///
/// Parameters
/// ----------
/// diff_dst : array of the shape of the result
///     The gradient of the result: float32, bfloat16 or float16.
/// src, up, activation, packing, alpha, limit, shift
///     As in the forward pass.
///
/// Returns
/// -------
/// diff_src, or (diff_gate, diff_up) if up was given: new arrays of the library and element type of src. The
/// gradient is 0 beyond the limits.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, src, up=None, *, activation="swish", packing=None, alpha=None, limit=None, shift=0.0))]
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
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = Keywords { activation, packing, alpha, limit, shift };
    let operation = keywords.operation(up.is_some())?;
    let (given, up, shape) = inputs(src, up)?;
    let gradient = Tensor::read("diff_dst", FLOATS, diff_dst)?;
    gradient.expect_shape(&shape, "it is that of the result")?;
    let new = |like| output("diff_src", None, like, (FLOATS, &given.shape, ""));
    let (diff_src, first) = new(&given)?;
    let beside = up.as_ref().map(&new).transpose()?;
    let mut tensors: ArrayVec<_, 5> =
        [(Arg::Src, &given), (Arg::DiffDst, &gradient), (Arg::DiffSrc, &diff_src)]
            .into_iter()
            .collect();
    if let (Some(up), Some((diff_up, _))) = (&up, &beside) {
        tensors.extend([(Arg::Src1, up), (Arg::DiffSrc1, diff_up)]);
    }
    run(src.py(), operation, PropKind::BackwardData, &tensors)?;
    drop(tensors);
    let Some((_, second)) = beside else { return first.finish() };
    Ok((first.finish()?, second.finish()?).into_pyobject(src.py())?.into_any())
}
