//! The vector implementations.

use super::forward::Forward;
use super::problem::Sdpa;
use crate::error::Result;
use crate::heap::{Counted, counted};
use crate::primitive::{Execution, Implementation, Variant};
use crate::simd::Level;

/// The vector implementation at a level, or why it does not fit.
pub(super) fn make(
    problem: &Sdpa,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<Counted<dyn Implementation>>> {
    Ok(counted(Vectorized { variant, forward: Forward::new(problem, level)? })?)
}

struct Vectorized {
    variant: &'static Variant,
    forward: Forward,
}

impl Implementation for Vectorized {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        self.forward.scratchpad_size()
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        self.forward.execute(execution)
    }
}
