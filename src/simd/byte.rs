//! The integers of 8 bits as element types, and what scales do to them.

use super::{Element, Simd};
use crate::tensor::DataType;

/// What results are multiplied by and then divided by, before they become integers.
///
/// The quotient is that of IEEE 754 wherever it is one of the integers' range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors {
    multiply: f32,
    divide: f32,
    /// 1/divide.
    reciprocal: f32,
    /// What is beyond saturates, once divided.
    limit: f32,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// All is in `multiply`.
    Multiply,
    /// By the reciprocal, put right twice.
    Reciprocal,
    /// In f64.
    Divide,
}

/// Between this and its reciprocal no product on the way overflows or vanishes where it matters.
const LARGEST: f32 = (1u64 << 60) as f32;

impl Factors {
    pub(crate) const NONE: Self =
        Self { multiply: 1.0, divide: 1.0, reciprocal: 1.0, limit: 0.0, how: How::Multiply };

    pub(crate) fn new(multiply: f32, divide: f32) -> Self {
        let plain = |x: f32| (1.0 / LARGEST..=LARGEST).contains(&x.abs());
        let all = Self {
            multiply,
            divide,
            reciprocal: 1.0 / divide,
            limit: divide.abs() * 1024.0,
            how: How::Divide,
        };
        if !plain(multiply) || !plain(divide) {
            all
        } else if divide.to_bits() << 9 == 0 {
            // A power of 2.
            Self { multiply: multiply * all.reciprocal, how: How::Multiply, ..all }
        } else {
            Self { how: How::Reciprocal, ..all }
        }
    }

    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn apply<S: Simd>(&self, v: S::F) -> S::F {
        // SAFETY: the caller's.
        unsafe {
            let x = S::mul(v, S::splat(self.multiply));
            let divide = S::splat(self.divide);
            match self.how {
                How::Multiply => x,
                How::Reciprocal => {
                    let reciprocal = S::splat(self.reciprocal);
                    let x = S::within(x, -self.limit, self.limit);
                    let near = S::mul(x, reciprocal);
                    let nearer = S::fma(S::fnma(near, divide, x), reciprocal, near);
                    S::fma(S::fnma(nearer, divide, x), reciprocal, nearer)
                }
                // The quotient of two f32 in f64 rounds to that in f32.
                How::Divide => S::narrow(S::wide_div(S::widen(x), S::widen(divide))),
            }
        }
    }
}

/// s8 or u8, as the numbers in it say.
#[derive(Clone, Copy)]
pub(crate) struct Byte {
    /// What makes a code a number from 0 to 255, and what that has more than the value.
    flip: u8,
    bias: f32,
    low: f32,
    high: f32,
    factors: Factors,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Element for Byte {
    const HALF: bool = true;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        let factors = Factors::NONE;
        if data_type == DataType::S8 {
            Self { flip: 0x80, bias: 128.0, low: -128.0, high: 127.0, factors }
        } else {
            Self { flip: 0, bias: 0.0, low: 0.0, high: 255.0, factors }
        }
    }
    #[inline(always)]
    fn scaled(self, factors: Factors) -> Self {
        Self { factors, ..self }
    }
    #[inline(always)]
    fn size(self) -> usize {
        1
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(self, p: *const u8, i: usize) -> S::F {
        unsafe { S::sub(S::load_bytes(p.add(i), self.flip), S::splat(self.bias)) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::F {
        unsafe { S::sub(S::load_bytes_n(p.add(i), self.flip, n), S::splat(self.bias)) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(self, p: *mut u8, i: usize, v: S::F) {
        unsafe {
            S::store_bytes(p.add(i), S::within(self.factors.apply::<S>(v), self.low, self.high))
        }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(self, p: *mut u8, i: usize, v: S::F, n: usize) {
        unsafe {
            let v = S::within(self.factors.apply::<S>(v), self.low, self.high);
            S::store_bytes_n(p.add(i), v, n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{LANES, codes, portable::Portable};

    /// Quotients are those of IEEE 754 where they are integers' neighbours, whatever the factors are.
    #[test]
    fn scaled_integers_are_those_of_the_quotient() {
        let mut state = 7u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state
        };
        let special = [0.0f32, -0.0, 1.0, 0.5, -3.0, 1e-30, 1e30, f32::MIN_POSITIVE, f32::INFINITY];
        for round in 0..20_000 {
            let small = |bits: u32| {
                f32::from_bits(bits & 0x807f_ffff | 0x3f00_0000 + (bits >> 3 & 0x0380_0000))
            };
            let (mut multiply, mut divide) = (small(next()), small(next()));
            if round % 7 == 0 {
                multiply = special[next() as usize % special.len()];
            }
            if round % 5 == 0 {
                divide = special[next() as usize % special.len()];
            }
            let mut values = [0.0f32; LANES];
            for (i, value) in values.iter_mut().enumerate() {
                // Near a tie, anywhere, or nothing sensible.
                let tie = ((next() >> 23) as f32 - 256.0 + 0.5) * divide / multiply;
                *value = match i % 4 {
                    0 => tie,
                    1 => f32::from_bits(tie.to_bits().wrapping_add(next() % 3).wrapping_sub(1)),
                    2 => f32::from_bits(next()),
                    _ => small(next()) * 50.0,
                };
            }
            let factors = Factors::new(multiply, divide);
            for (data_type, code) in
                [(DataType::S8, codes::s8_code as fn(f32) -> u8), (DataType::U8, codes::u8_code)]
            {
                let mut bytes = [0u8; LANES];
                let element = Byte::of(data_type).scaled(factors);
                // SAFETY: 16 bytes; plain code.
                unsafe { element.store::<Portable>(bytes.as_mut_ptr(), 0, values) };
                for (value, byte) in values.iter().zip(bytes) {
                    let right = code(value * multiply / divide);
                    assert_eq!(byte, right, "{value:e} * {multiply:e} / {divide:e}");
                }
            }
        }
    }
}
