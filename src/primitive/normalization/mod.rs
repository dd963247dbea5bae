//! What problems of normalizations share: their common parameters, checks, arguments, queries and attributes.
//!
//! An operation's problem contains a [`Normalization`] and adds its own parameters. Everything that depends on the
//! extent of the statistics belongs to the operation.

mod around;
mod flags;
mod hint;
mod queries;

use super::{Accepted, ArgumentName, Around, Attr, OpArgument, PostOp, PropKind, Usage};
use crate::error::{Error, Result};
use crate::heap;
use crate::tensor::{DataType, Layout, MemoryDesc};
pub(crate) use flags::Flags;
pub(crate) use hint::Hint;
use norm_sys as sys;

/// The names of an operation in messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) plain: &'static str,
    pub(crate) forward: &'static str,
    pub(crate) backward: &'static str,
}

/// The part of a checked problem that normalizations share.
#[derive(Debug)]
pub(crate) struct Normalization {
    names: Names,
    pub(crate) prop_kind: PropKind,
    pub(crate) flags: Flags,
    pub(crate) epsilon: f32,
    pub(crate) src: MemoryDesc,
    /// dst in forward, diff_dst in backward.
    pub(crate) dst: MemoryDesc,
    /// Backward only.
    pub(crate) diff_src: MemoryDesc,
    pub(crate) stat: MemoryDesc,
    /// The dimension along which scale and shift vary.
    pub(crate) axis: usize,
    /// Scale and shift; empty if the problem has neither.
    pub(crate) scale_shift: MemoryDesc,
    /// Their gradients; empty unless they are computed.
    pub(crate) diff_scale_shift: MemoryDesc,
    /// Attributes of dst, with their tensors resolved; forward only.
    pub(crate) attr: Attr,
    /// The steps around the normalization.
    pub(crate) around: Around,
    pub(crate) arguments: Vec<OpArgument>,
}

/// The parameters that all constructors share.
#[derive(Clone, Copy)]
pub(crate) struct Common<'a> {
    pub(crate) names: Names,
    pub(crate) prop_kind: PropKind,
    pub(crate) src: &'a MemoryDesc,
    pub(crate) epsilon: f32,
    pub(crate) flags: u32,
}

/// The attributes that forward normalizations accept; layer normalization accepts more.
pub(crate) const FORWARD: Accepted = Accepted {
    scales: &[sys::NORM_ARG_SRC, sys::NORM_ARG_DST],
    zero_points: &[],
    masks: false,
    post_op: |post_op| {
        matches!(post_op, PostOp::Eltwise { .. } | PostOp::Binary { .. } | PostOp::Sum { .. })
    },
    around: true,
    dynamic: false,
    ..Accepted::NOTHING
};

/// Checks that a propagation kind matches the direction of a constructor.
pub(crate) fn check_kind(prop_kind: PropKind, forward: bool) -> Result<()> {
    if prop_kind.is_forward() == forward {
        return Ok(());
    }
    if forward {
        return prop_kind.check_forward();
    }
    let name = prop_kind.name();
    Err(Error::invalid(format_args!("prop_kind: {name} is not backward or backward_data")))
}

fn check_ndims(src: &MemoryDesc) -> Result<()> {
    let reason = match src.ndims() {
        0 => "an empty descriptor",
        1 => "1 dimension, not 2 to 5; a single row of C elements is {1, C}",
        2..=5 => return Ok(()),
        _ => "more than 5 dimensions",
    };
    Err(Error::invalid(format_args!("src_desc: {reason}")))
}

/// The src of a backward problem: `any` becomes the order of diff_dst, if it is given.
pub(crate) fn resolved_src(src: &MemoryDesc, diff_dst: &MemoryDesc) -> Result<MemoryDesc> {
    if src.layout() != Layout::Any {
        return Ok(src.clone());
    }
    let is_given = diff_dst.layout() == Layout::Strided && diff_dst.ndims() == src.ndims();
    if is_given { src.resolved_like(diff_dst) } else { src.resolved_dense() }
}

impl Normalization {
    /// The checked parameters. Other tensors than src are still empty.
    pub(crate) fn new(p: &Common<'_>) -> Result<Self> {
        let Common { names, prop_kind, src, epsilon, .. } = *p;
        let flags = Flags::new(p.flags)?;
        if !(epsilon >= 0.0 && epsilon.is_finite()) {
            return Err(Error::invalid(format_args!(
                "epsilon: {epsilon} is not a finite number of 0 or more"
            )));
        }
        let ndims = src.ndims();
        check_ndims(src)?;
        src.check_layout("src_desc")?;
        let base = Self {
            names,
            prop_kind,
            flags,
            epsilon,
            src: src.clone(),
            dst: MemoryDesc::EMPTY,
            diff_src: MemoryDesc::EMPTY,
            stat: MemoryDesc::EMPTY,
            axis: ndims - 1,
            scale_shift: MemoryDesc::EMPTY,
            diff_scale_shift: MemoryDesc::EMPTY,
            attr: Attr::default(),
            around: Around::default(),
            arguments: Vec::new(),
        };
        base.check_data_type("src_desc", src)?;
        Ok(base)
    }

