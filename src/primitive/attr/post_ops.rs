//! Post-operations, applied to each element of an output before it is scaled and rounded.

use super::super::{ArgumentName, BinaryAlgorithm, EltwiseAlgorithm, OpArgument, Usage};
use crate::error::{Error, Result, Status};
use crate::heap;
use crate::mark::{Kind, Mark};
use crate::tensor::{DataType, Layout, MemoryDesc};
use crate::text::{joined, shown};
use norm_sys as sys;
use std::fmt;
use std::ops::Deref;

/// Maximum number of entries in a list.
pub(crate) const MAX_POST_OPS: usize = 32;

/// One entry. `x` is the result of the previous entries.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a list is one allocation, and most are short")]
pub(crate) enum PostOp {
    /// `x + scale*(dst - zero_point)`, where dst is its previous content, read as `data_type` or as
    /// dst's own type.
    Sum {
        scale: f32,
        zero_point: i32,
        data_type: Option<DataType>,
    },
    /// `f(x)`.
    Eltwise {
        algorithm: EltwiseAlgorithm,
        /// The value from C; several values have the same formula.
        code: sys::norm_alg_kind_t,
        alpha: f32,
        beta: f32,
    },
    /// `f(x, src1)`, or `src2 != 0 ? x : src1`.
    Binary {
        algorithm: BinaryAlgorithm,
        src1: MemoryDesc,
        /// Only for `Select`.
        src2: Option<MemoryDesc>,
    },
    /// `x > 0 ? x : weight*x`.
    Prelu {
        mask: i32,
    },
    Depthwise(Depthwise),
}

/// A depthwise convolution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depthwise {
    pub(crate) weights: DataType,
    pub(crate) bias: Option<DataType>,
    pub(crate) dst: DataType,
    pub(crate) kernel: i64,
    pub(crate) stride: i64,
    pub(crate) padding: i64,
}

impl PostOp {
    pub(crate) fn kind(&self) -> sys::norm_primitive_kind_t {
        match self {
            Self::Sum { .. } => sys::norm_sum,
            Self::Eltwise { .. } => sys::norm_eltwise,
            Self::Binary { .. } => sys::norm_binary,
            Self::Prelu { .. } => sys::norm_prelu,
            Self::Depthwise(_) => sys::norm_convolution,
        }
    }

    /// The tensors that it reads, except the output.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &MemoryDesc> {
        let (src1, src2) = match self {
            Self::Binary { src1, src2, .. } => (Some(src1), src2.as_ref()),
            _ => (None, None),
        };
        src1.into_iter().chain(src2)
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sum { .. } => "sum",
            Self::Eltwise { algorithm, .. } => algorithm.name(),
            Self::Binary { algorithm, .. } => algorithm.name(),
            Self::Prelu { .. } => "prelu",
            Self::Depthwise(_) => "depthwise convolution",
        }
    }

    /// In the syntax of benchdnn's command line.
    fn describe(&self) -> impl fmt::Display {
        shown(move |f| match self {
            Self::Sum { scale, zero_point, data_type } => {
                write!(f, "sum:{scale}:{zero_point}:{}", data_type.map_or("", DataType::name))
            }
            Self::Eltwise { alpha, beta, .. } => write!(f, "{}:{alpha}:{beta}", self.name()),
            Self::Binary { src1, .. } => write!(f, "{}:{}", self.name(), src1.describe()),
            Self::Prelu { mask } => write!(f, "prelu:{mask}"),
            Self::Depthwise(d) => {
                write!(f, "dw:k{}s{}p{}:{}", d.kernel, d.stride, d.padding, d.dst.name())
            }
        })
    }
}

/// A list of post-operations in execution order.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PostOps {
    /// C holds lists by pointer.
    pub(crate) mark: Mark,
    entries: Vec<PostOp>,
}

impl Default for PostOps {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Deref for PostOps {
    type Target = [PostOp];

    fn deref(&self) -> &[PostOp] {
        &self.entries
    }
}

impl PostOps {
    fn of(entries: Vec<PostOp>) -> Self {
        Self { mark: Mark::part(Kind::PostOps), entries }
    }

    pub(crate) fn append(&mut self, post_op: PostOp) -> Result<()> {
        if self.entries.len() == MAX_POST_OPS {
            let text = format_args!("post_ops: the list already has {MAX_POST_OPS} entries");
            return Err(Error::new(Status::OutOfMemory, text));
        }
        heap::push(&mut self.entries, post_op)
    }

    pub(crate) fn try_clone(&self) -> Result<Self> {
        self.with_operands(|_, _, operand| Ok(operand.clone()))
    }

