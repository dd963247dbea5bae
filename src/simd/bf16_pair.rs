//! The conversion of AVX512-BF16, for kernels that are compiled without that feature.

use std::arch::x86_64::{__m512, __m512i};

/// Two vectors rounded to bf16, the first in the lower half. Subnormals are treated as zeros.
///
/// # Safety
/// AVX-512 BF16.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn two_to_bf16(low: __m512, high: __m512) -> __m512i {
    let both;
    // SAFETY: the CPU supports the instruction, which only reads and writes registers. Kernels are compiled without the
    // feature that the intrinsic needs.
    unsafe {
        std::arch::asm!(
            "vcvtne2ps2bf16 {both}, {high}, {low}",
            both = lateout(zmm_reg) both,
            high = in(zmm_reg) high,
            low = in(zmm_reg) low,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    both
}
