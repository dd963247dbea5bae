//! Rotary position embedding.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::primitive::{Arg, PropKind};
use norm_rs::rope::{Pairing, Scaling, frequencies};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::arguments;
use crate::call::{Given, compute};
use crate::elementwise::named;
use crate::errors::to_python;
use crate::layout::check_overlaps;
use crate::output::{Output, allocate};
use crate::plan::{Addresses, Operand, Operation, Problem, Rotation};
use crate::tensor::{Library, Tensor, tuple};
use crate::wanted::MAKE_CONTIGUOUS;

/// Element types of heads and tables.
const FLOATS: &[DataType] = &[DataType::F32, DataType::Bf16, DataType::F16];

/// Element types of positions.
const INDICES: &[DataType] = &[DataType::S32, DataType::S64];

/// The names of pairings.
const PAIRINGS: [(&str, Pairing); 3] = [
    ("interleaved", Pairing::Interleaved),
    ("half_split", Pairing::HalfSplit),
    ("half_split_of_head", Pairing::HalfSplitOfHead),
];

/// The arguments of both directions.
struct Call<'a, 'py> {
    arg: Arg,
    input: &'a Bound<'py, PyAny>,
    positions: &'a Bound<'py, PyAny>,
    angles: Angles<'a, 'py>,
    out: Given<'a, 'py>,
}

/// How heads are rotated.
pub(crate) struct Angles<'a, 'py> {
    frequencies: Given<'a, 'py>,
    /// Frequencies that were passed as a list, as [`rope_frequencies`] returns them.
    list: Option<Vec<f64>>,
    /// Cosines and sines.
    cos_sin: [Given<'a, 'py>; 2],
    pairing: &'a str,
    rotary_dims: Option<usize>,
    magnitude: f64,
}

impl<'a, 'py> Angles<'a, 'py> {
    pub(crate) fn new(
        frequencies: Given<'a, 'py>,
        cos_sin: [Given<'a, 'py>; 2],
        pairing: &'a str,
        rotary_dims: Option<usize>,
        magnitude: f64,
    ) -> PyResult<Self> {
        let is_list =
            |x: &&Bound<'_, PyAny>| x.is_instance_of::<PyList>() || x.is_instance_of::<PyTuple>();
        let list = frequencies.filter(is_list).map(|list| {
            list.extract::<Vec<f64>>().map_err(|_| {
                PyTypeError::new_err(
                    "frequencies is a list of something else than numbers: pass the first result of rope_frequencies \
                     alone, and the second as magnitude",
                )
            })
        });
        let list = list.transpose()?;
        Ok(Self { frequencies, list, cos_sin, pairing, rotary_dims, magnitude })
    }

    /// Reads the frequencies: an array, or the list of `self`.
    fn frequencies(&self, object: &'a Bound<'py, PyAny>) -> PyResult<Tensor<'a, 'py>> {
        let Some(list) = &self.list else {
            return Tensor::read("frequencies", &[DataType::F64], object);
        };
        Ok(Tensor {
            name: "frequencies",
            object,
            library: Library::Numpy,
            data: list.as_ptr().cast_mut().cast(),
            data_type: DataType::F64,
            shape: [list.len()].into_iter().collect(),
            strides: [1].into_iter().collect(),
            is_output: false,
            read_only: None,
            lent: None,
        })
    }

    /// The rotation of heads, the last dimension of the array `name`.
    pub(crate) fn rotation(&self, name: &str, head: usize) -> PyResult<Rotation> {
        let pairing = named("pairing", self.pairing, &PAIRINGS)?;
        let (rotary_dims, most) = (self.rotary_dims.unwrap_or(head), head / 2 * 2);
        let fits = rotary_dims >= 2 && rotary_dims.is_multiple_of(2) && rotary_dims <= head;
        let wrong = match self.rotary_dims {
            _ if head < 2 => {
                format!("the last dimension of {name} is {head}: pass heads of 2 elements or more")
            }
            Some(given) if !fits => format!(
                "rotary_dims is {given}, but the last dimension of {name} is {head}: pass an even number, 2 to {most}"
            ),
            None if !fits => format!(
                "the last dimension of {name} is {head}, odd: pass an even rotary_dims, 2 to {most}"
            ),
            _ if pairing == Pairing::HalfSplitOfHead && !head.is_multiple_of(2) => format!(
                "pairing is {:?}, but the last dimension of {name} is {head}: pass heads of an even number of elements",
                self.pairing
            ),
            _ => return Ok(Rotation { pairing, rotary_dims, magnitude: self.magnitude as f32 }),
        };
        Err(PyValueError::new_err(wrong))
    }

