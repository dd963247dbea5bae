//! The problem: its parameters, checked, with all layouts resolved.

use crate::error::{Error, Result};
use crate::primitive::normalization::{
    Common, FORWARD, Hint, Names, Normalization, check_kind, resolved_src,
};
use crate::primitive::{Accepted, Attr, PropKind, checked_quantization};
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;
use std::ops::{Deref, DerefMut};

/// The name of the operation in messages.
const NAMES: Names = Names {
    plain: "group normalization",
    forward: "forward group normalization",
    backward: "backward group normalization",
};

/// The dimension of channels.
pub(super) const CHANNELS: usize = 1;

/// The parameters of `group_normalization_forward_primitive_desc_create`.
pub(crate) struct ForwardParameters<'a> {
    pub(crate) prop_kind: PropKind,
    pub(crate) src: &'a MemoryDesc,
    pub(crate) dst: &'a MemoryDesc,
    pub(crate) groups: i64,
    pub(crate) epsilon: f32,
    pub(crate) flags: u32,
    pub(crate) attr: &'a Attr,
}

/// The parameters of `group_normalization_backward_primitive_desc_create`.
pub(crate) struct BackwardParameters<'a> {
    pub(crate) prop_kind: PropKind,
    pub(crate) diff_src: &'a MemoryDesc,
    pub(crate) diff_dst: &'a MemoryDesc,
    pub(crate) src: &'a MemoryDesc,
    pub(crate) groups: i64,
    pub(crate) epsilon: f32,
    pub(crate) flags: u32,
    /// The forward problem and its groups, if they are known.
    pub(crate) hint: Option<(Hint<'a>, i64)>,
    pub(crate) attr: &'a Attr,
}

/// The sizes of a problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) samples: usize,
    pub(super) channels: usize,
    pub(super) groups: usize,
    /// Spatial positions.
    pub(super) positions: usize,
    /// The number of a group's channels in its mean square; fewer than all for a partial norm.
    pub(super) counted: usize,
}

impl Shape {
    /// The number of channels in a group.
    pub(super) fn per_group(&self) -> usize {
        self.channels / self.groups
    }

    /// The number of elements in a group.
    pub(super) fn elements(&self) -> usize {
        self.per_group().saturating_mul(self.positions)
    }

    /// The number of elements in a group's statistics.
    pub(super) fn counted_elements(&self) -> usize {
        self.counted * self.positions
    }

    /// Whether the norm is partial.
    pub(super) fn is_partial(&self) -> bool {
        self.counted < self.per_group()
    }
}

/// A checked problem.
#[derive(Debug)]
pub(crate) struct GroupNormalization {
    /// The part shared by all normalizations.
    base: Normalization,
    pub(super) shape: Shape,
}

impl Deref for GroupNormalization {
    type Target = Normalization;
    fn deref(&self) -> &Normalization {
        &self.base
    }
}

impl DerefMut for GroupNormalization {
    fn deref_mut(&mut self) -> &mut Normalization {
        &mut self.base
    }
}

impl GroupNormalization {
    pub(crate) fn forward(p: &ForwardParameters<'_>) -> Result<Self> {
        check_kind(p.prop_kind, true)?;
        let ForwardParameters { prop_kind, src, epsilon, flags, .. } = *p;
        let common = Common { names: NAMES, prop_kind, src, epsilon, flags };
        let mut problem = Self::common(&common, p.groups)?;
        problem.dst = problem.output_like_src("dst_desc", p.dst)?;
        problem.list_arguments()?;
        let accepted = Accepted { zero_points: &[sys::NORM_ARG_DST], dynamic: true, ..FORWARD };
        let attr = problem.checked_attributes(p.attr, &accepted)?;
        problem.take_partial()?;
        let attr = checked_quantization(NAMES.plain, attr, &problem.dst)?;
        problem.set_attributes(attr)?;
        Ok(problem)
    }

