//! The operation: its queries, and which implementation runs a problem.

use super::problem::Binary;
use crate::error::Result;
use crate::heap::Counted;
use crate::primitive::{Answer, Implementation, Op, OpArgument, PropKind, Variant};
use crate::tensor::MemoryDesc;
use crate::text::joined;
use norm_sys as sys;
use std::fmt;

impl Op for Binary {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_binary
    }

    fn name(&self) -> &'static str {
        "binary"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        None
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        (what == sys::norm_query_alg_kind).then(|| Answer::U32(self.algorithm.code()))
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
        let id = match (what, index) {
            (sys::norm_query_exec_arg_md, id) => id,
            (sys::norm_query_src_md, 0) => sys::NORM_ARG_SRC_0,
            (sys::norm_query_src_md, 1) => sys::NORM_ARG_SRC_1,
            (sys::norm_query_src_md, 2) => sys::NORM_ARG_SRC_2,
            (sys::norm_query_dst_md, 0) => sys::NORM_ARG_DST,
            _ => return None,
        };
        self.arguments.iter().find(|argument| argument.id == id).map(|argument| &argument.desc)
    }

    fn problem(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [src0, src1] = [&self.arguments[0].desc, &self.arguments[1].desc];
        write!(f, "{}:{}", joined(src0.dims().iter(), "x"), joined(src1.dims().iter(), "x"))
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "alg:{}", self.algorithm.name())
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        self.elementwise().implement(variant)
    }
}
