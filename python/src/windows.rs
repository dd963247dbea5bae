//! The windows of attention and their width.

use norm_rs::sdpa::{self, Previous, Strategy, Window};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments;
use crate::call::Given;
use crate::elementwise::named;
use crate::errors::to_python;

/// The window that a tuple describes, and the number of first keys that are visible besides it.
pub(crate) fn window(given: Given<'_, '_>) -> PyResult<(Window, usize)> {
    let Some(given) = given else { return Ok((Window::None, 0)) };
    let plain = given.extract::<(String, i64)>().map(|(kind, keys)| (kind, keys, 0));
    let Ok((kind, keys, first)) = plain.or_else(|_| given.extract::<(String, i64, i64)>()) else {
        return Err(no_window(given));
    };
    let with_self = named("window[0]", &kind, &[("with_self", true), ("before_self", false)])?;
    let numbers = (usize::try_from(keys), usize::try_from(first));
    match (with_self, numbers) {
        (true, (Ok(keys @ 1..), Ok(first))) => Ok((Window::WithSelf(keys), first)),
        (false, (Ok(keys), Ok(first))) => Ok((Window::BeforeSelf(keys), first)),
        _ => Err(PyValueError::new_err(format!(
            "window is {}: pass a width of 1 or more after \"with_self\", of 0 or more after \"before_self\", \
             and 0 or more first keys",
            given.repr()?
        ))),
    }
}

/// The error for what is no window: perhaps it is flash-attention's, of keys before and after a query's own.
fn no_window(given: &Bound<'_, PyAny>) -> PyErr {
    let elsewhere = match given.extract::<[i64; 2]>() {
        Ok([left @ ..0, right @ ..0]) => {
            format!("window is ({left}, {right}): pass None, with which all keys are seen")
        }
        Ok([left @ ..0, 0]) => format!("window is ({left}, 0): pass None, and causal"),
        Ok([left, 0]) => format!("window is ({left}, 0): pass (\"before_self\", {left})"),
        Ok([left, right]) => format!(
            "window is ({left}, {right}), but a window has no keys after a query's own: pass a mask"
        ),
        Err(_) => "window is neither None nor a tuple of a kind and a width: pass (\"with_self\", W) for the W keys \
                   up to a query's own, or (\"before_self\", W) for W keys before it; a third number is that of first \
                   keys that are seen too"
            .to_owned(),
    };
    PyValueError::new_err(elsewhere)
}

/// The width of a sliding window for the next step of a model.
///
///     "fixed"                   w = max_window
///     "length"                  w = length // 2, within min_window and max_window
///     "entropy", "perplexity"   w = min_window + floor((max_window - min_window) * min(n, 1))
///
/// with n = measured / log(previous) for "entropy", measured / 4 for "entropy_over_4" and log(measured) /
/// log(vocabulary) for "perplexity". With previous, the result is p + smoothing * (w - p), where p is previous,
/// limited to min_window and max_window, and the change is rounded to the nearest integer and limited to max_step.
///
/// Parameters
/// ----------
/// strategy : str
///     "fixed", "length", "entropy", "entropy_over_4" or "perplexity".
/// length : int
///     Tokens in the sequence.
/// min_window, max_window : int
/// measured : float, optional
///     The entropy in nats that attention returns with return_entropy, for "entropy" and "entropy_over_4", or the
///     perplexity, for "perplexity". For a first step, when there is none yet, use "length".
/// vocabulary : int
///     Tokens in the vocabulary, for "perplexity".
/// previous : int, optional
///     The previous window.
/// smoothing : float
///     Above 0 and at most 1, which means none.
/// max_step : int, optional
///     The largest change of the window; None for any.
///
/// Returns
/// -------
/// int
///
/// Raises
/// ------
/// TypeError, ValueError
///     A value has the wrong type, or is out of its range.
#[pyfunction]
#[pyo3(signature = (strategy, length, min_window=512, max_window=4096, *, measured=None, vocabulary=0, previous=None,
                    smoothing=1.0, max_step=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn adaptive_window(
    #[pyo3(from_py_with = arguments::strategy)] strategy: &str,
    #[pyo3(from_py_with = arguments::length)] length: usize,
    #[pyo3(from_py_with = arguments::min_window)] min_window: usize,
    #[pyo3(from_py_with = arguments::max_window)] max_window: usize,
    #[pyo3(from_py_with = arguments::measured)] measured: Option<f64>,
    #[pyo3(from_py_with = arguments::vocabulary)] vocabulary: usize,
    #[pyo3(from_py_with = arguments::previous)] previous: Option<usize>,
    #[pyo3(from_py_with = arguments::smoothing)] smoothing: f64,
    #[pyo3(from_py_with = arguments::max_step)] max_step: Option<usize>,
) -> PyResult<usize> {
    let missing = match strategy {
        "entropy" | "entropy_over_4" => "the entropy that attention returns with return_entropy",
        "perplexity" => "the perplexity",
        _ => "",
    };
    if measured.is_none() && !missing.is_empty() {
        return Err(PyValueError::new_err(format!(
            "measured is missing: pass {missing}, or \"length\" as strategy if there is none yet"
        )));
    }
    let perplexity = Strategy::ByPerplexity { perplexity: measured, vocabulary: vocabulary as f64 };
    let strategies = [
        ("fixed", Strategy::Fixed),
        ("length", Strategy::ByLength),
        ("entropy", Strategy::ByEntropy(measured)),
        ("entropy_over_4", Strategy::ByEntropyOver4(measured)),
        ("perplexity", perplexity),
    ];
    let strategy = named("strategy", strategy, &strategies)?;
    let previous = previous.map(|window| Previous { window, smoothing, max_step });
    sdpa::adaptive_window(strategy, length, min_window..=max_window, previous)
        .map_err(|error| to_python(&error))
}
