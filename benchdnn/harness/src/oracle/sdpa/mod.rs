//! Scaled dot-product attention in f64, head by head and query by query.
//!
//! ```text
//! s    = scale * q.k;  s = c*tanh(s/c);  s += slope*(j - position);  s += mask
//! dst  = sum(v * exp(s - m)) / sum(exp(s - m))      over the keys that the query sees
//! ```
//!
//! `forward` and `backward` have the results and their bounds. A bound is a sum of the magnitudes
//! of all terms, times the rounding of one: an error of a score changes its weight in proportion.

mod backward;
mod forward;

pub use backward::{Gradients, Saved, backward};
pub use forward::{Forward, forward};

use std::ops::Range;

/// Half an ulp of f32, relative to the value.
const HALF_ULP: f64 = 1.0 / 16_777_216.0;
/// The same for bf16, to which weights are rounded before they are multiplied.
const HALF_ULP_OF_BF16: f64 = 1.0 / 256.0;
/// Weights below may count as 0: twice 2^-40.
const DROPPED: f64 = 1.0 / 549_755_813_888.0;
/// The smallest f32; results below the normal numbers have its spacing.
const SMALLEST: f64 = f32::from_bits(1) as f64;

/// Sizes of the tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// B.
    pub sequences: usize,
    /// H: heads of queries.
    pub heads: usize,
    /// G: heads of keys and values.
    pub groups: usize,
    /// S.
    pub queries: usize,
    /// T.
    pub keys: usize,
    /// D: the length of a head.
    pub head: usize,
    /// E: the length of a head of values.
    pub values: usize,
}

impl Shape {
    /// The number of query heads that share a head of keys.
    pub fn sharing(&self) -> usize {
        self.heads / self.groups.max(1)
    }
}

/// How many preceding keys a query sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Window {
    /// All of them.
    #[default]
    None,
    /// This many, including its own.
    WithSelf(usize),
    /// This many besides its own.
    BeforeSelf(usize),
}

/// The parameters of the computation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rules {
    /// The factor of the scores.
    pub scale: f64,
    /// The limit of scores; 0 for none.
    pub soft_cap: f64,
    /// Whether keys after the query's position are hidden.
    pub causal: bool,
    /// Whether the last query is at the position of the last key; otherwise the first query is at that of the first
    /// key.
    pub bottom_right: bool,
    /// The visible keys before the query.
    pub window: Window,
    /// Keys below this index are in every window.
    pub first_keys: usize,
    /// Whether weights are rounded to bf16 before they are multiplied.
    pub bf16: bool,
}

/// A tensor that is added to scores, or hides keys.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'d> {
    /// Its elements.
    pub values: &'d [f64],
    /// Its dimensions: 1, or those of the scores.
    pub dims: [usize; 4],
    /// Whether 0 hides a key; it is added otherwise.
    pub hides: bool,
}

impl Mask<'_> {
    /// The index of the element for a score.
    fn place(&self, index: [usize; 4]) -> usize {
        index.iter().zip(self.dims).fold(0, |place, (i, dim)| {
            let i = if dim == 1 { 0 } else { *i };
            place * dim + i
        })
    }

    fn at(&self, index: [usize; 4]) -> f64 {
        self.values[self.place(index)]
    }
}

/// The inputs of an attention.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'d> {
    /// Sizes.
    pub shape: Shape,
    /// The parameters of the computation.
    pub rules: Rules,
    /// Queries, B x H x S x D.
    pub queries: &'d [f64],
    /// Keys, B x G x D x T.
    pub keys: &'d [f64],
    /// Values, B x G x T x E.
    pub values: &'d [f64],
    /// A mask.
    pub mask: Option<Mask<'d>>,
    /// The score of a key without a value, per head; empty without.
    pub sinks: &'d [f64],
    /// Slopes of ALiBi, per head; empty without.
    pub slopes: &'d [f64],
    /// Queries of each sequence; empty if all are present.
    pub query_lengths: &'d [f64],
    /// Keys of each sequence; empty if all are present.
    pub key_lengths: &'d [f64],
}

/// A key that a query sees.
#[derive(Clone, Copy, Debug)]
struct Scored {
    key: usize,
    /// Its score.
    score: f64,
    /// The sum of the magnitudes of its terms.
    size: f64,
    /// The derivative of the soft cap.
    slope: f64,
}

