//! The element types, as sets of values within f64.

use crate::language::value::BadValue;
use crate::parallel;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// IEEE 754 binary32.
    F32,
    /// The upper half of an f32: 8 significant bits and the range of f32.
    Bf16,
    /// IEEE 754 binary16: 11 significant bits, 2^-24 to 65504.
    F16,
    /// IEEE 754 binary64.
    F64,
    /// 3 significant bits, 2^-16 to 57344, infinities: the upper half of an f16.
    F8E5m2,
    /// 4 significant bits, 2^-9 to 448, no infinities: larger values are NaN.
    F8E4m3,
    /// Powers of two from 2^-127 to 2^127, and NaN: scales. Values are rounded down.
    E8m0,
    /// Signed integers of 32 bits.
    S32,
    /// Signed integers of 8 bits.
    S8,
    /// Unsigned integers of 8 bits.
    U8,
    /// Signed integers of 64 bits. Those beyond 2^53 stand for the nearest f64.
    S64,
}

/// Types of oneDNN's batches that the library does not have.
const ABSENT: [&str; 3] = ["s4", "u4", "f4_e2m1"];

/// Names of types in NumPy and PyTorch, and here.
const ELSEWHERE: [(&str, &str); 14] = [
    ("float32", "f32"),
    ("float", "f32"),
    ("fp32", "f32"),
    ("bfloat16", "bf16"),
    ("float16", "f16"),
    ("half", "f16"),
    ("fp16", "f16"),
    ("float64", "f64"),
    ("double", "f64"),
    ("int8", "s8"),
    ("uint8", "u8"),
    ("int32", "s32"),
    ("float8_e4m3fn", "f8_e4m3"),
    ("float8_e5m2", "f8_e5m2"),
];

/// Elements that a thread converts at a time.
const CHUNK: usize = 64 * 1024;

impl DataType {
    /// All types.
    pub const ALL: [DataType; 11] = [
        DataType::F32,
        DataType::Bf16,
        DataType::F16,
        DataType::F64,
        DataType::F8E5m2,
        DataType::F8E4m3,
        DataType::E8m0,
        DataType::S32,
        DataType::S8,
        DataType::U8,
        DataType::S64,
    ];

    /// The floating-point types whose results are f32 values rounded once.
    pub const ROUNDED_FLOATS: [DataType; 3] = [DataType::F32, DataType::Bf16, DataType::F16];

    /// The types of normalizations and softmax.
    pub const NORMALIZED: [DataType; 8] = [
        DataType::F32,
        DataType::Bf16,
        DataType::F16,
        DataType::F64,
        DataType::S8,
        DataType::U8,
        DataType::F8E4m3,
        DataType::F8E5m2,
    ];

