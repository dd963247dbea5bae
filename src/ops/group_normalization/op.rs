//! The operation as the primitives see it: its queries, and which implementation runs it.

use super::problem::{Flags, GroupNormalization};
use super::{reference, vector};
use crate::error::Result;
use crate::heap::Counted;
use crate::primitive::{Answer, Implementation, Op, OpArgument, PropKind, Usage, Variant};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::fmt::{self, Write};

/// Whether queries describe arguments that the flags exclude, as oneDNN's do.
const TELLS_UNUSED: bool = cfg!(feature = "onednn-abi");

impl GroupNormalization {
    /// The descriptor that oneDNN gives for an argument that the problem does not use.
    fn unused(&self, argument: i32) -> Option<&MemoryDesc> {
        match argument {
            sys::NORM_ARG_MEAN => self.statistics_usage().map(|_| &self.stat),
            sys::NORM_ARG_SCALE => Some(&self.parameters),
            sys::NORM_ARG_SHIFT if self.prop_kind.is_forward() => Some(&self.parameters),
            sys::NORM_ARG_DIFF_SCALE | sys::NORM_ARG_DIFF_SHIFT
                if self.prop_kind == PropKind::Backward =>
            {
                Some(&self.parameters)
            }
            _ => None,
        }
    }
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
            sys::norm_query_epsilon_f32 => Some(Answer::F32(self.epsilon)),
            sys::norm_query_flags => Some(Answer::U32(self.flags.0)),
            sys::norm_query_group_size_s64 => Some(Answer::S64(self.shape.groups as i64)),
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
            sys::norm_query_dst_md if forward => {
                first(&self.dst).or_else(|| statistics(Usage::Output))
            }
            sys::norm_query_diff_dst_md if !forward => first(&self.dst),
            sys::norm_query_diff_src_md if !forward => first(&self.diff_src),
            // As in oneDNN: scale and shift share a descriptor, and forward has it under two indices.
            sys::norm_query_weights_md if forward && index == 1 => Some(&self.parameters),
            sys::norm_query_weights_md => first(&self.parameters),
            sys::norm_query_diff_weights_md if matches!(index, 0 | 1) => {
                (self.writes_scale() || self.writes_shift()).then_some(&self.parameters)
            }
            sys::norm_query_exec_arg_md => {
                let argument = self.arguments.iter().find(|a| a.id == index);
                argument.map(|a| &a.desc).or_else(|| self.unused(index).filter(|_| TELLS_UNUSED))
            }
            _ => None,
        }
    }

    fn problem(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = self.src.dims();
        write!(f, "g{}mb{}ic{}", self.shape.groups, dims[0], dims[1])?;
        let names = &["id", "ih", "iw"][5 - dims.len()..];
        names.iter().zip(&dims[2..]).try_for_each(|(name, dim)| write!(f, "{name}{dim}"))
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("flags:")?;
        let mut letters = Flags::LETTERS.iter().filter(|(bit, _)| self.flags.0 & bit != 0);
        letters.try_for_each(|(_, letter)| f.write_char(*letter))?;
        write!(f, " eps:{}", self.epsilon)
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(level) => vector::make(self, variant, level),
            None => reference::make(self, variant),
        }
    }
}
