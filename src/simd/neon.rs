//! NEON: the 16 lanes are in four registers of f32 or eight of f64.

use super::{FOUR, LANES, Level, Simd, copy_n, operations, unroll};
use std::arch::aarch64::*;
use std::arch::asm;

/// Advanced SIMD, which every aarch64 machine has.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

/// # Safety
/// NEON.
#[inline(always)]
unsafe fn bf16_half(v: float32x4_t) -> uint16x4_t {
    // SAFETY: the caller's.
    unsafe {
        let bits = vreinterpretq_u32_f32(v);
        let odd = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
        let rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
        let number = vceqq_f32(v, v);
        let quiet = vorrq_u32(bits, vdupq_n_u32(0x0040_0000));
        vshrn_n_u32::<16>(vbslq_u32(number, rounded, quiet))
    }
}

/// Converts binary16 to f32. The intrinsic needs an unstable type, the instruction does not.
///
/// # Safety
/// NEON.
#[inline(always)]
unsafe fn widen_half(v: uint16x4_t) -> float32x4_t {
    let out: float32x4_t;
    // SAFETY: a register-to-register conversion.
    unsafe {
        asm!("fcvtl {o:v}.4s, {i:v}.4h", o = lateout(vreg) out, i = in(vreg) v,
             options(pure, nomem, nostack, preserves_flags));
    }
    out
}

/// Converts f32 to binary16, to nearest even in the default environment.
///
/// # Safety
/// NEON.
#[inline(always)]
unsafe fn narrow_half(v: float32x4_t) -> uint16x4_t {
    let out: uint16x4_t;
    // SAFETY: a register-to-register conversion.
    unsafe {
        asm!("fcvtn {o:v}.4h, {i:v}.4s", o = lateout(vreg) out, i = in(vreg) v,
             options(pure, nomem, nostack, preserves_flags));
    }
    out
}

/// Applies an operation to the bits of f32 lanes.
macro_rules! on_bits {
    ($operation:ident($($v:expr),*$(; $count:expr)?)) => {
        each!(4, |i| {
            vreinterpretq_f32_u32($operation($(vreinterpretq_u32_f32($v[i])),*$(, $count)?))
        })
    };
}

/// Applies an operation to the bits of f64 lanes.
macro_rules! on_wide_bits {
    ($operation:ident($($v:expr),*$(; $count:expr)?)) => {
        each!(8, |i| {
            vreinterpretq_f64_u64($operation($(vreinterpretq_u64_f64($v[i])),*$(, $count)?))
        })
    };
}

/// Applies an operation to each register of the operands. It is not a loop, because functions with thousands of loops
/// take minutes to compile.
macro_rules! each {
    (4, |$i:ident| $value:expr) => {
        [each!(0, $i, $value), each!(1, $i, $value), each!(2, $i, $value), each!(3, $i, $value)]
    };
    (8, |$i:ident| $value:expr) => {
        [
            each!(0, $i, $value),
            each!(1, $i, $value),
            each!(2, $i, $value),
            each!(3, $i, $value),
            each!(4, $i, $value),
            each!(5, $i, $value),
            each!(6, $i, $value),
            each!(7, $i, $value),
        ]
    };
    ($n:literal, $i:ident, $value:expr) => {{
        let $i = $n;
        $value
    }};
}