impl Attention<'_> {
    /// The number of queries of a sequence.
    pub fn query_count(&self, sequence: usize) -> usize {
        self.query_lengths.get(sequence).map_or(self.shape.queries, |length| *length as usize)
    }

    /// The number of keys of a sequence.
    pub fn key_count(&self, sequence: usize) -> usize {
        self.key_lengths.get(sequence).map_or(self.shape.keys, |length| *length as usize)
    }

    /// The position of a query among the keys.
    pub fn position(&self, sequence: usize, query: usize) -> i64 {
        let (queries, keys) = (self.query_count(sequence), self.key_count(sequence));
        let start = if self.rules.bottom_right { keys as i64 - queries as i64 } else { 0 };
        query as i64 + start
    }

    /// Whether a query sees a key.
    pub fn sees(&self, at @ [sequence, _, query, key]: [usize; 4]) -> bool {
        self.reach(sequence, query).iter().any(|keys| keys.contains(&key)) && !self.is_masked(at)
    }

    /// The keys that a query sees without a mask: the first of the sequence, and those of the window.
    fn reach(&self, sequence: usize, query: usize) -> [Range<usize>; 2] {
        if query >= self.query_count(sequence) {
            return [0..0, 0..0];
        }
        let Rules { window, causal, first_keys, .. } = self.rules;
        let (position, count) = (self.position(sequence, query), self.key_count(sequence));
        let start = match window {
            Window::None => 0,
            Window::WithSelf(keys) => position - keys as i64 + 1,
            Window::BeforeSelf(keys) => position - keys as i64,
        };
        let end = if causal || window != Window::None { position + 1 } else { i64::MAX };
        let end = (end.max(0) as usize).min(count);
        let start = (start.max(0) as usize).min(end);
        [0..first_keys.min(start), start..end]
    }

    fn is_masked(&self, at: [usize; 4]) -> bool {
        self.mask.is_some_and(|mask| {
            let value = mask.at(at);
            if mask.hides { value == 0.0 } else { value == f64::NEG_INFINITY }
        })
    }

    /// The keys that a query sees. `keys` has those of its group, one per row.
    fn scored(&self, [sequence, head, query]: [usize; 3], keys: &[f64]) -> Vec<Scored> {
        let Shape { head: length, heads, queries, .. } = self.shape;
        let start = ((sequence * heads + head) * queries + query) * length;
        let q = &self.queries[start..start + length];
        let rules = &self.rules;
        let one = |key: usize| {
            let k = &keys[key * length..(key + 1) * length];
            let [dot, size] = dot(q, k);
            let (mut score, mut size) = (rules.scale * dot, rules.scale.abs() * size);
            let mut slope = 1.0;
            if rules.soft_cap > 0.0 {
                let part = (score / rules.soft_cap).tanh();
                score = rules.soft_cap * part;
                slope = 1.0 - part * part;
            }
            if let Some(alibi) = self.slopes.get(head) {
                let added = alibi * (key as i64 - self.position(sequence, query)) as f64;
                score += added;
                size += added.abs();
            }
            if let Some(mask) = self.mask.filter(|mask| !mask.hides) {
                let added = mask.at([sequence, head, query, key]);
                score += added;
                size += added.abs();
            }
            Scored { key, score, size, slope }
        };
        let keys = self.reach(sequence, query).into_iter().flatten();
        keys.filter(|key| !self.is_masked([sequence, head, query, *key])).map(one).collect()
    }

    /// The keys of a group, one per row.
    fn keys_of(&self, group: usize) -> Vec<f64> {
        let Shape { head, keys, .. } = self.shape;
        transposed(&self.keys[group * head * keys..(group + 1) * head * keys], head, keys)
    }

    /// The values of a group.
    fn values_of(&self, group: usize) -> &[f64] {
        let size = self.shape.keys * self.shape.values;
        &self.values[group * size..(group + 1) * size]
    }

    /// Half an ulp times the factor for a sum over `count` terms: 80, since most errors cancel, and one for each block
    /// of 128.
    fn rounding(count: usize) -> f64 {
        (80.0 + count as f64 / 128.0) * HALF_ULP
    }
}

/// The sum of products, and of their magnitudes.
fn dot(a: &[f64], b: &[f64]) -> [f64; 2] {
    // Independent sums, which the compiler can compute at once.
    const LANES: usize = 8;
    let (mut sums, mut sizes) = ([0.0; LANES], [0.0; LANES]);
    let mut add = |lane: usize, product: f64| {
        sums[lane] += product;
        sizes[lane] += product.abs();
    };
    let ((a_chunks, a_rest), (b_chunks, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        add(lane, a * b);
    }
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            add(lane, a[lane] * b[lane]);
        }
    }
    [sums.iter().sum(), sizes.iter().sum()]
}

/// The transposed matrix.
fn transposed(matrix: &[f64], rows: usize, cols: usize) -> Vec<f64> {
    let of_col = |col: usize| (0..rows).map(move |row| matrix[row * cols + col]);
    (0..cols).flat_map(of_col).collect()
}

/// The keys (`outer` = D) or values (`outer` = E) of sequences from pages. `table` has the pages of each; `element`
/// gives the index of element `(page, d, index in the page)`. Elements beyond lengths are 0.
pub fn gathered(
    (sequences, groups, size, keys): (usize, usize, usize, usize),
    table: &[f64],
    page_size: usize,
    lengths: &[f64],
    element: impl Fn(usize, usize, usize, usize) -> f64,
) -> Vec<f64> {
    let pages = keys / page_size.max(1);
    let mut all = Vec::with_capacity(sequences * groups * size * keys);
    for b in 0..sequences {
        let length = lengths.get(b).map_or(keys, |length| *length as usize);
        for g in 0..groups {
            for j in 0..keys {
                let page = table[b * pages + j / page_size];
                for d in 0..size {
                    let there = j < length;
                    all.push(if there { element(page as usize, g, j % page_size, d) } else { 0.0 });
                }
            }
        }
    }
    all
}

/// Transposes each of several matrices: the result of [`gathered`] in the layout of keys.
pub fn as_keys(rows: &[f64], keys: usize, head: usize) -> Vec<f64> {
    let size = (keys * head).max(1);
    rows.chunks(size).flat_map(|one| transposed(one, keys, head)).collect()
}
