//! Normalization whose result is quantized with dynamic scales.

use norm_rs::DataType;
use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::call::QUANTIZED;
use crate::normalization::Common;
use crate::options::Keywords;
use crate::tensor::Tensor;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: $flags:expr;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (src, scale=None, shift=None, epsilon=1e-5, *, out, group=None, **options))]
        pub(crate) fn $name<'py>(
            src: &Bound<'py, PyAny>,
            scale: Option<&Bound<'py, PyAny>>,
            shift: Option<&Bound<'py, PyAny>>,
            #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
            out: &Bound<'py, PyAny>,
            #[pyo3(from_py_with = arguments::group)] group: Option<usize>,
            options: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyTuple>> {
            let keywords = &Keywords::read(options)?;
            let common = Common { flags: $flags, src, scale, shift, epsilon, keywords };
            compute(common, out, group)
        }
    )*};
}

fn compute<'py>(
    common: Common<'_, 'py>,
    out: &Bound<'py, PyAny>,
    group: Option<usize>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = common.src.py();
    let mut call = common.call(PropKind::ForwardInference, Flags::NONE)?;
    call.quantize(group)?;
    call.output(Arg::Dst, "out", Some(out))?;
    call.output(Arg::DstScale, "scales", None)?;
    if Tensor::read_output("out", QUANTIZED, out)?.data_type == DataType::U8 {
        call.output(Arg::DstZeroPoint, "zero_points", None)?;
    }
    PyTuple::new(py, call.run()?)
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
    ///
    /// Returns
    /// -------
    /// (out, scales)
    ///     scales is float32 of shape (..., C / group). With uint8 there is a third element, int32 zero points of
    ///     the same shape, and y = (out - zero_points) * scales.
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
    ///
    /// Returns
    /// -------
    /// (out, scales)
    ///     scales is float32 of shape (..., C / group). With uint8 there is a third element, int32 zero points of
    ///     the same shape, and y = (out - zero_points) * scales.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
    rms_norm_quantized: Flags::RMS_NORM;
}
