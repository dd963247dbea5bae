//! The vector implementations.

use super::backward::Backward;
use super::forward::Forward;
use super::problem::Sdpa;
use crate::error::Result;
use crate::heap::{Counted, counted};
use crate::primitive::{Execution, Implementation, Variant};
use crate::simd::Level;

/// The vector implementation at a level, or why it does not support the problem.
pub(super) fn make(
    problem: &Sdpa,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<Counted<dyn Implementation>>> {
    let direction = if problem.prop_kind.is_forward() {
        Direction::Forward(Forward::new(problem, level)?)
    } else {
        Direction::Backward(Backward::new(problem, level)?)
    };
    Ok(counted(Vectorized { variant, direction })?)
}

#[allow(clippy::large_enum_variant, reason = "there is one in an allocation of its own")]
enum Direction {
    Forward(Forward),
    Backward(Backward),
}

struct Vectorized {
    variant: &'static Variant,
    direction: Direction,
}

impl Implementation for Vectorized {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        match &self.direction {
            Direction::Forward(forward) => forward.scratchpad_size(),
            Direction::Backward(backward) => backward.scratchpad_size(),
        }
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        match &self.direction {
            Direction::Forward(forward) => forward.execute(execution),
            Direction::Backward(backward) => backward.execute(execution),
        }
    }
}