    /// The types of operations on single elements.
    pub const ELEMENTWISE: [DataType; 9] = [
        DataType::F32,
        DataType::Bf16,
        DataType::F16,
        DataType::F64,
        DataType::F8E5m2,
        DataType::F8E4m3,
        DataType::S32,
        DataType::S8,
        DataType::U8,
    ];

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            DataType::F64 | DataType::S64 => 8,
            DataType::F32 | DataType::S32 => 4,
            DataType::Bf16 | DataType::F16 => 2,
            DataType::F8E5m2 | DataType::F8E4m3 | DataType::E8m0 | DataType::S8 | DataType::U8 => 1,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            DataType::F32 => "f32",
            DataType::Bf16 => "bf16",
            DataType::F16 => "f16",
            DataType::F64 => "f64",
            DataType::F8E5m2 => "f8_e5m2",
            DataType::F8E4m3 => "f8_e4m3",
            DataType::E8m0 => "e8m0",
            DataType::S32 => "s32",
            DataType::S64 => "s64",
            DataType::S8 => "s8",
            DataType::U8 => "u8",
        }
    }

    /// The type of this name.
    pub fn parse(text: &str) -> Result<DataType, BadValue> {
        DataType::among(&DataType::ALL)(text)
    }

    /// Reads the name of a type. The message about any other text lists only the types that the option is for. The
    /// others can still be written, because the library gives its own reason for refusing them.
    pub fn among(listed: &[DataType]) -> impl Fn(&str) -> Result<DataType, BadValue> {
        move |text| match DataType::ALL.into_iter().find(|data_type| data_type.name() == text) {
            Some(data_type) => Ok(data_type),
            None => {
                let names: Vec<&str> = listed.iter().map(|data_type| data_type.name()).collect();
                let hint = ELSEWHERE.iter().find(|(theirs, _)| *theirs == text);
                let hint = hint.map_or_else(String::new, |(_, ours)| format!("; write {ours}"));
                Err(BadValue::new(format!("'{text}' is none of {}{hint}", names.join(", "))))
            }
        }
    }

    /// The same for an option that also takes types that the library does not have: a stand-in, beside the name.
    pub fn among_any(
        listed: &[DataType],
    ) -> impl Fn(&str) -> Result<(DataType, Option<&'static str>), BadValue> {
        let read = DataType::among(listed);
        move |text| match ABSENT.into_iter().find(|name| *name == text) {
            Some(name) => Ok((DataType::F32, Some(name))),
            None => read(text).map(|data_type| (data_type, None)),
        }
    }

    /// Whether it is an integer type, which saturates.
    pub const fn is_integer(self) -> bool {
        matches!(self, DataType::S64 | DataType::S32 | DataType::S8 | DataType::U8)
    }

    /// Bits of the significand after the leading one.
    const fn fraction_bits(self) -> i32 {
        match self {
            DataType::F64 => 52,
            DataType::F32 => 23,
            DataType::Bf16 => 7,
            DataType::F16 => 10,
            DataType::F8E5m2 => 2,
            DataType::F8E4m3 => 3,
            DataType::E8m0 | DataType::S64 | DataType::S32 | DataType::S8 | DataType::U8 => 0,
        }
    }

    /// Exponent of the smallest normal number.
    const fn lowest_exponent(self) -> i32 {
        match self {
            DataType::F64 => -1022,
            DataType::F32 | DataType::Bf16 => -126,
            DataType::F16 | DataType::F8E5m2 => -14,
            DataType::F8E4m3 => -6,
            DataType::E8m0 => -127,
            DataType::S64 | DataType::S32 | DataType::S8 | DataType::U8 => 0,
        }
    }

    /// The largest finite value.
    pub const fn largest(self) -> f64 {
        match self {
            DataType::F64 => f64::MAX,
            DataType::F32 => f32::MAX as f64,
            DataType::Bf16 => 255.0 / 128.0 * power_of_two(127),
            DataType::F16 => 65504.0,
            DataType::F8E5m2 => 57344.0,
            DataType::F8E4m3 => 448.0,
            DataType::E8m0 => power_of_two(127),
            DataType::S32 => i32::MAX as f64,
            DataType::S64 => power_of_two(63),
            DataType::S8 => 127.0,
            DataType::U8 => 255.0,
        }
    }

    /// The lowest finite value.
    pub const fn lowest(self) -> f64 {
        match self {
            DataType::S32 => i32::MIN as f64,
            DataType::S64 => -power_of_two(63),
            DataType::S8 => -128.0,
            DataType::U8 | DataType::E8m0 => 0.0,
            _ => -self.largest(),
        }
    }

    /// The distance between neighbours in the binade of `|value|`, as if the exponent had no upper limit. Below the
    /// normal range it is the smallest subnormal, for integers 1, for infinities and NaN it is NaN.
    #[inline(always)]
    pub fn ulp(self, value: f64) -> f64 {
        // 0 for finite values, NaN for the others.
        let nothing = 0.0 * value;
        if self.is_integer() {
            return 1.0 + nothing;
        }
        let binade = f64::from_bits(value.to_bits() & f64::INFINITY.to_bits());
        let lowest = power_of_two(self.lowest_exponent());
        let binade = if binade > lowest { binade } else { lowest };
        binade * power_of_two(-self.fraction_bits()) + nothing
    }

    /// The nearest value of the type, ties to even. Beyond the largest, integers saturate; other
    /// types become infinite, or NaN if they have no infinity. For e8m0 see [`DataType::E8m0`]; it
    /// saturates, and negative values and infinities become NaN.
    #[inline(always)]
    pub fn round(self, value: f64) -> f64 {
        match self {
            DataType::F32 => return f64::from(value as f32),
            DataType::F64 => return value,
            DataType::E8m0 if !(0.0..f64::INFINITY).contains(&value) => return f64::NAN,
            DataType::E8m0 => return self.round_within(value.min(self.largest())),
            _ if self.is_integer() => return self.round_within(value),
            _ => {}
        }
        let beyond = match self {
            DataType::F8E4m3 => f64::NAN,
            _ => f64::INFINITY.copysign(value),
        };
        let rounded = self.round_within(value);
        let rounded = if rounded.abs() > self.largest() { beyond } else { rounded };
        // Beyond this, no type has finite values, and the addition below could overflow.
        let rounded = if value.abs() >= power_of_two(130) { beyond } else { rounded };
        if value.is_nan() { value } else { rounded }
    }

    /// The nearest value of an integer type, or of a short float as if its exponent had no upper limit, computed
    /// without a branch. `|value|` is below 2^900, and the type is not f64.
    #[inline(always)]
    pub(crate) fn round_within(self, value: f64) -> f64 {
        // Adding 1.5 * 2^52 units leaves no bits below the unit, so the addition itself rounds to nearest even.
        const SHIFTER: f64 = 1.5 * power_of_two(52);
        if self.is_integer() {
            // Not `clamp`, which branches for NaN. This keeps NaN without a branch.
            let value = if value < self.lowest() { self.lowest() } else { value };
            let value = if value > self.largest() { self.largest() } else { value };
            if self == DataType::S64 {
                // From 2^52 on, all numbers are integers.
                let shifter = power_of_two(52).copysign(value);
                let is_whole = value.abs() >= power_of_two(52);
                return if is_whole { value } else { (value + shifter) - shifter };
            }
            return (value + SHIFTER) - SHIFTER;
        }
        if self == DataType::E8m0 {
            let binade = f64::from_bits(value.to_bits() & f64::INFINITY.to_bits());
            let lowest = power_of_two(self.lowest_exponent());
            return if binade > lowest { binade } else { lowest };
        }
        let shifter = SHIFTER * self.ulp(value);
        ((value + shifter) - shifter).copysign(value)
    }

    /// The values, rounded to the type, as bytes in memory.
    pub fn encode(self, values: &[f64]) -> Vec<u8> {
        let mut bytes = vec![0; values.len() * self.size()];
        let chunks = bytes.chunks_mut(CHUNK * self.size()).zip(values.chunks(CHUNK));
        parallel::for_each(chunks, 1, &|_, (bytes, values)| match self {
            DataType::F64 => convert(values, bytes, f64::to_ne_bytes),
            DataType::F32 => convert(values, bytes, |value| (value as f32).to_ne_bytes()),
            DataType::Bf16 => convert(values, bytes, |value| {
                let bits = (DataType::Bf16.round(value) as f32).to_bits();
                ((bits >> 16) as u16).to_ne_bytes()
            }),
            DataType::F16 => convert(values, bytes, |value| f16_bits(value).to_ne_bytes()),
            DataType::F8E5m2 | DataType::F8E4m3 => {
                convert(values, bytes, |value| [self.small_bits(value)]);
            }
            DataType::E8m0 => convert(values, bytes, |value| [power_bits(self.round(value))]),
            DataType::S32 => {
                convert(values, bytes, |value| (self.round(value) as i32).to_ne_bytes());
            }
            DataType::S64 => {
                convert(values, bytes, |value| (self.round(value) as i64).to_ne_bytes());
            }
            DataType::S8 => convert(values, bytes, |value| (self.round(value) as i8).to_ne_bytes()),
            DataType::U8 => convert(values, bytes, |value| [self.round(value) as u8]),
        });
        bytes
    }

    /// The values of the bytes.
    ///
    /// # Panics
    /// If the bytes are not a whole number of elements.
    pub fn decode(self, bytes: &[u8]) -> Vec<f64> {
        assert_eq!(bytes.len() % self.size(), 0, "whole elements of {}", self.name());
        let mut values = vec![0.0; bytes.len() / self.size()];
        let chunks = values.chunks_mut(CHUNK).zip(bytes.chunks(CHUNK * self.size()));
        parallel::for_each(chunks, 1, &|_, (values, bytes)| match self {
            DataType::F64 => read(bytes, values, f64::from_ne_bytes),
            DataType::F32 => read(bytes, values, |b| f64::from(f32::from_ne_bytes(b))),
            DataType::Bf16 => read(bytes, values, |b| {
                f64::from(f32::from_bits(u32::from(u16::from_ne_bytes(b)) << 16))
            }),
            DataType::F16 => read(bytes, values, |b| f16_value(u16::from_ne_bytes(b))),
            DataType::F8E5m2 | DataType::F8E4m3 => {
                read(bytes, values, |[bits]| self.of_small_bits(bits));
            }
            DataType::E8m0 => read(bytes, values, |[bits]| match bits {
                u8::MAX => f64::NAN,
                bits => power_of_two(i32::from(bits) - 127),
            }),
            DataType::S32 => read(bytes, values, |b| f64::from(i32::from_ne_bytes(b))),
            DataType::S64 => read(bytes, values, |b| i64::from_ne_bytes(b) as f64),
            DataType::S8 => read(bytes, values, |b| f64::from(i8::from_ne_bytes(b))),
            DataType::U8 => read(bytes, values, |[byte]| f64::from(byte)),
        });
        values
    }

    /// The rounded value as the bits of an 8-bit float.
    fn small_bits(self, value: f64) -> u8 {
        let (rounded, fraction) = (self.round(value), self.fraction_bits());
        let sign = u8::from(value.is_sign_negative()) << 7;
        if rounded.is_nan() {
            return sign | 0x7f;
        }
        if rounded.is_infinite() {
            return sign | 0x7c;
        }
        // In units of the smallest subnormal, the bits below the sign count up with the value, because each binade has
        // as many values as the subnormals.
        let unit = self.ulp(rounded);
        let steps = (rounded.abs() / unit) as u8;
        let binade = (unit / self.ulp(0.0)).log2() as u8;
        sign | (steps + (binade << fraction))
    }

    /// The value of the bits of an 8-bit float.
    fn of_small_bits(self, bits: u8) -> f64 {
        let fraction = self.fraction_bits();
        let (exponent, low) = ((bits & 0x7f) >> fraction, bits & ((1 << fraction) - 1));
        let size = match (self, exponent, low) {
            (DataType::F8E4m3, 15, 7) => f64::NAN,
            (DataType::F8E5m2, 31, 0) => f64::INFINITY,
            (DataType::F8E5m2, 31, _) => f64::NAN,
            (_, 0, low) => f64::from(low) * self.ulp(0.0),
            (_, exponent, low) => {
                let unit = self.ulp(0.0) * power_of_two(i32::from(exponent) - 1);
                f64::from(low + (1 << fraction)) * unit
            }
        };
        if bits & 0x80 == 0 { size } else { -size }
    }
}

