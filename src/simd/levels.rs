//! Instruction-set levels: which exist, and which the machine supports.
//!
//! The cargo features `avx2` and `avx512`, on by default, compile the kernels for these levels. The portable level and,
//! on aarch64, NEON are always built.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether the processor has AVX512-BF16; set by [`Level::available`].
static CONVERTS_BF16: AtomicBool = AtomicBool::new(false);

/// Whether the processor has an instruction that rounds f32 to bf16. Kernels call no functions, so it is detected
/// together with the levels.
#[inline(always)]
pub(crate) fn converts_bf16() -> bool {
    CONVERTS_BF16.load(Ordering::Relaxed)
}

/// The index in [`Level::BUILT`] of the fastest level of the machine; `UNKNOWN` before the first use. Not a `OnceLock`,
/// because after fork() the thread that holds it may not exist.
static FASTEST: AtomicUsize = AtomicUsize::new(UNKNOWN);
const UNKNOWN: usize = usize::MAX;

/// An instruction set that kernels are compiled for, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Portable,
    Neon,
    Avx2,
    Avx512,
    /// AVX-512, with bf16 dot products for matrix products.
    Avx512Bf16,
    /// The same, with bf16 tiles.
    Avx512Amx,
}

impl Level {
    /// The levels that kernels are compiled for, fastest first. A machine that supports one supports all that follow.
    const BUILT: &'static [Self] = &[
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Self::Avx512Amx,
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Self::Avx512Bf16,
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Self::Avx512,
        #[cfg(all(target_arch = "x86_64", feature = "avx2"))]
        Self::Avx2,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
        Self::Portable,
    ];

    /// Whether kernels are compiled for the level.
    pub(crate) fn is_built(self) -> bool {
        Self::BUILT.contains(&self)
    }

    /// The levels that kernels are compiled for and this machine supports, fastest first.
    pub(crate) fn available() -> &'static [Self] {
        let first = match FASTEST.load(Ordering::Acquire) {
            UNKNOWN => Self::detect(),
            first => first,
        };
        &Self::BUILT[first..]
    }

    /// Detects the fastest level. Virtual machines intercept CPUID, which then takes microseconds.
    #[cold]
    fn detect() -> usize {
        #[cfg(target_arch = "x86_64")]
        CONVERTS_BF16.store(has_bf16_instructions(), Ordering::Relaxed);
        let first = Self::BUILT.iter().position(|level| level.is_present());
        let first = first.unwrap_or(Self::BUILT.len() - 1);
        FASTEST.store(first, Ordering::Release);
        first
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Bf16 => "avx512_bf16",
            Self::Avx512Amx => "avx512_amx",
        }
    }

    /// The level with the same vectors. Kernels without matrix products use that level's entries.
    pub(crate) fn of_vectors(self) -> Self {
        self.min(Self::Avx512)
    }

    /// Whether there are enough registers for the sums of several rows at once.
    pub(crate) const fn has_many_registers(self) -> bool {
        matches!(self, Self::Avx512 | Self::Avx512Bf16 | Self::Avx512Amx)
    }

    /// Whether the machine supports the level.
    fn is_present(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                std::arch::is_x86_feature_detected!("avx2")
                    && std::arch::is_x86_feature_detected!("fma")
                    && std::arch::is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_present()
                    && std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512bw")
                    && std::arch::is_x86_feature_detected!("avx512dq")
                    && std::arch::is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Bf16 => Self::Avx512.is_present() && has_bf16_instructions(),
            #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
            Self::Avx512Amx => {
                Self::Avx512Bf16.is_present() && super::matrices::tiles_are_present()
            }
            #[cfg(all(target_arch = "x86_64", not(feature = "avx512")))]
            Self::Avx512Amx => false,
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 | Self::Avx512Bf16 | Self::Avx512Amx => false,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_bf16_instructions() -> bool {
    std::arch::is_x86_feature_detected!("avx512bf16")
}
