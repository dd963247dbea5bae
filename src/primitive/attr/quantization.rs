//! Scales and zero points: which arguments have them, their data types and masks.

use super::super::argument::name_of;
use super::super::{ArgumentName, OpArgument, Usage};
use crate::error::{Error, Result};
use crate::tensor::{DataType, MAX_NDIMS, MemoryDesc};
use crate::text::{Capitals, joined, shown};
use arrayvec::ArrayVec;
use norm_sys as sys;
use std::fmt;

/// The maximum number of arguments with scales or zero points.
const MOST: usize = 5;

/// The scales or the zero points of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantized {
    /// If bit d is set, there is one value per index of dimension d.
    pub(crate) mask: u32,
    pub(crate) data_type: DataType,
    /// Whether indices share a value in groups.
    pub(crate) has_groups: bool,
    /// How many indices of the last dimension share a value, if groups are only along it.
    pub(crate) group: Option<i64>,
    pub(crate) mode: QuantizationMode,
    /// Whether the value is a host scalar.
    pub(crate) on_host: bool,
}

/// When values are determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum QuantizationMode {
    /// By the caller.
    #[default]
    Static,
    /// From a tensor's elements: the largest divided by that of the type.
    DynamicFp,
    /// From a tensor's elements: a power of two.
    DynamicMx,
}

impl Quantized {
    pub(crate) fn is_dynamic(&self) -> bool {
        self.mode != QuantizationMode::Static
    }
}

/// The scales or the zero points of all arguments.
#[derive(Clone, Debug)]
pub(crate) struct Quantization {
    /// Added to an argument's id to get the id of its values.
    base: i32,
    what: &'static str,
    entries: ArrayVec<(i32, Quantized), MOST>,
}

impl Quantization {
    pub(super) fn new(base: i32, what: &'static str) -> Self {
        Self { base, what, entries: ArrayVec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The values of an argument.
    pub(crate) fn get(&self, arg: i32) -> Option<Quantized> {
        self.entries.iter().find(|(a, _)| *a == arg).map(|(_, quantized)| *quantized)
    }

    pub(crate) fn set(&mut self, arg: i32, quantized: Quantized) -> Result<()> {
        self.entries.retain(|(a, _)| *a != arg);
        if self.entries.is_full() {
            let what = self.what;
            let text = format_args!("arg: more than {MOST} arguments with a {what}");
            return Err(Error::unimplemented(text));
        }
        self.entries.push((arg, quantized));
        self.entries.sort_unstable_by_key(|(a, _)| *a);
        Ok(())
    }

    pub(super) fn check(
        &self,
        name: &str,
        accepted: &[i32],
        (masks, dynamic): (bool, bool),
    ) -> Result<()> {
        for (arg, quantized) in &self.entries {
            let arg_name = Capitals(name_of(*arg));
            if !accepted.contains(arg) {
                return Err(Error::unimplemented(format_args!(
                    "attr: {name} does not support a {} for {arg_name}",
                    self.what
                )));
            }
            if dynamic
                && *arg == sys::NORM_ARG_DST
                && (quantized.is_dynamic() || quantized.has_groups)
            {
                // The operation checks them.
                continue;
            }
            if quantized.is_dynamic() {
                return Err(Error::unimplemented(format_args!(
                    "attr: {name} does not compute a {} for {arg_name}",
                    self.what
                )));
            }
            if quantized.has_groups {
                return Err(Error::unimplemented(format_args!(
                    "attr: {name} does not support a {} per group for {arg_name}",
                    self.what
                )));
            }
            if quantized.mask != 0 && !masks {
                return Err(Error::unimplemented(format_args!(
                    "attr: {name} supports a single {} for {arg_name}, not mask {:#x}",
                    self.what, quantized.mask
                )));
            }
        }
        Ok(())
    }

    /// The argument that holds the values of `arg`. It has the dimensions of `tensor` that are in
    /// the mask, and 1 for the others.
    pub(super) fn argument(&self, arg: i32, tensor: &MemoryDesc) -> Result<Option<OpArgument>> {
        let Some(quantized) = self.get(arg) else { return Ok(None) };
        let kept = |(d, dim): (usize, &i64)| if quantized.mask >> d & 1 == 1 { *dim } else { 1 };
        if quantized.mask >> tensor.ndims() != 0 {
            return Err(Error::invalid(format_args!(
                "attr: mask {:#x} of {}'s {} has dimensions that the tensor lacks",
                quantized.mask,
                Capitals(name_of(arg)),
                self.what
            )));
        }
        let mut dims: ArrayVec<i64, MAX_NDIMS> =
            tensor.dims().iter().enumerate().map(kept).collect();
        if let (Some(group), Some(last)) = (quantized.group, dims.last_mut()) {
            *last /= group;
        }
        let desc = match quantized.on_host {
            true => MemoryDesc::host_scalar(quantized.data_type)?,
            false => MemoryDesc::dense(&dims, quantized.data_type)?,
        };
        let scales = self.base == sys::NORM_ARG_ATTR_SCALES;
        let name = if scales { ArgumentName::Scales(arg) } else { ArgumentName::ZeroPoints(arg) };
        let usage = if quantized.is_dynamic() { Usage::Output } else { Usage::Input };
        Ok(Some(OpArgument { id: self.base | arg, name, usage, desc }))
    }

    /// `src:0:f32+dst:0:f32`, the syntax of benchdnn's command line.
    pub(super) fn describe(&self) -> impl fmt::Display {
        let one = |(arg, q): &(i32, Quantized)| {
            let (arg, q) = (*arg, *q);
            shown(move |f| {
                write!(f, "{}:{}:{}", name_of(arg), q.mask, q.data_type.name())?;
                if q.on_host {
                    f.write_str(":host_scalar")?;
                }
                if let Some(group) = q.group {
                    write!(f, ":1x{group}")?;
                }
                match q.mode {
                    QuantizationMode::Static => Ok(()),
                    QuantizationMode::DynamicFp => f.write_str(":dynamic_fp"),
                    QuantizationMode::DynamicMx => f.write_str(":dynamic_mx"),
                }
            })
        };
        joined(self.entries.iter().map(one), "+")
    }
}
