//! Problems whose results are parts of another problem's, bit for bit: some of the queries with the keys that they see,
//! as in decoding; more keys beyond the lengths; keys without pages, or on other pages; a head of keys for each head of
//! queries.

use super::choices::{KvScales, MaskKind, Window};
use super::parameters::SdpaProblem;
use crate::oracle::sdpa::Shape;
use crate::problem::{Data, Excerpt};
use norm_sys::*;

/// Sizes of chunks of queries.
const CHUNKS: [usize; 4] = [1, 7, 64, 300];
/// Chunks of each size.
const PLACES: usize = 3;
/// The number of keys that are added beyond the lengths.
const MORE_KEYS: usize = 37;

/// Rows `from` to `to - 1` of each matrix with `rows` rows of `inner` elements.
fn taken(values: &[f64], rows: usize, inner: usize, from: usize, to: usize) -> Vec<f64> {
    let blocks = values.chunks((rows * inner).max(1));
    blocks.flat_map(|block| &block[from * inner..to * inner]).copied().collect()
}

/// Rows extended by some elements.
fn extended(values: &[f64], row: usize, more: usize) -> Vec<f64> {
    let rows = values.chunks(row.max(1));
    rows.flat_map(|row| row.iter().copied().chain(vec![f64::NAN; more])).collect()
}

impl SdpaProblem {
    /// All excerpts of a problem without packed sequences.
    pub(super) fn parts(&self, data: &Data) -> Vec<Excerpt> {
        let queries = self.shape().queries;
        if !self.direction.is_forward() || self.shape().sequences == 0 {
            return Vec::new();
        }
        let mut all = Vec::new();
        for size in CHUNKS.into_iter().filter(|&size| size < queries) {
            let last = queries - size;
            let mut starts: Vec<usize> =
                (0..PLACES).map(|place| place * last / (PLACES - 1)).collect();
            starts.dedup();
            let chunks = starts.into_iter().filter_map(|a| self.chunk(data, a, a + size));
            all.extend(chunks);
        }
        if self.page_size > 0 {
            all.extend(self.as_in_caches(data));
        }
        if self.kv_scales != KvScales::None {
            return all;
        }
        if self.page_size > 0 {
            all.push(self.without_pages(data));
        } else {
            all.push(self.with_more_keys(data));
            if self.shape().groups < self.shape().heads {
                all.push(self.with_all_heads(data));
            }
        }
        all
    }

    /// The key lengths that put queries `a` to `b` at their positions, with the last of them at the last key; `None` if
    /// that needs more keys than there are.
    fn lengths_of_chunk(&self, data: &Data, a: usize, b: usize) -> Option<Vec<f64>> {
        let of = |sequence| {
            let (queries, keys) = self.lengths(data, sequence);
            let own = queries.clamp(a, b) - a;
            let start = match self.mask {
                MaskKind::BottomRight => keys as i64 - queries as i64,
                _ => 0,
            };
            if own == 0 {
                return Some(keys as f64);
            }
            let length = (start + (a + own) as i64).max(0);
            (length <= keys as i64).then_some(length as f64)
        };
        (0..self.shape().sequences).map(of).collect()
    }

