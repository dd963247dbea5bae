//! The gradients that `--check=grad` checks.

use super::parameters::LnormProblem;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::normalization::Inplace;
use crate::oracle::lnorm::Flags;
use crate::problem::{Dependence, Gradient, Gradients, Unit};
use crate::steps::{Residual, Steps};
use norm_sys::*;

/// The backward problem, and the forward problem that it differentiates. The forward one omits intermediate rounding,
/// because a rounded function is constant between its steps.
pub(super) fn of(problem: &LnormProblem) -> Result<Gradients, String> {
    if problem.direction.is_forward() {
        let message = "--check=grad is for --dir=BWD_D and BWD_DW; forward has no gradients";
        return Err(message.to_owned());
    }
    let dst_dt = if problem.src_dt == DataType::F64 { DataType::F64 } else { DataType::F32 };
    let backward = LnormProblem { inplace: Inplace::Nothing, ..problem.clone() };
    let direction = Direction::ForwardTraining;
    let exact = |residual| Residual { sum: Some(DataType::F32), exact: true, ..residual };
    let residual = problem.steps.residual.map(exact);
    let forward = LnormProblem {
        direction,
        // With a residual, src gets the type of the sum that backward reads, so the sum is not rounded.
        src_dt: residual.map_or(problem.src_dt, |_| problem.shape().src_dt),
        dst_dt,
        flags: Flags { round_first: false, ..problem.flags },
        steps: Steps { residual, ..problem.steps.clone() },
        ..backward.clone()
    };
    let unit = if problem.flags.rms_norm { Unit::Rms } else { Unit::Deviation };
    let rows = Dependence::Parts { count: problem.rows(), inner: 1, unit, noun: "row" };
    let gate = Dependence::Parts { count: problem.rows(), inner: 1, unit: Unit::Rms, noun: "row" };
    let columns = Dependence::Linear { inner: 1, count: problem.cols(), noun: "column" };
    let mut of = vec![
        (NORM_ARG_SRC, NORM_ARG_DIFF_SRC, rows),
        (NORM_ARG_SCALE, NORM_ARG_DIFF_SCALE, columns),
        (NORM_ARG_SHIFT, NORM_ARG_DIFF_SHIFT, columns),
        (NORM_ARG_GATE, NORM_ARG_DIFF_GATE, gate),
    ];
    let mut results = vec![(NORM_ARG_DST, NORM_ARG_DIFF_DST)];
    let mut saved = vec![(NORM_ARG_MEAN, NORM_ARG_MEAN), (NORM_ARG_VARIANCE, NORM_ARG_VARIANCE)];
    if residual.is_some() {
        // Both summands have the same gradient.
        of.push((NORM_ARG_RESIDUAL, NORM_ARG_DIFF_SRC, rows));
        results.push((NORM_ARG_RESIDUAL_DST, NORM_ARG_DIFF_RESIDUAL_DST));
        saved.push((NORM_ARG_RESIDUAL_DST, NORM_ARG_SRC));
    }
    let gradient = |(input, output, dependence)| Gradient { input, output, dependence };
    Ok(Gradients {
        forward: Box::new(forward),
        backward: Box::new(backward),
        results,
        saved,
        of: of.into_iter().map(gradient).collect(),
    })
}
