//! The problem: its parameters, checked, with all layouts resolved.

use crate::error::{Error, Result};
use crate::primitive::normalization::{
    Common, FORWARD, Names, Normalization, check_kind, resolved_src,
};
use crate::primitive::{Attr, PropKind};
use crate::tensor::{DataType, MemoryDesc};
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
    /// The flags and groups of the forward problem, if they are known.
    pub(crate) hint: Option<(u32, i64)>,
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
}

impl Shape {
    /// The channels of a group.
    pub(super) fn per_group(&self) -> usize {
        self.channels / self.groups
    }

    /// The elements of a group.
    pub(super) fn elements(&self) -> usize {
        self.per_group() * self.positions
    }
}

/// A checked problem.
#[derive(Debug)]
pub(crate) struct GroupNormalization {
    /// What normalizations share.
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
        check_partial(p.attr)?;
        let attr = problem.checked_attributes(p.attr, &FORWARD)?;
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
        check_partial(p.attr)?;
        problem.add_backward_attributes(p.attr)?;
        Ok(problem)
    }

    /// The part that both directions share.
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
        };
        Ok(Self { base, shape })
    }
}

/// The first elements of a row are those of its first channels; a group has no such order.
fn check_partial(attr: &Attr) -> Result<()> {
    match attr.around.partial {
        None => Ok(()),
        Some(_) => Err(Error::unimplemented(
            "attr: group normalization does not support a partial norm; layer normalization does",
        )),
    }
}

/// Checks that backward has the flags and groups of the forward problem.
fn check_hint(p: &BackwardParameters<'_>) -> Result<()> {
    let Some((flags, groups)) = p.hint else { return Ok(()) };
    if p.flags != flags {
        return Err(Error::invalid(format_args!(
            "flags: {:#x}, but hint_fwd_pd was created with {flags:#x}",
            p.flags
        )));
    }
    if p.groups != groups {
        return Err(Error::invalid(format_args!(
            "groups: {}, but hint_fwd_pd was created with {groups}",
            p.groups
        )));
    }
    Ok(())
}
