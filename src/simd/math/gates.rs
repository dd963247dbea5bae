//! The functions of gates, and their values and derivatives at once. A value has the same bits either way.
//!
//! The logistic function is computed without a division: `1 + e^-|x|` lies between 1 and 2, where a parabola and two Newton
//! steps give the reciprocal in six multiply-adds, on every level.

#[cfg(test)]
mod tests;

use super::super::Simd;
use super::super::lanes::Lanes;
use super::{LN2_HIGH, LN2_LOW, LOG2_E, TO_INTEGER, normal_below, polynomial};

/// `e^x` for x up to 0, 1 ulp; 0 where it is below 2^-126.5.
#[inline(always)]
fn exp_below<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    // Beyond this, n is -127, and 2^n becomes 0.
    const LOWEST: f32 = -87.7;
    // Subtracting this from bits that hold n leaves the biased exponent.
    const UNBIASED: f32 = f32::from_bits(TO_INTEGER.to_bits() - 127);
    // (e^r - 1 - r)/r^2 for |r| to ln 2/2.
    const C: [f32; 5] = [0.499_999_94, 0.166_665_21, 0.041_668_39, 0.008_368_717, 0.001_381_459_9];
    let x = x.all(LOWEST).max(x);
    let shifted = x.mul_add(LOG2_E, TO_INTEGER);
    let n = shifted - TO_INTEGER;
    let r = n.neg_mul_add(LN2_HIGH, x);
    let r = n.neg_mul_add(LN2_LOW, r);
    let q = (r * r).mul_add(polynomial(r, C), r);
    let power = shifted.bits_sub(UNBIASED).shift_left(23);
    q.mul_add(power, power)
}

/// `1/x` for x from 1 to 2, 1 ulp.
#[inline(always)]
fn reciprocal<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let guess = x.mul_add(0.323_232_32, -1.454_545_5).mul_add(x, 2.121_212);
    let guess = x.neg_mul_add(guess, 1.0).mul_add(guess, guess);
    x.neg_mul_add(guess, 1.0).mul_add(guess, guess)
}

/// `e^-|x|`, and `1/(1 + e^-|x|)`.
#[inline(always)]
fn halves<S: Simd>(x: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
    let e = exp_below(-x.abs());
    (e, reciprocal(e + 1.0))
}

/// `1/(1 + e^-x)`, 3 ulp; 0 where it is below 2^-126.5.
#[inline(always)]
pub(crate) fn gate<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let (e, r) = halves(x);
    x.lt(0.0).select(e, 1.0) * r
}

/// The same, and the derivative, 5 ulp.
#[inline(always)]
pub(crate) fn gate_and_slope<S: Simd>(x: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
    let (e, r) = halves(x);
    (x.lt(0.0).select(e, 1.0) * r, e * r * r)
}

/// `x/(1 + e^-ax)`, and the derivative.
#[inline(always)]
pub(crate) fn swish_and_slope<S: Simd>(x: Lanes<S>, a: f32) -> (Lanes<S>, Lanes<S>) {
    // Beyond, the derivative of the second factor is 0, and no product with infinity is wanted.
    const FLAT: f32 = 90.0;
    let scaled = x * a;
    let (s, slope) = gate_and_slope(scaled);
    (x * s, scaled.within(-FLAT, FLAT).mul_add(slope, s))
}

/// The constants of gelu_tanh: 2 sqrt(2/pi), and that times 0.044715.
const LINEAR: f32 = 1.595_769_2;
const CUBIC: f32 = 0.071_354_814;
/// Beyond this gelu_tanh is x or 0.
const STEEP: f32 = 20.0;

/// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))/2`, 2^-22 times |x|.
#[inline(always)]
pub(crate) fn gelu_tanh_gate<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let bounded = x.within(-STEEP, STEEP);
    x * gate(bounded * (bounded * bounded).mul_add(CUBIC, LINEAR))
}

/// The same, and the derivative, 2^-21.
#[inline(always)]
pub(crate) fn gelu_tanh_and_slope<S: Simd>(x: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
    let bounded = x.within(-STEEP, STEEP);
    let square = bounded * bounded;
    let (s, slope) = gate_and_slope(bounded * square.mul_add(CUBIC, LINEAR));
    let inner = bounded * square.mul_add(3.0 * CUBIC, LINEAR);
    (x * s, inner.mul_add(slope, s))
}

/// `x (1 + erf(x/sqrt(2)))/2`, and the derivative, 2^-21.
#[inline(always)]
pub(crate) fn gelu_erf_and_slope<S: Simd>(x: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
    // 1/sqrt(2 pi).
    const DENSITY: f32 = 0.398_942_3;
    let below = normal_below(x);
    let bounded = x.within(-14.5, 14.5);
    let density = exp_below(bounded * bounded * -0.5) * DENSITY;
    (x * below, bounded.mul_add(density, below))
}
