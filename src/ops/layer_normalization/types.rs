//! The types that the kernels see. Each level has kernels for the common combinations; other types are staged as f32.
//!
//! Staging changes no bit. If the sums depend on a tensor having 16 bits or fewer, its stage has the type
//! [`HalfAsF32`](crate::simd::HalfAsF32), which sums like a 16-bit type.

use super::problem::LayerNormalization;
use super::row::at_most_16_bits;
use super::schedule::LONGEST_CHAINED;
use crate::error::Result;
use crate::primitive::PostOpChain;
use crate::rows::has_dense_rows;
use crate::simd::Level;
use crate::tensor::DataType;
use norm_sys as sys;

/// A tensor's type in the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelType {
    pub(super) data_type: DataType,
    /// Whether it is summed as a type of 16 bits or fewer.
    pub(super) half: bool,
    /// Whether a later step rounds the output to fewer bits. f64 must then be rounded to odd first.
    pub(super) rounded_again: bool,
}

impl KernelType {
    fn own(data_type: DataType) -> Self {
        Self { data_type, half: at_most_16_bits(data_type), rounded_again: false }
    }

    fn staged(half: bool) -> Self {
        Self { data_type: DataType::F32, half, rounded_again: false }
    }

    pub(super) fn is_byte(self) -> bool {
        matches!(self.data_type, DataType::S8 | DataType::U8)
    }
}

/// The types of a problem's tensors in the kernels.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelTypes {
    pub(super) src: KernelType,
    /// diff_dst in backward.
    pub(super) dst: KernelType,
    pub(super) diff_src: KernelType,
    /// Whether the kernels apply all post-operations.
    pub(super) fused: bool,
    /// Whether the kernels add the gradient of a stored sum.
    pub(super) adds: bool,
}

impl KernelTypes {
    pub(super) fn new(problem: &LayerNormalization, level: Level) -> Result<Self> {
        if problem.prop_kind.is_forward() {
            Self::forward(problem, level)
        } else {
            Ok(Self::backward(problem, level))
        }
    }

    /// Whether a tensor is f64, so that all rows are computed in f64.
    pub(super) fn double(&self) -> bool {
        [self.src, self.dst, self.diff_src].iter().any(|t| t.data_type == DataType::F64)
    }

    /// Whether a later step rounds the kernels' output to fewer bits.
    pub(super) fn rounds_again(&self, forward: bool) -> bool {
        if forward { self.dst.rounded_again } else { self.diff_src.rounded_again }
    }

    pub(super) fn all(&self) -> [DataType; 3] {
        [self.src, self.dst, self.diff_src].map(|t| t.data_type)
    }

    fn forward(p: &LayerNormalization, level: Level) -> Result<Self> {
        use DataType::{Bf16, F16, F32, F64, S8, U8};
        let (src, dst) = (p.normalized_type(), LayerNormalization::type_of(&p.dst));
        let post_ops_fit = post_ops_fit(p)?;
        // Chains that are not fused are applied in f32. The kernels themselves apply the scales of integers.
        let dst = match dst {
            _ if post_ops_fit => dst,
            _ if has_chain(p) => F32,
            S8 | U8 => dst,
            other => floating(other),
        };
        let byte = matches!(dst, S8 | U8);
        let src = match floating(src) {
            _ if matches!(src, S8 | U8) && dst == F32 && !post_ops_fit => src,
            F16 if byte => F32,
            other => other,
        };
        let (mut src, mut dst) = (KernelType::own(src), KernelType::own(dst));
        let computed = p.computes_src();
        let fused = post_ops_fit && level != Level::Portable && src == dst && !computed;
        let pair = (src.data_type, dst.data_type);
        let native = match pair {
            (F64, _) | (_, F64) => true,
            // Computed rows are f32.
            _ if computed && pair.0 != F32 => false,
            _ if p.flags.rms() && p.kernel_flags().shift() => pair == (F32, F32),
            _ if post_ops_fit => fused,
            (F32, F32 | S8 | U8) => true,
            _ if level == Level::Portable => false,
            (Bf16, F32 | Bf16 | S8 | U8) | (F16, F32 | F16) | (F32, Bf16 | F16) => true,
            (S8 | U8, F32) => true,
            _ => false,
        };
        if !native {
            // RMS sums the same way for all types.
            let half = dst.half && !p.flags.rms();
            src = KernelType::staged(half && src.data_type.is_half());
            if !byte {
                let rounded_again = dst.data_type.is_half() && !post_ops_fit;
                dst = KernelType { rounded_again, ..KernelType::staged(half) };
            }
        }
        Ok(Self { src, dst, diff_src: KernelType::own(F32), fused, adds: false })
    }

