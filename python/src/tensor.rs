//! A view of an array: address, element type, shape, strides.
//!
//! [`Tensor::read`] creates one from a Python object through [`numpy`](crate::numpy_array) or
//! [`dlpack`](crate::dlpack), and rejects what no operation can use. The checks here are those that
//! operations share. Every message names the argument and says what to change.

use arrayvec::ArrayVec;
use dlpark::python::ImportedDlpack;
use norm_rs::DataType;
use norm_rs::memory_desc::MAX_NDIMS;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::dlpack;
use crate::numpy_array;
use crate::wanted::{MAKE_CONTIGUOUS, NEW_CONTIGUOUS, Wanted};

/// Sizes or strides of dimensions.
pub(crate) type Dims = ArrayVec<usize, MAX_NDIMS>;

/// The library that an array belongs to; new arrays are made by the same one.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Library {
    Numpy,
    /// Any other library, through DLPack.
    Dlpack,
}

/// An argument of a call.
pub(crate) struct Tensor<'a, 'py> {
    /// The name of the parameter, for messages.
    pub(crate) name: &'static str,
    pub(crate) object: &'a Bound<'py, PyAny>,
    pub(crate) library: Library,
    pub(crate) data: *mut u8,
    pub(crate) data_type: DataType,
    pub(crate) shape: Dims,
    /// In elements. Strides of dimensions of size 0 or 1 are arbitrary.
    pub(crate) strides: Dims,
    /// Whether the call writes it.
    pub(crate) is_output: bool,
    /// Why it cannot be written, and what to pass instead.
    pub(crate) read_only: Option<&'static str>,
    /// Releases the memory that was lent through a DLPack capsule.
    pub(crate) lent: Option<ImportedDlpack>,
}

impl<'a, 'py> Tensor<'a, 'py> {
    fn of(wanted: &Wanted<'_>, object: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        if numpy_array::is_array(object) {
            numpy_array::read(wanted, object)
        } else {
            dlpack::read(wanted, object)
        }
    }

    /// Reads an array with elements of one of these types.
    pub(crate) fn read(
        name: &'static str,
        types: &[DataType],
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        Self::of(&Wanted::input(name, types), object)
    }

    /// As [`read`](Self::read), for a mask: elements of bool are bytes of 0 and 1.
    pub(crate) fn read_mask(name: &'static str, object: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        Self::of(&Wanted::mask(name), object)
    }

    /// As [`read`](Self::read), for a condition: elements of bool, int8 or uint8 are bytes that are 0 or not.
    pub(crate) fn read_condition(
        name: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let tensor = Self::of(&Wanted::condition(name), object)?;
        Ok(Self { data_type: DataType::S8, ..tensor })
    }

    /// As [`read`](Self::read), for an array that is written.
    pub(crate) fn read_output(
        name: &'static str,
        types: &[DataType],
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let tensor = Self::of(&Wanted::output(name, types), object)?;
        if let Some(why) = tensor.read_only {
            return Err(PyValueError::new_err(format!("{name} {why}")));
        }
        let repeats = |(&size, &stride): (&usize, &usize)| size > 1 && stride == 0;
        if tensor.len() > 0 && tensor.shape.iter().zip(&tensor.strides).any(repeats) {
            return Err(PyValueError::new_err(format!(
                "{name} has a stride of 0, so several results would have one address: pass an array with \
                 an element for each result"
            )));
        }
        Ok(tensor)
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements follow each other in row-major order.
    pub(crate) fn is_dense(&self) -> bool {
        let mut expected = 1;
        self.len() == 0
            || self.shape.iter().zip(&self.strides).rev().all(|(&size, &stride)| {
                let dense = size == 1 || stride == expected;
                expected *= size;
                dense
            })
    }

    /// The first and one past the last byte; the same if there are no elements.
    pub(crate) fn range(&self) -> (usize, usize) {
        let first = self.data.addr();
        if self.len() == 0 {
            return (first, first);
        }
        let last: usize =
            self.shape.iter().zip(&self.strides).map(|(size, stride)| (size - 1) * stride).sum();
        (first, first + (last + 1) * self.data_type.size())
    }

    /// Rejects elements that do not follow each other.
    pub(crate) fn expect_dense(&self) -> PyResult<()> {
        if self.is_dense() {
            return Ok(());
        }
        let pass = if self.is_output { NEW_CONTIGUOUS } else { MAKE_CONTIGUOUS };
        Err(PyValueError::new_err(format!("{} is not contiguous: {pass}", self.name)))
    }

    /// Rejects an element type other than that of `other`.
    pub(crate) fn expect_type_of(&self, other: &Tensor<'_, '_>) -> PyResult<()> {
        if self.data_type == other.data_type {
            return Ok(());
        }
        let (own, others) = (type_name(self.data_type), type_name(other.data_type));
        let pass = match self.is_output {
            true => {
                format!("pass an array of {others}, and read the result from it after the call")
            }
            false => "convert one of them".to_owned(),
        };
        Err(PyTypeError::new_err(format!(
            "{} has elements of {own}, but {} of {others}: {pass}",
            self.name, other.name,
        )))
    }

    /// Rejects any other shape; `because` explains the expected one.
    pub(crate) fn expect_shape(&self, expected: &[usize], because: &str) -> PyResult<()> {
        if self.shape[..] == *expected {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "{} has the shape {}, but must have {}: {because}",
            self.name,
            tuple(&self.shape),
            tuple(expected),
        )))
    }
}

