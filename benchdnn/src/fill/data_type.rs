//! The element types, as sets of values within f64.

use half::{bf16, f16};
use rayon::prelude::*;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// IEEE 754 binary32.
    F32,
    /// The upper half of an f32: 8 significant bits and the range of f32.
    Bf16,
    /// IEEE 754 binary16: 11 significant bits, 2^-24 to 65504.
    F16,
}

/// Elements that one thread converts at a time.
const CHUNK: usize = 64 * 1024;

impl DataType {
    /// All of them.
    pub const ALL: [DataType; 3] = [DataType::F32, DataType::Bf16, DataType::F16];

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            DataType::F32 => 4,
            DataType::Bf16 | DataType::F16 => 2,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            DataType::F32 => "f32",
            DataType::Bf16 => "bf16",
            DataType::F16 => "f16",
        }
    }

    /// Bits of the significand behind the leading one.
    const fn fraction_bits(self) -> i32 {
        match self {
            DataType::F32 => 23,
            DataType::Bf16 => 7,
            DataType::F16 => 10,
        }
    }

    /// Exponent of the smallest normal number.
    const fn lowest_exponent(self) -> i32 {
        match self {
            DataType::F32 | DataType::Bf16 => -126,
            DataType::F16 => -14,
        }
    }

    /// The largest finite value.
    pub const fn largest(self) -> f64 {
        match self {
            DataType::F32 => f32::MAX as f64,
            DataType::Bf16 => 255.0 / 128.0 * power_of_two(127),
            DataType::F16 => 65504.0,
        }
    }

    /// The distance between neighbours in the binade of `|value|`, as if the type's exponents had
    /// no upper end; the smallest subnormal below the normal range. NaN for infinities and NaN.
    #[inline]
    pub fn ulp(self, value: f64) -> f64 {
        let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        if exponent == 1024 {
            return f64::NAN;
        }
        power_of_two(exponent.max(self.lowest_exponent()) - self.fraction_bits())
    }

    /// The nearest value of the type, the even one of two; infinite past the largest.
    #[inline]
    pub fn round(self, value: f64) -> f64 {
        if self == DataType::F32 {
            return f64::from(value as f32);
        }
        // Beyond this no type has finite values, and the addition below could overflow.
        if value.is_nan() || value.abs() >= power_of_two(130) {
            return value * f64::INFINITY; // NaN, or the infinity of the same sign
        }
        // Adding 1.5 * 2^52 units leaves no bits below the unit: the addition itself rounds, to
        // nearest even.
        let shifter = 1.5 * power_of_two(52) * self.ulp(value);
        let rounded = ((value + shifter) - shifter).copysign(value);
        if rounded.abs() > self.largest() { f64::INFINITY.copysign(value) } else { rounded }
    }

    /// The values, rounded to the type, as the bytes that a program has in memory.
    pub fn encode(self, values: &[f64]) -> Vec<u8> {
        let mut bytes = vec![0; values.len() * self.size()];
        let chunks = bytes.par_chunks_mut(CHUNK * self.size()).zip(values.par_chunks(CHUNK));
        chunks.for_each(|(bytes, values)| match self {
            DataType::F32 => convert(values, bytes, |value| (value as f32).to_ne_bytes()),
            DataType::Bf16 => convert(values, bytes, |value| {
                bf16::from_f32(self.round(value) as f32).to_ne_bytes()
            }),
            DataType::F16 => convert(values, bytes, |value| {
                f16::from_f32(self.round(value) as f32).to_ne_bytes()
            }),
        });
        bytes
    }

    /// The values that the bytes stand for.
    ///
    /// # Panics
    /// If the bytes are not a whole number of elements.
    pub fn decode(self, bytes: &[u8]) -> Vec<f64> {
        assert_eq!(bytes.len() % self.size(), 0, "whole elements of {}", self.name());
        let mut values = vec![0.0; bytes.len() / self.size()];
        let chunks = values.par_chunks_mut(CHUNK).zip(bytes.par_chunks(CHUNK * self.size()));
        chunks.for_each(|(values, bytes)| match self {
            DataType::F32 => read(bytes, values, |b| f64::from(f32::from_ne_bytes(b))),
            DataType::Bf16 => read(bytes, values, |b| f64::from(bf16::from_ne_bytes(b).to_f32())),
            DataType::F16 => read(bytes, values, |b| f64::from(f16::from_ne_bytes(b).to_f32())),
        });
        values
    }
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
