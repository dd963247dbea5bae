//! Primitive attributes.
//!
//! Every attribute that C sets is stored and can be queried. An operation declares what it supports
//! in [`Accepted`], and [`Attr::check`] rejects the rest. [`Attr::arguments`] lists the execution
//! arguments that attributes add.

mod around;
mod dropout;
mod post_ops;
mod quantization;

use super::{AccumulationMode, FpmathMode, OpArgument, RoundingMode, ScratchpadMode};
use crate::error::{Error, Result};
use crate::heap::{self, Shared, counted};
use crate::mark::{Kind, Mark};
use crate::tensor::MemoryDesc;
use crate::text::shown;
pub(crate) use around::{Around, Gate, Residual, check_tensor};
use arrayvec::ArrayVec;
pub(crate) use dropout::Dropout;
use norm_sys as sys;
pub(crate) use post_ops::{Depthwise, MAX_POST_OPS, PostOp, PostOps};
use quantization::Quantization;
pub(crate) use quantization::{QuantizationMode, Quantized};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// The arguments that can have a rounding mode: the outputs.
const ROUNDED: [i32; 2] = [sys::NORM_ARG_DST, sys::NORM_ARG_DIFF_SRC];

/// The attributes of a primitive.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Attr {
    /// C holds attributes by pointer.
    pub(crate) mark: Mark,
    pub(crate) scratchpad_mode: ScratchpadMode,
    pub(crate) fpmath_mode: FpmathMode,
    pub(crate) fpmath_applies_to_int: bool,
    pub(crate) accumulation_mode: AccumulationMode,
    /// Whether determinism was requested. Results are always deterministic.
    pub(crate) deterministic: i32,
    /// Arguments whose rounding mode is not the environment's.
    rounding: ArrayVec<(i32, RoundingMode), { ROUNDED.len() }>,
    pub(crate) scales: Quantization,
    pub(crate) zero_points: Quantization,
    pub(crate) post_ops: PostOps,
    /// Steps around a normalization.
    pub(crate) around: Around,
    pub(crate) dropout: Option<Shared<Dropout>>,
    /// The logarithms of the sums of softmax.
    pub(crate) softmax_stats: Option<Shared<MemoryDesc>>,
}

/// The attributes that an operation supports; all others must have their default values.
pub(crate) struct Accepted {
    /// Arguments that may have scales.
    pub(crate) scales: &'static [i32],
    /// Arguments that may have zero points.
    pub(crate) zero_points: &'static [i32],
    /// Whether scales and zero points may vary along a tensor.
    pub(crate) masks: bool,
    pub(crate) post_op: fn(&PostOp) -> bool,
    /// Whether it is a normalization, which may have steps around it.
    pub(crate) around: bool,
    /// Whether the scales and zero points of dst may be computed from its elements.
    pub(crate) dynamic: bool,
    pub(crate) dropout: bool,
    pub(crate) softmax_stats: bool,
}

impl Accepted {
    /// No attributes.
    pub(crate) const NOTHING: Self = Self {
        scales: &[],
        zero_points: &[],
        masks: false,
        post_op: |_| false,
        around: false,
        dynamic: false,
        dropout: false,
        softmax_stats: false,
    };
}

impl Default for Attr {
    fn default() -> Self {
        Self {
            mark: Mark::part(Kind::Attr),
            scratchpad_mode: ScratchpadMode::default(),
            fpmath_mode: default_fpmath_mode(),
            fpmath_applies_to_int: false,
            accumulation_mode: AccumulationMode::default(),
            deterministic: 0,
            rounding: ArrayVec::new(),
            scales: Quantization::new(sys::NORM_ARG_ATTR_SCALES, "scale"),
            zero_points: Quantization::new(sys::NORM_ARG_ATTR_ZERO_POINTS, "zero point"),
            post_ops: PostOps::default(),
            around: Around::default(),
            dropout: None,
            softmax_stats: None,
        }
    }
}

impl Attr {
    pub(crate) fn try_clone(&self) -> Result<Self> {
        Ok(self.with_post_ops(self.post_ops.try_clone()?))
    }