/// The element type's name in NumPy and PyTorch.
pub(crate) fn type_name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::F16 => "float16",
        DataType::Bf16 => "bfloat16",
        DataType::F32 => "float32",
        DataType::F64 => "float64",
        DataType::S32 => "int32",
        DataType::S64 => "int64",
        DataType::S8 => "int8",
        DataType::U8 => "uint8",
        DataType::F8E5m2 => "float8_e5m2",
        DataType::F8E4m3 => "float8_e4m3fn",
        DataType::E8m0 => "float8_e8m0fnu",
        _ => "an unknown type",
    }
}

/// A shape as Python prints it.
pub(crate) fn tuple(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Checks sizes and strides and converts strides to elements.
///
/// `unit` is the number of the given strides' units in an element: its size for strides in bytes.
pub(crate) fn layout(
    wanted: &Wanted<'_>,
    shape: impl ExactSizeIterator<Item = i64>,
    strides: impl Iterator<Item = i64>,
    unit: usize,
) -> PyResult<(Dims, Dims)> {
    let (name, contiguous) = (wanted.name, wanted.contiguous());
    if shape.len() > MAX_NDIMS {
        return Err(PyValueError::new_err(format!(
            "{name} has {} dimensions; the maximum is {MAX_NDIMS}: reshape it",
            shape.len(),
        )));
    }
    let (mut sizes, mut steps) = (Dims::new(), Dims::new());
    for (dimension, (size, stride)) in shape.zip(strides).enumerate() {
        let size = usize::try_from(size)
            .map_err(|_| PyValueError::new_err(format!("{name} has a negative size")))?;
        // The stride of a dimension without a second element is arbitrary.
        let stride = if size <= 1 { 0 } else { stride };
        let step = usize::try_from(stride).map_err(|_| {
            PyValueError::new_err(format!(
                "{name} runs backwards in dimension {dimension}, with a stride of {stride}: \
                 {contiguous}"
            ))
        })?;
        if !step.is_multiple_of(unit) {
            return Err(PyValueError::new_err(format!(
                "{name} has a stride of {stride} bytes in dimension {dimension}, not a multiple of the \
                 element size {unit}: {contiguous}"
            )));
        }
        sizes.push(size);
        steps.push(step / unit);
    }
    Ok((sizes, steps))
}

/// Rejects elements that are not aligned to their size.
pub(crate) fn check_alignment(
    wanted: &Wanted<'_>,
    data: *mut u8,
    data_type: DataType,
) -> PyResult<()> {
    let size = data_type.size();
    if data.addr().is_multiple_of(size) {
        return Ok(());
    }
    Err(wanted.needs_copy(&format!("is not aligned to its elements of {size} bytes"), ".copy()"))
}
