//! Numbers, bools and strings that Python passes. An error names the parameter and says what to pass.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};

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
        PyTypeError::new_err(format!("{name} is {}: pass {pass}", described(value)))
    })
}

/// What kind of object a value is, with an article: "an int", or "None".
pub(crate) fn described(value: &Bound<'_, PyAny>) -> String {
    if value.is_none() {
        return "None".to_owned();
    }
    let name = value.get_type().name();
    let name = name.map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let is_spoken_with_vowel =
        name.starts_with("nd") || name.to_lowercase().starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {name}", if is_spoken_with_vowel { "an" } else { "a" })
}

/// A number that the library receives as float32. It checks the number itself, but does not see whether it was finite.
fn in_float32(name: &str, number: f64) -> PyResult<f64> {
    if number.is_finite() && !(number as f32).is_finite() {
        return Err(PyValueError::new_err(format!(
            "{name} is {number:e}, more than float32 can hold: pass at most 3.4e38"
        )));
    }
    Ok(number)
}

pub(crate) fn epsilon(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let pass =
        "a number, such as 1e-5; scale and shift come before it, and there is no normalized_shape";
    convert("epsilon", value, pass).and_then(|number| in_float32("epsilon", number))
}

/// As [`epsilon`], where groups of channels are normalized or a measure is taken.
pub(crate) fn plain_epsilon(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let number = convert("epsilon", value, "a number, such as 1e-5")?;
    in_float32("epsilon", number)
}

/// As [`epsilon`], where heads are normalized only if there is one.
pub(crate) fn optional_epsilon(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let pass = "a number, such as 1e-6, to normalize heads first, or None";
    let number: Option<f64> = convert("epsilon", value, pass)?;
    number.map(|number| in_float32("epsilon", number)).transpose()
}

pub(crate) fn magnitude(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let number = convert("magnitude", value, "a number, the second result of rope_frequencies")?;
    in_float32("magnitude", number)
}

pub(crate) fn shift(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    in_float32("shift", convert("shift", value, "a number, which is added to up")?)
}

/// Defines a function for each parameter that converts its value: its type, and what to pass.
macro_rules! parameters {
    ($($name:ident: $type:ty, $pass:literal;)*) => {$(
        pub(crate) fn $name(value: &Bound<'_, PyAny>) -> PyResult<$type> {
            convert(stringify!($name), value, $pass)
        }
    )*};
}

/// As `parameters`, for optional numbers that become float32.
macro_rules! numbers {
    ($($name:ident: $pass:literal;)*) => {$(
        pub(crate) fn $name(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
            let number: Option<f64> = convert(stringify!($name), value, $pass)?;
            number.map(|number| in_float32(stringify!($name), number)).transpose()
        }
    )*};
}

/// As `parameters`, for strings, which belong to the value.
macro_rules! names {
    ($($name:ident: $type:ty, $pass:literal;)*) => {$(
        pub(crate) fn $name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<$type> {
            convert(stringify!($name), value, $pass)
        }
    )*};
}

names! {
    cpu_isa: Option<&'a str>, "the name of an instruction set, such as \"avx2\", or None for no limit";
    activation: &'a str, "the name of a function, such as \"swish\"";
    function: &'a str, "the name of a function in a str, such as \"add\" or \"relu\"";
    kind: Option<&'a str>, "\"contiguous\", \"paged\" or \"ring\"";
    packing: Option<&'a str>, "\"gate_first\", \"up_first\" or \"interleaved\"";
    from_pairing: &'a str, "\"interleaved\", \"half_split\" or \"half_split_of_head\"";
    pairing: &'a str, "\"interleaved\", \"half_split\" or \"half_split_of_head\"";
    scaling: &'a str, "the name of a scaling, such as \"linear\"";
    strategy: &'a str, "the name of a strategy, such as \"entropy\"";
    to_pairing: &'a str, "\"interleaved\", \"half_split\" or \"half_split_of_head\"";
}

numbers! {
    alpha: "a number";
    beta: "a number";
    limit: "a number above 0, or None for no limit";
    scale: "a number, the factor of the products, or None for 1/sqrt(D)";
    soft_cap: "a number, or None for no cap";
}

