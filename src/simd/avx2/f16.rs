//! Rounding to binary16 by an instruction that the compiler would use in another form.

use std::arch::x86_64::*;

/// 8 lanes rounded to binary16, to nearest even.
///
/// # Safety
/// F16C.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn rounded(v: __m256) -> __m128i {
    let half;
    // SAFETY: the instruction is there; it reads and writes registers alone. The compiler would make a store of the
    // intrinsic's operand, which takes Zen 3 two to four times as long as the conversion and a store of its own.
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
