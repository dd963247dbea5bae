//! Sums in the order that `simd::loops` documents, one lane at a time.

use crate::simd::{BLOCK, CHAIN, GROUP, LANES};

/// `simd::fold`, one lane at a time: the sum of `a*b` over `(a, b) = terms(col)`.
pub(super) fn fold(cols: usize, terms: impl Fn(usize) -> (f32, f32)) -> f64 {
    let mut total = 0.0;
    for block in (0..cols).step_by(BLOCK) {
        let block_end = cols.min(block + BLOCK);
        let mut wide = [0.0f64; LANES];
        for group in (block..block_end).step_by(GROUP) {
            let mut chains = [[0.0f32; LANES]; GROUP / LANES / CHAIN];
            for col in group..block_end.min(group + GROUP) {
                let (vector, lane) = ((col - group) / LANES, (col - group) % LANES);
                let (a, b) = terms(col);
                let sum = &mut chains[vector / CHAIN][lane];
                *sum = a.mul_add(b, *sum);
            }
            for lane in 0..LANES {
                let [a, b, c, d] = chains.map(|chain| chain[lane]);
                wide[lane] += f64::from((a + b) + (c + d));
            }
        }
        total += halve(wide);
    }
    total
}

/// The terms in f64 of `simd::fold`, one lane at a time.
pub(super) fn fold_f64(cols: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut total = 0.0;
    for block in (0..cols).step_by(BLOCK) {
        let mut sums = [0.0f64; LANES];
        for col in block..cols.min(block + BLOCK) {
            sums[(col - block) % LANES] += term(col);
        }
        total += halve(sums);
    }
    total
}

/// The sum of 16 lanes, by halves.
pub(super) fn halve(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}
