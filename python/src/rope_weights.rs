//! The frequencies of rope, and weights for another pairing.

use norm_rs::rope::{Pairing, Scaling, frequencies, permute};
use norm_rs::{DataType, Engine, Memory, MemoryDesc};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments;
use crate::elementwise::{named, output};
use crate::errors::to_python;
use crate::layout::check_overlaps;
use crate::rope_angles::PAIRINGS;
use crate::tensor::{Tensor, tuple};

/// Element types of weights.
const WEIGHTS: &[DataType] = &[
    DataType::F32,
    DataType::Bf16,
    DataType::F16,
    DataType::F64,
    DataType::S8,
    DataType::U8,
    DataType::F8E4m3,
    DataType::F8E5m2,
];

/// Scalings, the names of their parameters, and how many of them may be left out.
const SCALINGS: [(&str, (&[&str], usize)); 7] = [
    ("none", (&[], 0)),
    ("linear", (&["factor"], 0)),
    ("ntk", (&["factor"], 0)),
    ("dynamic_ntk", (&["factor", "trained length", "current length"], 0)),
    (
        "yarn",
        (
            &[
                "factor",
                "trained length",
                "beta_fast",
                "beta_slow",
                "mscale",
                "mscale_all_dim",
                "truncate",
                "magnitude",
            ],
            6,
        ),
    ),
    ("llama3", (&["factor", "low_freq_factor", "high_freq_factor", "trained length"], 0)),
    ("longrope", (&["factor", "trained length"], 0)),
];

/// What is wrong with the parameters of a scaling, in their names.
fn wrong_parameters(scaling: &str, parameters: &[f64], rotary_dims: usize) -> Option<PyErr> {
    let (names, optional) = match named("scaling", scaling, &SCALINGS) {
        Ok(names) => names,
        Err(error) => return Some(error),
    };
    let divisors = if scaling == "longrope" { rotary_dims / 2 } else { 0 };
    let needed = names.len() - optional;
    let count = parameters.len();
    if !(needed + divisors..=names.len() + divisors).contains(&count) {
        let mut list = names[..needed].join(", ");
        if divisors > 0 {
            list = format!("{list}, and {divisors} divisors, one for each pair");
        }
        let rest = names[needed..].join(", ");
        let rest = if optional > 0 { format!(", optionally followed by {rest}") } else { rest };
        return Some(PyValueError::new_err(format!(
            "parameters has the length {count}: with scaling {scaling:?} pass [{list}]{rest}"
        )));
    }
    // yarn's mscale and what follows may be 0.
    let is_wrong = |at: usize, value: f64| {
        !(value.is_finite() && (value > 0.0 || value == 0.0 && scaling == "yarn" && at >= 4))
    };
    let at = (0..count).find(|&at| is_wrong(at, parameters[at]))?;
    let name = names.get(at).copied().unwrap_or("a divisor");
    Some(PyValueError::new_err(format!(
        "parameters[{at}], {name}, is {}: pass a number above 0",
        parameters[at]
    )))
}

/// The frequencies of rope, as Hugging Face's transformers compute them.
///
/// Parameters
/// ----------
/// rotary_dims : int
///     Even; there is a frequency for each pair.
/// base : float
///     The frequencies are base**(-2i / rotary_dims).
/// scaling : str
///     How to scale them: "none", "linear", "ntk", "dynamic_ntk", "yarn", "llama3" or "longrope".
/// parameters : list of float
///     linear, ntk: factor. dynamic_ntk: factor, trained length, current length. yarn: factor, trained length,
///     then optionally beta_fast, beta_slow, mscale, mscale_all_dim, truncate, magnitude. llama3: factor,
///     low_freq_factor, high_freq_factor, trained length. longrope: factor, trained length, then a divisor for
///     each pair.
///
/// Returns
/// -------
/// (frequencies, magnitude)
///     A list of float, and the value for rope's parameter magnitude.
///
/// Raises
/// ------
/// TypeError, ValueError
///     A value has the wrong type, or is out of its range.
#[pyfunction]
#[pyo3(signature = (rotary_dims, base=10000.0, *, scaling="none", parameters=Vec::new()),
       text_signature = "(rotary_dims, base=10000.0, *, scaling='none', parameters=())")]
