//! The operation: its queries, and which implementation runs a problem.

use super::positions::check_slots;
use super::problem::{AngleSource, Rope};
use super::{reference, vector};
use crate::error::{Error, Result};
use crate::heap::{Counted, list};
use crate::primitive::{
    Answer, Arguments, Implementation, Op, OpArgument, PropKind, Variant, check_shared_layouts,
};
use norm_sys as sys;
use std::fmt;

impl Rope {
    /// A copy, for an implementation.
    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            sections: self.sections.clone(),
            plan: self.plan.clone(),
            arguments: list(self.arguments.iter().cloned())?,
            ..*self
        })
    }

    /// Checks the values of positions.
    pub(super) fn check_positions(&self, arguments: &Arguments) -> Result<()> {
        if self.plan.tokens * self.plan.heads == 0 {
            return Ok(());
        }
        let table = self.desc(sys::NORM_ARG_ROPE_COS);
        let rows = (self.angles == AngleSource::Tables).then(|| table.dims()[0]);
        let positions = self.positions(arguments.get(sys::NORM_ARG_POSITIONS));
        // SAFETY: the buffers are as large as their descriptors.
        unsafe { positions.check(rows) }
    }
}

impl Op for Rope {
    fn kind(&self) -> sys::norm_primitive_kind_t {
        sys::norm_rope
    }

    fn name(&self) -> &'static str {
        "rope"
    }

    fn prop_kind(&self) -> Option<PropKind> {
        Some(self.prop_kind)
    }

    fn query(&self, what: sys::norm_query_t) -> Option<Answer> {
        match what {
            sys::norm_query_epsilon_f32 => Some(Answer::F32(self.epsilon)),
            sys::norm_query_flags => Some(Answer::U32(self.flags)),
            _ => None,
        }
    }

    fn arguments(&self) -> &[OpArgument] {
        &self.arguments
    }

    fn auxiliary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pairing, angles) = (self.pairing.name(), self.angles.name());
        write!(f, "pairing:{pairing} angles:{angles} rotary_dims:{}", self.rotary_dims)?;
        write!(f, " flags:{:#x}", self.flags)
    }

    fn implement(&self, variant: &'static Variant) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(level) => vector::make(self, variant, level),
            None => reference::make(self, variant),
        }
    }

    /// Also checks positions and slots, so nothing is written if one is wrong.
    fn check_buffers(&self, arguments: &Arguments) -> Result<()> {
        check_shared_layouts(&self.arguments, arguments)?;
        self.check_positions(arguments)?;
        let Some(slots) = self.plan.slots else { return Ok(()) };
        if self.plan.tokens * self.plan.heads == 0 {
            return Ok(());
        }
        let [input, output] = self.ids().map(|id| arguments.get(id));
        if input == output {
            return Err(Error::invalid(
                "args: NORM_ARG_SRC and NORM_ARG_DST share a buffer, which write_slots does not allow",
            ));
        }
        // SAFETY: the buffers are as large as their descriptors.
        unsafe { check_slots(arguments.get(sys::NORM_ARG_SLOTS), self.plan.tokens, slots) }
    }
}
