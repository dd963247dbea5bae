//! The floating-point environment that results depend on: round to nearest even, subnormals kept, no traps. Miri
//! supports only this environment and no inline assembly.

/// Sets the default environment on this thread until it is dropped.
pub(crate) struct DefaultEnvironment {
    /// The environment to restore; `None` if it was the default.
    previous: Option<Register>,
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
type Register = u32;
#[cfg(all(target_arch = "aarch64", not(miri)))]
type Register = u64;
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
type Register = ();

impl DefaultEnvironment {
    /// For a whole call. Also clears the exception flags that the call raises.
    #[inline]
    pub(crate) fn enter() -> Self {
        let previous = read();
        if !is_default(previous) {
            write(DEFAULT);
        }
        Self { previous: Some(previous) }
    }

    /// For a part of a call, on any thread. Writing the environment is slow, reading it is not.
    #[inline]
    pub(crate) fn ensure() -> Self {
        let previous = read();
        if is_default(previous) {
            return Self { previous: None };
        }
        write(DEFAULT);
        Self { previous: Some(previous) }
    }
}

impl Drop for DefaultEnvironment {
    #[inline]
    fn drop(&mut self) {
        if let Some(previous) = self.previous {
            write(previous);
        }
    }
}

/// MXCSR after reset: all exceptions masked, nearest, no flush-to-zero, no denormals-are-zero.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const DEFAULT: Register = 0x1f80;

/// Ignores the exception flags, the lowest six bits.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn is_default(value: Register) -> bool {
    value & !0x3f == DEFAULT
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn is_default(value: Register) -> bool {
    value == DEFAULT
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn read() -> Register {
    let mut value = 0u32;
    // SAFETY: stmxcsr writes four bytes to the given address.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags));
    }
    value
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn write(value: Register) {
    // SAFETY: the value is the default or was read before, so no reserved bit is set.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags));
    }
}

/// FPCR after reset: nearest, no flush-to-zero, no default NaN, no traps.
#[cfg(all(target_arch = "aarch64", not(miri)))]
const DEFAULT: Register = 0;

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
fn read() -> Register {
    let value: u64;
    // SAFETY: reading FPCR has no effect.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack)) };
    value
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
fn write(value: Register) {
    // SAFETY: the value is the default or was read before.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) value, options(nostack)) };
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
const DEFAULT: Register = ();

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn read() -> Register {}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn write(_: Register) {}
