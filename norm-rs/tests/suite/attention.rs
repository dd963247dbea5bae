//! Attention in plain f64 loops, for the tests of [`sdpa`](norm_rs::sdpa).

use norm_rs::sdpa::{Causal, Window};

use crate::data::numbers;

/// A problem with its numbers, in f64: queries `B x H x S x D`, keys `B x G x T x D`, values `B x G x T x E`.
pub(crate) struct Case {
    /// B, H, G, S, T, D, E.
    pub(crate) sizes: [usize; 7],
    pub(crate) causal: Causal,
    pub(crate) window: Window,
    pub(crate) scale: f64,
    pub(crate) soft_cap: f64,
    pub(crate) slopes: Option<Vec<f64>>,
    pub(crate) sinks: Option<Vec<f64>>,
    /// `B x H x S x T`; -Inf hides a key.
    pub(crate) mask: Option<Vec<f64>>,
    pub(crate) query_lengths: Option<Vec<i32>>,
    pub(crate) key_lengths: Option<Vec<i32>>,
    pub(crate) q: Vec<f64>,
    pub(crate) k: Vec<f64>,
    pub(crate) v: Vec<f64>,
}

/// The results of forward: dst, log-sum-exp, the entropy of each sequence and head.
pub(crate) struct Results {
    pub(crate) dst: Vec<f64>,
    pub(crate) sums: Vec<f64>,
    pub(crate) entropy: Vec<f64>,
}

/// The gradients of queries, keys, values and sinks.
pub(crate) struct Slopes {
    pub(crate) q: Vec<f64>,
    pub(crate) k: Vec<f64>,
    pub(crate) v: Vec<f64>,
    pub(crate) sinks: Vec<f64>,
}

/// A row of scores.
struct Row {
    /// The visible keys, with their scores and the derivatives of these with respect to the products.
    seen: Vec<(usize, f64, f64)>,
    log_sum_exp: f64,
}

impl Case {
    pub(crate) fn new(sizes: [usize; 7]) -> Self {
        let [batch, heads, groups, queries, keys, d, e] = sizes;
        let random = |seed, count| {
            let list: Vec<f32> = numbers(seed, count, -1.5, 1.5);
            list.into_iter().map(f64::from).collect::<Vec<_>>()
        };
        Self {
            sizes,
            causal: Causal::No,
            window: Window::None,
            scale: f64::from((1.0 / (d as f64).sqrt()) as f32),
            soft_cap: 0.0,
            slopes: None,
            sinks: None,
            mask: None,
            query_lengths: None,
            key_lengths: None,
            q: random(1, batch * heads * queries * d),
            k: random(2, batch * groups * keys * d),
            v: random(3, batch * groups * keys * e),
        }
    }

    fn length(lengths: Option<&Vec<i32>>, at: usize, all: usize) -> usize {
        lengths.map_or(all, |lengths| lengths[at] as usize)
    }

    /// The row indices of a query and of the first key of its head.
    fn places(&self, b: usize, h: usize, i: usize) -> (usize, usize) {
        let [_, heads, groups, queries, keys, ..] = self.sizes;
        ((b * heads + h) * queries + i, (b * groups + h / (heads / groups)) * keys)
    }

    fn is_seen(&self, b: usize, i: usize, j: usize) -> bool {
        let [_, _, _, queries, keys, ..] = self.sizes;
        let keys = Self::length(self.key_lengths.as_ref(), b, keys);
        let queries = Self::length(self.query_lengths.as_ref(), b, queries);
        let position = match self.causal {
            Causal::BottomRight => i as i64 + keys as i64 - queries as i64,
            _ => i as i64,
        };
        let (i, j) = (position, j as i64);
        let is_causal = self.causal != Causal::No || self.window != Window::None;
        let first = match self.window {
            Window::None => i64::MIN,
            Window::WithSelf(window) => i - window as i64 + 1,
            Window::BeforeSelf(window) => i - window as i64,
        };
        j < keys as i64 && (!is_causal || j <= i) && j >= first
    }

    fn row(&self, b: usize, h: usize, i: usize) -> Row {
        let [_, heads, _, queries, keys, d, _] = self.sizes;
        let (query, first) = self.places(b, h, i);
        let mut seen = Vec::new();
        let own_keys = Self::length(self.key_lengths.as_ref(), b, keys);
        let own_queries = Self::length(self.query_lengths.as_ref(), b, queries);
        let position = match self.causal {
            Causal::BottomRight => i as f64 + own_keys as f64 - own_queries as f64,
            _ => i as f64,
        };
        for j in (0..keys).filter(|j| i < own_queries && self.is_seen(b, i, *j)) {
            let product = |x: usize| self.q[query * d + x] * self.k[(first + j) * d + x];
            let mut score = self.scale * (0..d).map(product).sum::<f64>();
            let mut slope = 1.0;
            if self.soft_cap > 0.0 {
                score = self.soft_cap * (score / self.soft_cap).tanh();
                slope = 1.0 - (score / self.soft_cap).powi(2);
            }
            if let Some(slopes) = &self.slopes {
                score += slopes[h] * (j as f64 - position);
            }
            if let Some(mask) = &self.mask {
                score += mask[((b * heads + h) * queries + i) * keys + j];
            }
            if score > f64::NEG_INFINITY {
                seen.push((j, score, slope));
            }
        }
        let sink = self.sinks.as_ref().filter(|_| i < own_queries).map(|sinks| sinks[h]);
        let scores = || seen.iter().map(|(_, score, _)| *score).chain(sink);
        let largest = scores().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores().map(|score| (score - largest).exp()).sum();
        let log_sum_exp = if sum > 0.0 { largest + sum.ln() } else { f64::NEG_INFINITY };
        Row { seen, log_sum_exp }
    }

