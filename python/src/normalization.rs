//! Layer normalization and RMS normalization: the functions that Python calls.

use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::call::{Call, Given, outs};
use crate::options::Keywords;

/// What the functions of one direction have in common.
pub(crate) struct Common<'a, 'py> {
    pub(crate) flags: Flags,
    pub(crate) src: &'a Bound<'py, PyAny>,
    pub(crate) scale: Given<'a, 'py>,
    pub(crate) shift: Given<'a, 'py>,
    pub(crate) epsilon: f64,
    pub(crate) keywords: &'a Keywords<'py>,
}

impl<'a, 'py> Common<'a, 'py> {
    pub(crate) fn call(self, prop_kind: PropKind, flags: Flags) -> PyResult<Call<'a, 'py>> {
        let mut call = Call::new(self.src, prop_kind, self.flags | flags, self.epsilon)?;
        call.parameters(self.scale, self.shift)?;
        call.keywords(self.keywords)?;
        Ok(call)
    }

    fn inference(
        self,
        mean: Given<'a, 'py>,
        variance: Given<'a, 'py>,
        out: Given<'a, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let global = if variance.is_some() { Flags::GLOBAL_STATS } else { Flags::NONE };
        let mut call = self.call(PropKind::ForwardInference, global)?;
        call.statistics(mean, variance)?;
        call.output(Arg::Dst, "out", out)?;
        Ok(call.run()?.remove(0))
    }
}

/// The arguments of a backward pass alone.
struct Gradients<'a, 'py> {
    diff_dst: &'a Bound<'py, PyAny>,
    mean: Given<'a, 'py>,
    variance: &'a Bound<'py, PyAny>,
    diff_sum: Given<'a, 'py>,
    global_stats: bool,
    data_only: bool,
    out: Given<'a, 'py>,
}

impl<'py> Gradients<'_, 'py> {
    /// The elements of `out`: three, and a fourth with a gate.
    fn outs(&self, gated: bool) -> PyResult<[Option<Bound<'py, PyAny>>; 4]> {
        if gated {
            return outs(self.out, "diff_src, diff_scale, diff_shift, diff_gate");
        }
        let [diff_src, diff_scale, diff_shift] =
            outs(self.out, "diff_src, diff_scale, diff_shift")?;
        Ok([diff_src, diff_scale, diff_shift, None])
    }

    fn compute(self, common: Common<'_, 'py>) -> PyResult<Bound<'py, PyTuple>> {
        let py = common.src.py();
        let gated = common.keywords.gate.is_some();
        let [diff_src, diff_scale, diff_shift, diff_gate] = self.outs(gated)?;
        let wanted = |given: bool| given && !self.data_only;
        let (scale, shift) = (wanted(common.scale.is_some()), wanted(common.shift.is_some()));
        for (place, out, parameter, wanted) in
            [(1, &diff_scale, "scale", scale), (2, &diff_shift, "shift", shift)]
        {
            if out.is_some() && !wanted {
                return Err(PyValueError::new_err(format!(
                    "out[{place}] has no result: pass {parameter} and not data_only, or None for it"
                )));
            }
        }
        let prop_kind = if self.data_only { PropKind::BackwardData } else { PropKind::Backward };
        let global = if self.global_stats { Flags::GLOBAL_STATS } else { Flags::NONE };
        let mut call = common.call(prop_kind, global)?;
        call.diff_dst(self.diff_dst)?;
        call.diff_sum(self.diff_sum)?;
        call.statistics(self.mean, Some(self.variance))?;
        call.output(Arg::DiffSrc, "out[0]", diff_src.as_ref())?;
        if scale {
            call.output(Arg::DiffScale, "out[1]", diff_scale.as_ref())?;
        }
        if shift {
            call.output(Arg::DiffShift, "out[2]", diff_shift.as_ref())?;
        }
        if gated {
            call.output(Arg::DiffGate, "out[3]", diff_gate.as_ref())?;
        }
        let mut results = call.run()?.into_iter();
        let mut next = |there: bool| if there { results.next() } else { None };
        let gradients = [next(true), next(scale), next(shift), next(gated)];
        PyTuple::new(py, if gated { &gradients[..] } else { &gradients[..3] })
    }
}

