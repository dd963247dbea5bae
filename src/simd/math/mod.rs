//! Elementary functions of 16 lanes, without branches. They use only additions, multiplications, fused multiply-adds,
//! divisions, square roots and integer operations, so that every instruction set gives the same bits.
//!
//! Each states its largest error, in units in the last place of the result (ulp), which the tests measure. The
//! polynomials are minimax fits over the stated ranges, made for this library.

mod activations;
mod angle;
mod pow;
#[cfg(test)]
mod tests;
pub(crate) mod wide;

use super::lanes::Lanes;
use super::{Simd, unroll};
pub(crate) use activations::{
    gelu_erf, gelu_erf_and_slope, gelu_tanh, gelu_tanh_and_slope, gelu_tanh_and_slope_ended,
    gelu_tanh_begun, gelu_tanh_ended, logistic, logistic_and_slope, logistic_and_slope_ended,
    logistic_begun, logistic_ended, mish, mish_slope, swish, swish_and_slope,
    swish_and_slope_ended, swish_ended, tanh_slope,
};
pub(crate) use angle::scaled_sin_cos;
#[cfg(test)]
pub(crate) use angle::{cos, sin};
pub(crate) use pow::{Exponent, pow};

/// Adding this to a number below 2^22 rounds it to an integer, to nearest even, in the lowest bits.
const TO_INTEGER: f32 = 12_582_912.0;
/// The same for f64 below 2^51.
const TO_WIDE_INTEGER: f64 = 6_755_399_441_055_744.0;
const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// `ln 2`. The first part ends in zeros, so that its multiples by an exponent are exact.
const LN2_HIGH: f32 = 0.693_145_75;
const LN2_LOW: f32 = 1.428_606_8e-6;

/// A polynomial. Coefficients begin with that of the lowest power. The even and the odd powers are evaluated in
/// parallel, because the latency of dependent instructions limits these functions.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(x: Lanes<S>, coefficients: [f32; N]) -> Lanes<S> {
    let [value] = polynomials([x], coefficients);
    value
}

/// The polynomial of several vectors, in alternation.
#[inline(always)]
fn polynomials<S: Simd, const R: usize, const N: usize>(
    x: [Lanes<S>; R],
    coefficients: [f32; N],
) -> [Lanes<S>; R] {
    if const { !S::UNROLLS } {
        let mut values = x;
        unroll!(v in R, {
            values[v] = polynomial_in_loop(x[v], &coefficients);
        });
        return values;
    }
    let mut square = x;
    unroll!(v in R, {
        square[v] = x[v] * x[v];
    });
    let mut sums = [x, x];
    let mut i = N;
    while i > 0 {
        i -= 1;
        let sum = &mut sums[i % 2];
        unroll!(v in R, {
            sum[v] = match i + 2 >= N {
                true => x[v].all(coefficients[i]),
                false => sum[v].mul_add(square[v], coefficients[i]),
            };
        });
    }
    let [mut even, odd] = sums;
    unroll!(v in R, {
        even[v] = odd[v].mul_add(x[v], even[v]);
    });
    even
}

/// [`polynomial`] of at least two coefficients, as a function: the portable level has it once.
#[inline(never)]
fn polynomial_in_loop<S: Simd>(x: Lanes<S>, coefficients: &[f32]) -> Lanes<S> {
    let square = x * x;
    let (lower, highest) = coefficients.split_at(coefficients.len() - 2);
    // The sums of every second power. The first is that of the next coefficient.
    let (mut next, mut other) = (x.all(highest[1]), x.all(highest[0]));
    for &coefficient in lower.iter().rev() {
        (next, other) = (other, next.mul_add(square, coefficient));
    }
    next.mul_add(x, other)
}

/// An integer as the bits of a lane.
#[inline(always)]
fn integer(n: i32) -> f32 {
    f32::from_bits(n.cast_unsigned())
}

/// `(1 + q) power`, rounded once, because the power of two is exact.
#[inline(always)]
fn times_power<S: Simd>(q: Lanes<S>, power: Lanes<S>) -> Lanes<S> {
    q.mul_add(power, power)
}

/// `(1 + q) 2^n`, from `shifted`, n plus [`TO_INTEGER`].
#[inline(always)]
fn scaled<S: Simd>(shifted: Lanes<S>, q: Lanes<S>) -> Lanes<S> {
    q.times_power_of_2(shifted - TO_INTEGER, shifted.bits_sub(TO_INTEGER))
}

/// `n + bias` as an integer in the lowest bits, and `e^r - 1` with `x = n ln 2 + r`, for |x| below 2^21. No x is
/// halfway between two integers n, so the bias does not change n.
#[inline(always)]
fn reduced_exp<S: Simd>(x: Lanes<S>, bias: i32) -> (Lanes<S>, Lanes<S>) {
    let ([shifted], [rest]) = reduced_exps([x], bias);
    (shifted, rest)
}

