//! Group normalization.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments;
use crate::call::{BACKWARD, FORWARD, Given, compute, outs};
use crate::layout::check_overlaps;
use crate::output::{Output, allocate, expect_out};
use crate::plan::{Addresses, Operand, Operation, Problem};
use crate::tensor::{Dims, Tensor, tuple};

/// The most dimensions that the library accepts.
const MAX_DIMS: usize = 5;
/// The most arguments.
const MAX_TENSORS: usize = 10;

/// The arguments of one call.
struct Call<'a, 'py> {
    py: Python<'py>,
    prop_kind: PropKind,
    flags: Flags,
    epsilon: f64,
    groups: usize,
    types: &'static [DataType],
    /// src, then the other inputs.
    inputs: ArrayVec<(Arg, Tensor<'a, 'py>), MAX_TENSORS>,
    outputs: ArrayVec<(Arg, Tensor<'a, 'py>), MAX_TENSORS>,
    results: Vec<Output<'py>>,
}

impl<'a, 'py> Call<'a, 'py> {
    fn new(
        src: &'a Bound<'py, PyAny>,
        groups: usize,
        prop_kind: PropKind,
        flags: Flags,
        epsilon: f64,
    ) -> PyResult<Self> {
        let py = src.py();
        let forward = matches!(prop_kind, PropKind::ForwardTraining | PropKind::ForwardInference);
        let types = if forward { FORWARD } else { BACKWARD };
        let src = Tensor::read("src", types, src)?;
        if !(2..=MAX_DIMS).contains(&src.shape.len()) {
            return Err(PyValueError::new_err(format!(
                "src has the shape {}: pass (samples, channels, ...) of 2 to {MAX_DIMS} dimensions; neighbouring \
                 positions can be one dimension",
                tuple(&src.shape)
            )));
        }
        let inputs = ArrayVec::from_iter([(Arg::Src, src)]);
        let (outputs, results) = Default::default();
        Ok(Self { py, prop_kind, flags, epsilon, groups, types, inputs, outputs, results })
    }

    fn src(&self) -> &Tensor<'a, 'py> {
        &self.inputs[0].1
    }

    /// The required shape of an argument, and the reason.
    fn shape(&self, arg: Arg) -> (Dims, &'static str) {
        let shape = &self.src().shape;
        match arg {
            Arg::Mean | Arg::Variance => {
                (Dims::from_iter([shape[0], self.groups]), "one element for each group of a sample")
            }
            Arg::Scale | Arg::Shift | Arg::DiffScale | Arg::DiffShift => {
                (Dims::from_iter([shape[1]]), "one element for each channel of src")
            }
            _ => (shape.clone(), "it is that of src"),
        }
    }

    fn types(&self, arg: Arg) -> &'static [DataType] {
        if is_like_src(arg) { self.types } else { &[DataType::F32] }
    }

    fn check(&self, arg: Arg, tensor: &Tensor<'_, '_>) -> PyResult<()> {
        let (shape, because) = self.shape(arg);
        tensor.expect_shape(&shape, because)?;
        if is_like_src(arg) { Ok(()) } else { tensor.expect_dense() }
    }

    fn input(&mut self, arg: Arg, flag: Flags, object: Given<'a, 'py>) -> PyResult<()> {
        let Some(object) = object else { return Ok(()) };
        let name = arg.name();
        let tensor = Tensor::read(name, self.types(arg), object).map_err(|error| match arg {
            Arg::Scale | Arg::Shift => arguments::parameter_error(name, object, error),
            _ => error,
        })?;
        self.check(arg, &tensor)?;
        self.flags |= flag;
        self.inputs.push((arg, tensor));
        Ok(())
    }

    fn output(&mut self, arg: Arg, name: &'static str, out: Given<'a, 'py>) -> PyResult<()> {
        let (tensor, result) = match out {
            Some(out) => {
                let tensor = Tensor::read_output(name, self.types(arg), out)?;
                self.check(arg, &tensor)?;
                (tensor, Output::Array(out.clone()))
            }
            None => {
                let like_src = is_like_src(arg);
                if like_src {
                    expect_out(name, self.src(), None)?;
                }
                let data_type = if like_src { self.src().data_type } else { DataType::F32 };
                allocate(name, self.src(), data_type, &self.shape(arg).0)?
            }
        };
        self.outputs.push((arg, tensor));
        self.results.push(result);
        Ok(())
    }

    fn run(self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let inputs: Vec<_> = self.inputs.iter().map(|(_, tensor)| tensor).collect();
        let outputs: Vec<_> = self.outputs.iter().map(|(_, tensor)| tensor).collect();
        let diff_dst = self.inputs.iter().find(|(arg, _)| *arg == Arg::DiffDst);
        let source = diff_dst.map_or(self.src(), |(_, tensor)| tensor);
        check_overlaps(&outputs, &inputs, &[(source, outputs[0])])?;
        let backward = matches!(self.prop_kind, PropKind::Backward | PropKind::BackwardData);
        let (mut operands, mut addresses) = (ArrayVec::new(), Addresses::new());
        let all = self.inputs.iter().chain(&self.outputs);
        for (arg, tensor) in all.filter(|(arg, _)| !(backward && *arg == Arg::Shift)) {
            let strides = tensor.strides.clone();
            operands.push(Operand { arg: *arg, data_type: tensor.data_type, strides, dims: None });
            addresses.push(tensor.data);
        }
        let operation = Operation::GroupNormalization {
            flags: self.flags,
            epsilon: self.epsilon as f32, // the library rejects what is not finite or negative
            groups: self.groups,
        };
        let dims = self.src().shape.clone();
        let problem = Problem { prop_kind: self.prop_kind, operation, dims, operands };
        compute(self.py, &problem, &addresses)?;
        self.results.into_iter().map(Output::finish).collect()
    }
}

