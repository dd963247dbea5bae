//! Element types: how 16 elements are loaded as f32 lanes and stored.

use super::{Bf16Rounding, Factors, FusedPostOps, LANES, Simd, unroll};
use crate::tensor::DataType;

/// An element type of a tensor. Values are f32 in the lanes; types differ only in loads and stores.
///
/// A type that a kernel is compiled for is a token, usually zero-sized. [`Runtime`](super::Runtime) looks the type up
/// at each access. It serves combinations that are too rare for their own kernels.
///
/// # Safety
/// As for [`Simd`]: the elements, counted from `p`, exist. `n` is 1 to 15.
pub(crate) trait Element: Copy + 'static {
    /// Whether the type is known to have 16 bits or fewer.
    const HALF: bool;
    /// Whether f32 sums of a group of values are exact.
    const EXACT: bool = false;
    /// Whether two vectors are stored with fewer instructions at once than one by one, given enough registers.
    const PAIRED: bool = false;

    /// The token of the type. `data_type` must be the type that the kernel is compiled for.
    fn of(data_type: DataType) -> Self;
    /// Applies scales before stores, if the type supports that.
    #[inline(always)]
    fn scaled(self, _factors: Factors) -> Self {
        self
    }
    /// Applies post-operations before stores, if the type supports that.
    ///
    /// # Safety
    /// The post-operations outlive the token and its copies.
    #[inline(always)]
    unsafe fn with_post_ops(self, _finish: FusedPostOps) -> Self {
        self
    }
    /// Hints whether many stored values are 0.
    #[inline(always)]
    fn with_zeros(self, _zeros: bool) -> Self {
        self
    }
    /// Bytes of one element.
    fn size(self) -> usize;
    /// Whether the type has 16 bits or fewer, which [`Runtime`](super::Runtime) knows only at run time.
    #[inline(always)]
    fn half(self) -> bool {
        Self::HALF
    }
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F32x16;
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F32x16;
    /// A vector of f64 lanes.
    #[inline(always)]
    unsafe fn load_f64<S: Simd>(self, p: *const u8, i: usize) -> S::F64x16 {
        // SAFETY: guaranteed by the caller.
        unsafe { S::widen(self.load::<S>(p, i)) }
    }
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16);
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16, n: usize);
    /// Exchanges neighbouring lanes of a loaded whole vector.
    #[inline(always)]
    unsafe fn swapped<S: Simd>(self, v: S::F32x16) -> S::F32x16 {
        // SAFETY: guaranteed by the caller.
        unsafe { S::swap::<1>(v) }
    }
    /// Stores `N` consecutive vectors.
    #[inline(always)]
    unsafe fn store_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        unroll!(k in N, {
            // SAFETY: guaranteed by the caller.
            unsafe { self.store::<S>(p, i + k * LANES, v[k]) }
        });
    }
    /// Whether [`stream`](Element::stream) may be used for rows that begin at `p`.
    #[inline(always)]
    fn streams(self, _p: *const u8) -> bool {
        false
    }
    /// A non-temporal store, if [`streams`](Element::streams) allows it.
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.store::<S>(p, i, v) }
    }
    /// Non-temporal stores of `N` consecutive vectors.
    #[inline(always)]
    unsafe fn stream_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        unroll!(k in N, {
            // SAFETY: guaranteed by the caller.
            unsafe { self.stream::<S>(p, i + k * LANES, v[k]) }
        });
    }
}

/// IEEE 754 binary32.
#[derive(Clone, Copy)]
pub(crate) struct F32;
/// The upper half of a binary32.
#[derive(Clone, Copy)]
pub(crate) struct Bf16 {
    /// Whether the processor has a conversion instruction.
    pub(super) converts: bool,
    /// Whether many stored values are 0.
    pub(super) zeros: bool,
}
impl Bf16 {
    #[inline(always)]
    fn conversion(self) -> Bf16Rounding {
        match (self.converts, self.zeros) {
            (false, _) => Bf16Rounding::Computed,
            (true, false) => Bf16Rounding::Processors,
            (true, true) => Bf16Rounding::ProcessorsOfZeros,
        }
    }
}

