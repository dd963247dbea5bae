//! AVX-512 (F, BW, DQ, VL): the 16 lanes are in one register.

use super::bf16_pair::two_to_bf16;
use super::{Bf16Rounding, Level, STORED, Simd, operations, rare, unroll};
use std::arch::x86_64::*;

/// AVX-512 F, BW, DQ and VL, with AVX2's FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// Applies an integer operation to the bits of f32 or f64 lanes.
macro_rules! on_bits {
    ($operation:ident($($v:expr),*$(; $count:expr)?)) => {
        _mm512_castsi512_ps($operation($(_mm512_castps_si512($v)),*$(, $count)?))
    };
    (wide $operation:ident($($v:expr),*$(; $count:expr)?)) => {
        _mm512_castsi512_pd($operation($(_mm512_castpd_si512($v)),*$(, $count)?))
    };
}

/// The mask of the first `n` lanes.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    // BZHI would need another feature bit, and the shift is as short.
    ((1u32 << n) - 1) as __mmask16
}

/// The two masks of the first `n` of 16 f64 lanes.
#[inline(always)]
fn first_wide(n: usize) -> (__mmask8, __mmask8) {
    let mask = first(n);
    (mask as u8, (mask >> 8) as u8)
}

/// The sums of eight rows of eight lanes, halves first as in `wide_sum`: each step combines the remaining halves of two
/// vectors into one.
///
/// # Safety
/// The rows exist, at a multiple of 64 bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
unsafe fn eight_sums(rows: *const f64) -> __m512d {
    // SAFETY: the caller's.
    unsafe {
        let row = |r: usize| _mm512_load_pd(rows.add(r * STORED));
        let low = two_rows(four_lanes(row(0), row(1)), four_lanes(row(2), row(3)));
        let high = two_rows(four_lanes(row(4), row(5)), four_lanes(row(6), row(7)));
        let sums = _mm512_add_pd(_mm512_unpacklo_pd(low, high), _mm512_unpackhi_pd(low, high));
        _mm512_permutexvar_pd(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), sums)
    }
}

/// Four lanes of each of two rows.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
fn four_lanes(a: __m512d, b: __m512d) -> __m512d {
    let low = _mm512_shuffle_f64x2::<0b01_00_01_00>(a, b);
    _mm512_add_pd(low, _mm512_shuffle_f64x2::<0b11_10_11_10>(a, b))
}

/// Two lanes of each of four rows, from two vectors with four lanes of two rows each.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
fn two_rows(a: __m512d, b: __m512d) -> __m512d {
    let low = _mm512_shuffle_f64x2::<0b10_00_10_00>(a, b);
    _mm512_add_pd(low, _mm512_shuffle_f64x2::<0b11_01_11_01>(a, b))
}

