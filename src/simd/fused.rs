//! Operations between a kernel and its stores: the short elementwise post-operations, and scales.

use super::lanes::Lanes;
use super::{Simd, unroll};

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
    pub(super) fn clamps(&self) -> bool {
        self.low != f32::NEG_INFINITY || self.high != f32::INFINITY
    }

    /// The operation without branches, for loops that load the constants once.
    #[inline(always)]
    pub(crate) fn of<S: Simd>(&self, x: Lanes<S>) -> Lanes<S> {
        x.mul_add(self.slope, self.offset).within(self.low, self.high)
    }

    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn apply<S: Simd, const N: usize>(
        &self,
        mut v: [S::F32x16; N],
    ) -> [S::F32x16; N] {
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
    pub(super) ops: *const FusedOp,
    pub(super) count: usize,
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

/// The factors of results before they are rounded to integers: a scale and the reciprocal of another, applied in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors {
    scale: f32,
    reciprocal: f32,
}

impl Factors {
    pub(crate) const NONE: Self = Self { scale: 1.0, reciprocal: 1.0 };

    /// Multiplies by one scale and by the reciprocal of another.
    pub(crate) fn new(multiply: f32, divide: f32) -> Self {
        Self { scale: multiply, reciprocal: 1.0 / divide }
    }

    /// Whether they have no effect.
    #[inline(always)]
    pub(super) fn are_ones(&self) -> bool {
        self.scale == 1.0 && self.reciprocal == 1.0
    }

    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn apply<S: Simd>(&self, v: S::F32x16) -> S::F32x16 {
        // SAFETY: guaranteed by the caller.
        unsafe { S::mul(S::mul(v, S::splat(self.scale)), S::splat(self.reciprocal)) }
    }
}