    /// A copy with other post-operations.
    pub(crate) fn with_post_ops(&self, post_ops: PostOps) -> Self {
        Self {
            mark: self.mark.clone(),
            scratchpad_mode: self.scratchpad_mode,
            fpmath_mode: self.fpmath_mode,
            fpmath_applies_to_int: self.fpmath_applies_to_int,
            accumulation_mode: self.accumulation_mode,
            deterministic: self.deterministic,
            rounding: self.rounding.clone(),
            scales: self.scales.clone(),
            zero_points: self.zero_points.clone(),
            post_ops,
            around: self.around.clone(),
            dropout: self.dropout.clone(),
            softmax_stats: self.softmax_stats.clone(),
        }
    }

    /// A copy whose tensors are those for an output.
    pub(crate) fn resolved(&self, dst: &MemoryDesc) -> Result<Self> {
        let mut attr = self.with_post_ops(self.post_ops.resolved(dst)?);
        if let Some(dropout) = &self.dropout {
            attr.dropout = Some(counted(dropout.resolved(dst)?)?.into());
        }
        Ok(attr)
    }

    /// A resolved copy whose tensors on dst are changed by `change`.
    pub(crate) fn with_tensors(
        &self,
        change: impl Fn(&MemoryDesc) -> Result<MemoryDesc>,
    ) -> Result<Self> {
        let mut attr =
            self.with_post_ops(self.post_ops.with_operands(|_, _, operand| change(operand))?);
        if let Some(dropout) = &self.dropout {
            attr.dropout = Some(counted(dropout.with_tensors(&change)?)?.into());
        }
        Ok(attr)
    }

