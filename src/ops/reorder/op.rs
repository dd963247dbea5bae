//! The operation: its queries, and which implementation runs a problem.

use super::problem::Reorder;
use super::{reference, runs};
use crate::primitive::{Implementation, Op, OpArgument, PropKind, Variant};
use norm_sys as sys;

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

    fn auxiliary(&self) -> String {
        String::new()
    }

    fn implement(
        &self,
        variant: &'static Variant,
    ) -> std::result::Result<Box<dyn Implementation>, String> {
        match variant.level {
            Some(level) => runs::make(self, variant, level),
            None => Ok(reference::make(self, variant)),
        }
    }
}