    pub(crate) fn backward(p: &BackwardParameters<'_>) -> Result<Self> {
        check_kind(p.prop_kind, false)?;
        let BackwardParameters { prop_kind, epsilon, flags, .. } = *p;
        let src = &resolved_src(p.src, p.diff_dst)?;
        let common = Common { names: NAMES, prop_kind, src, epsilon, flags };
        let mut problem = Self::common(&common, p.groups)?;
        check_hint(p)?;
        problem.dst = problem.tensor_like_src("diff_dst_desc", p.diff_dst)?;
        problem.diff_src = problem.output_like_src("diff_src_desc", p.diff_src)?;
        if problem.writes_scale_shift() {
            problem.diff_scale_shift = problem.scale_shift.clone();
        }
        problem.list_arguments()?;
        problem.add_backward_attributes(p.attr)?;
        problem.take_partial()?;
        Ok(problem)
    }

    /// The part shared by both directions.
    fn common(common: &Common<'_>, groups: i64) -> Result<Self> {
        let mut base = Normalization::new(common)?;
        let (samples, channels) = (base.src.dims()[0], base.src.dims()[CHANNELS]);
        if groups <= 0 {
            return Err(Error::invalid(format_args!("groups: {groups} is not 1 or more")));
        }
        if groups > channels || channels % groups != 0 {
            return Err(Error::invalid(format_args!(
                "groups: {groups} groups do not divide {channels} channels"
            )));
        }
        base.axis = CHANNELS;
        base.stat = MemoryDesc::dense(&[samples, groups], DataType::F32)?;
        if base.has_parameters() {
            base.scale_shift = MemoryDesc::dense(&[channels], DataType::F32)?;
        }
        let shape = Shape {
            samples: samples as usize,
            channels: channels as usize,
            groups: groups as usize,
            positions: base.src.dims()[2..].iter().product::<i64>() as usize,
            counted: (channels / groups) as usize,
        };
        Ok(Self { base, shape })
    }

    /// Checks a partial norm and sets its channels. The first elements of a group, in logical order, are those of its
    /// first channels. Statistics are sums over channels, so only whole channels are supported.
    fn take_partial(&mut self) -> Result<()> {
        let Some(elements) = self.around.partial else { return Ok(()) };
        if !self.flags.rms() {
            return Err(Error::invalid("attr: a partial norm needs the flag rms_norm"));
        }
        let (all, positions) = (self.shape.elements(), self.shape.positions);
        if self.src.has_zero_dim() {
            return Ok(());
        }
        let elements = elements as usize;
        if elements > all {
            return Err(Error::invalid(format_args!(
                "attr: a partial norm of {elements} elements, but groups have {all}"
            )));
        }
        if !elements.is_multiple_of(positions) {
            return Err(Error::unimplemented(format_args!(
                "attr: a partial norm of {elements} elements is not a whole number of channels of \
                 {positions} positions"
            )));
        }
        self.shape.counted = elements / positions;
        Ok(())
    }

    /// The number of channels in whole quantization groups, if these lie along the channels. The steps around the
    /// kernels process them together.
    pub(super) fn quantized_groups(&self) -> usize {
        let Some(along) = self.dynamic_scales().and_then(|scales| scales.group) else { return 1 };
        let (along, per_group) = (along as usize, self.shape.per_group());
        (1..self.shape.groups)
            .find(|n| (n * per_group).is_multiple_of(along))
            .unwrap_or(self.shape.groups)
    }
}

/// Checks that backward has the parameters of the forward problem.
fn check_hint(p: &BackwardParameters<'_>) -> Result<()> {
    let Some((hint, groups)) = &p.hint else { return Ok(()) };
    hint.check(p.src, (p.flags, p.epsilon), &p.attr.around)?;
    if p.groups != *groups {
        return Err(Error::invalid(format_args!(
            "groups: {}, but hint_fwd_pd was created with {groups}",
            p.groups
        )));
    }
    Ok(())
}