    fn backward(p: &LayerNormalization, level: Level) -> Self {
        use DataType::{Bf16, F16, F32, F64};
        let types =
            [&p.src, &p.dst, &p.diff_src].map(|desc| floating(LayerNormalization::type_of(desc)));
        let usual = !(p.flags.global_stats() || p.flags.rms() && p.writes_shift());
        let vectors = level != Level::Portable && usual;
        let adds = vectors && adds_gradient(p, types);
        let has_steps = !p.around.is_empty() && !adds;
        let native = match types {
            _ if types.contains(&F64) => true,
            [F32, F32, F32] => true,
            _ if has_steps => false,
            _ if !vectors => false,
            [Bf16, Bf16, Bf16] | [F16, F16, F16] | [F32, Bf16, F32] | [Bf16, F32, Bf16] => true,
            _ => false,
        };
        let [src, dst, mut diff_src] =
            types.map(
                |data_type| {
                    if native { KernelType::own(data_type) } else { KernelType::staged(false) }
                },
            );
        diff_src.rounded_again = !native && types[2].is_half();
        Self { src, dst, diff_src, fused: false, adds }
    }
}

/// Whether vector kernels for these types add the gradient of a stored sum: those of rows that are too long for chains.
fn adds_gradient(p: &LayerNormalization, types: [DataType; 3]) -> bool {
    let id = sys::NORM_ARG_DIFF_RESIDUAL_DST;
    let [src, diff_dst, diff_src] = types;
    p.has_argument(id)
        && has_dense_rows(p.argument(id))
        && (p.around.gate.is_none() && p.around.partial.is_none())
        && (src == diff_dst && src == diff_src && src != DataType::F64)
        && p.cols.saturating_mul(src.size()) > LONGEST_CHAINED
}

/// Whether the attributes need a post-op chain, beyond the [`Factors`](crate::simd::Factors) of integers.
pub(super) fn has_chain(problem: &LayerNormalization) -> bool {
    let attr = &problem.attr;
    let integers = matches!(problem.dst.data_type(), Some(DataType::S8 | DataType::U8));
    let static_scales = !attr.scales.is_empty() && !integers;
    let before = problem.prop_kind.is_forward()
        && (problem.flags.round_before_scale() || problem.flags.gate_output());
    !attr.post_ops.is_empty() || before || static_scales || problem.dynamic_scales().is_some()
}

/// Whether the kernels can fuse the post-operations. If so, the statistics are summed as for the type of dst, even if
/// it is staged.
pub(super) fn post_ops_fit(p: &LayerNormalization) -> Result<bool> {
    let dst = LayerNormalization::type_of(&p.dst);
    let all = if p.flags.rms() { (true, false) } else { (true, true) };
    let parameters = (p.flags.scale(), p.flags.shift());
    let fits = p.prop_kind.is_forward()
        && has_chain(p)
        && matches!(floating(p.normalized_type()), DataType::F32 | DataType::Bf16)
        && !(p.flags.round_before_scale() || p.flags.gate_output() || p.dynamic_scales().is_some())
        && matches!(dst, DataType::F32 | DataType::Bf16)
        && (parameters == (false, false) || parameters == all);
    let chain = if fits { PostOpChain::new(&p.attr, &p.dst, None)? } else { None };
    Ok(chain.is_some_and(|chain| chain.is_fusible()))
}

/// The type itself if the kernels load and store it, else f32, to which it is converted.
fn floating(data_type: DataType) -> DataType {
    match data_type {
        DataType::F64 | DataType::F32 | DataType::Bf16 | DataType::F16 => data_type,
        _ => DataType::F32,
    }
}
