//! The problem: what was asked for, checked, with every layout decided.

use super::{reference, vector};
use crate::error::{Error, Result};
use crate::heap::{self, Counted};
use crate::primitive::{
    Accepted, Answer, ArgumentName, Arguments, Attr, Implementation, Op, OpArgument, PostOp,
    PropKind, Usage, Variant, enumerators,
};
use crate::tensor::{DataType, Layout, MAX_NDIMS, MemoryDesc};
use crate::text::Capitals;
use arrayvec::ArrayVec;
use norm_sys as sys;
use std::fmt;

enumerators! {
    /// What is computed of a row.
    SoftmaxAlgorithm: norm_alg_kind_t {
        Accurate = norm_softmax_accurate, "softmax_accurate";
        Log = norm_softmax_log, "softmax_log";
    }
}

/// A checked problem.
#[derive(Debug)]
pub(crate) struct Softmax {
    pub(super) prop_kind: PropKind,
    pub(super) algorithm: SoftmaxAlgorithm,
    pub(super) axis: usize,
    /// Forward only.
    pub(super) src: MemoryDesc,
    pub(super) dst: MemoryDesc,
    /// Backward only.
    pub(super) diff_src: MemoryDesc,
    pub(super) diff_dst: MemoryDesc,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// With the tensors of post-operations resolved; forward only.
    attr: Attr,
    arguments: Vec<OpArgument>,
}

impl Softmax {
    pub(crate) fn forward(
        prop_kind: PropKind,
        algorithm: SoftmaxAlgorithm,
        [src, dst]: [&MemoryDesc; 2],
        axis: i32,
        attr: &Attr,
    ) -> Result<Self> {
        if !prop_kind.is_forward() {
            let name = prop_kind.name();
            return Err(Error::invalid(format_args!("prop_kind: {name} is not a forward kind")));
        }
        let mut problem = Self::of_rows(prop_kind, algorithm, "src", src, axis)?;
        problem.src = src.clone();
        problem.dst = problem.like("dst", dst, src)?;
        check_output("dst", &problem.dst)?;
        problem.arguments = heap::list([
            argument(sys::NORM_ARG_SRC, "src", Usage::Input, &problem.src),
            argument(sys::NORM_ARG_DST, "dst", Usage::Output, &problem.dst),
        ])?;
        problem.take_attributes(attr)?;
        Ok(problem)
    }

    pub(crate) fn backward(
        algorithm: SoftmaxAlgorithm,
        [diff_src, diff_dst, dst]: [&MemoryDesc; 3],
        axis: i32,
        attr: &Attr,
    ) -> Result<Self> {
        let mut problem = Self::of_rows(PropKind::BackwardData, algorithm, "dst", dst, axis)?;
        problem.dst = dst.clone();
        problem.diff_dst = problem.like("diff_dst", diff_dst, dst)?;
        problem.diff_src = problem.like("diff_src", diff_src, &problem.diff_dst)?;
        check_output("diff_src", &problem.diff_src)?;
        attr.check("backward softmax", &Accepted::NOTHING)?;
        problem.arguments = heap::list([
            argument(sys::NORM_ARG_DST, "dst", Usage::Input, &problem.dst),
            argument(sys::NORM_ARG_DIFF_DST, "diff_dst", Usage::Input, &problem.diff_dst),
            argument(sys::NORM_ARG_DIFF_SRC, "diff_src", Usage::Output, &problem.diff_src),
        ])?;
        Ok(problem)
    }

    /// Both directions, with the tensor that has to have a layout.
    fn of_rows(
        prop_kind: PropKind,
        algorithm: SoftmaxAlgorithm,
        name: &str,
        desc: &MemoryDesc,
        axis: i32,
    ) -> Result<Self> {
        check_data_type(name, desc, prop_kind.is_forward())?;
        if desc.layout() != Layout::Strided {
            return Err(Error::invalid(format_args!(
                "{name}_desc: the layout must be given, not `any`"
            )));
        }
        let ndims = desc.ndims();
        let axis = usize::try_from(axis).ok().filter(|axis| *axis < ndims).ok_or_else(|| {
            Error::invalid(format_args!("softmax_axis: {axis} is not one of {ndims} dimensions"))
        })?;
        let cols = desc.dims()[axis] as usize;
        let others = desc.dims().iter().enumerate().filter(|(d, _)| *d != axis);
        Ok(Self {
            prop_kind,
            algorithm,
            axis,
            src: MemoryDesc::EMPTY,
            dst: MemoryDesc::EMPTY,
            diff_src: MemoryDesc::EMPTY,
            diff_dst: MemoryDesc::EMPTY,
            rows: others.map(|(_, dim)| *dim as usize).product(),
            cols,
            attr: Attr::default(),
            arguments: Vec::new(),
        })
    }

    /// A tensor with the dimensions of another, whose layout `any` becomes.
    fn like(&self, name: &str, desc: &MemoryDesc, other: &MemoryDesc) -> Result<MemoryDesc> {
        check_data_type(name, desc, self.prop_kind.is_forward())?;
        if desc.dims() != other.dims() {
            return Err(Error::invalid(format_args!(
                "{name}_desc: dimensions {:?} are not {:?}",
                desc.dims(),
                other.dims()
            )));
        }
        match desc.layout() {
            // With its gaps, where elements have the same size.
            Layout::Any if desc.data_type() == other.data_type() && !other.overlaps_itself() => {
                Ok(other.clone())
            }
            Layout::Any => desc.resolved_like(other),
            _ => Ok(desc.clone()),
        }
    }

