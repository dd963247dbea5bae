//! The fence after non-temporal stores.

use crate::simd::{Level, Simd, entry_points};

/// Orders a thread's non-temporal stores before its later ones. Waiting for the stores takes as long as some kilobytes
/// of them, so a fence follows all rows of a task and not each one.
#[derive(Clone, Copy)]
pub(crate) struct Fence(unsafe fn());

impl Fence {
    pub(crate) fn new(level: Level) -> Self {
        Self(entries::at(level).unwrap_or(entries::portable::entry_portable))
    }

    /// The fence, if rows were stored non-temporally.
    ///
    /// # Safety
    /// The machine has the level.
    pub(crate) unsafe fn after(self, streams: bool) {
        if streams {
            // SAFETY: guaranteed by the caller.
            unsafe { (self.0)() }
        }
    }
}

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn fence<S: Simd>() {
    // SAFETY: guaranteed by the caller.
    unsafe { S::stream_fence() }
}

entry_points! {
    /// Fences, per level.
    mod entries: fence<>() -> ();
}