    /// Rejects tables that do not have an element for each pair.
    fn check_table(&self, cos: &Tensor<'_, '_>, pairs: usize) -> PyResult<()> {
        let shape = &cos.shape;
        if matches!(shape[..], [_, cols] if cols == pairs) {
            return if pairs < 2 || cos.strides[1] == 1 { Ok(()) } else { cos.expect_dense() };
        }
        let hint = match (&shape[..], self.pairing) {
            ([.., cols], _) if *cols != 2 * pairs => String::new(),
            ([_, _], "interleaved") => {
                "; if it has each value twice, as in Hugging Face's models, pass \
                 numpy.ascontiguousarray(cos[:, ::2]), and so for sin"
                    .to_owned()
            }
            ([_, _] | [1, _, _], _) => {
                let first = if shape.len() == 2 { "" } else { "0, " };
                format!(
                    "; if it has each value twice, as in Hugging Face's models, pass cos[{first}:, :{pairs}] and \
                     sin[{first}:, :{pairs}]"
                )
            }
            _ => String::new(),
        };
        Err(PyValueError::new_err(format!(
            "cos has the shape {}, but must have (positions, {pairs}): one element for each pair{hint}",
            tuple(shape)
        )))
    }

    /// The frequencies or both tables, which are valid while `self` lives.
    pub(crate) fn tables(
        &self,
        rotary_dims: usize,
    ) -> PyResult<ArrayVec<(Arg, Tensor<'a, 'py>), 2>> {
        let mut angles = ArrayVec::new();
        match (self.frequencies, self.cos_sin) {
            (Some(frequencies), [None, None]) => {
                let tensor = self.frequencies(frequencies)?;
                tensor.expect_shape(&[rotary_dims / 2], "one for each pair")?;
                angles.push((Arg::RopeFrequencies, tensor));
            }
            (None, [Some(cos), Some(sin)]) => {
                let (cos, sin) =
                    (Tensor::read("cos", FLOATS, cos)?, Tensor::read("sin", FLOATS, sin)?);
                sin.expect_type_of(&cos)?;
                sin.expect_shape(&cos.shape, "it is that of cos")?;
                self.check_table(&cos, rotary_dims / 2)?;
                if cos.strides != sin.strides {
                    return Err(PyValueError::new_err(format!(
                        "cos and sin have different strides: {MAKE_CONTIGUOUS}"
                    )));
                }
                angles.push((Arg::RopeCos, cos));
                angles.push((Arg::RopeSin, sin));
            }
            (Some(_), _) => {
                return Err(PyValueError::new_err(
                    "frequencies and tables are both given: pass frequencies, or cos and sin",
                ));
            }
            _ => {
                return Err(PyValueError::new_err(
                    "the angles are missing: pass frequencies, or both cos and sin",
                ));
            }
        }
        Ok(angles)
    }
}

impl<'py> Call<'_, 'py> {
    fn run(self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.input.py();
        let (name, to) = match self.arg {
            Arg::Src => ("src", Arg::Dst),
            _ => ("diff_dst", Arg::DiffSrc),
        };
        let input = Tensor::read(name, FLOATS, self.input)?;
        let positions = Tensor::read("positions", INDICES, self.positions)?;
        let fits = |(own, of_input): (&usize, &usize)| own == of_input || *own == 1;
        if positions.shape.len() + 1 != input.shape.len()
            || !positions.shape.iter().zip(&input.shape).all(fits)
        {
            return Err(PyValueError::new_err(format!(
                "positions has the shape {}, but {name} has {}: pass the dimensions of {name} without the last, with 1 \
                 where positions are shared, such as for heads",
                tuple(&positions.shape),
                tuple(&input.shape)
            )));
        }
        let rotation = self.angles.rotation(name, input.shape.last().copied().unwrap_or(0))?;
        let angles = self.angles.tables(rotation.rotary_dims)?;
        let (output, result) = match self.out {
            None => allocate("out", &input, input.data_type, &input.shape)?,
            Some(out) => {
                let tensor = Tensor::read_output("out", FLOATS, out)?;
                tensor.expect_shape(&input.shape, &format!("it is that of {name}"))?;
                (tensor, Output::Array(out.clone()))
            }
        };
        let inputs: ArrayVec<_, 4> =
            [&input, &positions].into_iter().chain(angles.iter().map(|(_, t)| t)).collect();
        check_overlaps(&[&output], &inputs, &[(&input, &output)])?;
        let (mut operands, mut addresses) = (ArrayVec::new(), Addresses::new());
        let own = [(self.arg, &input), (Arg::Positions, &positions)];
        let all = own.into_iter().chain(angles.iter().map(|(arg, tensor)| (*arg, tensor)));
        for (arg, tensor) in all.chain([(to, &output)]) {
            let (strides, dims) = (tensor.strides.clone(), Some(tensor.shape.clone()));
            operands.push(Operand { arg, data_type: tensor.data_type, strides, dims });
            addresses.push(tensor.data);
        }
        let dims = input.shape.clone();
        let operation = Operation::Rope(rotation);
        // Both directions have one output and no statistics.
        let prop_kind = PropKind::ForwardInference;
        compute(py, &Problem { prop_kind, operation, dims, operands }, &addresses)?;
        result.finish()
    }
}