    /// Whether it has scale or shift.
    pub(crate) fn has_parameters(&self) -> bool {
        self.flags.scale() || self.flags.shift()
    }

    /// Checks the data type of a tensor like src. Backward supports no 8-bit types.
    fn check_data_type(&self, name: &str, desc: &MemoryDesc) -> Result<()> {
        let forward = self.prop_kind.is_forward();
        let what = if forward { self.names.forward } else { self.names.backward };
        desc.check_type(name, what, |t| t == DataType::F64 || t.is_supported(forward))
    }

    /// The descriptor of a tensor with the dimensions of src; `any` becomes the order of src.
    pub(crate) fn tensor_like_src(&self, name: &str, desc: &MemoryDesc) -> Result<MemoryDesc> {
        let desc = desc.resolved_for(name, ("src_desc", &self.src))?;
        self.check_data_type(name, &desc)?;
        Ok(desc)
    }

    pub(crate) fn output_like_src(&self, name: &str, desc: &MemoryDesc) -> Result<MemoryDesc> {
        let desc = self.tensor_like_src(name, desc)?;
        desc.check_output(name)?;
        Ok(desc)
    }

    /// How the statistics are used; `None` if they are not arguments.
    pub(crate) fn statistics_usage(&self) -> Option<Usage> {
        match self.prop_kind {
            _ if self.flags.global_stats() => Some(Usage::Input),
            PropKind::ForwardTraining => Some(Usage::Output),
            PropKind::ForwardInference => None,
            PropKind::Backward | PropKind::BackwardData => Some(Usage::Input),
        }
    }

    pub(crate) fn writes_scale_shift(&self) -> bool {
        self.prop_kind == PropKind::Backward && self.has_parameters()
    }

    pub(crate) fn writes_scale(&self) -> bool {
        self.prop_kind == PropKind::Backward && self.flags.scale()
    }

    pub(crate) fn writes_shift(&self) -> bool {
        self.prop_kind == PropKind::Backward && self.flags.shift()
    }

    /// Lists the arguments, without those of attributes.
    pub(crate) fn list_arguments(&mut self) -> Result<()> {
        use Usage::{Input, Output};
        let forward = self.prop_kind.is_forward();
        let statistics = self.statistics_usage();
        let stat = statistics.unwrap_or(Input);
        let mean = statistics.is_some() && !self.flags.rms();
        let (scale, shift) = (self.flags.scale(), forward && self.flags.shift());
        let (parameters, gradients) = (&self.scale_shift, &self.diff_scale_shift);
        let rows = [
            (true, sys::NORM_ARG_SRC, "src", Input, &self.src),
            (forward, sys::NORM_ARG_DST, "dst", Output, &self.dst),
            (!forward, sys::NORM_ARG_DIFF_DST, "diff_dst", Input, &self.dst),
            (!forward, sys::NORM_ARG_DIFF_SRC, "diff_src", Output, &self.diff_src),
            (mean, sys::NORM_ARG_MEAN, "mean", stat, &self.stat),
            (statistics.is_some(), sys::NORM_ARG_VARIANCE, "variance", stat, &self.stat),
            (scale, sys::NORM_ARG_SCALE, "scale", Input, parameters),
            (shift, sys::NORM_ARG_SHIFT, "shift", Input, parameters),
            (self.writes_scale(), sys::NORM_ARG_DIFF_SCALE, "diff_scale", Output, gradients),
            (self.writes_shift(), sys::NORM_ARG_DIFF_SHIFT, "diff_shift", Output, gradients),
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

    /// Checks the attributes of backward, and adds their tensors to the arguments.
    pub(crate) fn add_backward_attributes(&mut self, attr: &Attr) -> Result<()> {
        attr.check(self.names.backward, &Accepted { around: true, ..Accepted::NOTHING })?;
        self.add_around(attr)
    }

    /// Checks the attributes of forward, and adds the tensors around the normalization to the arguments. The attributes
    /// that are returned have their tensors resolved.
    pub(crate) fn checked_attributes(&mut self, attr: &Attr, accepted: &Accepted) -> Result<Attr> {
        attr.check(self.names.plain, accepted)?;
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
        Ok(attr.with_post_ops(attr.post_ops.resolved(&self.dst)?))
    }

    /// Sets the attributes of dst, and adds their tensors to the arguments.
    pub(crate) fn set_attributes(&mut self, attr: Attr) -> Result<()> {
        self.attr = attr;
        let tensors = [(sys::NORM_ARG_SRC, &self.src), (sys::NORM_ARG_DST, &self.dst)];
        self.attr.add_arguments(&mut self.arguments, &tensors, &self.dst)
    }

    /// The data type of a tensor; f32 for an empty descriptor.
    pub(crate) fn type_of(desc: &MemoryDesc) -> DataType {
        desc.data_type().unwrap_or(DataType::F32)
    }
}
