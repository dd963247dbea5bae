//! The problem: its parameters, checked, with all layouts resolved.

use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{
    Accepted, ArgumentName, Around, Attr, OpArgument, PostOp, PropKind, Usage, checked_quantization,
};
use crate::tensor::{DataType, Layout, MemoryDesc, Support};
use norm_sys as sys;
use std::fmt;

/// The normalization flags, as their C bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(pub(super) u32);

impl Flags {
    pub(super) const LETTERS: [(u32, char); 8] = [
        (sys::norm_use_global_stats, 'G'),
        (sys::norm_use_scale, 'C'),
        (sys::norm_use_shift, 'H'),
        (sys::norm_rms_norm, 'M'),
        (sys::norm_scale_plus_one, 'P'),
        (sys::norm_round_before_scale, 'B'),
        (sys::norm_gate_output, 'O'),
        (sys::norm_gate_input, 'I'),
    ];

    fn new(bits: u32) -> Result<Self> {
        let known: u32 = Self::LETTERS.iter().map(|(bit, _)| bit).sum();
        match bits & !known {
            0 => Ok(Self(bits)),
            other => Err(Error::invalid(format_args!(
                "flags: {other:#x} is not among use_global_stats, use_scale, use_shift, rms_norm, scale_plus_one, \
                 round_before_scale, gate_output and gate_input"
            ))),
        }
    }

    pub(crate) fn global_stats(self) -> bool {
        self.0 & sys::norm_use_global_stats != 0
    }
    pub(crate) fn scale(self) -> bool {
        self.0 & sys::norm_use_scale != 0
    }
    pub(crate) fn shift(self) -> bool {
        self.0 & sys::norm_use_shift != 0
    }
    pub(crate) fn rms(self) -> bool {
        self.0 & sys::norm_rms_norm != 0
    }
    pub(crate) fn plus_one(self) -> bool {
        self.0 & sys::norm_scale_plus_one != 0
    }
    pub(crate) fn round_before_scale(self) -> bool {
        self.0 & sys::norm_round_before_scale != 0
    }
    pub(crate) fn gate_output(self) -> bool {
        self.0 & sys::norm_gate_output != 0
    }
    pub(crate) fn gate_input(self) -> bool {
        self.0 & sys::norm_gate_input != 0
    }

    /// Rejects flags that oneDNN does not have if the forward problem has others. It does not compare the rest, as
    /// oneDNN does not.
    fn check_hint(self, hint: Option<u32>) -> Result<()> {
        let own = |bits: u32| bits & !((1 << 24) - 1);
        match hint {
            Some(hint) if own(hint) != own(self.0) => Err(Error::invalid(format_args!(
                "flags: {:#x} of backward are not {:#x}, those of hint_fwd_pd, from bit 24 on",
                own(self.0),
                own(hint)
            ))),
            _ => Ok(()),
        }
    }
}

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
    /// The flags of the forward problem, if it is known.
    pub(crate) hint_flags: Option<u32>,
    pub(crate) attr: &'a Attr,
}

/// A checked problem.
#[derive(Debug)]
pub(crate) struct LayerNormalization {
    pub(super) prop_kind: PropKind,
    pub(super) flags: Flags,
    pub(super) epsilon: f32,
    pub(super) src: MemoryDesc,
    /// dst in forward, diff_dst in backward.
    pub(super) dst: MemoryDesc,
    /// Backward only.
    pub(super) diff_src: MemoryDesc,
    pub(super) stat: MemoryDesc,
    /// Scale and shift; empty if the problem has neither.
    pub(super) scale_shift: MemoryDesc,
    pub(super) diff_scale_shift: MemoryDesc,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Attributes of dst, with their tensors resolved; forward only.
    pub(super) attr: Attr,
    /// What is computed around the normalization.
    pub(super) around: Around,
    pub(super) arguments: Vec<OpArgument>,
}

impl LayerNormalization {
    pub(crate) fn forward(p: &ForwardParameters<'_>) -> Result<Self> {
        if !p.prop_kind.is_forward() {
            return Err(Error::invalid(format_args!(
                "prop_kind: {} is not a forward kind",
                p.prop_kind.name()
            )));
        }
        let mut problem =
            Self::common(p.prop_kind, p.src, p.stat, p.scale_shift, p.epsilon, p.flags)?;
        problem.dst = problem.output_like_src("dst", p.dst)?;
        problem.list_arguments()?;
        problem.add_attributes(p.attr)?;
        Ok(problem)
    }

    pub(crate) fn backward(p: &BackwardParameters<'_>) -> Result<Self> {
        if p.prop_kind.is_forward() {
            return Err(Error::invalid(format_args!(
                "prop_kind: {} is not a backward kind",
                p.prop_kind.name()
            )));
        }
        Flags::new(p.flags)?.check_hint(p.hint_flags)?;
        let mut src = p.src.clone();
        if src.layout() == Layout::Any {
            let order = p.diff_dst;
            let is_given = order.layout() == Layout::Strided && order.ndims() == src.ndims();
            src = if is_given { src.resolved_like(order)? } else { src.resolved_dense()? };
        }
        let mut problem =
            Self::common(p.prop_kind, &src, p.stat, p.scale_shift, p.epsilon, p.flags)?;
        problem.dst = problem.tensor_like_src("diff_dst", p.diff_dst)?;
        problem.diff_src = problem.output_like_src("diff_src", p.diff_src)?;
        if problem.writes_scale_shift() {
            check_parameter_type("diff_scale_shift_data_type", p.diff_scale_shift)?;
            problem.diff_scale_shift =
                MemoryDesc::dense(&[problem.cols as i64], p.diff_scale_shift)?;
        }
        problem.list_arguments()?;
        problem.add_attributes(p.attr)?;
        Ok(problem)
    }