/// 16 elements in f64. Each conversion loads its half from memory, which saves shuffling the upper half.
///
/// # Safety
/// AVX-512 F, and the elements exist.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_widened(p: *const f32) -> (__m512d, __m512d) {
    let (low, high);
    // SAFETY: only reads the elements. The compiler would merge the intrinsics with other loads of the same elements,
    // and then need shuffles.
    unsafe {
        std::arch::asm!(
            "vcvtps2pd {low}, ymmword ptr [{p}]",
            "vcvtps2pd {high}, ymmword ptr [{p} + 32]",
            low = out(zmm_reg) low,
            high = lateout(zmm_reg) high,
            p = in(reg) p,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    (low, high)
}

/// Whether any value is subnormal.
///
/// # Safety
/// AVX-512 DQ.
#[inline(always)]
unsafe fn any_subnormal<const N: usize>(v: &[__m512; N]) -> bool {
    const SUBNORMAL: i32 = 0x20;
    let mut found = 0;
    unroll!(k in N, {
        // SAFETY: the caller's.
        found |= unsafe { _mm512_fpclass_ps_mask::<SUBNORMAL>(v[k]) };
    });
    found != 0
}

/// The 16-bit lanes, each shifted to the upper half of a 32-bit lane.
///
/// # Safety
/// AVX-512 BW.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn to_upper_halves(v: __m256i) -> __m512i {
    // The upper half of a lane is its 16-bit lane, the lower half one that is zero. A zeroing mask would have to be
    // loaded in loops that use masks themselves.
    const ZERO: i32 = 16;
    let v = _mm512_zextsi256_si512(v);
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let places = _mm512_or_si512(_mm512_slli_epi32::<16>(lanes), _mm512_set1_epi32(ZERO));
    let spread;
    // SAFETY: only reads and writes registers. From the intrinsic, the compiler would make two instructions.
    unsafe {
        std::arch::asm!(
            "vpermw {spread}, {places}, {v}",
            spread = lateout(zmm_reg) spread,
            places = in(zmm_reg) places,
            v = in(zmm_reg) v,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    spread
}

// SAFETY of every block below: the trait's contract gives the instruction set and the addresses.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Avx512 {
    type F32x16 = __m512;
    type F64x16 = (__m512d, __m512d);
    type U16x16 = __m256i;
    type M = __mmask16;
    type F64x4 = __m256d;
    const LEVEL: Level = Level::Avx512;

    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn load(p: *const f32) -> Self::F32x16 {
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn load_n(p: *const f32, n: usize) -> Self::F32x16 {
        unsafe { _mm512_maskz_loadu_ps(first(n), p) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn store(p: *mut f32, v: Self::F32x16) {
        unsafe { _mm512_storeu_ps(p, v) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn store_n(p: *mut f32, v: Self::F32x16, n: usize) {
        unsafe { _mm512_mask_storeu_ps(p, first(n), v) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn stream(p: *mut f32, v: Self::F32x16) {
        unsafe { _mm512_stream_ps(p, v) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn load_half(p: *const u16) -> Self::U16x16 {
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn load_half_n(p: *const u16, n: usize) -> Self::U16x16 {
        unsafe { _mm256_maskz_loadu_epi16(first(n), p.cast()) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn store_half(p: *mut u16, v: Self::U16x16) {
        unsafe { _mm256_storeu_si256(p.cast(), v) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn store_half_n(p: *mut u16, v: Self::U16x16, n: usize) {
        unsafe { _mm256_mask_storeu_epi16(p.cast(), first(n), v) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn stream_half(p: *mut u16, v: Self::U16x16) {
        unsafe { _mm256_stream_si256(p.cast(), v) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn from_bf16(v: Self::U16x16) -> Self::F32x16 {
        unsafe { _mm512_castsi512_ps(to_upper_halves(v)) }
    }
    /// The conversion instruction treats subnormals as zeros. If a result is 0, the values are checked.
    #[inline(always)]
    unsafe fn store_bf16<const N: usize>(
        p: *mut u16,
        v: &[Self::F32x16; N],
        conversion: Bf16Rounding,
        streams: bool,
    ) {
        const { assert!(N == 1 || N == 2 || N == 4) };
        unsafe {
            if conversion != Bf16Rounding::Computed {
                let first = two_to_bf16(v[0], v[N / 2 - N / 4]);
                let second = if const { N == 4 } { two_to_bf16(v[2], v[3]) } else { first };
                let has_zeros = || {
                    let magnitude = _mm512_set1_epi16(0x7fff);
                    let first = _mm512_testn_epi16_mask(first, magnitude);
                    let zeros = (first | _mm512_testn_epi16_mask(second, magnitude)) != 0;
                    if zeros {
                        rare();
                    }
                    zeros
                };
                let suspect = conversion == Bf16Rounding::ProcessorsOfZeros || has_zeros();
                if !suspect || !any_subnormal(v) {
                    match (N, streams) {
                        (1, false) => Self::store_half(p, _mm512_castsi512_si256(first)),
                        (1, true) => Self::stream_half(p, _mm512_castsi512_si256(first)),
                        (_, false) => _mm512_storeu_si512(p.cast(), first),
                        (_, true) => _mm512_stream_si512(p.cast(), first),
                    }
                    if N == 4 {
                        let p = p.add(32).cast();
                        if streams {
                            _mm512_stream_si512(p, second);
                        } else {
                            _mm512_storeu_si512(p, second);
                        }
                    }
                    return;
                }
                rare();
            }
            let mut k = 0;
            while k < N {
                let (at, half) = (p.add(k * 16), Self::to_bf16(v[k]));
                if streams {
                    Self::stream_half(at, half)
                } else {
                    Self::store_half(at, half)
                }
                k += 1;
            }
        }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn to_bf16(v: Self::F32x16) -> Self::U16x16 {
        let bits = _mm512_castps_si512(v);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let half_unit = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), odd);
        let number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(v, v);
        let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x0040_0000));
        let rounded = _mm512_mask_add_epi32(quiet, number, bits, half_unit);
        // Selects the upper half of each 32-bit lane in one shuffle.
        #[rustfmt::skip]
        let upper = _mm512_setr_epi32(
            0x0003_0001, 0x0007_0005, 0x000b_0009, 0x000f_000d, 0x0013_0011, 0x0017_0015, 0x001b_0019, 0x001f_001d,
            0, 0, 0, 0, 0, 0, 0, 0,
        );
        _mm512_castsi512_si256(_mm512_permutexvar_epi16(upper, rounded))
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn within(v: Self::F32x16, low: f32, high: f32) -> Self::F32x16 {
        // If an operand is NaN, these instructions return the second one.
        _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), v))
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn load_bytes(p: *const u8, flip: u8, bias: f32) -> Self::F32x16 {
        unsafe {
            // The lowest bits of numbers from 2^23 count ones.
            let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast()));
            let number = _mm512_xor_si512(bytes, _mm512_set1_epi32(0x4b00_0000 | i32::from(flip)));
            _mm512_sub_ps(_mm512_castsi512_ps(number), _mm512_set1_ps(8_388_608.0 + bias))
        }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn stream_bytes(p: *mut u8, v: Self::F32x16) {
        unsafe { _mm_stream_si128(p.cast(), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v))) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn store_bytes(p: *mut u8, v: Self::F32x16) {
        // NaN becomes 0x80000000.
        unsafe { _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v))) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn widen(v: Self::F32x16) -> Self::F64x16 {
        let low = _mm512_castps512_ps256(v);
        (_mm512_cvtps_pd(low), _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(v)))
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn load_widened(p: *const f32) -> Self::F64x16 {
        unsafe { load_widened(p) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn narrow(v: Self::F64x16) -> Self::F32x16 {
        let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(v.0));
        _mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(v.1))
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_load(p: *const f64) -> Self::F64x16 {
        unsafe { (_mm512_loadu_pd(p), _mm512_loadu_pd(p.add(8))) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_load_n(p: *const f64, n: usize) -> Self::F64x16 {
        unsafe {
            let (low, high) = first_wide(n);
            // The second address may be past the buffer, but then no lane is loaded.
            (_mm512_maskz_loadu_pd(low, p), _mm512_maskz_loadu_pd(high, p.wrapping_add(8)))
        }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_store(p: *mut f64, v: Self::F64x16) {
        unsafe {
            _mm512_storeu_pd(p, v.0);
            _mm512_storeu_pd(p.add(8), v.1);
        }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_stream(p: *mut f64, v: Self::F64x16) {
        unsafe {
            _mm512_stream_pd(p, v.0);
            _mm512_stream_pd(p.add(8), v.1);
        }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_store_n(p: *mut f64, v: Self::F64x16, n: usize) {
        unsafe {
            let (low, high) = first_wide(n);
            _mm512_mask_storeu_pd(p, low, v.0);
            _mm512_mask_storeu_pd(p.wrapping_add(8), high, v.1);
        }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_first_n(v: Self::F64x16, n: usize) -> Self::F64x16 {
        let (low, high) = first_wide(n);
        (_mm512_maskz_mov_pd(low, v.0), _mm512_maskz_mov_pd(high, v.1))
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_all_between(v: Self::F64x16, low: f64, high: f64) -> bool {
        let (low, high) = (_mm512_set1_pd(low), _mm512_set1_pd(high));
        let mut all = _mm512_cmp_pd_mask::<_CMP_GE_OQ>(v.0, low);
        all = _mm512_mask_cmp_pd_mask::<_CMP_LE_OQ>(all, v.0, high);
        all = _mm512_mask_cmp_pd_mask::<_CMP_GE_OQ>(all, v.1, low);
        _mm512_mask_cmp_pd_mask::<_CMP_LE_OQ>(all, v.1, high) == 0xff
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn store_row(p: *mut f64, sums: Self::F64x16) {
        unsafe { _mm512_store_pd(p, _mm512_add_pd(sums.0, sums.1)) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn sum_rows(rows: *const f64) -> Self::F64x16 {
        unsafe { (eight_sums(rows), eight_sums(rows.add(8 * STORED))) }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_sum(v: Self::F64x16) -> f64 {
        unsafe {
            let four = Self::wide_quarter(v);
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_quarter(v: Self::F64x16) -> Self::F64x4 {
        let eight = _mm512_add_pd(v.0, v.1);
        _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd::<1>(eight))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn in_order(mut v: Self::F32x16) -> Self::F32x16 {
        // SAFETY: no instruction.
        unsafe {
            std::arch::asm!("/* {} */", inout(zmm_reg) v, options(nomem, nostack, preserves_flags));
        }
        v
    }

    operations! {
        #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
        fn stream_fence() -> () = _mm_sfence();
        fn prefetch(p: *const u8) -> () = _mm_prefetch::<_MM_HINT_T0>(p.cast());
        fn prefetch_second(p: *const u8) -> () = _mm_prefetch::<_MM_HINT_T1>(p.cast());
        fn first_n(v: Self::F32x16, n: usize) -> Self::F32x16 = _mm512_maskz_mov_ps(first(n), v);
        fn add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_add_ps(a, b);
        fn sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_sub_ps(a, b);
        fn mul(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_mul_ps(a, b);
        fn fma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16 = _mm512_fmadd_ps(a, b, c);
        fn fnma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16 = _mm512_fnmadd_ps(a, b, c);
        fn wide_low_bits(v: Self::F64x16) -> Self::F32x16 =
            _mm512_permutex2var_ps(_mm512_castpd_ps(v.0), _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), _mm512_castpd_ps(v.1));
        fn from_f16(v: Self::U16x16) -> Self::F32x16 = _mm512_cvtph_ps(v);
        fn to_f16(v: Self::F32x16) -> Self::U16x16 = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v);
        fn splat(x: f32) -> Self::F32x16 = _mm512_set1_ps(x);
        fn div(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_div_ps(a, b);
        fn sqrt(v: Self::F32x16) -> Self::F32x16 = _mm512_sqrt_ps(v);
        fn max(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_max_ps(a, b);
        fn min(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_min_ps(a, b);
        fn lt(a: Self::F32x16, b: Self::F32x16) -> Self::M = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
        fn le(a: Self::F32x16, b: Self::F32x16) -> Self::M = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b);
        fn eq(a: Self::F32x16, b: Self::F32x16) -> Self::M = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b);
        fn negative(v: Self::F32x16) -> Self::M = _mm512_movepi32_mask(_mm512_castps_si512(v));
        fn select(m: Self::M, a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_mask_blend_ps(m, b, a);
        fn bits_and(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_and_ps(a, b);
        fn bits_and_not(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_andnot_ps(b, a);
        fn bits_xor(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = _mm512_xor_ps(a, b);
        fn bits_add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_bits!(_mm512_add_epi32(a, b));
        fn bits_sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_bits!(_mm512_sub_epi32(a, b));
        fn shift_left(v: Self::F32x16, n: i32) -> Self::F32x16 = on_bits!(_mm512_sllv_epi32(v; _mm512_set1_epi32(n)));
        fn shift_right(v: Self::F32x16, n: i32) -> Self::F32x16 = on_bits!(_mm512_srav_epi32(v; _mm512_set1_epi32(n)));
        fn times_power_of_2(q: Self::F32x16, n: Self::F32x16, _integer: Self::F32x16) -> Self::F32x16 =
            _mm512_scalef_ps(_mm512_add_ps(q, _mm512_set1_ps(1.0)), n);
        fn from_integer(v: Self::F32x16) -> Self::F32x16 = _mm512_cvtepi32_ps(_mm512_castps_si512(v));
        fn wide_splat(x: f64) -> Self::F64x16 = (_mm512_set1_pd(x), _mm512_set1_pd(x));
        fn wide_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 = (_mm512_add_pd(a.0, b.0), _mm512_add_pd(a.1, b.1));
        fn wide_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 = (_mm512_sub_pd(a.0, b.0), _mm512_sub_pd(a.1, b.1));
        fn wide_mul(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 = (_mm512_mul_pd(a.0, b.0), _mm512_mul_pd(a.1, b.1));
        fn wide_fma(a: Self::F64x16, b: Self::F64x16, c: Self::F64x16) -> Self::F64x16 = (_mm512_fmadd_pd(a.0, b.0, c.0), _mm512_fmadd_pd(a.1, b.1, c.1));
        fn wide_div(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 = (_mm512_div_pd(a.0, b.0), _mm512_div_pd(a.1, b.1));
        fn wide_sqrt(v: Self::F64x16) -> Self::F64x16 = (_mm512_sqrt_pd(v.0), _mm512_sqrt_pd(v.1));
        fn wide_bits_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 =
            (on_bits!(wide _mm512_add_epi64(a.0, b.0)), on_bits!(wide _mm512_add_epi64(a.1, b.1)));
        fn wide_bits_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 =
            (on_bits!(wide _mm512_sub_epi64(a.0, b.0)), on_bits!(wide _mm512_sub_epi64(a.1, b.1)));
    }
    #[inline(always)]
    unsafe fn swap<const D: usize>(v: Self::F32x16) -> Self::F32x16 {
        unsafe {
            match D {
                1 => _mm512_permute_ps::<0b10_11_00_01>(v),
                2 => _mm512_permute_ps::<0b01_00_11_10>(v),
                4 => _mm512_shuffle_f32x4::<0b10_11_00_01>(v, v),
                _ => _mm512_shuffle_f32x4::<0b01_00_11_10>(v, v),
            }
        }
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn doubled(v: Self::F32x16) -> [Self::F32x16; 2] {
        let low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
        [_mm512_permutexvar_ps(low, v), _mm512_permutexvar_ps(high, v)]
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_within(v: Self::F64x16, low: f64, high: f64) -> Self::F64x16 {
        let (low, high) = (_mm512_set1_pd(low), _mm512_set1_pd(high));
        // If an operand is NaN, the instruction returns the second one.
        let above = (_mm512_max_pd(low, v.0), _mm512_max_pd(low, v.1));
        (_mm512_min_pd(high, above.0), _mm512_min_pd(high, above.1))
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_shift_left(v: Self::F64x16, n: i32) -> Self::F64x16 {
        let n = _mm512_set1_epi64(n.into());
        (on_bits!(wide _mm512_sllv_epi64(v.0; n)), on_bits!(wide _mm512_sllv_epi64(v.1; n)))
    }
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_shift_right(v: Self::F64x16, n: i32) -> Self::F64x16 {
        let n = _mm512_set1_epi64(n.into());
        (on_bits!(wide _mm512_srlv_epi64(v.0; n)), on_bits!(wide _mm512_srlv_epi64(v.1; n)))
    }
}
