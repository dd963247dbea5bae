//! Element types whose stores apply fused post-operations.

use super::{Element, Factors, FusedOp, FusedPostOps, Simd};
use crate::tensor::DataType;

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
