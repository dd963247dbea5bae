//! What scales, post-ops and dynamic scales make of the oracle's dst.

use super::problem::LnormProblem;
use crate::attributes::Policy;
use crate::check::Kind;
use crate::data_type::DataType;
use crate::oracle::dynamic::{self, Quantized};
use crate::oracle::estimate::Estimate;
use crate::post_op_chain::Chain;
use crate::problem::{Data, Expected, Problem as _};
use crate::step_chain;
use norm_sys::{NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_DST, NORM_ARG_SRC};

/// Below this a value with an error is a zero that nothing was added to: the error is that of
/// subnormal products.
const ZERO: f64 = f32::MIN_POSITIVE as f64 / 1024.0;

/// Replaces what dst should be by what the attributes make of it.
pub(super) fn applied(problem: &LnormProblem, data: &Data, plain: &[Expected]) -> Vec<Expected> {
    let tensors = problem.attribute_tensors();
    // In place dst holds src.
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
    let mut all = Vec::new();
    for expected in plain {
        match expected.id {
            NORM_ARG_DST if problem.group() > 0 => {
                all.extend(quantized(problem, &chain.applied_to(expected)));
            }
            NORM_ARG_DST => all.push(chain.applied_to(expected)),
            _ => all.push(expected.clone()),
        }
    }
    all
}

/// dst with dynamic scales, the scales, and the zero points if there are any.
fn quantized(problem: &LnormProblem, dst: &Expected) -> Vec<Expected> {
    let scales = problem.attributes.scale(NORM_ARG_DST).expect("a problem with dynamic scales");
    let with_zero_points = problem.attributes.zero_point(NORM_ARG_DST).is_some();
    let kind = match scales.policy {
        Policy::Mx => dynamic::Kind::PowerOfTwo,
        _ if with_zero_points && problem.dst_dt == DataType::U8 => dynamic::Kind::Range,
        _ => dynamic::Kind::Largest,
    };
    let values: Vec<Estimate> = (dst.values.iter().zip(&*dst.terms))
        .map(|(&value, &error)| match value == 0.0 && error < ZERO {
            true => Estimate::exact(0.0),
            false => Estimate { value, error },
        })
        .collect();
    let (group, data_type, scale_type) = (problem.group(), problem.dst_dt, scales.data_type);
    let how = dynamic::Problem { kind, group, data_type, scale_type };
    let Quantized { elements, scales, zero_points } = dynamic::quantize(&how, &values);
    let (id, points) = (NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS);
    vec![
        step_chain::expected(NORM_ARG_DST, Kind::Chain, &elements),
        step_chain::expected(id | NORM_ARG_DST, Kind::Rounded, &scales),
        step_chain::expected(points | NORM_ARG_DST, Kind::Rounded, &zero_points),
    ]
}
