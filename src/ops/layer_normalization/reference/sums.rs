//! Sums in the order that `simd::loops` documents, one lane at a time.

pub(super) use crate::rows::{halve, plain_fold as fold};
use crate::simd::{BLOCK, LANES};

/// The f64 terms summed in the order of `simd::fold`, one lane at a time.
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
