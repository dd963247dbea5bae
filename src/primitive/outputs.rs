//! Outputs of an execution that share a buffer.
//!
//! One of them would overwrite the other, whatever the order of steps. Operations whose outputs could be mistaken for
//! each other, such as gradients of several tensors, refuse it.

use super::argument::{OpArgument, Usage};
use super::desc::Arguments;
use crate::error::{Error, Result};
use crate::text::Capitals;

/// Checks that no two outputs share a buffer.
pub(crate) fn check_outputs_apart(all: &[OpArgument], arguments: &Arguments) -> Result<()> {
    // Empty tensors share nothing, whatever their addresses.
    let outputs = || {
        let own = all.iter().filter(|argument| argument.usage == Usage::Output);
        own.filter(|output| !output.desc.has_zero_dim())
    };
    for (at, output) in outputs().enumerate() {
        let shares = |other: &&OpArgument| arguments.get(other.id) == arguments.get(output.id);
        if let Some(other) = outputs().skip(at + 1).find(shares) {
            return Err(Error::invalid(format_args!(
                "args: {} and {} are outputs and share a buffer",
                Capitals(output.name),
                Capitals(other.name)
            )));
        }
    }
    Ok(())
}
