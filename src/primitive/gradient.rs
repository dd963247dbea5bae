//! Gradients of elementwise functions, over chunks of f32: `diff_src = diff_dst * f'(src)`, some of them from dst.

use super::EltwiseAlgorithm;
use super::chunk::{Chunk, each};
use crate::simd::lanes::Lanes;
use crate::simd::math::{self, Exponent};
use crate::simd::{LANES, Simd, entry_points, unroll};

/// A gradient.
#[derive(Clone, Copy)]
pub(crate) struct Gradient {
    pub(super) algorithm: EltwiseAlgorithm,
    /// Whether elements are those of dst.
    pub(super) from_dst: bool,
    pub(super) alpha: f32,
    pub(super) beta: f32,
    /// `beta - 1`, the exponent of the derivative of a power.
    exponent: Exponent,
}

impl Gradient {
    pub(crate) fn new(
        algorithm: EltwiseAlgorithm,
        from_dst: bool,
        (alpha, beta): (f32, f32),
    ) -> Self {
        let exponent = Exponent::wide(f64::from(beta) - 1.0);
        Self { algorithm, from_dst, alpha, beta, exponent }
    }

    /// The chunk has src, or dst, and `ys` is diff_dst.
    ///
    /// # Safety
    /// The chunk and diff_dst have the same length. The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn apply<S: Simd>(&self, chunk: Chunk, ys: *const f32) {
        let entry = entries::at(S::LEVEL).unwrap_or(entries::portable::entry_portable);
        // SAFETY: guaranteed by the caller.
        unsafe { entry(self, chunk, ys) }
    }

    /// # Safety
    /// As [`apply`](Self::apply).
    #[inline(always)]
    unsafe fn of_src<S: Simd>(&self, chunk: Chunk, ys: *const f32) {
        use EltwiseAlgorithm as E;
        let (a, b) = (self.alpha, self.beta);
        match self.algorithm {
            E::Relu if a == 0.0 => each!(chunk, by 4, |x, y: ys| x.all(0.0).lt(x).select(y, 0.0)),
            E::Relu => each!(chunk, by 4, |x, y: ys| x.all(0.0).lt(x).select(y, y * a)),
            E::Tanh => each!(chunk, |x, y: ys| y * math::tanh_slope(x)),
            E::Elu => each!(chunk, |x, y: ys| {
                let below = y * (math::exp(x) * a);
                x.all(0.0).lt(x).select(y, below)
            }),
            E::Square => each!(chunk, by 4, |x, y: ys| y * 2.0 * x),
            E::Abs => each!(chunk, by 4, |x, y: ys| x.eq(0.0).select(0.0, y.bits_xor(x.sign()))),
            E::Sqrt => each!(chunk, |x, y: ys| y / (x.sqrt() * 2.0)),
            E::Linear => each!(chunk, by 4, |_x, y: ys| y * a),
            E::SoftRelu => each!(chunk, |x, y: ys| y * math::logistic(x * a)),
            E::Hardsigmoid => each!(chunk, |x, y: ys| {
                let line = x.mul_add(a, b);
                line.le(0.0).select(0.0, line.all(1.0).le(line).select(0.0, y * a))
            }),
            E::Logistic => each!(chunk, |x, y: ys| y * math::logistic_and_slope(x).1),
            E::Exp => each!(chunk, |x, y: ys| y * math::exp(x)),
            E::GeluTanh => each!(chunk, |x, y: ys| y * math::gelu_tanh_and_slope(x).1),
            E::Swish => each!(chunk, |x, y: ys| y * math::swish_and_slope(x, a).1),
            E::Log => each!(chunk, |x, y: ys| y / x),
            E::Clip => each!(chunk, |x, y: ys| x.all(a).lt(x).select(x.le(b).select(y, 0.0), 0.0)),
            E::ClipV2 => {
                each!(chunk, |x, y: ys| x.all(a).lt(x).select(x.lt(b).select(y, 0.0), 0.0));
            }
            E::Pow if b == 0.0 => each!(chunk, |x| x.all(0.0)),
            E::Pow => each!(chunk, |x, y: ys| y * (math::pow(x, self.exponent) * (a * b))),
            E::GeluErf => each!(chunk, |x, y: ys| y * math::gelu_erf_and_slope(x).1),
            // It has no gradient, and no primitive requests one.
            E::Round => {}
            E::Mish => each!(chunk, |x, y: ys| y * math::mish_slope(x)),
            E::Hardswish => each!(chunk, |x, y: ys| {
                let line = x.mul_add(a, b);
                let inside = y * x.mul_add(2.0 * a, b);
                line.le(0.0).select(0.0, line.all(1.0).le(line).select(y, inside))
            }),
        }
    }

    /// # Safety
    /// As [`apply`](Self::apply).
    #[inline(always)]
    unsafe fn of_dst<S: Simd>(&self, chunk: Chunk, ys: *const f32) {
        use EltwiseAlgorithm as E;
        let (a, b) = (self.alpha, self.beta);
        match self.algorithm {
            E::Tanh => each!(chunk, |d, y: ys| y * d.neg_mul_add(d, d.all(1.0))),
            E::Elu => each!(chunk, |d, y: ys| d.all(0.0).lt(d).select(y, y * (d + a))),
            E::Sqrt => each!(chunk, |d, y: ys| y * 0.5 / d),
            E::Logistic => each!(chunk, |d, y: ys| y * d.neg_mul_add(d, d)),
            E::Exp => each!(chunk, by 4, |d, y: ys| y * d),
            E::ClipV2 => {
                each!(chunk, |d, y: ys| d.all(a).lt(d).select(d.lt(b).select(y, 0.0), 0.0));
            }
            // Relu's sign is that of src; the others have no such gradient.
            _ if a == 0.0 => each!(chunk, by 4, |d, y: ys| d.all(0.0).lt(d).select(y, 0.0)),
            _ => each!(chunk, by 4, |d, y: ys| d.all(0.0).lt(d).select(y, y * a)),
        }
    }
}

/// # Safety
/// As [`Gradient::apply`].
#[inline(always)]
unsafe fn gradient_chunk<S: Simd>(gradient: &Gradient, chunk: Chunk, ys: *const f32) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if gradient.from_dst {
            gradient.of_dst::<S>(chunk, ys);
        } else {
            gradient.of_src::<S>(chunk, ys);
        }
    }
}

entry_points! {
    /// [`gradient_chunk`], compiled separately from the chain.
    mod entries: gradient_chunk<>(gradient: &Gradient, chunk: Chunk, ys: *const f32) -> ();
}
