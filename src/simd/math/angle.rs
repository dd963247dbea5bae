//! Sine and cosine, whose angles are reduced and whose polynomials are summed in f64.

use super::super::Simd;
use super::super::lanes::{Lanes, Wide};
use super::{TO_INTEGER, TO_WIDE_INTEGER, integer};

/// A polynomial, coefficients from the lowest power on.
#[inline(always)]
fn wide_polynomial<S: Simd, const N: usize>(x: Wide<S>, coefficients: [f64; N]) -> Wide<S> {
    let mut sum = x.mul_add(coefficients[N - 1], coefficients[N - 2]);
    let mut i = N - 2;
    while i > 0 {
        i -= 1;
        sum = sum.mul_add(x, coefficients[i]);
    }
    sum
}

/// `x` less the multiple of pi/2 that is nearest, and that multiple, modulo 4. The multiple of pi/2 has 106 bits: angles come as
/// close to one as 2^-33.
#[inline(always)]
fn reduced_wide_angle<S: Simd>(x: Wide<S>) -> (Wide<S>, Lanes<S>) {
    const HALF_PI: f64 = std::f64::consts::FRAC_PI_2;
    const HALF_PI_LOW: f64 = 6.123_233_995_736_766e-17;
    let n = (x * std::f64::consts::FRAC_2_PI + TO_WIDE_INTEGER) - TO_WIDE_INTEGER;
    let r = n.mul_add(-HALF_PI, x);
    let r = n.mul_add(-HALF_PI_LOW, r);
    let turns = (n * 0.25 + TO_WIDE_INTEGER) - TO_WIDE_INTEGER;
    (r, turns.mul_add(-4.0, n).narrow())
}

/// The sine and the cosine of an angle up to pi/4.
#[inline(always)]
fn quarter<S: Simd>(r: Wide<S>) -> (Wide<S>, Wide<S>) {
    // sin(r)/r and cos(r) over r^2, |r| to pi/4.
    const SIN: [f64; 5] = [
        0.999_999_999_995_681_7,
        -0.166_666_666_316_355_4,
        0.008_333_328_786_055_189,
        -0.000_198_392_031_449_262_58,
        2.717_353_243_556_384e-6,
    ];
    const COS: [f64; 5] = [
        0.999_999_999_943_937_4,
        -0.499_999_995_715_566_2,
        0.041_666_613_233_451_93,
        -0.001_388_652_914_659_605,
        2.437_267_913_438_978_7e-5,
    ];
    let square = r * r;
    (wide_polynomial(square, SIN) * r, wide_polynomial(square, COS))
}

/// The sine of an angle and `n` quarters of a turn, from the angle's own sine and cosine.
#[inline(always)]
fn in_quarter<S: Simd>(sine: Lanes<S>, cosine: Lanes<S>, n: Lanes<S>) -> Lanes<S> {
    // The lowest bit: odd quarters have the cosine, the next one: the second half of a turn is negative.
    let quarters = n + TO_INTEGER;
    let odd = quarters.bits_and(integer(1)).as_integer();
    let negative = quarters.shift_left(30).sign();
    odd.eq(0.0).select(sine, cosine).bits_xor(negative)
}

/// The sine of an angle that was reduced, and `n` quarters of a turn.
#[cfg(test)]
#[inline(always)]
fn turned_sine<S: Simd>(r: Wide<S>, n: Lanes<S>) -> Lanes<S> {
    let (sine, cosine) = quarter(r);
    in_quarter(sine.narrow(), cosine.narrow(), n)
}

/// `magnitude * [sin x, cos x]`, 1 ulp for |x| to 2^32, rounded once.
#[inline(always)]
pub(crate) fn scaled_sin_cos<S: Simd>(x: Wide<S>, magnitude: f64) -> [Lanes<S>; 2] {
    let (r, n) = reduced_wide_angle(x);
    let (sine, cosine) = quarter(r);
    let sine = (sine * magnitude).narrow();
    let cosine = (cosine * magnitude).narrow();
    [in_quarter(sine, cosine, n), in_quarter(sine, cosine, n + 1.0)]
}

/// `sin x`, 1 ulp for |x| to 2^32.
#[cfg(test)]
#[inline(always)]
pub(crate) fn sin<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let (r, n) = reduced_wide_angle(x.widen());
    turned_sine(r, n)
}

/// `cos x`, 1 ulp for |x| to 2^32.
#[cfg(test)]
#[inline(always)]
pub(crate) fn cos<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    let (r, n) = reduced_wide_angle(x.widen());
    turned_sine(r, n + 1.0)
}