    /// The part that both directions share.
    fn common(
        prop_kind: PropKind,
        src: &MemoryDesc,
        stat: Option<&MemoryDesc>,
        scale_shift: DataType,
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
        check_data_type(format_args!("src_desc"), src, prop_kind.is_forward())?;
        let outer = &src.dims()[..ndims - 1];
        let (rows, cols) = (outer.iter().product::<i64>() as usize, src.dims()[ndims - 1] as usize);
        let parameters = if flags.scale() || flags.shift() {
            check_parameter_type("scale_shift_data_type", scale_shift)?;
            MemoryDesc::dense(&[cols as i64], scale_shift)?
        } else {
            MemoryDesc::EMPTY
        };
        let mut problem = Self {
            prop_kind,
            flags,
            epsilon,
            src: src.clone(),
            dst: MemoryDesc::EMPTY,
            diff_src: MemoryDesc::EMPTY,
            stat: MemoryDesc::EMPTY,
            scale_shift: parameters,
            diff_scale_shift: MemoryDesc::EMPTY,
            rows,
            cols,
            attr: Attr::default(),
            around: Around::default(),
            arguments: Vec::new(),
        };
        problem.stat = problem.statistics(stat)?;
        Ok(problem)
    }

    /// The descriptor of the statistics: the given one, or a default in the order of src.
    fn statistics(&self, stat: Option<&MemoryDesc>) -> Result<MemoryDesc> {
        let default = self.src.statistics()?;
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
            return Err(Error::unimplemented("stat_desc: statistics do not lie in blocks"));
        }
        if self.statistics_usage() == Some(Usage::Output) {
            stat.check_output("stat_desc")?;
        }
        Ok(stat.clone())
    }

    /// The descriptor of a tensor with the dimensions of src; `any` becomes the order of src.
    fn tensor_like_src(&self, name: &str, desc: &MemoryDesc) -> Result<MemoryDesc> {
        let desc = desc.resolved_for(format_args!("{name}_desc"), ("src_desc", &self.src))?;
        check_data_type(format_args!("{name}_desc"), &desc, self.prop_kind.is_forward())?;
        Ok(desc)
    }

    fn output_like_src(&self, name: &str, desc: &MemoryDesc) -> Result<MemoryDesc> {
        let desc = self.tensor_like_src(name, desc)?;
        desc.check_output(format_args!("{name}_desc"))?;
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

    fn writes_scale_shift(&self) -> bool {
        self.prop_kind == PropKind::Backward && (self.flags.scale() || self.flags.shift())
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
        let parameters = &self.scale_shift;
        let rows = [
            (true, sys::NORM_ARG_SRC, "src", Input, &self.src),
            (forward, sys::NORM_ARG_DST, "dst", Output, &self.dst),
            (!forward, sys::NORM_ARG_DIFF_DST, "diff_dst", Input, &self.dst),
            (!forward, sys::NORM_ARG_DIFF_SRC, "diff_src", Output, &self.diff_src),
            (mean, sys::NORM_ARG_MEAN, "mean", stat, &self.stat),
            (statistics.is_some(), sys::NORM_ARG_VARIANCE, "variance", stat, &self.stat),
            (self.flags.scale(), sys::NORM_ARG_SCALE, "scale", Input, parameters),
            (forward && self.flags.shift(), sys::NORM_ARG_SHIFT, "shift", Input, parameters),
            (
                self.writes_scale(),
                sys::NORM_ARG_DIFF_SCALE,
                "diff_scale",
                Output,
                &self.diff_scale_shift,
            ),
            (
                self.writes_shift(),
                sys::NORM_ARG_DIFF_SHIFT,
                "diff_shift",
                Output,
                &self.diff_scale_shift,
            ),
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

    /// Checks the attributes and adds their tensors to the arguments.
    fn add_attributes(&mut self, attr: &Attr) -> Result<()> {
        const FORWARD: Accepted = Accepted {
            scales: &[sys::NORM_ARG_SRC, sys::NORM_ARG_DST],
            zero_points: &[sys::NORM_ARG_DST],
            masks: false,
            post_op: |post_op| {
                matches!(
                    post_op,
                    PostOp::Eltwise { .. } | PostOp::Binary { .. } | PostOp::Sum { .. }
                )
            },
            around: true,
            dynamic: true,
        };
        const BACKWARD: Accepted = Accepted { around: true, ..Accepted::NOTHING };
        if !self.prop_kind.is_forward() {
            attr.check("backward layer normalization", &BACKWARD)?;
            return self.add_around(attr);
        }
        attr.check("layer normalization", &FORWARD)?;
        self.add_around(attr)?;
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
        let resolved = attr.with_post_ops(attr.post_ops.resolved(&self.dst)?);
        self.attr = checked_quantization("layer normalization", resolved, &self.dst)?;
        let tensors = [(sys::NORM_ARG_SRC, &self.src), (sys::NORM_ARG_DST, &self.dst)];
        self.attr.add_arguments(&mut self.arguments, &tensors, &self.dst)
    }

    /// The data type of a tensor; f32 for an empty descriptor.
    pub(super) fn type_of(desc: &MemoryDesc) -> DataType {
        desc.data_type().unwrap_or(DataType::F32)
    }
}

/// Checks the data type of a tensor of rows. Backward supports no 8-bit types.
fn check_data_type(name: fmt::Arguments<'_>, desc: &MemoryDesc, forward: bool) -> Result<()> {
    let what = if forward { "forward layer normalization" } else { "backward layer normalization" };
    desc.check_type(name, what, |t| t == DataType::F64 || t.is_supported(forward))
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
