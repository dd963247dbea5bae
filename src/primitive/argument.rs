//! The execution arguments of a problem.

use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::borrow::Cow;

/// Whether an execution reads or writes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    Input,
    Output,
}

/// An execution argument of a problem.
#[derive(Clone, Debug)]
pub(crate) struct OpArgument {
    pub(crate) id: i32,
    /// The name without `NORM_ARG_`, in lower case.
    pub(crate) name: Cow<'static, str>,
    pub(crate) usage: Usage,
    pub(crate) desc: MemoryDesc,
}

impl OpArgument {
    /// The bit of argument ids that oneDNN does not have.
    pub(super) const OWN: i32 = 0x4000_0000;

    /// Whether it belongs to an attribute and not to the operation.
    pub(crate) fn is_of_attribute(&self) -> bool {
        self.id & !Self::OWN >= sys::NORM_ARG_ATTR_SCALES
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
        OpArgument { id, name: "".into(), usage: Usage::Input, desc: MemoryDesc::EMPTY }
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
        let operand = argument(sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(31) | sys::NORM_ARG_SRC_1);
        assert!(operand.is_of_attribute() && !operand.is_quantization());
    }
}
