//! The reference implementation: the formula as plain scalar loops, for any layout and data type.
//!
//! It adds in the order that `simd::loops` documents and rounds where the kernels round, so its results have the same
//! bits. It runs the problems that no vector implementation supports, and it is the oracle of the tests.

mod backward;
mod row;
mod statistics;
mod sums;

use self::backward::Gradient;
use self::row::{Parameter, RowView, Tensor};
use self::statistics::{f64_statistics, statistics};
use super::job::{Forward, ShortRows, StatisticsUse};
use super::plan::Plan;
use super::problem::LayerNormalization;
use super::types::{has_chain, post_ops_fit};
use crate::error::{Error, Result};
use crate::heap::{Counted, counted};
use crate::primitive::{BoundChain, Execution, Implementation, Padding, PostOpChain, Variant};
use crate::rows::join_entry;
use crate::rows::statistics::{Statistics, mean_residual, reciprocal};
use crate::simd::Level;
use crate::tensor::DataType;
use norm_sys as sys;

/// Supports every problem.
pub(super) fn make(
    problem: &LayerNormalization,
    variant: &'static Variant,
) -> Result<Box<Counted<dyn Implementation>>> {
    if problem.has_steps() {
        return Err(Error::unimplemented("steps around the normalization run on staged rows"));
    }
    let forward = problem.prop_kind.is_forward();
    Ok(counted(Reference {
        variant,
        plan: Plan::reference(problem)?,
        src: Tensor::new(&problem.src)?,
        dst: Tensor::new(&problem.dst)?,
        diff_src: Tensor::new(&problem.diff_src)?,
        padding: Padding::of(if forward { &problem.dst } else { &problem.diff_src })?,
        chain: if forward { problem.chain(None, None)? } else { None },
        f32_statistics: has_chain(problem) && !post_ops_fit(problem)?,
        forward,
        rms: problem.flags.rms(),
    })?)
}

struct Reference {
    variant: &'static Variant,
    plan: Plan,
    src: Tensor,
    /// diff_dst in backward.
    dst: Tensor,
    diff_src: Tensor,
    /// The padding of the output.
    padding: Padding,
    /// Scales and post-operations of dst.
    chain: Option<PostOpChain>,
    /// Whether statistics are summed as for an f32 dst, because the chain is applied in f32.
    f32_statistics: bool,
    forward: bool,
    rms: bool,
}

impl Implementation for Reference {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        self.plan.scratchpad_size()
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let output = if self.forward { sys::NORM_ARG_DST } else { sys::NORM_ARG_DIFF_SRC };
        // SAFETY: the execution's buffers were checked.
        unsafe { self.padding.clear(execution.arguments.get(output)) };
        if self.forward {
            // SAFETY: the execution's buffers were checked.
            let bound = self.chain.as_ref().map(|chain| unsafe { chain.bind(execution.arguments) });
            self.plan.run_forward(execution, ShortRows::None, &|job, first, last| {
                for row in first..last {
                    self.forward_row(job, row, bound.as_ref());
                }
            })
        } else {
            let gradient = Gradient {
                src: &self.src,
                diff_dst: &self.dst,
                diff_src: &self.diff_src,
                rms: self.rms,
            };
            let join = join_entry(Level::Portable);
            self.plan.run_backward(execution, (join, None), &|job, first, last, sums| {
                gradient.rows(job, first, last, sums);
            })
        }
    }
}

impl Reference {
    fn forward_row(&self, job: &Forward<'_>, row: usize, bound: Option<&BoundChain<'_>>) {
        let src = self.src.row(job.src_type, job.src.cast_mut(), row);
        let dst = self.dst.row(job.dst_type, job.dst, row);
        let given = job.statistics == StatisticsUse::Given;
        let double = [job.src_type, job.dst_type].contains(&DataType::F64);
        let in_f32 = if double {
            None
        } else if given {
            // SAFETY: the statistics are given, and the row exists.
            unsafe { job.given(row) }
        } else {
            let dst_type = if self.f32_statistics { DataType::F32 } else { job.dst_type };
            statistics(src, job.stat_cols, self.rms, dst_type)
        };
        let found = in_f32.unwrap_or_else(|| {
            if !given {
                return f64_statistics(src, job.stat_cols, self.rms);
            }
            // SAFETY: as above.
            let (mean, variance) = unsafe { job.given_values(row) };
            Statistics { mean: f64::from(mean), variance: f64::from(variance) }
        });
        // SAFETY: the row exists, and no other thread writes it.
        unsafe { job.write(row, &found) };
        if in_f32.is_some() {
            self.normalize_in_f32(job, (src, dst), &found, |value, col| {
                // SAFETY: the execution's buffers were checked, and the element exists.
                bound.map_or(value, |bound| unsafe { bound.applied(value, (row, col)) })
            });
        } else {
            normalize_in_f64(job, src, &found, |value, col| match bound {
                None => dst.set_f64(col, value),
                Some(bound) => {
                    // SAFETY: as above.
                    dst.set(col, unsafe { bound.applied(value as f32, (row, col)) });
                }
            });
        }
    }

    fn normalize_in_f32(
        &self,
        job: &Forward<'_>,
        (src, dst): (RowView<'_>, RowView<'_>),
        found: &Statistics,
        post_ops: impl Fn(f32, usize) -> f32,
    ) {
        let (scale, shift) = (Parameter(job.scale), Parameter(job.shift));
        let high = found.mean as f32;
        let r = reciprocal(found.variance, job.epsilon) as f32;
        let low = mean_residual(found.mean, high, r);
        for col in 0..job.cols {
            let x = src.get(col);
            let xhat = if self.rms { x * r } else { (x - high).mul_add(r, low) };
            let value = match (scale.get(col), shift.get(col)) {
                (None, None) => xhat,
                (Some(scale), None) => xhat * scale,
                (None, Some(shift)) => xhat + shift,
                (Some(scale), Some(shift)) => xhat.mul_add(scale, shift),
            };
            dst.set(col, post_ops(value, col));
        }
    }
}

fn normalize_in_f64(
    job: &Forward<'_>,
    src: RowView<'_>,
    found: &Statistics,
    store: impl Fn(f64, usize),
) {
    let (scale, shift) = (Parameter(job.scale), Parameter(job.shift));
    let r = reciprocal(found.variance, job.epsilon);
    for col in 0..job.cols {
        let xhat = (src.get_f64(col) - found.mean) * r;
        let value = match (scale.get(col), shift.get(col)) {
            (None, None) => xhat,
            (Some(scale), None) => xhat * f64::from(scale),
            (None, Some(shift)) => xhat + f64::from(shift),
            (Some(scale), Some(shift)) => xhat.mul_add(f64::from(scale), f64::from(shift)),
        };
        store(value, col);
    }
}
