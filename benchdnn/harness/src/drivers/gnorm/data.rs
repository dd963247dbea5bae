//! The data of a problem, and the expected results.

use super::parameters::GnormProblem;
use crate::fill::Fill;
use crate::fill::gnorm::gnorm;
use crate::fill::lnorm::LnormData;
use crate::normalization::{self, Case, Inputs, Oracle};
use crate::oracle::gnorm::{Input, Sizes, backward_with, forward_with};
use crate::oracle::lnorm::{Around, BackwardOutput, ForwardOutput};
use crate::post_op_chain::Chain;
use crate::problem::{Data, Expected, Problem as _};
use norm_sys::*;

/// The seed of all data. A line that reproduces a case makes the same data again.
const SEED: u64 = 1;

/// Makes the data of a problem.
pub(super) fn make(problem: &GnormProblem, fill: Fill) -> Data {
    let LnormData { src, scale, shift, mean, variance, diff_dst, residual, gate, diff_sum } =
        gnorm(&problem.sizes(), &problem.shape(), fill, SEED);
    Data::from([
        (NORM_ARG_SRC, src),
        (NORM_ARG_SCALE, scale),
        (NORM_ARG_SHIFT, shift),
        (NORM_ARG_MEAN, mean),
        (NORM_ARG_VARIANCE, variance),
        (NORM_ARG_DIFF_DST, diff_dst),
        (NORM_ARG_RESIDUAL, residual),
        (NORM_ARG_GATE, gate),
        (NORM_ARG_DIFF_RESIDUAL_DST, diff_sum),
    ])
}

/// The groups as the oracle's rows.
struct Groups {
    sizes: Sizes,
    epsilon: f64,
}

impl Groups {
    fn of(problem: &GnormProblem) -> Groups {
        Groups { sizes: problem.sizes(), epsilon: f64::from(problem.epsilon) }
    }

    fn input<'a>(&self, inputs: &Inputs<'a>) -> Input<'a> {
        let &Inputs { src, diff_dst, scale, shift, mean, variance, flags } = inputs;
        let (sizes, epsilon) = (self.sizes, self.epsilon);
        Input { sizes, src, diff_dst, scale, shift, mean, variance, epsilon, flags }
    }
}

impl Oracle for Groups {
    fn forward(&self, inputs: &Inputs<'_>, around: Around<'_>) -> ForwardOutput {
        forward_with(&self.input(inputs), around)
    }

    fn backward(&self, inputs: &Inputs<'_>, around: Around<'_>) -> BackwardOutput {
        backward_with(&self.input(inputs), around)
    }

    fn channel(&self, element: usize) -> usize {
        element / self.sizes.positions % self.sizes.channels
    }
}

/// The expected results, without attributes.
pub(super) fn expected(problem: &GnormProblem, data: &Data) -> Vec<Expected> {
    Case { oracle: &Groups::of(problem), shape: &problem.shape(), data }.expected()
}

/// Replaces the expected dst by that after the attributes.
pub(super) fn with_attributes(
    problem: &GnormProblem,
    data: &Data,
    plain: &[Expected],
) -> Vec<Expected> {
    let tensors = problem.attribute_tensors();
    // In place, dst contains src.
    let (before, held) = match problem.works_in_place() {
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
    normalization::with_attributes(&chain, problem.dynamic(), plain)
}

/// Computes statistics that were not imported from an imported src.
pub(super) fn adjust(problem: &GnormProblem, data: &mut Data, imported: &[i32]) {
    let case = Case { oracle: &Groups::of(problem), shape: &problem.shape(), data };
    let computed = case.adjusted(imported);
    computed.into_iter().for_each(|(id, values)| data.set(id, values));
}
