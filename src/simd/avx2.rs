//! AVX2 with FMA and F16C: the 16 lanes are in two registers.

use super::{Bf16Rounding, LANES, Level, Simd, operations, unroll};
use std::arch::x86_64::*;

mod bf16;
mod bytes;
mod f16;
mod lanes;

use lanes::{
    EVEN, ODD, every_second, first, first_wide, load_first_halves, low_bits, store_first_halves,
};

/// AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Applies an operation to each register of the operands.
macro_rules! on_both {
    ($operation:path, $($v:expr),*) => { ($operation($($v.0),*), $operation($($v.1),*)) };
}

/// Applies an integer operation to the bits of f32 lanes.
macro_rules! on_bits {
    ($operation:ident($($v:expr),*$(; $count:expr)?)) => {(
        _mm256_castsi256_ps($operation($(_mm256_castps_si256($v.0)),*$(, $count)?)),
        _mm256_castsi256_ps($operation($(_mm256_castps_si256($v.1)),*$(, $count)?)),
    )};
}

/// Applies an integer operation to the bits of f64 lanes.
macro_rules! on_wide_bits {
    ($operation:ident($($v:expr),*$(; $count:expr)?)) => {{
        let mut out = [_mm256_setzero_pd(); 4];
        for i in 0..4 {
            out[i] = _mm256_castsi256_pd($operation($(_mm256_castpd_si256($v[i])),*$(, $count)?));
        }
        out
    }};
}

