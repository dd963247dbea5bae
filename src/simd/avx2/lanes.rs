//! Masks of lanes, their order, and the first lanes of 16 bits.

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

/// The first `n` lanes of 16 bits, 1 to 15, as two registers; the others are zero. Not by `memcpy` to an array: a load of
/// what several stores wrote waits until they have reached the cache, and a call may overwrite every vector register. Rows
/// of less than a hundred elements took 1.6 to 1.8 times as long on a Zen 3.
///
/// # Safety
/// The lanes exist. The address need not be aligned.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn load_first_halves(p: *const u16, n: usize) -> (__m128i, __m128i) {
    let pairs = n / 2;
    let indices = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(pairs as i32), indices);
    // SAFETY: guaranteed by the caller; the mask keeps to pairs that exist.
    let (pairs, last) =
        unsafe { (_mm256_maskload_epi32(p.cast(), mask), p.add(n - 1).read_unaligned()) };
    #[rustfmt::skip]
    let indices = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    // Of an even number, the last one is there already.
    let is_last = _mm256_cmpeq_epi16(indices, _mm256_set1_epi16((n - 1) as i16));
    let lanes = _mm256_blendv_epi8(pairs, _mm256_set1_epi16(last as i16), is_last);
    (_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes))
}

/// Stores the first `n` lanes of 16 bits, 1 to 15, in up to four pieces. It is too long for the compiler to always inline
/// it on its own.
///
/// # Safety
/// There is room for them; the address need not be aligned. The CPU supports AVX2.
#[inline(always)]
pub(super) unsafe fn store_first_halves(
    mut p: *mut u16,
    (low, high): (__m128i, __m128i),
    n: usize,
) {
    let mut rest = low;
    // SAFETY: guaranteed by the caller; the pieces have `n` lanes together.
    unsafe {
        if n & 8 != 0 {
            _mm_storeu_si128(p.cast(), low);
            (p, rest) = (p.add(8), high);
        }
        if n & 4 != 0 {
            _mm_storel_epi64(p.cast(), rest);
            (p, rest) = (p.add(4), _mm_unpackhi_epi64(rest, rest));
        }
        if n & 2 != 0 {
            p.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(rest));
            (p, rest) = (p.add(2), _mm_srli_epi64::<32>(rest));
        }
        if n & 1 != 0 {
            p.write_unaligned(_mm_extract_epi16::<0>(rest) as u16);
        }
    }
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
