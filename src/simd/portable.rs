//! Plain arrays: the level for machines without a faster one, and the model for the others.
//!
//! It favours size over speed. Arithmetic is not inlined, so a kernel is a few calls per vector, small and quick to
//! compile.

use super::{FOUR, LANES, Level, Simd, bf16_bits, codes, copy_n, f16_bits, f16_value, operations};

/// No particular instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// An array with an expression per lane. A macro, because a closure may not be inlined.
macro_rules! each {
    (|$i:ident| $value:expr) => {{
        let mut out = [Default::default(); LANES];
        for $i in 0..LANES {
            out[$i] = $value;
        }
        out
    }};
}

/// # Safety
/// `n` elements, at most 16, are readable.
#[inline(always)]
unsafe fn read<T: Copy + Default>(p: *const T, n: usize) -> [T; LANES] {
    let mut out = [T::default(); LANES];
    // SAFETY: guaranteed by the caller.
    unsafe { copy_n(p, out.as_mut_ptr(), n) };
    out
}

/// # Safety
/// `n` elements, at most 16, are writable.
#[inline(always)]
unsafe fn write<T: Copy>(p: *mut T, v: [T; LANES], n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { copy_n(v.as_ptr(), p, n) };
}

/// Defines `a * b + c` in each lane, with one rounding. The baseline of x86-64 has no instruction for it, so there
/// `mul_add` is a function that looks at the processor for every lane; this looks once.
macro_rules! fused {
    ($name:ident, $T:ty) => {
        #[inline(always)]
        fn $name(a: [$T; LANES], b: [$T; LANES], c: [$T; LANES]) -> [$T; LANES] {
            #[inline(always)]
            fn lanes(a: [$T; LANES], b: [$T; LANES], c: [$T; LANES]) -> [$T; LANES] {
                each!(|i| a[i].mul_add(b[i], c[i]))
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "fma")]
                fn at_once(a: [$T; LANES], b: [$T; LANES], c: [$T; LANES]) -> [$T; LANES] {
                    lanes(a, b, c)
                }
                if std::arch::is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has the instruction.
                    return unsafe { at_once(a, b, c) };
                }
            }
            lanes(a, b, c)
        }
    };
}
fused!(multiply_add, f32);
fused!(wide_multiply_add, f64);

