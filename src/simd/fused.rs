//! Fused post-operations: the short elementwise ones, applied between a kernel and its stores.

use super::{Element, Factors, Simd, unroll};
use crate::tensor::DataType;

/// `slope*x + offset`, rounded once, then clamped to `low..=high`. NaN stays NaN.
///
/// A pure product has an offset of -0 and a pure sum a slope of 1; neither changes a bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FusedOp {
    slope: f32,
    offset: f32,
    low: f32,
    high: f32,
}

impl FusedOp {
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

    /// Whether the linear part has an effect.
    #[inline(always)]
    fn has_linear_part(&self) -> bool {
        self.slope != 1.0 || self.offset.to_bits() != (-0.0f32).to_bits()
    }

    /// Whether the clamp has an effect.
    #[inline(always)]
    fn clamps(&self) -> bool {
        self.low != f32::NEG_INFINITY || self.high != f32::INFINITY
    }

    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn apply<S: Simd, const N: usize>(&self, mut v: [S::F32x16; N]) -> [S::F32x16; N] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.has_linear_part() {
                unroll!(k in N, {
                    v[k] = S::fma(v[k], S::splat(self.slope), S::splat(self.offset));
                });
            }
            if self.clamps() {
                unroll!(k in N, {
                    v[k] = S::within(v[k], self.low, self.high);
                });
            }
        }
        v
    }
}

/// A list of fused operations, applied in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FusedPostOps {
    ops: *const FusedOp,
    count: usize,
}

impl FusedPostOps {
    pub(crate) const NONE: Self = Self { ops: std::ptr::null(), count: 0 };

    /// The list must not outlive `ops`.
    pub(crate) fn new(ops: &[FusedOp]) -> Self {
        Self { ops: ops.as_ptr(), count: ops.len() }
    }

    pub(super) fn is_none(&self) -> bool {
        self.count == 0
    }

    /// # Safety
    /// The operations are alive, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn apply<S: Simd, const N: usize>(
        &self,
        mut v: [S::F32x16; N],
    ) -> [S::F32x16; N] {
        let mut k = 0;
        while k < self.count {
            // SAFETY: guaranteed by the caller.
            unsafe {
                v = (*self.ops.add(k)).apply::<S, N>(v);
            }
            k += 1;
        }
        v
    }
}

/// An element type whose stores apply fused post-operations.
///
/// The first operation is stored inline, because there is rarely another.
#[derive(Clone, Copy)]
pub(crate) struct WithPostOps<E> {
    element: E,
    first: FusedOp,
    more: FusedPostOps,
}

// SAFETY of the blocks below: guaranteed by the trait's contract; the operations are alive while a
// kernel runs.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<E: Element> WithPostOps<E> {
    #[inline(always)]
    unsafe fn apply<S: Simd, const N: usize>(self, v: &[S::F32x16; N]) -> [S::F32x16; N] {
        unsafe { self.more.apply::<S, N>(self.first.apply::<S, N>(*v)) }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl<E: Element> Element for WithPostOps<E> {
    const HALF: bool = E::HALF;
    const BATCHED_STORE: bool = E::BATCHED_STORE;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        Self { element: E::of(data_type), first: FusedOp::NONE, more: FusedPostOps::NONE }
    }
    #[inline(always)]
    fn scaled(self, factors: Factors) -> Self {
        Self { element: self.element.scaled(factors), ..self }
    }
    #[inline(always)]
    unsafe fn with_post_ops(self, post_ops: FusedPostOps) -> Self {
        if post_ops.count == 0 {
            return self;
        }
        let more = FusedPostOps { ops: post_ops.ops.wrapping_add(1), count: post_ops.count - 1 };
        let first = unsafe { *post_ops.ops };
        Self { element: self.element.with_zeros(first.clamps()), first, more }
    }
    #[inline(always)]
    fn size(self) -> usize {
        self.element.size()
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F32x16 {
        unsafe { self.element.load::<S>(p, i) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F32x16 {
        unsafe { self.element.load_n::<S>(p, i, n) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { self.store_all::<S, 1>(p, i, &[v]) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16, n: usize) {
        unsafe {
            let [v] = self.apply::<S, 1>(&[v]);
            self.element.store_n::<S>(p, i, v, n);
        }
    }
    #[inline(always)]
    unsafe fn store_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        unsafe { self.element.store_all::<S, N>(p, i, &self.apply::<S, N>(v)) }
    }
    #[inline(always)]
    fn streams(self, p: *const u8) -> bool {
        self.element.streams(p)
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { self.stream_all::<S, 1>(p, i, &[v]) }
    }
    #[inline(always)]
    unsafe fn stream_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        unsafe { self.element.stream_all::<S, N>(p, i, &self.apply::<S, N>(v)) }
    }
}
