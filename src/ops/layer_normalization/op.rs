//! The operation: its queries, and which implementation runs a problem.

use super::problem::LayerNormalization;
use super::simd_impl::{DENSE, SHORT};
use super::{reference, simd_impl};
use crate::error::{Error, Result};
use crate::heap::Counted;
use crate::primitive::{Answer, Arguments, Implementation, Op, OpArgument, PropKind, Variant};
use crate::simd::Level;
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::fmt;

/// Each level has a general implementation, one for short rows, and one for rows of a few dense vectors.
static VARIANTS: [Variant; 11] = [
    Variant { name: c"simd:avx512:dense", level: Some(Level::Avx512), algorithm: DENSE },
    Variant { name: c"simd:avx512:short", level: Some(Level::Avx512), algorithm: SHORT },
    Variant::general(c"simd:avx512", Some(Level::Avx512)),
    Variant { name: c"simd:avx2:dense", level: Some(Level::Avx2), algorithm: DENSE },
    Variant { name: c"simd:avx2:short", level: Some(Level::Avx2), algorithm: SHORT },
    Variant::general(c"simd:avx2", Some(Level::Avx2)),
    Variant { name: c"simd:neon:dense", level: Some(Level::Neon), algorithm: DENSE },
    Variant { name: c"simd:neon:short", level: Some(Level::Neon), algorithm: SHORT },
    Variant::general(c"simd:neon", Some(Level::Neon)),
    Variant::general(c"simd:portable", Some(Level::Portable)),
    Variant::general(c"ref:any", None),
];

impl Op for LayerNormalization {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_layer_normalization
    }

    fn name(&self) -> &'static str {
        "layer_normalization"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        Some(self.prop_kind)
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        (**self).query(what)
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
        (**self).query_md(what, index)
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).auxiliary(f)
    }

    fn variants(&self) -> &'static [Variant] {
        &VARIANTS
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(level) => simd_impl::make(self, variant, level),
            None => reference::make(self, variant),
        }
    }

    fn check_buffers(&self, arguments: &Arguments) -> Result<()> {
        let (input, output, names) = if self.prop_kind.is_forward() {
            ((&self.src, sys::NORM_ARG_SRC), (&self.dst, sys::NORM_ARG_DST), "SRC and DST")
        } else {
            (
                (&self.dst, sys::NORM_ARG_DIFF_DST),
                (&self.diff_src, sys::NORM_ARG_DIFF_SRC),
                "DIFF_DST and DIFF_SRC",
            )
        };
        let shared = arguments.get(input.1);
        // Empty tensors share nothing, whatever their addresses.
        if !shared.is_null()
            && shared == arguments.get(output.1)
            && !input.0.has_zero_dim()
            && !input.0.same_layout(output.0)
        {
            return Err(Error::invalid(format_args!(
                "args: {names} share a buffer, but differ in data type or layout"
            )));
        }
        self.check_shared(arguments)
    }
}
