//! Group normalization of the sum of an array and a residual.

use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::call::{Given, outs};
use crate::group_call::Common;
use crate::options::Keywords;

/// dst, the sum, and the statistics of training.
fn compute<'py>(
    common: Common<'_, 'py>,
    (residual, exact): (&Bound<'py, PyAny>, bool),
    training: bool,
    out: Given<'_, 'py>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = common.src.py();
    let statistics: &[Arg] = match (training, common.rms) {
        (false, _) => &[],
        (true, true) => &[Arg::Variance],
        (true, false) => &[Arg::Mean, Arg::Variance],
    };
    let out = match statistics.len() {
        0 => outs(out, "dst, sum").map(|[dst, sum]| [dst, sum, None, None])?,
        1 => outs(out, "dst, sum, variance").map(|[dst, sum, v]| [dst, sum, v, None])?,
        _ => outs(out, "dst, sum, mean, variance")?,
    };
    let prop_kind = if training { PropKind::ForwardTraining } else { PropKind::ForwardInference };
    let mut call = common.call(prop_kind, Flags::NONE)?;
    call.residual(residual, exact)?;
    let names = ["out[0]", "out[1]", "out[2]", "out[3]"];
    let all = [Arg::Dst, Arg::ResidualDst].iter().chain(statistics).zip(names);
    for ((arg, name), out) in all.zip(&out) {
        call.output(*arg, name, out.as_ref())?;
    }
    PyTuple::new(py, call.run()?)
}

/// Group normalization of the sum of an array and a residual, in one pass.
///
///     sum = src + residual
///     dst = group_norm(sum, groups, scale, shift, epsilon)
///
/// Parameters
/// ----------
/// src : array of shape (N, C, ...), 2 to 5 dimensions
///     float32, bfloat16 or float16; any non-negative strides.
/// residual : array of the shape of src
///     float32, bfloat16 or float16; may differ from src.
/// groups, scale, shift, epsilon, rms, options
///     As for group_norm.
/// exact : bool
///     Normalize the float32 sum. By default the sum is normalized as stored, with the same bits as an
///     addition followed by group_norm.
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
#[pyfunction]
#[pyo3(signature = (src, residual, groups, scale=None, shift=None, epsilon=1e-5, *, rms=false, exact=false,
                    return_sum=true, out=None, **options))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn add_group_norm<'py>(
    src: &Bound<'py, PyAny>,
    residual: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::groups)] groups: usize,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::plain_epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arguments::rms)] rms: bool,
    #[pyo3(from_py_with = arguments::exact)] exact: bool,
    #[pyo3(from_py_with = arguments::return_sum)] return_sum: bool,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = &Keywords::read(options)?;
    let common = Common { src, groups, scale, shift, epsilon, rms, keywords };
    if return_sum {
        return compute(common, (residual, exact), false, out).map(Bound::into_any);
    }
    let mut call = common.call(PropKind::ForwardInference, Flags::NONE)?;
    call.residual(residual, exact)?;
    call.output(Arg::Dst, "out", out)?;
    Ok(call.run()?.remove(0))
}

/// add_group_norm that also returns the statistics for group_norm_backward, whose src is the sum.
///
/// Parameters are those of add_group_norm, without return_sum: the gradient is computed from the sum.
///
/// Returns
/// -------
/// (dst, sum, mean, variance), with rms (dst, sum, variance)
///     mean and variance are float32 of shape (N, groups). out is a tuple of the same.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, residual, groups, scale=None, shift=None, epsilon=1e-5, *, rms=false, exact=false,
                    out=None, **options))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn add_group_norm_training<'py>(
    src: &Bound<'py, PyAny>,
    residual: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::groups)] groups: usize,
    scale: Option<&Bound<'py, PyAny>>,
    shift: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::plain_epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arguments::rms)] rms: bool,
    #[pyo3(from_py_with = arguments::exact)] exact: bool,
    out: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let keywords = &Keywords::read(options)?;
    let common = Common { src, groups, scale, shift, epsilon, rms, keywords };
    compute(common, (residual, exact), true, out)
}
