//! The operation: its queries, and which implementation runs a problem.

use super::problem::Reorder;
use super::{reference, runs};
use crate::error::{Error, Result};
use crate::heap::Counted;
use crate::primitive::{Arguments, Implementation, Op, OpArgument, PropKind, Variant};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::fmt;

impl Op for Reorder {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_reorder
    }

    fn name(&self) -> &'static str {
        "reorder"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        None
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
        match what {
            sys::norm_query_src_md if index == 0 => Some(&self.src),
            sys::norm_query_dst_md if index == 0 => Some(&self.dst),
            sys::norm_query_exec_arg_md => {
                self.arguments.iter().find(|a| a.id == index).map(|a| &a.desc)
            }
            _ => None,
        }
    }

    fn auxiliary(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(level) => runs::make(self, variant, level),
            None => reference::make(self, variant),
        }
    }

    fn check_buffers(&self, arguments: &Arguments) -> Result<()> {
        let shared = arguments.get(sys::NORM_ARG_SRC);
        let is_same = self.src_type == self.dst_type && self.src.same_layout(&self.dst);
        if !shared.is_null() && shared == arguments.get(sys::NORM_ARG_DST) && !is_same {
            return Err(Error::invalid(
                "args: SRC and DST share a buffer but not their data type and layout",
            ));
        }
        Ok(())
    }
}
