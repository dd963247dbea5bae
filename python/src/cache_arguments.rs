//! Reads and checks the arguments of a KV cache one by one.

use norm_rs::kv_cache::Rows;
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Result};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::elementwise::named;
use crate::tensor::{Dims, Tensor};

/// The names of element types.
const TYPES: [(&str, DataType); 5] = [
    ("float32", DataType::F32),
    ("bfloat16", DataType::Bf16),
    ("float16", DataType::F16),
    ("int8", DataType::S8),
    ("float8_e4m3fn", DataType::F8E4m3),
];

/// The type of a cache that a string or an object of another package names.
pub(crate) fn data_type(dtype: &Bound<'_, PyAny>) -> PyResult<DataType> {
    named_type(dtype, &TYPES)
}

/// The one of `types` that a string or an object of another package names.
pub(crate) fn named_type(
    dtype: &Bound<'_, PyAny>,
    types: &[(&str, DataType)],
) -> PyResult<DataType> {
    let attribute = |name| dtype.getattr_opt(name)?.map(|found| found.extract()).transpose();
    let name = match dtype.extract::<String>() {
        Ok(name) => name,
        // A class of NumPy or ml_dtypes, a dtype, or a type of PyTorch.
        Err(_) => match attribute("__name__")?.or(attribute("name")?) {
            Some(name) => name,
            None => dtype.to_string(),
        },
    };
    named("dtype", name.strip_prefix("torch.").unwrap_or(&name), types)
}

/// A number, or a list of them, one for each of `count`.
pub(crate) fn each<T: Copy + for<'x> FromPyObjectOwned<'x>>(
    name: &str,
    given: &Bound<'_, PyAny>,
    count: usize,
) -> PyResult<Vec<T>> {
    if let Ok(one) = given.extract::<T>() {
        return Ok(vec![one; count]);
    }
    let list = given.extract::<Vec<T>>().map_err(|_| {
        PyTypeError::new_err(format!("{name} must be an int or a list of them, none below 0"))
    })?;
    if list.len() == count {
        return Ok(list);
    }
    let len = list.len();
    Err(PyValueError::new_err(format!("{name} has {len} entries: pass one for each of {count}")))
}

/// The numbers of sequences: one, or a list, in which None marks an empty place.
pub(crate) fn numbers(given: &Bound<'_, PyAny>) -> PyResult<Vec<Option<i64>>> {
    if let Ok(one) = given.extract::<i64>() {
        return Ok(vec![Some(one)]);
    }
    given.extract().map_err(|_| {
        PyTypeError::new_err(
            "sequences must be the number of a sequence or a list of them, with None for an empty place",
        )
    })
}

/// The array of a step, without Python's object.
pub(crate) struct Rows4 {
    dims: Dims,
    strides: Dims,
    data_type: DataType,
    data: *mut u8,
}

// SAFETY: the call that created it keeps the array alive and reads it on one thread at a time.
unsafe impl Send for Rows4 {}

impl Rows4 {
    pub(crate) fn new(tensor: &Tensor<'_, '_>) -> Self {
        let (dims, strides) = (tensor.shape.clone(), tensor.strides.clone());
        Self { dims, strides, data_type: tensor.data_type, data: tensor.data }
    }

    /// # Safety
    /// The array outlives the memory and is not written meanwhile.
    pub(crate) unsafe fn memory(&self, engine: &Engine) -> Result<Memory<'static>> {
        let desc = MemoryDesc::with_strides(&self.dims, self.data_type, &self.strides)?;
        // SAFETY: guaranteed by the caller; the array has this type and layout.
        unsafe { Memory::from_raw(engine, &desc, self.data) }
    }
}

/// How the arrays of a step hold the rows of its sequences, and how many rows they have.
pub(crate) fn step(counts: &[usize], packed: bool) -> (Rows, usize) {
    match counts.iter().max() {
        Some(&rows) if rows > 0 && !packed => {
            (Rows::Padded(rows), rows.saturating_mul(counts.len()))
        }
        _ => (Rows::Packed, counts.iter().fold(0, |sum, count| sum.saturating_add(*count))),
    }
}
