//! Powers in f64. The logarithm has two f64, because the error of `b ln x` becomes a relative error of the power.

use super::super::Exponent;
use super::{LN2_HIGH, LN2_LOW, exp_of_sum, polynomial, split};

/// A number as the sum of two f64, the second at most half an ulp of the first.
#[derive(Clone, Copy)]
struct Pair(f64, f64);

impl Pair {
    /// `a + b`.
    #[inline(always)]
    fn sum(a: f64, b: f64) -> Self {
        let sum = a + b;
        let there = sum - a;
        Self(sum, (a - (sum - there)) + (b - there))
    }

    /// `a b`.
    #[inline(always)]
    fn product(a: f64, b: f64) -> Self {
        let product = a * b;
        Self(product, a.mul_add(b, -product))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        let Self(high, low) = Self::sum(self.0, other.0);
        Self::sum(high, low + (self.1 + other.1))
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        let Self(high, low) = Self::product(self.0, other.0);
        Self::sum(high, low + (self.0 * other.1 + self.1 * other.0))
    }
}

/// `ln x`, for finite x above 0, to 2^-68.
#[inline(always)]
fn log_in_two(x: f64) -> Pair {
    // The terms of 2 artanh(s)/s after the second, as a polynomial in s^2.
    const C: [f64; 9] = [
        0.285_714_285_714_285_7,
        0.222_222_222_222_222_15,
        0.181_818_181_818_239_75,
        0.153_846_153_826_022_24,
        0.133_333_336_834_129,
        0.117_646_717_367_773_66,
        0.105_282_672_758_417_59,
        0.094_591_230_377_115_16,
        0.098_380_434_843_562_42,
    ];
    const TWO_THIRDS: Pair = Pair(0.666_666_666_666_666_6, 3.700_743_415_417_188e-17);
    const TWO_FIFTHS: Pair = Pair(0.4, -2.220_446_049_250_313_2e-17);
    let (n, m) = split(x);
    // s = (m - 1)/(m + 1).
    let (f, d) = (m - 1.0, Pair::sum(m, 1.0));
    let high = f / d.0;
    let s = Pair(high, ((-high).mul_add(d.0, f) - high * d.1) / d.0);
    let z = s.times(s);
    let terms = TWO_FIFTHS.plus(Pair(z.0 * polynomial(z.0, C), 0.0));
    let terms = TWO_THIRDS.plus(z.times(terms));
    let fraction = s.times(Pair(2.0, 0.0).plus(z.times(terms)));
    Pair::sum(n * LN2_HIGH, n * LN2_LOW).plus(fraction)
}

/// `x^b`, 1 ulp, as C's pow.
#[inline(always)]
pub(crate) fn pow(x: f64, exponent: Exponent) -> f64 {
    let b = exponent.value;
    if b == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    let t = x.abs();
    let grows = (t > 1.0) == (b > 0.0);
    let value = if t == 1.0 {
        1.0
    } else if t == 0.0 || t.is_infinite() || b.is_infinite() {
        if grows { f64::INFINITY } else { 0.0 }
    } else {
        let log = log_in_two(t);
        let Pair(high, low) = Pair::product(b, log.0);
        // Beyond, the power is 0 or infinite, and the product may overflow.
        if high.abs() > 1000.0 { exp_of_sum(high, 0.0) } else { exp_of_sum(high, low + b * log.1) }
    };
    if x.is_sign_negative() && exponent.odd {
        -value
    } else if x < 0.0 && x.is_finite() && !exponent.integer {
        f64::NAN
    } else {
        value
    }
}
