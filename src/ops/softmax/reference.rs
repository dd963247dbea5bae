//! The formula as plain loops over scalars, for any layout and types. It has the bits of the vector implementations, or
//! computes in f64.

use super::kernel::reciprocal;
use super::problem::{Operands, Softmax, SoftmaxAlgorithm};
use super::wide;
use crate::error::Result;
use crate::heap::{Counted, counted};
use crate::primitive::{Execution, Implementation, Variant};
use crate::rows::{PlainRow, PlainRows, plain_fold, plain_map};
use crate::simd::math;
use norm_sys as sys;

/// The index of the sums' logarithms among the tensors.
const STATS: usize = 2;

/// Supports every problem.
pub(super) fn make(
    problem: &Softmax,
    variant: &'static Variant,
) -> Result<Box<Counted<dyn Implementation>>> {
    let Operands { mut ids, mut descs, output, .. } = problem.operands();
    let stats = problem.stats();
    let has_stats = stats.is_some();
    if let Some(stats) = stats {
        (ids[STATS], descs[STATS]) = (sys::NORM_ARG_SOFTMAX_STATS, stats);
    }
    let (forward, algorithm) = (problem.prop_kind.is_forward(), problem.algorithm);
    let rows = PlainRows::new(ids, &descs, output, problem.chain(&descs[1], None)?)?;
    let wide = problem.is_wide();
    Ok(counted(Reference { variant, forward, algorithm, has_stats, wide, rows })?)
}

struct Reference {
    variant: &'static Variant,
    forward: bool,
    algorithm: SoftmaxAlgorithm,
    has_stats: bool,
    /// Whether it computes in f64.
    wide: bool,
    rows: PlainRows,
}

impl Implementation for Reference {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        if self.wide { 0 } else { self.rows.scratchpad_size() }
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        if self.wide {
            let cols = self.rows.cols();
            return self.rows.each(execution, &|_, [first, second, third]| {
                if self.forward {
                    let stats = self.has_stats.then_some(third);
                    wide::forward_row(self.algorithm, cols, [first, second], stats);
                } else {
                    wide::backward_row(self.algorithm, cols, [first, second, third]);
                }
            });
        }
        self.rows.run(execution, &|[first, second, third], values| {
            if self.forward {
                forward_row(self.algorithm, first, self.has_stats.then_some(third), values);
            } else {
                backward_row(self.algorithm, first, second, values);
            }
        })
    }
}

fn forward_row(
    algorithm: SoftmaxAlgorithm,
    src: PlainRow<'_>,
    stats: Option<PlainRow<'_>>,
    values: &mut [f32],
) {
    let largest = (0..values.len()).fold(f32::NEG_INFINITY, |max, col| {
        let x = src.get(col);
        if x > max { x } else { max }
    });
    let max = algorithm.distance_from(largest);
    let distance = |col| src.get(col) - max;
    for (col, value) in values.iter_mut().enumerate() {
        *value = distance(col);
    }
    plain_map(values, math::exp);
    let sum = plain_fold(values.len(), |col| (values[col], 1.0));
    let mut log = [sum as f32];
    plain_map(&mut log, math::log);
    if let Some(stats) = stats {
        let nan = (0..values.len()).any(|col| src.get(col).is_nan());
        let value = if largest.is_infinite() { largest } else { max + log[0] };
        stats.set(0, if nan { f32::NAN } else { value });
    }
    match algorithm {
        SoftmaxAlgorithm::Accurate | SoftmaxAlgorithm::AccurateInfAsZero => {
            let reciprocal = reciprocal(sum);
            for value in values {
                *value *= reciprocal;
            }
        }
        SoftmaxAlgorithm::Log => {
            for (col, value) in values.iter_mut().enumerate() {
                *value = distance(col) - log[0];
            }
        }
    }
}

fn backward_row(
    algorithm: SoftmaxAlgorithm,
    dst: PlainRow<'_>,
    diff_dst: PlainRow<'_>,
    values: &mut [f32],
) {
    for (col, value) in values.iter_mut().enumerate() {
        *value = dst.get(col);
    }
    match algorithm {
        SoftmaxAlgorithm::Accurate | SoftmaxAlgorithm::AccurateInfAsZero => {
            let terms = |col| (diff_dst.get(col), values[col]);
            let sum = plain_fold(values.len(), terms) as f32;
            for (col, value) in values.iter_mut().enumerate() {
                *value *= diff_dst.get(col) - sum;
            }
        }
        SoftmaxAlgorithm::Log => {
            let sum = plain_fold(values.len(), |col| (diff_dst.get(col), 1.0)) as f32;
            plain_map(values, math::exp);
            for (col, value) in values.iter_mut().enumerate() {
                *value = (-*value).mul_add(sum, diff_dst.get(col));
            }
        }
    }
}
