//! The operation: its queries, and which implementation runs a problem.

use super::problem::Gated;
use super::view::coincide;
use super::{reference, vector};
use crate::error::{Error, Result};
use crate::heap::Counted;
use crate::primitive::{
    Answer, Arguments, Implementation, Op, OpArgument, PropKind, Quantized, Variant,
    check_outputs_apart,
};
use crate::tensor::MemoryDesc;
use crate::text::Capitals;
use norm_sys as sys;
use std::fmt;

impl Op for Gated {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_gated
    }

    fn name(&self) -> &'static str {
        "gated"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        Some(self.prop_kind)
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        match what {
            sys::norm_query_alg_kind => Some(Answer::U32(self.function.code())),
            sys::norm_query_alpha_f32 => Some(Answer::F32(self.numbers.alpha)),
            _ => None,
        }
    }

    fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
        let id = match (what, index) {
            (sys::norm_query_exec_arg_md, index) => index,
            (sys::norm_query_src_md, 0) => sys::NORM_ARG_SRC,
            (sys::norm_query_src_md, 1) => sys::NORM_ARG_SRC_1,
            (sys::norm_query_dst_md, 0) => sys::NORM_ARG_DST,
            // As in normalizations.
            (sys::norm_query_dst_md, 3) => {
                self.attr.scales.get(sys::NORM_ARG_DST).filter(Quantized::is_dynamic)?;
                sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_DST
            }
            (sys::norm_query_dst_md, 4) => sys::NORM_ARG_ATTR_ZERO_POINTS | sys::NORM_ARG_DST,
            (sys::norm_query_diff_src_md, 0) => sys::NORM_ARG_DIFF_SRC,
            (sys::norm_query_diff_src_md, 1) => sys::NORM_ARG_DIFF_SRC_1,
            (sys::norm_query_diff_dst_md, 0) => sys::NORM_ARG_DIFF_DST,
            _ => return None,
        };
        self.argument(id)
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (function, packing) = (self.function.name(), self.packing.name());
        write!(f, "alg:{function} packing:{packing} alpha:{}", self.numbers.alpha)?;
        if !self.numbers.are_neutral() {
            write!(f, " limit:{} shift:{}", self.numbers.limit, self.numbers.shift)?;
        }
        Ok(())
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(level) => vector::make(self, variant, level),
            None => reference::make(self, variant),
        }
    }

    /// Checks that an output which shares an input's buffer coincides with the gate or up in it, so every element is
    /// read before it is overwritten.
    fn check_buffers(&self, arguments: &Arguments) -> Result<()> {
        check_outputs_apart(&self.arguments, arguments)?;
        for output in &self.outputs {
            let buffer = arguments.get(output.argument);
            if buffer.is_null() || output.desc.has_zero_dim() {
                continue;
            }
            let shares = |argument: i32| arguments.get(argument) == buffer;
            let mut sharing = self.inputs.iter().filter(|input| shares(input.argument)).peekable();
            let Some(first) = sharing.peek().map(|input| input.argument) else { continue };
            if sharing.any(|input| coincide(input, output, self.cols)) {
                continue;
            }
            let name = |id: i32| self.arguments.iter().find(|a| a.id == id).map(|a| a.name);
            if let (Some(input), Some(output)) = (name(first), name(output.argument)) {
                return Err(Error::invalid(format_args!(
                    "args: {} and {} share a buffer, but differ in data type or layout",
                    Capitals(input),
                    Capitals(output)
                )));
            }
        }
        Ok(())
    }
}
