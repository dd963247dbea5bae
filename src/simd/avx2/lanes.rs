//! Masks of lanes, and their order.

use std::arch::x86_64::*;

/// All-ones lanes below `n`, as two registers.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn first(n: usize) -> (__m256i, __m256i) {
    let count = _mm256_set1_epi32(n as i32);
    let low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
    (_mm256_cmpgt_epi32(count, low), _mm256_cmpgt_epi32(count, high))
}

/// All-ones f64 lanes below `n`, as four registers.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn first_wide(n: usize) -> [__m256i; 4] {
    let count = _mm256_set1_epi64x(n as i64);
    [
        _mm256_cmpgt_epi64(count, _mm256_setr_epi64x(0, 1, 2, 3)),
        _mm256_cmpgt_epi64(count, _mm256_setr_epi64x(4, 5, 6, 7)),
        _mm256_cmpgt_epi64(count, _mm256_setr_epi64x(8, 9, 10, 11)),
        _mm256_cmpgt_epi64(count, _mm256_setr_epi64x(12, 13, 14, 15)),
    ]
}

/// The lanes 0 and 2, or 1 and 3, of four of each operand.
pub(super) const EVEN: i32 = 0b10_00_10_00;
pub(super) const ODD: i32 = 0b11_01_11_01;

/// Every second lane of two vectors.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn every_second<const WHICH: i32>(a: __m256, b: __m256) -> __m256 {
    let mixed = _mm256_castps_pd(_mm256_shuffle_ps::<WHICH>(a, b));
    _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(mixed))
}

/// The lower 32 bits of the lanes of two vectors.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn low_bits(a: __m256d, b: __m256d) -> __m256 {
    every_second::<EVEN>(_mm256_castpd_ps(a), _mm256_castpd_ps(b))
}

/// Each lane twice.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn doubled(v: (__m256, __m256)) -> [(__m256, __m256); 2] {
    let low = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    let high = _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7);
    [
        (_mm256_permutevar8x32_ps(v.0, low), _mm256_permutevar8x32_ps(v.0, high)),
        (_mm256_permutevar8x32_ps(v.1, low), _mm256_permutevar8x32_ps(v.1, high)),
    ]
}