/// [`reduced_exp`] of several vectors, in alternation.
#[inline(always)]
fn reduced_exps<S: Simd, const R: usize>(
    x: [Lanes<S>; R],
    bias: i32,
) -> ([Lanes<S>; R], [Lanes<S>; R]) {
    // (e^r - 1 - r)/r^2 for |r| up to ln 2/2.
    const C: [f32; 6] =
        [0.5, 0.166_666_67, 0.041_666_463, 0.008_333_286, 0.001_393_368_8, 0.000_199_076_4];
    let to_integer = TO_INTEGER + bias as f32;
    let (mut shifted, mut n, mut r) = (x, x, x);
    unroll!(v in R, {
        shifted[v] = x[v].mul_add(LOG2_E, to_integer);
    });
    unroll!(v in R, {
        n[v] = shifted[v] - to_integer;
    });
    unroll!(v in R, {
        r[v] = n[v].neg_mul_add(LN2_HIGH, x[v]);
    });
    unroll!(v in R, {
        r[v] = n[v].neg_mul_add(LN2_LOW, r[v]);
    });
    let mut rest = polynomials(r, C);
    unroll!(v in R, {
        rest[v] = (r[v] * r[v]).mul_add(rest[v], r[v]);
    });
    (shifted, rest)
}

/// `2^(n + raised)` and `e^r - 1` with `x = n ln 2 + r`, if the power is a normal number.
#[inline(always)]
fn power_and_rest<S: Simd>(x: Lanes<S>, raised: i32) -> (Lanes<S>, Lanes<S>) {
    let (exponent, q) = reduced_exp(x, 127 + raised);
    (exponent.shift_left(23), q)
}

/// `e^x`, 1 ulp.
#[inline(always)]
pub(crate) fn exp<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let (shifted, q) = reduced_exp(x.within(-110.0, 100.0), 0);
    scaled(shifted, q)
}

/// The lowest x whose [`weight`] is not 0. The weight is at least 2^-40.
const LOWEST_WEIGHT: f32 = -27.725_885;

/// `e^x` for x up to 0, and 0 where that is below 2^-40; 1 ulp.
#[inline(always)]
pub(crate) fn weight<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let [weight] = weights([x]);
    weight
}

/// [`weight`] of several vectors, in alternation: a processor's scheduler holds few of these long chains of dependent
/// instructions.
#[inline(always)]
pub(crate) fn weights<S: Simd, const R: usize>(x: [Lanes<S>; R]) -> [Lanes<S>; R] {
    let mut within = x;
    unroll!(v in R, {
        within[v] = x[v].all(-30.0).max(x[v]);
    });
    let (mut exponents, q) = reduced_exps(within, 127);
    unroll!(v in R, {
        exponents[v] = exponents[v].shift_left(23);
    });
    unroll!(v in R, {
        let value = times_power(q[v], exponents[v]);
        exponents[v] = x[v].lt(LOWEST_WEIGHT).select(0.0, value);
    });
    exponents
}

/// The factor of [`raised_exp`] is 2^`UP`; `DOWN` is its reciprocal.
const UP: i32 = 64;
const DOWN: f32 = 1.0 / (1u128 << UP) as f32;

/// `2^UP e^x` for x up to 0. Times `DOWN` it is e^x. If that is subnormal, only this product rounds, because n is at
/// least -159.
#[inline(always)]
pub(crate) fn raised_exp<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let (power, q) = power_and_rest(x.all(-110.0).max(x), UP);
    times_power(q, power)
}

/// e^x from [`raised_exp`].
#[inline(always)]
pub(crate) fn lowered<S: Simd>(raised: Lanes<S>) -> Lanes<S> {
    raised * DOWN
}

/// [`exp`] for x up to 0: the same bits with fewer instructions.
#[inline(always)]
pub(crate) fn exp_below<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    lowered(raised_exp(x))
}

/// `2^x`, 1 ulp.
#[inline(always)]
pub(crate) fn exp2<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let x = x.within(-152.0, 130.0);
    let shifted = x + TO_INTEGER;
    let r = x - (shifted - TO_INTEGER);
    // (2^r - 1 - r ln 2)/r^2 for |r| up to 1/2.
    const C: [f32; 5] =
        [0.240_226_5, 0.055_503_57, 0.009_618_031, 0.001_339_086_7, 0.000_154_697_35];
    let q = r.mul_add(std::f32::consts::LN_2, r * r * polynomial(r, C));
    scaled(shifted, q)
}

/// `e^x - 1` for x up to 40, and anything for larger x; 2 ulp.
#[inline(always)]
fn exp_m1<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let (power, q) = power_and_rest(x.all(-40.0).max(x), 0);
    q.mul_add(power, power - 1.0)
}

