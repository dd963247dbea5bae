//! The angles of rope, and which elements they rotate.

use arrayvec::ArrayVec;
use norm_rs::DataType;
use norm_rs::primitive::Arg;
use norm_rs::rope::Pairing;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::call::Given;
use crate::elementwise::named;
use crate::plan::Rotation;
use crate::tensor::{Library, Tensor, tuple};
use crate::wanted::MAKE_CONTIGUOUS;

/// Element types of heads, tables and scales.
pub(crate) const FLOATS: &[DataType] = &[DataType::F32, DataType::Bf16, DataType::F16];

/// The names of pairings.
pub(crate) const PAIRINGS: [(&str, Pairing); 3] = [
    ("interleaved", Pairing::Interleaved),
    ("half_split", Pairing::HalfSplit),
    ("half_split_of_head", Pairing::HalfSplitOfHead),
];

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
            _ => return Ok(Rotation::new(pairing, rotary_dims, self.magnitude as f32)),
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