/// Layer normalization of each row of an array.
///
///     mean     = sum(x) / C
///     variance = sum((x - mean)**2) / C
///     dst      = (x - mean) / sqrt(variance + epsilon) * scale + shift
///
/// for each row x of C elements: the last dimension of src (Ba, Kiros and Hinton, Layer Normalization, 2016).
/// Without scale or shift, the formula omits them.
///
/// Parameters
/// ----------
/// src : array of shape (..., C)
///     float32, bfloat16, float16, float64, int8, uint8, float8_e4m3fn or float8_e5m2; any non-negative
///     strides.
/// scale, shift : array of shape (C,), optional
///     float32, bfloat16 or float16; the same type for both; contiguous.
/// epsilon : float
///     Added to the variance under the root; finite, 0 or more.
/// mean, variance : float32 array of shape (...) or (..., 1), optional
///     Statistics to use instead of the row's own; both or neither.
/// out : array of shape (..., C)
///     Where to write the result, in any of the types of src; pass src itself to work in place. It may be
///     omitted unless src is int8 or uint8.
/// options
///     gate : array of the shape of src (float32, bfloat16 or float16); the result is multiplied by silu(gate).
///     gate_input : likewise; src * silu(gate_input) is normalized. gating : "silu" (default) or "sigmoid", the
///     function of the gate. alpha : float; silu(g) is g * sigmoid(alpha * g), with 1 by default. scale_plus_one :
///     bool; use 1 + scale, added in float32, instead of scale. round_before_scale : bool; the normalized value is
///     rounded to the type of src before scale and shift.
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
#[pyo3(signature = (src, scale=None, shift=None, epsilon=1e-5, *, mean=None, variance=None, out=None, **options))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn layer_norm<'py>(
    src: &Bound<'py, PyAny>,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
    mean: Option<&Bound<'py, PyAny>>,
    variance: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let missing = match (mean, variance) {
        (Some(_), None) => Some("variance"),
        (None, Some(_)) => Some("mean"),
        _ => None,
    };
    if let Some(missing) = missing {
        return Err(PyValueError::new_err(format!(
            "{missing} is missing: pass both mean and variance, or neither to compute them"
        )));
    }
    let keywords = Keywords::read(options)?;
    let keywords = &keywords;
    let common = Common { flags: Flags::NONE, src, scale, shift, epsilon, keywords };
    common.inference(mean, variance, out)
}

/// RMS normalization of each row of an array.
///
///     variance = sum(x**2) / C
///     dst      = x / sqrt(variance + epsilon) * scale + shift
///
/// for each row x of C elements: the last dimension of src (Zhang and Sennrich, Root Mean Square Layer
/// Normalization, 2019). Without scale or shift, the formula omits them.
///
/// Parameters
/// ----------
/// src : array of shape (..., C)
///     float32, bfloat16, float16, float64, int8, uint8, float8_e4m3fn or float8_e5m2; any non-negative
///     strides.
/// scale, shift : array of shape (C,), optional
///     float32, bfloat16 or float16; the same type for both; contiguous.
/// epsilon : float
///     Added to the mean square under the root; finite, 0 or more.
/// variance : float32 array of shape (...) or (..., 1), optional
///     Mean squares to use instead of the row's own.
/// out : array of shape (..., C)
///     Where to write the result, in any of the types of src; pass src itself to work in place. It may be
///     omitted unless src is int8 or uint8.
/// options
///     gate : array of the shape of src (float32, bfloat16 or float16); the result is multiplied by silu(gate).
///     gate_input : likewise; src * silu(gate_input) is normalized. gating : "silu" (default) or "sigmoid", the
///     function of the gate. alpha : float; silu(g) is g * sigmoid(alpha * g), with 1 by default. scale_plus_one :
///     bool; use 1 + scale, added in float32, instead of scale. round_before_scale : bool; the normalized value is
///     rounded to the type of src before scale and shift.
///     partial : int; the mean square is taken over this many first elements of the row.
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
#[pyo3(signature = (src, scale=None, shift=None, epsilon=1e-5, *, variance=None, out=None, **options))]
pub(crate) fn rms_norm<'py>(
    src: &Bound<'py, PyAny>,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
    variance: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = Keywords::read(options)?;
    let keywords = &keywords;
    let common = Common { flags: Flags::RMS_NORM, src, scale, shift, epsilon, keywords };
    common.inference(None, variance, out)
}