/// `ln x`, 1 ulp.
#[inline(always)]
pub(crate) fn log<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let subnormal = x.lt(f32::MIN_POSITIVE);
    let normal = subnormal.select(x * 33_554_432.0, x);
    // The fraction from sqrt(1/2) to sqrt(2).
    let exponent = normal.bits_sub(integer(0x3f35_04f3)).shift_right(23);
    let f = normal.bits_sub(exponent.shift_left(23)) - 1.0;
    let n = exponent.as_integer() - subnormal.select(25.0, 0.0);
    // (ln(1 + f) - f + f^2/2)/f^3.
    const C: [f32; 9] = [
        0.333_333_3,
        -0.249_999_8,
        0.200_006_93,
        -0.166_691_68,
        0.142_509_88,
        -0.123_962_26,
        0.116_360_64,
        -0.116_638_31,
        0.073_330_04,
    ];
    let square = f * f;
    let rest = (square * f).mul_add(polynomial(f, C), square * -0.5);
    let value = n.mul_add(LN2_HIGH, n.mul_add(LN2_LOW, rest) + f);
    let value = x.eq(f32::INFINITY).select(x, value);
    let value = x.eq(0.0).select(f32::NEG_INFINITY, value);
    let value = x.lt(0.0).select(f32::NAN, value);
    x.eq(x).select(value, x)
}

/// `tanh x`, 3 ulp.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let t = exp_m1(x.all(20.0).min(x.abs()) * 2.0);
    (t / (t + 2.0)).copysign(x)
}

/// `ln(1 + e^x)`, 4 ulp.
#[inline(always)]
pub(crate) fn softplus<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let e = exp_below(-x.abs());
    // ln(1 + e), corrected for the rounding of 1 + e.
    let sum = e + 1.0;
    let correction = (e - (sum - 1.0)) / sum;
    let value = x.max(0.0) + (log(sum) + correction);
    x.eq(x).select(value, x)
}

/// The error function, 2 ulp.
#[cfg_attr(not(test), expect(dead_code, reason = "no operation has it yet"))]
#[inline(always)]
pub(crate) fn erf<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    // erf(x)/x - 1 as a polynomial in x^2, up to 1.
    const NEAR: [f32; 7] = [
        0.128_379_17,
        -0.376_126_26,
        0.112_835_854,
        -0.026_853_813,
        0.005_188_327_7,
        -0.000_801_019_37,
        0.000_078_538_615,
    ];
    // -log2(1 - erf(x)) from 1 to 4. From there on the result is 1.
    const FAR: [f32; 7] = [
        0.000_510_312_8,
        1.625_975,
        0.920_765_04,
        0.148_651_48,
        -0.031_458_41,
        0.004_240_954,
        -0.000_267_726_37,
    ];
    let t = x.all(4.0).min(x.abs());
    let near = x.mul_add(polynomial(x * x, NEAR), x);
    let far = (x.all(1.0) - exp2(-polynomial(t, FAR))).copysign(x);
    t.lt(1.0).select(near, far)
}

/// The cumulative normal distribution at x. Absolute error 2^-23; 64 ulp down to x = -5; below x = -6 a hundredth.
#[inline(always)]
fn normal_below<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    // -log2 of the distribution at -t, up to 6; beyond, a parabola.
    const NEAR: [f32; 11] = [
        1.0,
        1.151_106_5,
        0.459_196_27,
        0.052_527_092,
        -0.007_085_743,
        0.000_120_455_54,
        0.000_219_405_18,
        -0.000_058_571_193,
        0.000_007_862_698,
        -5.680_754e-7,
        1.749_629_2e-8,
    ];
    const FAR: [f32; 2] = [8.866, 0.713_7];
    // 2^r for |r| up to 1/2.
    const POWER: [f32; 7] = [
        1.0,
        std::f32::consts::LN_2,
        0.240_226_46,
        0.055_503_286,
        0.009_618_489,
        0.001_339_993_1,
        0.000_153_458_12,
    ];
    let t = x.all(14.5).min(x.abs());
    let near = x.all(6.0).min(t);
    let far = t - near;
    let log = far.mul_add(polynomial(far, FAR), polynomial(near, NEAR));
    let shifted = log + TO_INTEGER;
    let power = polynomial((shifted - TO_INTEGER) - log, POWER);
    // The lowest bits are the integer; 0 where the result is below all exponents.
    let bits = power.bits_sub(shifted.shift_left(23));
    let tail = bits.bits_and_not(bits.shift_right(31));
    x.lt(0.0).select(tail, x.all(1.0) - tail)
}

/// `x`, or `a (e^x - 1)` below 0; 3 ulp.
#[inline(always)]
pub(crate) fn elu<S: Simd>(x: Lanes<S>, a: f32) -> Lanes<S> {
    x.all(0.0).lt(x).select(x, exp_m1(x) * a)
}

/// The nearest integer, ties to even; exact.
#[inline(always)]
pub(crate) fn round<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    const INTEGERS: f32 = 8_388_608.0;
    let t = x.abs();
    let rounded = ((t + INTEGERS) - INTEGERS).copysign(x);
    t.lt(INTEGERS).select(rounded, x)
}
