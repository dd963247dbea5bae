//! Derivatives. Each is written so that it neither cancels nor multiplies an infinite number by nothing where the function is flat.

use super::super::Simd;
use super::super::lanes::Lanes;
use super::{exp, normal_below};

/// Beyond this `e^-x` is nothing in f32.
const FLAT: f32 = 110.0;

/// `1/(1 + e^-x)` and its derivative, the latter to 4 ulp.
#[inline(always)]
fn logistic_and_slope<S: Simd>(x: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
    let e = exp(-x.abs());
    let reciprocal = x.all(1.0) / (e + 1.0);
    (x.lt(0.0).select(e, 1.0) * reciprocal, e * reciprocal * reciprocal)
}

/// The derivative of [`logistic`](super::logistic), 4 ulp.
#[inline(always)]
pub(crate) fn logistic_slope<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    logistic_and_slope(x).1
}

/// The derivative of [`tanh`](super::tanh), 4 ulp where it is not subnormal.
#[inline(always)]
pub(crate) fn tanh_slope<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    logistic_and_slope(x * 2.0).1 * 4.0
}

/// The derivative of `x/(1 + e^-ax)` of `ax`, 2^-22.
#[inline(always)]
pub(crate) fn swish_slope<S: Simd>(scaled: Lanes<S>) -> Lanes<S> {
    let bounded = scaled.within(-FLAT, FLAT);
    let (value, slope) = logistic_and_slope(bounded);
    bounded.mul_add(slope, value)
}

/// The derivative of [`gelu_erf`](super::gelu_erf), 2^-21.
#[inline(always)]
pub(crate) fn gelu_erf_slope<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    const DENSITY: f32 = 0.398_942_3;
    let bounded = x.within(-14.5, 14.5);
    let density = exp(bounded * bounded * -0.5) * DENSITY;
    bounded.mul_add(density, normal_below(x))
}

/// The derivative of [`gelu_tanh`](super::gelu_tanh), 2^-21.
#[inline(always)]
pub(crate) fn gelu_tanh_slope<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    // As there, and three times the second.
    const LINEAR: f32 = 1.595_769_2;
    const CUBIC: f32 = 0.071_354_814;
    const CUBIC_SLOPE: f32 = 0.214_064_44;
    let bounded = x.within(-20.0, 20.0);
    let square = bounded * bounded;
    let (value, slope) = logistic_and_slope(bounded * square.mul_add(CUBIC, LINEAR));
    (bounded * square.mul_add(CUBIC_SLOPE, LINEAR)).mul_add(slope, value)
}

/// The derivative of [`mish`](super::mish), 2^-21.
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
