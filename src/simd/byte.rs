//! The 8-bit integers as an element type.

use super::{Element, Factors, LANES, Simd, unroll};
use crate::tensor::DataType;

/// s8 or u8. The type is in the fields, so both share kernels.
#[derive(Clone, Copy)]
pub(crate) struct Byte {
    /// A code xor `flip` is a number from 0 to 255, which is the value plus `bias`.
    flip: u8,
    bias: f32,
    low: f32,
    high: f32,
    factors: Factors,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Element for Byte {
    const HALF: bool = true;
    const EXACT: bool = true;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        let factors = Factors::NONE;
        if data_type == DataType::S8 {
            Self { flip: 0x80, bias: 128.0, low: -128.0, high: 127.0, factors }
        } else {
            Self { flip: 0, bias: 0.0, low: 0.0, high: 255.0, factors }
        }
    }
    #[inline(always)]
    fn scaled(self, factors: Factors) -> Self {
        Self { factors, ..self }
    }
    #[inline(always)]
    fn size(self) -> usize {
        1
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F32x16 {
        unsafe { S::load_bytes(p.add(i), self.flip, self.bias) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F32x16 {
        unsafe { S::load_bytes_n(p.add(i), self.flip, self.bias, n) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { self.store_all::<S, 1>(p, i, &[v]) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16, n: usize) {
        unsafe {
            let [v] = self.codes::<S, 1>(&[v]);
            S::store_bytes_n(p.add(i), v, n);
        }
    }
    #[inline(always)]
    unsafe fn store_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        unsafe {
            let codes = self.codes::<S, N>(v);
            unroll!(k in N, {
                S::store_bytes(p.add(i + k * LANES), codes[k]);
            });
        }
    }
    #[inline(always)]
    fn streams(self, p: *const u8) -> bool {
        p.addr().is_multiple_of(64)
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe { self.stream_all::<S, 1>(p, i, &[v]) }
    }
    #[inline(always)]
    unsafe fn stream_all<S: Simd, const N: usize>(self, p: *mut u8, i: usize, v: &[S::F32x16; N]) {
        unsafe {
            let codes = self.codes::<S, N>(v);
            unroll!(k in N, {
                S::stream_bytes(p.add(i + k * LANES), codes[k]);
            });
        }
    }
}

impl Byte {
    /// The scaled and clamped values, which the store rounds to integers.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(crate) unsafe fn codes<S: Simd, const N: usize>(
        self,
        v: &[S::F32x16; N],
    ) -> [S::F32x16; N] {
        let mut v = *v;
        // SAFETY: guaranteed by the caller.
        unsafe {
            if !self.factors.are_ones() {
                unroll!(k in N, {
                    v[k] = self.factors.apply::<S>(v[k]);
                });
            }
            unroll!(k in N, {
                v[k] = S::within(v[k], self.low, self.high);
            });
        }
        v
    }
}
