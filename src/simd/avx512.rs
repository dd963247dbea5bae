//! AVX-512 (F, BW, DQ, VL): one register holds the 16 lanes.

use super::Simd;
use std::arch::x86_64::*;

/// AVX-512 F, BW, DQ and VL, with AVX2's FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// The mask of the first `n` lanes.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    // BZHI would need another feature bit; the shift is as short.
    ((1u32 << n) - 1) as __mmask16
}

/// The two masks of the first `n` of 16 f64 lanes.
#[inline(always)]
fn first_wide(n: usize) -> (__mmask8, __mmask8) {
    let mask = first(n);
    (mask as u8, (mask >> 8) as u8)
}

// SAFETY of every block below: the trait's contract gives the instruction set and the addresses.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Avx512 {
    type F = __m512;
    type D = (__m512d, __m512d);
    type H = __m256i;
    const MANY_REGISTERS: bool = true;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::F {
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::F {
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn load_n(p: *const f32, n: usize) -> Self::F {
        unsafe { _mm512_maskz_loadu_ps(first(n), p) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::F) {
        unsafe { _mm512_storeu_ps(p, v) }
    }
    #[inline(always)]
    unsafe fn store_n(p: *mut f32, v: Self::F, n: usize) {
        unsafe { _mm512_mask_storeu_ps(p, first(n), v) }
    }
    #[inline(always)]
    unsafe fn stream(p: *mut f32, v: Self::F) {
        unsafe { _mm512_stream_ps(p, v) }
    }
    #[inline(always)]
    unsafe fn stream_fence() {
        unsafe { _mm_sfence() }
    }
    #[inline(always)]
    unsafe fn prefetch(p: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
    #[inline(always)]
    unsafe fn load_half(p: *const u16) -> Self::H {
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn load_half_n(p: *const u16, n: usize) -> Self::H {
        unsafe { _mm256_maskz_loadu_epi16(first(n), p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_half(p: *mut u16, v: Self::H) {
        unsafe { _mm256_storeu_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn store_half_n(p: *mut u16, v: Self::H, n: usize) {
        unsafe { _mm256_mask_storeu_epi16(p.cast(), first(n), v) }
    }
    #[inline(always)]
    unsafe fn stream_half(p: *mut u16, v: Self::H) {
        unsafe { _mm256_stream_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn from_bf16(v: Self::H) -> Self::F {
        unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(v))) }
    }
    #[inline(always)]
    unsafe fn to_bf16(v: Self::F) -> Self::H {
        unsafe {
            let bits = _mm512_castps_si512(v);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v);
            let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x0040_0000));
            let kept = _mm512_mask_mov_epi32(rounded, nan, quiet);
            _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(kept))
        }
    }
    #[inline(always)]
    unsafe fn from_f16(v: Self::H) -> Self::F {
        unsafe { _mm512_cvtph_ps(v) }
    }
    #[inline(always)]
    unsafe fn to_f16(v: Self::F) -> Self::H {
        unsafe { _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F {
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn fnma(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        unsafe { _mm512_fnmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn first_n(v: Self::F, n: usize) -> Self::F {
        unsafe { _mm512_maskz_mov_ps(first(n), v) }
    }
    #[inline(always)]
    unsafe fn widen(v: Self::F) -> Self::D {
        unsafe {
            let low = _mm512_castps512_ps256(v);
            (_mm512_cvtps_pd(low), _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(v)))
        }
    }
    #[inline(always)]
    unsafe fn narrow(v: Self::D) -> Self::F {
        unsafe {
            let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(v.0));
            _mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(v.1))
        }
    }
    #[inline(always)]
    unsafe fn wide_splat(x: f64) -> Self::D {
        unsafe { (_mm512_set1_pd(x), _mm512_set1_pd(x)) }
    }
    #[inline(always)]
    unsafe fn wide_load(p: *const f64) -> Self::D {
        unsafe { (_mm512_loadu_pd(p), _mm512_loadu_pd(p.add(8))) }
    }
    #[inline(always)]
    unsafe fn wide_load_n(p: *const f64, n: usize) -> Self::D {
        unsafe {
            let (low, high) = first_wide(n);
            // The second address may lie past the buffer, where no lane is loaded.
            (_mm512_maskz_loadu_pd(low, p), _mm512_maskz_loadu_pd(high, p.wrapping_add(8)))
        }
    }
    #[inline(always)]
    unsafe fn wide_store(p: *mut f64, v: Self::D) {
        unsafe {
            _mm512_storeu_pd(p, v.0);
            _mm512_storeu_pd(p.add(8), v.1);
        }
    }
    #[inline(always)]
    unsafe fn wide_store_n(p: *mut f64, v: Self::D, n: usize) {
        unsafe {
            let (low, high) = first_wide(n);
            _mm512_mask_storeu_pd(p, low, v.0);
            _mm512_mask_storeu_pd(p.wrapping_add(8), high, v.1);
        }
    }
    #[inline(always)]
    unsafe fn wide_add(a: Self::D, b: Self::D) -> Self::D {
        unsafe { (_mm512_add_pd(a.0, b.0), _mm512_add_pd(a.1, b.1)) }
    }
    #[inline(always)]
    unsafe fn wide_sub(a: Self::D, b: Self::D) -> Self::D {
        unsafe { (_mm512_sub_pd(a.0, b.0), _mm512_sub_pd(a.1, b.1)) }
    }
    #[inline(always)]
    unsafe fn wide_mul(a: Self::D, b: Self::D) -> Self::D {
        unsafe { (_mm512_mul_pd(a.0, b.0), _mm512_mul_pd(a.1, b.1)) }
    }
    #[inline(always)]
    unsafe fn wide_fma(a: Self::D, b: Self::D, c: Self::D) -> Self::D {
        unsafe { (_mm512_fmadd_pd(a.0, b.0, c.0), _mm512_fmadd_pd(a.1, b.1, c.1)) }
    }
    #[inline(always)]
    unsafe fn wide_first_n(v: Self::D, n: usize) -> Self::D {
        unsafe {
            let (low, high) = first_wide(n);
            (_mm512_maskz_mov_pd(low, v.0), _mm512_maskz_mov_pd(high, v.1))
        }
    }
    #[inline(always)]
    unsafe fn wide_sum(v: Self::D) -> f64 {
        unsafe {
            let eight = _mm512_add_pd(v.0, v.1);
            let four =
                _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd::<1>(eight));
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }
}