    pub(crate) fn forward(&self) -> Results {
        let [batch, heads, _, queries, _, _, e] = self.sizes;
        let mut results = Results { dst: Vec::new(), sums: Vec::new(), entropy: Vec::new() };
        for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
            let mut entropy = 0.0;
            for i in 0..queries {
                let (_, first) = self.places(b, h, i);
                let row = self.row(b, h, i);
                let weights: Vec<_> = (row.seen.iter())
                    .map(|(j, score, _)| (*j, (score - row.log_sum_exp).exp()))
                    .collect();
                let value =
                    |x: usize| weights.iter().map(|(j, p)| p * self.v[(first + j) * e + x]).sum();
                results.dst.extend((0..e).map(value).map(|x: f64| x));
                entropy -= weights.iter().map(|(_, p)| p * p.max(1e-300).ln()).sum::<f64>();
                results.sums.push(row.log_sum_exp);
            }
            let own = Self::length(self.query_lengths.as_ref(), b, queries);
            results.entropy.push(entropy / own.max(1) as f64);
        }
        results
    }

    /// The gradients of the sum of `diff_dst * dst`.
    pub(crate) fn backward(&self, diff_dst: &[f64]) -> Slopes {
        let [batch, heads, _, queries, _, d, e] = self.sizes;
        let dst = self.forward().dst;
        let zeros = |like: &[f64]| vec![0.0; like.len()];
        let mut slopes = Slopes {
            q: zeros(&self.q),
            k: zeros(&self.k),
            v: zeros(&self.v),
            sinks: vec![0.0; heads],
        };
        for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
            for i in 0..queries {
                let (query, first) = self.places(b, h, i);
                let row = self.row(b, h, i);
                let diff = &diff_dst[query * e..][..e];
                let delta: f64 = diff.iter().zip(&dst[query * e..]).map(|(a, b)| a * b).sum();
                for &(j, score, slope) in &row.seen {
                    let p = (score - row.log_sum_exp).exp();
                    let key = first + j;
                    let value = &self.v[key * e..][..e];
                    let of_p: f64 = diff.iter().zip(value).map(|(a, b)| a * b).sum();
                    let of_score = self.scale * p * (of_p - delta) * slope;
                    (0..e).for_each(|x| slopes.v[key * e + x] += p * diff[x]);
                    for x in 0..d {
                        slopes.q[query * d + x] += of_score * self.k[key * d + x];
                        slopes.k[key * d + x] += of_score * self.q[query * d + x];
                    }
                }
                if let Some(sinks) = &self.sinks
                    && row.log_sum_exp > f64::NEG_INFINITY
                {
                    slopes.sinks[h] -= (sinks[h] - row.log_sum_exp).exp() * delta;
                }
            }
        }
        slopes
    }
}

/// The formulas of the gradients against differences of the forward pass.
#[test]
fn gradients_are_differences() {
    let mut case = Case::new([1, 4, 2, 5, 7, 3, 2]);
    case.causal = Causal::BottomRight;
    case.window = Window::WithSelf(4);
    case.soft_cap = 0.7;
    case.slopes = Some(vec![0.5, 0.25, 0.125, 1.0]);
    case.sinks = Some(vec![0.3, -0.2, 0.1, 1.0]);
    let diff: Vec<f64> = (0..4 * 5 * 2).map(|i| ((i * 7 % 11) as f64 - 5.0) / 4.0).collect();
    let slopes = case.backward(&diff);
    let loss =
        |case: &Case| -> f64 { case.forward().dst.iter().zip(&diff).map(|(a, b)| a * b).sum() };
    let step = 1e-5;
    type Place = fn(&mut Case) -> &mut Vec<f64>;
    let sinks: Place = |case| case.sinks.as_mut().unwrap();
    let places: [(Place, &[f64]); 4] = [
        (|case| &mut case.q, &slopes.q),
        (|case| &mut case.k, &slopes.k),
        (|case| &mut case.v, &slopes.v),
        (sinks, &slopes.sinks),
    ];
    for (place, expected) in places {
        for (at, expected) in expected.iter().enumerate() {
            place(&mut case)[at] += step;
            let above = loss(&case);
            place(&mut case)[at] -= 2.0 * step;
            let found = (above - loss(&case)) / (2.0 * step);
            place(&mut case)[at] += step;
            assert!((found - expected).abs() < 1e-8, "{found} is not {expected}");
        }
    }
}
