//! Steps around a normalization in the same pass: a residual before it, a gate before or after it, and statistics over
//! part of the row.

use crate::error::{Error, Result};
use crate::heap::Shared;
use crate::primitive::{EltwiseAlgorithm, ResidualRounding};
use crate::tensor::{Layout, MemoryDesc, Support};
use std::fmt;

/// A tensor added to src.
#[derive(Clone, Debug)]
pub(crate) struct Residual {
    pub(crate) desc: MemoryDesc,
    /// The stored sum.
    pub(crate) sum: Option<MemoryDesc>,
    pub(crate) rounding: ResidualRounding,
}

/// A tensor of gates. The factor is a function of its elements.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) desc: MemoryDesc,
    /// Swish or logistic.
    pub(crate) algorithm: EltwiseAlgorithm,
    pub(crate) alpha: f32,
}

/// The attributes of normalizations that oneDNN does not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    pub(crate) residual: Option<Shared<Residual>>,
    pub(crate) gate: Option<Shared<Gate>>,
    /// The number of a row's elements in the mean square.
    pub(crate) partial: Option<i64>,
}

impl Around {
    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The name of an attribute that is set.
    pub(super) fn first(&self) -> Option<&'static str> {
        let names = [
            (self.residual.is_some(), "a residual"),
            (self.gate.is_some(), "a gate"),
            (self.partial.is_some(), "a partial norm"),
        ];
        names.into_iter().find(|(is_set, _)| *is_set).map(|(_, name)| name)
    }

    /// `residual:bf16:f32:exact`, the syntax of benchdnn's command line.
    pub(super) fn describe_residual(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Residual { desc, sum, rounding }) = self.residual.as_deref() else {
            return Ok(());
        };
        let sum = sum.as_ref().and_then(MemoryDesc::data_type).map_or("none", |t| t.name());
        write!(f, "{}:{sum}:{}", name(desc), rounding.name())
    }

    /// `bf16:swish:1`, the syntax of benchdnn's command line.
    pub(super) fn describe_gate(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Gate { desc, algorithm, alpha }) = self.gate.as_deref() else { return Ok(()) };
        write!(f, "{}:{}:{alpha}", name(desc), algorithm.name())
    }
}

fn name(desc: &MemoryDesc) -> &'static str {
    desc.data_type().map_or("undef", |data_type| data_type.name())
}

/// A descriptor of an attribute, checked for what does not depend on the primitive.
pub(crate) fn check_tensor(name: &str, desc: &MemoryDesc) -> Result<()> {
    desc.check_type(name, "the attribute", |data_type| data_type.support() == Support::Full)?;
    if desc.layout() == Layout::Undef {
        return Err(Error::invalid(format_args!("{name}: an empty descriptor")));
    }
    Ok(())
}
