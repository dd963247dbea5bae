//! Rope that writes keys to a cache.

use arrayvec::ArrayVec;
use norm_rs::kv_cache::{KvCache, RawArgument};
use norm_rs::primitive::{Arg, PropKind};
use norm_rs::{DataType, Result};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;

use crate::attention_arguments::FLOATS;
use crate::plan::{Addresses, Operand, Operation, Problem, Rotation, execute};
use crate::rope_angles::Angles;
use crate::rope_norm::HeadNorm;
use crate::tensor::{Dims, Tensor, tuple};

/// Adds arguments that the cache lends. Those in `short` are cut to the number of entries of this call.
pub(crate) fn lend(
    problem: &mut Problem,
    addresses: &mut Addresses,
    lent: Vec<RawArgument>,
    (short, count): (&[Arg], usize),
) {
    for argument in lent {
        let mut dims: Dims = argument.desc.dims().iter().copied().collect();
        if short.contains(&argument.arg) {
            dims[0] = count;
        }
        let strides = argument.desc.strides().map(|strides| strides.iter().copied().collect());
        let data_type = argument.desc.data_type().unwrap_or(DataType::F32);
        let (arg, strides, dims) = (argument.arg, strides.unwrap_or_default(), Some(dims));
        problem.operands.push(Operand { arg, data_type, strides, dims });
        addresses.push(argument.data);
    }
}

/// Refuses a cache that quantizes.
pub(crate) fn check_rotated(data_type: DataType) -> PyResult<()> {
    if FLOATS.contains(&data_type) {
        return Ok(());
    }
    Err(PyNotImplementedError::new_err(
        "rope does not quantize keys for a cache of int8 or float8_e4m3fn: rotate them with rope, and pass that to \
         write",
    ))
}

/// A call of rope, without Python objects.
pub(crate) struct Rotated {
    problem: Problem,
    addresses: Addresses,
}

// SAFETY: the addresses are those of arrays or of the list of `Angles`. The call keeps them alive and only reads them.
unsafe impl Send for Rotated {}

impl Rotated {
    /// The keys of a step, for heads of `size` elements.
    pub(crate) fn new(
        k: &Bound<'_, PyAny>,
        (angles, norm): (&Angles<'_, '_>, &HeadNorm<'_, '_>),
        (heads, size): (usize, usize),
    ) -> PyResult<Self> {
        let keys = Tensor::read("k", FLOATS, k)?;
        if keys.shape.len() != 3 {
            return Err(PyValueError::new_err(format!(
                "k has the shape {}: pass the rows of the step: tokens, heads, elements of a head",
                tuple(&keys.shape)
            )));
        }
        keys.expect_shape(
            &[keys.shape[0], heads, size],
            "heads and elements are those of the cache",
        )?;
        let rotation = angles.rotation("k", size)?;
        let tables = angles.tables(rotation.rotary_dims)?;
        let (norm, scale) = norm.read(size)?;
        let rotation = Rotation { norm, ..rotation };
        let (mut operands, mut addresses) = (ArrayVec::new(), Addresses::new());
        let scale = scale.as_ref().map(|scale| (Arg::Scale, scale));
        let tables = tables.iter().map(|(arg, table)| (*arg, table));
        for (arg, tensor) in [(Arg::Src, &keys)].into_iter().chain(tables).chain(scale) {
            let (strides, dims) = (tensor.strides.clone(), Some(tensor.shape.clone()));
            operands.push(Operand { arg, data_type: tensor.data_type, strides, dims });
            addresses.push(tensor.data);
        }
        let (operation, dims) = (Operation::Rope(rotation), keys.shape.clone());
        let prop_kind = PropKind::ForwardInference;
        Ok(Self { problem: Problem { prop_kind, operation, dims, operands }, addresses })
    }

    /// Writes the rows to a layer whose open step has `open` rows. An error if there are too few or too many.
    pub(crate) fn run(
        mut self,
        cache: &mut KvCache,
        layer: usize,
        open: usize,
    ) -> Result<std::result::Result<(), String>> {
        let rows = self.problem.dims[0];
        let lent = cache.rope_args(layer)?.raw()?;
        if open == 0 {
            return Ok(Err("no step is open: call extend first".to_owned()));
        }
        let slots = lent.iter().find(|argument| argument.arg == Arg::Slots);
        let most = slots.map_or(0, |slots| slots.desc.dims()[0]);
        if !(open..=most).contains(&rows) {
            return Ok(Err(format!(
                "k has {rows} rows, but the step has {open}: pass as many, or more up to step_tokens, {most}"
            )));
        }
        let short = (&[Arg::Slots, Arg::Positions][..], rows);
        lend(&mut self.problem, &mut self.addresses, lent, short);
        // SAFETY: the call keeps the arrays alive. Arrays and tensors of the cache have these layouts; the cache is
        // borrowed exclusively, and there are at least as many slots and positions as rows.
        unsafe { execute(&self.problem, &self.addresses) }.map(Ok)
    }
}
