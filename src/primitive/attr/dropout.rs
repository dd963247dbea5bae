//! Dropout: sets elements of an output to 0 at random, before the post-operations.

use super::super::{ArgumentName, OpArgument, Usage};
use crate::error::{Error, Result};
use crate::heap;
use crate::tensor::{DataType, Layout, MemoryDesc};
use norm_sys as sys;
use std::fmt;

/// The attribute.
#[derive(Clone, Debug)]
pub(crate) struct Dropout {
    /// The descriptor of the mask; empty if the mask is not stored.
    pub(crate) mask: MemoryDesc,
    /// The type of the seed, s32 or s64.
    pub(crate) seed: DataType,
    /// Whether there is an offset.
    pub(crate) has_offset: bool,
    /// Whether probability, seed and offset are host scalars.
    pub(crate) host_scalars: bool,
    /// A dense tensor with the output's dimensions. An element's offset in it is its index.
    pub(crate) numbers: MemoryDesc,
}

impl Dropout {
    /// Whether the mask is stored.
    pub(crate) fn has_mask(&self) -> bool {
        self.mask.layout() != Layout::Undef
    }

    /// The attribute for an output: its mask has the output's dimensions and, with the layout `any`, its layout.
    pub(super) fn resolved(&self, dst: &MemoryDesc) -> Result<Self> {
        let mut resolved =
            Self { numbers: MemoryDesc::dense(dst.dims(), DataType::U8)?, ..self.clone() };
        if self.has_mask() {
            resolved.mask = self.mask.resolved_for("attr: mask_desc", ("dst_desc", dst))?;
            resolved.mask.check_output("attr: mask_desc")?;
            if resolved.mask.is_blocked() {
                return Err(Error::unimplemented(
                    "attr: the layout of the dropout's mask is blocked",
                ));
            }
        }
        Ok(resolved)
    }

    /// Checks the probability of an execution; `address` is null if it has none.
    ///
    /// # Safety
    /// Otherwise there is an f32.
    pub(crate) unsafe fn check_probability(address: *const u8) -> Result<()> {
        if address.is_null() {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller; no alignment is needed.
        let p = unsafe { address.cast::<f32>().read_unaligned() };
        if (0.0..=1.0).contains(&p) {
            return Ok(());
        }
        Err(Error::invalid(format_args!(
            "args: NORM_ARG_ATTR_DROPOUT_PROBABILITY: {p} is not a probability from 0 to 1"
        )))
    }

    /// The same with other descriptors, made by `change`.
    pub(super) fn with_tensors(
        &self,
        mut change: impl FnMut(&MemoryDesc) -> Result<MemoryDesc>,
    ) -> Result<Self> {
        let mask = if self.has_mask() { change(&self.mask)? } else { MemoryDesc::EMPTY };
        Ok(Self { mask, numbers: change(&self.numbers)?, ..self.clone() })
    }

    /// Appends the execution arguments.
    pub(super) fn add_arguments(&self, arguments: &mut Vec<OpArgument>) -> Result<()> {
        let mut add = |id, name, usage, desc: MemoryDesc| {
            let name = ArgumentName::Tensor(name);
            heap::push(arguments, OpArgument { id, name, usage, desc })
        };
        let single = |data_type| match self.host_scalars {
            true => MemoryDesc::host_scalar(data_type),
            false => MemoryDesc::dense(&[1], data_type),
        };
        let (probability, seed) = (single(DataType::F32)?, single(self.seed)?);
        if self.has_mask() {
            let mask = self.mask.clone();
            add(sys::NORM_ARG_ATTR_DROPOUT_MASK, "attr_dropout_mask", Usage::Output, mask)?;
        }
        let id = sys::NORM_ARG_ATTR_DROPOUT_PROBABILITY;
        add(id, "attr_dropout_probability", Usage::Input, probability)?;
        add(sys::NORM_ARG_ATTR_DROPOUT_SEED, "attr_dropout_seed", Usage::Input, seed)?;
        if self.has_offset {
            let offset = single(DataType::S64)?;
            add(sys::NORM_ARG_ATTR_DROPOUT_OFFSET, "attr_dropout_offset", Usage::Input, offset)?;
        }
        Ok(())
    }
}

/// `u8:s64:offset`: the mask, the seed and the rest.
impl fmt::Display for Dropout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mask = if self.has_mask() { "u8" } else { "undef" };
        let offset = if self.has_offset { ":offset" } else { "" };
        let host = if self.host_scalars { ":host" } else { "" };
        write!(f, "{mask}:{}{offset}{host}", self.seed.name())
    }
}
