//! Test data: the element types as f64, reproducible numbers, and comparison within an error
//! bound.

use norm_rs::layer_normalization::Flags;
use norm_rs::{DataType, Element, Engine, Float, Memory, MemoryDesc, bf16, f16};

/// An element type that the oracle can read.
pub(crate) trait Number: Float {
    /// Fraction bits of the significand, and the exponent of the smallest subnormal.
    const FRACTION: i32;
    const SMALLEST: i32;
    fn of(x: f64) -> Self;
    fn to(self) -> f64;
    fn bits(self) -> u64;

    /// The distance between adjacent numbers of this type at `x`.
    fn ulp(x: f64) -> f64 {
        let exponent = if x == 0.0 { Self::SMALLEST } else { x.abs().log2().floor() as i32 };
        2f64.powi((exponent - Self::FRACTION).max(Self::SMALLEST))
    }
}

macro_rules! number {
    ($type:ty, $fraction:literal, $smallest:literal, $of:expr, $to:expr, $bits:expr) => {
        impl Number for $type {
            const FRACTION: i32 = $fraction;
            const SMALLEST: i32 = $smallest;
            fn of(x: f64) -> Self {
                $of(x)
            }
            fn to(self) -> f64 {
                $to(self)
            }
            fn bits(self) -> u64 {
                $bits(self).into()
            }
        }
    };
}
number!(f64, 52, -1074, |x| x, |x| x, f64::to_bits);
number!(f32, 23, -149, |x| x as f32, f64::from, f32::to_bits);
number!(bf16, 7, -133, bf16::from_f64, bf16::to_f64, bf16::to_bits);
number!(f16, 10, -24, f16::from_f64, f16::to_f64, f16::to_bits);

/// Numbers between `low` and `high`, reproducible by seed (SplitMix64).
pub(crate) fn numbers<T: Number>(seed: u64, count: usize, low: f64, high: f64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        T::of(low + (high - low) * unit)
    };
    std::iter::repeat_with(next).take(count).collect()
}

pub(crate) fn f64s<T: Number>(elements: &[T]) -> Vec<f64> {
    elements.iter().map(|x| x.to()).collect()
}

pub(crate) fn bits<T: Number>(elements: &[T]) -> Vec<u64> {
    elements.iter().map(|x| x.bits()).collect()
}

/// Asserts that each element matches its expected value within one ulp of its type plus a bound.
#[track_caller]
pub(crate) fn assert_close<T: Number>(what: &str, got: &[T], expected: &[(f64, f64)]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, &(value, bound))) in got.iter().zip(expected).enumerate() {
        let got = got.to();
        let allowed = T::ulp(value.abs().max(got.abs())) + bound;
        assert!(
            (got - value).abs() <= allowed,
            "{what}[{i}] is {got:e} instead of {value:e}, off by {:e} where {allowed:e} is allowed",
            (got - value).abs()
        );
    }
}

/// Every combination of flags.
pub(crate) fn flag_sets() -> impl Iterator<Item = Flags> {
    let all = [Flags::GLOBAL_STATS, Flags::SCALE, Flags::SHIFT, Flags::RMS_NORM];
    (0..16).map(move |set| {
        let chosen = all.iter().enumerate().filter(move |(i, _)| set >> i & 1 == 1);
        chosen.fold(Flags::NONE, |flags, (_, &flag)| flags | flag)
    })
}

/// A dense descriptor of a type.
pub(crate) fn dense<T: Element>(dims: &[usize]) -> MemoryDesc {
    MemoryDesc::dense(dims, T::DATA_TYPE).unwrap()
}

/// A dense descriptor of statistics.
pub(crate) fn stats_desc(dims: &[usize]) -> MemoryDesc {
    MemoryDesc::dense(dims, DataType::F32).unwrap()
}

/// Dense memory with a copy of some elements.
pub(crate) fn memory<T: Element>(
    engine: &Engine,
    dims: &[usize],
    elements: &[T],
) -> Memory<'static> {
    let mut memory = Memory::new(engine, &dense::<T>(dims)).unwrap();
    memory.copy_from_slice(elements).unwrap();
    memory
}

/// The elements of a memory.
pub(crate) fn elements<T: Element>(memory: &Memory<'_>) -> Vec<T> {
    memory.as_slice().unwrap().to_vec()
}