// SAFETY of every block below: the addresses are guaranteed by the caller.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Portable {
    type F32x16 = [f32; LANES];
    type F64x16 = [f64; LANES];
    type U16x16 = [u16; LANES];
    type M = [bool; LANES];
    type F64x4 = [f64; FOUR];
    const LEVEL: Level = Level::Portable;
    const UNROLLS: bool = false;

    // A loop, like the other operations on arrays.
    #[inline(never)]
    unsafe fn splat(x: f32) -> Self::F32x16 {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn zero() -> Self::F32x16 {
        [0.0; LANES]
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::F32x16 {
        unsafe { read(p, LANES) }
    }
    #[inline(always)]
    unsafe fn load_n(p: *const f32, n: usize) -> Self::F32x16 {
        unsafe { read(p, n) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::F32x16) {
        unsafe { write(p, v, LANES) }
    }
    #[inline(always)]
    unsafe fn store_n(p: *mut f32, v: Self::F32x16, n: usize) {
        unsafe { write(p, v, n) }
    }
    #[inline(always)]
    unsafe fn load_half(p: *const u16) -> Self::U16x16 {
        unsafe { read(p, LANES) }
    }
    #[inline(always)]
    unsafe fn store_half(p: *mut u16, v: Self::U16x16) {
        unsafe { write(p, v, LANES) }
    }
    #[inline(never)]
    unsafe fn from_bf16(v: Self::U16x16) -> Self::F32x16 {
        each!(|i| f32::from_bits(u32::from(v[i]) << 16))
    }
    #[inline(never)]
    unsafe fn to_bf16(v: Self::F32x16) -> Self::U16x16 {
        each!(|i| bf16_bits(v[i]))
    }
    #[inline(never)]
    unsafe fn from_f16(v: Self::U16x16) -> Self::F32x16 {
        each!(|i| f16_value(v[i]))
    }
    #[inline(never)]
    unsafe fn to_f16(v: Self::F32x16) -> Self::U16x16 {
        each!(|i| f16_bits(v[i]))
    }
    #[inline(never)]
    unsafe fn add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 {
        each!(|i| a[i] + b[i])
    }
    #[inline(never)]
    unsafe fn sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 {
        each!(|i| a[i] - b[i])
    }
    #[inline(never)]
    unsafe fn mul(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 {
        each!(|i| a[i] * b[i])
    }
    #[inline(never)]
    unsafe fn fma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16 {
        multiply_add(a, b, c)
    }
    #[inline(never)]
    unsafe fn fnma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16 {
        multiply_add(each!(|i| -a[i]), b, c)
    }
    #[inline(never)]
    unsafe fn within(v: Self::F32x16, low: f32, high: f32) -> Self::F32x16 {
        let mut out = v;
        for x in &mut out {
            *x = if *x < low { low } else { *x };
            *x = if *x > high { high } else { *x };
        }
        out
    }
    #[inline(never)]
    unsafe fn load_bytes(p: *const u8, flip: u8, bias: f32) -> Self::F32x16 {
        let bytes = unsafe { read::<u8>(p, LANES) };
        each!(|i| codes::u8_value(bytes[i] ^ flip) - bias)
    }
    #[inline(never)]
    unsafe fn store_bytes(p: *mut u8, v: Self::F32x16) {
        let bytes: [u8; LANES] = each!(|i| codes::integer_code(v[i]));
        unsafe { write(p, bytes, LANES) }
    }
    #[inline(never)]
    unsafe fn first_n(v: Self::F32x16, n: usize) -> Self::F32x16 {
        let mut out = [0.0; LANES];
        for i in 0..LANES {
            out[i] = if i < n { v[i] } else { 0.0 };
        }
        out
    }
    #[inline(never)]
    unsafe fn widen(v: Self::F32x16) -> Self::F64x16 {
        each!(|i| f64::from(v[i]))
    }
    #[inline(never)]
    unsafe fn narrow(v: Self::F64x16) -> Self::F32x16 {
        each!(|i| v[i] as f32)
    }
    #[inline(never)]
    unsafe fn wide_splat(x: f64) -> Self::F64x16 {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn wide_zero() -> Self::F64x16 {
        [0.0; LANES]
    }
    #[inline(always)]
    unsafe fn wide_load(p: *const f64) -> Self::F64x16 {
        unsafe { read(p, LANES) }
    }
    #[inline(always)]
    unsafe fn wide_load_n(p: *const f64, n: usize) -> Self::F64x16 {
        unsafe { read(p, n) }
    }
    #[inline(always)]
    unsafe fn wide_store(p: *mut f64, v: Self::F64x16) {
        unsafe { write(p, v, LANES) }
    }
    #[inline(always)]
    unsafe fn wide_store_n(p: *mut f64, v: Self::F64x16, n: usize) {
        unsafe { write(p, v, n) }
    }
    #[inline(never)]
    unsafe fn wide_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        each!(|i| a[i] + b[i])
    }
    #[inline(never)]
    unsafe fn wide_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        each!(|i| a[i] - b[i])
    }
    #[inline(never)]
    unsafe fn wide_mul(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        each!(|i| a[i] * b[i])
    }
    #[inline(never)]
    unsafe fn wide_fma(a: Self::F64x16, b: Self::F64x16, c: Self::F64x16) -> Self::F64x16 {
        wide_multiply_add(a, b, c)
    }
    #[inline(never)]
    unsafe fn wide_first_n(v: Self::F64x16, n: usize) -> Self::F64x16 {
        let mut out = [0.0; LANES];
        for i in 0..LANES {
            out[i] = if i < n { v[i] } else { 0.0 };
        }
        out
    }
    #[inline(never)]
    unsafe fn wide_div(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 {
        each!(|i| a[i] / b[i])
    }
    #[inline(never)]
    unsafe fn wide_sqrt(v: Self::F64x16) -> Self::F64x16 {
        each!(|i| v[i].sqrt())
    }
    #[inline(never)]
    unsafe fn wide_all_between(v: Self::F64x16, low: f64, high: f64) -> bool {
        v.iter().all(|v| (low..=high).contains(v))
    }
    #[inline(never)]
    unsafe fn wide_sum(v: Self::F64x16) -> f64 {
        let mut v = v;
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                v[i] += v[i + half];
            }
            half /= 2;
        }
        v[0]
    }
    #[inline(never)]
    unsafe fn wide_quarter(v: Self::F64x16) -> Self::F64x4 {
        let mut sums = [0.0; FOUR];
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = (v[i] + v[i + 8]) + (v[i + 4] + v[i + 12]);
        }
        sums
    }

    operations! { out of line:
        fn div(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = each!(|i| a[i] / b[i]);
        fn sqrt(v: Self::F32x16) -> Self::F32x16 = each!(|i| v[i].sqrt());
        fn max(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = each!(|i| if a[i] > b[i] { a[i] } else { b[i] });
        fn min(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = each!(|i| if a[i] < b[i] { a[i] } else { b[i] });
        fn lt(a: Self::F32x16, b: Self::F32x16) -> Self::M = each!(|i| a[i] < b[i]);
        fn le(a: Self::F32x16, b: Self::F32x16) -> Self::M = each!(|i| a[i] <= b[i]);
        fn eq(a: Self::F32x16, b: Self::F32x16) -> Self::M = each!(|i| a[i] == b[i]);
        fn negative(v: Self::F32x16) -> Self::M = each!(|i| v[i].is_sign_negative());
        fn select(m: Self::M, a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = each!(|i| if m[i] { a[i] } else { b[i] });
        fn bits_and(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = each!(|i| f32::from_bits(a[i].to_bits() & b[i].to_bits()));
        fn bits_and_not(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = each!(|i| f32::from_bits(a[i].to_bits() & !b[i].to_bits()));
        fn bits_xor(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 = each!(|i| f32::from_bits(a[i].to_bits() ^ b[i].to_bits()));
        fn bits_add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 =
            each!(|i| f32::from_bits(a[i].to_bits().wrapping_add(b[i].to_bits())));
        fn bits_sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16 =
            each!(|i| f32::from_bits(a[i].to_bits().wrapping_sub(b[i].to_bits())));
        fn shift_left(v: Self::F32x16, n: i32) -> Self::F32x16 = each!(|i| f32::from_bits(v[i].to_bits() << n));
        fn shift_right(v: Self::F32x16, n: i32) -> Self::F32x16 =
            each!(|i| f32::from_bits((v[i].to_bits().cast_signed() >> n).cast_unsigned()));
        fn from_integer(v: Self::F32x16) -> Self::F32x16 = each!(|i| v[i].to_bits().cast_signed() as f32);
        fn wide_within(v: Self::F64x16, low: f64, high: f64) -> Self::F64x16 = each!(|i| {
            let x = if v[i] < low { low } else { v[i] };
            if x > high { high } else { x }
        });
        fn wide_bits_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 =
            each!(|i| f64::from_bits(a[i].to_bits().wrapping_add(b[i].to_bits())));
        fn wide_bits_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16 =
            each!(|i| f64::from_bits(a[i].to_bits().wrapping_sub(b[i].to_bits())));
        fn wide_low_bits(v: Self::F64x16) -> Self::F32x16 = each!(|i| f32::from_bits(v[i].to_bits() as u32));
        fn wide_shift_left(v: Self::F64x16, n: i32) -> Self::F64x16 = each!(|i| f64::from_bits(v[i].to_bits() << n));
        fn wide_shift_right(v: Self::F64x16, n: i32) -> Self::F64x16 = each!(|i| f64::from_bits(v[i].to_bits() >> n));
    }
    #[inline(never)]
    unsafe fn swap<const D: usize>(v: Self::F32x16) -> Self::F32x16 {
        each!(|i| v[i ^ D])
    }
}