pub(crate) fn rope_frequencies(
    #[pyo3(from_py_with = arguments::rotary_dims)] rotary_dims: usize,
    #[pyo3(from_py_with = arguments::base)] base: f64,
    #[pyo3(from_py_with = arguments::scaling)] scaling: &str,
    #[pyo3(from_py_with = arguments::parameters)] parameters: Vec<f64>,
) -> PyResult<(Vec<f64>, f64)> {
    let wrong = || wrong_parameters(scaling, &parameters, rotary_dims);
    let scaling = match (scaling, &parameters[..]) {
        ("none", []) => Scaling::None,
        ("linear", [factor]) => Scaling::Linear(*factor),
        ("ntk", [factor]) => Scaling::Ntk(*factor),
        ("dynamic_ntk", &[factor, trained, current]) => {
            Scaling::DynamicNtk { factor, trained, current }
        }
        ("yarn", parameters) => Scaling::Yarn(parameters),
        ("llama3", &[factor, low_freq_factor, high_freq_factor, trained]) => {
            Scaling::Llama3 { factor, low_freq_factor, high_freq_factor, trained }
        }
        ("longrope", parameters) => Scaling::Longrope(parameters),
        _ => return Err(wrong().unwrap_or_else(|| PyValueError::new_err("scaling is unknown"))),
    };
    let found = frequencies(scaling, rotary_dims, base);
    let found = found.map_err(|error| wrong().unwrap_or_else(|| to_python(&error)))?;
    Ok((found.0, found.1.into()))
}

/// Refuses numbers of rows, heads and rotated elements that do not go together.
fn check_rows(rows: usize, heads: usize, rotary_dims: Option<usize>) -> PyResult<usize> {
    if heads == 0 || !rows.is_multiple_of(heads) {
        return Err(PyValueError::new_err(format!(
            "heads is {heads}: pass a divisor of {rows}, the number of rows of src"
        )));
    }
    let (head, rotated) = (rows / heads, rotary_dims.unwrap_or(rows / heads));
    let fits = rotated >= 2 && rotated.is_multiple_of(2) && rotated <= head;
    match rotary_dims {
        _ if fits => Ok(rotated),
        Some(given) => Err(PyValueError::new_err(format!(
            "rotary_dims is {given}, but a head has {head} rows: pass an even number, 2 to {head}"
        ))),
        None => Err(PyValueError::new_err(format!(
            "heads is {heads}, with which a head has {head} of the {rows} rows of src: pass an even rotary_dims"
        ))),
    }
}

/// Permutes the rows of a projection's weights for rope with another pairing, which then gives the same scores.
///
/// Apply it to the weights, and the biases, of queries and of keys.
///
/// Parameters
/// ----------
/// src : array of shape (heads * D, C) or (heads * D,)
///     The weights as torch.nn.Linear has them, a bias, or with heads=1 the scale of a norm of D elements:
///     float32, bfloat16, float16, float64, int8, uint8, float8_e4m3fn or float8_e5m2.
/// heads : int
///     The number of heads; the rows of a head follow one another.
/// from_pairing, to_pairing : str
///     "interleaved", "half_split" or "half_split_of_head", as for rope: of the weights, and of the result.
/// rotary_dims : int, optional
///     The rows of a head that are rotated, D by default; the others keep their order.
/// out : array of the shape and the element type of src, optional
///     Where to write the result; not src itself.
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
#[pyo3(signature = (src, heads, *, from_pairing, to_pairing, rotary_dims=None, out=None))]
pub(crate) fn rope_permute<'py>(
    src: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::heads_of_weights)] heads: usize,
    #[pyo3(from_py_with = arguments::from_pairing)] from_pairing: &str,
    #[pyo3(from_py_with = arguments::to_pairing)] to_pairing: &str,
    #[pyo3(from_py_with = arguments::rotated)] rotary_dims: Option<usize>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let from = named("from_pairing", from_pairing, &PAIRINGS)?;
    let to = named("to_pairing", to_pairing, &PAIRINGS)?;
    let given = Tensor::read("src", WEIGHTS, src)?;
    if !(1..=2).contains(&given.shape.len()) {
        return Err(PyValueError::new_err(format!(
            "src has the shape {}: pass the weights of a projection, (heads * D, C), or a bias, (heads * D,)",
            tuple(&given.shape)
        )));
    }
    let rotated = check_rows(given.shape[0], heads, rotary_dims)?;
    if [from, to].contains(&Pairing::HalfSplitOfHead) && !(given.shape[0] / heads).is_multiple_of(2)
    {
        return Err(PyValueError::new_err(format!(
            "heads is {heads}, with which a head has {} rows: half_split_of_head needs an even number",
            given.shape[0] / heads
        )));
    }
    let expected = (&[given.data_type][..], &given.shape[..], "it is that of src");
    let (dst, result) = output("out", out, &given, expected)?;
    check_overlaps(&[&dst], &[&given], &[])?;
    let work = || {
        let engine = Engine::cpu()?;
        let memory = |tensor: &Tensor<'_, '_>| {
            let desc = MemoryDesc::with_strides(&tensor.shape, tensor.data_type, &tensor.strides)?;
            // SAFETY: the buffer is the array's, which the call keeps alive; that of dst is writable and overlaps no
            // other.
            unsafe { Memory::from_raw(&engine, &desc, tensor.data) }
        };
        Ok((memory(&given)?, memory(&dst)?))
    };
    let (from_memory, mut to_memory) = work().map_err(|error| to_python(&error))?;
    let permuted =
        src.py().detach(|| permute((from, to), heads, rotated, &from_memory, &mut to_memory));
    permuted.map_err(|error| to_python(&error))?;
    result.finish()
}
