//! Data of layer and RMS normalization.

mod exact;
mod random;

use super::Fill;
use crate::data_type::DataType;
use crate::oracle::lnorm::Flags;

/// What the data of a layer or RMS normalization depends on.
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
    /// The epsilon inside the root; the magnitude of exact data follows it.
    pub epsilon: f32,
    /// The factor that scales apply to integer results, so that exact data do not all saturate; 1
    /// otherwise.
    pub gain: f32,
}

/// The inputs of a layer or RMS normalization. Each value is one of its type (mean and variance:
/// f32); tensors are row-major; unused inputs are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LnormData {
    /// `rows * cols` values.
    pub src: Vec<f64>,
    /// `cols` values, with the scale flag.
    pub scale: Vec<f64>,
    /// `cols` values, forward with the shift flag.
    pub shift: Vec<f64>,
    /// `rows` values, backward or with global statistics; none with RMS normalization.
    pub mean: Vec<f64>,
    /// `rows` values, backward or with global statistics.
    pub variance: Vec<f64>,
    /// `rows * cols` values, backward.
    pub diff_dst: Vec<f64>,
}

/// Makes the data.
pub fn lnorm(shape: &LnormShape, fill: Fill, seed: u64) -> LnormData {
    let mut data = allocate(shape);
    match fill {
        Fill::Exact => exact::fill(shape, seed, &mut data),
        Fill::Random => random::fill(shape, seed, &mut data),
        Fill::Perf => random::fill_plainly(shape, seed, &mut data),
    }
    data
}

/// Zeros, in the lengths that the problem needs.
fn allocate(shape: &LnormShape) -> LnormData {
    let &LnormShape { rows, cols, forward, flags, .. } = shape;
    let zeros = |needed: bool, count: usize| vec![0.0; if needed { count } else { 0 }];
    let statistics = !forward || flags.global_stats;
    LnormData {
        src: zeros(true, rows * cols),
        scale: zeros(flags.scale, cols),
        shift: zeros(flags.shift && forward, cols),
        mean: zeros(statistics && !flags.rms_norm, rows),
        variance: zeros(statistics, rows),
        diff_dst: zeros(!forward, rows * cols),
    }
}
