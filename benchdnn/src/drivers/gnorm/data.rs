//! The data of a problem, and what the oracle expects of it.

use super::problem::GnormProblem;
use crate::check::Kind;
use crate::data_type::DataType;
use crate::fill::Fill;
use crate::fill::gnorm::gnorm;
use crate::fill::lnorm::LnormData;
use crate::oracle::gnorm::{Input, backward, forward};
use crate::oracle::lnorm::Flags;
use crate::post_op_chain::Chain;
use crate::problem::{Data, Expected, Problem as _};
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT, NORM_ARG_DIFF_SRC, NORM_ARG_DST,
    NORM_ARG_MEAN, NORM_ARG_SCALE, NORM_ARG_SHIFT, NORM_ARG_SRC, NORM_ARG_VARIANCE,
};

/// The seed of all data: a line that reproduces a case makes the same data again.
const SEED: u64 = 1;

/// Makes the data of a problem.
pub(super) fn make(problem: &GnormProblem, fill: Fill) -> Data {
    let LnormData { src, scale, shift, mean, variance, diff_dst, .. } =
        gnorm(&problem.sizes(), &problem.shape(), fill, SEED);
    Data::from([
        (NORM_ARG_SRC, src),
        (NORM_ARG_SCALE, scale),
        (NORM_ARG_SHIFT, shift),
        (NORM_ARG_MEAN, mean),
        (NORM_ARG_VARIANCE, variance),
        (NORM_ARG_DIFF_DST, diff_dst),
    ])
}

/// The inputs of the oracle.
fn input<'a>(problem: &GnormProblem, data: &'a Data) -> Input<'a> {
    let Flags { global_stats, scale, shift, rms_norm, .. } = problem.flags;
    let forward = problem.direction.is_forward();
    // For f64 backward computes the statistics from src: the given ones are f32.
    let double = [problem.src_dt, problem.dst_dt].contains(&DataType::F64);
    let given = global_stats || !(forward || double);
    Input {
        sizes: problem.sizes(),
        src: data.get(NORM_ARG_SRC),
        diff_dst: data.get(NORM_ARG_DIFF_DST),
        scale: scale.then(|| data.get(NORM_ARG_SCALE)),
        shift: (shift && forward).then(|| data.get(NORM_ARG_SHIFT)),
        mean: (given && !rms_norm).then(|| data.get(NORM_ARG_MEAN)),
        variance: given.then(|| data.get(NORM_ARG_VARIANCE)),
        epsilon: f64::from(problem.epsilon),
        flags: problem.flags,
    }
}

/// What the oracle expects, without attributes.
pub(super) fn expected(problem: &GnormProblem, data: &Data) -> Vec<Expected> {
    let double = [problem.src_dt, problem.dst_dt].iter().all(|&dt| dt == DataType::F64);
    let result = if double { Kind::Double } else { Kind::Result };
    if problem.direction.is_forward() {
        let output = forward(&input(problem, data));
        return vec![
            Expected::new(NORM_ARG_DST, result, output.dst, output.dst_terms),
            Expected::new(NORM_ARG_MEAN, Kind::Mean, output.mean, output.mean_terms),
            Expected::new(NORM_ARG_VARIANCE, Kind::Variance, output.variance, Vec::new()),
        ];
    }
    let output = backward(&input(problem, data));
    let sum = |id, values, terms| Expected::new(id, Kind::ColumnSum, values, terms);
    vec![
        Expected::new(NORM_ARG_DIFF_SRC, result, output.diff_src, output.diff_src_terms),
        sum(NORM_ARG_DIFF_SCALE, output.diff_scale, output.diff_scale_terms),
        sum(NORM_ARG_DIFF_SHIFT, output.diff_shift, output.diff_shift_terms),
    ]
}

/// Replaces what dst should be by what the attributes make of it.
pub(super) fn with_attributes(
    problem: &GnormProblem,
    data: &Data,
    plain: &[Expected],
) -> Vec<Expected> {
    let tensors = problem.attribute_tensors();
    // In place dst holds src.
    let (before, held) = match problem.inplace {
        true => (NORM_ARG_SRC, problem.src_dt),
        false => (NORM_ARG_DST, problem.dst_dt),
    };
    let chain = Chain {
        attributes: &problem.attributes,
        dims: &problem.dims,
        tensors: &tensors,
        data,
        before: data.get(before),
        held,
    };
    let through = |expected: &Expected| match expected.id {
        NORM_ARG_DST => chain.applied_to(expected),
        _ => expected.clone(),
    };
    plain.iter().map(through).collect()
}

/// Computes statistics that no file gave from a src that one did.
pub(super) fn adjust(problem: &GnormProblem, data: &mut Data, imported: &[i32]) {
    if !imported.contains(&NORM_ARG_SRC) {
        return;
    }
    let rms_norm = problem.flags.rms_norm;
    let output = forward(&Input {
        scale: None,
        shift: None,
        flags: Flags { rms_norm, ..Flags::default() },
        ..input(problem, data)
    });
    for (id, computed) in [(NORM_ARG_MEAN, output.mean), (NORM_ARG_VARIANCE, output.variance)] {
        if !imported.contains(&id) && !data.get(id).is_empty() {
            data.set(id, computed.iter().map(|&value| DataType::F32.round(value)).collect());
        }
    }
}
