//! The problem: its parameters, checked, with all layouts resolved.

use crate::error::{Error, Result};
use crate::primitive::normalization::{
    Common, FORWARD, Hint, Names, Normalization, check_kind, resolved_src,
};
use crate::primitive::{Accepted, Attr, PropKind, Usage, checked_quantization};
use crate::rows;
use crate::tensor::{DataType, Layout, MemoryDesc, Support};
use norm_sys as sys;
use std::ops::{Deref, DerefMut};

/// The name of the operation in messages.
const NAMES: Names = Names {
    plain: "layer normalization",
    forward: "forward layer normalization",
    backward: "backward layer normalization",
};

/// The parameters of `layer_normalization_forward_primitive_desc_create`.
pub(crate) struct ForwardParameters<'a> {
    pub(crate) prop_kind: PropKind,
    pub(crate) src: &'a MemoryDesc,
    pub(crate) dst: &'a MemoryDesc,
    pub(crate) stat: Option<&'a MemoryDesc>,
    pub(crate) scale_shift: DataType,
    pub(crate) epsilon: f32,
    pub(crate) flags: u32,
    pub(crate) attr: &'a Attr,
}

/// The parameters of `layer_normalization_backward_primitive_desc_create`.
pub(crate) struct BackwardParameters<'a> {
    pub(crate) prop_kind: PropKind,
    pub(crate) diff_src: &'a MemoryDesc,
    pub(crate) diff_dst: &'a MemoryDesc,
    pub(crate) src: &'a MemoryDesc,
    pub(crate) stat: Option<&'a MemoryDesc>,
    pub(crate) diff_scale_shift: DataType,
    pub(crate) scale_shift: DataType,
    pub(crate) epsilon: f32,
    pub(crate) flags: u32,
    /// The forward problem, if it is known.
    pub(crate) hint: Option<Hint<'a>>,
    pub(crate) attr: &'a Attr,
}

/// A checked problem: rows along the last dimension.
#[derive(Debug)]
pub(crate) struct LayerNormalization {
    /// The part shared by all normalizations.
    base: Normalization,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Deref for LayerNormalization {
    type Target = Normalization;
    fn deref(&self) -> &Normalization {
        &self.base
    }
}

impl DerefMut for LayerNormalization {
    fn deref_mut(&mut self) -> &mut Normalization {
        &mut self.base
    }
}

impl LayerNormalization {
    pub(crate) fn forward(p: &ForwardParameters<'_>) -> Result<Self> {
        check_kind(p.prop_kind, true)?;
        let ForwardParameters { prop_kind, src, epsilon, flags, .. } = *p;
        let common = Common { names: NAMES, prop_kind, src, epsilon, flags };
        let mut problem = Self::common(&common, p.stat, p.scale_shift)?;
        problem.dst = problem.output_like_src("dst_desc", p.dst)?;
        problem.list_arguments()?;
        let accepted = Accepted { zero_points: &[sys::NORM_ARG_DST], dynamic: true, ..FORWARD };
        let attr = problem.checked_attributes(p.attr, &accepted)?;
        problem.check_partial()?;
        let attr = checked_quantization("layer normalization", attr, &problem.dst)?;
        problem.set_attributes(attr)?;
        Ok(problem)
    }

    pub(crate) fn backward(p: &BackwardParameters<'_>) -> Result<Self> {
        check_kind(p.prop_kind, false)?;
        if let Some(hint) = &p.hint {
            hint.check(p.src, (p.flags, p.epsilon), &p.attr.around)?;
        }
        let BackwardParameters { prop_kind, epsilon, flags, .. } = *p;
        let src = &resolved_src(p.src, p.diff_dst)?;
        let common = Common { names: NAMES, prop_kind, src, epsilon, flags };
        let mut problem = Self::common(&common, p.stat, p.scale_shift)?;
        problem.dst = problem.tensor_like_src("diff_dst_desc", p.diff_dst)?;
        problem.diff_src = problem.output_like_src("diff_src_desc", p.diff_src)?;
        if problem.writes_scale_shift() {
            check_parameter_type("diff_scale_shift_data_type", p.diff_scale_shift)?;
            problem.diff_scale_shift =
                MemoryDesc::dense(&[problem.cols as i64], p.diff_scale_shift)?;
        }
        problem.list_arguments()?;
        problem.add_backward_attributes(p.attr)?;
        problem.check_partial()?;
        Ok(problem)
    }

    /// The part shared by both directions.
    fn common(
        common: &Common<'_>,
        stat: Option<&MemoryDesc>,
        scale_shift: DataType,
    ) -> Result<Self> {
        let mut base = Normalization::new(common)?;
        let (last, outer) = base.src.dims().split_last().unwrap_or((&1, &[]));
        let (rows, cols) = (outer.iter().product::<i64>() as usize, *last as usize);
        if base.has_parameters() {
            check_parameter_type("scale_shift_data_type", scale_shift)?;
            base.scale_shift = MemoryDesc::dense(&[cols as i64], scale_shift)?;
        }
        base.stat = statistics(&base, stat)?;
        Ok(Self { base, rows, cols })
    }

    fn check_partial(&self) -> Result<()> {
        let Some(elements) = self.around.partial else { return Ok(()) };
        if !self.flags.rms() {
            return Err(Error::invalid("attr: a partial norm needs the flag rms_norm"));
        }
        let cols = self.cols;
        if elements as usize > cols {
            return Err(Error::invalid(format_args!(
                "attr: a partial norm of {elements} elements, but rows have {cols}"
            )));
        }
        Ok(())
    }

    /// The number of elements in the mean square.
    pub(super) fn stat_cols(&self) -> usize {
        self.around.partial.map_or(self.cols, |elements| elements as usize)
    }

    /// The steps before and after the kernels, with rows in an order of the outer dimensions.
    pub(super) fn steps(&self, order: &[usize]) -> Option<rows::Around> {
        rows::Around::of(self, MemoryDesc::clone, order)
    }

    /// The data type of a tensor; f32 for an empty descriptor.
    pub(super) fn type_of(desc: &MemoryDesc) -> DataType {
        Normalization::type_of(desc)
    }
}

/// The descriptor of the statistics: the given one, or a default in the order of src.
fn statistics(base: &Normalization, stat: Option<&MemoryDesc>) -> Result<MemoryDesc> {
    let default = base.src.statistics()?;
    let Some(stat) = stat.filter(|stat| stat.layout() != Layout::Undef) else {
        return Ok(default);
    };
    if stat.dims() != default.dims() {
        return Err(Error::invalid(format_args!(
            "stat_desc: dimensions {:?} are not those of src_desc without the last, {:?}",
            stat.dims(),
            default.dims()
        )));
    }
    if stat.data_type() != Some(DataType::F32) {
        return Err(Error::unimplemented("stat_desc: statistics are f32"));
    }
    if stat.layout() == Layout::Any {
        return Ok(default);
    }
    if stat.is_blocked() {
        return Err(Error::unimplemented("stat_desc: statistics cannot have a blocked layout"));
    }
    if base.statistics_usage() == Some(Usage::Output) {
        stat.check_output("stat_desc")?;
    }
    Ok(stat.clone())
}

/// Checks the data type of scale and shift.
fn check_parameter_type(name: &str, data_type: DataType) -> Result<()> {
    match data_type.support() {
        Support::Full => Ok(()),
        _ => Err(Error::unimplemented(format_args!(
            "{name}: scale and shift are f32, bf16 or f16, not {}",
            data_type.name()
        ))),
    }
}
