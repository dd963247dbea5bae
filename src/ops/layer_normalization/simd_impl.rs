//! The vector implementations of a level: one for rows of a few dense vectors, one for short rows, and one for all
//! rows.
//!
//! The first two run groups of rows. The general kernel runs rows that do not fill a group.

use super::backward;
use super::chain;
use super::dense::Dense;
use super::f64_backward;
use super::f64_forward;
use super::forward;
use super::gradient::Kind;
use super::job::{ChainEntry, Forward, ShortRows};
use super::plan::Plan;
use super::problem::LayerNormalization;
use super::schedule::ROWS_AFTER_F64;
use super::short;
use super::types::KernelTypes;
use crate::error::{Error, Result};
use crate::heap::{Counted, counted};
use crate::primitive::{Execution, Implementation, Variant};
use crate::rows::{JoinEntry, join_entry};
use crate::simd::Level;
use crate::tensor::MemoryDesc;

/// The vector implementation of a level, or why it does not support the problem.
pub(super) fn make(
    problem: &LayerNormalization,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<Counted<dyn Implementation>>> {
    let p = problem;
    for (name, desc) in [("src", &p.src), ("dst", &p.dst), ("diff_src", &p.diff_src)] {
        if desc.is_blocked() {
            let text = format_args!("the layout of {name} is blocked");
            return Err(Error::unimplemented(text));
        }
    }
    for post_op in p.attr.post_ops.iter() {
        if post_op.operands().any(MemoryDesc::is_blocked) {
            let text = "the layout of a post-operation's tensor is blocked";
            return Err(Error::unimplemented(text));
        }
    }
    let types = KernelTypes::new(p, level)?;
    let run = run(p, (level, variant.algorithm), &types)?;
    let plan = Plan::staged(p, level, &types)?;
    if variant.algorithm == DENSE && !plan.has_dense_rows() {
        return Err(Error::unimplemented("rows of src or dst are not dense"));
    }
    Ok(counted(Vectorized { variant, plan, run })?)
}

/// The names of the specialized implementations.
pub(super) const DENSE: &str = "dense";
pub(super) const SHORT: &str = "short";

/// The kernels of an implementation, or why it does not support the problem.
fn run(
    p: &LayerNormalization,
    (level, algorithm): (Level, &str),
    types: &KernelTypes,
) -> Result<Run> {
    let special = algorithm == DENSE || algorithm == SHORT;
    if special && p.stat_cols() < p.cols {
        return Err(Error::unimplemented("the mean square is taken over part of the row"));
    }
    if special && p.flags.global_stats() {
        return Err(Error::unimplemented("the statistics are given"));
    }
    let too_long =
        || Err(Error::unimplemented("no kernel for short rows of these types and columns"));
    if !p.prop_kind.is_forward() {
        let kind = Kind::new(p, level, types);
        let chain = chain::entry(level, types, kind, p.cols).filter(|_| special);
        if algorithm == DENSE || special && chain.is_none() {
            return too_long();
        }
        let (f64_rows, join) = (f64_backward::entry(level, types.all()), join_entry(level));
        return Ok(Run::Backward(backward::entry(level, types, kind), chain, f64_rows, join));
    }
    let [src, dst, _] = types.all();
    let short = match special {
        true => short::of_rows(level, types, p.flags.rms(), p.cols),
        false => ShortRows::None,
    };
    let dense = match algorithm {
        DENSE => Dense::new(level, types, p.kernel_flags(), p.cols),
        _ => Dense::NONE,
    };
    if algorithm == DENSE && !dense.is_some() || special && matches!(short, ShortRows::None) {
        return too_long();
    }
    let f64_rows = f64_forward::entry(level, src, dst);
    Ok(Run::Forward(forward::entry(level, types, p.kernel_flags()), short, dense, f64_rows))
}

/// The kernels of a direction. The f64 kernel runs the rows that the others leave.
enum Run {
    Forward(Option<forward::Entry>, ShortRows, Dense, f64_forward::Entry),
    Backward(Option<backward::Entry>, Option<ChainEntry>, f64_backward::Entry, JoinEntry),
}

/// Runs rows `row` to `last - 1`.
///
/// # Safety
/// The rows exist, no other thread runs them, and the CPU supports the level of the kernels.
unsafe fn forward_rows(
    (entry, dense, f64_rows): (Option<forward::Entry>, &Dense, f64_forward::Entry),
    job: &Forward<'_>,
    mut row: usize,
    last: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let Some(entry) = entry else { return f64_rows(job, row, last) };
        let mut left_a_row = false;
        loop {
            let end = if left_a_row { last.min(row + ROWS_AFTER_F64) } else { last };
            if !left_a_row {
                row = dense.run(job, row, last);
            }
            row = entry(job, row, end);
            if row == last {
                return;
            }
            let stops = row < end;
            left_a_row = stops && dense.is_some();
            if stops {
                f64_rows(job, row, row + 1);
                row += 1;
            }
        }
    }
}

struct Vectorized {
    variant: &'static Variant,
    plan: Plan,
    run: Run,
}

impl Implementation for Vectorized {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        self.plan.scratchpad_size()
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let plan = &self.plan;
        match self.run {
            Run::Forward(entry, short, dense, f64_rows) => {
                let kernels = (entry, &dense, f64_rows);
                plan.run_forward(execution, short, &|job, first, last| {
                    // SAFETY: the execution's buffers were checked, each row is run once, and the CPU supports the
                    // level.
                    unsafe {
                        if job.has_short_groups(first) || !job.has_stretches() {
                            return forward_rows(kernels, job, first, last);
                        }
                        let mut row = first;
                        while row < last {
                            let stretch = job.stretch(row, last);
                            forward_rows(kernels, &job.within(&stretch), row, stretch.end);
                            row = stretch.end;
                        }
                    }
                })
            }
            Run::Backward(entry, short, f64_rows, join) => {
                plan.run_backward(execution, (join, short), &|job, mut row, last, sums| {
                    // SAFETY: as above; each block has sums of its own.
                    unsafe {
                        loop {
                            let Some(entry) = entry else { return f64_rows(job, row, last, sums) };
                            row = entry(job, row, last, sums);
                            if row == last {
                                return;
                            }
                            f64_rows(job, row, row + 1, sums);
                            row += 1;
                        }
                    }
                })
            }
        }
    }
}
