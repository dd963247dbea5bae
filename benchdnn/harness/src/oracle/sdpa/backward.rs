//! The gradients of attention, from the logarithms and dst that forward saved.
//!
//! ```text
//! p = exp(s - logarithm), delta = sum(diff_dst * dst), g = diff_dst.v
//! diff_v = sum(p * diff_dst)                    over heads and queries
//! ds     = p * (g - delta) * (1 - (s/c)^2)
//! diff_q = scale * sum(ds * k), diff_k = scale * sum(ds * q)
//! diff_sink = -sum(exp(sink - logarithm) * delta)
//! ```
//!
//! Every product is bounded by the magnitudes of what went into it, as forward.

use super::{Attention, DROPPED, HALF_ULP_OF_BF16, SMALLEST, Scored, Shape, dot, transposed};
use crate::parallel;

/// The inputs of backward besides those of forward.
#[derive(Clone, Copy, Debug)]
pub struct Saved<'d> {
    /// B x H x S x E.
    pub diff_dst: &'d [f64],
    /// Forward's result, likewise.
    pub dst: &'d [f64],
    /// B x H x S.
    pub logarithms: &'d [f64],
}

/// Results, each with bounds.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    /// B x H x S x D.
    pub queries: [Vec<f64>; 2],
    /// B x G x D x T.
    pub keys: [Vec<f64>; 2],
    /// B x G x T x E.
    pub values: [Vec<f64>; 2],
    /// H.
    pub sinks: [Vec<f64>; 2],
    /// The dimensions of the mask; empty without one.
    pub mask: [Vec<f64>; 2],
}

/// Sums with the magnitudes of their terms.
#[derive(Clone, Debug)]
struct Sums([Vec<f64>; 2]);

impl Sums {
    fn new(count: usize) -> Sums {
        Sums([vec![0.0; count], vec![SMALLEST; count]])
    }

    /// Adds a row times a factor, whose error is `doubt`.
    fn add(&mut self, row: usize, factor: f64, doubt: f64, values: &[f64]) {
        let range = row * values.len()..(row + 1) * values.len();
        let [sums, bounds] = &mut self.0;
        let places = sums[range.clone()].iter_mut().zip(&mut bounds[range]);
        for ((sum, bound), value) in places.zip(values) {
            *sum += factor * value;
            *bound += doubt * value.abs();
        }
    }
}

/// The contributions of a query.
struct Query<'d> {
    q: &'d [f64],
    diff_dst: &'d [f64],
    logarithm: f64,
    /// The sum of diff_dst * dst, and of its magnitudes.
    delta: [f64; 2],
}

/// The weight of a key and dS, each with its error bound.
struct Terms {
    p: f64,
    p_doubt: f64,
    ds: f64,
    ds_doubt: f64,
}

impl Query<'_> {
    fn terms(&self, one: &Scored, value: &[f64], rounding: f64, bf16: f64) -> Terms {
        let p = (one.score - self.logarithm).exp();
        let [g, g_size] = dot(self.diff_dst, value);
        let size = one.size + self.logarithm.abs() + (self.logarithm - one.score).abs();
        let doubt = if p < DROPPED { 1.0 } else { rounding * (1.0 + size) };
        let ds = p * (g - self.delta[0]) * one.slope;
        Terms {
            p,
            p_doubt: p * (doubt + bf16),
            ds,
            ds_doubt: p * (g_size + self.delta[1]) * doubt + ds.abs() * bf16,
        }
    }
}

/// The gradients of a group of heads.
struct Group {
    queries: Sums,
    keys: Sums,
    values: Sums,
    sinks: Sums,
    /// For each score: the element of the mask, its gradient and the error bound.
    mask: Vec<(usize, f64, f64)>,
}