/// Layer normalization that also returns the statistics that layer_norm_backward needs.
///
/// Formula, parameters and options are those of layer_norm, except
///
/// out : tuple (dst, mean, variance), optional
///     Where to write the results; None for a new array.
///
/// Returns
/// -------
/// (dst, mean, variance)
///     mean and variance are float32 of the shape of src without its last dimension.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, scale=None, shift=None, epsilon=1e-5, *, out=None, **options))]
pub(crate) fn layer_norm_training<'py>(
    src: &Bound<'py, PyAny>,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let [dst, mean, variance] = outs(out, "dst, mean, variance")?;
    let keywords = Keywords::read(options)?;
    let keywords = &keywords;
    let common = Common { flags: Flags::NONE, src, scale, shift, epsilon, keywords };
    let mut call = common.call(PropKind::ForwardTraining, Flags::NONE)?;
    call.output(Arg::Dst, "out[0]", dst.as_ref())?;
    call.output(Arg::Mean, "out[1]", mean.as_ref())?;
    call.output(Arg::Variance, "out[2]", variance.as_ref())?;
    PyTuple::new(src.py(), call.run()?)
}

/// RMS normalization that also returns the statistics that rms_norm_backward needs.
///
/// Formula, parameters and options are those of rms_norm, except
///
/// out : tuple (dst, variance), optional
///     Where to write the results; None for a new array.
///
/// Returns
/// -------
/// (dst, variance)
///     variance holds the mean squares: float32 of the shape of src without its last dimension.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, scale=None, shift=None, epsilon=1e-5, *, out=None, **options))]
pub(crate) fn rms_norm_training<'py>(
    src: &Bound<'py, PyAny>,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let [dst, variance] = outs(out, "dst, variance")?;
    let keywords = Keywords::read(options)?;
    let keywords = &keywords;
    let common = Common { flags: Flags::RMS_NORM, src, scale, shift, epsilon, keywords };
    let mut call = common.call(PropKind::ForwardTraining, Flags::NONE)?;
    call.output(Arg::Dst, "out[0]", dst.as_ref())?;
    call.output(Arg::Variance, "out[1]", variance.as_ref())?;
    PyTuple::new(src.py(), call.run()?)
}

