//! Primitive attributes.
//!
//! Every attribute that C sets is stored and can be queried. An operation declares what it supports
//! in [`Accepted`], and [`Attr::check`] rejects the rest. [`Attr::arguments`] lists the execution
//! arguments that attributes add.

mod post_ops;
mod quantization;

use super::{AccumulationMode, FpmathMode, OpArgument, RoundingMode, ScratchpadMode};
use crate::error::{Error, Result};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
pub(crate) use post_ops::{Depthwise, MAX_POST_OPS, PostOp, PostOps};
use quantization::Quantization;
pub(crate) use quantization::Quantized;
use std::sync::atomic::{AtomicU32, Ordering};

/// The attributes of a primitive.
#[derive(Clone, Debug)]
pub(crate) struct Attr {
    pub(crate) scratchpad_mode: ScratchpadMode,
    pub(crate) fpmath_mode: FpmathMode,
    pub(crate) fpmath_applies_to_int: bool,
    pub(crate) accumulation_mode: AccumulationMode,
    /// Whether determinism was requested. Results are always deterministic.
    pub(crate) deterministic: i32,
    /// Arguments whose rounding mode is not the environment's.
    rounding: Vec<(i32, RoundingMode)>,
    pub(crate) scales: Quantization,
    pub(crate) zero_points: Quantization,
    pub(crate) post_ops: PostOps,
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
}

impl Accepted {
    /// No attributes.
    pub(crate) const NOTHING: Self =
        Self { scales: &[], zero_points: &[], masks: false, post_op: |_| false };
}

impl Default for Attr {
    fn default() -> Self {
        Self {
            scratchpad_mode: ScratchpadMode::default(),
            fpmath_mode: default_fpmath_mode(),
            fpmath_applies_to_int: false,
            accumulation_mode: AccumulationMode::default(),
            deterministic: 0,
            rounding: Vec::new(),
            scales: Quantization::new(sys::NORM_ARG_ATTR_SCALES, "scale"),
            zero_points: Quantization::new(sys::NORM_ARG_ATTR_ZERO_POINTS, "zero point"),
            post_ops: PostOps::default(),
        }
    }
}

impl Attr {
    /// Only outputs can have another rounding mode than the environment's.
    pub(crate) fn set_rounding(&mut self, arg: i32, mode: RoundingMode) -> Result<()> {
        let outputs = [sys::NORM_ARG_DST, sys::NORM_ARG_DIFF_SRC];
        if mode != RoundingMode::Environment && !outputs.contains(&arg) {
            return Err(Error::invalid(format!(
                "arg: argument {arg} cannot have this rounding mode"
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
        let refused =
            |what: &str| Err(Error::unimplemented(format!("attr: {name} does not support {what}")));
        if let Some((arg, _)) = self.rounding.first() {
            return refused(&format!("a rounding mode for argument {arg}"));
        }
        if self.fpmath_applies_to_int && self.fpmath_mode != FpmathMode::Strict {
            return refused("a math mode that applies to integers");
        }
        if !matches!(
            self.accumulation_mode,
            AccumulationMode::Strict | AccumulationMode::Relaxed | AccumulationMode::Any
        ) {
            return refused(&format!("accumulation mode {}", self.accumulation_mode.name()));
        }
        self.scales.check(name, accepted.scales, accepted.masks)?;
        self.zero_points.check(name, accepted.zero_points, accepted.masks)?;
        match self.post_ops.iter().position(|post_op| !(accepted.post_op)(post_op)) {
            Some(at) => {
                refused(&format!("post-operation {} (entry {at})", self.post_ops[at].name()))
            }
            None => Ok(()),
        }
    }

    /// The same for tensors whose dimension `axis` was moved to the end; scales and zero points have mask 0.
    pub(crate) fn with_last(&self, axis: usize) -> Self {
        let mut attr = self.clone();
        attr.post_ops.move_to_end(axis);
        attr
    }

    /// The execution arguments that the attributes add: scales and zero points of `tensors`, and
    /// the operands of post-operations on `dst`. The layout of `dst` must be resolved.
    pub(crate) fn arguments(
        &self,
        tensors: &[(i32, &MemoryDesc)],
        dst: &MemoryDesc,
    ) -> Result<Vec<OpArgument>> {
        let mut arguments = Vec::new();
        for (arg, tensor) in tensors {
            arguments.extend(self.scales.argument(*arg, tensor)?);
            arguments.extend(self.zero_points.argument(*arg, tensor)?);
        }
        arguments.extend(self.post_ops.resolved(dst)?.arguments());
        Ok(arguments)
    }

    /// The attributes for verbose lines; empty for the defaults.
    pub(crate) fn describe(&self) -> String {
        let mut parts = Vec::new();
        if self.scratchpad_mode != ScratchpadMode::Library {
            parts.push(format!("attr-scratchpad:{}", self.scratchpad_mode.name()));
        }
        if self.fpmath_mode != FpmathMode::Strict {
            let ints = if self.fpmath_applies_to_int { ":true" } else { "" };
            parts.push(format!("attr-fpmath:{}{ints}", self.fpmath_mode.name()));
        }
        if self.accumulation_mode != AccumulationMode::Strict {
            parts.push(format!("attr-acc-mode:{}", self.accumulation_mode.name()));
        }
        if self.deterministic != 0 {
            parts.push(format!("attr-deterministic:{}", self.deterministic));
        }
        for (prefix, entries) in
            [("attr-scales:", &self.scales), ("attr-zero-points:", &self.zero_points)]
        {
            if !entries.is_empty() {
                parts.push(format!("{prefix}{}", entries.describe()));
            }
        }
        if !self.post_ops.is_empty() {
            parts.push(format!("attr-post-ops:{}", self.post_ops.describe()));
        }
        parts.join(" ")
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
