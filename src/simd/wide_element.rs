//! Element types in f64 lanes.

use super::scalar::rounded_to_odd;
use super::{Element, Factors, Full, FusedPostOps, LANES, Runtime, Simd, Width};
use crate::tensor::DataType;

/// An element type whose values are f64 in the lanes, for the kernels that compute in f64.
pub(crate) trait WideElement: Copy + 'static {
    /// Whether the type is always f64.
    const DOUBLE: bool;

    fn of(data_type: DataType) -> Self;
    /// As [`Element::scaled`].
    #[inline(always)]
    fn scaled(self, _factors: Factors) -> Self {
        self
    }
    /// As [`Element::with_post_ops`].
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn with_post_ops(self, _finish: FusedPostOps) -> Self {
        self
    }
    /// Tells whether a later step rounds the stored f32 to fewer bits.
    #[inline(always)]
    fn rounded_again(self, _again: bool) -> Self {
        self
    }
    /// Loads the vector at element `i`.
    ///
    /// # Safety
    /// Its elements exist, and the CPU supports the instruction set of `S`.
    unsafe fn get<S: Simd>(self, p: *const u8, i: usize, width: impl Width) -> S::F64x16;
    /// Rounds once and stores a vector. Scales and post-operations are applied in f32, so values are first rounded to
    /// f32 if there are any.
    ///
    /// # Safety
    /// As [`get`](WideElement::get).
    unsafe fn put<S: Simd>(self, p: *mut u8, i: usize, v: S::F64x16, width: impl Width);
    /// As [`Element::streams`].
    #[inline(always)]
    fn streams(self, _p: *const u8) -> bool {
        false
    }
    /// A non-temporal store of a full vector, if [`streams`](WideElement::streams) allows it.
    ///
    /// # Safety
    /// As [`get`](WideElement::get).
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F64x16) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.put::<S>(p, i, v, Full) }
    }
}

/// f64 or any type that [`Runtime`] supports.
#[derive(Clone, Copy)]
pub(crate) struct Number(Runtime);

/// f64.
#[derive(Clone, Copy)]
pub(crate) struct F64;

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl WideElement for Number {
    const DOUBLE: bool = false;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        Self(Element::of(data_type))
    }
    #[inline(always)]
    fn scaled(self, factors: Factors) -> Self {
        Self(self.0.scaled(factors))
    }
    #[inline(always)]
    unsafe fn with_post_ops(self, post_ops: FusedPostOps) -> Self {
        Self(unsafe { self.0.with_post_ops(post_ops) })
    }
    #[inline(always)]
    fn rounded_again(self, again: bool) -> Self {
        Self(self.0.rounded_again(again))
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(self, p: *const u8, i: usize, width: impl Width) -> S::F64x16 {
        unsafe {
            if self.0.is_f64() {
                return F64.get::<S>(p, i, width);
            }
            S::widen(width.load_as::<S, _>(self.0, p, i))
        }
    }
    #[inline(always)]
    unsafe fn put<S: Simd>(self, p: *mut u8, i: usize, v: S::F64x16, width: impl Width) {
        unsafe {
            if self.0.is_f64() {
                return F64.put::<S>(p, i, v, width);
            }
            let lanes = if self.0.rounds_again() { narrow_to_odd::<S>(v) } else { S::narrow(v) };
            width.store_as::<S, _>(self.0, p, i, lanes);
        }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl WideElement for F64 {
    const DOUBLE: bool = true;

    #[inline(always)]
    fn of(_: DataType) -> Self {
        Self
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(self, p: *const u8, i: usize, width: impl Width) -> S::F64x16 {
        unsafe { width.load_wide::<S>(p.cast::<f64>().add(i)) }
    }
    #[inline(always)]
    unsafe fn put<S: Simd>(self, p: *mut u8, i: usize, v: S::F64x16, width: impl Width) {
        unsafe { width.store_wide::<S>(p.cast::<f64>().add(i), v) }
    }
    #[inline(always)]
    fn streams(self, p: *const u8) -> bool {
        p.addr().is_multiple_of(64)
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F64x16) {
        unsafe { S::wide_stream(p.cast::<f64>().add(i), v) }
    }
}

/// f32 lanes that round to fewer bits as the f64 lanes would.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
pub(crate) unsafe fn narrow_to_odd<S: Simd>(v: S::F64x16) -> S::F32x16 {
    let (mut wide, mut lanes) = ([0.0; LANES], [0.0; LANES]);
    // SAFETY: guaranteed by the caller.
    unsafe {
        S::wide_store(wide.as_mut_ptr(), v);
        for i in 0..LANES {
            lanes[i] = rounded_to_odd(wide[i]);
        }
        S::load(lanes.as_ptr())
    }
}
