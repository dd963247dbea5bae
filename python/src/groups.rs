//! Group normalization: the functions that Python calls.

use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::call::{Given, outs};
use crate::group_call::Common;
use crate::options::Keywords;

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
/// options
///     gate : array of the shape of src (float32, bfloat16 or float16); the result is multiplied by silu(gate).
///     gate_input : likewise; src * silu(gate_input) is normalized (Mamba-2). gating : "silu" (default) or
///     "sigmoid", the function of the gate. alpha : float; silu(g) is g * sigmoid(alpha * g), with 1 by default.
///     scale_plus_one : bool; use 1 + scale, added in float32, instead of scale. round_before_scale : bool; the
///     normalized value is rounded to the type of src before scale and shift. partial : int; with rms, the mean
///     square is taken over this many first elements of a group, in the order of channels and positions: whole
///     channels.
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
                    out=None, **options))]
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
    options: Option<&Bound<'py, PyDict>>,
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
    let keywords = &Keywords::read(options)?;
    let common = Common { src, groups, scale, shift, epsilon, rms, keywords };
    let mut call = common.call(PropKind::ForwardInference, Flags::NONE)?;
    call.input(Arg::Mean, Flags::GLOBAL_STATS, mean)?;
    call.input(Arg::Variance, Flags::GLOBAL_STATS, variance)?;
    call.output(Arg::Dst, "out", out)?;
    Ok(call.run()?.remove(0))
}

/// Group normalization that also returns the statistics that group_norm_backward needs.
///
/// Formula, parameters and options are those of group_norm, except
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
#[pyo3(signature = (src, groups, scale=None, shift=None, epsilon=1e-5, *, rms=false, out=None, **options))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn group_norm_training<'py>(
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::groups)] groups: usize,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::plain_epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arguments::rms)] rms: bool,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let [dst, mean, variance] = if rms {
        let [dst, variance] = outs(out, "dst, variance")?;
        [dst, None, variance]
    } else {
        outs(out, "dst, mean, variance")?
    };
    let keywords = &Keywords::read(options)?;
    let common = Common { src, groups, scale, shift, epsilon, rms, keywords };
    let mut call = common.call(PropKind::ForwardTraining, Flags::NONE)?;
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
///     As in the forward pass. The values of shift are read only with a gate of the result.
/// epsilon : float
///     As in the forward pass.
/// diff_sum : array of the shape of src, optional
///     The gradient of the sum that add_group_norm returned, with the type of src. src is then that sum, and
///     diff_src the gradient of both summands.
/// rms, global_stats, data_only : bool
///     As for layer_norm_backward; rms selects RMS normalization.
/// out : tuple (diff_src, diff_scale, diff_shift), optional
///     Where to write the results; None for a new array. Pass diff_dst itself for diff_src to work in place.
/// options
///     As in the forward pass. With gate or gate_input, results and out have a fourth element diff_gate.
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
                    diff_sum=None, global_stats=false, data_only=false, out=None, **options))]
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
    diff_sum: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::global_stats)] global_stats: bool,
    #[pyo3(from_py_with = arguments::data_only)] data_only: bool,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    if mean.is_none() != rms {
        return Err(PyValueError::new_err(if rms {
            "mean is given, and rms has none: pass None"
        } else {
            "mean is None: pass the array that group_norm_training returned, or rms=True if it returned none"
        }));
    }
    arguments::expect_statistics("group_norm_training", "variance", variance)?;
    let keywords = &Keywords::read(options)?;
    let gated = keywords.gate.is_some();
    let [diff_src, diff_scale, diff_shift, diff_gate] = gradients(out, gated)?;
    let parameters = [
        (Arg::DiffScale, "out[1]", &diff_scale, "scale", scale.is_some() && !data_only),
        (Arg::DiffShift, "out[2]", &diff_shift, "shift", shift.is_some() && !data_only),
    ];
    let prop_kind = if data_only { PropKind::BackwardData } else { PropKind::Backward };
    let flags = if global_stats { Flags::GLOBAL_STATS } else { Flags::NONE };
    let common = Common { src, groups, scale, shift, epsilon, rms, keywords };
    let mut call = common.call(prop_kind, flags)?;
    call.input(Arg::DiffDst, Flags::NONE, Some(diff_dst))?;
    call.diff_sum(diff_sum)?;
    call.input(Arg::Mean, Flags::NONE, mean)?;
    call.input(Arg::Variance, Flags::NONE, Some(variance))?;
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
    if gated {
        call.output(Arg::DiffGate, "out[3]", diff_gate.as_ref())?;
    }
    let mut results = call.run()?.into_iter();
    let mut next = |there: bool| if there { results.next() } else { None };
    let gradients = [next(true), next(parameters[0].4), next(parameters[1].4), next(gated)];
    PyTuple::new(src.py(), if gated { &gradients[..] } else { &gradients[..3] })
}

/// The elements of `out`: three, and a fourth with a gate.
fn gradients<'py>(out: Given<'_, 'py>, gated: bool) -> PyResult<[Option<Bound<'py, PyAny>>; 4]> {
    if gated {
        return outs(out, "diff_src, diff_scale, diff_shift, diff_gate");
    }
    let [diff_src, diff_scale, diff_shift] = outs(out, "diff_src, diff_scale, diff_shift")?;
    Ok([diff_src, diff_scale, diff_shift, None])
}
