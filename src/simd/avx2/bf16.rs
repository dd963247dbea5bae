//! Conversions of bf16, for which AVX2 has no instructions.

use crate::simd::rare;
use std::arch::x86_64::*;

/// Selects the second operand in every second 16-bit lane.
const IN_TURN: i32 = 0b1010_1010;

/// 8 bf16 as f32. A broadcast from memory saves the shuffle that a widening load needs.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn widened(v: __m128i) -> __m256 {
    // Each number gets two zero bytes below it. The first four numbers go to the lower half.
    #[rustfmt::skip]
    let spread = _mm256_setr_epi8(
        -1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7,
        -1, -1, 8, 9, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15,
    );
    _mm256_castsi256_ps(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(v), spread))
}

/// 16 bf16 as f32: a vector of the even ones and one of the odd ones.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn widened_in_turn(v: __m256i) -> (__m256, __m256) {
    let high = _mm256_and_si256(v, _mm256_set1_epi32(0xffff_0000u32 as i32));
    (_mm256_castsi256_ps(_mm256_slli_epi32::<16>(v)), _mm256_castsi256_ps(high))
}

/// The upper halves of the lanes of two vectors, interleaved.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn upper(low: __m256, high: __m256) -> __m256i {
    let (low, high) = (_mm256_castps_si256(low), _mm256_castps_si256(high));
    _mm256_blend_epi16::<IN_TURN>(_mm256_srli_epi32::<16>(low), high)
}

/// The lower halves, interleaved.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn lower(low: __m256, high: __m256) -> __m256i {
    let (low, high) = (_mm256_castps_si256(low), _mm256_castps_si256(high));
    _mm256_blend_epi16::<IN_TURN>(low, _mm256_slli_epi32::<16>(high))
}

/// The upper halves, plus one where the lower half is above 0x8000, or is 0x8000 and the upper half is odd.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn nearest(upper: __m256i, lower: __m256i) -> __m256i {
    let rest = _mm256_adds_epu16(lower, _mm256_and_si256(upper, _mm256_set1_epi16(1)));
    let least = _mm256_set1_epi16(0x8001u16 as i16);
    let up = _mm256_cmpeq_epi16(_mm256_max_epu16(rest, least), rest);
    _mm256_sub_epi16(upper, up)
}

/// Whether any lane of two vectors is NaN.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn any_nan(low: __m256, high: __m256) -> bool {
    _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(low, high)) != 0
}

/// `rounded`, with quiet NaN in the lanes that are NaN.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn with_nan(low: __m256, high: __m256, rounded: __m256i) -> __m256i {
    let nan = |v: __m256| _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
    let quiet = _mm256_or_si256(upper(low, high), _mm256_set1_epi16(0x40));
    let nans = _mm256_blend_epi16::<IN_TURN>(nan(low), nan(high));
    _mm256_blendv_epi8(rounded, quiet, nans)
}

/// Interleaved lanes rearranged: one vector's, then the other's.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn apart(in_turn: __m256i) -> __m256i {
    #[rustfmt::skip]
    let apart = _mm256_setr_epi8(
        0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
        0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
    );
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_shuffle_epi8(in_turn, apart))
}

/// 16 f32 rounded to bf16, to nearest even, interleaved. It is too long for the compiler to always inline it on its
/// own.
///
/// # Safety
/// The CPU supports AVX2.
#[inline(always)]
pub(super) unsafe fn rounded_in_turn(low: __m256, high: __m256) -> __m256i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut rounded = nearest(upper(low, high), lower(low, high));
        if any_nan(low, high) {
            rare();
            rounded = with_nan(low, high, rounded);
        }
        rounded
    }
}

/// Stores 16 lanes of 16 bits, non-temporally if `streams`.
///
/// # Safety
/// There is room for them; streamed, the address is a multiple of 32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn put(p: *mut u16, halves: __m256i, streams: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match streams {
            true => _mm256_stream_si256(p.cast(), halves),
            false => _mm256_storeu_si256(p.cast(), halves),
        }
    }
}