    /// A copy with other operands. `change` makes each from the entry, the name and the operand.
    pub(crate) fn with_operands(
        &self,
        mut change: impl FnMut(usize, &'static str, &MemoryDesc) -> Result<MemoryDesc>,
    ) -> Result<Self> {
        let mut list = Vec::new();
        for (at, post_op) in self.iter().enumerate() {
            let mut post_op = post_op.clone();
            if let PostOp::Binary { src1, src2, .. } = &mut post_op {
                *src1 = change(at, "src1", src1)?;
                if let Some(src2) = src2 {
                    *src2 = change(at, "src2", src2)?;
                }
            }
            heap::push(&mut list, post_op)?;
        }
        Ok(Self::of(list))
    }

    /// The list for an output: checks the shapes of operands and replaces the layout `any`. It
    /// becomes the output's layout, or the dense one if at most one dimension is not 1.
    pub(crate) fn resolved(&self, dst: &MemoryDesc) -> Result<Self> {
        self.with_operands(|at, name, desc| {
            check_operand(format_args!("attr: {name} of post-operation {at}"), desc, dst)?;
            let spread = desc.dims().iter().filter(|d| **d != 1).count();
            match desc.layout() {
                Layout::Any if spread > 1 => desc.resolved_like(dst),
                Layout::Any => desc.resolved_dense(),
                _ => Ok(desc.clone()),
            }
        })
    }

    /// The operands of a resolved list.
    pub(super) fn arguments(&self) -> impl Iterator<Item = OpArgument> {
        const NAMES: [(i32, &str); 2] =
            [(sys::NORM_ARG_SRC_1, "src_1"), (sys::NORM_ARG_SRC_2, "src_2")];
        self.iter().enumerate().flat_map(|(post_op, entry)| {
            let operands = NAMES.iter().zip(entry.operands());
            operands.map(move |((id, name), desc)| OpArgument {
                id: sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(post_op as i32) | id,
                name: ArgumentName::Operand { post_op, name },
                usage: Usage::Input,
                desc: desc.clone(),
            })
        })
    }

    pub(super) fn describe(&self) -> impl fmt::Display {
        joined(self.iter().map(PostOp::describe), "+")
    }
}

/// Each dimension of an operand is the output's or 1, which broadcasts it.
fn check_operand(name: fmt::Arguments<'_>, desc: &MemoryDesc, dst: &MemoryDesc) -> Result<()> {
    let fits = |(d, dim): (&i64, &i64)| *d == 1 || d == dim;
    if desc.ndims() != dst.ndims() || !desc.dims().iter().zip(dst.dims()).all(fits) {
        return Err(Error::invalid(format_args!(
            "{name}: dimensions {:?} do not broadcast to those of the output, {:?}; it needs {} dimensions, each equal or 1",
            desc.dims(),
            dst.dims(),
            dst.ndims()
        )));
    }
    if desc.layout() == Layout::Undef {
        return Err(Error::invalid(format_args!("{name}: an empty descriptor")));
    }
    if desc.data_type() == Some(DataType::F64) {
        return Err(Error::invalid(format_args!("{name}: operands cannot be f64")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(dims: &[i64], tag: sys::norm_format_tag_t) -> PostOp {
        let src1 = MemoryDesc::with_tag(dims, DataType::F32, tag).unwrap();
        PostOp::Binary { algorithm: BinaryAlgorithm::Add, src1, src2: None }
    }

    #[test]
    fn operands_are_resolved_and_become_arguments() {
        let dst = MemoryDesc::with_tag(&[2, 3, 4], DataType::F16, sys::norm_bac).unwrap();
        let mut list = PostOps::default();
        list.append(PostOp::Prelu { mask: 0 }).unwrap();
        list.append(binary(&[2, 3, 1], sys::norm_format_tag_any)).unwrap();
        list.append(binary(&[1, 1, 4], sys::norm_format_tag_any)).unwrap();
        let resolved = list.resolved(&dst).unwrap();
        let arguments: Vec<_> = resolved.arguments().collect();
        assert_eq!(arguments.len(), 2);
        assert_eq!(arguments[0].id, 65536 + 2);
        assert_eq!(arguments[0].desc.strides(), [1, 2, 1]);
        assert_eq!(arguments[1].id, 98304 + 2);
        assert_eq!(arguments[1].desc.strides(), [4, 4, 1]);
    }

    #[test]
    fn mismatched_operands_are_rejected() {
        let dst = MemoryDesc::dense(&[2, 3], DataType::F32).unwrap();
        for dims in [&[2i64, 2][..], &[3], &[2, 3, 1]] {
            let tag = [sys::norm_a, sys::norm_ab, sys::norm_abc][dims.len() - 1];
            let mut list = PostOps::default();
            list.append(binary(dims, tag)).unwrap();
            assert_eq!(list.resolved(&dst).unwrap_err().status, Status::InvalidArguments);
        }
    }

    #[test]
    fn a_list_has_a_maximum_length() {
        let mut list = PostOps::default();
        for _ in 0..MAX_POST_OPS {
            list.append(PostOp::Prelu { mask: 0 }).unwrap();
        }
        let error = list.append(PostOp::Prelu { mask: 0 }).unwrap_err();
        assert_eq!((error.status, list.len()), (Status::OutOfMemory, MAX_POST_OPS));
    }
}
