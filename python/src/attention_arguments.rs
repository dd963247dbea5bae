//! Reads and checks the arguments of attention one by one.

use norm_rs::DataType;
use norm_rs::primitive::Arg;
use norm_rs::sdpa::Causal;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::call::Given;
use crate::elementwise::named;
use crate::tensor::{Dims, Tensor, tuple};

/// Element types of queries and results.
pub(crate) const FLOATS: &[DataType] = &[DataType::F32, DataType::Bf16, DataType::F16];
/// Element types of keys and values forward.
pub(crate) const KEYS: &[DataType] =
    &[DataType::F32, DataType::Bf16, DataType::F16, DataType::S8, DataType::F8E4m3];

/// The keywords of both directions and of caches.
#[derive(Clone, Copy, Default)]
pub(crate) struct Keywords<'a, 'py> {
    pub(crate) causal: Given<'a, 'py>,
    pub(crate) window: Given<'a, 'py>,
    pub(crate) scale: Option<f64>,
    pub(crate) soft_cap: Option<f64>,
    pub(crate) sinks: Given<'a, 'py>,
    pub(crate) alibi_slopes: Given<'a, 'py>,
    pub(crate) mask: Given<'a, 'py>,
    /// For a cache: the length of the longest sequence.
    pub(crate) mask_tokens: Option<usize>,
    pub(crate) query_lengths: Given<'a, 'py>,
    pub(crate) key_lengths: Given<'a, 'py>,
    pub(crate) query_offsets: Given<'a, 'py>,
    pub(crate) key_offsets: Given<'a, 'py>,
    pub(crate) page_table: Given<'a, 'py>,
    pub(crate) key_scales: Given<'a, 'py>,
    pub(crate) value_scales: Given<'a, 'py>,
}

/// An argument with the sizes and strides that the library uses.
pub(crate) struct Bound4<'a, 'py> {
    pub(crate) arg: Arg,
    pub(crate) tensor: Tensor<'a, 'py>,
    pub(crate) dims: Dims,
    pub(crate) strides: Dims,
}

impl<'a, 'py> Bound4<'a, 'py> {
    pub(crate) fn new(arg: Arg, tensor: Tensor<'a, 'py>) -> Self {
        let (dims, strides) = (tensor.shape.clone(), tensor.strides.clone());
        Self { arg, tensor, dims, strides }
    }

    /// Keys, their scales or their gradient. The library's tensors have the last two dimensions swapped.
    pub(crate) fn keys(arg: Arg, tensor: Tensor<'a, 'py>) -> Self {
        let mut bound = Self::new(arg, tensor);
        bound.dims.swap(2, 3);
        bound.strides.swap(2, 3);
        bound
    }

    /// Log-sum-exp. The library's tensor has a last dimension of 1.
    pub(crate) fn sums(tensor: Tensor<'a, 'py>) -> Self {
        let mut bound = Self::new(Arg::Workspace, tensor);
        bound.dims.push(1);
        bound.strides = strides(&bound.dims);
        bound
    }

    /// The same tensor for `sequences` packed sequences. None: they are not packed.
    pub(crate) fn packed(mut self, sequences: Option<usize>) -> Self {
        if let Some(sequences) = sequences {
            self.dims[0] = sequences;
            self.strides[0] = 0;
        }
        self
    }

    /// Prepends dimensions of 1 until there are four.
    pub(crate) fn widened(mut self) -> Self {
        while self.dims.len() < 4 {
            self.dims.insert(0, 1);
            self.strides.insert(0, 0);
        }
        self
    }
}

/// The strides that the library gives a dense tensor, which may have no elements.
fn strides(dims: &[usize]) -> Dims {
    let (mut step, mut strides) = (1, Dims::new());
    for size in dims.iter().rev() {
        strides.push(step);
        step *= size.max(&1);
    }
    strides.reverse();
    strides
}

/// The first rows of packed sequences.
pub(crate) struct Offsets<'a, 'py> {
    pub(crate) tensor: Tensor<'a, 'py>,
}

impl<'a, 'py> Offsets<'a, 'py> {
    pub(crate) fn read(name: &'static str, object: Given<'a, 'py>) -> PyResult<Option<Self>> {
        let Some(object) = object else { return Ok(None) };
        let count = Tensor::read(name, &[DataType::S32], object)?.len().max(1);
        let why = "the first row of each sequence, and the end of the last";
        let tensor = dense(name, object, (DataType::S32, &[count], why))?;
        Ok(Some(Self { tensor }))
    }

    pub(crate) fn sequences(&self) -> usize {
        self.tensor.len() - 1
    }

    /// Whether some rows may belong to no sequence.
    pub(crate) fn leaves(&self, rows: usize) -> bool {
        let data = self.tensor.data.cast::<i32>();
        // SAFETY: a contiguous array of s32 with at least one element.
        let ends = unsafe { [data.read(), data.add(self.sequences()).read()] };
        ends != [0, i32::try_from(rows).unwrap_or(i32::MAX)]
    }
}

impl Keywords<'_, '_> {
    pub(crate) fn check(&self) -> PyResult<()> {
        let [queries, keys] = ["query_offsets", "key_offsets"];
        not_with(queries, self.query_offsets, "query_lengths", self.query_lengths)?;
        not_with(queries, self.query_offsets, "mask", self.mask)?;
        not_with(keys, self.key_offsets, "key_lengths", self.key_lengths)?;
        not_with(keys, self.key_offsets, "mask", self.mask)?;
        not_with(keys, self.key_offsets, "page_table", self.page_table)?;
        not_with(keys, self.key_offsets, "key_scales", self.key_scales)?;
        not_with(keys, self.key_offsets, "value_scales", self.value_scales)
    }

