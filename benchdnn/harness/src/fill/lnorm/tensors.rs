//! What the data of layer and RMS normalization depends on, and the tensors that it consists of.

use crate::data_type::DataType;
use crate::oracle::lnorm::Flags;
use crate::steps::StepShape;

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
    pub(super) fn types(&self) -> impl Iterator<Item = DataType> {
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
