//! Which tensors a problem has, and what the primitive does with each.

use super::problem::{Direction, Problem};
use crate::execution::Role;
use crate::fill::DataType;
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT, NORM_ARG_DIFF_SRC, NORM_ARG_DST,
    NORM_ARG_MEAN, NORM_ARG_SCALE, NORM_ARG_SHIFT, NORM_ARG_SRC, NORM_ARG_VARIANCE,
};

/// How many elements a tensor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One for each element of src.
    Elements,
    /// One for each row.
    Rows,
    /// One for each column.
    Columns,
    /// As many as the tensor of this number among the attributes' has.
    Attribute(usize),
}

/// A tensor of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The argument id.
    pub id: i32,
    /// What people call it.
    pub name: &'static str,
    /// What the primitive does with it.
    pub role: Role,
    /// How many elements it has.
    pub extent: Extent,
    /// The type of its elements.
    pub data_type: DataType,
}

/// The tensors of a problem, the unused ones among them.
pub fn arguments(problem: &Problem) -> Vec<Spec> {
    let mut all = own_arguments(problem);
    all.extend(problem.attribute_tensors().iter().enumerate().map(|(index, tensor)| Spec {
        id: tensor.id,
        name: tensor.name(),
        role: Role::Input,
        extent: Extent::Attribute(index),
        data_type: tensor.data_type,
    }));
    all
}

fn own_arguments(problem: &Problem) -> Vec<Spec> {
    use Extent::{Columns, Elements, Rows};
    use Role::{Input, Output, Unused};
    let &Problem { direction, flags, src_dt, dst_dt, ss_dt, .. } = problem;
    let spec = |id, name, role, extent, data_type| Spec { id, name, role, extent, data_type };
    let only_if = |used: bool, role: Role| if used { role } else { Unused };
    let stat_dt = DataType::F32;
    if direction.is_forward() {
        let statistics = if flags.global_stats {
            Input
        } else {
            only_if(direction == Direction::ForwardTraining, Output)
        };
        let dst = if problem.attributes.reads_dst() { Role::Updated } else { Output };
        let mean = only_if(!flags.rms_norm, statistics);
        return vec![
            spec(NORM_ARG_SRC, "src", Input, Elements, src_dt),
            spec(NORM_ARG_DST, "dst", dst, Elements, dst_dt),
            spec(NORM_ARG_MEAN, "mean", mean, Rows, stat_dt),
            spec(NORM_ARG_VARIANCE, "variance", statistics, Rows, stat_dt),
            spec(NORM_ARG_SCALE, "scale", only_if(flags.scale, Input), Columns, ss_dt),
            spec(NORM_ARG_SHIFT, "shift", only_if(flags.shift, Input), Columns, ss_dt),
        ];
    }
    let weights = direction == Direction::Backward;
    let diff_scale = only_if(flags.scale && weights, Output);
    let diff_shift = only_if(flags.shift && weights, Output);
    vec![
        spec(NORM_ARG_SRC, "src", Input, Elements, src_dt),
        spec(NORM_ARG_DIFF_DST, "diff_dst", Input, Elements, dst_dt),
        spec(NORM_ARG_DIFF_SRC, "diff_src", Output, Elements, src_dt),
        spec(NORM_ARG_MEAN, "mean", only_if(!flags.rms_norm, Input), Rows, stat_dt),
        spec(NORM_ARG_VARIANCE, "variance", Input, Rows, stat_dt),
        spec(NORM_ARG_SCALE, "scale", only_if(flags.scale, Input), Columns, ss_dt),
        spec(NORM_ARG_SHIFT, "shift", Unused, Columns, ss_dt),
        spec(NORM_ARG_DIFF_SCALE, "diff_scale", diff_scale, Columns, ss_dt),
        spec(NORM_ARG_DIFF_SHIFT, "diff_shift", diff_shift, Columns, ss_dt),
    ]
}

impl Problem {
    /// The input and the output that share a buffer when working in place.
    pub fn inplace_pair(&self) -> (i32, i32) {
        if self.direction.is_forward() {
            (NORM_ARG_SRC, NORM_ARG_DST)
        } else {
            (NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC)
        }
    }
}