/// Computes the gradients.
pub fn backward(attention: &Attention<'_>, saved: Saved<'_>) -> Gradients {
    let shape = attention.shape;
    let Shape { sequences, heads, groups, .. } = shape;
    let mut all = Gradients::default();
    let mut sinks = Sums::new(heads);
    let of_group = |group, _| of_group(attention, saved, group);
    let parts: Vec<Group> = parallel::map(0..sequences * groups, 1, &of_group);
    for (group, one) in parts.iter().enumerate() {
        let first = group % groups.max(1) * shape.sharing();
        for i in [0, 1] {
            all.queries[i].extend(&one.queries.0[i]);
            all.keys[i].extend(transposed(&one.keys.0[i], shape.keys, shape.head));
            all.values[i].extend(&one.values.0[i]);
            let places = sinks.0[i][first..].iter_mut().zip(&one.sinks.0[i]);
            places.for_each(|(sum, own)| *sum += own);
        }
    }
    all.sinks = sinks.0;
    if let Some(mask) = attention.mask {
        let mut sums = Sums::new(mask.dims.iter().product());
        for &(place, gradient, doubt) in parts.iter().flat_map(|one| &one.mask) {
            sums.add(place, 1.0, 0.0, &[gradient]);
            sums.0[1][place] += doubt;
        }
        all.mask = sums.0;
    }
    all
}

fn of_group(attention: &Attention<'_>, saved: Saved<'_>, group: usize) -> Group {
    let Shape { heads, groups, queries, keys: count, head: length, values: size, .. } =
        attention.shape;
    let sharing = attention.shape.sharing();
    let (keys, values) = (attention.keys_of(group), attention.values_of(group));
    let mut sums = Group {
        queries: Sums::new(sharing * queries * length),
        keys: Sums::new(count * length),
        values: Sums::new(count * size),
        sinks: Sums::new(sharing),
        mask: Vec::new(),
    };
    let bf16 = if attention.rules.bf16 { HALF_ULP_OF_BF16 } else { 0.0 };
    let scale = attention.rules.scale;
    // Of sums over keys, and of sums over heads and queries.
    let over_keys = Attention::rounding(count);
    let over_queries = Attention::rounding(sharing * queries);
    let rounding = over_keys.max(over_queries);
    let sequence = group / groups;
    let mut mask_scores = Vec::new();
    for (h, i) in (0..sharing).flat_map(|h| (0..queries).map(move |i| (h, i))) {
        if i >= attention.query_count(sequence) {
            continue;
        }
        let head = group % groups * sharing + h;
        let at = (sequence * heads + head) * queries + i;
        let diff_dst = &saved.diff_dst[at * size..(at + 1) * size];
        let query = Query {
            q: &attention.queries[at * length..(at + 1) * length],
            diff_dst,
            logarithm: saved.logarithms[at],
            delta: dot(diff_dst, &saved.dst[at * size..(at + 1) * size]),
        };
        if query.logarithm == f64::NEG_INFINITY {
            continue;
        }
        for one in attention.scored([sequence, head, i], &keys) {
            let j = one.key;
            let value = &values[j * size..(j + 1) * size];
            let Terms { p, p_doubt, ds, ds_doubt } = query.terms(&one, value, rounding, bf16);
            sums.values.add(j, p, p_doubt, query.diff_dst);
            if let Some(mask) = attention.mask {
                // Before the soft cap and without rounding to bf16.
                let plain = Scored { slope: 1.0, ..one };
                let own = query.terms(&plain, value, rounding, 0.0);
                mask_scores.push((mask.place([sequence, head, i, j]), own.ds, own.ds_doubt));
            }
            let (ds, doubt) = (scale * ds, scale.abs() * ds_doubt);
            sums.queries.add(h * queries + i, ds, doubt, &keys[j * length..(j + 1) * length]);
            sums.keys.add(j, ds, doubt, query.q);
        }
        if let Some(sink) = attention.sinks.get(head) {
            let p = (sink - query.logarithm).exp();
            let size = 1.0 + sink.abs() + 2.0 * query.logarithm.abs();
            let rounding = Attention::rounding(attention.shape.sequences * queries);
            let doubt = if p < DROPPED { 1.0 } else { rounding * size };
            sums.sinks.add(h, -p * query.delta[0], p * query.delta[1] * doubt, &[1.0]);
        }
    }
    sums.mask = mask_scores;
    sums
}
