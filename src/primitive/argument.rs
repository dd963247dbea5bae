//! The execution arguments of a problem.

use crate::tensor::MemoryDesc;
use crate::text::{Capitals, shown};
use norm_sys as sys;
use std::fmt;

/// Whether an execution reads or writes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    Input,
    Output,
}

/// The name of an execution argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentName {
    /// A tensor, or the scratchpad.
    Tensor(&'static str),
    /// The scales of an argument.
    Scales(i32),
    /// The zero points of an argument.
    ZeroPoints(i32),
    /// The named operand of a post-operation.
    Operand { post_op: usize, name: &'static str },
}

/// Without `NORM_ARG_`, in lower case.
impl fmt::Display for ArgumentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Tensor(name) => f.write_str(name),
            Self::Scales(arg) => write!(f, "attr_scales | NORM_ARG_{}", Capitals(name_of(arg))),
            Self::ZeroPoints(arg) => {
                write!(f, "attr_zero_points | NORM_ARG_{}", Capitals(name_of(arg)))
            }
            Self::Operand { post_op, name } => {
                write!(f, "attr_multiple_post_op({post_op}) | NORM_ARG_{}", Capitals(name))
            }
        }
    }
}

/// The name, in lower case, of an argument that can have scales, or its number.
pub(super) fn name_of(arg: i32) -> impl fmt::Display {
    shown(move |f| match arg {
        sys::NORM_ARG_SRC => f.write_str("src"),
        sys::NORM_ARG_SRC_1 => f.write_str("src_1"),
        sys::NORM_ARG_SRC_2 => f.write_str("src_2"),
        sys::NORM_ARG_DST => f.write_str("dst"),
        sys::NORM_ARG_WEIGHTS => f.write_str("weights"),
        _ => write!(f, "{arg}"),
    })
}

/// An execution argument of a problem.
#[derive(Clone, Debug)]
pub(crate) struct OpArgument {
    pub(crate) id: i32,
    pub(crate) name: ArgumentName,
    pub(crate) usage: Usage,
    pub(crate) desc: MemoryDesc,
}

impl OpArgument {
    /// The bit of argument ids that oneDNN does not have.
    pub(super) const OWN: i32 = 0x4000_0000;

    /// A tensor of the operation.
    pub(crate) fn tensor(id: i32, name: &'static str, usage: Usage, desc: &MemoryDesc) -> Self {
        Self { id, name: ArgumentName::Tensor(name), usage, desc: desc.clone() }
    }

    /// Whether it belongs to an attribute and not to the operation.
    pub(crate) fn is_of_attribute(&self) -> bool {
        let dropout = sys::NORM_ARG_ATTR_DROPOUT_OFFSET..=sys::NORM_ARG_ATTR_DROPOUT_SEED;
        self.id & !Self::OWN >= sys::NORM_ARG_ATTR_SCALES
            || dropout.contains(&self.id)
            || self.id == sys::NORM_ARG_SOFTMAX_STATS
    }

    /// Whether it holds scales or zero points.
    pub(crate) fn is_quantization(&self) -> bool {
        let ids = sys::NORM_ARG_ATTR_SCALES..sys::NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE;
        ids.contains(&(self.id & !Self::OWN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(id: i32) -> OpArgument {
        let name = ArgumentName::Tensor("");
        OpArgument { id, name, usage: Usage::Input, desc: MemoryDesc::EMPTY }
    }

    #[test]
    fn own_ids_are_no_attributes() {
        let own = |n| OpArgument::OWN | n;
        for id in [sys::NORM_ARG_SRC, sys::NORM_ARG_DIFF_SHIFT, own(1), own(38), own(1023)] {
            assert!(!argument(id).is_of_attribute(), "{id}");
            assert!(!argument(id).is_quantization(), "{id}");
        }
        for base in [sys::NORM_ARG_ATTR_SCALES, sys::NORM_ARG_ATTR_ZERO_POINTS] {
            for id in [base | sys::NORM_ARG_DST, base | own(38)] {
                assert!(argument(id).is_of_attribute() && argument(id).is_quantization(), "{id}");
            }
        }
        for id in [sys::NORM_ARG_SOFTMAX_STATS, sys::NORM_ARG_ATTR_DROPOUT_MASK] {
            assert!(argument(id).is_of_attribute() && !argument(id).is_quantization(), "{id}");
        }
        let operand = argument(sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(31) | sys::NORM_ARG_SRC_1);
        assert!(operand.is_of_attribute() && !operand.is_quantization());
    }
}
