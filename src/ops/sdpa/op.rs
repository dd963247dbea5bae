//! The operation: its queries, and which implementation runs a problem.

use super::problem::Sdpa;
use super::sequences::Sequences;
use super::{reference, vector};
use crate::error::Result;
use crate::heap::{Counted, list};
use crate::primitive::{
    Answer, Arguments, Implementation, Op, OpArgument, PropKind, Variant, check_outputs_apart,
    check_shared_layouts,
};
use crate::simd::Level;
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::fmt;

static VARIANTS: [Variant; 7] = [
    Variant::general(c"simd:avx512_amx", Some(Level::Avx512Amx)),
    Variant::general(c"simd:avx512_bf16", Some(Level::Avx512Bf16)),
    Variant::general(c"simd:avx512", Some(Level::Avx512)),
    Variant::general(c"simd:avx2", Some(Level::Avx2)),
    Variant::general(c"simd:neon", Some(Level::Neon)),
    Variant::general(c"simd:portable", Some(Level::Portable)),
    Variant::general(c"ref:any", None),
];

impl Sdpa {
    /// A copy, for an implementation.
    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(Self { arguments: list(self.arguments.iter().cloned())?, ..*self })
    }
}

impl Op for Sdpa {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_sdpa
    }

    fn name(&self) -> &'static str {
        "sdpa"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        Some(self.prop_kind)
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        match what {
            sys::norm_query_flags => Some(Answer::U32(self.flags)),
            _ => None,
        }
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
        let id = match (what, index) {
            (sys::norm_query_exec_arg_md, id) => id,
            (sys::norm_query_src_md, 0) => sys::NORM_ARG_QUERIES,
            (sys::norm_query_src_md, 1) => sys::NORM_ARG_KEYS,
            (sys::norm_query_src_md, 2) => sys::NORM_ARG_VALUES,
            (sys::norm_query_dst_md, 0) => sys::NORM_ARG_DST,
            (sys::norm_query_diff_src_md, 0) => sys::NORM_ARG_DIFF_QUERIES,
            (sys::norm_query_diff_src_md, 1) => sys::NORM_ARG_DIFF_KEYS,
            (sys::norm_query_diff_src_md, 2) => sys::NORM_ARG_DIFF_VALUES,
            (sys::norm_query_diff_dst_md, 0) => sys::NORM_ARG_DIFF_DST,
            (sys::norm_query_workspace_md, 0) => sys::NORM_ARG_WORKSPACE,
            _ => return None,
        };
        self.arguments.iter().find(|argument| argument.id == id).map(|argument| &argument.desc)
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mask = self.mask_type.name();
        write!(f, "mask:{mask} scale:{} flags:{:#x}", self.scoring.scale, self.flags)?;
        if let Some(window) = self.masking.window {
            write!(f, " window:{}:{}", window.kind.name(), window.size)?;
            if window.first_keys > 0 {
                write!(f, ":{}", window.first_keys)?;
            }
        }
        match self.scoring.soft_cap {
            0.0 => Ok(()),
            cap => write!(f, " soft_cap:{cap}"),
        }
    }

    fn problem(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [sys::NORM_ARG_QUERIES, sys::NORM_ARG_KEYS, sys::NORM_ARG_VALUES];
        for (at, id) in names.into_iter().enumerate() {
            let separator = if at > 0 { ":" } else { "" };
            write!(f, "{separator}{}", crate::text::joined(self.desc(id).dims().iter(), "x"))?;
        }
        Ok(())
    }

    fn variants(&self) -> &'static [Variant] {
        &VARIANTS
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(level) => vector::make(self, variant, level),
            None => reference::make(self, variant),
        }
    }

    /// Also checks lengths and pages, so nothing is written if one is wrong.
    fn check_buffers(&self, arguments: &Arguments) -> Result<()> {
        check_shared_layouts(&self.arguments, arguments)?;
        check_outputs_apart(&self.arguments, arguments)?;
        self.check_shared(arguments)?;
        let pages = self.desc(sys::NORM_ARG_KEYS).dims()[0] as usize;
        // SAFETY: the buffers have the sizes of their descriptors.
        unsafe { Sequences::new(self, arguments).check(pages, &self.masking) }
    }
}
