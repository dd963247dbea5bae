//! The tensors of a problem, and their roles.

use super::parameters::LnormProblem;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::execution::Role;
use crate::normalization::Dynamic;
use crate::problem::{Part, Spec};
use crate::step_chain;
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT, NORM_ARG_DIFF_SRC, NORM_ARG_DST,
    NORM_ARG_MEAN, NORM_ARG_SCALE, NORM_ARG_SHIFT, NORM_ARG_SRC, NORM_ARG_VARIANCE,
};

/// The tensors of a problem, including those of oneDNN's that it does not use.
pub(super) fn own(problem: &LnormProblem) -> Vec<Spec> {
    let mut all = plain(problem);
    let forward = problem.direction.is_forward();
    all.extend(step_chain::specs(&problem.shape().steps, forward, &problem.dims));
    all.extend(problem.dynamic().iter().flat_map(Dynamic::specs));
    all
}

fn plain(problem: &LnormProblem) -> Vec<Spec> {
    use Role::{Input, Output, Unused};
    let &LnormProblem { direction, flags, src_dt, dst_dt, ss_dt, .. } = problem;
    let last = problem.dims.len() - 1;
    let elements = |id, name, role, data_type| Spec {
        part: Part::Main,
        sliced: true,
        ..Spec::new(id, name, role, problem.dims.clone(), data_type)
    };
    let rows = |id, name, role| Spec {
        sliced: true,
        ..Spec::new(id, name, role, problem.dims[..last].to_vec(), DataType::F32)
    };
    let columns = |id, name, role| Spec::new(id, name, role, problem.dims[last..].to_vec(), ss_dt);
    let weights = |id, name, role| Spec { part: Part::Weights, ..columns(id, name, role) };
    let only_if = |used: bool, role: Role| if used { role } else { Unused };
    if direction.is_forward() {
        let statistics = if flags.global_stats {
            Input
        } else {
            only_if(direction == Direction::ForwardTraining, Output)
        };
        let dst = if problem.attributes.reads_dst() { Role::Updated } else { Output };
        return vec![
            elements(NORM_ARG_SRC, "src", Input, src_dt),
            elements(NORM_ARG_DST, "dst", dst, dst_dt),
            rows(NORM_ARG_MEAN, "mean", only_if(!flags.rms_norm, statistics)),
            rows(NORM_ARG_VARIANCE, "variance", statistics),
            weights(NORM_ARG_SCALE, "scale", only_if(flags.scale, Input)),
            weights(NORM_ARG_SHIFT, "shift", only_if(flags.shift, Input)),
        ];
    }
    let full = direction == Direction::Backward;
    vec![
        // With a residual, src is the sum.
        elements(NORM_ARG_SRC, "src", Input, problem.shape().src_dt),
        elements(NORM_ARG_DIFF_DST, "diff_dst", Input, dst_dt),
        elements(NORM_ARG_DIFF_SRC, "diff_src", Output, src_dt),
        rows(NORM_ARG_MEAN, "mean", only_if(!flags.rms_norm, Input)),
        rows(NORM_ARG_VARIANCE, "variance", Input),
        weights(NORM_ARG_SCALE, "scale", only_if(flags.scale, Input)),
        // The gradient of an output gate needs the result of forward.
        weights(NORM_ARG_SHIFT, "shift", only_if(flags.shift && flags.gate_output, Input)),
        columns(NORM_ARG_DIFF_SCALE, "diff_scale", only_if(flags.scale && full, Output)),
        columns(NORM_ARG_DIFF_SHIFT, "diff_shift", only_if(flags.shift && full, Output)),
    ]
}
