//! Rounding to binary16, by an instruction for which the compiler would choose a slower form.

use std::arch::x86_64::*;

/// 8 lanes rounded to binary16, to nearest even.
///
/// # Safety
/// F16C.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn rounded(v: __m256) -> __m128i {
    let half;
    // SAFETY: the CPU supports the instruction, which only reads and writes registers. From the intrinsic, the compiler
    // would make an instruction that also stores. On Zen 3 it takes two to four times as long as a conversion and a
    // separate store.
    unsafe {
        std::arch::asm!(
            "vcvtps2ph {half}, {v}, 0",
            half = lateout(xmm_reg) half,
            v = in(ymm_reg) v,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    half
}
