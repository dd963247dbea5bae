//! Normalization whose result is quantized with dynamic scales.

use norm_rs::DataType;
use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::call::{Given, QUANTIZED};
use crate::group_call;
use crate::normalization::Common;
use crate::options::Keywords;
use crate::tensor::Tensor;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: $flags:expr;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (src, scale=None, shift=None, epsilon=1e-5, *, out, group=None, scales=None, **options))]
        #[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
        pub(crate) fn $name<'py>(
            src: &Bound<'py, PyAny>,
            scale: Option<&Bound<'py, PyAny>>,
            shift: Option<&Bound<'py, PyAny>>,
            #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
            out: &Bound<'py, PyAny>,
            #[pyo3(from_py_with = arguments::group)] group: Option<usize>,
            scales: Option<&Bound<'py, PyAny>>,
            options: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyTuple>> {
            let keywords = &Keywords::read(options)?;
            let common = Common { flags: $flags, src, scale, shift, epsilon, keywords };
            Quantized { out, group, scales, residual: None }.compute(common)
        }
    )*};
}

macro_rules! sums {
    ($($(#[$doc:meta])* $name:ident: $flags:expr;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (src, residual, scale=None, shift=None, epsilon=1e-5, *, exact=false, out, sum=None,
                            return_sum=true, group=None, scales=None, **options))]
        #[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
        pub(crate) fn $name<'py>(
            src: &Bound<'py, PyAny>,
            residual: &Bound<'py, PyAny>,
            scale: Option<&Bound<'py, PyAny>>,
            shift: Option<&Bound<'py, PyAny>>,
            #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
            #[pyo3(from_py_with = arguments::exact)] exact: bool,
            out: &Bound<'py, PyAny>,
            sum: Option<&Bound<'py, PyAny>>,
            #[pyo3(from_py_with = arguments::return_sum)] return_sum: bool,
            #[pyo3(from_py_with = arguments::group)] group: Option<usize>,
            scales: Option<&Bound<'py, PyAny>>,
            options: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyTuple>> {
            let keywords = &Keywords::read(options)?;
            let common = Common { flags: $flags, src, scale, shift, epsilon, keywords };
            let residual = Some(Residual { residual, exact, sum: place(sum, return_sum)? });
            Quantized { out, group, scales, residual }.compute(common)
        }
    )*};
}

/// A residual, how it is added, and where the sum goes, unless it is not stored.
struct Residual<'a, 'py> {
    residual: &'a Bound<'py, PyAny>,
    exact: bool,
    sum: Option<Given<'a, 'py>>,
}

/// Where the sum goes.
fn place<'a, 'py>(sum: Given<'a, 'py>, return_sum: bool) -> PyResult<Option<Given<'a, 'py>>> {
    match (sum, return_sum) {
        (Some(_), false) => Err(PyValueError::new_err(
            "sum is given, but return_sum is False: leave one of them out",
        )),
        (sum, true) => Ok(Some(sum)),
        (None, false) => Ok(None),
    }
}

/// The results.
struct Quantized<'a, 'py> {
    out: &'a Bound<'py, PyAny>,
    group: Option<usize>,
    scales: Given<'a, 'py>,
    residual: Option<Residual<'a, 'py>>,
}

impl<'py> Quantized<'_, 'py> {
    fn compute(self, common: Common<'_, 'py>) -> PyResult<Bound<'py, PyTuple>> {
        let py = common.src.py();
        let mut call = common.call(PropKind::ForwardInference, Flags::NONE)?;
        call.quantize(self.group)?;
        if let Some(of) = &self.residual {
            call.residual(of.residual, of.exact)?;
        }
        call.output(Arg::Dst, "out", Some(self.out))?;
        if let Some(sum) = self.residual.and_then(|of| of.sum) {
            call.output(Arg::ResidualDst, "sum", sum)?;
        }
        call.output(Arg::DstScale, "scales", self.scales)?;
        if Tensor::read_output("out", QUANTIZED, self.out)?.data_type == DataType::U8 {
            call.output(Arg::DstZeroPoint, "zero_points", None)?;
        }
        PyTuple::new(py, call.run()?)
    }
}

