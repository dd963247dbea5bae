//! The floating-point mode of a calling thread.
//!
//! A program may have changed its thread's rounding mode or flush subnormals to zero. The library
//! must not be affected, and must not change the thread's mode. Rust assumes the default mode, so
//! only the foreign call runs between setting and restoring.

/// A mode that a caller may have set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatMode {
    /// To nearest, with subnormals: the initial mode of Rust and C programs.
    Default,
    /// Subnormals are flushed to zero, as inputs and as results.
    FlushToZero,
    /// Results are rounded upwards.
    RoundUp,
    /// Results are rounded towards zero, and subnormals flushed.
    RoundToZeroAndFlush,
}

impl FloatMode {
    /// The other modes that can be set on this machine.
    pub const OTHERS: &'static [FloatMode] =
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            &[FloatMode::FlushToZero, FloatMode::RoundUp, FloatMode::RoundToZeroAndFlush]
        } else {
            &[]
        };

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            FloatMode::Default => "default mode",
            FloatMode::FlushToZero => "flush-to-zero mode",
            FloatMode::RoundUp => "rounding upwards",
            FloatMode::RoundToZeroAndFlush => "rounding to zero with flush-to-zero",
        }
    }
}

/// Calls `call` in `mode`, and returns whether the thread was still in that mode afterwards.
pub fn under<R>(mode: FloatMode, call: impl FnOnce() -> R) -> (R, bool) {
    let before = control::get();
    let wanted = (before & !control::MASK) | control::bits(mode);
    // SAFETY: only rounding and the treatment of subnormals change, and no floating-point operation
    // of this program runs until they are restored; `call` is a foreign call.
    unsafe { control::set(wanted) };
    let result = call();
    let after = control::get();
    // SAFETY: this is the mode that the thread had before.
    unsafe { control::set(before) };
    (result, after & control::MASK == wanted & control::MASK)
}

#[cfg(target_arch = "x86_64")]
mod control {
    use super::FloatMode;
    use std::arch::asm;

    const FLUSH: u32 = 1 << 15;
    const DENORMALS_ARE_ZERO: u32 = 1 << 6;
    const UP: u32 = 2 << 13;
    const TO_ZERO: u32 = 3 << 13;
    pub(super) const MASK: u32 = FLUSH | DENORMALS_ARE_ZERO | TO_ZERO;

    pub(super) fn bits(mode: FloatMode) -> u32 {
        match mode {
            FloatMode::Default => 0,
            FloatMode::FlushToZero => FLUSH | DENORMALS_ARE_ZERO,
            FloatMode::RoundUp => UP,
            FloatMode::RoundToZeroAndFlush => FLUSH | DENORMALS_ARE_ZERO | TO_ZERO,
        }
    }

    pub(super) fn get() -> u32 {
        let mut value = 0_u32;
        // SAFETY: stores the MXCSR register to four bytes of a local variable.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut value, options(nostack, preserves_flags)) };
        value
    }

    /// # Safety
    /// The exception masks are as they were, and the default is set again before any
    /// floating-point operation of Rust code.
    pub(super) unsafe fn set(value: u32) {
        // SAFETY: guaranteed by the caller; reads four bytes of a local variable.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &value, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use super::FloatMode;
    use std::arch::asm;

    const FLUSH: u64 = 1 << 24 | 1 << 19;
    const UP: u64 = 1 << 22;
    const TO_ZERO: u64 = 3 << 22;
    pub(super) const MASK: u64 = FLUSH | TO_ZERO;

    pub(super) fn bits(mode: FloatMode) -> u64 {
        match mode {
            FloatMode::Default => 0,
            FloatMode::FlushToZero => FLUSH,
            FloatMode::RoundUp => UP,
            FloatMode::RoundToZeroAndFlush => FLUSH | TO_ZERO,
        }
    }

    pub(super) fn get() -> u64 {
        let value: u64;
        // SAFETY: reads the FPCR register.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack)) };
        value
    }

    /// # Safety
    /// The default is set again before any floating-point operation of Rust code.
    pub(super) unsafe fn set(value: u64) {
        // SAFETY: guaranteed by the caller.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nostack)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    use super::FloatMode;

    pub(super) const MASK: u32 = 0;

    pub(super) fn bits(_: FloatMode) -> u32 {
        0
    }

    pub(super) fn get() -> u32 {
        0
    }

    /// # Safety
    /// Always safe: there is nothing to set.
    pub(super) unsafe fn set(_: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_holds_during_the_call_and_not_after() {
        let default = control::get();
        for &mode in FloatMode::OTHERS {
            let (inside, kept) = under(mode, control::get);
            assert_eq!(inside & control::MASK, control::bits(mode), "{mode:?}");
            assert!(kept);
            assert_eq!(control::get() & control::MASK, default & control::MASK);
        }
    }

    #[test]
    fn a_mode_that_the_call_changes_is_noticed() {
        for &mode in FloatMode::OTHERS {
            let default = control::get();
            // SAFETY: this is the default mode.
            let ((), kept) = under(mode, || unsafe { control::set(default) });
            assert!(!kept, "{mode:?}");
        }
    }
}
