//! The operation: its queries, and which implementation runs a problem.

use super::problem::Softmax;
use super::{reference, vector};
use crate::error::Result;
use crate::heap::Counted;
use crate::primitive::{Answer, Implementation, Op, OpArgument, PropKind, Variant};
use norm_sys as sys;
use std::fmt;

impl Op for Softmax {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_softmax
    }

    fn name(&self) -> &'static str {
        "softmax"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        Some(self.prop_kind)
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        match what {
            sys::norm_query_alg_kind => Some(Answer::U32(self.algorithm.code())),
            sys::norm_query_axis_s32 => Some(Answer::S32(self.axis as i32)),
            _ => None,
        }
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "alg:{} axis:{}", self.algorithm.name(), self.axis)
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(level) => vector::make(self, variant, level),
            None => reference::make(self, variant),
        }
    }
}