    /// The tensors on dst, resolved.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &MemoryDesc> {
        let dropout = self.dropout.iter().flat_map(|dropout| {
            let mask = dropout.has_mask().then_some(&dropout.mask);
            std::iter::once(&dropout.numbers).chain(mask)
        });
        self.post_ops.iter().flat_map(|post_op| post_op.operands()).chain(dropout)
    }

    /// Only outputs can have a rounding mode other than the environment's.
    pub(crate) fn set_rounding(&mut self, arg: i32, mode: RoundingMode) -> Result<()> {
        if mode != RoundingMode::Environment && !ROUNDED.contains(&arg) {
            return Err(Error::invalid(format_args!(
                "arg: {arg} cannot have this rounding mode; NORM_ARG_DST and NORM_ARG_DIFF_SRC can"
            )));
        }
        self.rounding.retain(|(a, _)| *a != arg);
        if mode != RoundingMode::Environment {
            self.rounding.push((arg, mode));
        }
        Ok(())
    }

    pub(crate) fn rounding_of(&self, arg: i32) -> RoundingMode {
        let found = self.rounding.iter().find(|(a, _)| *a == arg);
        found.map_or(RoundingMode::Environment, |(_, mode)| *mode)
    }

    /// Rejects attributes that operation `name` does not support as unimplemented.
    pub(crate) fn check(&self, name: &str, accepted: &Accepted) -> Result<()> {
        let refused = |what: fmt::Arguments<'_>| {
            Err(Error::unimplemented(format_args!("attr: {name} does not support {what}")))
        };
        if let Some((arg, mode)) = self.rounding.first() {
            let mode = mode.name();
            return refused(format_args!("the rounding mode {mode} for argument {arg}"));
        }
        if self.fpmath_applies_to_int && self.fpmath_mode != FpmathMode::Strict {
            return refused(format_args!("a math mode that applies to integers"));
        }
        if !matches!(
            self.accumulation_mode,
            AccumulationMode::Strict | AccumulationMode::Relaxed | AccumulationMode::Any
        ) {
            let mode = self.accumulation_mode.name();
            return refused(format_args!("accumulation mode {mode}"));
        }
        self.scales.check(name, accepted.scales, (accepted.masks, accepted.dynamic))?;
        self.zero_points.check(name, accepted.zero_points, (accepted.masks, accepted.dynamic))?;
        if let Some(what) = self.around.first().filter(|_| !accepted.around) {
            return refused(format_args!("{what}"));
        }
        let others = [
            (self.dropout.is_some() && !accepted.dropout, "dropout"),
            (self.softmax_stats.is_some() && !accepted.softmax_stats, "softmax stats"),
        ];
        if let Some((_, what)) = others.iter().find(|(is_refused, _)| *is_refused) {
            return refused(format_args!("{what}"));
        }
        match self.post_ops.iter().position(|post_op| !(accepted.post_op)(post_op)) {
            Some(at) => {
                refused(format_args!("post-operation {} (entry {at})", self.post_ops[at].name()))
            }
            None => Ok(()),
        }
    }

    /// The same for tensors whose dimension `axis` was moved to the end; scales and zero points have mask 0.
    pub(crate) fn with_last(&self, axis: usize) -> Result<Self> {
        self.with_tensors(|operand| Ok(operand.with_last(axis)))
    }

    /// Appends the execution arguments that the attributes add: scales and zero points of
    /// `tensors`, and the operands of post-operations on `dst`. The layout of `dst` must be
    /// resolved.
    pub(crate) fn add_arguments(
        &self,
        arguments: &mut Vec<OpArgument>,
        tensors: &[(i32, &MemoryDesc)],
        dst: &MemoryDesc,
    ) -> Result<()> {
        for (arg, tensor) in tensors {
            heap::extend(arguments, self.scales.argument(*arg, tensor)?)?;
            heap::extend(arguments, self.zero_points.argument(*arg, tensor)?)?;
        }
        heap::extend(arguments, self.post_ops.resolved(dst)?.arguments())?;
        match &self.dropout {
            Some(dropout) => dropout.resolved(dst)?.add_arguments(arguments),
            None => Ok(()),
        }
    }

    /// The attributes for verbose lines; empty for the defaults.
    pub(crate) fn describe(&self) -> impl fmt::Display {
        shown(move |f| {
            let mut before = "";
            let mut part = |is_set: bool, name: &str, value: &dyn fmt::Display| {
                if is_set {
                    write!(f, "{before}attr-{name}:{value}")?;
                    before = " ";
                }
                Ok(())
            };
            let scratchpad = self.scratchpad_mode;
            part(scratchpad != ScratchpadMode::Library, "scratchpad", &scratchpad.name())?;
            let ints = if self.fpmath_applies_to_int { ":true" } else { "" };
            let fpmath = self.fpmath_mode;
            let name = format_args!("{}{ints}", fpmath.name());
            part(fpmath != FpmathMode::Strict, "fpmath", &name)?;
            let accumulation = self.accumulation_mode;
            part(accumulation != AccumulationMode::Strict, "acc-mode", &accumulation.name())?;
            part(self.deterministic != 0, "deterministic", &self.deterministic)?;
            part(!self.scales.is_empty(), "scales", &self.scales.describe())?;
            part(!self.zero_points.is_empty(), "zero-points", &self.zero_points.describe())?;
            part(!self.post_ops.is_empty(), "post-ops", &self.post_ops.describe())?;
            let Around { residual, gate, partial } = &self.around;
            let shown_residual = shown(|f| self.around.describe_residual(f));
            part(residual.is_some(), "residual", &shown_residual)?;
            part(gate.is_some(), "gate", &shown(|f| self.around.describe_gate(f)))?;
            part(partial.is_some(), "partial-norm", &partial.unwrap_or(0))?;
            if let Some(dropout) = self.dropout.as_deref() {
                part(true, "dropout", dropout)?;
            }
            part(self.softmax_stats.is_some(), "softmax-stats", &"f32")
        })
    }
}

/// The math mode of new attributes.
static DEFAULT_FPMATH_MODE: AtomicU32 = AtomicU32::new(sys::norm_fpmath_mode_strict);

pub(crate) fn default_fpmath_mode() -> FpmathMode {
    FpmathMode::of_code(DEFAULT_FPMATH_MODE.load(Ordering::Relaxed)).unwrap_or_default()
}

pub(crate) fn set_default_fpmath_mode(mode: FpmathMode) {
    DEFAULT_FPMATH_MODE.store(mode.code(), Ordering::Relaxed);
}
