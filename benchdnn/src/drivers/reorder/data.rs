//! The data of a problem and what should come of it.

use super::problem::{Problem, arguments};
use crate::attributes::{PostOp, Source};
use crate::check::Kind;
use crate::execution::{Role, Tensor};
use crate::fill;
use crate::oracle::reorder::{Terms, element, precision};
use crate::verdict::Expected;
use norm_sys::{NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_DST, NORM_ARG_SRC};
use std::rc::Rc;

/// The values of a problem.
pub(super) struct Inputs {
    src: Vec<f64>,
    before: Vec<f64>,
    operands: Vec<Vec<f64>>,
}

impl Inputs {
    pub(super) fn new(problem: &Problem) -> Inputs {
        Inputs {
            src: fill::reorder(problem.count(), problem.src_dt, problem.dst_dt),
            before: match problem.attributes.reads_dst() {
                true => fill::before(&problem.dims, problem.dst_dt),
                false => Vec::new(),
            },
            operands: problem.attribute_tensors().iter().map(fill::attribute).collect(),
        }
    }

    /// The tensors with this data.
    pub(super) fn tensors(&self, problem: &Problem) -> Vec<Tensor> {
        arguments(problem)
            .into_iter()
            .enumerate()
            .map(|(index, spec)| {
                let values: &[f64] = match (spec.id, spec.role) {
                    (NORM_ARG_SRC, _) => &self.src,
                    (NORM_ARG_DST, Role::Updated) => &self.before,
                    (NORM_ARG_DST, _) => &[],
                    _ => &self.operands[index - 2],
                };
                Tensor {
                    id: spec.id,
                    name: spec.name,
                    role: spec.role,
                    elements: Rc::new(spec.layout.data_type.encode(values)),
                    layout: spec.layout,
                }
            })
            .collect()
    }

    /// What dst should be.
    pub(super) fn expected(&self, problem: &Problem) -> Expected {
        let tensors = problem.attribute_tensors();
        // The values of a tensor of quantization, and where an element's own is among them.
        let quantization = |base: i32, argument: i32| {
            let index = tensors.iter().position(|tensor| tensor.id == base | argument)?;
            let Source::Quantization(quantization) = &tensors[index].source else { return None };
            let mask = quantization.policy.mask(problem.dims.len(), 1);
            Some((&self.operands[index], mask))
        };
        let value = |found: &Option<(&Vec<f64>, u32)>, neutral: f64, position: usize| match found {
            None => neutral,
            Some((values, mask)) => values[masked_offset(&problem.dims, *mask, position)],
        };
        let src_scales = quantization(NORM_ARG_ATTR_SCALES, NORM_ARG_SRC);
        let dst_scales = quantization(NORM_ARG_ATTR_SCALES, NORM_ARG_DST);
        let src_zero_points = quantization(NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_SRC);
        let dst_zero_points = quantization(NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_DST);
        let sum = problem.attributes.post_ops.value.iter().find_map(|post_op| match post_op {
            PostOp::Sum { scale, .. } => Some(f64::from(*scale)),
            _ => None,
        });
        let precision = precision(problem.src_dt, problem.dst_dt);
        let of = |(position, &src): (usize, &f64)| {
            let terms = Terms {
                src_scale: value(&src_scales, 1.0, position),
                src_zero_point: value(&src_zero_points, 0.0, position),
                sum: sum.map(|scale| (scale, self.before[position])),
                dst_scale: value(&dst_scales, 1.0, position),
                dst_zero_point: value(&dst_zero_points, 0.0, position),
            };
            element(src, &terms, precision)
        };
        let (values, bounds): (Vec<f64>, Vec<f64>) = self.src.iter().enumerate().map(of).unzip();
        Expected {
            id: NORM_ARG_DST,
            kind: Kind::Rounded,
            values: Rc::new(values),
            terms: Rc::new(bounds),
        }
    }
}

/// The place, among values for the dimensions of the mask, of the element at `position`.
fn masked_offset(dims: &[usize], mask: u32, position: usize) -> usize {
    let (mut offset, mut stride, mut rest) = (0, 1, position);
    for (d, dim) in dims.iter().enumerate().rev() {
        if mask >> d & 1 == 1 {
            offset += rest % dim * stride;
            stride *= dim;
        }
        rest /= dim;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::masked_offset;

    #[test]
    fn masks_pick_dimensions() {
        let of = |mask, position| masked_offset(&[2, 3, 4], mask, position);
        // Element (1,2,3).
        assert_eq!([0, 1, 2, 3, 4, 5, 7].map(|mask| of(mask, 23)), [0, 1, 2, 5, 3, 7, 23]);
    }
}