    fn take_attributes(&mut self, attr: &Attr) -> Result<()> {
        const FORWARD: Accepted = Accepted {
            scales: &[sys::NORM_ARG_SRC, sys::NORM_ARG_DST],
            zero_points: &[],
            masks: false,
            post_op: |post_op| matches!(post_op, PostOp::Eltwise { .. } | PostOp::Binary { .. }),
        };
        attr.check("softmax", &FORWARD)?;
        self.attr = attr.with_post_ops(attr.post_ops.resolved(&self.dst)?);
        let tensors = [(sys::NORM_ARG_SRC, &self.src), (sys::NORM_ARG_DST, &self.dst)];
        attr.add_arguments(&mut self.arguments, &tensors, &self.dst)
    }

    /// A tensor of the problem with the axis as the last dimension.
    pub(super) fn axis_last(&self, desc: &MemoryDesc) -> MemoryDesc {
        let last = desc.ndims().saturating_sub(1);
        let place = |d: usize| match d.cmp(&self.axis) {
            std::cmp::Ordering::Less => d,
            std::cmp::Ordering::Equal => last,
            std::cmp::Ordering::Greater => d - 1,
        };
        let permutation: ArrayVec<usize, MAX_NDIMS> = (0..desc.ndims()).map(place).collect();
        desc.permuted(&permutation)
    }

    /// The attributes with the operands of post-operations turned so.
    pub(super) fn attr_axis_last(&self) -> Result<Attr> {
        let post_ops = &self.attr.post_ops;
        let turned = post_ops.with_operands(|_, _, operand| Ok(self.axis_last(operand)))?;
        Ok(self.attr.with_post_ops(turned))
    }

    /// The tensors, for an implementation that does not take all.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &OpArgument> {
        self.arguments.iter().filter(|argument| !argument.is_quantization())
    }
}

fn argument(id: i32, name: &'static str, usage: Usage, desc: &MemoryDesc) -> OpArgument {
    OpArgument { id, name: ArgumentName::Tensor(name), usage, desc: desc.clone() }
}

/// The types that tensors can have.
fn check_data_type(name: &str, desc: &MemoryDesc, forward: bool) -> Result<()> {
    let (direction, types) = if forward {
        ("forward", "f32, bf16, f16, s8, u8, f8_e4m3 and f8_e5m2")
    } else {
        ("backward", "f32, bf16 and f16")
    };
    match desc.data_type() {
        Some(DataType::F32 | DataType::Bf16 | DataType::F16) => Ok(()),
        Some(DataType::S8 | DataType::U8 | DataType::F8E4m3 | DataType::F8E5m2) if forward => {
            Ok(())
        }
        Some(other) => Err(Error::unimplemented(format_args!(
            "{name}_desc: {direction} softmax takes {types}, not {}",
            other.name()
        ))),
        None => Err(Error::invalid(format_args!("{name}_desc: an empty descriptor"))),
    }
}

fn check_output(name: &str, desc: &MemoryDesc) -> Result<()> {
    if desc.overlaps_itself() {
        let text = format_args!("{name}_desc: elements of an output share an address");
        return Err(Error::invalid(text));
    }
    Ok(())
}

impl Op for Softmax {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_softmax
    }

    fn name(&self) -> &'static str {
        "softmax"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        Some(self.prop_kind)
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        match what {
            sys::norm_query_alg_kind => Some(Answer::U32(self.algorithm.code())),
            sys::norm_query_axis_s32 => Some(Answer::S32(self.axis as i32)),
            _ => None,
        }
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn query_md(&self, what: sys::norm_query_t, index: i32) -> Option<&MemoryDesc> {
        let id = match what {
            sys::norm_query_exec_arg_md => index,
            _ if index != 0 => return None,
            sys::norm_query_src_md => sys::NORM_ARG_SRC,
            sys::norm_query_dst_md => sys::NORM_ARG_DST,
            sys::norm_query_diff_src_md => sys::NORM_ARG_DIFF_SRC,
            sys::norm_query_diff_dst_md => sys::NORM_ARG_DIFF_DST,
            _ => return None,
        };
        self.arguments.iter().find(|argument| argument.id == id).map(|argument| &argument.desc)
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "alg:{} axis:{}", self.algorithm.name(), self.axis)
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(level) => vector::make(self, variant, level),
            None => reference::make(self, variant),
        }
    }

    fn check_buffers(&self, arguments: &Arguments) -> Result<()> {
        let output = self.tensors().find(|argument| argument.usage == Usage::Output);
        for input in self.tensors().filter(|argument| argument.usage == Usage::Input) {
            let Some(output) = output else { continue };
            let shared = arguments.get(input.id);
            // Tensors without elements share nothing.
            if !shared.is_null()
                && shared == arguments.get(output.id)
                && !output.desc.has_zero_dim()
                && !input.is_of_attribute()
                && !input.desc.same_layout(&output.desc)
            {
                return Err(Error::invalid(format_args!(
                    "args: {} and {} share a buffer, which takes one data type and layout for both",
                    Capitals(input.name),
                    Capitals(output.name)
                )));
            }
        }
        Ok(())
    }
}