/// The bits of a power of two; those of NaN for any other value.
fn power_bits(value: f64) -> u8 {
    match value.is_nan() || value < 0.0 {
        true => u8::MAX,
        false => (((value.to_bits() >> 52) as i32) - (1023 - 127)).max(0) as u8,
    }
}

/// The position of an f16's fraction in f64, and the difference of the exponents' biases.
const F16_SHIFT: u32 = 52 - 10;
const F16_BIAS: f64 = power_of_two(1023 - 15);

/// The value of the bits of an f16.
#[inline(always)]
fn f16_value(bits: u16) -> f64 {
    let size = u64::from(bits & 0x7fff);
    let value = f64::from_bits(size << F16_SHIFT) * F16_BIAS;
    let special = f64::from_bits(size << F16_SHIFT | f64::INFINITY.to_bits());
    let value = if size >= 0x7c00 { special } else { value };
    if bits & 0x8000 == 0 { value } else { -value }
}

/// The bits of the nearest f16.
#[inline(always)]
fn f16_bits(value: f64) -> u16 {
    let rounded = DataType::F16.round(value);
    let bits = (rounded.abs() / F16_BIAS).to_bits() >> F16_SHIFT;
    let bits = if rounded.abs() == f64::INFINITY { 0x7c00 } else { bits as u16 };
    let bits = if rounded.is_nan() { 0x7e00 } else { bits };
    bits | if value.is_sign_negative() { 0x8000 } else { 0 }
}