    /// The causal mask. True is only accepted where both kinds agree.
    pub(crate) fn causal(&self, queries: usize, keys: usize) -> PyResult<Causal> {
        let Some(given) = self.causal else { return Ok(Causal::No) };
        if let Ok(name) = given.extract::<String>() {
            let kinds = [("top_left", Causal::TopLeft), ("bottom_right", Causal::BottomRight)];
            return named("causal", &name, &kinds);
        }
        let own = [self.query_lengths, self.key_lengths, self.query_offsets, self.key_offsets];
        let lengths = own.iter().any(Option::is_some);
        match given.extract::<bool>() {
            Ok(false) => Ok(Causal::No),
            Ok(true) if queries == keys && !lengths => Ok(Causal::TopLeft),
            Ok(true) => Err(PyValueError::new_err(
                "causal is True, but queries and keys may differ in number: pass \"bottom_right\", with which the last \
                 query sees the last key, or \"top_left\", with which the first query sees the first key alone",
            )),
            Err(_) => Err(PyTypeError::new_err(
                "causal must be None, a bool, \"top_left\" or \"bottom_right\"",
            )),
        }
    }
}

/// Reads an array of four dimensions.
pub(crate) fn four<'a, 'py>(
    name: &'static str,
    object: &'a Bound<'py, PyAny>,
    types: &[DataType],
) -> PyResult<Tensor<'a, 'py>> {
    let tensor = Tensor::read(name, types, object)?;
    if tensor.shape.len() == 4 {
        return Ok(tensor);
    }
    Err(PyValueError::new_err(format!(
        "{name} has the shape {}: pass four dimensions: sequences, heads, tokens, elements of a head",
        tuple(&tensor.shape)
    )))
}

/// Reads a contiguous array of a given type and shape.
pub(crate) fn dense<'a, 'py>(
    name: &'static str,
    object: &'a Bound<'py, PyAny>,
    (data_type, shape, why): (DataType, &[usize], &str),
) -> PyResult<Tensor<'a, 'py>> {
    let tensor = Tensor::read(name, &[data_type], object)?;
    tensor.expect_shape(shape, why)?;
    tensor.expect_dense()?;
    Ok(tensor)
}

/// Rejects two arguments that exclude each other.
fn not_with(name: &str, given: Given<'_, '_>, other: &str, others: Given<'_, '_>) -> PyResult<()> {
    match (given, others) {
        (Some(_), Some(_)) => {
            Err(PyValueError::new_err(format!("{name} and {other} are given: pass one of them")))
        }
        _ => Ok(()),
    }
}

/// The pages of each sequence.
pub(crate) fn pages<'a, 'py>(
    table: &'a Bound<'py, PyAny>,
    batch: usize,
) -> PyResult<Tensor<'a, 'py>> {
    let of = Tensor::read("page_table", &[DataType::S32], table)?;
    let count = of.shape.get(1).copied().unwrap_or(0);
    let why = "a row of pages for each sequence of q";
    dense("page_table", table, (DataType::S32, &[batch, count], why))
}

/// The scales of keys or values, if their type has them.
pub(crate) fn scales<'a, 'py>(
    name: &'static str,
    x: &Tensor<'_, '_>,
    q: &Tensor<'_, '_>,
    object: Given<'a, 'py>,
) -> PyResult<Option<Tensor<'a, 'py>>> {
    let quantized = matches!(x.data_type, DataType::S8 | DataType::F8E4m3);
    if !quantized {
        x.expect_type_of(q)?;
    }
    let Some(object) = object else {
        if x.data_type == DataType::S8 {
            let text = format!("{} has elements of int8: pass their scales as {name}", x.name);
            return Err(PyValueError::new_err(text));
        }
        return Ok(None);
    };
    if !quantized {
        return Err(PyValueError::new_err(format!(
            "{name} are for elements of int8 or float8_e4m3fn, which {} does not have: leave them out",
            x.name
        )));
    }
    let tensor = Tensor::read(name, &[DataType::F32], object)?;
    let missing = 4 - tensor.shape.len().min(4);
    let full = [x.shape[0], x.shape[1], x.shape[2], 1];
    let fits = |(&own, &all): (&usize, &usize)| own == 1 || own == all;
    if tensor.shape.len() > 4 || !tensor.shape.iter().zip(&full[missing..]).all(fits) {
        return Err(PyValueError::new_err(format!(
            "{name} has the shape {}, but must have {}, or 1 where {} shares them",
            tuple(&tensor.shape),
            tuple(&full),
            x.name
        )));
    }
    tensor.expect_dense()?;
    Ok(Some(tensor))
}

/// Scales with four dimensions and the strides that the library requires.
pub(crate) fn bound_scales<'a, 'py>(
    arg: Arg,
    tensor: Tensor<'a, 'py>,
    bound: fn(Arg, Tensor<'a, 'py>) -> Bound4<'a, 'py>,
) -> Bound4<'a, 'py> {
    let mut tensor = tensor;
    while tensor.shape.len() < 4 {
        tensor.shape.insert(0, 1);
    }
    tensor.strides = strides(&tensor.shape);
    bound(arg, tensor)
}

/// A mask, with dimensions of 1 prepended up to four.
pub(crate) fn mask4<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
    full: [usize; 4],
) -> PyResult<Bound4<'a, 'py>> {
    let tensor = Tensor::read_mask("mask", object)?;
    let mask = Bound4::new(Arg::AttnMask, tensor).widened();
    if mask.dims.len() > 4 || mask.dims.iter().zip(full).any(|(&own, all)| own != 1 && own != all) {
        return Err(PyValueError::new_err(format!(
            "mask has the shape {}, but the scores have {}: pass those sizes, or 1 where they share it",
            tuple(&mask.tensor.shape),
            tuple(&full)
        )));
    }
    Ok(mask)
}
