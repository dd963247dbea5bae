//! Activation functions and their derivatives in f64; the formulas are those of [the f32 ones](super::super::logistic).

use super::{exp, exp_of_sum, polynomial, within};

/// `e^-x` is 0 in f64 from here on.
const FLAT: f64 = 746.0;

/// `1/(1 + e^-x)`, 3 ulp.
#[inline(always)]
pub(crate) fn logistic(x: f64) -> f64 {
    let e = exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// The derivative of [`logistic`], 3 ulp where it is not subnormal.
#[inline(always)]
pub(crate) fn logistic_slope(x: f64) -> f64 {
    let e = exp(-x.abs());
    let below = e / (1.0 + e);
    // With s = below, at most 1/2, s - s^2 reduces the relative error of s.
    below - below * below
}

/// The derivative of [`tanh`](super::tanh), 3 ulp where it is not subnormal.
#[inline(always)]
pub(crate) fn tanh_slope(x: f64) -> f64 {
    4.0 * logistic_slope(2.0 * x)
}

/// `x/(1 + e^-ax)`.
#[inline(always)]
pub(crate) fn swish(x: f64, a: f64) -> f64 {
    x * logistic(a * x)
}

/// The derivative of [`swish`], 2^-51.
#[inline(always)]
pub(crate) fn swish_slope(x: f64, a: f64) -> f64 {
    let scaled = a * x;
    logistic(scaled) + within(scaled, -FLAT, FLAT) * logistic_slope(scaled)
}

/// The constants of gelu_tanh: 2 sqrt(2/pi), and that times 0.044715.
const LINEAR: f64 = 1.595_769_121_605_730_8;
const CUBIC: f64 = 0.071_354_816_272_600_25;
/// From here on, gelu_tanh is x or 0.
const STEEP: f64 = 25.0;

/// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))/2`, 2^-51 times |x|.
#[inline(always)]
pub(crate) fn gelu_tanh(x: f64) -> f64 {
    let bounded = within(x, -STEEP, STEEP);
    x * logistic(bounded * (bounded * bounded * CUBIC + LINEAR))
}

/// The derivative of [`gelu_tanh`], 2^-50.
#[inline(always)]
pub(crate) fn gelu_tanh_slope(x: f64) -> f64 {
    let bounded = within(x, -STEEP, STEEP);
    let square = bounded * bounded;
    let argument = bounded * (square * CUBIC + LINEAR);
    let inner = bounded * (square * (3.0 * CUBIC) + LINEAR);
    logistic(argument) + inner * logistic_slope(argument)
}

/// The cumulative normal distribution at x, 3 ulp.
#[inline(always)]
fn normal_below(x: f64) -> f64 {
    // The part between 0 and x, divided by x, as a polynomial in x^2, up to 1.
    const NEAR: [f64; 11] = [
        0.398_942_280_401_432_7,
        -0.066_490_380_066_905_43,
        0.009_973_557_010_035_022,
        -0.001_187_328_215_468_034_3,
        0.000_115_434_687_516_559_41,
        -9.444_655_793_103_845e-6,
        6.659_679_879_655_231e-7,
        -4.122_410_751_416_081_5e-8,
        2.270_413_758_567_6e-9,
        -1.106_432_828_275_589e-10,
        4.074_326_977_426_627_6e-12,
    ];
    // (1 + t) e^(t^2/2) times the distribution at -t, as a polynomial in (t - 5)/(t + 5), for t up to 39.
    const FAR: [f64; 24] = [
        0.461_515_829_850_037_75,
        -0.091_552_281_834_008_93,
        0.031_030_368_425_963_278,
        0.010_002_352_385_218_209,
        -0.026_401_042_966_293_736,
        0.024_536_963_244_022_193,
        -0.015_170_415_402_641_402,
        0.006_522_000_662_944_827,
        -0.001_676_072_345_147_47,
        7.791_634_836_196_445e-6,
        0.000_182_334_161_640_457_94,
        -5.360_775_450_741_53e-5,
        -9.896_216_310_883_174e-6,
        9.060_323_114_264_07e-6,
        -6.989_850_792_867_112e-8,
        -1.308_329_624_253_112_8e-6,
        1.268_797_843_511_076_2e-7,
        1.971_641_282_231_445_2e-7,
        -2.496_474_974_979_352_3e-8,
        -3.132_082_028_087_379e-8,
        2.664_147_050_607_720_5e-9,
        4.305_928_346_122_364e-9,
        1.629_482_212_348_236_3e-11,
        -2.770_148_165_682_791_3e-10,
    ];
    let t = within(x.abs(), 0.0, 39.0);
    let square = t * t;
    if t < 1.0 {
        return x * polynomial(square, NEAR) + 0.5;
    }
    let power = exp_of_sum(-0.5 * square, -0.5 * t.mul_add(t, -square));
    let tail = polynomial((t - 5.0) / (t + 5.0), FAR) / (1.0 + t) * power;
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// `x (1 + erf(x/sqrt(2)))/2`, 4 ulp where it is not subnormal.
#[inline(always)]
pub(crate) fn gelu_erf(x: f64) -> f64 {
    x * normal_below(x)
}

/// The derivative of [`gelu_erf`], 2^-51.
#[inline(always)]
pub(crate) fn gelu_erf_slope(x: f64) -> f64 {
    // 1/sqrt(2 pi).
    const DENSITY: f64 = 0.398_942_280_401_432_7;
    let bounded = within(x, -39.0, 39.0);
    normal_below(x) + bounded * (DENSITY * exp(-0.5 * bounded * bounded))
}

/// From here on, mish is x.
const LARGE: f64 = 24.0;

/// `x tanh(ln(1 + e^x))`, 4 ulp where e^x is not subnormal.
#[inline(always)]
pub(crate) fn mish(x: f64) -> f64 {
    let e = exp(if x > LARGE { LARGE } else { x });
    let t = e * (e + 2.0);
    x * (t / (t + 2.0))
}

/// The derivative of [`mish`], 2^-51.
#[inline(always)]
pub(crate) fn mish_slope(x: f64) -> f64 {
    let bounded = within(x, -FLAT, LARGE);
    let e = exp(bounded);
    let t = e * (e + 2.0);
    let sum = t + 2.0;
    // With w = tanh(ln(1 + e^x)) = t/(t + 2), the derivative is w + x w', and w' is 4e(e + 1)/(t + 2)^2.
    t / sum + bounded * (4.0 * e * (e + 1.0) / (sum * sum))
}