functions! {
    /// Layer normalization, quantized with scales computed from the result.
    ///
    ///     y = layer_norm(src, scale, shift, epsilon)
    ///     scales = max(abs(y)) / largest value of the type, for each group of a row; 1 for a group of zeros
    ///     out = y / scales, rounded to nearest even
    ///
    /// Parameters
    /// ----------
    /// src, scale, shift, epsilon, options
    ///     As for layer_norm.
    /// out : array of shape (..., C)
    ///     Where to write the result: int8, uint8, float8_e4m3fn or float8_e5m2.
    /// group : int, optional
    ///     How many elements share a scale, a divisor of C; C by default.
    /// scales : array of shape (..., C / group), optional
    ///     Where to write the scales: float32, float8_e4m3fn, or float8_e8m0fnu for powers of two (OCP MX), which
    ///     need a float8 out and groups of 32.
    ///
    /// Returns
    /// -------
    /// (out, scales)
    ///     scales is float32 of shape (..., C / group) unless it was passed. With uint8 there is a third element,
    ///     int32 zero points of the same shape, and y = (out - zero_points) * scales.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
    layer_norm_quantized: Flags::NONE;

    /// RMS normalization, quantized with scales computed from the result.
    ///
    ///     y = rms_norm(src, scale, shift, epsilon)
    ///     scales = max(abs(y)) / largest value of the type, for each group of a row; 1 for a group of zeros
    ///     out = y / scales, rounded to nearest even
    ///
    /// Parameters
    /// ----------
    /// src, scale, shift, epsilon, options
    ///     As for rms_norm.
    /// out : array of shape (..., C)
    ///     Where to write the result: int8, uint8, float8_e4m3fn or float8_e5m2.
    /// group : int, optional
    ///     How many elements share a scale, a divisor of C; C by default.
    /// scales : array of shape (..., C / group), optional
    ///     Where to write the scales: float32, float8_e4m3fn, or float8_e8m0fnu for powers of two (OCP MX), which
    ///     need a float8 out and groups of 32.
    ///
    /// Returns
    /// -------
    /// (out, scales)
    ///     scales is float32 of shape (..., C / group) unless it was passed. With uint8 there is a third element,
    ///     int32 zero points of the same shape, and y = (out - zero_points) * scales.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
    rms_norm_quantized: Flags::RMS_NORM;
}

sums! {
    /// Layer normalization of the sum of an array and a residual, quantized, in one pass.
    ///
    ///     sum = src + residual
    ///     out, scales = layer_norm_quantized(sum, scale, shift, epsilon)
    ///
    /// Parameters
    /// ----------
    /// src, residual, scale, shift, epsilon, exact, options
    ///     As for add_layer_norm: arrays of shape (..., C).
    /// out, group, scales
    ///     As for layer_norm_quantized.
    /// sum : array of shape (..., C), optional
    ///     Where to write the sum; pass residual itself to update it in place.
    /// return_sum : bool
    ///     Without it the sum is not stored, and there is none among the results.
    ///
    /// Returns
    /// -------
    /// (out, sum, scales), or (out, scales)
    ///     With uint8 there is a further element, zero points.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
    add_layer_norm_quantized: Flags::NONE;

    /// RMS normalization of the sum of an array and a residual, quantized, in one pass.
    ///
    ///     sum = src + residual
    ///     out, scales = rms_norm_quantized(sum, scale, shift, epsilon)
    ///
    /// Parameters
    /// ----------
    /// src, residual, scale, shift, epsilon, exact, options
    ///     As for add_rms_norm: arrays of shape (..., C).
    /// out, group, scales
    ///     As for rms_norm_quantized.
    /// sum : array of shape (..., C), optional
    ///     Where to write the sum; pass residual itself to update it in place.
    /// return_sum : bool
    ///     Without it the sum is not stored, and there is none among the results.
    ///
    /// Returns
    /// -------
    /// (out, sum, scales), or (out, scales)
    ///     With uint8 there is a further element, zero points.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
    add_rms_norm_quantized: Flags::RMS_NORM;
}

