//! Elementary functions of one f64. They use only additions, multiplications, fused multiply-adds, divisions, square
//! roots and integer operations, so that every machine gives the same bits.
//!
//! Each states its largest error, in units in the last place of the result (ulp), which the tests measure. The
//! polynomials are minimax fits over the stated ranges, made for this library.

mod activations;
mod pow;
#[cfg(test)]
mod tests;

use super::TO_WIDE_INTEGER;
pub(crate) use activations::{
    gelu_erf, gelu_erf_slope, gelu_tanh, gelu_tanh_slope, logistic, logistic_slope, mish,
    mish_slope, swish, swish_slope, tanh_slope,
};
pub(crate) use pow::pow;

/// `ln 2`. The first part ends in 12 zeros, so that its multiples by an exponent are exact.
const LN2_HIGH: f64 = 0.693_147_180_559_663;
const LN2_LOW: f64 = 2.823_529_056_303_157_7e-13;

/// A polynomial. Coefficients begin with that of the lowest power. The even and the odd powers are evaluated in
/// parallel.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let square = x * x;
    let mut sums = [0.0; 2];
    for (i, c) in coefficients.iter().enumerate().rev() {
        sums[i % 2] = sums[i % 2] * square + c;
    }
    sums[1] * x + sums[0]
}

/// `x` clamped to two bounds; NaN stays NaN.
#[inline(always)]
pub(crate) fn within(x: f64, low: f64, high: f64) -> f64 {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

/// `2^n`, for n from -1022 to 1023.
#[inline(always)]
fn power_of_2(n: i64) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// `x 2^n`, for n from -2044 to 2046, in two steps, because the result may be subnormal and 2^n outside f64.
#[inline(always)]
fn scaled(x: f64, n: i64) -> f64 {
    let half = n >> 1;
    x * power_of_2(half) * power_of_2(n - half)
}

/// The integer `n`, `high` and `rest` with `x + tail = n ln 2 + r` and `e^r = 1 + (high + rest)`, for |x| below 2^11.
#[inline(always)]
fn reduced_exp(x: f64, tail: f64) -> (i64, f64, f64) {
    // (e^r - 1 - r)/r^2 for |r| up to ln 2/2.
    const C: [f64; 11] = [
        0.5,
        0.166_666_666_666_666_7,
        0.041_666_666_666_666_67,
        0.008_333_333_333_326_084,
        0.001_388_888_888_888_371_1,
        0.000_198_412_698_750_022_8,
        2.480_158_732_567_746e-5,
        2.755_725_517_000_089e-6,
        2.755_727_347_871_858e-7,
        2.510_531_272_962_210_3e-8,
        2.091_475_532_589_32e-9,
    ];
    let n = (x * std::f64::consts::LOG2_E + TO_WIDE_INTEGER) - TO_WIDE_INTEGER;
    let (high, low) = (x - n * LN2_HIGH, tail - n * LN2_LOW);
    let r = high + low;
    (n as i64, high, r * r * polynomial(r, C) + low)
}

/// `e^x`, 1 ulp.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    exp_of_sum(x, 0.0)
}

/// `e^(x + tail)` for a tail of less than an ulp of x, 1 ulp.
#[inline(always)]
pub(crate) fn exp_of_sum(x: f64, tail: f64) -> f64 {
    let (n, high, rest) = reduced_exp(within(x, -746.0, 710.0), tail);
    let sum = 1.0 + high;
    scaled(sum + ((high - (sum - 1.0)) + rest), n)
}

/// `e^x - 1` for x up to 60, 1 ulp.
#[inline(always)]
pub(crate) fn exp_m1(x: f64) -> f64 {
    let (n, high, rest) = reduced_exp(if x < -40.0 { -40.0 } else { x }, 0.0);
    if n == 0 {
        return high + rest;
    }
    let power = power_of_2(n);
    let (first, second) = (power - 1.0, power * high);
    let sum = first + second;
    sum + ((second - (sum - first)) + power * rest)
}

/// The integer `n` and the fraction `m`, from sqrt(1/2) to sqrt(2), with `x = m 2^n`, for finite x above 0.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    const SQRT_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
    const UP: i32 = 54;
    let subnormal = x < f64::MIN_POSITIVE;
    let normal = if subnormal { x * power_of_2(i64::from(UP)) } else { x };
    let bits = normal.to_bits().cast_signed();
    let n = (bits - SQRT_HALF) >> 52;
    let m = f64::from_bits((bits - (n << 52)).cast_unsigned());
    (n as f64 - if subnormal { f64::from(UP) } else { 0.0 }, m)
}

/// `ln x`, 1 ulp.
#[inline(always)]
pub(crate) fn log(x: f64) -> f64 {
    // With s = f/(2 + f): (ln(1 + f) - 2s)/s^3 as a polynomial in s^2.
    const C: [f64; 8] = [
        0.666_666_666_666_666_6,
        0.400_000_000_000_008_9,
        0.285_714_285_707_959_37,
        0.222_222_223_934_517_54,
        0.181_817_954_546_195_48,
        0.153_862_497_831_452_14,
        0.132_685_034_477_923_65,
        0.130_894_437_362_697_4,
    ];
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x < 0.0 {
        return f64::NAN;
    }
    // Also NaN.
    if !x.is_finite() {
        return x;
    }
    let (n, m) = split(x);
    let f = m - 1.0;
    let s = f / (f + 2.0);
    let z = s * s;
    let half = 0.5 * f * f;
    // 2s = f - f^2/2 + s f^2/2, whose first two terms dominate.
    let rest = s * (half + z * polynomial(z, C));
    n * LN2_HIGH + (f - (half - (rest + n * LN2_LOW)))
}

/// `tanh x`, 2 ulp.
#[inline(always)]
pub(crate) fn tanh(x: f64) -> f64 {
    let t = exp_m1(within(x.abs(), 0.0, 22.0) * 2.0);
    (t / (t + 2.0)).copysign(x)
}

/// `ln(1 + e^x)`, 2 ulp.
#[inline(always)]
pub(crate) fn softplus(x: f64) -> f64 {
    let e = exp(-x.abs());
    // ln(1 + e), corrected for the rounding of 1 + e.
    let sum = 1.0 + e;
    let correction = (e - (sum - 1.0)) / sum;
    let above = if x < 0.0 { 0.0 } else { x };
    above + (log(sum) + correction)
}

/// `x`, or `a (e^x - 1)` below 0; 2 ulp.
#[inline(always)]
pub(crate) fn elu(x: f64, a: f64) -> f64 {
    if x > 0.0 { x } else { a * exp_m1(x) }
}