/// IEEE 754 binary16.
#[derive(Clone, Copy)]
pub(crate) struct F16;

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
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F32x16 {
        unsafe { S::load(p.cast::<f32>().add(i)) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F32x16 {
        unsafe { S::load_n(p.cast::<f32>().add(i), n) }
    }
    #[inline(always)]
    unsafe fn load_f64<S: Simd>(self, p: *const u8, i: usize) -> S::F64x16 {
        unsafe { S::load_widened(p.cast::<f32>().add(i)) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { S::store(p.cast::<f32>().add(i), v) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16, n: usize) {
        unsafe { S::store_n(p.cast::<f32>().add(i), v, n) }
    }
    #[inline(always)]
    fn streams(self, p: *const u8) -> bool {
        p.addr().is_multiple_of(64)
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { S::stream(p.cast::<f32>().add(i), v) }
    }
}

/// The 16-bit types, which differ only in their conversions.
macro_rules! half_element {
    ($type:ident, $load:ident, $from:ident, $to:ident; $($own:tt)*) => {
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
            unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F32x16 {
                unsafe { S::$load(p.cast::<u16>().add(i)) }
            }
            #[inline(always)]
            unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F32x16 {
                unsafe { S::$from(S::load_half_n(p.cast::<u16>().add(i), n)) }
            }
            #[inline(always)]
            unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16, n: usize) {
                unsafe { S::store_half_n(p.cast::<u16>().add(i), S::$to(v), n) }
            }
            #[inline(always)]
            fn streams(self, p: *const u8) -> bool {
                p.addr().is_multiple_of(64)
            }
        }
    };
}
half_element! { Bf16, load_bf16, from_bf16, to_bf16;
    const PAIRED: bool = true;

    #[inline(always)]
    fn of(_: DataType) -> Self {
        Self { converts: super::converts_bf16(), zeros: false }
    }
    #[inline(always)]
    fn with_zeros(self, zeros: bool) -> Self {
        Self { zeros, ..self }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { S::store_bf16(p.cast::<u16>().add(i), &[v], Bf16Rounding::Computed, false) }
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { S::store_bf16(p.cast::<u16>().add(i), &[v], Bf16Rounding::Computed, true) }
    }
    #[inline(always)]
    unsafe fn store_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        unsafe { S::store_bf16(p.cast::<u16>().add(i), v, self.conversion(), false) }
    }
    #[inline(always)]
    unsafe fn stream_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        unsafe { S::store_bf16(p.cast::<u16>().add(i), v, self.conversion(), true) }
    }
}

/// bf16 for loops in which all tensors have this type and no lane interacts with any but its neighbour. The instruction
/// set may then choose the order of lanes in whole vectors.
#[derive(Clone, Copy)]
pub(crate) struct Bf16InTurn(Bf16);

// SAFETY of the blocks below: the trait's contract, passed through. Partial vectors have the usual order.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Element for Bf16InTurn {
    const HALF: bool = true;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        Self(Bf16::of(data_type))
    }
    #[inline(always)]
    fn size(self) -> usize {
        self.0.size()
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F32x16 {
        unsafe { S::load_bf16_in_turn(p.cast::<u16>().add(i)) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F32x16 {
        unsafe { self.0.load_n::<S>(p, i, n) }
    }
    #[inline(always)]
    unsafe fn swapped<S: Simd>(self, v: S::F32x16) -> S::F32x16 {
        unsafe { S::swap_in_turn(v) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { self.store_all::<S, 1>(p, i, &[v]) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16, n: usize) {
        unsafe { self.0.store_n::<S>(p, i, v, n) }
    }
    #[inline(always)]
    unsafe fn store_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        let conversion = self.0.conversion();
        unsafe { S::store_bf16_in_turn(p.cast::<u16>().add(i), v, conversion, false) }
    }
    #[inline(always)]
    fn streams(self, p: *const u8) -> bool {
        self.0.streams(p)
    }
    #[inline(always)]
    unsafe fn stream_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        let conversion = self.0.conversion();
        unsafe { S::store_bf16_in_turn(p.cast::<u16>().add(i), v, conversion, true) }
    }
}
half_element! { F16, load_f16, from_f16, to_f16;
    #[inline(always)]
    fn of(_: DataType) -> Self {
        Self
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { S::store_half(p.cast::<u16>().add(i), S::to_f16(v)) }
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { S::stream_half(p.cast::<u16>().add(i), S::to_f16(v)) }
    }
}

/// f32 that stages values of 16 bits or fewer, and is summed like them.
#[derive(Clone, Copy)]
pub(crate) struct HalfAsF32;

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Element for HalfAsF32 {
    const HALF: bool = true;

    #[inline(always)]
    fn of(_: DataType) -> Self {
        Self
    }
    #[inline(always)]
    fn size(self) -> usize {
        F32.size()
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F32x16 {
        unsafe { F32.load::<S>(p, i) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F32x16 {
        unsafe { F32.load_n::<S>(p, i, n) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { F32.store::<S>(p, i, v) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16, n: usize) {
        unsafe { F32.store_n::<S>(p, i, v, n) }
    }
}
