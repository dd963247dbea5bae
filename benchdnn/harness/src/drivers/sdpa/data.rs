//! The tensors of an attention without packed sequences, their data, and the expected results.
//!
//! Elements that no result depends on are NaN: keys and values beyond the lengths, after all positions or in spare
//! pages, and queries beyond the lengths. Keys that a mask hides by adding -Inf are numbers.

use super::choices::KvScales;
use super::parameters::SdpaProblem;
use crate::check::Kind;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::execution::Role;
use crate::fill::Fill;
use crate::fill::sdpa::{Stream, elements, lengths, mask, pages, scales, sinks, slopes};
use crate::oracle::sdpa::{Attention, Mask, Saved, Shape, as_keys, backward, forward, gathered};
use crate::problem::{Data, Excerpt, Expected, Part, Spec};
use norm_sys::*;
use std::borrow::Cow;

/// The keys and values of each sequence in order, regardless of pages.
pub(super) struct Sequences<'d> {
    pub(super) keys: Cow<'d, [f64]>,
    pub(super) values: Cow<'d, [f64]>,
}

impl Sequences<'_> {
    /// No numbers, for an attention that is only asked which keys are seen.
    pub(super) const NONE: Self = Self { keys: Cow::Borrowed(&[]), values: Cow::Borrowed(&[]) };
}

impl SdpaProblem {
    /// The operation's own tensors.
    pub(super) fn specs(&self) -> Vec<Spec> {
        use Role::{Input, Output};
        let [q_dt, k_dt, v_dt, dst_dt] = self.types.0;
        let (shape, forward) = (self.shape(), self.direction.is_forward());
        let paged = self.page_size > 0;
        let [q, k, v] = [self.dims[0].clone(), self.key_dims(), self.value_dims()];
        let mut all = Vec::new();
        let mut add = |id, name, role, part, sliced, dims: &[usize], data_type| {
            let spec = Spec::new(id, name, role, dims.to_vec(), data_type);
            all.push(Spec { part, sliced, ..spec });
        };
        let (main, side, f32) = (Part::Main, Part::Side, DataType::F32);
        add(NORM_ARG_QUERIES, "queries", Input, main, true, &q, q_dt);
        add(NORM_ARG_KEYS, "keys", Input, main, !paged, &k, k_dt);
        add(NORM_ARG_VALUES, "values", Input, main, !paged, &v, v_dt);
        for (id, name, dims) in self.scales() {
            let own = dims[0] > 1 && !paged;
            add(id, name, Input, side, own, &dims, f32);
        }
        let mask = self.mask_tensor().map(|dims| (dims[0] == shape.sequences, dims));
        if let Some((own, dims)) = &mask {
            add(NORM_ARG_ATTN_MASK, "mask", Input, side, *own, dims, self.mask_dt);
        }
        let (sequences, heads) = ([shape.sequences], [shape.heads]);
        if paged {
            let dims = [shape.sequences, self.pages()];
            add(NORM_ARG_PAGE_TABLE, "page_table", Input, side, true, &dims, DataType::S32);
        }
        for (has, id, name, sliced) in self.per_head_or_sequence() {
            match sliced {
                _ if !has => {}
                true => add(id, name, Input, side, true, &sequences, DataType::S32),
                false => add(id, name, Input, side, false, &heads, DataType::F32),
            }
        }
        let dst = self.dst_dims();
        let rows = [dst[0], dst[1], dst[2], 1];
        if forward {
            add(NORM_ARG_DST, "dst", Output, main, true, &dst, dst_dt);
            if self.direction == Direction::ForwardTraining {
                add(NORM_ARG_WORKSPACE, "workspace", Output, side, true, &rows, DataType::F32);
            }
            if self.flags.entropy() {
                add(NORM_ARG_ENTROPY, "entropy", Output, side, true, &dst[..2], DataType::F32);
            }
            return all;
        }
        let diff_dt = self.diff_dt.unwrap_or(q_dt);
        add(NORM_ARG_DST, "dst", Input, main, true, &dst, dst_dt);
        add(NORM_ARG_DIFF_DST, "diff_dst", Input, main, true, &dst, q_dt);
        add(NORM_ARG_WORKSPACE, "workspace", Input, side, true, &rows, DataType::F32);
        add(NORM_ARG_DIFF_QUERIES, "diff_queries", Output, main, true, &q, diff_dt);
        add(NORM_ARG_DIFF_KEYS, "diff_keys", Output, main, true, &k, diff_dt);
        add(NORM_ARG_DIFF_VALUES, "diff_values", Output, main, true, &v, diff_dt);
        if let Some((own, dims)) = mask.filter(|_| self.diff_mask) {
            add(NORM_ARG_DIFF_ATTN_MASK, "diff_mask", Output, side, own, &dims, self.mask_dt);
        }
        if self.flags.sinks() {
            add(NORM_ARG_DIFF_SINKS, "diff_sinks", Output, side, false, &heads, DataType::F32);
        }
        all
    }

