//! Powers with any exponent, computed in f64.

use super::super::Simd;
use super::super::lanes::{Lanes, Wide};
use super::TO_WIDE_INTEGER;

/// An exponent of powers.
#[derive(Clone, Copy)]
pub(crate) struct Exponent {
    pub(super) value: f64,
    pub(super) integer: bool,
    pub(super) odd: bool,
}

impl Exponent {
    pub(crate) fn new(value: f32) -> Self {
        Self::wide(f64::from(value))
    }

    pub(crate) fn wide(value: f64) -> Self {
        // Large numbers are even integers, including infinity.
        let integer = value.is_infinite() || value.fract() == 0.0;
        let odd = integer && value.abs() < 9e15 && (value as i64) & 1 == 1;
        Self { value, integer, odd }
    }
}

/// `ln t` in f64, for finite t above 0.
#[inline(always)]
fn wide_log<S: Simd>(t: Wide<S>) -> Wide<S> {
    // t = m 2^n, with m from about sqrt(1/2) to sqrt(2). Exponents are biased by 2^10.
    const BIAS: u64 = 1 << 10;
    let biased = t.bits_sub(f64::from_bits(0x3fe6_a09e << 32)).bits_add(f64::from_bits(BIAS << 52));
    let biased = biased.shift_right(52);
    let m = t.bits_sub(biased.shift_left(52)).bits_add(f64::from_bits(BIAS << 52));
    // The lowest bits of numbers from 2^52 count ones.
    const ONES: f64 = 4_503_599_627_370_496.0;
    let exponent = biased.bits_add(ONES) - (ONES + BIAS as f64);
    // ln m = 2 artanh s.
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut sum = z * (1.0 / 19.0) + 1.0 / 17.0;
    for divisor in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        sum = sum * z + 1.0 / divisor;
    }
    exponent * std::f64::consts::LN_2 + s * 2.0 * sum
}

/// `x^b`, 1 ulp, as C's powf; computed in f64.
#[inline(always)]
pub(crate) fn pow<S: Simd>(x: Lanes<S>, b: Exponent) -> Lanes<S> {
    let t = x.abs();
    let y = (wide_log(t.widen()) * b.value).within(-200.0, 200.0);
    let shifted = y * std::f64::consts::LOG2_E + TO_WIDE_INTEGER;
    let r = y - (shifted - TO_WIDE_INTEGER) * std::f64::consts::LN_2;
    let mut power = r / 11.0 + 1.0;
    for divisor in [10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0] {
        power = power * r / divisor + 1.0;
    }
    let scale = shifted.bits_add(f64::from_bits(1023)).shift_left(52);
    let value = (power * scale).narrow();
    let (up, down) = (b.value > 0.0, b.value < 0.0);
    let grows = if up { f32::INFINITY } else { 0.0 };
    let shrinks = if down { f32::INFINITY } else { 0.0 };
    let value = t.eq(f32::INFINITY).select(grows, value);
    let value = t.eq(0.0).select(shrinks, value);
    // If `b` is infinite, its product with the logarithm 0 is NaN.
    let value = t.eq(1.0).select(1.0, value);
    let value = if b.odd { value.bits_xor(x.sign()) } else { value };
    let root = t.eq(f32::INFINITY).select(value, f32::NAN);
    let value = if b.integer { value } else { x.lt(0.0).select(root, value) };
    let value = if b.value.is_nan() { x.all(f32::NAN) } else { x.eq(x).select(value, x) };
    if b.value == 0.0 { x.all(1.0) } else { x.eq(1.0).select(1.0, value) }
}
