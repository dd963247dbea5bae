//! Bytes: numbers from 0 to 255, and the first bytes of a vector.

use std::arch::x86_64::*;

/// 16 bytes xor `flip`, as numbers from 0 to 255, less `bias`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn widened(bytes: __m128i, flip: u8, bias: f32) -> (__m256, __m256) {
    let high = _mm_unpackhi_epi64(bytes, bytes);
    // The lowest bits of numbers from 2^23 count ones.
    let ones = _mm256_set1_epi32(0x4b00_0000 | i32::from(flip));
    let less = _mm256_set1_ps(8_388_608.0 + bias);
    let low = _mm256_xor_si256(_mm256_cvtepu8_epi32(bytes), ones);
    let high = _mm256_xor_si256(_mm256_cvtepu8_epi32(high), ones);
    (_mm256_sub_ps(_mm256_castsi256_ps(low), less), _mm256_sub_ps(_mm256_castsi256_ps(high), less))
}

/// The lowest bytes of the nearest integers, ties to even; NaN gives 0.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn rounded((low, high): (__m256, __m256)) -> __m128i {
    // NaN becomes 0x80000000.
    let byte = _mm256_set1_epi32(0xff);
    let low = _mm256_and_si256(_mm256_cvtps_epi32(low), byte);
    let high = _mm256_and_si256(_mm256_cvtps_epi32(high), byte);
    // The pack interleaves the 128-bit halves; the permutation puts them in order.
    let packed = _mm256_packus_epi32(low, high);
    let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
    let (low, high) = (_mm256_castsi256_si128(ordered), _mm256_extracti128_si256::<1>(ordered));
    _mm_packus_epi16(low, high)
}

/// The first `n` bytes, 0 to 15; the others are zero. Loads up to four pieces rather than by `memcpy` to an array, as
/// [`load_first_halves`](super::lanes::load_first_halves) does.
///
/// # Safety
/// The bytes exist. The address need not be aligned.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn load_first(p: *const u8, n: usize) -> __m128i {
    let mut v = _mm_setzero_si128();
    // SAFETY: guaranteed by the caller; the pieces have `n` bytes together.
    unsafe {
        if n & 1 != 0 {
            v = _mm_cvtsi32_si128(i32::from(*p.add(n - 1)));
        }
        if n & 2 != 0 {
            let piece = p.add(n & 12).cast::<u16>().read_unaligned();
            v = _mm_insert_epi16::<0>(_mm_slli_si128::<2>(v), i32::from(piece));
        }
        if n & 4 != 0 {
            let piece = p.add(n & 8).cast::<i32>().read_unaligned();
            v = _mm_insert_epi32::<0>(_mm_slli_si128::<4>(v), piece);
        }
        if n & 8 != 0 {
            v = _mm_unpacklo_epi64(_mm_loadl_epi64(p.cast()), v);
        }
    }
    v
}

/// Stores the first `n` bytes, 0 to 15, in up to four pieces. It is too long for the compiler to always inline it on its
/// own.
///
/// # Safety
/// There is room for them; the address need not be aligned. The CPU supports AVX2.
#[inline(always)]
pub(super) unsafe fn store_first(mut p: *mut u8, mut v: __m128i, n: usize) {
    // SAFETY: guaranteed by the caller; the pieces have `n` bytes together.
    unsafe {
        if n & 8 != 0 {
            _mm_storel_epi64(p.cast(), v);
            (p, v) = (p.add(8), _mm_unpackhi_epi64(v, v));
        }
        if n & 4 != 0 {
            p.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(v));
            (p, v) = (p.add(4), _mm_srli_epi64::<32>(v));
        }
        if n & 2 != 0 {
            p.cast::<u16>().write_unaligned(_mm_extract_epi16::<0>(v) as u16);
            (p, v) = (p.add(2), _mm_srli_epi64::<16>(v));
        }
        if n & 1 != 0 {
            *p = _mm_extract_epi8::<0>(v) as u8;
        }
    }
}
