//! The problem: its parameters, checked, with all layouts resolved.

use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{Accepted, ArgumentName, Attr, OpArgument, PostOp, PropKind, Usage};
use crate::tensor::{DataType, Layout, MemoryDesc};
use norm_sys as sys;

/// The normalization flags, as their C bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(pub(super) u32);

impl Flags {
    pub(super) const LETTERS: [(u32, char); 4] = [
        (sys::norm_use_global_stats, 'G'),
        (sys::norm_use_scale, 'C'),
        (sys::norm_use_shift, 'H'),
        (sys::norm_rms_norm, 'M'),
    ];

    fn new(bits: u32) -> Result<Self> {
        let known: u32 = Self::LETTERS.iter().map(|(bit, _)| bit).sum();
        match bits & !known {
            0 => Ok(Self(bits)),
            other => Err(Error::invalid(format_args!(
                "flags: {other:#x} is not among use_global_stats, use_scale, use_shift and rms_norm"
            ))),
        }
    }

    pub(super) fn global_stats(self) -> bool {
        self.0 & sys::norm_use_global_stats != 0
    }
    pub(super) fn scale(self) -> bool {
        self.0 & sys::norm_use_scale != 0
    }
    pub(super) fn shift(self) -> bool {
        self.0 & sys::norm_use_shift != 0
    }
    pub(super) fn rms(self) -> bool {
        self.0 & sys::norm_rms_norm != 0
    }
}

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
    pub(super) prop_kind: PropKind,
    pub(super) flags: Flags,
    pub(super) epsilon: f32,
    pub(super) shape: Shape,
    pub(super) src: MemoryDesc,
    /// dst in forward, diff_dst in backward.
    pub(super) dst: MemoryDesc,
    /// Backward only.
    pub(super) diff_src: MemoryDesc,
    /// Mean and variance: N x G.
    pub(super) stat: MemoryDesc,
    /// Scale, shift and their gradients; empty if the problem has neither.
    pub(super) parameters: MemoryDesc,
    /// Attributes of dst, with their tensors resolved; forward only.
    pub(super) attr: Attr,
    pub(super) arguments: Vec<OpArgument>,
}

impl GroupNormalization {
    pub(crate) fn forward(p: &ForwardParameters<'_>) -> Result<Self> {
        if !p.prop_kind.is_forward() {
            let name = p.prop_kind.name();
            return Err(Error::invalid(format_args!("prop_kind: {name} is not a forward kind")));
        }
        let mut problem = Self::common(p.prop_kind, p.src, p.groups, p.epsilon, p.flags)?;
        problem.dst = problem.output_like_src("dst_desc", p.dst)?;
        problem.list_arguments()?;
        problem.add_attributes(p.attr)?;
        Ok(problem)
    }

    pub(crate) fn backward(p: &BackwardParameters<'_>) -> Result<Self> {
        if p.prop_kind.is_forward() {
            let name = p.prop_kind.name();
            return Err(Error::invalid(format_args!("prop_kind: {name} is not a backward kind")));
        }
        let mut src = p.src.clone();
        if src.layout() == Layout::Any {
            let order = p.diff_dst;
            let is_given = order.layout() == Layout::Strided && order.ndims() == src.ndims();
            src = if is_given { src.resolved_like(order)? } else { src.resolved_dense()? };
        }
        let mut problem = Self::common(p.prop_kind, &src, p.groups, p.epsilon, p.flags)?;
        check_hint(p)?;
        problem.dst = problem.tensor_like_src("diff_dst_desc", p.diff_dst)?;
        problem.diff_src = problem.output_like_src("diff_src_desc", p.diff_src)?;
        problem.list_arguments()?;
        p.attr.check("backward group normalization", &Accepted::NOTHING)?;
        Ok(problem)
    }

    /// The part that both directions share.
    fn common(
        prop_kind: PropKind,
        src: &MemoryDesc,
        groups: i64,
        epsilon: f32,
        flags: u32,
    ) -> Result<Self> {
        let flags = Flags::new(flags)?;
        if !(epsilon >= 0.0 && epsilon.is_finite()) {
            return Err(Error::invalid(format_args!(
                "epsilon: {epsilon} is not a finite number of 0 or more"
            )));
        }
        let ndims = src.ndims();
        if !(2..=5).contains(&ndims) {
            return Err(Error::invalid(format_args!("src_desc: {ndims} dimensions, not 2 to 5")));
        }
        if src.layout() != Layout::Strided {
            return Err(Error::invalid("src_desc: the layout must be given, not `any`"));
        }
        check_data_type("src_desc", src, prop_kind.is_forward())?;
        let (samples, channels) = (src.dims()[0], src.dims()[1]);
        if groups <= 0 {
            return Err(Error::invalid(format_args!("groups: {groups} is not 1 or more")));
        }
        if groups > channels || channels % groups != 0 {
            return Err(Error::invalid(format_args!(
                "groups: {groups} groups do not divide {channels} channels"
            )));
        }
        let parameters = if flags.scale() || flags.shift() {
            MemoryDesc::dense(&[channels], DataType::F32)?
        } else {
            MemoryDesc::EMPTY
        };
        Ok(Self {
            prop_kind,
            flags,
            epsilon,
            shape: Shape {
                samples: samples as usize,
                channels: channels as usize,
                groups: groups as usize,
                positions: src.dims()[2..].iter().product::<i64>() as usize,
            },
            src: src.clone(),
            dst: MemoryDesc::EMPTY,
            diff_src: MemoryDesc::EMPTY,
            stat: MemoryDesc::dense(&[samples, groups], DataType::F32)?,
            parameters,
            attr: Attr::default(),
            arguments: Vec::new(),
        })
    }

