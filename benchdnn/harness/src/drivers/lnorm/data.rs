//! The data of a problem, and the expected results.

use super::parameters::LnormProblem;
use crate::fill::Fill;
use crate::fill::lnorm::{self, LnormData, LnormShape};
use crate::normalization::{self, Case, Inputs, Oracle};
use crate::oracle::lnorm::{
    Around, BackwardInput, BackwardOutput, ForwardInput, ForwardOutput, backward_with, forward_with,
};
use crate::post_op_chain::Chain;
use crate::problem::{Data, Expected, Problem as _};
use norm_sys::*;

/// The seed of all data. A line that reproduces a case makes the same data again.
const SEED: u64 = 1;

/// Makes the data of a shape.
pub(super) fn make(shape: &LnormShape, fill: Fill) -> Data {
    let LnormData { src, scale, shift, mean, variance, diff_dst, residual, gate, diff_sum } =
        lnorm::lnorm(shape, fill, SEED);
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

/// The rows as the oracle normalizes them.
struct Rows<'a>(&'a LnormShape);

impl Oracle for Rows<'_> {
    fn forward(&self, inputs: &Inputs<'_>, around: Around<'_>) -> ForwardOutput {
        let &LnormShape { rows, cols, epsilon, .. } = self.0;
        let &Inputs { src, scale, shift, mean, variance, flags, .. } = inputs;
        let epsilon = f64::from(epsilon);
        let input = ForwardInput { rows, cols, src, scale, shift, mean, variance, epsilon, flags };
        forward_with(&input, around)
    }

    fn backward(&self, inputs: &Inputs<'_>, around: Around<'_>) -> BackwardOutput {
        let &LnormShape { rows, cols, epsilon, .. } = self.0;
        let &Inputs { src, diff_dst, scale, mean, flags, .. } = inputs;
        // Variances of 0 are unusable, so the statistics are computed.
        let none = vec![0.0; if inputs.variance.is_none() { rows } else { 0 }];
        let variance = inputs.variance.unwrap_or(&none);
        let mean = mean.or((!flags.rms_norm).then_some(&none[..]));
        let epsilon = f64::from(epsilon);
        let input =
            BackwardInput { rows, cols, src, diff_dst, scale, mean, variance, epsilon, flags };
        backward_with(&input, around)
    }

    fn channel(&self, element: usize) -> usize {
        element % self.0.cols
    }
}

/// The expected results, without attributes.
pub(super) fn expected(shape: &LnormShape, data: &Data) -> Vec<Expected> {
    Case { oracle: &Rows(shape), shape, data }.expected()
}

/// Replaces the expected dst by that after the attributes.
pub(super) fn with_attributes(
    problem: &LnormProblem,
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
pub(super) fn adjust(shape: &LnormShape, data: &mut Data, imported: &[i32]) {
    let computed = Case { oracle: &Rows(shape), shape, data }.adjusted(imported);
    computed.into_iter().for_each(|(id, values)| data.set(id, values));
}
