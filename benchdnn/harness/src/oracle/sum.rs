//! Accurate f64 sums of any length.
//!
//! Pairwise summation (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2):
//! the error grows with the logarithm of the count, so 2^25 terms lose about 5 bits of the 53. The
//! tolerances are 2^-22 or wider, so this suffices.

/// Terms that are added sequentially, in [`LANES`] independent sums.
const BLOCK: usize = 512;
/// Independent sums within a block, which hide the latency of additions.
const LANES: usize = 8;

/// `K` sums over `0..count`, where `term(i)` gives the i-th term of each.
pub(super) fn pairwise<const K: usize>(
    count: usize,
    term: &impl Fn(usize) -> [f64; K],
) -> [f64; K] {
    range(0, count, term)
}

fn range<const K: usize>(from: usize, to: usize, term: &impl Fn(usize) -> [f64; K]) -> [f64; K] {
    if to - from <= BLOCK {
        return block(from, to, term);
    }
    // The halves consist of whole blocks, so only the last block is partial.
    let middle = from + ((to - from) / 2).next_multiple_of(BLOCK);
    let (left, right) = (range(from, middle, term), range(middle, to, term));
    std::array::from_fn(|k| left[k] + right[k])
}

#[inline]
fn block<const K: usize>(from: usize, to: usize, term: &impl Fn(usize) -> [f64; K]) -> [f64; K] {
    let mut lanes = [[0.0; K]; LANES];
    let add = |lane: &mut [f64; K], i: usize| {
        for (sum, term) in lane.iter_mut().zip(term(i)) {
            *sum += term;
        }
    };
    let whole = from + (to - from) / LANES * LANES;
    for start in (from..whole).step_by(LANES) {
        for (lane, sums) in lanes.iter_mut().enumerate() {
            add(sums, start + lane);
        }
    }
    for i in whole..to {
        add(&mut lanes[i - whole], i);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    std::array::from_fn(|k| ((a[k] + e[k]) + (c[k] + g[k])) + ((b[k] + f[k]) + (d[k] + h[k])))
}

#[cfg(test)]
mod tests {
    use super::pairwise;

    #[test]
    fn sums_every_term_once_at_every_length() {
        for count in (0..1100).chain([4095, 4096, 4097, 100_003]) {
            let [sum, squares] = pairwise(count, &|i| [i as f64, (i * i) as f64]);
            let n = count as f64;
            let expected = if count == 0 { 0.0 } else { n * (n - 1.0) / 2.0 };
            assert_eq!(sum, expected, "{count} terms");
            let expected = (0..count as u64).map(|i| i * i).sum::<u64>() as f64;
            assert_eq!(squares, expected, "{count} squares");
        }
    }

    #[test]
    fn loses_no_more_than_a_few_bits_of_a_long_sum() {
        // 0.1 is not representable; a running sum of 2^24 of them is off by 1e-9 relative.
        let count = 1 << 24;
        let [sum] = pairwise(count, &|_| [0.1]);
        let error = (sum / (0.1 * count as f64) - 1.0).abs();
        assert!(error < 1e-14, "{error:e}");
    }
}
