//! The operation: its queries, and which implementation runs a problem.

use super::problem::Eltwise;
use crate::error::Result;
use crate::heap::Counted;
use crate::primitive::{Answer, Implementation, Op, OpArgument, PropKind, Variant};
use norm_sys as sys;
use std::fmt;

impl Op for Eltwise {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_eltwise
    }

    fn name(&self) -> &'static str {
        "eltwise"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        Some(self.prop_kind)
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        match what {
            sys::norm_query_alg_kind => Some(Answer::U32(self.function.code)),
            sys::norm_query_alpha_f32 => Some(Answer::F32(self.function.alpha)),
            sys::norm_query_beta_f32 => Some(Answer::F32(self.function.beta)),
            _ => None,
        }
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((name, suffix), function) = (self.function.name(), &self.function);
        write!(f, "alg:{name}{suffix} alpha:{} beta:{}", function.alpha, function.beta)
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        self.elementwise().implement(variant)
    }
}
