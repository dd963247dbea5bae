//! A fast path for blocks of elements that are clearly right.
//!
//! It gives the same answer as [`Check::element`](super::Check) for each element, but without a
//! branch, so that the compiler vectorizes it. Other cases (infinities, NaN, overflow, errors, a
//! new worst element) are left to that function.

use super::tolerance::{Kind, Worst};
use crate::data_type::DataType;

/// Elements that are checked together.
pub(super) const BLOCK: usize = 64;

/// How many elements of a block can distinguish right from wrong, if all are finite and right, and
/// none is worse than `worst`; `None` otherwise.
pub(super) fn telling(
    kinds: (Kind, DataType),
    got: &[f64],
    want: &[f64],
    bounds: &[f64],
    worst: &Worst,
) -> Option<usize> {
    let block = Block { got, want, bounds, worst };
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor supports AVX2.
        return unsafe { telling_by_avx2(kinds, &block) };
    }
    block.telling_of(kinds)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn telling_by_avx2(kinds: (Kind, DataType), block: &Block<'_>) -> Option<usize> {
    block.telling_of(kinds)
}

struct Block<'b> {
    got: &'b [f64],
    want: &'b [f64],
    bounds: &'b [f64],
    worst: &'b Worst,
}

impl Block<'_> {
    #[inline(always)]
    fn telling_of(&self, (kind, dt): (Kind, DataType)) -> Option<usize> {
        use DataType::{Bf16, E8m0, F8E4m3, F8E5m2, F16, F32, F64, S8, S32, S64, U8};
        // Each arm makes the type a constant.
        match dt {
            F32 if kind == Kind::Rounded => self.telling(|x| f64::from(x as f32), F32),
            F32 => self.telling(|x| x, F32),
            F64 => self.telling(|x| x, F64),
            Bf16 => self.telling(|x| Bf16.round_within(x), Bf16),
            F16 => self.telling(|x| F16.round_within(x), F16),
            F8E5m2 => self.telling(|x| F8E5m2.round_within(x), F8E5m2),
            F8E4m3 => self.telling(|x| F8E4m3.round_within(x), F8E4m3),
            E8m0 => self.telling(|x| E8m0.round_within(x), E8m0),
            S32 => self.telling(|x| S32.round_within(x), S32),
            S64 => self.telling(|x| S64.round_within(x), S64),
            S8 => self.telling(|x| S8.round_within(x), S8),
            U8 => self.telling(|x| U8.round_within(x), U8),
        }
    }

    #[inline(always)]
    fn telling(&self, round: impl Fn(f64) -> f64, dt: DataType) -> Option<usize> {
        let Worst { error: worst_error, allowed: worst_allowed, .. } = *self.worst;
        let (mut plain, mut telling) = (true, 0u64);
        for ((&got, &want), &bound) in self.got.iter().zip(self.want).zip(self.bounds) {
            let (least, most) = (want - bound, want + bound);
            let (low, high) = (round(least), round(most));
            let allowed = if got > want { high - want } else { want - low };
            let allowed = if allowed > 0.0 { allowed } else { 0.0 };
            let error = (got - want).abs();
            plain &= (low <= got) & (got <= high) & (error < f64::INFINITY);
            plain &= error * worst_allowed <= worst_error * allowed;
            // A saturated integer proves nothing. For other types, the slow path handles possible overflow.
            let within = match dt.is_integer() {
                true => (least <= dt.largest() + 0.5) & (most >= dt.lowest() - 0.5),
                false => true,
            };
            plain &= match dt.is_integer() {
                true => bound < f64::INFINITY,
                false => (most <= dt.largest()) & (least >= dt.lowest()),
            };
            telling += u64::from(((low > 0.0) | (high < 0.0)) & within);
        }
        plain.then_some(telling as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Check;
    use super::*;

    const KINDS: [Kind; 7] = [
        Kind::Result,
        Kind::Double,
        Kind::Chain,
        Kind::Rounded,
        Kind::Variance,
        Kind::Mean,
        Kind::ColumnSum,
    ];
    /// Values that the fast path rejects, or almost.
    const ODD: [f64; 8] =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 1e300, -1e39, 66_000.0, 127.6];

    /// Random numbers below a limit, the same on every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9e37_79b9);
            (self.0 >> 33) % limit
        }

        /// `value`, or occasionally an odd one; never if `rare` is 0.
        fn seldom_odd(&mut self, rare: u64, value: f64) -> f64 {
            match rare > 0 && self.below(rare) == 0 {
                true => ODD[self.below(8) as usize],
                false => value,
            }
        }

        /// Results, expected values, and terms.
        fn block(&mut self, kind: Kind, dt: DataType, round: usize) -> [Vec<f64>; 3] {
            let rare = [0, 40, 4000][round % 3];
            let count = if round.is_multiple_of(5) { 1 + self.below(64) as usize } else { BLOCK };
            let mut block = [vec![], vec![], vec![]];
            for _ in 0..count {
                let size = [1.0, 1e-4, 40.0, 1e5][self.below(1 + round as u64 % 4) as usize];
                let want = (self.below(20_001) as f64 / 10_000.0 - 1.0) * size;
                let want = self.seldom_odd(rare, want);
                // The type has no sign.
                let want = if dt == DataType::E8m0 { want.abs() } else { want };
                let unit = if matches!(kind, Kind::Chain | Kind::Rounded) { 1e-7 } else { 1.0 };
                let terms = want.abs() * self.below(3) as f64 * unit;
                let terms = self.seldom_odd(rare, terms).abs();
                let off = kind.bound(want, terms) * (self.below(5) as f64 - 2.0) / 4.0;
                let got = if kind == Kind::Double { want + off } else { dt.round(want + off) };
                let got = if rare > 0 && self.below(rare) == 0 { got * 1.25 } else { got };
                let got = self.seldom_odd(rare, got);
                [got, want, terms].into_iter().zip(&mut block).for_each(|(x, all)| all.push(x));
            }
            if kind == Kind::Variance {
                block[2].clear();
            }
            block
        }
    }

    #[test]
    fn a_block_says_what_its_elements_do() {
        let mut numbers = Numbers(7);
        for dt in DataType::ALL {
            let (mut plain, mut failed) = (0, 0);
            for kind in KINDS {
                for round in 0..60 {
                    let [got, want, terms] = numbers.block(kind, dt, round);
                    let mut bounds = vec![0.0; got.len()];
                    kind.bounds(&want, &terms, &mut bounds);
                    // After an element that is worse than most, and after others.
                    for error in [0.999, 0.0, f64::INFINITY] {
                        let worst = Worst { index: 0, got: 0.0, want: 0.0, error, allowed: 1.0 };
                        let before =
                            Check { name: "", total: 0, failed: 0, worst: Some(worst), telling: 0 };
                        let (mut by_block, mut by_element) = (before, before);
                        by_block.block(0, (&got, &want, &terms), (kind, dt));
                        for i in 0..got.len() {
                            by_element.element(i, got[i], want[i], bounds[i], (kind, dt));
                        }
                        // As text, so that NaN equals NaN.
                        let (of_block, of_elements) =
                            (format!("{by_block:?}"), format!("{by_element:?}"));
                        assert_eq!(of_block, of_elements, "{kind:?} {dt:?}");
                        failed += by_element.failed;
                        let telling = telling((kind, dt), &got, &want, &bounds, &worst);
                        plain += usize::from(telling.is_some());
                    }
                }
            }
            assert!(plain > 50 && failed > 100, "{dt:?}: {plain} plain blocks, {failed} failures");
        }
    }
}
