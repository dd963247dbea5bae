//! Sine and cosine. Angles are reduced, and polynomials evaluated, in f64.

use super::super::Simd;
use super::super::lanes::{Lanes, Wide};
use super::{TO_WIDE_INTEGER, integer};

/// A polynomial. Coefficients begin with that of the lowest power.
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

/// `x` less the nearest multiple of pi/2, and the number of that multiple, whose lowest bits are right. pi/2 has 106
/// bits, since angles come as close to a multiple as 2^-33.
#[inline(always)]
fn reduced_wide_angle<S: Simd>(x: Wide<S>) -> (Wide<S>, Lanes<S>) {
    const HALF_PI: f64 = std::f64::consts::FRAC_PI_2;
    const HALF_PI_LOW: f64 = 6.123_233_995_736_766e-17;
    let shifted = x * std::f64::consts::FRAC_2_PI + TO_WIDE_INTEGER;
    let n = shifted - TO_WIDE_INTEGER;
    let r = n.mul_add(-HALF_PI, x);
    let r = n.mul_add(-HALF_PI_LOW, r);
    (r, shifted.low_bits())
}

/// The sine and the cosine of an angle up to pi/4.
#[inline(always)]
fn quarter<S: Simd>(r: Wide<S>) -> (Wide<S>, Wide<S>) {
    // Polynomials in r^2 for sin(r)/r and cos(r), |r| up to pi/4.
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

/// The sine and cosine of an angle plus `n` quarter turns, from those of the angle. Only the lowest two bits of the
/// integer `n` matter.
#[inline(always)]
fn in_quarter<S: Simd>([sine, cosine]: [Lanes<S>; 2], n: Lanes<S>) -> [Lanes<S>; 2] {
    // Odd quarters exchange the two. The next bit marks the second half of a turn, where the sine is negative. The
    // cosine is a quarter ahead.
    let odd = n.shift_left(31).negative();
    let sign = |n: Lanes<S>| n.shift_left(30).sign();
    [
        odd.select(cosine, sine).bits_xor(sign(n)),
        odd.select(sine, cosine).bits_xor(sign(n.bits_add(integer(1)))),
    ]
}

/// `magnitude * [sin x, cos x]`, 1 ulp for |x| to 2^32, rounded once.
#[inline(always)]
pub(crate) fn scaled_sin_cos<S: Simd>(x: Wide<S>, magnitude: f64) -> [Lanes<S>; 2] {
    let (r, n) = reduced_wide_angle(x);
    let (sine, cosine) = quarter(r);
    in_quarter([(sine * magnitude).narrow(), (cosine * magnitude).narrow()], n)
}

/// `sin x`, 1 ulp for |x| to 2^32.
#[cfg(test)]
#[inline(always)]
pub(crate) fn sin<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    scaled_sin_cos(x.widen(), 1.0)[0]
}

/// `cos x`, 1 ulp for |x| to 2^32.
#[cfg(test)]
#[inline(always)]
pub(crate) fn cos<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    scaled_sin_cos(x.widen(), 1.0)[1]
}