    /// The descriptor of a tensor with the dimensions of src; `any` becomes the order of src.
    fn tensor_like_src(&self, name: &str, desc: &MemoryDesc) -> Result<MemoryDesc> {
        let desc = desc.resolved_for(name, ("src_desc", &self.src))?;
        check_data_type(name, &desc, self.prop_kind.is_forward())?;
        Ok(desc)
    }

    fn output_like_src(&self, name: &str, desc: &MemoryDesc) -> Result<MemoryDesc> {
        let desc = self.tensor_like_src(name, desc)?;
        desc.check_output(name)?;
        Ok(desc)
    }

    /// How the statistics are used; `None` if they are not arguments.
    pub(super) fn statistics_usage(&self) -> Option<Usage> {
        match self.prop_kind {
            _ if self.flags.global_stats() => Some(Usage::Input),
            PropKind::ForwardTraining => Some(Usage::Output),
            PropKind::ForwardInference => None,
            PropKind::Backward | PropKind::BackwardData => Some(Usage::Input),
        }
    }

    pub(super) fn writes_scale(&self) -> bool {
        self.prop_kind == PropKind::Backward && self.flags.scale()
    }

    pub(super) fn writes_shift(&self) -> bool {
        self.prop_kind == PropKind::Backward && self.flags.shift()
    }

    fn list_arguments(&mut self) -> Result<()> {
        use Usage::{Input, Output};
        let forward = self.prop_kind.is_forward();
        let statistics = self.statistics_usage();
        let stat = statistics.unwrap_or(Input);
        let mean = statistics.is_some() && !self.flags.rms();
        let (scale, shift) = (self.flags.scale(), forward && self.flags.shift());
        let channels = &self.parameters;
        let rows = [
            (true, sys::NORM_ARG_SRC, "src", Input, &self.src),
            (forward, sys::NORM_ARG_DST, "dst", Output, &self.dst),
            (!forward, sys::NORM_ARG_DIFF_DST, "diff_dst", Input, &self.dst),
            (!forward, sys::NORM_ARG_DIFF_SRC, "diff_src", Output, &self.diff_src),
            (mean, sys::NORM_ARG_MEAN, "mean", stat, &self.stat),
            (statistics.is_some(), sys::NORM_ARG_VARIANCE, "variance", stat, &self.stat),
            (scale, sys::NORM_ARG_SCALE, "scale", Input, channels),
            (shift, sys::NORM_ARG_SHIFT, "shift", Input, channels),
            (self.writes_scale(), sys::NORM_ARG_DIFF_SCALE, "diff_scale", Output, channels),
            (self.writes_shift(), sys::NORM_ARG_DIFF_SHIFT, "diff_shift", Output, channels),
        ];
        let present = rows.into_iter().filter(|row| row.0);
        self.arguments = heap::list(present.map(|(_, id, name, usage, desc)| OpArgument {
            id,
            name: ArgumentName::Tensor(name),
            usage,
            desc: desc.clone(),
        }))?;
        Ok(())
    }

    /// Checks the attributes of forward and adds their tensors to the arguments.
    fn add_attributes(&mut self, attr: &Attr) -> Result<()> {
        const ACCEPTED: Accepted = Accepted {
            scales: &[sys::NORM_ARG_SRC, sys::NORM_ARG_DST],
            zero_points: &[],
            masks: false,
            post_op: |post_op| {
                matches!(
                    post_op,
                    PostOp::Eltwise { .. } | PostOp::Binary { .. } | PostOp::Sum { .. }
                )
            },
            around: false,
            dynamic: false,
        };
        attr.check("group normalization", &ACCEPTED)?;
        let double = self.dst.data_type() == Some(DataType::F64);
        if double && !(attr.scales.is_empty() && attr.post_ops.is_empty()) {
            return Err(Error::unimplemented(
                "attr: scales and post-operations are computed in f32, and dst_desc is f64",
            ));
        }
        let size = self.dst.data_type().map(DataType::size);
        let other = |post_op: &PostOp| matches!(post_op, PostOp::Sum { data_type: Some(t), .. } if Some(t.size()) != size);
        if attr.post_ops.iter().any(other) {
            return Err(Error::unimplemented(
                "attr: a sum post-operation reads dst in a data type of another size",
            ));
        }
        self.attr = attr.with_post_ops(attr.post_ops.resolved(&self.dst)?);
        let tensors = [(sys::NORM_ARG_SRC, &self.src), (sys::NORM_ARG_DST, &self.dst)];
        attr.add_arguments(&mut self.arguments, &tensors, &self.dst)
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

/// Checks the data type of a tensor. Backward supports no 8-bit types.
fn check_data_type(name: &str, desc: &MemoryDesc, forward: bool) -> Result<()> {
    let what = if forward { "forward group normalization" } else { "backward group normalization" };
    desc.check_type(name, what, |t| t == DataType::F64 || t.is_supported(forward))
}
