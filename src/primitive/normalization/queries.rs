//! The answers to queries.

use super::Normalization;
use crate::primitive::{Answer, PropKind, Usage};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::fmt;

/// Whether queries describe arguments that the flags exclude, as oneDNN's do.
const TELLS_UNUSED: bool = cfg!(feature = "onednn-abi");

impl Normalization {
    pub(crate) fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        match what {
            sys::norm_query_epsilon_f32 => Some(Answer::F32(self.epsilon)),
            sys::norm_query_flags => Some(Answer::U32(self.flags.bits())),
            _ => None,
        }
    }

    pub(crate) fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
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
                self.writes_scale_shift().then_some(&self.diff_scale_shift)
            }
            sys::norm_query_exec_arg_md => {
                let argument = self.arguments.iter().find(|a| a.id == index);
                argument.map(|a| &a.desc).or_else(|| self.unused(index).filter(|_| TELLS_UNUSED))
            }
            _ => None,
        }
    }

    /// The descriptor that oneDNN gives for an argument that the problem does not use.
    fn unused(&self, argument: i32) -> Option<&MemoryDesc> {
        match argument {
            sys::NORM_ARG_MEAN => self.statistics_usage().map(|_| &self.stat),
            sys::NORM_ARG_SCALE => Some(&self.scale_shift),
            sys::NORM_ARG_SHIFT if self.prop_kind.is_forward() => Some(&self.scale_shift),
            sys::NORM_ARG_DIFF_SCALE | sys::NORM_ARG_DIFF_SHIFT
                if self.prop_kind == PropKind::Backward =>
            {
                Some(&self.diff_scale_shift)
            }
            _ => None,
        }
    }

    /// The descriptors of dynamic scales and zero points: the outputs 3 and 4, after dst and the statistics.
    fn computed_scales(&self, index: i32) -> Option<&MemoryDesc> {
        let base = match index {
            3 => sys::NORM_ARG_ATTR_SCALES,
            4 => sys::NORM_ARG_ATTR_ZERO_POINTS,
            _ => return None,
        };
        let id = base | sys::NORM_ARG_DST;
        self.dynamic_scales()?;
        self.has_argument(id).then(|| self.argument(id))
    }

    /// What else defines the problem, for verbose lines.
    pub(crate) fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flags:{} eps:{}", self.flags, self.epsilon)
    }
}
