//! Attention forward: dst, the logarithm of the sum, and the entropy.
//!
//! With `u` half an ulp, a score of magnitudes `A` is off by at most `c*u*A`, with `c` of
//! [`Attention::rounding`], and its weight in proportion; so is the sum of weights. dst is off by
//! `c*u*(sum(p*|v|*(1 + A)) + sum(p*A)*sum(p*|v|))`. Weights that may be dropped count in full.

use super::{Attention, DROPPED, HALF_ULP, HALF_ULP_OF_BF16, SMALLEST, Shape};
use crate::parallel;

/// Results, each with bounds.
#[derive(Clone, Debug, Default)]
pub struct Forward {
    /// B x H x S x E.
    pub dst: [Vec<f64>; 2],
    /// B x H x S: the logarithms of the sums of exp(s).
    pub logarithms: [Vec<f64>; 2],
    /// B x H: the mean entropies of the weights.
    pub entropies: [Vec<f64>; 2],
}

/// The weights of one query.
struct Row {
    /// Key, weight, magnitude of the score.
    weights: Vec<(usize, f64, f64)>,
    /// The logarithm of the sum.
    logarithm: f64,
    /// Sum of weights times magnitudes.
    size: f64,
    /// Sum of the weights that may be dropped.
    dropped: f64,
}

impl Row {
    fn of(attention: &Attention<'_>, at: [usize; 3], keys: &[f64]) -> Row {
        let scored = attention.scored(at, keys);
        let sink = attention.sinks.get(at[1]).copied().unwrap_or(f64::NEG_INFINITY);
        let max = scored.iter().fold(sink, |max, one| max.max(one.score));
        let mut row =
            Row { weights: Vec::new(), logarithm: f64::NEG_INFINITY, size: 0.0, dropped: 0.0 };
        if scored.is_empty() && sink == f64::NEG_INFINITY {
            return row;
        }
        let sum: f64 = scored.iter().map(|one| (one.score - max).exp()).sum();
        let sum = sum + (sink - max).exp();
        row.logarithm = max + sum.ln();
        for one in &scored {
            let part = (one.score - max).exp();
            let (weight, size) = (part / sum, one.size + (max - one.score));
            row.size += weight * size;
            if weight < DROPPED {
                row.dropped += weight;
            }
            row.weights.push((one.key, weight, size));
        }
        row
    }

    /// The row of dst, and its bounds.
    fn output(&self, attention: &Attention<'_>, values: &[f64]) -> [Vec<f64>; 2] {
        let size = attention.shape.values;
        let (mut dst, mut plain) = (vec![0.0; size], vec![0.0; size]);
        let (mut sized, mut dropped) = (vec![0.0; size], vec![0.0; size]);
        for &(key, weight, magnitude) in &self.weights {
            let v = &values[key * size..(key + 1) * size];
            let more = weight * (1.0 + magnitude);
            for (e, v) in v.iter().enumerate() {
                dst[e] += weight * v;
                plain[e] += weight * v.abs();
                sized[e] += more * v.abs();
            }
            if weight < DROPPED {
                v.iter().zip(&mut dropped).for_each(|(v, sum)| *sum += weight * v.abs());
            }
        }
        let rounding = Attention::rounding(attention.shape.keys);
        let bf16 = if attention.rules.bf16 { HALF_ULP_OF_BF16 } else { 0.0 };
        let bound = |e: usize| {
            rounding * (sized[e] + self.size * plain[e])
                + bf16 * plain[e]
                + dropped[e]
                + self.dropped * dst[e].abs()
                + SMALLEST
        };
        let bounds = (0..size).map(bound).collect();
        [dst, bounds]
    }

    /// The bound of the logarithm. Scores are chains of D; the sum has 16 lanes, and blocks are joined.
    fn logarithm_bound(&self, shape: &Shape) -> f64 {
        if self.logarithm == f64::NEG_INFINITY {
            return 0.0;
        }
        let chain = (shape.head + 8) as f64 * self.size;
        let sums = 32.0 + shape.keys as f64 / 64.0;
        HALF_ULP * (chain + sums + 4.0 * self.logarithm.abs()) + 2.0 * self.dropped + SMALLEST
    }

    /// The entropy and its bound.
    fn entropy(&self, shape: &Shape) -> (f64, f64) {
        let logs = || self.weights.iter().filter(|one| one.1 > 0.0);
        let entropy: f64 = -logs().map(|(_, p, _)| p * p.ln()).sum::<f64>();
        let (mut terms, mut dropped) = (0.0, 0.0);
        for &(_, p, size) in logs() {
            let log = p.ln().abs();
            terms += p * (1.0 + size + self.size) * (1.0 + log + entropy);
            if p < DROPPED {
                dropped += p * (1.0 + log + entropy);
            }
        }
        (entropy, Attention::rounding(shape.keys) * terms + dropped)
    }
}

/// Computes attention.
pub fn forward(attention: &Attention<'_>) -> Forward {
    let Shape { sequences, groups, .. } = attention.shape;
    let of_group = |group, _| of_group(attention, group);
    let parts: Vec<Forward> = parallel::map(0..sequences * groups, 1, &of_group);
    let mut all = Forward::default();
    for one in &parts {
        for i in [0, 1] {
            all.dst[i].extend(&one.dst[i]);
            all.logarithms[i].extend(&one.logarithms[i]);
            all.entropies[i].extend(&one.entropies[i]);
        }
    }
    all
}

/// The results of the heads that share keys.
fn of_group(attention: &Attention<'_>, group: usize) -> Forward {
    let shape = attention.shape;
    let Shape { groups, queries, values: size, .. } = shape;
    let rows = shape.sharing() * queries;
    let mut all = Forward {
        dst: [vec![0.0; rows * size], vec![0.0; rows * size]],
        logarithms: [vec![f64::NEG_INFINITY; rows], vec![0.0; rows]],
        entropies: [vec![0.0; shape.sharing()], vec![0.0; shape.sharing()]],
    };
    let (keys, values) = (attention.keys_of(group), attention.values_of(group));
    let sequence = group / groups;
    let count = attention.query_count(sequence);
    for h in 0..shape.sharing() {
        let head = group % groups * shape.sharing() + h;
        let (mut entropy, mut entropy_bound) = (0.0, 0.0);
        for query in 0..count {
            let row = Row::of(attention, [sequence, head, query], &keys);
            let at = h * queries + query;
            for (all, one) in all.dst.iter_mut().zip(row.output(attention, values)) {
                all[at * size..(at + 1) * size].copy_from_slice(&one);
            }
            all.logarithms[0][at] = row.logarithm;
            all.logarithms[1][at] = row.logarithm_bound(&shape);
            let (own, bound) = row.entropy(&shape);
            entropy += own;
            entropy_bound += bound;
        }
        let mean = 1.0 / count.max(1) as f64;
        all.entropies[0][h] = entropy * mean;
        // The sum over queries has one rounding for each.
        let sum = (8 + count) as f64 * HALF_ULP * entropy;
        all.entropies[1][h] = (entropy_bound + sum) * mean + SMALLEST;
    }
    all
}
