//! Pseudo-random bits: SplitMix64 (Steele, Lea and Flood 2014), a counter and a hash. Each row has
//! its own stream, so that filling is parallel and reproducible.

use crate::data_type::DataType;

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(in crate::fill) struct Generator {
    state: u64,
}

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Generator {
    /// The stream with number `index` of a seed.
    pub(in crate::fill) fn new(seed: u64, index: usize) -> Self {
        Generator { state: mix(mix(seed) ^ (index as u64).wrapping_mul(0xd1b5_4a32_d192_ed03)) }
    }

    /// 64 random bits.
    pub(in crate::fill) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `count`, which is below 2^32.
    pub(in crate::fill) fn below(&mut self, count: u64) -> u64 {
        ((self.bits() >> 32) * count) >> 32
    }

    /// A number from 0 to 1 in steps of 2^-16; for f64, a number that f32 does not represent.
    pub(in crate::fill) fn fraction(&mut self, dt: DataType) -> f64 {
        const STEP: f64 = 1.0 / 65536.0;
        let rest = if dt == DataType::F64 { self.below(1 << 16) as f64 * STEP } else { 0.0 };
        (self.below(1 << 16) as f64 + rest * STEP) * STEP
    }

    /// Close to a normal distribution of mean 0 and deviation 1, within +-3.5: the sum of four
    /// uniform numbers.
    pub(in crate::fill) fn normal(&mut self) -> f64 {
        let bits = self.bits();
        let sum: u64 = (0..4).map(|i| (bits >> (16 * i)) & 0xffff).sum();
        // Four uniform numbers on 0..65536 have mean 131070 and deviation 65536/sqrt(3).
        (sum as f64 - 131_070.0) * (1.732_050_807_568_877_2 / 65536.0)
    }
}