/// Group normalization, quantized with scales computed from the result.
///
///     y = group_norm(src, groups, scale, shift, epsilon)
///     scales = max(abs(y)) / largest value of the type, for each `group` neighbours; 1 if all are 0
///     out = y / scales, rounded to nearest even
///
/// Parameters
/// ----------
/// src, groups, scale, shift, epsilon, rms, options
///     As for group_norm.
/// out : array of the shape of src
///     Where to write the result: int8, uint8, float8_e4m3fn or float8_e5m2.
/// group : int, optional
///     How many neighbours along the last dimension share a scale, a divisor of its size, which is the default:
///     channels of an array of two dimensions, otherwise positions of a channel.
/// scales : array of the shape of src with the last dimension divided by group, optional
///     As for layer_norm_quantized.
///
/// Returns
/// -------
/// (out, scales)
///     scales is float32 unless it was passed. With uint8 there is a third element, int32 zero points of the same
///     shape, and y = (out - zero_points) * scales.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, groups, scale=None, shift=None, epsilon=1e-5, *, rms=false, out, group=None, scales=None,
                    **options))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn group_norm_quantized<'py>(
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::groups)] groups: usize,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::plain_epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arguments::rms)] rms: bool,
    out: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::group)] group: Option<usize>,
    scales: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let keywords = &Keywords::read(options)?;
    let common = group_call::Common { src, groups, scale, shift, epsilon, rms, keywords };
    quantize_groups(common, None, (out, group, scales))
}

/// Group normalization of the sum of an array and a residual, quantized, in one pass.
///
///     sum = src + residual
///     out, scales = group_norm_quantized(sum, groups, scale, shift, epsilon)
///
/// Parameters
/// ----------
/// src, residual, groups, scale, shift, epsilon, rms, exact, options
///     As for add_group_norm.
/// out, group, scales
///     As for group_norm_quantized.
/// sum : array of the shape of src, optional
///     Where to write the sum; pass residual itself to update it in place.
/// return_sum : bool
///     Without it the sum is not stored, and there is none among the results.
///
/// Returns
/// -------
/// (out, sum, scales), or (out, scales)
///     With uint8 there is a further element, zero points.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, residual, groups, scale=None, shift=None, epsilon=1e-5, *, rms=false, exact=false, out,
                    sum=None, return_sum=true, group=None, scales=None, **options))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn add_group_norm_quantized<'py>(
    src: &Bound<'py, PyAny>,
    residual: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::groups)] groups: usize,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::plain_epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arguments::rms)] rms: bool,
    #[pyo3(from_py_with = arguments::exact)] exact: bool,
    out: &Bound<'py, PyAny>,
    sum: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::return_sum)] return_sum: bool,
    #[pyo3(from_py_with = arguments::group)] group: Option<usize>,
    scales: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let keywords = &Keywords::read(options)?;
    let common = group_call::Common { src, groups, scale, shift, epsilon, rms, keywords };
    let residual = Residual { residual, exact, sum: place(sum, return_sum)? };
    quantize_groups(common, Some(residual), (out, group, scales))
}

/// out, the sum with a residual, scales and zero points of a group normalization.
fn quantize_groups<'py>(
    common: group_call::Common<'_, 'py>,
    residual: Option<Residual<'_, 'py>>,
    (out, group, scales): (&Bound<'py, PyAny>, Option<usize>, Given<'_, 'py>),
) -> PyResult<Bound<'py, PyTuple>> {
    let py = common.src.py();
    let mut call = common.call(PropKind::ForwardInference, Flags::NONE)?;
    call.quantize(group)?;
    if let Some(of) = &residual {
        call.residual(of.residual, of.exact)?;
    }
    call.output(Arg::Dst, "out", Some(out))?;
    if let Some(sum) = residual.and_then(|of| of.sum) {
        call.output(Arg::ResidualDst, "sum", sum)?;
    }
    call.output(Arg::DstScale, "scales", scales)?;
    if call.has_zero_points() {
        call.output(Arg::DstZeroPoint, "zero_points", None)?;
    }
    PyTuple::new(py, call.run()?)
}
