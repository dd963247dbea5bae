//! The positions and slots of an execution, read and checked.

use super::plan::Plan;
use crate::error::{Error, Result};
use crate::tensor::{DataType, MemoryDesc};

/// The largest supported position. Up to it, products with frequencies are reduced exactly.
pub(super) const LARGEST_POSITION: i64 = i32::MAX as i64;

/// The positions of an execution's tokens.
#[derive(Clone, Copy)]
pub(super) struct Positions<'a> {
    plan: &'a Plan,
    address: *const u8,
    data_type: DataType,
    /// The number of parts of a position, and the stride between them.
    pub(super) parts: usize,
    part_step: usize,
}

// SAFETY: inputs are read-only during an execution.
unsafe impl Sync for Positions<'_> {}

impl<'a> Positions<'a> {
    pub(super) fn new(plan: &'a Plan, desc: &MemoryDesc, address: *const u8, parts: usize) -> Self {
        let data_type = desc.data_type().unwrap_or(DataType::S32);
        let part_step = if parts > 1 { desc.strides()[desc.ndims() - 1] as usize } else { 0 };
        Self { plan, address, data_type, parts, part_step }
    }

    /// A part of a token's position.
    ///
    /// # Safety
    /// The tensor and the token exist.
    #[inline]
    pub(super) unsafe fn get(&self, token: usize, part: usize) -> i64 {
        let at = self.plan.positions.offset(token) + part * self.part_step;
        let index = self.plan.index.map_or(0, |(inner, count)| token / inner % count);
        // SAFETY: guaranteed by the caller; no alignment is needed.
        let position = unsafe {
            match self.data_type {
                DataType::S64 => self.address.cast::<i64>().add(at).read_unaligned(),
                _ => i64::from(self.address.cast::<i32>().add(at).read_unaligned()),
            }
        };
        position.saturating_add(index as i64)
    }

    /// Checks that positions are below `count`, the number of rows of the tables, or at most [`LARGEST_POSITION`].
    ///
    /// # Safety
    /// The tensor exists.
    pub(super) unsafe fn check(&self, count: Option<i64>) -> Result<()> {
        let largest = count.map_or(LARGEST_POSITION, |count| count - 1);
        for token in 0..self.plan.tokens {
            for part in 0..self.parts {
                // SAFETY: guaranteed by the caller.
                let position = unsafe { self.get(token, part) };
                if !(0..=largest).contains(&position) {
                    return Err(refused(position, token, count));
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn refused(position: i64, token: usize, count: Option<i64>) -> Error {
    let start = format_args!("args: NORM_ARG_POSITIONS: {position}, of token {token},");
    match count {
        Some(_) if position < 0 => Error::invalid(format_args!("{start} is below 0")),
        Some(count) => Error::invalid(format_args!(
            "args: NORM_ARG_POSITIONS: {position}, of token {token}, is outside the tables' {count} rows"
        )),
        None => Error::invalid(format_args!(
            "args: NORM_ARG_POSITIONS: {position}, of token {token}, is not from 0 to {LARGEST_POSITION}"
        )),
    }
}

/// The slot of a token; `None` if it has none.
///
/// # Safety
/// The slots and the token exist, and the slots were checked.
#[inline]
pub(super) unsafe fn slot(slots: *const u8, token: usize) -> Option<usize> {
    // SAFETY: guaranteed by the caller.
    usize::try_from(unsafe { slots.cast::<i64>().add(token).read_unaligned() }).ok()
}

/// Checks that slots are -1 or from 0 to `count - 1`.
///
/// # Safety
/// There is one for each token.
pub(super) unsafe fn check_slots(slots: *const u8, tokens: usize, count: usize) -> Result<()> {
    for token in 0..tokens {
        // SAFETY: guaranteed by the caller.
        let slot = unsafe { slots.cast::<i64>().add(token).read_unaligned() };
        if slot < -1 || slot >= count as i64 {
            return Err(Error::invalid(format_args!(
                "args: NORM_ARG_SLOTS: {slot}, of token {token}, is neither -1 nor among the {count} slots of dst"
            )));
        }
    }
    Ok(())
}
