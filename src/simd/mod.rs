//! The one vector width that kernels know: 16 f32 lanes.
//!
//! [`Simd`] holds exactly the operations that the kernels use; each instruction set implements it in its own file.
//! Because the width, and with it the order of every sum, is the same everywhere, a kernel written once gives the same
//! bits on all of them. Element types ([`Element`]) are the second axis and [`fold`] and [`map`] the loops; neither
//! names an instruction set.
//!
//! Nothing here has `#[target_feature]`. Kernels are inlined completely into the entry functions that
//! [`entry_points!`](crate::simd::entry_points) makes, which do.

#[cfg(all(target_arch = "x86_64", feature = "avx2"))]
pub(crate) mod avx2;
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
pub(crate) mod avx512;
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
mod bf16_pair;
mod byte;
pub(crate) mod codes;
mod element;
mod entries;
mod fenv;
mod fused;
pub(crate) mod hints;
mod lane_sums;
pub(crate) mod lanes;
mod levels;
mod loops;
#[cfg(all(target_arch = "x86_64", any(feature = "avx2", feature = "avx512")))]
mod m256d;
pub(crate) mod math;
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
pub(crate) mod matrices;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod portable;
mod quad;
mod runtime;
mod scalar;
mod terms;
mod unroll;
mod wide_element;
mod width;
mod with_post_ops;

pub(crate) use byte::Byte;
pub(crate) use element::{Bf16, Bf16InTurn, Element, F16, F32, HalfAsF32};
pub(crate) use entries::entry_points;
pub(crate) use fenv::DefaultEnvironment;
pub(crate) use fused::{Factors, FusedOp, FusedPostOps};
pub(crate) use hints::opaque;
pub(crate) use lane_sums::{LaneSums, STORED, each_row, rows_at_once};
pub(crate) use levels::{Level, converts_bf16};
pub(crate) use loops::{
    BLOCK, CHAIN, GROUP, Map, Widened, fold, fold_beside, lane_sums, map, map_and_fold, vectors,
};
pub(crate) use quad::{FOUR, Quad};
pub(crate) use runtime::Runtime;
pub(crate) use scalar::{
    bf16_bits, f16_bits, f16_value, read_scalar, read_wide, write_scalar, write_wide,
};
pub(crate) use terms::{Fold, Sums, Term, Terms};
pub(crate) use unroll::{unroll, zeroed};
pub(crate) use wide_element::{F64, Number, WideElement, narrow_to_odd};
pub(crate) use width::{First, Full, UpTo, Width, add_wide, rounded};
pub(crate) use with_post_ops::WithPostOps;

/// Lanes of a vector.
pub(crate) const LANES: usize = 16;

/// Marks the branch that calls it as unlikely. `std::hint::cold_path` needs a newer compiler.
#[cfg(all(target_arch = "x86_64", any(feature = "avx2", feature = "avx512")))]
#[cold]
#[inline]
pub(crate) fn rare() {}

/// How to round f32 to bf16.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bf16Rounding {
    /// With integer instructions.
    Computed,
    /// With the processor's instruction, which treats subnormals as zeros; so zero results are checked.
    Processors,
    /// The same, if most vectors contain zeros.
    ProcessorsOfZeros,
}

/// Functions of a [`Simd`] that are a single expression each.
macro_rules! operations {
    (out of line: $(fn $name:ident($($arg:ident: $ty:ty),*) -> $result:ty = $value:expr;)*) => {$(
        #[inline(never)]
        unsafe fn $name($($arg: $ty),*) -> $result {
            $value
        }
    )*};
    (#[target_feature(enable = $features:literal)]
     $(fn $name:ident($($arg:ident: $ty:ty),*) -> $result:ty = $value:expr;)*) => {$(
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $name($($arg: $ty),*) -> $result {
            $value
        }
    )*};
    ($(fn $name:ident($($arg:ident: $ty:ty),*) -> $result:ty = $value:expr;)*) => {$(
        #[inline(always)]
        unsafe fn $name($($arg: $ty),*) -> $result {
            unsafe { $value }
        }
    )*};
}
use operations;
use std::sync::atomic::{Ordering, compiler_fence};

/// Copies elements whose addresses need no alignment.
///
/// # Safety
/// `n` elements exist at both places, which do not overlap.
#[inline(always)]
unsafe fn copy_n<T: Copy>(from: *const T, to: *mut T, n: usize) {
    // SAFETY: guaranteed by the caller; bytes are always aligned.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast(), n * size_of::<T>()) }
}

/// A cache of a core, as the target of a prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    First,
    Second,
}

