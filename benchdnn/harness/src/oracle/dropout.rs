//! Dropout's random numbers: Philox 4x32-10, one block of four numbers at a time.

/// Determines which elements of an output are kept.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// The probability that an element is dropped.
    pub probability: f32,
    /// The seed.
    pub seed: i64,
    /// The offset; 0 for none.
    pub offset: i64,
}

impl Draw {
    /// Whether the element at this row-major index is kept.
    pub fn stays(&self, place: usize) -> bool {
        let block = place as u64 / 4 * 4;
        let (seed, offset) = (self.seed as u64, self.offset as u64);
        let number = if offset == 0 {
            // 32 bits each, the same for all four.
            let (low, key) = (block & 0xffff_ffff, seed & 0xffff_ffff);
            philox([low, low + 1, low, low + 3], [key, key])[2]
        } else {
            let halves = |value: u64| [value & 0xffff_ffff, value >> 32];
            let ([a, b], [c, d]) = (halves(offset), halves(block));
            philox([a, b, c, d], halves(seed))[place % 4]
        };
        number as f64 > f64::from(u32::MAX) * f64::from(self.probability)
    }

    /// The factor of kept elements, computed as in f32.
    pub fn factor(&self) -> f64 {
        f64::from(1.0 / (1.0 - self.probability))
    }
}

/// Ten rounds; all numbers have 32 bits.
fn philox(mut counter: [u64; 4], mut key: [u64; 2]) -> [u64; 4] {
    const MASK: u64 = 0xffff_ffff;
    for _ in 0..10 {
        let (first, second) = (counter[0] * 0xd251_1f53, counter[2] * 0xcd9e_8d57);
        counter = [
            second >> 32 ^ counter[1] ^ key[0],
            second & MASK,
            first >> 32 ^ counter[3] ^ key[1],
            first & MASK,
        ];
        key = [(key[0] + 0x9e37_79b9) & MASK, (key[1] + 0xbb67_ae85) & MASK];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors that the authors of the generator publish with it.
    #[test]
    fn philox_has_known_values() {
        let zeros = philox([0; 4], [0; 2]);
        assert_eq!(zeros, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = philox([0xffff_ffff; 4], [0xffff_ffff; 2]);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    #[test]
    fn a_share_of_the_elements_stays() {
        for (offset, slack) in [(0, 150), (77, 80)] {
            for probability in [0.25, 0.5, 0.9] {
                let draw = Draw { probability, seed: 5, offset };
                let count = (0..4000).filter(|place| draw.stays(*place)).count() as f32;
                let want = 4000.0 * (1.0 - probability);
                assert!((count - want).abs() < slack as f32, "{count}, not {want}");
            }
        }
    }
}
