//! The codes of 8-bit element types and their f32 values.
//!
//! Every function is a branch-free scalar conversion, which the compiler vectorizes in the entries of each level. The
//! bits are the same on all levels.

/// Adding this to a number below 2^22 rounds it to an integer, to nearest even, in the lowest bits.
const TO_INTEGER: f32 = 12_582_912.0;

/// The integer nearest to `x`, ties to even, between `low` and `high`, in the lowest byte; NaN gives 0.
#[inline(always)]
fn saturated(x: f32, low: f32, high: f32) -> u8 {
    let x = if x < low { low } else { x };
    integer_code(if x > high { high } else { x })
}

/// The lowest byte of the integer nearest to `x`, ties to even, for numbers below 2^22; NaN gives 0.
#[inline(always)]
pub(crate) fn integer_code(x: f32) -> u8 {
    let x = if x.is_nan() { 0.0 } else { x };
    (x + TO_INTEGER).to_bits() as u8
}

/// The s8 nearest to `x`, ties to even; saturates, and NaN gives 0.
#[inline(always)]
pub(crate) fn s8_code(x: f32) -> u8 {
    saturated(x, -128.0, 127.0)
}

/// The u8 nearest to `x`, ties to even; saturates, and NaN gives 0.
#[inline(always)]
pub(crate) fn u8_code(x: f32) -> u8 {
    saturated(x, 0.0, 255.0)
}

#[inline(always)]
pub(crate) fn s8_value(code: u8) -> f32 {
    f32::from(code.cast_signed())
}

#[inline(always)]
pub(crate) fn u8_value(code: u8) -> f32 {
    f32::from(code)
}

/// The e8m0 code of NaN.
const E8M0_NAN: u8 = 0xff;

/// The power of two that an e8m0 code stands for, `2^(code - 127)`.
#[inline(always)]
pub(crate) fn e8m0_value(code: u8) -> f32 {
    const HALF_OF_SMALLEST_NORMAL: u32 = 1 << 22;
    match code {
        0 => f32::from_bits(HALF_OF_SMALLEST_NORMAL),
        E8M0_NAN => f32::NAN,
        _ => f32::from_bits(u32::from(code) << 23),
    }
}

/// The e8m0 code of the largest power of two that is at most `x`, or of the smallest one. Negative numbers, infinities
/// and NaN become NaN.
#[inline(always)]
pub(crate) fn e8m0_code(x: f32) -> u8 {
    if x >= 0.0 { (x.to_bits() >> 23) as u8 } else { E8M0_NAN }
}

/// An 8-bit floating-point format.
struct Float8 {
    /// Bits of the fraction.
    fraction: u32,
    /// The exponent bias.
    bias: u32,
    /// Magnitudes with at least these f32 bits get the code `beyond`.
    too_large: u32,
    beyond: u32,
    /// The largest code of a finite number.
    largest: u32,
}

/// E4M3 of the OCP specification: no infinities and one NaN.
const E4M3: Float8 = Float8 {
    fraction: 3,
    bias: 7,
    // Just above 464, the midpoint of 448 and the next value, if there were one.
    too_large: 0x43e8_0001,
    beyond: 0x7f,
    largest: 0x7e,
};

/// E5M2: the upper half of a binary16.
const E5M2: Float8 = Float8 {
    fraction: 2,
    bias: 15,
    // 61440, the midpoint of 57344 and the next value, if there were one.
    too_large: 0x4770_0000,
    beyond: 0x7c,
    largest: 0x7b,
};

impl Float8 {
    /// Rounds to nearest even, including subnormals. Overflow gives an infinity, or NaN if the format has none.
    #[inline(always)]
    fn code(&self, x: f32) -> u8 {
        let bits = x.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let drop = 23 - self.fraction;
        // Subnormal: adding this power of 2 aligns the last places and rounds.
        let unit = (127 + 23 + 1 - self.bias - self.fraction) << 23;
        let small = (f32::from_bits(magnitude) + f32::from_bits(unit)).to_bits().wrapping_sub(unit);
        let odd = magnitude >> drop & 1;
        let rounded = magnitude.wrapping_add((1 << (drop - 1)) - 1 + odd);
        let normal = rounded.wrapping_sub((127 - self.bias) << 23) >> drop;
        let smallest_normal = (128 - self.bias) << 23;
        let code = if magnitude < smallest_normal { small } else { normal };
        let code = if magnitude >= self.too_large { self.beyond } else { code };
        let code = if magnitude > 0x7f80_0000 { 0x7f } else { code };
        (code | bits >> 24 & 0x80) as u8
    }

    #[inline(always)]
    fn value(&self, code: u8) -> f32 {
        let code = u32::from(code);
        let magnitude = code & 0x7f;
        let unit = f32::from_bits((127 + 1 - self.bias - self.fraction) << 23);
        let small = (magnitude as f32 * unit).to_bits();
        let normal = (magnitude << (23 - self.fraction)) + ((127 - self.bias) << 23);
        let bits = if magnitude < 1 << self.fraction { small } else { normal };
        let special =
            if magnitude == self.beyond && self.beyond != 0x7f { 0x7f80_0000 } else { 0x7fc0_0000 };
        let bits = if magnitude > self.largest { special } else { bits };
        f32::from_bits(bits | (code & 0x80) << 24)
    }
}