/// Rotary position embedding: rotates the pairs of each head by angles that grow with the position.
///
///     angle = positions * frequencies[i]
///     a' = (a * cos(angle) - b * sin(angle)) * magnitude
///     b' = (a * sin(angle) + b * cos(angle)) * magnitude
///
/// for pair i of a head, the last dimension of src (Su and others, RoFormer, 2021). Angles are computed in
/// float64.
///
/// Parameters
/// ----------
/// src : array of shape (..., D), 2 to 6 dimensions
///     float32, bfloat16 or float16; the last dimension is contiguous.
/// positions : int32 or int64 array
///     The dimensions of src without the last, with 1 where positions are shared, for example by heads.
/// frequencies : float64 array of shape (rotary_dims / 2,), or list of float
///     Radians per position, as from rope_frequencies.
/// pairing : str
///     Which of a head's D elements form a pair; R of them are rotated. "interleaved": 2i and 2i + 1;
///     "half_split": i and i + R/2 (Hugging Face); "half_split_of_head": i and i + D/2.
/// rotary_dims : int, optional
///     R, the elements of a head that are rotated; the others are copied. D by default.
/// magnitude : float
///     A factor for the rotated elements, as from rope_frequencies.
/// cos, sin : array of shape (positions, rotary_dims / 2), optional
///     Tables instead of frequencies: float32, bfloat16 or float16.
/// out : array of the shape of src, optional
///     Where to write the result; pass src itself to work in place.
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
#[pyo3(signature = (src, positions, frequencies=None, *, pairing, rotary_dims=None, magnitude=1.0, cos=None,
                    sin=None, out=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn rope<'py>(
    src: &Bound<'py, PyAny>,
    positions: &Bound<'py, PyAny>,
    frequencies: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::pairing)] pairing: &str,
    #[pyo3(from_py_with = arguments::rotated)] rotary_dims: Option<usize>,
    #[pyo3(from_py_with = arguments::magnitude)] magnitude: f64,
    cos: Option<&Bound<'py, PyAny>>,
    sin: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let angles = Angles::new(frequencies, [cos, sin], pairing, rotary_dims, magnitude)?;
    Call { arg: Arg::Src, input: src, positions, angles, out }.run()
}

/// The gradient of rope: the rotation back.
///
/// Parameters
/// ----------
/// diff_dst : array of shape (..., D)
///     The gradient of the result: float32, bfloat16 or float16.
/// positions, frequencies, pairing, rotary_dims, magnitude, cos, sin
///     As in the forward pass.
/// out : array of the shape of diff_dst, optional
///     Where to write the result; pass diff_dst itself to work in place.
///
/// Returns
/// -------
/// out, or a new array of the library, shape and element type of diff_dst.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (diff_dst, positions, frequencies=None, *, pairing, rotary_dims=None, magnitude=1.0, cos=None,
                    sin=None, out=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub(crate) fn rope_backward<'py>(
    diff_dst: &Bound<'py, PyAny>,
    positions: &Bound<'py, PyAny>,
    frequencies: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = arguments::pairing)] pairing: &str,
    #[pyo3(from_py_with = arguments::rotated)] rotary_dims: Option<usize>,
    #[pyo3(from_py_with = arguments::magnitude)] magnitude: f64,
    cos: Option<&Bound<'py, PyAny>>,
    sin: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let angles = Angles::new(frequencies, [cos, sin], pairing, rotary_dims, magnitude)?;
    Call { arg: Arg::DiffDst, input: diff_dst, positions, angles, out }.run()
}

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
