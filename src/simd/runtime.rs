//! Element types that are looked up at run time.

use super::{Bf16, Byte, Element, F16, F32, Factors, FusedPostOps, Simd};
use crate::tensor::DataType;

/// f32, bf16, f16 or an 8-bit integer, looked up at each access.
#[derive(Clone, Copy)]
pub(crate) struct Runtime {
    data_type: DataType,
    factors: Factors,
    post_ops: FusedPostOps,
    again: bool,
}

/// Evaluates `$call` with the token of a run-time type. The checks of a problem exclude other types.
macro_rules! by_type {
    ($runtime:expr, |$token:ident| $call:expr) => {
        match $runtime.data_type {
            DataType::S8 | DataType::U8 => {
                let $token = Byte::of($runtime.data_type).scaled($runtime.factors);
                $call
            }
            DataType::Bf16 => {
                let $token = Bf16 { converts: false, zeros: false };
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

impl Runtime {
    /// Tells whether a later step rounds the stored f32 to fewer bits.
    #[inline(always)]
    pub(crate) fn rounded_again(self, again: bool) -> Self {
        Self { again, ..self }
    }

    /// Whether the type is f64, which only [`Number`](super::Number) supports.
    #[inline(always)]
    pub(super) fn is_f64(self) -> bool {
        self.data_type == DataType::F64
    }

    /// Whether stored values are rounded to fewer bits than f32, at once or later.
    #[inline(always)]
    pub(super) fn rounds_again(self) -> bool {
        self.again || (self.data_type.size() < 4 && self.post_ops.is_none())
    }
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Element for Runtime {
    const HALF: bool = false;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        Self { data_type, factors: Factors::NONE, post_ops: FusedPostOps::NONE, again: false }
    }
    #[inline(always)]
    fn scaled(self, factors: Factors) -> Self {
        Self { factors, ..self }
    }
    #[inline(always)]
    unsafe fn with_post_ops(self, post_ops: FusedPostOps) -> Self {
        Self { post_ops, ..self }
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
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F32x16 {
        unsafe { by_type!(self, |t| t.load::<S>(p, i)) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F32x16 {
        unsafe { by_type!(self, |t| t.load_n::<S>(p, i, n)) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16) {
        unsafe {
            let [v] = self.post_ops.apply::<S, 1>([v]);
            by_type!(self, |t| t.store::<S>(p, i, v))
        }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F32x16, n: usize) {
        unsafe {
            let [v] = self.post_ops.apply::<S, 1>([v]);
            by_type!(self, |t| t.store_n::<S>(p, i, v, n))
        }
    }
}