parameters! {
    axis: i64, "an int, the one dimension of the rows";
    base: f64, "a number above 1, such as 10000.0";
    data_only: bool, "True or False";
    exact: bool, "True or False";
    from_dst: bool, "True or False";
    global_stats: bool, "True or False";
    group: Option<usize>, "an int, or None for all of a row";
    groups: usize, "an int, a divisor of the number of channels";
    heads: Option<usize>, "an int above 0, the number of heads of keys and values";
    index_dim: Option<usize>, "an int, a dimension of src before the last, or None";
    inf_as_zero: bool, "True or False";
    interleaved_sections: bool, "True or False";
    key_size: Option<usize>, "an int above 0, the elements in a head of keys";
    layer: usize, "an int, 0 or more";
    layers: usize, "an int above 0, the number of layers of the model";
    length: usize, "an int, the number of tokens";
    max_step: Option<usize>, "an int, or None for no limit";
    max_window: usize, "an int, 1 or more";
    measured: Option<f64>, "a number, such as float(entropy.mean())";
    min_window: usize, "an int, 1 or more";
    num_threads: i64, "an int, 1 to 255, or 0 for the default";
    packed: bool, "True or False";
    page_size: Option<usize>, "an int above 0, the tokens of a page";
    pages: Option<usize>, "an int above 0, the number of pages in the pool";
    previous: Option<usize>, "an int, the previous window, or None";
    return_diff_mask: bool, "True or False";
    return_diff_scale: bool, "True or False";
    return_dst: bool, "True or False";
    return_entropy: bool, "True or False";
    return_lse: bool, "True or False";
    return_sum: bool, "True or False";
    rms: bool, "True or False";
    rotary_dims: usize, "an even int, the elements of a head that are rotated";
    rounded: bool, "True or False";
    row: Option<usize>, "an int, 0 or more, or None for all rows";
    scale_plus_one: bool, "True or False";
    sections: Option<Vec<usize>>, "a list of ints, the pairs that each part of a position rotates, or None";
    sequence: i64, "the number that new_sequence or fork returned";
    sequences: usize, "an int above 0, the most sequences at a time";
    smoothing: f64, "a number above 0, at most 1";
    step_tokens: Option<usize>, "an int above 0, the most rows of a step";
    tokens: Option<usize>, "an int above 0, the most tokens of a sequence";
    value_size: Option<usize>, "an int above 0, the elements in a head of values";
    vocabulary: usize, "an int, the number of tokens in the vocabulary";
}

pub(crate) fn heads_of_weights(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    convert("heads", value, "an int above 0, a divisor of the number of rows")
}

/// As [`rotary_dims`], where they are optional.
pub(crate) fn rotated(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    convert("rotary_dims", value, "an even int, or None for all elements of a head")
}

pub(crate) fn parameters(value: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    convert(
        "parameters",
        value,
        "a list of numbers, in the order that help(libnorm.rope_frequencies) gives",
    )
}

/// The error for a scale or shift that is no array: perhaps it is epsilon, or a switch.
pub(crate) fn parameter_error(name: &str, object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let what = described(object);
    if object.is_instance_of::<PyBool>() {
        return PyTypeError::new_err(format!("{name} is {what}: pass an array, or leave it out"));
    }
    if object.is_instance_of::<PyFloat>() {
        return PyTypeError::new_err(format!(
            "{name} is {what}: pass an array, or epsilon={object} if that is meant"
        ));
    }
    error
}

/// As [`parameter_error`], where the last dimension is normalized: perhaps it is what other libraries call
/// `normalized_shape`.
pub(crate) fn shape_error(name: &str, object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let is_shape = object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>();
    if name != "scale" || !is_shape {
        return parameter_error(name, object, error);
    }
    PyTypeError::new_err(format!(
        "scale is {}: pass an array; there is no normalized_shape, because the last dimension of src is normalized",
        described(object)
    ))
}

/// Refuses statistics that are None, although a function needs them.
pub(crate) fn expect_statistics(
    function: &str,
    name: &str,
    object: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if !object.is_none() {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!("{name} is None: pass the array that {function} returned")))
}