// SAFETY of every block below: the trait's contract gives the instruction set and the addresses.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Avx2 {
    type F32x16 = (__m256, __m256);
    type F64x16 = [__m256d; 4];
    type U16x16 = (__m128i, __m128i);
    type M = (__m256, __m256);
    type F64x4 = __m256d;
    const LEVEL: Level = Level::Avx2;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn splat(x: f32) -> Self::F32x16 {
        (_mm256_set1_ps(x), _mm256_set1_ps(x))
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn in_order(mut v: Self::F32x16) -> Self::F32x16 {
        // SAFETY: no instruction.
        unsafe {
            std::arch::asm!(
                "/* {} {} */",
                inout(ymm_reg) v.0,
                inout(ymm_reg) v.1,
                options(nomem, nostack, preserves_flags),
            );
        }
        v
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(p: *const f32) -> Self::F32x16 {
        unsafe { (_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_n(p: *const f32, n: usize) -> Self::F32x16 {
        unsafe {
            let (low, high) = first(n);
            // The second address may be past the buffer, but then no lane is loaded.
            (_mm256_maskload_ps(p, low), _mm256_maskload_ps(p.wrapping_add(8), high))
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn store(p: *mut f32, v: Self::F32x16) {
        unsafe {
            _mm256_storeu_ps(p, v.0);
            _mm256_storeu_ps(p.add(8), v.1);
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn store_n(p: *mut f32, v: Self::F32x16, n: usize) {
        unsafe {
            let (low, high) = first(n);
            _mm256_maskstore_ps(p, low, v.0);
            _mm256_maskstore_ps(p.wrapping_add(8), high, v.1);
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn stream(p: *mut f32, v: Self::F32x16) {
        unsafe {
            _mm256_stream_ps(p, v.0);
            _mm256_stream_ps(p.add(8), v.1);
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn stream_fence() {
        _mm_sfence()
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn prefetch(p: *const u8) {
        _mm_prefetch::<_MM_HINT_T0>(p.cast())
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn prefetch_second(p: *const u8) {
        _mm_prefetch::<_MM_HINT_T1>(p.cast())
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_half(p: *const u16) -> Self::U16x16 {
        unsafe { (_mm_loadu_si128(p.cast()), _mm_loadu_si128(p.add(8).cast())) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn store_half(p: *mut u16, v: Self::U16x16) {
        unsafe {
            _mm_storeu_si128(p.cast(), v.0);
            _mm_storeu_si128(p.add(8).cast(), v.1);
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_half_n(p: *const u16, n: usize) -> Self::U16x16 {
        unsafe { load_first_halves(p, n) }
    }
    #[inline(always)]
    unsafe fn store_half_n(p: *mut u16, v: Self::U16x16, n: usize) {
        unsafe { store_first_halves(p, v, n) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn stream_half(p: *mut u16, v: Self::U16x16) {
        unsafe {
            _mm256_stream_si256(p.cast(), _mm256_set_m128i(v.1, v.0));
        }
    }
    #[inline(always)]
    unsafe fn to_bf16(v: Self::F32x16) -> Self::U16x16 {
        unsafe {
            let ordered = bf16::apart(bf16::rounded_in_turn(v.0, v.1));
            (_mm256_castsi256_si128(ordered), _mm256_extracti128_si256::<1>(ordered))
        }
    }
    #[inline(always)]
    unsafe fn store_bf16<const N: usize>(
        p: *mut u16,
        v: &[Self::F32x16; N],
        _conversion: Bf16Rounding,
        streams: bool,
    ) {
        unroll!(k in N, {
            unsafe {
                let halves = bf16::apart(bf16::rounded_in_turn(v[k].0, v[k].1));
                bf16::put(p.add(k * LANES), halves, streams);
            }
        });
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_bf16_in_turn(p: *const u16) -> Self::F32x16 {
        unsafe { bf16::widened_in_turn(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_bf16_in_turn<const N: usize>(
        p: *mut u16,
        v: &[Self::F32x16; N],
        _conversion: Bf16Rounding,
        streams: bool,
    ) {
        unroll!(k in N, {
            unsafe {
                let halves = bf16::rounded_in_turn(v[k].0, v[k].1);
                bf16::put(p.add(k * LANES), halves, streams);
            }
        });
    }
    #[inline(always)]
    unsafe fn swap_in_turn(v: Self::F32x16) -> Self::F32x16 {
        (v.1, v.0)
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn to_f16(v: Self::F32x16) -> Self::U16x16 {
        unsafe { (f16::rounded(v.0), f16::rounded(v.1)) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn within(v: Self::F32x16, low: f32, high: f32) -> Self::F32x16 {
        let (low, high) = (_mm256_set1_ps(low), _mm256_set1_ps(high));
        // If an operand is NaN, these instructions return the second one.
        (_mm256_min_ps(high, _mm256_max_ps(low, v.0)), _mm256_min_ps(high, _mm256_max_ps(low, v.1)))
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_bytes(p: *const u8, flip: u8, bias: f32) -> Self::F32x16 {
        unsafe { bytes::widened(_mm_loadu_si128(p.cast()), flip, bias) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_bytes_n(p: *const u8, flip: u8, bias: f32, n: usize) -> Self::F32x16 {
        unsafe { bytes::widened(bytes::load_first(p, n), flip, bias) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn store_bytes(p: *mut u8, v: Self::F32x16) {
        unsafe { _mm_storeu_si128(p.cast(), bytes::rounded(v)) }
    }
    #[inline(always)]
    unsafe fn store_bytes_n(p: *mut u8, v: Self::F32x16, n: usize) {
        unsafe { bytes::store_first(p, bytes::rounded(v), n) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn first_n(v: Self::F32x16, n: usize) -> Self::F32x16 {
        let (low, high) = first(n);
        (
            _mm256_and_ps(v.0, _mm256_castsi256_ps(low)),
            _mm256_and_ps(v.1, _mm256_castsi256_ps(high)),
        )
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn widen(v: Self::F32x16) -> Self::F64x16 {
        [
            _mm256_cvtps_pd(_mm256_castps256_ps128(v.0)),
            _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(v.0)),
            _mm256_cvtps_pd(_mm256_castps256_ps128(v.1)),
            _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(v.1)),
        ]
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn narrow(v: Self::F64x16) -> Self::F32x16 {
        (
            _mm256_set_m128(_mm256_cvtpd_ps(v[1]), _mm256_cvtpd_ps(v[0])),
            _mm256_set_m128(_mm256_cvtpd_ps(v[3]), _mm256_cvtpd_ps(v[2])),
        )
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_low_bits(v: Self::F64x16) -> Self::F32x16 {
        (low_bits(v[0], v[1]), low_bits(v[2], v[3]))
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_splat(x: f64) -> Self::F64x16 {
        [_mm256_set1_pd(x); 4]
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_load(p: *const f64) -> Self::F64x16 {
        unsafe {
            [
                _mm256_loadu_pd(p),
                _mm256_loadu_pd(p.add(4)),
                _mm256_loadu_pd(p.add(8)),
                _mm256_loadu_pd(p.add(12)),
            ]
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_load_n(p: *const f64, n: usize) -> Self::F64x16 {
        unsafe {
            let mask = first_wide(n);
            [
                _mm256_maskload_pd(p, mask[0]),
                _mm256_maskload_pd(p.wrapping_add(4), mask[1]),
                _mm256_maskload_pd(p.wrapping_add(8), mask[2]),
                _mm256_maskload_pd(p.wrapping_add(12), mask[3]),
            ]
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_store(p: *mut f64, v: Self::F64x16) {
        unsafe {
            _mm256_storeu_pd(p, v[0]);
            _mm256_storeu_pd(p.add(4), v[1]);
            _mm256_storeu_pd(p.add(8), v[2]);
            _mm256_storeu_pd(p.add(12), v[3]);
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_stream(p: *mut f64, v: Self::F64x16) {
        unsafe {
            unroll!(k in 4, {
                _mm256_stream_pd(p.add(4 * k), v[k]);
            });
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_store_n(p: *mut f64, v: Self::F64x16, n: usize) {
        unsafe {
            let mask = first_wide(n);
            _mm256_maskstore_pd(p, mask[0], v[0]);
            _mm256_maskstore_pd(p.wrapping_add(4), mask[1], v[1]);
            _mm256_maskstore_pd(p.wrapping_add(8), mask[2], v[2]);
            _mm256_maskstore_pd(p.wrapping_add(12), mask[3], v[3]);
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        [
            _mm256_add_pd(a[0], b[0]),
            _mm256_add_pd(a[1], b[1]),
            _mm256_add_pd(a[2], b[2]),
            _mm256_add_pd(a[3], b[3]),
        ]
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        [
            _mm256_sub_pd(a[0], b[0]),
            _mm256_sub_pd(a[1], b[1]),
            _mm256_sub_pd(a[2], b[2]),
            _mm256_sub_pd(a[3], b[3]),
        ]
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_mul(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        [
            _mm256_mul_pd(a[0], b[0]),
            _mm256_mul_pd(a[1], b[1]),
            _mm256_mul_pd(a[2], b[2]),
            _mm256_mul_pd(a[3], b[3]),
        ]
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_fma(a: Self::F64x16, b: Self::F64x16, c: Self::F64x16) -> Self::F64x16 {
        [
            _mm256_fmadd_pd(a[0], b[0], c[0]),
            _mm256_fmadd_pd(a[1], b[1], c[1]),
            _mm256_fmadd_pd(a[2], b[2], c[2]),
            _mm256_fmadd_pd(a[3], b[3], c[3]),
        ]
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_first_n(v: Self::F64x16, n: usize) -> Self::F64x16 {
        let mask = first_wide(n);
        [
            _mm256_and_pd(v[0], _mm256_castsi256_pd(mask[0])),
            _mm256_and_pd(v[1], _mm256_castsi256_pd(mask[1])),
            _mm256_and_pd(v[2], _mm256_castsi256_pd(mask[2])),
            _mm256_and_pd(v[3], _mm256_castsi256_pd(mask[3])),
        ]
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_div(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        [
            _mm256_div_pd(a[0], b[0]),
            _mm256_div_pd(a[1], b[1]),
            _mm256_div_pd(a[2], b[2]),
            _mm256_div_pd(a[3], b[3]),
        ]
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_sqrt(v: Self::F64x16) -> Self::F64x16 {
        [_mm256_sqrt_pd(v[0]), _mm256_sqrt_pd(v[1]), _mm256_sqrt_pd(v[2]), _mm256_sqrt_pd(v[3])]
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_all_between(v: Self::F64x16, low: f64, high: f64) -> bool {
        let (low, high) = (_mm256_set1_pd(low), _mm256_set1_pd(high));
        let mut all = _mm256_cmp_pd::<_CMP_GE_OQ>(v[0], low);
        for v in v {
            all = _mm256_and_pd(all, _mm256_cmp_pd::<_CMP_GE_OQ>(v, low));
            all = _mm256_and_pd(all, _mm256_cmp_pd::<_CMP_LE_OQ>(v, high));
        }
        _mm256_movemask_pd(all) == 0b1111
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_sum(v: Self::F64x16) -> f64 {
        unsafe {
            let four = Self::wide_quarter(v);
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_quarter(v: Self::F64x16) -> Self::F64x4 {
        _mm256_add_pd(_mm256_add_pd(v[0], v[2]), _mm256_add_pd(v[1], v[3]))
    }

    operations! {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn from_bf16(v: Self::U16x16) -> Self::F32x16 = on_both!(bf16::widened, v);
        fn in_turn(v: Self::F32x16) -> Self::F32x16 = (every_second::<EVEN>(v.0, v.1), every_second::<ODD>(v.0, v.1));
        fn from_f16(v: Self::U16x16) -> Self::F32x16 = on_both!(_mm256_cvtph_ps, v);
        fn add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_add_ps, a, b);
        fn sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_sub_ps, a, b);
        fn mul(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_mul_ps, a, b);
        fn fma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_fmadd_ps, a, b, c);
        fn fnma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_fnmadd_ps, a, b, c);
        fn div(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_div_ps, a, b);
        fn sqrt(v: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_sqrt_ps, v);
        fn max(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_max_ps, a, b);
        fn min(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_min_ps, a, b);
        fn lt(a: Self::F32x16, b: Self::F32x16) -> Self::M = on_both!(_mm256_cmp_ps::<_CMP_LT_OQ>, a, b);
        fn le(a: Self::F32x16, b: Self::F32x16) -> Self::M = on_both!(_mm256_cmp_ps::<_CMP_LE_OQ>, a, b);
        fn eq(a: Self::F32x16, b: Self::F32x16) -> Self::M = on_both!(_mm256_cmp_ps::<_CMP_EQ_OQ>, a, b);
        fn negative(v: Self::F32x16) -> Self::M = v;
        fn select(m: Self::M, a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_blendv_ps, b, a, m);
        fn bits_and(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_and_ps, a, b);
        fn bits_and_not(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_andnot_ps, b, a);
        fn bits_xor(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_both!(_mm256_xor_ps, a, b);
        fn bits_add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_bits!(_mm256_add_epi32(a, b));
        fn bits_sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_bits!(_mm256_sub_epi32(a, b));
        fn shift_left(v: Self::F32x16, n: i32) -> Self::F32x16 = on_bits!(_mm256_sllv_epi32(v; _mm256_set1_epi32(n)));
        fn shift_right(v: Self::F32x16, n: i32) -> Self::F32x16 = on_bits!(_mm256_srav_epi32(v; _mm256_set1_epi32(n)));
        fn from_integer(v: Self::F32x16) -> Self::F32x16 =
            (_mm256_cvtepi32_ps(_mm256_castps_si256(v.0)), _mm256_cvtepi32_ps(_mm256_castps_si256(v.1)));
        fn wide_bits_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 = on_wide_bits!(_mm256_add_epi64(a, b));
        fn wide_bits_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 = on_wide_bits!(_mm256_sub_epi64(a, b));
        fn wide_shift_left(v: Self::F64x16, n: i32) -> Self::F64x16 =
            on_wide_bits!(_mm256_sllv_epi64(v; _mm256_set1_epi64x(n.into())));
        fn wide_shift_right(v: Self::F64x16, n: i32) -> Self::F64x16 =
            on_wide_bits!(_mm256_srlv_epi64(v; _mm256_set1_epi64x(n.into())));
    }
    #[inline(always)]
    unsafe fn swap<const D: usize>(v: Self::F32x16) -> Self::F32x16 {
        unsafe {
            match D {
                1 => on_both!(_mm256_permute_ps::<0b10_11_00_01>, v),
                2 => on_both!(_mm256_permute_ps::<0b01_00_11_10>, v),
                4 => on_both!(_mm256_permute2f128_ps::<1>, v, v),
                _ => (v.1, v.0),
            }
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[rustfmt::skip]
    unsafe fn exchange<const D: usize>(a: Self::F32x16, b: Self::F32x16) -> [Self::F32x16; 2] {
        match D {
            1 => [on_both!(_mm256_blend_ps::<0xaa>, a, on_both!(_mm256_moveldup_ps, b)), on_both!(_mm256_blend_ps::<0xaa>, on_both!(_mm256_movehdup_ps, a), b)],
            2 => [on_both!(_mm256_shuffle_ps::<0x44>, a, b), on_both!(_mm256_shuffle_ps::<0xee>, a, b)],
            4 => [on_both!(_mm256_permute2f128_ps::<0x20>, a, b), on_both!(_mm256_permute2f128_ps::<0x31>, a, b)],
            _ => [(a.0, b.0), (a.1, b.1)],
        }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn doubled(v: Self::F32x16) -> [Self::F32x16; 2] {
        lanes::doubled(v)
    }
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn wide_within(mut v: Self::F64x16, low: f64, high: f64) -> Self::F64x16 {
        let (low, high) = (_mm256_set1_pd(low), _mm256_set1_pd(high));
        for v in &mut v {
            // If an operand is NaN, these instructions return the second one.
            *v = _mm256_min_pd(high, _mm256_max_pd(low, *v));
        }
        v
    }
}
