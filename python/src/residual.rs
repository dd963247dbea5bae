//! Normalization of the sum of an array and a residual.

use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::call::{Given, outs};
use crate::normalization::Common;
use crate::options::Keywords;

/// The residual, and how it is added.
struct Sum<'a, 'py> {
    residual: &'a Bound<'py, PyAny>,
    exact: bool,
    out: Given<'a, 'py>,
}

impl<'py> Sum<'_, 'py> {
    /// dst, the sum, and the statistics of training.
    fn compute(self, common: Common<'_, 'py>, training: bool) -> PyResult<Bound<'py, PyTuple>> {
        let py = common.src.py();
        let rms = common.flags.contains(Flags::RMS_NORM);
        let statistics: &[Arg] = match (training, rms) {
            (false, _) => &[],
            (true, true) => &[Arg::Variance],
            (true, false) => &[Arg::Mean, Arg::Variance],
        };
        let names = ["out[0]", "out[1]", "out[2]", "out[3]"];
        let all = [Arg::Dst, Arg::ResidualDst].iter().chain(statistics).zip(names);
        let out = self.outs(statistics.len())?;
        let prop_kind =
            if training { PropKind::ForwardTraining } else { PropKind::ForwardInference };
        let mut call = common.call(prop_kind, Flags::NONE)?;
        call.residual(self.residual, self.exact)?;
        for ((arg, name), out) in all.zip(&out) {
            call.output(*arg, name, out.as_ref())?;
        }
        PyTuple::new(py, call.run()?)
    }

    /// dst alone: the sum is not stored.
    fn compute_dst(self, common: Common<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut call = common.call(PropKind::ForwardInference, Flags::NONE)?;
        call.residual(self.residual, self.exact)?;
        call.output(Arg::Dst, "out", self.out)?;
        Ok(call.run()?.remove(0))
    }

    fn outs(&self, statistics: usize) -> PyResult<[Option<Bound<'py, PyAny>>; 4]> {
        match statistics {
            0 => outs(self.out, "dst, sum").map(|[dst, sum]| [dst, sum, None, None]),
            1 => outs(self.out, "dst, sum, variance").map(|[dst, sum, v]| [dst, sum, v, None]),
            _ => outs(self.out, "dst, sum, mean, variance"),
        }
    }
}

macro_rules! inference {
    ($($(#[$doc:meta])* $name:ident: $flags:expr;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (src, residual, scale=None, shift=None, epsilon=1e-5, *, exact=false, return_sum=true,
                            out=None, **options))]
        #[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
        pub(crate) fn $name<'py>(
            src: &Bound<'py, PyAny>,
            residual: &Bound<'py, PyAny>,
            scale: Option<&Bound<'py, PyAny>>,
            shift: Option<&Bound<'py, PyAny>>,
            #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
            #[pyo3(from_py_with = arguments::exact)] exact: bool,
            #[pyo3(from_py_with = arguments::return_sum)] return_sum: bool,
            out: Option<&Bound<'py, PyAny>>,
            options: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let keywords = &Keywords::read(options)?;
            let common = Common { flags: $flags, src, scale, shift, epsilon, keywords };
            let sum = Sum { residual, exact, out };
            if return_sum {
                sum.compute(common, false).map(Bound::into_any)
            } else {
                sum.compute_dst(common)
            }
        }
    )*};
}

macro_rules! training {
    ($($(#[$doc:meta])* $name:ident: $flags:expr;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (src, residual, scale=None, shift=None, epsilon=1e-5, *, exact=false, out=None,
                            **options))]
        #[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
        pub(crate) fn $name<'py>(
            src: &Bound<'py, PyAny>,
            residual: &Bound<'py, PyAny>,
            scale: Option<&Bound<'py, PyAny>>,
            shift: Option<&Bound<'py, PyAny>>,
            #[pyo3(from_py_with = arguments::epsilon)] epsilon: f64,
            #[pyo3(from_py_with = arguments::exact)] exact: bool,
            out: Option<&Bound<'py, PyAny>>,
            options: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyTuple>> {
            let keywords = &Keywords::read(options)?;
            let common = Common { flags: $flags, src, scale, shift, epsilon, keywords };
            Sum { residual, exact, out }.compute(common, true)
        }
    )*};
}

inference! {
    /// Layer normalization of the sum of an array and a residual, in one pass.
    ///
    ///     sum = src + residual
    ///     dst = layer_norm(sum, scale, shift, epsilon)
    ///
    /// Parameters
    /// ----------
    /// src : array of shape (..., C)
    ///     As for layer_norm.
    /// residual : array of shape (..., C)
    ///     float32, bfloat16 or float16; may differ from src, such as a float32 residual stream with bfloat16
    ///     blocks.
    /// scale, shift, epsilon, options
    ///     As for layer_norm.
    /// exact : bool
    ///     Normalize the float32 sum. By default the sum is normalized as stored, with the same bits as an
    ///     addition followed by layer_norm.
    /// return_sum : bool
    ///     Without it the sum is not stored, and the result is dst alone, with the same bits.
    /// out : tuple (dst, sum), optional
    ///     Where to write the results; None for a new array. Pass residual itself for sum to update it in
    ///     place. An array, for dst, if return_sum is False.
    ///
    /// Returns
    /// -------
    /// (dst, sum), or dst
    ///     dst has the element type of src, sum that of residual.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
    add_layer_norm: Flags::NONE;

    /// RMS normalization of the sum of an array and a residual, in one pass.
    ///
    ///     sum = src + residual
    ///     dst = rms_norm(sum, scale, shift, epsilon)
    ///
    /// Parameters
    /// ----------
    /// src : array of shape (..., C)
    ///     As for rms_norm.
    /// residual : array of shape (..., C)
    ///     float32, bfloat16 or float16; may differ from src, such as a float32 residual stream with bfloat16
    ///     blocks.
    /// scale, shift, epsilon, options
    ///     As for rms_norm.
    /// exact : bool
    ///     Normalize the float32 sum. By default the sum is normalized as stored, with the same bits as an
    ///     addition followed by rms_norm.
    /// return_sum : bool
    ///     Without it the sum is not stored, and the result is dst alone, with the same bits.
    /// out : tuple (dst, sum), optional
    ///     Where to write the results; None for a new array. Pass residual itself for sum to update it in
    ///     place. An array, for dst, if return_sum is False.
    ///
    /// Returns
    /// -------
    /// (dst, sum), or dst
    ///     dst has the element type of src, sum that of residual.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
    add_rms_norm: Flags::RMS_NORM;
}

training! {
    /// add_layer_norm that also returns the statistics for layer_norm_backward, whose src is the sum.
    ///
    /// Parameters are those of add_layer_norm, without return_sum: the gradient is computed from the sum.
    ///
    /// Returns
    /// -------
    /// (dst, sum, mean, variance)
    ///     mean and variance are float32 of the shape of src without its last dimension. out is a tuple of the same.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
    add_layer_norm_training: Flags::NONE;

    /// add_rms_norm that also returns the statistics for rms_norm_backward, whose src is the sum.
    ///
    /// Parameters are those of add_rms_norm, without return_sum: the gradient is computed from the sum.
    ///
    /// Returns
    /// -------
    /// (dst, sum, variance)
    ///     variance is float32 of the shape of src without its last dimension. out is a tuple of the same.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
    add_rms_norm_training: Flags::RMS_NORM;
}
