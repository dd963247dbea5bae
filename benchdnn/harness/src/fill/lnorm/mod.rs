//! Data of layer and RMS normalization.

mod exact;
mod random;
mod tensors;

use super::{Fill, steps};
use crate::steps::StepShape;
pub(super) use exact::power_near;
pub use tensors::{LnormData, LnormShape};

/// Makes the data.
pub fn lnorm(shape: &LnormShape, fill: Fill, seed: u64) -> LnormData {
    let mut data = allocate(shape);
    let &LnormShape { rows, cols, forward, steps: StepShape { residual, gate, .. }, .. } = shape;
    if let Some(gate) = gate {
        data.gate = steps::gate(gate.data_type, fill, cols, seed, rows * cols);
    }
    if let Some(residual) = residual.filter(|_| !forward) {
        data.diff_sum = steps::diff_sum(residual.stored(), cols, seed, rows * cols);
    }
    match fill {
        Fill::Exact => exact::fill(shape, seed, &mut data),
        Fill::Random => random::fill(shape, seed, &mut data),
        Fill::Perf => random::fill_plainly(shape, seed, &mut data),
    }
    if shape.steps.shared_row && cols > 0 {
        // Every row reads the first one.
        let count = cols.min(data.residual.len());
        let (first, others) = data.residual.split_at_mut(count);
        others.chunks_mut(cols).for_each(|row| row.copy_from_slice(first));
    }
    data
}

/// Zeros, in the required lengths.
fn allocate(shape: &LnormShape) -> LnormData {
    let &LnormShape { rows, cols, forward, flags, .. } = shape;
    let zeros = |needed: bool, count: usize| vec![0.0; if needed { count } else { 0 }];
    let statistics = !forward || flags.global_stats;
    LnormData {
        src: zeros(true, rows * cols),
        scale: zeros(flags.scale, cols),
        shift: zeros(flags.shift && (forward || flags.gate_output), cols),
        mean: zeros(statistics && !flags.rms_norm, rows),
        variance: zeros(statistics, rows),
        diff_dst: zeros(!forward, rows * cols),
        ..LnormData::default()
    }
}