    /// The inputs with a number for each head or sequence: whether they are present, their ids and names, and whether
    /// the numbers are per sequence.
    fn per_head_or_sequence(&self) -> [(bool, i32, &'static str, bool); 4] {
        let flags = self.flags;
        [
            (flags.sinks(), NORM_ARG_SINKS, "sinks", false),
            (flags.alibi(), NORM_ARG_ALIBI_SLOPES, "alibi_slopes", false),
            (flags.query_lengths(), NORM_ARG_QUERY_LENGTHS, "query_lengths", true),
            (flags.key_lengths(), NORM_ARG_KEY_LENGTHS, "key_lengths", true),
        ]
    }

    /// The scales of keys and of values: argument ids, names and dimensions.
    fn scales(&self) -> Vec<(i32, &'static str, Vec<usize>)> {
        if self.kv_scales == KvScales::None {
            return Vec::new();
        }
        let dims = |tensor: &[usize], keys| self.kv_scales.dims(tensor, keys);
        vec![
            (NORM_ARG_ATTR_SCALES | NORM_ARG_KEYS, "key_scales", dims(&self.key_dims(), 3)),
            (NORM_ARG_ATTR_SCALES | NORM_ARG_VALUES, "value_scales", dims(&self.value_dims(), 2)),
        ]
    }

    /// A tensor of keys or values, with each number times its scale.
    fn scaled<'d>(&self, data: &'d Data, id: i32, dims: &[usize]) -> Cow<'d, [f64]> {
        let values = data.get(id);
        let id = NORM_ARG_ATTR_SCALES | id;
        let Some((_, _, own)) = self.scales().into_iter().find(|scales| scales.0 == id) else {
            return values.into();
        };
        let scales = data.get(id);
        let scale = |place: usize| {
            let (mut rest, mut at, mut step) = (place, 0, 1);
            for (dim, own) in dims.iter().zip(&own).rev() {
                at += rest % dim % own * step;
                (rest, step) = (rest / dim, step * own);
            }
            scales[at]
        };
        values.iter().enumerate().map(|(place, value)| value * scale(place)).collect()
    }

    /// Keys and values of each sequence in order.
    pub(super) fn sequences<'d>(&self, data: &'d Data) -> Sequences<'d> {
        let keys = self.scaled(data, NORM_ARG_KEYS, &self.key_dims());
        let values = self.scaled(data, NORM_ARG_VALUES, &self.value_dims());
        if self.page_size == 0 {
            return Sequences { keys, values };
        }
        let Shape { sequences, groups, keys: count, head, values: size, .. } = self.shape();
        let (table, page) = (data.get(NORM_ARG_PAGE_TABLE), self.page_size);
        let lengths = data.get(NORM_ARG_KEY_LENGTHS);
        let key =
            |n: usize, g: usize, j: usize, d: usize| keys[((n * groups + g) * head + d) * page + j];
        let value = |n: usize, g: usize, j: usize, e: usize| {
            values[((n * groups + g) * page + j) * size + e]
        };
        let rows = gathered((sequences, groups, head, count), table, page, lengths, key);
        let values = gathered((sequences, groups, size, count), table, page, lengths, value);
        Sequences { keys: as_keys(&rows, count, head).into(), values: values.into() }
    }

    /// The lengths of a sequence.
    pub(super) fn lengths(&self, data: &Data, b: usize) -> (usize, usize) {
        let shape = self.shape();
        let length = |id, all| data.get(id).get(b).map_or(all, |length| *length as usize);
        (length(NORM_ARG_QUERY_LENGTHS, shape.queries), length(NORM_ARG_KEY_LENGTHS, shape.keys))
    }

    /// The inputs of the oracle.
    pub(super) fn attention<'d>(
        &self,
        data: &'d Data,
        sequences: &'d Sequences<'_>,
    ) -> Attention<'d> {
        let used = |used: bool, id| if used { data.get(id) } else { &[] };
        let mask = |dims| Mask {
            values: data.get(NORM_ARG_ATTN_MASK),
            dims,
            hides: self.mask_dt == DataType::U8,
        };
        Attention {
            shape: self.shape(),
            rules: self.rules(),
            queries: data.get(NORM_ARG_QUERIES),
            keys: &sequences.keys,
            values: &sequences.values,
            mask: self.mask_tensor().map(mask),
            sinks: used(self.flags.sinks(), NORM_ARG_SINKS),
            slopes: used(self.flags.alibi(), NORM_ARG_ALIBI_SLOPES),
            query_lengths: used(self.flags.query_lengths(), NORM_ARG_QUERY_LENGTHS),
            key_lengths: used(self.flags.key_lengths(), NORM_ARG_KEY_LENGTHS),
        }
    }

    /// The small inputs: those that determine the visible keys, and those with one number per head.
    fn small_data(&self) -> Data {
        let Shape { sequences, heads, queries, keys, .. } = self.shape();
        let mut data = Data::default();
        if self.flags.query_lengths() {
            data.set(NORM_ARG_QUERY_LENGTHS, lengths(Stream::QueryLengths, sequences, queries));
        }
        if self.flags.key_lengths() {
            data.set(NORM_ARG_KEY_LENGTHS, lengths(Stream::KeyLengths, sequences, keys));
        }
        for (id, _, dims) in self.scales() {
            let stream = if id == NORM_ARG_ATTR_SCALES | NORM_ARG_VALUES {
                Stream::ValueScales
            } else {
                Stream::KeyScales
            };
            data.set(id, scales(stream, dims.iter().product()));
        }
        if let Some(dims) = self.mask_tensor() {
            data.set(NORM_ARG_ATTN_MASK, mask(dims.iter().product(), self.mask_dt));
        }
        if self.flags.sinks() {
            data.set(NORM_ARG_SINKS, sinks(heads));
        }
        if self.flags.alibi() {
            data.set(NORM_ARG_ALIBI_SLOPES, slopes(heads));
        }
        if self.page_size > 0 {
            let lengths = data.get(NORM_ARG_KEY_LENGTHS);
            let table = pages((sequences, self.pages()), self.pool(), self.page_size, lengths);
            data.set(NORM_ARG_PAGE_TABLE, table);
        }
        data
    }

    /// The values of all inputs.
    pub(super) fn data(&self, fill: Fill) -> Data {
        let Shape { head, keys, values: size, .. } = self.shape();
        let [q_dt, k_dt, v_dt, dst_dt] = self.types.0;
        let count = |dims: &[usize]| dims.iter().product::<usize>();
        let mut data = self.small_data();
        let row = if self.page_size > 0 { self.page_size } else { keys };
        let make = |stream, dims: &[usize], row, dt| {
            elements(stream, count(dims), (row, dims[2]), dt, fill)
        };
        data.set(NORM_ARG_QUERIES, make(Stream::Queries, &self.dims[0], head, q_dt));
        data.set(NORM_ARG_KEYS, make(Stream::Keys, &self.key_dims(), row, k_dt));
        data.set(NORM_ARG_VALUES, make(Stream::Values, &self.value_dims(), size, v_dt));
        let dst = self.dst_dims();
        let forward_alone = self.direction.is_forward();
        if !forward_alone {
            data.set(NORM_ARG_DIFF_DST, make(Stream::DiffDst, &dst, size, q_dt));
        }
        if fill == Fill::Perf {
            // Moderate numbers are as fast.
            let logarithm = (keys.max(1) as f64).ln();
            data.set(NORM_ARG_DST, make(Stream::Values, &dst, size, dst_dt));
            data.set(NORM_ARG_WORKSPACE, vec![logarithm; count(&dst[..3])]);
            return data;
        }
        self.hide(&mut data);
        if !forward_alone {
            let result = forward(&self.attention(&data, &self.sequences(&data)));
            let rounded = |values: &[f64], dt: DataType| -> Vec<f64> {
                values.iter().map(|value| dt.round(*value)).collect()
            };
            data.set(NORM_ARG_DST, rounded(&result.dst[0], dst_dt));
            data.set(NORM_ARG_WORKSPACE, rounded(&result.logarithms[0], DataType::F32));
            self.hide_rows(&mut data, NORM_ARG_DST, size);
            self.hide_rows(&mut data, NORM_ARG_WORKSPACE, 1);
            self.hide_rows(&mut data, NORM_ARG_DIFF_DST, size);
        }
        self.hide_rows(&mut data, NORM_ARG_QUERIES, head);
        let floats = DataType::ROUNDED_FLOATS.contains(&v_dt);
        if fill == Fill::Random && forward_alone && size > 1 && floats {
            self.add_infinity(&mut data);
        }
        data
    }

    /// Sets rows of queries beyond the lengths to NaN.
    fn hide_rows(&self, data: &mut Data, id: i32, size: usize) {
        let Shape { heads, queries, .. } = self.shape();
        if !self.flags.query_lengths() {
            return;
        }
        let lengths = data.get(NORM_ARG_QUERY_LENGTHS).to_vec();
        data.change(id, |values| {
            for (row, values) in values.chunks_mut(size.max(1)).enumerate() {
                if row % queries >= lengths[row / (heads * queries)] as usize {
                    values.fill(f64::NAN);
                }
            }
        });
    }

    /// Which keys of the tensor some query sees, in rows of B x G (or pages x G) and keys.
    fn seen(&self, data: &Data) -> Vec<bool> {
        let shape = self.shape();
        let attention = self.attention(data, &Sequences::NONE);
        let (table, pages) = (data.get(NORM_ARG_PAGE_TABLE), self.pages());
        let dims = self.value_dims();
        let mut seen = vec![false; dims[0] * dims[1] * dims[2]];
        for b in 0..shape.sequences {
            for (g, j) in (0..shape.groups).flat_map(|g| (0..shape.keys).map(move |j| (g, j))) {
                let heads = g * shape.sharing()..(g + 1) * shape.sharing();
                let sees =
                    |h: usize| (0..shape.queries).rev().any(|i| attention.sees([b, h, i, j]));
                if !heads.into_iter().any(sees) {
                    continue;
                }
                let (outer, place) = match self.page_size {
                    0 => (b, j),
                    size => (table[b * pages + j / size] as usize, j % size),
                };
                seen[(outer * dims[1] + g) * dims[2] + place] = true;
            }
        }
        seen
    }

    /// Sets keys and values that no query sees to NaN.
    fn hide(&self, data: &mut Data) {
        let seen = self.seen(data);
        let (dims, size) = (self.key_dims(), self.shape().values);
        let (head, keys) = (dims[2], dims[3]);
        let unseen = |dt: DataType| if dt.is_integer() { 127.0 } else { f64::NAN };
        let [_, key_dt, value_dt, _] = self.types.0;
        if self.kv_scales == KvScales::Token {
            for (id, ..) in self.scales() {
                data.change(id, |scales| {
                    let unseen = scales.iter_mut().zip(&seen).filter(|(_, seen)| !**seen);
                    unseen.for_each(|(scale, _)| *scale = f64::NAN);
                });
            }
        }
        data.change(NORM_ARG_KEYS, |values| {
            for (at, value) in values.iter_mut().enumerate() {
                if !seen[at / (head * keys) * keys + at % keys] {
                    *value = unseen(key_dt);
                }
            }
        });
        data.change(NORM_ARG_VALUES, |values| {
            for (row, values) in values.chunks_mut(size.max(1)).enumerate() {
                if !seen[row] {
                    values.fill(unseen(value_dt));
                }
            }
        });
    }

    /// Makes the first element of the last visible value infinite, which must not change rows that do not see it.
    fn add_infinity(&self, data: &mut Data) {
        let size = self.shape().values;
        data.change(NORM_ARG_VALUES, |values| {
            let rows = values.chunks_mut(size).rev();
            if let Some(row) = rows.into_iter().find(|row| !row[0].is_nan()) {
                row[0] = f64::INFINITY;
            }
        });
    }

    /// Whether most queries see no key or only one, or no query sees most of the keys.
    pub(super) fn hides_most(&self) -> bool {
        let shape = self.shape();
        let data = self.small_data();
        let attention = self.attention(&data, &Sequences::NONE);
        // The scores of a single key have no gradient.
        let few = usize::from(!self.direction.is_forward() && !self.flags.sinks());
        let (mut rows, mut telling) = (0, 0);
        for b in 0..shape.sequences {
            for (h, i) in (0..shape.heads).flat_map(|h| (0..shape.queries).map(move |i| (h, i))) {
                let keys = (0..shape.keys).filter(|&j| attention.sees([b, h, i, j]));
                telling += usize::from(keys.take(few + 1).count() > few);
                rows += 1;
            }
        }
        let seen = self.seen(&data);
        let backward_seen = seen.iter().filter(|seen| **seen).count();
        telling * 4 < rows || !self.direction.is_forward() && backward_seen * 4 < seen.len()
    }

    /// The expected results.
    pub(super) fn results(&self, data: &Data) -> Vec<Expected> {
        let sequences = self.sequences(data);
        let attention = self.attention(data, &sequences);
        let expected =
            |id, kind, [values, bounds]: [Vec<f64>; 2]| Expected::new(id, kind, values, bounds);
        if self.direction.is_forward() {
            let result = forward(&attention);
            return vec![
                expected(NORM_ARG_DST, Kind::Chain, result.dst),
                expected(NORM_ARG_WORKSPACE, Kind::Rounded, result.logarithms),
                expected(NORM_ARG_ENTROPY, Kind::Rounded, result.entropies),
            ];
        }
        let saved = Saved {
            diff_dst: data.get(NORM_ARG_DIFF_DST),
            dst: data.get(NORM_ARG_DST),
            logarithms: data.get(NORM_ARG_WORKSPACE),
        };
        let result = backward(&attention, saved);
        vec![
            expected(NORM_ARG_DIFF_QUERIES, Kind::Rounded, result.queries),
            expected(NORM_ARG_DIFF_KEYS, Kind::Rounded, result.keys),
            expected(NORM_ARG_DIFF_VALUES, Kind::Rounded, result.values),
            expected(NORM_ARG_DIFF_SINKS, Kind::Rounded, result.sinks),
            expected(NORM_ARG_DIFF_ATTN_MASK, Kind::Rounded, result.mask),
        ]
    }

    /// An excerpt with all results of this problem.
    pub(super) fn whole(&self, what: &str, problem: SdpaProblem, data: Data) -> Excerpt {
        let outputs = self.specs().into_iter().filter(|spec| spec.role.is_written());
        let places = outputs.map(|spec| (spec.id, (0..spec.count()).collect())).collect();
        Excerpt { what: what.to_owned(), problem: Box::new(problem), data, places }
    }
}
