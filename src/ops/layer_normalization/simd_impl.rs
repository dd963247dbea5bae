//! The vector implementations: one per level, for layouts whose last dimension is dense.

use super::backward;
use super::columns::{JoinEntry, join_entry};
use super::forward;
use super::plan::Plan;
use super::problem::LayerNormalization;
use super::short;
use super::wide;
use crate::primitive::{Execution, Implementation, Variant};
use crate::simd::Level;
use crate::tensor::MemoryDesc;

/// The vector implementation at a level, or why it does not fit.
pub(super) fn make(
    problem: &LayerNormalization,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<dyn Implementation>, String> {
    let dense = |desc: &MemoryDesc| {
        let last = desc.ndims() - 1;
        desc.dims()[last] <= 1 || desc.strides()[last] == 1
    };
    let p = problem;
    let tensors = [("src", &p.src), ("dst", &p.dst), ("diff_src", &p.diff_src)];
    for (name, desc) in tensors {
        if desc.is_blocked() {
            return Err(format!("the layout of {name} is cut into blocks"));
        }
        if desc.ndims() > 0 && !dense(desc) {
            return Err(format!("the last dimension of {name} is not dense"));
        }
    }
    let plan = Plan::new(problem);
    let (src, dst) = (LayerNormalization::type_of(&p.src), LayerNormalization::type_of(&p.dst));
    let flags = p.flags;
    let run = if p.prop_kind.is_forward() {
        let affine = if flags.scale() { forward::SCALE } else { 0 }
            | if flags.shift() { forward::SHIFT } else { 0 };
        Run::Forward(
            forward::entry(level, src, dst, flags.rms(), affine),
            short::entry(level, src, flags.rms(), p.cols),
            wide::forward_entry(level),
        )
    } else {
        let mode = if flags.rms() { backward::RMS } else { backward::LAYER }
            | if flags.global_stats() { backward::GLOBAL } else { 0 };
        let params = if flags.scale() { backward::READ_SCALE } else { 0 }
            | if p.writes_scale() { backward::SUM_SCALE } else { 0 }
            | if p.writes_shift() { backward::SUM_SHIFT } else { 0 };
        let diff_src = LayerNormalization::type_of(&p.diff_src);
        let entry = backward::entry(level, (src, dst, diff_src), mode, params);
        Run::Backward(entry, wide::backward_entry(level), join_entry(level))
    };
    Ok(Box::new(Vectorized { variant, plan, run }))
}

/// The kernel of a direction, and the one for rows that it stops at.
enum Run {
    Forward(forward::Entry, Option<short::Entry>, wide::ForwardEntry),
    Backward(backward::Entry, wide::BackwardEntry, JoinEntry),
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
            Run::Forward(entry, short, wide) => {
                plan.run_forward(execution, short, &|job, mut row, last| {
                    // SAFETY: the execution's buffers were checked, rows are given out once, and the
                    // machine has the level.
                    unsafe {
                        loop {
                            row = entry(job, row, last);
                            if row == last {
                                return;
                            }
                            wide(job, row);
                            row += 1;
                        }
                    }
                })
            }
            Run::Backward(entry, wide, join) => {
                plan.run_backward(execution, join, &|job, mut row, last, sums| {
                    // SAFETY: as above; each block has sums of its own.
                    unsafe {
                        loop {
                            row = entry(job, row, last, sums);
                            if row == last {
                                return;
                            }
                            wide(job, row, sums);
                            row += 1;
                        }
                    }
                })
            }
        }
    }
}
