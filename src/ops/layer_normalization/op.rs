//! The operation as the primitives see it: its queries, and which implementation runs it.

use super::problem::{Flags, LayerNormalization};
use super::simd_impl::{DENSE, SHORT};
use super::{reference, simd_impl};
use crate::error::{Error, Result};
use crate::heap::Counted;
use crate::primitive::{
    Answer, Arguments, Implementation, Op, OpArgument, PropKind, Usage, Variant,
};
use crate::simd::Level;
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::fmt::{self, Write};

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

/// Whether queries describe arguments that the flags exclude, as oneDNN's do.
const TELLS_UNUSED: bool = cfg!(feature = "onednn-abi");

impl LayerNormalization {
    /// The descriptor that oneDNN gives for an argument that the problem does not use.
    fn unused(&self, argument: i32) -> Option<&MemoryDesc> {
        match argument {
            sys::NORM_ARG_MEAN => self.statistics_usage().map(|_| &self.stat),
            sys::NORM_ARG_SCALE => Some(&self.scale_shift),
            sys::NORM_ARG_SHIFT if self.prop_kind.is_forward() => Some(&self.scale_shift),
            sys::NORM_ARG_DIFF_SCALE | sys::NORM_ARG_DIFF_SHIFT => Some(&self.diff_scale_shift),
            _ => None,
        }
    }
}

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
        match what {
            sys::norm_query_epsilon_f32 => Some(Answer::F32(self.epsilon)),
            sys::norm_query_flags => Some(Answer::U32(self.flags.0)),
            _ => None,
        }
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
        let forward = self.prop_kind.is_forward();
        let has_mean = TELLS_UNUSED || !self.flags.rms();
        let statistics = |usage| {
            let asked = index == 2 || index == 1 && has_mean;
            (asked && self.statistics_usage() == Some(usage)).then_some(&self.stat)
        };
        let first = |desc| (index == 0).then_some(desc);
        match what {
            sys::norm_query_src_md => first(&self.src).or_else(|| statistics(Usage::Input)),
            sys::norm_query_dst_md if forward => first(&self.dst)
                .or_else(|| statistics(Usage::Output))
                .or_else(|| self.computed_scales(index)),
            sys::norm_query_diff_dst_md if !forward => first(&self.dst),
            sys::norm_query_diff_src_md if !forward => first(&self.diff_src),
            // As in oneDNN: scale and shift share a descriptor, and forward has it under two indices.
            sys::norm_query_weights_md if forward && index == 1 => Some(&self.scale_shift),
            sys::norm_query_weights_md => first(&self.scale_shift),
            sys::norm_query_diff_weights_md if matches!(index, 0 | 1) => {
                (self.writes_scale() || self.writes_shift()).then_some(&self.diff_scale_shift)
            }
            sys::norm_query_exec_arg_md => {
                let argument = self.arguments.iter().find(|a| a.id == index);
                argument.map(|a| &a.desc).or_else(|| self.unused(index).filter(|_| TELLS_UNUSED))
            }
            _ => None,
        }
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("flags:")?;
        let mut letters = Flags::LETTERS.iter().filter(|(bit, _)| self.flags.0 & bit != 0);
        letters.try_for_each(|(_, letter)| f.write_char(*letter))?;
        write!(f, " eps:{}", self.epsilon)
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
        // Empty tensors share nothing, whatever their addresses are.
        if !shared.is_null()
            && shared == arguments.get(output.1)
            && !input.0.has_zero_dim()
            && !input.0.same_layout(output.0)
        {
            return Err(Error::invalid(format_args!(
                "args: {names} share a buffer, which takes one data type and layout for both"
            )));
        }
        self.check_shared(arguments)
    }
}
