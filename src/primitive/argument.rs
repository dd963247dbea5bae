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
    /// Whether it belongs to an attribute and not to the operation.
    pub(crate) fn is_of_attribute(&self) -> bool {
        self.id >= sys::NORM_ARG_ATTR_SCALES
    }
}