    /// Queries `a` to `b`, as if there were no others.
    fn chunk(&self, data: &Data, a: usize, b: usize) -> Option<Excerpt> {
        let Shape { sequences, heads, queries, values, head, .. } = self.shape();
        let mut problem = SdpaProblem { inplace: false, ..self.clone() };
        let mut data_of_chunk = data.clone();
        let causal = self.mask.is_causal() || self.window != Window::None;
        if causal {
            let lengths = self.lengths_of_chunk(data, a, b)?;
            data_of_chunk.set(NORM_ARG_KEY_LENGTHS, lengths);
            problem.flags = problem.flags.with(norm_sdpa_key_lengths, true);
            problem.mask_dims = self.mask_letters().to_owned();
            problem.mask = MaskKind::BottomRight;
        } else if self.flags.alibi() && a > 0 {
            return None;
        }
        problem.dims[0][2] = b - a;
        problem.flags = problem.flags.with(norm_sdpa_entropy, false);
        data_of_chunk.change(NORM_ARG_QUERIES, |all| *all = taken(all, queries, head, a, b));
        if let Some(dims) = self.mask_tensor().filter(|dims| dims[2] > 1) {
            let inner = dims[3];
            data_of_chunk.change(NORM_ARG_ATTN_MASK, |all| *all = taken(all, queries, inner, a, b));
        }
        data_of_chunk.change(NORM_ARG_QUERY_LENGTHS, |lengths| {
            lengths.iter_mut().for_each(|length| {
                *length = (*length as usize).clamp(a, b) as f64 - a as f64;
            });
        });
        let count = sequences * heads * queries;
        let places = |size: usize| {
            let all: Vec<f64> = (0..count * size).map(|at| at as f64).collect();
            taken(&all, queries, size, a, b).into_iter().map(|at| at as usize).collect()
        };
        Some(Excerpt {
            what: format!("queries {a} to {} alone", b - 1),
            problem: Box::new(problem),
            data: data_of_chunk,
            places: vec![(NORM_ARG_DST, places(values)), (NORM_ARG_WORKSPACE, places(1))],
        })
    }

    /// The keys of each sequence, contiguous.
    fn without_pages(&self, data: &Data) -> Excerpt {
        let mut other = data.clone();
        let sequences = self.sequences(data);
        other.set(NORM_ARG_KEYS, sequences.keys.to_vec());
        other.set(NORM_ARG_VALUES, sequences.values.to_vec());
        let problem = SdpaProblem { page_size: 0, own_pool: 0, inplace: false, ..self.clone() };
        self.whole("without pages", problem, other)
    }

    /// With room for more keys than sequences have.
    fn with_more_keys(&self, data: &Data) -> Excerpt {
        let Shape { sequences, keys, values, .. } = self.shape();
        let mut other = data.clone();
        let lengths = (0..sequences).map(|b| self.lengths(data, b).1 as f64).collect();
        other.set(NORM_ARG_KEY_LENGTHS, lengths);
        other.change(NORM_ARG_KEYS, |all| *all = extended(all, keys, MORE_KEYS));
        other.change(NORM_ARG_VALUES, |all| {
            *all = extended(all, keys * values, MORE_KEYS * values);
        });
        let letters = self.mask_letters().to_owned();
        if letters.contains('d') {
            other.change(NORM_ARG_ATTN_MASK, |all| {
                *all = extended(all, keys, MORE_KEYS);
                if self.mask_dt.is_integer() {
                    all.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 1.0);
                }
            });
        }
        let mut problem = SdpaProblem { inplace: false, mask_dims: letters, ..self.clone() };
        problem.flags = problem.flags.with(norm_sdpa_key_lengths, true);
        problem.dims[1][3] += MORE_KEYS;
        problem.dims[2][2] += MORE_KEYS;
        self.whole("more keys beyond the lengths", problem, other)
    }

    /// With a head of keys for each head of queries.
    fn with_all_heads(&self, data: &Data) -> Excerpt {
        let shape = self.shape();
        let mut other = data.clone();
        for (id, size) in [(NORM_ARG_KEYS, shape.head), (NORM_ARG_VALUES, shape.values)] {
            let size = (size * shape.keys).max(1);
            other.change(id, |all| {
                let heads = all.chunks(size).flat_map(|one| vec![one; shape.sharing()]);
                *all = heads.flatten().copied().collect();
            });
        }
        let mut problem = SdpaProblem { inplace: false, ..self.clone() };
        problem.dims[1][1] = shape.heads;
        problem.dims[2][1] = shape.heads;
        self.whole("separate keys for each head", problem, other)
    }
}
