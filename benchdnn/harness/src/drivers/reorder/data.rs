//! The expected results of a reorder.

use super::parameters::ReorderProblem;
use crate::attributes::{PostOp, Source};
use crate::check::Kind;
use crate::oracle::reorder::{Terms, element, precision};
use crate::problem::{Data, Expected, Problem as _};
use norm_sys::{NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_DST, NORM_ARG_SRC};

/// The expected dst, after the attributes.
pub(super) fn expected(problem: &ReorderProblem, data: &Data) -> Expected {
    let tensors = problem.attribute_tensors();
    // The values of a scale or zero-point tensor, and the dimensions along which they differ.
    let quantization = |base: i32, argument: i32| {
        let tensor = tensors.iter().find(|tensor| tensor.id == base | argument)?;
        let Source::Quantization(quantization) = &tensor.source else { return None };
        let mask = quantization.policy.mask(problem.dims.len(), 1);
        Some((data.get(tensor.id), mask))
    };
    let value = |found: &Option<(&[f64], u32)>, neutral: f64, position: usize| match found {
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
    let before = data.get(NORM_ARG_DST);
    let precision = precision(problem.src_dt, problem.dst_dt);
    let of = |(position, &src): (usize, &f64)| {
        let terms = Terms {
            src_scale: value(&src_scales, 1.0, position),
            src_zero_point: value(&src_zero_points, 0.0, position),
            sum: sum.map(|scale| (scale, before[position])),
            dst_scale: value(&dst_scales, 1.0, position),
            dst_zero_point: value(&dst_zero_points, 0.0, position),
        };
        element(src, &terms, precision)
    };
    let (values, bounds) = data.get(NORM_ARG_SRC).iter().enumerate().map(of).unzip();
    Expected::new(NORM_ARG_DST, Kind::Rounded, values, bounds)
}

/// The index of the value for `position` in a tensor with the dimensions of the mask.
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