// SAFETY of every block below: the trait's contract gives the addresses; NEON is always there.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Neon {
    type F32x16 = [float32x4_t; 4];
    type F64x16 = [float64x2_t; 8];
    type U16x16 = [uint16x4_t; 4];
    type M = [uint32x4_t; 4];
    type F64x4 = [f64; FOUR];
    const LEVEL: Level = Level::Neon;

    #[inline]
    unsafe fn splat(x: f32) -> Self::F32x16 {
        unsafe { each!(4, |_i| vdupq_n_f32(x)) }
    }
    #[inline]
    unsafe fn load(p: *const f32) -> Self::F32x16 {
        unsafe { each!(4, |i| vld1q_f32(p.add(4 * i))) }
    }
    #[inline]
    unsafe fn load_n(p: *const f32, n: usize) -> Self::F32x16 {
        let mut lanes = [0.0f32; LANES];
        unsafe {
            copy_n(p, lanes.as_mut_ptr(), n);
            Self::load(lanes.as_ptr())
        }
    }
    #[inline]
    unsafe fn store(p: *mut f32, v: Self::F32x16) {
        unroll!(i in 4, {
            unsafe { vst1q_f32(p.add(4 * i), v[i]) };
        });
    }
    #[inline]
    unsafe fn store_n(p: *mut f32, v: Self::F32x16, n: usize) {
        let mut lanes = [0.0f32; LANES];
        unsafe {
            Self::store(lanes.as_mut_ptr(), v);
            copy_n(lanes.as_ptr(), p, n);
        }
    }
    #[inline]
    unsafe fn load_half(p: *const u16) -> Self::U16x16 {
        unsafe { each!(4, |i| vld1_u16(p.add(4 * i))) }
    }
    #[inline]
    unsafe fn store_half(p: *mut u16, v: Self::U16x16) {
        unroll!(i in 4, {
            unsafe { vst1_u16(p.add(4 * i), v[i]) };
        });
    }
    #[inline]
    unsafe fn from_bf16(v: Self::U16x16) -> Self::F32x16 {
        unsafe { each!(4, |i| vreinterpretq_f32_u32(vshll_n_u16::<16>(v[i]))) }
    }
    #[inline]
    unsafe fn to_bf16(v: Self::F32x16) -> Self::U16x16 {
        unsafe { each!(4, |i| bf16_half(v[i])) }
    }
    #[inline]
    unsafe fn from_f16(v: Self::U16x16) -> Self::F32x16 {
        unsafe { each!(4, |i| widen_half(v[i])) }
    }
    #[inline]
    unsafe fn to_f16(v: Self::F32x16) -> Self::U16x16 {
        unsafe { each!(4, |i| narrow_half(v[i])) }
    }
    #[inline]
    unsafe fn add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 {
        unsafe { each!(4, |i| vaddq_f32(a[i], b[i])) }
    }
    #[inline]
    unsafe fn sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 {
        unsafe { each!(4, |i| vsubq_f32(a[i], b[i])) }
    }
    #[inline]
    unsafe fn mul(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 {
        unsafe { each!(4, |i| vmulq_f32(a[i], b[i])) }
    }
    #[inline]
    unsafe fn fma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16 {
        unsafe { each!(4, |i| vfmaq_f32(c[i], a[i], b[i])) }
    }
    #[inline]
    unsafe fn fnma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16 {
        unsafe { each!(4, |i| vfmsq_f32(c[i], a[i], b[i])) }
    }
    #[inline]
    unsafe fn within(v: Self::F32x16, low: f32, high: f32) -> Self::F32x16 {
        unsafe {
            let (low, high) = (vdupq_n_f32(low), vdupq_n_f32(high));
            // Not vmaxq and vminq, for which -0 is below 0.
            each!(4, |i| {
                let x = vbslq_f32(vcltq_f32(v[i], low), low, v[i]);
                vbslq_f32(vcgtq_f32(x, high), high, x)
            })
        }
    }
    #[inline]
    unsafe fn load_bytes(p: *const u8, flip: u8, bias: f32) -> Self::F32x16 {
        unsafe {
            let bytes = veorq_u8(vld1q_u8(p), vdupq_n_u8(flip));
            let (low, high) = (vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
            let numbers = [
                vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))),
                vcvtq_f32_u32(vmovl_high_u16(low)),
                vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))),
                vcvtq_f32_u32(vmovl_high_u16(high)),
            ];
            Self::sub(numbers, Self::splat(bias))
        }
    }
    #[inline]
    unsafe fn store_bytes(p: *mut u8, v: Self::F32x16) {
        unsafe {
            // NaN becomes 0.
            let n = each!(4, |i| vcvtnq_s32_f32(v[i]));
            let low = vmovn_high_s32(vmovn_s32(n[0]), n[1]);
            let high = vmovn_high_s32(vmovn_s32(n[2]), n[3]);
            let bytes = vmovn_high_s16(vmovn_s16(low), high);
            vst1q_u8(p, vreinterpretq_u8_s8(bytes));
        }
    }
    #[inline]
    unsafe fn first_n(v: Self::F32x16, n: usize) -> Self::F32x16 {
        let mut lanes = [0.0f32; LANES];
        unsafe {
            Self::store(lanes.as_mut_ptr(), v);
            Self::load_n(lanes.as_ptr(), n)
        }
    }
    #[inline]
    unsafe fn widen(v: Self::F32x16) -> Self::F64x16 {
        unsafe {
            each!(8, |i| {
                let quarter = v[i / 2];
                if i % 2 == 0 {
                    vcvt_f64_f32(vget_low_f32(quarter))
                } else {
                    vcvt_high_f64_f32(quarter)
                }
            })
        }
    }
    #[inline]
    unsafe fn narrow(v: Self::F64x16) -> Self::F32x16 {
        unsafe { each!(4, |i| vcvt_high_f32_f64(vcvt_f32_f64(v[2 * i]), v[2 * i + 1])) }
    }
    #[inline]
    unsafe fn wide_splat(x: f64) -> Self::F64x16 {
        unsafe { each!(8, |_i| vdupq_n_f64(x)) }
    }
    #[inline]
    unsafe fn wide_load(p: *const f64) -> Self::F64x16 {
        unsafe { each!(8, |i| vld1q_f64(p.add(2 * i))) }
    }
    #[inline]
    unsafe fn wide_load_n(p: *const f64, n: usize) -> Self::F64x16 {
        let mut lanes = [0.0f64; LANES];
        unsafe {
            copy_n(p, lanes.as_mut_ptr(), n);
            Self::wide_load(lanes.as_ptr())
        }
    }
    #[inline]
    unsafe fn wide_store(p: *mut f64, v: Self::F64x16) {
        unroll!(to 8: i in 8, {
            unsafe { vst1q_f64(p.add(2 * i), v[i]) };
        });
    }
    #[inline]
    unsafe fn wide_store_n(p: *mut f64, v: Self::F64x16, n: usize) {
        let mut lanes = [0.0f64; LANES];
        unsafe {
            Self::wide_store(lanes.as_mut_ptr(), v);
            copy_n(lanes.as_ptr(), p, n);
        }
    }
    #[inline]
    unsafe fn wide_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        unsafe { each!(8, |i| vaddq_f64(a[i], b[i])) }
    }
    #[inline]
    unsafe fn wide_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        unsafe { each!(8, |i| vsubq_f64(a[i], b[i])) }
    }
    #[inline]
    unsafe fn wide_mul(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        unsafe { each!(8, |i| vmulq_f64(a[i], b[i])) }
    }
    #[inline]
    unsafe fn wide_fma(a: Self::F64x16, b: Self::F64x16, c: Self::F64x16) -> Self::F64x16 {
        unsafe { each!(8, |i| vfmaq_f64(c[i], a[i], b[i])) }
    }
    #[inline]
    unsafe fn wide_first_n(v: Self::F64x16, n: usize) -> Self::F64x16 {
        let mut lanes = [0.0f64; LANES];
        unsafe {
            Self::wide_store(lanes.as_mut_ptr(), v);
            Self::wide_load_n(lanes.as_ptr(), n)
        }
    }
    #[inline]
    unsafe fn wide_div(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        unsafe { each!(8, |i| vdivq_f64(a[i], b[i])) }
    }
    #[inline]
    unsafe fn wide_sqrt(v: Self::F64x16) -> Self::F64x16 {
        unsafe { each!(8, |i| vsqrtq_f64(v[i])) }
    }
    #[inline]
    unsafe fn wide_all_between(v: Self::F64x16, low: f64, high: f64) -> bool {
        unsafe {
            let (low, high) = (vdupq_n_f64(low), vdupq_n_f64(high));
            let mut all = vdupq_n_u64(u64::MAX);
            for v in v {
                all = vandq_u64(all, vandq_u64(vcgeq_f64(v, low), vcleq_f64(v, high)));
            }
            vgetq_lane_u64::<0>(all) & vgetq_lane_u64::<1>(all) == u64::MAX
        }
    }
    #[inline]
    unsafe fn wide_sum(v: Self::F64x16) -> f64 {
        let [a, b, c, d] = unsafe { Self::wide_quarter(v) };
        (a + c) + (b + d)
    }
    #[inline]
    unsafe fn wide_quarter(v: Self::F64x16) -> Self::F64x4 {
        unsafe {
            let eight = each!(4, |i| vaddq_f64(v[i], v[i + 4]));
            let mut sums = [0.0; FOUR];
            vst1q_f64(sums.as_mut_ptr(), vaddq_f64(eight[0], eight[2]));
            vst1q_f64(sums.as_mut_ptr().add(2), vaddq_f64(eight[1], eight[3]));
            sums
        }
    }

    operations! {
        #[target_feature(enable = "neon")]
        fn div(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = each!(4, |i| vdivq_f32(a[i], b[i]));
        fn sqrt(v: Self::F32x16) -> Self::F32x16 = each!(4, |i| vsqrtq_f32(v[i]));
        // Not vmaxq and vminq, which return NaN if either operand is NaN.
        fn max(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 =
            each!(4, |i| vbslq_f32(vcgtq_f32(a[i], b[i]), a[i], b[i]));
        fn min(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 =
            each!(4, |i| vbslq_f32(vcltq_f32(a[i], b[i]), a[i], b[i]));
        fn lt(a: Self::F32x16, b: Self::F32x16) -> Self::M = each!(4, |i| vcltq_f32(a[i], b[i]));
        fn le(a: Self::F32x16, b: Self::F32x16) -> Self::M = each!(4, |i| vcleq_f32(a[i], b[i]));
        fn eq(a: Self::F32x16, b: Self::F32x16) -> Self::M = each!(4, |i| vceqq_f32(a[i], b[i]));
        fn negative(v: Self::F32x16) -> Self::M =
            each!(4, |i| vcltzq_s32(vreinterpretq_s32_f32(v[i])));
        fn select(m: Self::M, a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 =
            each!(4, |i| vbslq_f32(m[i], a[i], b[i]));
        fn bits_and(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_bits!(vandq_u32(a, b));
        fn bits_and_not(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_bits!(vbicq_u32(a, b));
        fn bits_xor(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_bits!(veorq_u32(a, b));
        fn bits_add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_bits!(vaddq_u32(a, b));
        fn bits_sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = on_bits!(vsubq_u32(a, b));
        fn shift_left(v: Self::F32x16, n: i32) -> Self::F32x16 = on_bits!(vshlq_u32(v; vdupq_n_s32(n)));
        fn shift_right(v: Self::F32x16, n: i32) -> Self::F32x16 = each!(4, |i| {
            vreinterpretq_f32_s32(vshlq_s32(vreinterpretq_s32_f32(v[i]), vdupq_n_s32(-n)))
        });
        fn from_integer(v: Self::F32x16) -> Self::F32x16 =
            each!(4, |i| vcvtq_f32_s32(vreinterpretq_s32_f32(v[i])));
        fn wide_bits_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 = on_wide_bits!(vaddq_u64(a, b));
        fn wide_bits_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 = on_wide_bits!(vsubq_u64(a, b));
        fn wide_low_bits(v: Self::F64x16) -> Self::F32x16 = each!(4, |i| {
            vuzp1q_f32(vreinterpretq_f32_f64(v[2 * i]), vreinterpretq_f32_f64(v[2 * i + 1]))
        });
        fn wide_shift_left(v: Self::F64x16, n: i32) -> Self::F64x16 = on_wide_bits!(vshlq_u64(v; vdupq_n_s64(n.into())));
        fn wide_shift_right(v: Self::F64x16, n: i32) -> Self::F64x16 = on_wide_bits!(vshlq_u64(v; vdupq_n_s64((-n).into())));
    }
    #[inline]
    unsafe fn swap<const D: usize>(v: Self::F32x16) -> Self::F32x16 {
        unsafe {
            match D {
                1 => each!(4, |i| vrev64q_f32(v[i])),
                2 => each!(4, |i| vextq_f32::<2>(v[i], v[i])),
                4 => [v[1], v[0], v[3], v[2]],
                _ => [v[2], v[3], v[0], v[1]],
            }
        }
    }
    #[inline]
    unsafe fn wide_within(v: Self::F64x16, low: f64, high: f64) -> Self::F64x16 {
        unsafe {
            let (low, high) = (vdupq_n_f64(low), vdupq_n_f64(high));
            each!(8, |i| {
                let x = vbslq_f64(vcltq_f64(v[i], low), low, v[i]);
                vbslq_f64(vcgtq_f64(x, high), high, x)
            })
        }
    }
}
