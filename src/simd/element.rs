//! Element types: how 16 of them become f32 lanes and back.

use super::{Byte, Factors, LANES, Simd, codes};
use crate::tensor::DataType;

/// An element type of a tensor. Values are f32 in the lanes; only loads and stores differ.
///
/// A type known when the kernel is compiled is a token without size; [`Runtime`] looks its type up at
/// each access and serves the combinations that are too rare for kernels of their own.
///
/// # Safety
/// As [`Simd`]: the elements named, counted from `p`, are there. `n` is 1 to 15.
pub(crate) trait Element: Copy + 'static {
    /// Whether the type is known to have 16 bits or fewer.
    const HALF: bool;
    /// Whether f32 sums of a group of values are exact.
    const EXACT: bool = false;
    /// Whether stores look at what they store, so that several vectors at once are cheaper.
    const LOOKS: bool = false;

    /// The token of a type, which is the one that the kernel was made for.
    fn of(data_type: DataType) -> Self;
    /// The same with results multiplied and divided before they are stored, of a type that has that.
    #[inline(always)]
    fn scaled(self, _factors: Factors) -> Self {
        self
    }
    /// Bytes of one element.
    fn size(self) -> usize;
    /// Whether the type has 16 bits.
    #[inline(always)]
    fn half(self) -> bool {
        Self::HALF
    }
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F;
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F;
    /// A vector in f64.
    #[inline(always)]
    unsafe fn load_wide<S: Simd>(self, p: *const u8, i: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe { S::widen(self.load::<S>(p, i)) }
    }
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F);
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F, n: usize);
    /// `N` vectors, one after another.
    #[inline(always)]
    unsafe fn store_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F; N]) {
        for (k, v) in v.iter().enumerate() {
            // SAFETY: the caller's.
            unsafe { self.store::<S>(p, i + k * LANES, *v) }
        }
    }
    /// Whether [`stream`](Element::stream) goes past the caches for rows that begin at `p`.
    #[inline(always)]
    fn streams(self, _p: *const u8) -> bool {
        false
    }
    /// A store past the caches, if [`streams`](Element::streams) said so.
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F) {
        // SAFETY: the caller's.
        unsafe { self.store::<S>(p, i, v) }
    }
    /// `N` of them, one after another.
    #[inline(always)]
    unsafe fn stream_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F; N]) {
        for (k, v) in v.iter().enumerate() {
            // SAFETY: the caller's.
            unsafe { self.stream::<S>(p, i + k * LANES, *v) }
        }
    }
}

/// IEEE 754 binary32.
#[derive(Clone, Copy)]
pub(crate) struct F32;
/// The upper half of a binary32.
#[derive(Clone, Copy)]
pub(crate) struct Bf16 {
    /// Whether the processor converts by itself.
    converts: bool,
}
/// IEEE 754 binary16.
#[derive(Clone, Copy)]
pub(crate) struct F16;
/// Any of the above, or with `BYTES` an integer of 8 bits, looked up at run time; only that it has 16 bits or fewer
/// may be known.
#[derive(Clone, Copy)]
pub(crate) struct Runtime<const HALF: bool = false, const BYTES: bool = false> {
    data_type: DataType,
    factors: Factors,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Element for F32 {
    const HALF: bool = false;

    #[inline(always)]
    fn of(_: DataType) -> Self {
        Self
    }
    #[inline(always)]
    fn size(self) -> usize {
        4
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F {
        unsafe { S::load(p.cast::<f32>().add(i)) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F {
        unsafe { S::load_n(p.cast::<f32>().add(i), n) }
    }
    #[inline(always)]
    unsafe fn load_wide<S: Simd>(self, p: *const u8, i: usize) -> S::D {
        unsafe { S::load_widened(p.cast::<f32>().add(i)) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F) {
        unsafe { S::store(p.cast::<f32>().add(i), v) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F, n: usize) {
        unsafe { S::store_n(p.cast::<f32>().add(i), v, n) }
    }
    #[inline(always)]
    fn streams(self, p: *const u8) -> bool {
        p.addr().is_multiple_of(64)
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F) {
        unsafe { S::stream(p.cast::<f32>().add(i), v) }
    }
}

/// Both 16-bit types differ in the conversions, and in what is said of them.
macro_rules! half_element {
    ($type:ident, $from:ident, $to:ident; $($own:tt)*) => {
        // SAFETY of the blocks below: the trait's contract, passed through; `n` is below 16.
        #[allow(clippy::undocumented_unsafe_blocks)]
        impl Element for $type {
            const HALF: bool = true;

            $($own)*
            #[inline(always)]
            fn size(self) -> usize {
                2
            }
            #[inline(always)]
            unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F {
                unsafe { S::$from(S::load_half(p.cast::<u16>().add(i))) }
            }
            #[inline(always)]
            unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F {
                unsafe { S::$from(S::load_half_n(p.cast::<u16>().add(i), n)) }
            }
            #[inline(always)]
            unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F) {
                unsafe { S::store_half(p.cast::<u16>().add(i), S::$to(v)) }
            }
            #[inline(always)]
            unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F, n: usize) {
                unsafe { S::store_half_n(p.cast::<u16>().add(i), S::$to(v), n) }
            }
            #[inline(always)]
            fn streams(self, p: *const u8) -> bool {
                p.addr().is_multiple_of(64)
            }
            #[inline(always)]
            unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F) {
                unsafe { S::stream_half(p.cast::<u16>().add(i), S::$to(v)) }
            }
        }
    };
}
half_element! { Bf16, from_bf16, to_bf16;
    const LOOKS: bool = true;

    #[inline(always)]
    fn of(_: DataType) -> Self {
        Self { converts: super::converts_bf16() }
    }
    #[inline(always)]
    unsafe fn store_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F; N]) {
        unsafe { S::store_bf16(p.cast::<u16>().add(i), v, self.converts, false) }
    }
    #[inline(always)]
    unsafe fn stream_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F; N]) {
        unsafe { S::store_bf16(p.cast::<u16>().add(i), v, self.converts, true) }
    }
}
half_element! { F16, from_f16, to_f16;
    #[inline(always)]
    fn of(_: DataType) -> Self {
        Self
    }
}

