//! Activation functions and their derivatives. A value has the same bits with and without the derivative.
//!
//! No derivative suffers from cancellation, or multiplies infinity by 0 where its function is flat.

#[cfg(test)]
mod tests;

use super::super::Simd;
use super::super::lanes::Lanes;
use super::{DOWN, exp, exp_below, normal_below, raised_exp};

/// `e^-x` is 0 in f32 from here on.
const FLAT: f32 = 110.0;

/// The first step of [`logistic`] and of the functions based on it. The second step needs only this and the sign of x.
/// A loop that runs the first step over many vectors and then the second has shorter chains of dependent instructions,
/// so more vectors fit the processor's out-of-order window.
#[inline(always)]
pub(crate) fn logistic_begun<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    raised_exp(-x.abs())
}

/// `e^-|x|` and `1 + e^-|x|`. The sum is as if the first were not rounded to a subnormal number.
#[inline(always)]
fn exp_and_sum<S: Simd>(begun: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
    (begun * DOWN, begun.mul_add(DOWN, 1.0))
}

/// The second step, from a number with the sign of x.
#[inline(always)]
pub(crate) fn logistic_ended<S: Simd>(x: Lanes<S>, begun: Lanes<S>) -> Lanes<S> {
    let (e, sum) = exp_and_sum(begun);
    x.negative().select(e, 1.0) / sum
}

/// `1/(1 + e^-x)`, 3 ulp.
#[inline(always)]
pub(crate) fn logistic<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    logistic_ended(x, logistic_begun(x))
}

#[inline(always)]
pub(crate) fn logistic_and_slope_ended<S: Simd>(
    x: Lanes<S>,
    begun: Lanes<S>,
) -> (Lanes<S>, Lanes<S>) {
    let (e, sum) = exp_and_sum(begun);
    let above = x.all(1.0) / sum;
    // Markstein: with a correctly rounded reciprocal, one correction also rounds the quotient e/sum correctly.
    let product = e * above;
    let below = sum.neg_mul_add(product, e).mul_add(above, product);
    // With s = below, at most 1/2, s - s^2 reduces the relative error of s, which e*above*above would double.
    (x.negative().select(below, above), below.neg_mul_add(below, below))
}

/// [`logistic`], and its derivative, 3 ulp.
#[inline(always)]
pub(crate) fn logistic_and_slope<S: Simd>(x: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
    logistic_and_slope_ended(x, logistic_begun(x))
}

/// The derivative of [`tanh`](super::tanh), 3 ulp where it is not subnormal.
#[inline(always)]
pub(crate) fn tanh_slope<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    logistic_and_slope(x * 2.0).1 * 4.0
}

#[inline(always)]
pub(crate) fn swish_ended<S: Simd>(x: Lanes<S>, a: f32, begun: Lanes<S>) -> Lanes<S> {
    x * logistic_ended(x.bits_xor(a), begun)
}

/// `x/(1 + e^-ax)`.
#[inline(always)]
pub(crate) fn swish<S: Simd>(x: Lanes<S>, a: f32) -> Lanes<S> {
    swish_ended(x, a, logistic_begun(x * a))
}

#[inline(always)]
pub(crate) fn swish_and_slope_ended<S: Simd>(
    x: Lanes<S>,
    a: f32,
    begun: Lanes<S>,
) -> (Lanes<S>, Lanes<S>) {
    let scaled = x * a;
    let (s, slope) = logistic_and_slope_ended(scaled, begun);
    (x * s, scaled.within(-FLAT, FLAT).mul_add(slope, s))
}

/// [`swish`], and its derivative, 2^-22.
#[inline(always)]
pub(crate) fn swish_and_slope<S: Simd>(x: Lanes<S>, a: f32) -> (Lanes<S>, Lanes<S>) {
    swish_and_slope_ended(x, a, logistic_begun(x * a))
}

/// The constants of gelu_tanh: 2 sqrt(2/pi), and that times 0.044715.
const LINEAR: f32 = 1.595_769_2;
const CUBIC: f32 = 0.071_354_814;
/// From here on, gelu_tanh is x or 0.
const STEEP: f32 = 20.0;

/// gelu_tanh is x times [`logistic`] of this, which has the sign of x.
#[inline(always)]
fn gelu_argument<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let bounded = x.within(-STEEP, STEEP);
    bounded * (bounded * bounded).mul_add(CUBIC, LINEAR)
}

#[inline(always)]
pub(crate) fn gelu_tanh_begun<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    logistic_begun(gelu_argument(x))
}

#[inline(always)]
pub(crate) fn gelu_tanh_ended<S: Simd>(x: Lanes<S>, begun: Lanes<S>) -> Lanes<S> {
    x * logistic_ended(x, begun)
}

/// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))/2`, 2^-22 times |x|.
#[inline(always)]
pub(crate) fn gelu_tanh<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    gelu_tanh_ended(x, gelu_tanh_begun(x))
}

#[inline(always)]
pub(crate) fn gelu_tanh_and_slope_ended<S: Simd>(
    x: Lanes<S>,
    begun: Lanes<S>,
) -> (Lanes<S>, Lanes<S>) {
    let bounded = x.within(-STEEP, STEEP);
    let (s, slope) = logistic_and_slope_ended(x, begun);
    let inner = bounded * (bounded * bounded).mul_add(3.0 * CUBIC, LINEAR);
    (x * s, inner.mul_add(slope, s))
}

/// [`gelu_tanh`], and its derivative, 2^-21.
#[inline(always)]
pub(crate) fn gelu_tanh_and_slope<S: Simd>(x: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
    gelu_tanh_and_slope_ended(x, gelu_tanh_begun(x))
}

/// `x (1 + erf(x/sqrt(2)))/2`, 2^-22 times |x|.
#[inline(always)]
pub(crate) fn gelu_erf<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    x * normal_below(x)
}

/// [`gelu_erf`], and its derivative, 2^-21.
#[inline(always)]
pub(crate) fn gelu_erf_and_slope<S: Simd>(x: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
    // 1/sqrt(2 pi).
    const DENSITY: f32 = 0.398_942_3;
    let below = normal_below(x);
    let bounded = x.within(-14.5, 14.5);
    let density = exp_below(bounded * bounded * -0.5) * DENSITY;
    (x * below, bounded.mul_add(density, below))
}

/// `x tanh(ln(1 + e^x))`, 6 ulp where e^x is not subnormal.
#[inline(always)]
pub(crate) fn mish<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let e = exp(x.all(20.0).min(x));
    let t = e * (e + 2.0);
    x * (t / (t + 2.0))
}

/// The derivative of [`mish`], 2^-21.
#[inline(always)]
pub(crate) fn mish_slope<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let bounded = x.within(-FLAT, 20.0);
    let e = exp(bounded);
    let t = e * (e + 2.0);
    let reciprocal = x.all(1.0) / (t + 2.0);
    // With w = tanh(ln(1 + e^x)) = t/(t + 2), the derivative is w + x w', and w' is 4e(e + 1)/(t + 2)^2.
    let slope = e * (e + 1.0) * 4.0 * reciprocal * reciprocal;
    bounded.mul_add(slope, t * reciprocal)
}