/// Vector operations over 16 lanes of f32 (`F32x16`) and 16 of f64 (`F64x16`).
///
/// Operations of x86-64 are `#[inline]` with their instruction set: the compiler optimizes each before kernels inline
/// it. With `#[inline(always)]` it would inline the intrinsics of every use first, which takes longer.
///
/// # Safety
/// Every function requires that the implementation's instruction set is available; loads and stores require valid
/// addresses, of any alignment, for the lanes that they access. The `_n` forms touch the first `n` lanes (1 to 15) and
/// no others; lanes that are not loaded are zero.
pub(crate) trait Simd: Copy + 'static {
    type F32x16: Copy;
    type F64x16: Copy;
    /// 16 lanes of 16 bits.
    type U16x16: Copy;
    /// 16 lanes of true or false.
    type M: Copy;
    /// Four of f64.
    type F64x4: Quad;
    const LEVEL: Level;
    /// Whether unrolling loops pays. It does not if a vector operation is already many instructions.
    const UNROLLS: bool = true;
    const MANY_REGISTERS: bool = Self::LEVEL.has_many_registers();

    unsafe fn splat(x: f32) -> Self::F32x16;
    /// The vector itself. The compiler does not move the loads that it depends on behind later ones, nor, on x86-64, its
    /// computation.
    #[inline(always)]
    unsafe fn in_order(v: Self::F32x16) -> Self::F32x16 {
        compiler_fence(Ordering::SeqCst);
        v
    }
    /// The compiler does not move loads across this. Unlike [`in_order`](Simd::in_order), it also makes the compiler load
    /// again what it has loaded before.
    #[inline(always)]
    fn loads_in_order() {
        compiler_fence(Ordering::SeqCst);
    }
    /// Vectors of zeros; see [`zeroed`].
    #[inline(always)]
    unsafe fn zeros<const N: usize>() -> [Self::F32x16; N] {
        // SAFETY: vectors are numbers.
        unsafe { zeroed() }
    }
    #[inline(always)]
    unsafe fn zero() -> Self::F32x16 {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::splat(0.0) }
    }
    unsafe fn load(p: *const f32) -> Self::F32x16;
    unsafe fn load_n(p: *const f32, n: usize) -> Self::F32x16;
    unsafe fn store(p: *mut f32, v: Self::F32x16);
    unsafe fn store_n(p: *mut f32, v: Self::F32x16, n: usize);

    /// A non-temporal store where the instruction set has one; the address is a multiple of 64.
    #[inline(always)]
    unsafe fn stream(p: *mut f32, v: Self::F32x16) {
        // SAFETY: the caller's.
        unsafe { Self::store(p, v) }
    }
    /// Prefetches the cache line at an address, which need not be valid, into the first-level cache.
    #[inline(always)]
    unsafe fn prefetch(_p: *const u8) {}
    /// Prefetches a cache line into the second-level cache.
    #[inline(always)]
    unsafe fn prefetch_second(_p: *const u8) {}
    /// Prefetches the cache lines of `N` addresses with a constant distance into a cache.
    #[inline(always)]
    unsafe fn prefetch_into<const N: usize>(cache: Cache, p: *const u8, distance: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match cache {
                Cache::First => unroll!(n in N, { Self::prefetch(p.wrapping_add(n * distance)) }),
                Cache::Second => {
                    // The compiler would compute the addresses before the match, and use no addressing mode.
                    let p = opaque(p);
                    unroll!(n in N, { Self::prefetch_second(p.wrapping_add(n * distance)) });
                }
            }
        }
    }
    /// Orders non-temporal stores before the thread's later stores.
    #[inline(always)]
    unsafe fn stream_fence() {}

    unsafe fn load_half(p: *const u16) -> Self::U16x16;
    #[inline(always)]
    unsafe fn load_half_n(p: *const u16, n: usize) -> Self::U16x16 {
        let mut lanes = [0u16; LANES];
        // SAFETY: the caller's; `n` is below 16.
        unsafe {
            copy_n(p, lanes.as_mut_ptr(), n);
            Self::load_half(lanes.as_ptr())
        }
    }
    unsafe fn store_half(p: *mut u16, v: Self::U16x16);
    #[inline(always)]
    unsafe fn store_half_n(p: *mut u16, v: Self::U16x16, n: usize) {
        let mut lanes = [0u16; LANES];
        // SAFETY: the caller's; `n` is below 16.
        unsafe {
            Self::store_half(lanes.as_mut_ptr(), v);
            copy_n(lanes.as_ptr(), p, n);
        }
    }
    /// As [`stream`](Simd::stream); the address is a multiple of 32.
    #[inline(always)]
    unsafe fn stream_half(p: *mut u16, v: Self::U16x16) {
        // SAFETY: the caller's.
        unsafe { Self::store_half(p, v) }
    }
    /// bf16 widened to f32, exactly.
    unsafe fn from_bf16(v: Self::U16x16) -> Self::F32x16;
    /// 16 elements in bf16 as f32.
    #[inline(always)]
    unsafe fn load_bf16(p: *const u16) -> Self::F32x16 {
        // SAFETY: the caller's.
        unsafe { Self::from_bf16(Self::load_half(p)) }
    }
    /// f32 rounded to bf16, to nearest even; NaN stays NaN.
    unsafe fn to_bf16(v: Self::F32x16) -> Self::U16x16;
    /// Vectors rounded to bf16 and stored one after another, non-temporally on request (the
    /// address is then a multiple of 32).
    #[inline(always)]
    unsafe fn store_bf16<const N: usize>(
        p: *mut u16,
        v: &[Self::F32x16; N],
        _conversion: Bf16Rounding,
        streams: bool,
    ) {
        unroll!(k in N, {
            // SAFETY: the caller's.
            unsafe {
                let (at, half) = (p.add(k * LANES), Self::to_bf16(v[k]));
                if streams { Self::stream_half(at, half) } else { Self::store_half(at, half) }
            }
        });
    }
    /// 16 bf16 as f32, in whatever order of lanes suits the instruction set best.
    #[inline(always)]
    unsafe fn load_bf16_in_turn(p: *const u16) -> Self::F32x16 {
        // SAFETY: the caller's.
        unsafe { Self::from_bf16(Self::load_half(p)) }
    }
    /// As [`store_bf16`](Simd::store_bf16), from lanes in the order of [`load_bf16_in_turn`](Simd::load_bf16_in_turn).
    #[inline(always)]
    unsafe fn store_bf16_in_turn<const N: usize>(
        p: *mut u16,
        v: &[Self::F32x16; N],
        conversion: Bf16Rounding,
        streams: bool,
    ) {
        // SAFETY: the caller's.
        unsafe { Self::store_bf16(p, v, conversion, streams) }
    }
    /// Permutes lanes from the usual order to that of [`load_bf16_in_turn`](Simd::load_bf16_in_turn).
    #[inline(always)]
    unsafe fn in_turn(v: Self::F32x16) -> Self::F32x16 {
        v
    }
    /// `swap::<1>` of lanes in that order.
    #[inline(always)]
    unsafe fn swap_in_turn(v: Self::F32x16) -> Self::F32x16 {
        // SAFETY: the caller's.
        unsafe { Self::swap::<1>(v) }
    }
    /// 16 bytes xor `flip`, as numbers from 0 to 255, less `bias`, which is also a byte.
    unsafe fn load_bytes(p: *const u8, flip: u8, bias: f32) -> Self::F32x16;
    #[inline(always)]
    unsafe fn load_bytes_n(p: *const u8, flip: u8, bias: f32, n: usize) -> Self::F32x16 {
        let mut lanes = [0u8; LANES];
        // SAFETY: the caller's; `n` is below 16.
        unsafe {
            std::ptr::copy_nonoverlapping(p, lanes.as_mut_ptr(), n);
            Self::load_bytes(lanes.as_ptr(), flip, bias)
        }
    }
    /// Stores the lowest bytes of the nearest integers, ties to even, for numbers from -128 to 255; NaN gives 0.
    unsafe fn store_bytes(p: *mut u8, v: Self::F32x16);
    /// As [`stream`](Simd::stream); the address is a multiple of 16.
    #[inline(always)]
    unsafe fn stream_bytes(p: *mut u8, v: Self::F32x16) {
        // SAFETY: the caller's.
        unsafe { Self::store_bytes(p, v) }
    }
    #[inline(always)]
    unsafe fn store_bytes_n(p: *mut u8, v: Self::F32x16, n: usize) {
        let mut lanes = [0u8; LANES];
        // SAFETY: the caller's; `n` is below 16.
        unsafe {
            Self::store_bytes(lanes.as_mut_ptr(), v);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), p, n);
        }
    }
    /// IEEE binary16 widened to f32, exactly.
    unsafe fn from_f16(v: Self::U16x16) -> Self::F32x16;
    /// 16 elements in IEEE binary16 as f32.
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> Self::F32x16 {
        // SAFETY: the caller's.
        unsafe { Self::from_f16(Self::load_half(p)) }
    }
    /// f32 rounded to binary16, to nearest even; NaN stays NaN.
    unsafe fn to_f16(v: Self::F32x16) -> Self::U16x16;

    unsafe fn add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    unsafe fn sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    unsafe fn mul(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    /// `a * b + c`, rounded once.
    unsafe fn fma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16;
    /// Clamps to `low` and `high`; NaN stays NaN.
    unsafe fn within(v: Self::F32x16, low: f32, high: f32) -> Self::F32x16;
    /// `c - a * b`, rounded once.
    unsafe fn fnma(a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16;
    /// The first `n` lanes, and zeros.
    unsafe fn first_n(v: Self::F32x16, n: usize) -> Self::F32x16;

    unsafe fn div(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    unsafe fn sqrt(v: Self::F32x16) -> Self::F32x16;
    /// `a` if it is above `b`, else `b`, also if one is NaN.
    unsafe fn max(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    /// `a` if it is below `b`, else `b`, also if one is NaN.
    unsafe fn min(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    /// `a < b`; false for NaN, like the other comparisons.
    unsafe fn lt(a: Self::F32x16, b: Self::F32x16) -> Self::M;
    unsafe fn le(a: Self::F32x16, b: Self::F32x16) -> Self::M;
    unsafe fn eq(a: Self::F32x16, b: Self::F32x16) -> Self::M;
    /// Whether the sign bit is set, including -0 and NaN.
    unsafe fn negative(v: Self::F32x16) -> Self::M;
    /// `a` where the mask is true, else `b`.
    unsafe fn select(mask: Self::M, a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    unsafe fn bits_and(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    /// The bits of `a` that are not in `b`.
    unsafe fn bits_and_not(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    unsafe fn bits_xor(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    /// The sum of the bits as 32-bit integers, modulo 2^32.
    unsafe fn bits_add(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    unsafe fn bits_sub(a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    /// The bits shifted left by less than 32.
    unsafe fn shift_left(v: Self::F32x16, n: i32) -> Self::F32x16;
    /// The bits shifted right by less than 32; copies of the sign bit are shifted in.
    unsafe fn shift_right(v: Self::F32x16, n: i32) -> Self::F32x16;
    /// `(1 + q) 2^n` for q from -1/2 to 1 and integers n from -252 to 254, given as numbers and as integers in the bits.
    /// Rounded as f32, and again if the result is subnormal.
    #[inline(always)]
    unsafe fn times_power_of_2(
        q: Self::F32x16,
        _n: Self::F32x16,
        integer: Self::F32x16,
    ) -> Self::F32x16 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            // In two steps, since 2^n may be outside f32.
            let half = Self::shift_right(integer, 1);
            let bias = Self::splat(f32::from_bits(127));
            let first = Self::shift_left(Self::bits_add(half, bias), 23);
            let rest = Self::bits_sub(integer, half);
            let second = Self::shift_left(Self::bits_add(rest, bias), 23);
            Self::mul(Self::fma(q, first, first), second)
        }
    }
    /// The bits as a signed integer, rounded to f32.
    unsafe fn from_integer(v: Self::F32x16) -> Self::F32x16;
    /// Lane `i` is lane `i ^ D` of `v`, with `D` 1 (neighbours), 2, 4 or 8 (halves).
    unsafe fn swap<const D: usize>(v: Self::F32x16) -> Self::F32x16;
    /// The lanes of `a` whose index has the bit `D`, exchanged with the lanes of `b` whose index lacks it.
    #[inline(always)]
    unsafe fn exchange<const D: usize>(a: Self::F32x16, b: Self::F32x16) -> [Self::F32x16; 2] {
        let mut lanes = [0.0; LANES];
        let mut lane = 0;
        while lane < LANES {
            lanes[lane] = (lane & D) as f32;
            lane += 1;
        }
        // SAFETY: the caller's.
        unsafe {
            let low = Self::eq(Self::load(lanes.as_ptr()), Self::zero());
            [Self::select(low, a, Self::swap::<D>(b)), Self::select(low, Self::swap::<D>(a), b)]
        }
    }
    /// Every lane twice: lane `i` of the two vectors is lane `i / 2` of `v`.
    #[inline(always)]
    unsafe fn doubled(v: Self::F32x16) -> [Self::F32x16; 2] {
        let (mut lanes, mut twice) = ([0.0; LANES], [0.0; 2 * LANES]);
        // SAFETY: the caller's.
        unsafe {
            Self::store(lanes.as_mut_ptr(), v);
            for i in 0..2 * LANES {
                twice[i] = lanes[i / 2];
            }
            [Self::load(twice.as_ptr()), Self::load(twice.as_ptr().add(LANES))]
        }
    }

    unsafe fn widen(v: Self::F32x16) -> Self::F64x16;
    /// A vector in f64.
    #[inline(always)]
    unsafe fn load_widened(p: *const f32) -> Self::F64x16 {
        // SAFETY: the caller's.
        unsafe { Self::widen(Self::load(p)) }
    }
    /// Rounded to nearest even.
    unsafe fn narrow(v: Self::F64x16) -> Self::F32x16;
    unsafe fn wide_splat(x: f64) -> Self::F64x16;
    #[inline(always)]
    unsafe fn wide_zero() -> Self::F64x16 {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::wide_splat(0.0) }
    }
    unsafe fn wide_load(p: *const f64) -> Self::F64x16;
    unsafe fn wide_load_n(p: *const f64, n: usize) -> Self::F64x16;
    unsafe fn wide_store(p: *mut f64, v: Self::F64x16);
    unsafe fn wide_store_n(p: *mut f64, v: Self::F64x16, n: usize);
    /// As [`stream`](Simd::stream).
    #[inline(always)]
    unsafe fn wide_stream(p: *mut f64, v: Self::F64x16) {
        // SAFETY: the caller's.
        unsafe { Self::wide_store(p, v) }
    }
    unsafe fn wide_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16;
    unsafe fn wide_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16;
    unsafe fn wide_mul(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16;
    unsafe fn wide_fma(a: Self::F64x16, b: Self::F64x16, c: Self::F64x16) -> Self::F64x16;
    /// The first `n` lanes, and zeros.
    unsafe fn wide_first_n(v: Self::F64x16, n: usize) -> Self::F64x16;
    unsafe fn wide_div(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16;
    unsafe fn wide_sqrt(v: Self::F64x16) -> Self::F64x16;
    /// As [`within`](Simd::within).
    unsafe fn wide_within(v: Self::F64x16, low: f64, high: f64) -> Self::F64x16;
    /// The sum of the bits as 64-bit integers, modulo 2^64.
    unsafe fn wide_bits_add(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16;
    unsafe fn wide_bits_sub(a: Self::F64x16, b: Self::F64x16) -> Self::F64x16;
    /// The bits shifted left by less than 64.
    unsafe fn wide_shift_left(v: Self::F64x16, n: i32) -> Self::F64x16;
    /// The bits shifted right by less than 64; zeros are shifted in.
    unsafe fn wide_shift_right(v: Self::F64x16, n: i32) -> Self::F64x16;
    /// The lower 32 bits of each lane.
    unsafe fn wide_low_bits(v: Self::F64x16) -> Self::F32x16;
    /// Whether all lanes are between two bounds, inclusive; false for NaN.
    unsafe fn wide_all_between(v: Self::F64x16, low: f64, high: f64) -> bool;
    /// The sum of the lanes. Halves are added until one lane is left: `(i) + (i + 8)`, then `(i) + (i + 4)`, and so on.
    unsafe fn wide_sum(v: Self::F64x16) -> f64;
    /// The first two steps of [`wide_sum`](Simd::wide_sum): `(i) + (i + 8)`, then `(i) + (i + 4)`. [`Quad::sums`] does
    /// the rest.
    unsafe fn wide_quarter(v: Self::F64x16) -> Self::F64x4;
    /// Stores what [`sum_rows`](Simd::sum_rows) needs of a row, at a multiple of 64 bytes.
    #[inline(always)]
    unsafe fn store_row(p: *mut f64, sums: Self::F64x16) {
        // SAFETY: the caller's.
        unsafe { Self::F64x4::store(p, Self::wide_quarter(sums)) }
    }
    /// Lane `i` is the [`wide_sum`](Simd::wide_sum) of row `i`. The rows are 64 bytes apart.
    #[inline(always)]
    unsafe fn sum_rows(rows: *const f64) -> Self::F64x16 {
        let mut sums = [0.0; LANES];
        // SAFETY: the caller's.
        unsafe {
            unroll!(i in FOUR, {
                let first = rows.add(i * FOUR * STORED);
                let sum = Quad::sums([
                    Self::F64x4::load(first),
                    Self::F64x4::load(first.add(STORED)),
                    Self::F64x4::load(first.add(2 * STORED)),
                    Self::F64x4::load(first.add(3 * STORED)),
                ]);
                Self::F64x4::store(sums.as_mut_ptr().add(i * FOUR), sum);
            });
            Self::wide_load(sums.as_ptr())
        }
    }
}
