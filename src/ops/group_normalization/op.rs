//! The operation: its queries, and which implementation runs a problem.

use super::problem::GroupNormalization;
use super::reference;
use super::vector::{self, CHANNELS_LAST};
use crate::error::Result;
use crate::heap::Counted;
use crate::primitive::{
    Answer, Arguments, Implementation, Op, OpArgument, PropKind, Variant, check_shared_layouts,
};
use crate::simd::Level;
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::CStr;
use std::fmt;

/// The implementations of each level: for channels first, and for channels last.
static VARIANTS: [Variant; 9] = [
    Variant::general(c"simd:avx512", Some(Level::Avx512)),
    channels_last(c"simd:avx512:channels_last", Level::Avx512),
    Variant::general(c"simd:avx2", Some(Level::Avx2)),
    channels_last(c"simd:avx2:channels_last", Level::Avx2),
    Variant::general(c"simd:neon", Some(Level::Neon)),
    channels_last(c"simd:neon:channels_last", Level::Neon),
    Variant::general(c"simd:portable", Some(Level::Portable)),
    channels_last(c"simd:portable:channels_last", Level::Portable),
    Variant::general(c"ref:any", None),
];

const fn channels_last(name: &'static CStr, level: Level) -> Variant {
    Variant { name, level: Some(level), algorithm: CHANNELS_LAST }
}

impl Op for GroupNormalization {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_group_normalization
    }

    fn name(&self) -> &'static str {
        "group_normalization"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        Some(self.prop_kind)
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        match what {
            sys::norm_query_group_size_s64 => Some(Answer::S64(self.shape.groups as i64)),
            _ => (**self).query(what),
        }
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
        (**self).query_md(what, index)
    }

    fn problem(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = self.src.dims();
        write!(f, "g{}mb{}ic{}", self.shape.groups, dims[0], dims[1])?;
        let names = &["id", "ih", "iw"][5 - dims.len()..];
        names.iter().zip(&dims[2..]).try_for_each(|(name, dim)| write!(f, "{name}{dim}"))
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).auxiliary(f)
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

    fn check_buffers(&self, arguments: &Arguments) -> Result<()> {
        check_shared_layouts(&self.arguments, arguments)?;
        self.check_shared(arguments)
    }
}
