//! The data of a problem, and what the oracle expects of it.

use super::problem::LnormProblem;
use crate::check::Kind;
use crate::data_type::DataType;
use crate::fill::Fill;
use crate::fill::lnorm::{self, LnormData, LnormShape};
use crate::oracle::lnorm::{BackwardInput, Flags, ForwardInput, backward, forward};
use crate::post_op_chain::Chain;
use crate::problem::{Data, Expected, Problem as _};
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT, NORM_ARG_DIFF_SRC, NORM_ARG_DST,
    NORM_ARG_MEAN, NORM_ARG_SCALE, NORM_ARG_SHIFT, NORM_ARG_SRC, NORM_ARG_VARIANCE,
};

/// The seed of all data: a line that reproduces a case makes the same data again.
const SEED: u64 = 1;

/// Makes the data of a shape.
pub(super) fn make(shape: &LnormShape, fill: Fill) -> Data {
    let LnormData { src, scale, shift, mean, variance, diff_dst } = lnorm::lnorm(shape, fill, SEED);
    Data::from([
        (NORM_ARG_SRC, src),
        (NORM_ARG_SCALE, scale),
        (NORM_ARG_SHIFT, shift),
        (NORM_ARG_MEAN, mean),
        (NORM_ARG_VARIANCE, variance),
        (NORM_ARG_DIFF_DST, diff_dst),
    ])
}

/// What the oracle expects, without attributes.
pub(super) fn expected(shape: &LnormShape, data: &Data) -> Vec<Expected> {
    if shape.forward { expected_forward(shape, data) } else { expected_backward(shape, data) }
}

/// The kind of dst and diff_src.
fn result(shape: &LnormShape) -> Kind {
    let double = [shape.src_dt, shape.dst_dt].iter().all(|&dt| dt == DataType::F64);
    if double { Kind::Double } else { Kind::Result }
}

fn expected_forward(shape: &LnormShape, data: &Data) -> Vec<Expected> {
    let &LnormShape { rows, cols, epsilon, flags, .. } = shape;
    let Flags { global_stats, scale, shift, rms_norm } = flags;
    let output = forward(&ForwardInput {
        rows,
        cols,
        src: data.get(NORM_ARG_SRC),
        scale: scale.then(|| data.get(NORM_ARG_SCALE)),
        shift: shift.then(|| data.get(NORM_ARG_SHIFT)),
        // A problem without rows has given statistics, too: none.
        mean: (global_stats && !rms_norm).then(|| data.get(NORM_ARG_MEAN)),
        variance: global_stats.then(|| data.get(NORM_ARG_VARIANCE)),
        epsilon: f64::from(epsilon),
        flags,
    });
    vec![
        Expected::new(NORM_ARG_DST, result(shape), output.dst, output.dst_terms),
        Expected::new(NORM_ARG_MEAN, Kind::Mean, output.mean, output.mean_terms),
        Expected::new(NORM_ARG_VARIANCE, Kind::Variance, output.variance, Vec::new()),
    ]
}

fn expected_backward(shape: &LnormShape, data: &Data) -> Vec<Expected> {
    let &LnormShape { rows, cols, epsilon, flags, .. } = shape;
    // For f64 the library computes the statistics from src: the given ones are f32.
    let double = [shape.src_dt, shape.dst_dt].contains(&DataType::F64);
    let none = vec![0.0; if double && !flags.global_stats { rows } else { 0 }];
    let variance = if none.is_empty() { data.get(NORM_ARG_VARIANCE) } else { &none };
    let output = backward(&BackwardInput {
        rows,
        cols,
        src: data.get(NORM_ARG_SRC),
        diff_dst: data.get(NORM_ARG_DIFF_DST),
        scale: flags.scale.then(|| data.get(NORM_ARG_SCALE)),
        mean: (!flags.rms_norm).then(|| data.get(NORM_ARG_MEAN)),
        variance,
        epsilon: f64::from(epsilon),
        flags,
    });
    let sum = |id, values, terms| Expected::new(id, Kind::ColumnSum, values, terms);
    let diff_src = (output.diff_src, output.diff_src_terms);
    vec![
        Expected::new(NORM_ARG_DIFF_SRC, result(shape), diff_src.0, diff_src.1),
        sum(NORM_ARG_DIFF_SCALE, output.diff_scale, output.diff_scale_terms),
        sum(NORM_ARG_DIFF_SHIFT, output.diff_shift, output.diff_shift_terms),
    ]
}

/// Replaces what dst should be by what the attributes make of it.
pub(super) fn with_attributes(
    problem: &LnormProblem,
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
pub(super) fn adjust(shape: &LnormShape, data: &mut Data, imported: &[i32]) {
    if !imported.contains(&NORM_ARG_SRC) {
        return;
    }
    let rms_norm = shape.flags.rms_norm;
    let output = forward(&ForwardInput {
        rows: shape.rows,
        cols: shape.cols,
        src: data.get(NORM_ARG_SRC),
        scale: None,
        shift: None,
        mean: None,
        variance: None,
        epsilon: f64::from(shape.epsilon),
        flags: Flags { rms_norm, ..Flags::default() },
    });
    for (id, computed) in [(NORM_ARG_MEAN, output.mean), (NORM_ARG_VARIANCE, output.variance)] {
        if !imported.contains(&id) && !data.get(id).is_empty() {
            data.set(id, computed.iter().map(|&value| DataType::F32.round(value)).collect());
        }
    }
}
