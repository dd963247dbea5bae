//! The operation: its queries, and which implementation runs a problem.

use super::problem::Reorder;
use super::{reference, runs};
use crate::error::Result;
use crate::heap::Counted;
use crate::primitive::{Implementation, Op, OpArgument, PropKind, Variant};
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

    fn auxiliary(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(level) => runs::make(self, variant, level),
            None => reference::make(self, variant),
        }
    }
}