/// The gradients of layer normalization.
///
/// With r = 1 / sqrt(variance + epsilon), xhat = (src - mean) * r and d = scale * diff_dst:
///
///     diff_src   = r * (d - sum(d) / C - xhat * sum(d * xhat) / C)    for each row
///     diff_scale = sum(diff_dst * xhat)                               over all rows
///     diff_shift = sum(diff_dst)                                      over all rows
///
/// Parameters
/// ----------
/// diff_dst : array of shape (..., C)
///     The gradient of the result: float32, bfloat16, float16 or float64.
/// src : array of shape (..., C)
///     The source of the forward pass: float32, bfloat16, float16 or float64.
/// mean, variance : float32 array of shape (...) or (..., 1)
///     The statistics that layer_norm_training returned.
/// scale, shift : array of shape (C,), optional
///     As in the forward pass. The values of shift are read only with a gate of the result.
/// epsilon : float
///     As in the forward pass.
/// diff_sum : array of shape (..., C), optional
///     The gradient of the sum that add_layer_norm returned, with the type of src. src is then that sum, and
///     diff_src the gradient of both summands.
/// global_stats : bool
///     Mean and variance did not depend on src, so diff_src = r * d.
/// data_only : bool
///     Compute only diff_src.
/// out : tuple (diff_src, diff_scale, diff_shift), optional
///     Where to write the results; None for a new array. Pass diff_dst itself for diff_src to work in place.
/// options
///     As in the forward pass. With gate or gate_input, results and out have a fourth element diff_gate.
///
/// Returns
/// -------
/// (diff_src, diff_scale, diff_shift)
///     With the element types of src, scale and shift; None for the gradient of a parameter that was not
///     passed, and with data_only.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, src, mean, variance, scale=None, shift=None, epsilon=1e-5, *,
                    diff_sum=None, global_stats=false, data_only=false, out=None, **options))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn layer_norm_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    src: &Bound<'py, PyAny>,
    mean: &Bound<'py, PyAny>,
    variance: &Bound<'py, PyAny>,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
    diff_sum: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::global_stats)] global_stats: bool,
    #[pyo3(from_py_with = arguments::data_only)] data_only: bool,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    for (name, given) in [("mean", mean), ("variance", variance)] {
        arguments::expect_statistics("layer_norm_training", name, given)?;
    }
    let mean = Some(mean);
    let keywords = Keywords::read(options)?;
    let keywords = &keywords;
    let common = Common { flags: Flags::NONE, src, scale, shift, epsilon, keywords };
    Gradients { diff_dst, mean, variance, diff_sum, global_stats, data_only, out }.compute(common)
}

/// The gradients of RMS normalization.
///
/// With r = 1 / sqrt(variance + epsilon), xhat = src * r and d = scale * diff_dst:
///
///     diff_src   = r * (d - xhat * sum(d * xhat) / C)    for each row
///     diff_scale = sum(diff_dst * xhat)                  over all rows
///     diff_shift = sum(diff_dst)                         over all rows
///
/// Parameters
/// ----------
/// diff_dst : array of shape (..., C)
///     The gradient of the result: float32, bfloat16, float16 or float64.
/// src : array of shape (..., C)
///     The source of the forward pass: float32, bfloat16, float16 or float64.
/// variance : float32 array of shape (...) or (..., 1)
///     The means of squares that rms_norm_training returned.
/// scale, shift : array of shape (C,), optional
///     As in the forward pass. The values of shift are read only with a gate of the result.
/// epsilon : float
///     As in the forward pass.
/// diff_sum : array of shape (..., C), optional
///     The gradient of the sum that add_rms_norm returned, with the type of src. src is then that sum, and
///     diff_src the gradient of both summands.
/// global_stats : bool
///     The means of squares did not depend on src: diff_src = r * d.
/// data_only : bool
///     Compute only diff_src.
/// out : tuple (diff_src, diff_scale, diff_shift), optional
///     Where to write the results; None for a new array. Pass diff_dst itself for diff_src to work in place.
/// options
///     As in the forward pass. With gate or gate_input, results and out have a fourth element diff_gate.
///
/// Returns
/// -------
/// (diff_src, diff_scale, diff_shift)
///     With the element types of src, scale and shift; None for the gradient of a parameter that was not
///     passed, and with data_only.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, src, variance, scale=None, shift=None, epsilon=1e-5, *,
                    diff_sum=None, global_stats=false, data_only=false, out=None, **options))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn rms_norm_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    src: &Bound<'py, PyAny>,
    variance: &Bound<'py, PyAny>,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
    diff_sum: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::global_stats)] global_stats: bool,
    #[pyo3(from_py_with = arguments::data_only)] data_only: bool,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    arguments::expect_statistics("rms_norm_training", "variance", variance)?;
    let keywords = Keywords::read(options)?;
    let keywords = &keywords;
    let common = Common { flags: Flags::RMS_NORM, src, scale, shift, epsilon, keywords };
    Gradients { diff_dst, mean: None, variance, diff_sum, global_stats, data_only, out }
        .compute(common)
}
