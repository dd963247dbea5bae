//! Numbers, bools and strings that Python passes. An error names the parameter and says what to pass.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};

/// Converts the value of a parameter.
pub(crate) fn convert<'a, 'py, T: FromPyObject<'a, 'py>>(
    name: &str,
    value: &'a Bound<'py, PyAny>,
    pass: &str,
) -> PyResult<T> {
    value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            return PyValueError::new_err(format!("{name} is {value}: pass {pass}"));
        }
        PyTypeError::new_err(format!("{name} is {}: pass {pass}", kind(value)))
    })
}

/// What kind of object a value is, with an article: "an int", or "None".
pub(crate) fn kind(value: &Bound<'_, PyAny>) -> String {
    if value.is_none() {
        return "None".to_owned();
    }
    let name = value.get_type().name();
    let name = name.map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let is_spoken_with_vowel =
        name.starts_with("nd") || name.to_lowercase().starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {name}", if is_spoken_with_vowel { "an" } else { "a" })
}

pub(crate) fn epsilon(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    convert(
        "epsilon",
        value,
        "a number, such as 1e-5; scale and shift come before it, and there is no normalized_shape",
    )
}

/// As [`epsilon`], where groups of channels are normalized or a measure is taken.
pub(crate) fn plain_epsilon(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    convert("epsilon", value, "a number, such as 1e-5")
}

pub(crate) fn axis(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    convert("axis", value, "an int, the one dimension of the rows")
}

pub(crate) fn groups(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    convert("groups", value, "an int, a divisor of the number of channels")
}

pub(crate) fn rotary_dims(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    convert("rotary_dims", value, "an even int, the elements of a head that are rotated")
}

pub(crate) fn parameters(value: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    convert(
        "parameters",
        value,
        "a list of numbers, in the order that help(libnorm.rope_frequencies) gives",
    )
}

/// The error for a scale that is no array: perhaps it is what other libraries call `normalized_shape`.
pub(crate) fn parameter_error(name: &str, object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let is_shape = object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>();
    if name != "scale" || !is_shape {
        return error;
    }
    PyTypeError::new_err(format!(
        "scale is {}: pass an array; there is no normalized_shape, because the last dimension of src is normalized",
        kind(object)
    ))
}
