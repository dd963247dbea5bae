//! Four f64 in a register of AVX2 and AVX-512.

use crate::simd::{FOUR, Quad};
use std::arch::x86_64::*;

// SAFETY of every block below: the trait's contract.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Quad for __m256d {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn splat(x: f64) -> Self {
        _mm256_set1_pd(x)
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(p: *const f64) -> Self {
        unsafe { _mm256_loadu_pd(p) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn store(p: *mut f64, v: Self) {
        unsafe { _mm256_storeu_pd(p, v) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_widened(p: *const f32) -> Self {
        unsafe { _mm256_cvtps_pd(_mm_loadu_ps(p)) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn store_narrowed(p: *mut f32, v: Self) {
        unsafe { _mm_storeu_ps(p, _mm256_cvtpd_ps(v)) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add(a: Self, b: Self) -> Self {
        _mm256_add_pd(a, b)
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn sub(a: Self, b: Self) -> Self {
        _mm256_sub_pd(a, b)
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn mul(a: Self, b: Self) -> Self {
        _mm256_mul_pd(a, b)
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn div(a: Self, b: Self) -> Self {
        _mm256_div_pd(a, b)
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn sqrt(v: Self) -> Self {
        _mm256_sqrt_pd(v)
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn sums([a, b, c, d]: [Self; FOUR]) -> Self {
        let (ac_low, ac_high) =
            (_mm256_permute2f128_pd::<0x20>(a, c), _mm256_permute2f128_pd::<0x31>(a, c));
        let (bd_low, bd_high) =
            (_mm256_permute2f128_pd::<0x20>(b, d), _mm256_permute2f128_pd::<0x31>(b, d));
        _mm256_hadd_pd(_mm256_add_pd(ac_low, ac_high), _mm256_add_pd(bd_low, bd_high))
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn all_between(v: Self, low: Self, high: Self) -> bool {
        let above = _mm256_cmp_pd::<_CMP_GE_OQ>(v, low);
        let below = _mm256_cmp_pd::<_CMP_LE_OQ>(v, high);
        _mm256_movemask_pd(_mm256_and_pd(above, below)) == 0b1111
    }
}
