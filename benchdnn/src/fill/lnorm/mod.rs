//! Data of layer and RMS normalization.

mod exact;
mod random;

use super::{Fill, steps};
use crate::data_type::DataType;
use crate::oracle::lnorm::Flags;
use crate::steps::StepShape;
pub(super) use exact::power_near;

/// The parameters of the data of a layer or RMS normalization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LnormShape {
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// Type of src and diff_src.
    pub src_dt: DataType,
    /// Type of dst and diff_dst.
    pub dst_dt: DataType,
    /// Type of scale and shift.
    pub ss_dt: DataType,
    /// Whether the problem is forward.
    pub forward: bool,
    /// The kind of normalization.
    pub flags: Flags,
    /// The epsilon inside the root, which determines the magnitude of exact data.
    pub epsilon: f32,
    /// The factor that scales apply to integer results, so that exact data does not all saturate; 1 otherwise.
    pub gain: f32,
    /// The steps around the normalization.
    pub steps: StepShape,
}

impl LnormShape {
    /// The types that represent every value of a row: that of src, and also that of a residual.
    fn types(&self) -> impl Iterator<Item = DataType> {
        let residual = self.steps.residual.filter(|_| self.forward);
        let both = residual.into_iter().flat_map(|step| [step.data_type, step.stored()]);
        std::iter::once(self.src_dt).chain(both)
    }

    /// The type to which a normalized value is rounded before scale and shift; f32 without such rounding.
    pub fn rounded_to(&self) -> DataType {
        match self.steps.residual.map_or(self.src_dt, |residual| residual.stored()) {
            half @ (DataType::Bf16 | DataType::F16) => half,
            _ => DataType::F32,
        }
    }

    /// A column's factor, from its scale.
    pub fn factor(&self, scale: f64) -> f64 {
        if self.flags.plus_one { DataType::F32.round(1.0 + scale) } else { scale }
    }
}

/// The inputs of a layer or RMS normalization. Every value is representable in its type (mean and variance: f32).
/// Tensors are row-major; unused inputs are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LnormData {
    /// `rows * cols` values.
    pub src: Vec<f64>,
    /// `cols` values, with the scale flag.
    pub scale: Vec<f64>,
    /// `cols` values, with the shift flag; backward with an output gate alone.
    pub shift: Vec<f64>,
    /// `rows` values, backward or with global statistics; none with RMS normalization.
    pub mean: Vec<f64>,
    /// `rows` values, backward or with global statistics.
    pub variance: Vec<f64>,
    /// `rows * cols` values, backward.
    pub diff_dst: Vec<f64>,
    /// `rows * cols` values, forward with a residual.
    pub residual: Vec<f64>,
    /// `rows * cols` values, with a gate.
    pub gate: Vec<f64>,
    /// `rows * cols` values, backward with a residual.
    pub diff_sum: Vec<f64>,
}

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
