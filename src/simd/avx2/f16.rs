//! Conversions of binary16, by instructions that the compiler would take in another form.

use std::arch::x86_64::*;

/// 16 elements in binary16 as f32.
///
/// # Safety
/// F16C; the elements are there.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn load(p: *const u16) -> (__m256, __m256) {
    let (low, high);
    // SAFETY: reads the elements. The compiler knows how the intrinsic treats signs and zeros: it takes them from the
    // operand, which it loads first, and from a register the conversion takes twice as long on Zen 3.
    unsafe {
        std::arch::asm!(
            "vcvtph2ps {low}, xmmword ptr [{p}]",
            "vcvtph2ps {high}, xmmword ptr [{p} + 16]",
            low = out(ymm_reg) low,
            high = lateout(ymm_reg) high,
            p = in(reg) p,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    (low, high)
}

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