/// `2^exponent`, for the normal range of f64.
const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

fn convert<const N: usize>(values: &[f64], bytes: &mut [u8], of: impl Fn(f64) -> [u8; N]) {
    for (bytes, &value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
        *bytes = of(value);
    }
}

fn read<const N: usize>(bytes: &[u8], values: &mut [f64], of: impl Fn([u8; N]) -> f64) {
    for (value, &bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
        *value = of(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn powers_of_two_have_a_byte() {
        for bits in 0..=254_u8 {
            let value = DataType::E8m0.decode(&[bits])[0];
            assert_eq!(value, (f64::from(bits) - 127.0).exp2());
            assert_eq!(DataType::E8m0.encode(&[value]), [bits]);
            assert_eq!(DataType::E8m0.round(value), value);
            assert_eq!(DataType::E8m0.round(value * 1.99), value);
        }
        assert_eq!(DataType::E8m0.encode(&[0.0, 1e-60, 1e60]), [0, 0, 254]);
        assert!(DataType::E8m0.decode(&[255])[0].is_nan());
        assert_eq!(DataType::E8m0.encode(&[f64::NAN, -1.0, f64::INFINITY]), [255; 3]);
    }

    #[test]
    fn long_integers_saturate_at_their_own_limits() {
        const HALF: i64 = (1 << 51) + 2;
        let half = 2f64.powi(51) + 1.5;
        let rounded = [0.5, 1.5, -2.5, half, -half, 2f64.powi(52) + 1.0, 1e300, f64::NEG_INFINITY];
        let bytes = DataType::S64.encode(&rounded);
        let (codes, _) = bytes.as_chunks();
        let codes: Vec<i64> = codes.iter().map(|&code| i64::from_ne_bytes(code)).collect();
        assert_eq!(codes, [0, 2, -2, HALF, -HALF, (1 << 52) + 1, i64::MAX, i64::MIN]);
        assert_eq!(DataType::S64.decode(&bytes)[6], 2f64.powi(63));
    }

    #[test]
    fn every_half_is_what_others_take_it_for() {
        for bits in 0..=u16::MAX {
            let rows = [
                (DataType::Bf16, bf16::from_bits(bits).to_f64()),
                (DataType::F16, f16::from_bits(bits).to_f64()),
            ];
            for (dt, right) in rows {
                let value = dt.decode(&bits.to_ne_bytes())[0];
                let again = dt.encode(&[value]);
                if right.is_nan() {
                    assert!(value.is_nan() && dt.decode(&again)[0].is_nan(), "{dt:?} {bits:x}");
                    continue;
                }
                assert_eq!(value.to_bits(), right.to_bits(), "{dt:?} {bits:x}");
                assert_eq!(again, bits.to_ne_bytes(), "{dt:?} {bits:x}");
            }
        }
        // Values in between, including halves.
        for i in 0..200_000_u32 {
            let single = f32::from_bits(i.wrapping_mul(21_470));
            let (short, half) = (bf16::from_f32(single).to_f64(), f16::from_f32(single).to_f64());
            let x = f64::from(single);
            for (dt, right) in [(DataType::Bf16, short), (DataType::F16, half)] {
                let value = dt.decode(&dt.encode(&[x]))[0];
                assert!(value == right || (value.is_nan() && right.is_nan()), "{dt:?} {x:e}");
            }
        }
    }
}
