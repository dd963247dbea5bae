//! What becomes of results between a kernel and its stores: the post-operations that look at one element only and
//! are a few instructions.

use super::{Element, Factors, Simd};
use crate::tensor::DataType;

/// `slope x + offset`, rounded once, not below `low` and not above `high`; NaN stays.
///
/// A product alone has an offset of -0, a sum a slope of 1: these change no bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ramp {
    slope: f32,
    offset: f32,
    low: f32,
    high: f32,
}

impl Ramp {
    pub(crate) const NONE: Self = Self::linear(1.0, -0.0);

    pub(crate) const fn linear(slope: f32, offset: f32) -> Self {
        Self { slope, offset, low: f32::NEG_INFINITY, high: f32::INFINITY }
    }

    pub(crate) const fn times(slope: f32) -> Self {
        Self::linear(slope, -0.0)
    }

    pub(crate) const fn plus(offset: f32) -> Self {
        Self::linear(1.0, offset)
    }

    pub(crate) const fn between(low: f32, high: f32) -> Self {
        Self { low, high, ..Self::NONE }
    }

    /// Whether it changes what lies between its ends.
    #[inline(always)]
    fn bends(&self) -> bool {
        self.slope != 1.0 || self.offset.to_bits() != (-0.0f32).to_bits()
    }

    /// Whether it has ends.
    #[inline(always)]
    fn ends(&self) -> bool {
        self.low != f32::NEG_INFINITY || self.high != f32::INFINITY
    }

    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn apply<S: Simd, const N: usize>(&self, mut v: [S::F; N]) -> [S::F; N] {
        // SAFETY: the caller's.
        unsafe {
            if self.bends() {
                for k in 0..N {
                    v[k] = S::fma(v[k], S::splat(self.slope), S::splat(self.offset));
                }
            }
            if self.ends() {
                for k in 0..N {
                    v[k] = S::within(v[k], self.low, self.high);
                }
            }
        }
        v
    }
}

/// Ramps, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finish {
    ramps: *const Ramp,
    count: usize,
}

impl Finish {
    pub(crate) const NONE: Self = Self { ramps: std::ptr::null(), count: 0 };

    /// For as long as `ramps` are there.
    pub(crate) fn new(ramps: &[Ramp]) -> Self {
        Self { ramps: ramps.as_ptr(), count: ramps.len() }
    }

    pub(super) fn is_none(&self) -> bool {
        self.count == 0
    }

    /// # Safety
    /// The ramps and the instruction set of `S` are there.
    #[inline(always)]
    pub(super) unsafe fn apply<S: Simd, const N: usize>(&self, mut v: [S::F; N]) -> [S::F; N] {
        let mut k = 0;
        while k < self.count {
            // SAFETY: the caller's.
            unsafe {
                v = (*self.ramps.add(k)).apply::<S, N>(v);
            }
            k += 1;
        }
        v
    }
}

/// An element type whose stores take results through ramps.
///
/// The first is at hand, as most often there is no other.
#[derive(Clone, Copy)]
pub(crate) struct Finished<E> {
    element: E,
    first: Ramp,
    more: Finish,
}

// SAFETY of the blocks below: the trait's contract, passed through; the ramps are there while a kernel runs.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<E: Element> Finished<E> {
    #[inline(always)]
    unsafe fn finish<S: Simd, const N: usize>(self, v: &[S::F; N]) -> [S::F; N] {
        unsafe { self.more.apply::<S, N>(self.first.apply::<S, N>(*v)) }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl<E: Element> Element for Finished<E> {
    const HALF: bool = E::HALF;
    const LOOKS: bool = E::LOOKS;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        Self { element: E::of(data_type), first: Ramp::NONE, more: Finish::NONE }
    }
    #[inline(always)]
    fn scaled(self, factors: Factors) -> Self {
        Self { element: self.element.scaled(factors), ..self }
    }
    #[inline(always)]
    unsafe fn finished(self, finish: Finish) -> Self {
        if finish.count == 0 {
            return self;
        }
        let more = Finish { ramps: finish.ramps.wrapping_add(1), count: finish.count - 1 };
        let first = unsafe { *finish.ramps };
        Self { element: self.element.with_zeros(first.ends()), first, more }
    }
    #[inline(always)]
    fn size(self) -> usize {
        self.element.size()
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F {
        unsafe { self.element.load::<S>(p, i) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F {
        unsafe { self.element.load_n::<S>(p, i, n) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F) {
        unsafe { self.store_all::<S, 1>(p, i, &[v]) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F, n: usize) {
        unsafe {
            let [v] = self.finish::<S, 1>(&[v]);
            self.element.store_n::<S>(p, i, v, n);
        }
    }
    #[inline(always)]
    unsafe fn store_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F; N]) {
        unsafe { self.element.store_all::<S, N>(p, i, &self.finish::<S, N>(v)) }
    }
    #[inline(always)]
    fn streams(self, p: *const u8) -> bool {
        self.element.streams(p)
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F) {
        unsafe { self.stream_all::<S, 1>(p, i, &[v]) }
    }
    #[inline(always)]
    unsafe fn stream_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F; N]) {
        unsafe { self.element.stream_all::<S, N>(p, i, &self.finish::<S, N>(v)) }
    }
}