/// Whether an argument has the shape and the types of src.
fn is_like_src(arg: Arg) -> bool {
    matches!(arg, Arg::Dst | Arg::DiffDst | Arg::DiffSrc)
}

fn norm(rms: bool) -> Flags {
    if rms { Flags::RMS_NORM } else { Flags::NONE }
}

/// Group normalization: each group of neighbouring channels of a sample is normalized.
///
///     mean     = sum(x) / M
///     variance = sum((x - mean)**2) / M
///     dst      = (x - mean) / sqrt(variance + epsilon) * scale + shift
///
/// over the M elements of a group, with a scale and a shift for each channel (Wu and He, Group Normalization,
/// 2018). With rms there is no mean, and the variance is sum(x**2) / M.
///
/// Parameters
/// ----------
/// src : array of shape (N, C, ...), 2 to 5 dimensions
///     float32, bfloat16, float16, float64, int8, uint8, float8_e4m3fn or float8_e5m2; any non-negative
///     strides.
/// groups : int
///     A divisor of C.
/// scale, shift : float32 array of shape (C,), optional
/// epsilon : float
///     Added to the variance under the root; finite, 0 or more.
/// rms : bool
///     RMS normalization.
/// mean, variance : float32 array of shape (N, groups), optional
///     Statistics to use instead of the groups' own.
/// out : array of the shape of src
///     Where to write the result, in any of the types of src; pass src itself to work in place. It may be
///     omitted unless src is int8 or uint8.
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
#[pyo3(signature = (src, groups, scale=None, shift=None, epsilon=1e-5, *, rms=false, mean=None, variance=None,
                    out=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn group_norm<'py>(
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::groups)] groups: usize,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::plain_epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arguments::rms)] rms: bool,
    mean: Option<&Bound<'py, PyAny>>,
    variance: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let missing = match (mean, variance) {
        (None, Some(_)) if !rms => Some("mean"),
        (Some(_), None) if !rms => Some("variance"),
        (Some(_), _) if rms => {
            return Err(PyValueError::new_err(
                "mean is given, and rms has none: pass variance alone",
            ));
        }
        _ => None,
    };
    if let Some(missing) = missing {
        return Err(PyValueError::new_err(format!(
            "{missing} is missing: pass both mean and variance, or neither to compute them"
        )));
    }
    let mut call = Call::new(src, groups, PropKind::ForwardInference, norm(rms), epsilon)?;
    call.input(Arg::Scale, Flags::SCALE, scale)?;
    call.input(Arg::Shift, Flags::SHIFT, shift)?;
    call.input(Arg::Mean, Flags::GLOBAL_STATS, mean)?;
    call.input(Arg::Variance, Flags::GLOBAL_STATS, variance)?;
    call.output(Arg::Dst, "out", out)?;
    Ok(call.run()?.remove(0))
}