#[inline(always)]
pub(crate) fn e4m3_code(x: f32) -> u8 {
    E4M3.code(x)
}

#[inline(always)]
pub(crate) fn e5m2_code(x: f32) -> u8 {
    E5M2.code(x)
}

#[inline(always)]
pub(crate) fn e4m3_value(code: u8) -> f32 {
    E4M3.value(code)
}

#[inline(always)]
pub(crate) fn e5m2_value(code: u8) -> f32 {
    E5M2.value(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a code by the definition of the format.
    fn defined(code: u8, fraction: i32, bias: i32) -> f64 {
        let sign = if code & 0x80 != 0 { -1.0 } else { 1.0 };
        let exponent = i32::from(code & 0x7f) >> fraction;
        let rest = f64::from(i32::from(code) & ((1 << fraction) - 1)) / f64::from(1 << fraction);
        let (one, power) = if exponent == 0 { (0.0, 1 - bias) } else { (1.0, exponent - bias) };
        sign * (one + rest) * 2f64.powi(power)
    }

    #[test]
    fn values_are_those_of_the_formats() {
        for code in 0..=255u8 {
            let (e4m3, e5m2) = (e4m3_value(code), e5m2_value(code));
            match code & 0x7f {
                0x7f => assert!(e4m3.is_nan()),
                _ => assert_eq!(f64::from(e4m3), defined(code, 3, 7), "{code:#x}"),
            }
            match code & 0x7f {
                0x7d..=0x7f => assert!(e5m2.is_nan()),
                0x7c => {
                    assert_eq!(e5m2, f32::INFINITY.copysign(if code > 127 { -1.0 } else { 1.0 }))
                }
                _ => assert_eq!(f64::from(e5m2), defined(code, 2, 15), "{code:#x}"),
            }
            assert_eq!(e4m3.is_sign_negative() || e4m3.is_nan(), code > 127 || e4m3.is_nan());
            assert_eq!(s8_value(code), f32::from(code as i8));
            assert_eq!(u8_value(code), f32::from(code));
        }
    }

    /// Every code round-trips, and values between two codes round to the nearest one, ties to even.
    #[test]
    fn codes_round_to_nearest_even() {
        type Format = (fn(f32) -> u8, fn(u8) -> f32, u8, u8, f32);
        let formats: [Format; 2] = [
            (e4m3_code, e4m3_value, 0x7e, 0x7f, 464.0),
            (e5m2_code, e5m2_value, 0x7b, 0x7c, 61440.0),
        ];
        for (code_of, value_of, largest, beyond, limit) in formats {
            for code in 0..=largest {
                let x = value_of(code);
                assert_eq!((code_of(x), code_of(-x)), (code, code | 0x80));
                if code == largest {
                    break;
                }
                let next = value_of(code + 1);
                let half = (x + next) / 2.0;
                assert_eq!(code_of(half), code + (code & 1), "{half}");
                assert_eq!(code_of(half.next_down()), code);
                assert_eq!(code_of(half.next_up()), code + 1);
            }
            assert_eq!(code_of(limit.next_down()), largest);
            assert_eq!(code_of(limit), if beyond == 0x7f { largest } else { beyond });
            for x in [limit.next_up(), 1e6, f32::MAX, f32::INFINITY] {
                assert_eq!((code_of(x), code_of(-x)), (beyond, beyond | 0x80), "{x}");
            }
            assert!(value_of(code_of(f32::NAN)).is_nan());
            assert_eq!(code_of(f32::from_bits(1)), 0);
            assert_eq!(code_of(-0.0), 0x80);
        }
    }

    #[test]
    fn integers_saturate_and_ties_go_to_even() {
        for n in -300..=300i32 {
            let x = n as f32;
            let (s8, u8) = (n.clamp(-128, 127) as i8 as u8, n.clamp(0, 255) as u8);
            assert_eq!((s8_code(x), u8_code(x)), (s8, u8));
            let even = if n % 2 == 0 { n } else { n + 1 };
            let half = x + 0.5;
            assert_eq!(s8_code(half), even.clamp(-128, 127) as i8 as u8, "{half}");
            assert_eq!(u8_code(half), even.clamp(0, 255) as u8, "{half}");
            assert_eq!(s8_code(half.next_down()), n.clamp(-128, 127) as i8 as u8);
            assert_eq!(s8_code(half.next_up()), (n + 1).clamp(-128, 127) as i8 as u8);
        }
        for x in [f32::INFINITY, f32::MAX, 1e9] {
            assert_eq!((s8_code(x), u8_code(x), s8_code(-x), u8_code(-x)), (127, 255, 128, 0));
        }
        for nan in [f32::NAN, f32::from_bits(0xffff_ffff), f32::from_bits(0x7f80_0001)] {
            assert_eq!((s8_code(nan), u8_code(nan)), (0, 0));
        }
    }
}