/// `$call` with the token of a type, which a problem's checks have confined to these.
macro_rules! by_type {
    ($runtime:expr, |$token:ident| $call:expr) => {
        match $runtime.data_type {
            DataType::S8 | DataType::U8 if BYTES => {
                let $token = Byte::of($runtime.data_type).scaled($runtime.factors);
                $call
            }
            DataType::Bf16 => {
                let $token = Bf16 { converts: false };
                $call
            }
            DataType::F16 => {
                let $token = F16;
                $call
            }
            _ => {
                let $token = F32;
                $call
            }
        }
    };
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<const HALF: bool, const BYTES: bool> Element for Runtime<HALF, BYTES> {
    const HALF: bool = HALF;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        Self { data_type, factors: Factors::NONE }
    }
    #[inline(always)]
    fn scaled(self, factors: Factors) -> Self {
        Self { factors, ..self }
    }
    #[inline(always)]
    fn size(self) -> usize {
        self.data_type.size()
    }
    #[inline(always)]
    fn half(self) -> bool {
        self.data_type.is_half()
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F {
        unsafe { by_type!(self, |t| t.load::<S>(p, i)) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F {
        unsafe { by_type!(self, |t| t.load_n::<S>(p, i, n)) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F) {
        unsafe { by_type!(self, |t| t.store::<S>(p, i, v)) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F, n: usize) {
        unsafe { by_type!(self, |t| t.store_n::<S>(p, i, v, n)) }
    }
}

/// One element as f32, exactly; s32 and f64 rounded.
///
/// # Safety
/// Element `i`, of this type and counted from `p`, is there.
#[inline(always)]
pub(crate) unsafe fn read_scalar(data_type: DataType, p: *const u8, i: usize) -> f32 {
    // SAFETY: the caller's; addresses need no alignment.
    unsafe {
        match data_type {
            DataType::F32 => p.cast::<f32>().add(i).read_unaligned(),
            DataType::F64 => p.cast::<f64>().add(i).read_unaligned() as f32,
            DataType::S32 => p.cast::<i32>().add(i).read_unaligned() as f32,
            DataType::S8 => codes::s8_value(p.add(i).read()),
            DataType::U8 => codes::u8_value(p.add(i).read()),
            DataType::F8E4m3 => codes::e4m3_value(p.add(i).read()),
            DataType::F8E5m2 => codes::e5m2_value(p.add(i).read()),
            DataType::Bf16 => {
                f32::from_bits(u32::from(p.cast::<u16>().add(i).read_unaligned()) << 16)
            }
            DataType::F16 => f16_value(p.cast::<u16>().add(i).read_unaligned()),
        }
    }
}

/// One element as f64, exactly.
///
/// # Safety
/// As [`read_scalar`].
#[inline(always)]
pub(crate) unsafe fn read_wide(data_type: DataType, p: *const u8, i: usize) -> f64 {
    // SAFETY: the caller's.
    unsafe {
        match data_type {
            DataType::F64 => p.cast::<f64>().add(i).read_unaligned(),
            DataType::S32 => f64::from(p.cast::<i32>().add(i).read_unaligned()),
            _ => f64::from(read_scalar(data_type, p, i)),
        }
    }
}

/// Writes one element, rounded to nearest even: the same bits as a vector store. Integers saturate.
///
/// # Safety
/// Element `i`, of this type and counted from `p`, may be written.
#[inline(always)]
pub(crate) unsafe fn write_scalar(data_type: DataType, p: *mut u8, i: usize, x: f32) {
    // SAFETY: the caller's; addresses need no alignment.
    unsafe {
        match data_type {
            DataType::F32 => p.cast::<f32>().add(i).write_unaligned(x),
            DataType::F64 => p.cast::<f64>().add(i).write_unaligned(f64::from(x)),
            // Rust's conversion saturates.
            DataType::S32 => p.cast::<i32>().add(i).write_unaligned(x.round_ties_even() as i32),
            DataType::S8 => p.add(i).write(codes::s8_code(x)),
            DataType::U8 => p.add(i).write(codes::u8_code(x)),
            DataType::F8E4m3 => p.add(i).write(codes::e4m3_code(x)),
            DataType::F8E5m2 => p.add(i).write(codes::e5m2_code(x)),
            DataType::Bf16 => p.cast::<u16>().add(i).write_unaligned(bf16_bits(x)),
            DataType::F16 => p.cast::<u16>().add(i).write_unaligned(f16_bits(x)),
        }
    }
}

/// Writes one element from f64, which goes to f32 first unless it stays.
///
/// # Safety
/// As [`write_scalar`].
#[inline(always)]
pub(crate) unsafe fn write_wide(data_type: DataType, p: *mut u8, i: usize, x: f64) {
    // SAFETY: the caller's.
    unsafe {
        match data_type {
            DataType::F64 => p.cast::<f64>().add(i).write_unaligned(x),
            _ => write_scalar(data_type, p, i, x as f32),
        }
    }
}

/// bf16 bits of an f32: round to nearest even on the integer; a NaN keeps its upper half, made quiet.
#[inline(always)]
pub(crate) fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return (bits >> 16) as u16 | 0x40;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// binary16 bits of an f32, to nearest even, subnormals included; a NaN becomes a quiet one.
#[inline(always)]
pub(crate) fn f16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00 | (magnitude >> 13 & 0x3ff) as u16;
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00; // 65536 and above; 65520 to 65535 round up below
    }
    if magnitude < 0x3880_0000 {
        // Below 2^-14: adding 0.5 lines the last place up with binary16's 2^-24 and rounds.
        let aligned = f32::from_bits(magnitude) + 0.5;
        return sign | (aligned.to_bits() - 0x3f00_0000) as u16;
    }
    let rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    sign | ((rounded - 0x3800_0000) >> 13) as u16
}

/// The f32 value of binary16 bits, exactly.
#[inline(always)]
pub(crate) fn f16_value(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let value = if magnitude < 0x400 {
        // 2^-24 each; exact.
        (magnitude as f32 * f32::from_bits(0x3380_0000)).to_bits()
    } else if magnitude >= 0x7c00 {
        0x7f80_0000 | magnitude << 13 & 0x007f_ffff | u32::from(magnitude > 0x7c00) << 22
    } else {
        (magnitude << 13) + 0x3800_0000
    };
    f32::from_bits(sign | value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 16-bit pattern, and the f32 values around each rounding boundary, against `half`.
    #[test]
    fn conversions_agree_with_the_half_crate() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_value(bits), half::f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan());
            for value in [ours, f32::from_bits(u32::from(bits) << 16)] {
                for nudge in [0u32, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001] {
                    let x = f32::from_bits(value.to_bits().wrapping_add(nudge));
                    let (f, b) = (half::f16::from_f32(x), half::bf16::from_f32(x));
                    if x.is_nan() {
                        assert!(half::f16::from_bits(f16_bits(x)).is_nan());
                        assert!(half::bf16::from_bits(bf16_bits(x)).is_nan());
                    } else {
                        assert_eq!(f16_bits(x), f.to_bits(), "{x:e}");
                        assert_eq!(bf16_bits(x), b.to_bits(), "{x:e}");
                    }
                }
            }
        }
    }
}