/// Group normalization that also returns the statistics that group_norm_backward needs.
///
/// Formula and parameters are those of group_norm, except
///
/// out : tuple (dst, mean, variance), with rms (dst, variance), optional
///     Where to write the results; None for a new array.
///
/// Returns
/// -------
/// (dst, mean, variance), with rms (dst, variance)
///     mean and variance are float32 of shape (N, groups).
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, groups, scale=None, shift=None, epsilon=1e-5, *, rms=false, out=None))]
pub(crate) fn group_norm_training<'py>(
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::groups)] groups: usize,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::plain_epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arguments::rms)] rms: bool,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let [dst, mean, variance] = if rms {
        let [dst, variance] = outs(out, "dst, variance")?;
        [dst, None, variance]
    } else {
        outs(out, "dst, mean, variance")?
    };
    let mut call = Call::new(src, groups, PropKind::ForwardTraining, norm(rms), epsilon)?;
    call.input(Arg::Scale, Flags::SCALE, scale)?;
    call.input(Arg::Shift, Flags::SHIFT, shift)?;
    call.output(Arg::Dst, "out[0]", dst.as_ref())?;
    if !rms {
        call.output(Arg::Mean, "out[1]", mean.as_ref())?;
    }
    let name = if rms { "out[1]" } else { "out[2]" };
    call.output(Arg::Variance, name, variance.as_ref())?;
    PyTuple::new(src.py(), call.run()?)
}

/// The gradients of group normalization, from the statistics that group_norm_training returned.
///
/// Parameters
/// ----------
/// diff_dst : array of the shape of src
///     The gradient of the result: float32, bfloat16, float16 or float64.
/// src : array of shape (N, C, ...)
///     The source of the forward pass.
/// groups : int
///     As in the forward pass.
/// mean, variance : float32 array of shape (N, groups)
///     Pass None as mean with rms.
/// scale, shift : float32 array of shape (C,), optional
///     As in the forward pass. The values of shift are not read.
/// epsilon : float
///     As in the forward pass.
/// rms, global_stats, data_only : bool
///     As for layer_norm_backward; rms selects RMS normalization.
/// out : tuple (diff_src, diff_scale, diff_shift), optional
///     Where to write the results; None for a new array. Pass diff_dst itself for diff_src to work in place.
///
/// Returns
/// -------
/// (diff_src, diff_scale, diff_shift)
///     None for the gradient of a parameter that was not passed, and with data_only.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, src, groups, mean, variance, scale=None, shift=None, epsilon=1e-5, *, rms=false,
                    global_stats=false, data_only=false, out=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn group_norm_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::groups)] groups: usize,
    mean: Option<&Bound<'py, PyAny>>,
    variance: &Bound<'py, PyAny>,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::plain_epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arguments::rms)] rms: bool,
    #[pyo3(from_py_with = arguments::global_stats)] global_stats: bool,
    #[pyo3(from_py_with = arguments::data_only)] data_only: bool,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    if mean.is_none() != rms {
        return Err(PyValueError::new_err(if rms {
            "mean is given, and rms has none: pass None"
        } else {
            "mean is None: pass the array that group_norm_training returned, or rms=True if it returned none"
        }));
    }
    arguments::expect_statistics("group_norm_training", "variance", variance)?;
    let [diff_src, diff_scale, diff_shift] = outs(out, "diff_src, diff_scale, diff_shift")?;
    let parameters = [
        (Arg::DiffScale, "out[1]", &diff_scale, "scale", scale.is_some() && !data_only),
        (Arg::DiffShift, "out[2]", &diff_shift, "shift", shift.is_some() && !data_only),
    ];
    let prop_kind = if data_only { PropKind::BackwardData } else { PropKind::Backward };
    let flags = norm(rms) | if global_stats { Flags::GLOBAL_STATS } else { Flags::NONE };
    let mut call = Call::new(src, groups, prop_kind, flags, epsilon)?;
    call.input(Arg::DiffDst, Flags::NONE, Some(diff_dst))?;
    call.input(Arg::Mean, Flags::NONE, mean)?;
    call.input(Arg::Variance, Flags::NONE, Some(variance))?;
    call.input(Arg::Scale, Flags::SCALE, scale)?;
    call.input(Arg::Shift, Flags::SHIFT, shift)?;
    call.output(Arg::DiffSrc, "out[0]", diff_src.as_ref())?;
    for (arg, name, out, parameter, wanted) in parameters {
        if wanted {
            call.output(arg, name, out.as_ref())?;
        } else if out.is_some() {
            return Err(PyValueError::new_err(format!(
                "{name} has no result: pass {parameter} and not data_only, or None for it"
            )));
        }
    }
    let mut results = call.run()?.into_iter();
    let mut next = |there: bool| if there { results.next() } else { None };
    let gradients = [next(true), next(parameters[0].4), next(parameters[1].4)];
    PyTuple::new(src.py(), gradients)
}
