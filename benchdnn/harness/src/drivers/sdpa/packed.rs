//! Packed sequences: the rows of all sequences one after another, located by offsets.
//!
//! A packed problem is its twin with lengths, without the rows beyond the lengths. The library gets a tensor in which
//! the stride between sequences is 0, so its data is that of one sequence with all rows, repeated for each sequence.
//! The twin makes the data and the expected results; this module moves them to their packed positions.

use super::parameters::SdpaProblem;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::execution::Role;
use crate::fill::Fill;
use crate::fill::sdpa::{Stream, lengths};
use crate::problem::{Data, Excerpt, Expected, Part, Spec};
use crate::tensor::Layout;
use norm_sys::*;

/// Tensors with a row for each query.
const OF_QUERIES: [i32; 5] =
    [NORM_ARG_QUERIES, NORM_ARG_DST, NORM_ARG_WORKSPACE, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_QUERIES];
/// Tensors with a row for each key.
const OF_KEYS: [i32; 4] =
    [NORM_ARG_KEYS, NORM_ARG_VALUES, NORM_ARG_DIFF_KEYS, NORM_ARG_DIFF_VALUES];

/// A tensor whose rows are packed.
struct Rows {
    dims: Vec<usize>,
    /// The index of each element in the twin's tensor.
    places: Vec<usize>,
}

/// The dimension of rows.
fn row_dim(id: i32) -> usize {
    if matches!(id, NORM_ARG_KEYS | NORM_ARG_DIFF_KEYS) { 3 } else { 2 }
}

/// Where the rows of each sequence begin, and where the last ones end.
fn offsets(lengths: &[usize]) -> Vec<f64> {
    let mut end = 0;
    let ends = lengths.iter().map(|length| {
        end += length;
        end as f64
    });
    std::iter::once(0.0).chain(ends).collect()
}

/// The indices of some rows of sequences in a tensor with these dimensions, in the order of its other dimensions.
fn places(dims: &[usize], row_dim: usize, rows: &[(usize, usize)]) -> Vec<usize> {
    let (outer, inner) = match row_dim {
        2 => (1, dims[3]),
        _ => (dims[2], 1),
    };
    let mut all = Vec::new();
    for block in 0..dims[1] * outer {
        for &(sequence, row) in rows {
            let first = (sequence * dims[1] * outer + block) * dims[row_dim] + row;
            all.extend(first * inner..(first + 1) * inner);
        }
    }
    all
}

fn gathered(values: &[f64], places: &[usize]) -> Vec<f64> {
    places.iter().map(|place| values[*place]).collect()
}

impl SdpaProblem {
    /// The same with lengths instead of offsets.
    fn twin(&self) -> SdpaProblem {
        let (queries, keys) = (self.flags.query_offsets(), self.flags.key_offsets());
        let mut flags = self.flags;
        for (offsets, lengths, set) in [
            (norm_sdpa_query_offsets, norm_sdpa_query_lengths, queries),
            (norm_sdpa_key_offsets, norm_sdpa_key_lengths, keys),
        ] {
            flags = if set { flags.with(offsets, false).with(lengths, true) } else { flags };
        }
        SdpaProblem { flags, ..self.clone() }
    }

    /// The lengths of packed queries and of packed keys.
    fn packed_lengths(&self) -> [Option<Vec<usize>>; 2] {
        let shape = self.shape();
        let of = |stream, most| -> Vec<usize> {
            lengths(stream, shape.sequences, most).iter().map(|length| *length as usize).collect()
        };
        let flags = self.flags;
        [
            flags.query_offsets().then(|| of(Stream::QueryLengths, shape.queries)),
            flags.key_offsets().then(|| of(Stream::KeyLengths, shape.keys)),
        ]
    }

    /// The lengths of the rows of a tensor, if it is packed.
    fn lengths_of(&self, id: i32) -> Option<Vec<usize>> {
        let [queries, keys] = self.packed_lengths();
        match id {
            _ if OF_QUERIES.contains(&id) => queries,
            _ if OF_KEYS.contains(&id) => keys,
            _ => None,
        }
    }

    /// The rows of a tensor whose twin has these dimensions; `None` if they are not packed.
    fn rows(&self, id: i32, twin: &[usize]) -> Option<Rows> {
        let lengths = self.lengths_of(id)?;
        let all = lengths.iter().enumerate();
        let rows: Vec<(usize, usize)> = all
            .flat_map(|(sequence, length)| (0..*length).map(move |row| (sequence, row)))
            .collect();
        let copies = if id == NORM_ARG_WORKSPACE { 1 } else { twin[0] };
        let mut dims = twin.to_vec();
        (dims[0], dims[row_dim(id)]) = (copies, rows.len());
        let one = places(twin, row_dim(id), &rows);
        Some(Rows { dims, places: one.repeat(copies) })
    }

    /// The dimensions of the library's tensor, given those of its twin.
    pub(super) fn library_dims(&self, id: i32, twin: Vec<usize>) -> Vec<usize> {
        let Some(lengths) = self.lengths_of(id) else { return twin };
        let mut dims = twin;
        dims[row_dim(id)] = lengths.iter().sum();
        dims
    }

    /// The layout of a packed tensor with this order of dimensions.
    pub(super) fn packed_layout(dims: &[usize], order: &[usize], data_type: DataType) -> Layout {
        let mut one = dims.to_vec();
        one[0] = 1;
        let mut layout = Layout::ordered(&one, order, 0, data_type);
        (layout.dims[0], layout.strides[0]) = (dims[0], 0);
        layout
    }

    /// The operation's own tensors.
    pub(super) fn packed_specs(&self) -> Vec<Spec> {
        let twin = self.twin();
        let mut all: Vec<Spec> =
            twin.specs().into_iter().filter(|spec| !self.replaces(spec.id)).collect();
        for spec in &mut all {
            spec.sliced = false;
            if let Some(rows) = self.rows(spec.id, &spec.dims) {
                // No other layout has a stride of 0 here.
                (spec.dims, spec.part) = (rows.dims, Part::Side);
            }
        }
        let dims = vec![self.shape().sequences + 1];
        let ids =
            [(NORM_ARG_QUERY_OFFSETS, "query_offsets"), (NORM_ARG_KEY_OFFSETS, "key_offsets")];
        for ((id, name), lengths) in ids.into_iter().zip(self.packed_lengths()) {
            if lengths.is_some() {
                all.push(Spec::new(id, name, Role::Input, dims.clone(), DataType::S32));
            }
        }
        all
    }

    /// Whether offsets replace an argument of the twin.
    fn replaces(&self, id: i32) -> bool {
        id == NORM_ARG_QUERY_LENGTHS && self.flags.query_offsets()
            || id == NORM_ARG_KEY_LENGTHS && self.flags.key_offsets()
    }

    /// The values of all inputs.
    pub(super) fn packed_data(&self, fill: Fill) -> Data {
        let twin = self.twin();
        let mut data = twin.data(fill);
        for spec in twin.specs() {
            let rows = self.rows(spec.id, &spec.dims).filter(|_| !data.get(spec.id).is_empty());
            if let Some(rows) = rows {
                data.change(spec.id, |values| *values = gathered(values, &rows.places));
            }
        }
        let ids = [NORM_ARG_QUERY_OFFSETS, NORM_ARG_KEY_OFFSETS];
        for (id, lengths) in ids.into_iter().zip(self.packed_lengths()) {
            if let Some(lengths) = lengths {
                data.set(id, offsets(&lengths));
            }
        }
        data
    }

    /// The data of the twin, with NaN beyond the lengths.
    fn unpacked(&self, data: &Data) -> Data {
        let twin = self.twin();
        let mut all = data.clone();
        for spec in twin.specs() {
            let Some(rows) = self.rows(spec.id, &spec.dims) else { continue };
            if !data.get(spec.id).is_empty() {
                all.change(spec.id, |values| {
                    let packed = std::mem::replace(values, vec![f64::NAN; spec.count()]);
                    rows.places
                        .iter()
                        .zip(packed)
                        .for_each(|(place, value)| values[*place] = value);
                });
            }
        }
        let ids = [NORM_ARG_QUERY_LENGTHS, NORM_ARG_KEY_LENGTHS];
        for (id, lengths) in ids.into_iter().zip(self.packed_lengths()) {
            if let Some(lengths) = lengths {
                all.set(id, lengths.iter().map(|length| *length as f64).collect());
            }
        }
        all
    }

    /// The expected results.
    pub(super) fn packed_results(&self, data: &Data) -> Vec<Expected> {
        let twin = self.twin();
        // Inference and training may share the results, so those of both are packed.
        let direction = match self.direction.is_forward() {
            true => Direction::ForwardTraining,
            false => self.direction,
        };
        let specs = SdpaProblem { direction, ..twin.clone() }.specs();
        let packed = |expected: Expected| {
            let spec = specs.iter().find(|spec| spec.id == expected.id);
            match spec.and_then(|spec| self.rows(spec.id, &spec.dims)) {
                Some(rows) => Expected::new(
                    expected.id,
                    expected.kind,
                    gathered(&expected.values, &rows.places),
                    gathered(&expected.terms, &rows.places),
                ),
                None => expected,
            }
        };
        twin.results(&self.unpacked(data)).into_iter().map(packed).collect()
    }

    /// Whether most queries see no key, or no query sees most of the keys.
    pub(super) fn packed_hides_most(&self) -> bool {
        self.twin().hides_most()
    }

    /// Each sequence with its own tensors.
    pub(super) fn alone(&self, data: &Data) -> Vec<Excerpt> {
        let twin = self.twin();
        let unpacked = self.unpacked(data);
        (0..self.shape().sequences).filter_map(|b| self.one(&twin, &unpacked, b)).collect()
    }

    /// Sequence `b` of the twin, in tensors that its rows fill.
    fn one(&self, twin: &SdpaProblem, unpacked: &Data, b: usize) -> Option<Excerpt> {
        let length = |id, all| unpacked.get(id).get(b).map_or(all, |length| *length as usize);
        let shape = self.shape();
        let queries = length(NORM_ARG_QUERY_LENGTHS, shape.queries);
        let keys = length(NORM_ARG_KEY_LENGTHS, shape.keys);
        if queries == 0 || keys == 0 {
            return None;
        }
        let mut problem = SdpaProblem { inplace: false, ..twin.clone() };
        for flag in [norm_sdpa_query_lengths, norm_sdpa_key_lengths] {
            problem.flags = problem.flags.with(flag, false);
        }
        problem.dims.iter_mut().for_each(|dims| dims[0] = 1);
        (problem.dims[0][2], problem.dims[1][3], problem.dims[2][2]) = (queries, keys, keys);
        let mut own = unpacked.clone();
        let mut results = Vec::new();
        for spec in twin.specs() {
            let rows = match spec.id {
                id if OF_QUERIES.contains(&id) => queries,
                id if OF_KEYS.contains(&id) => keys,
                _ => 0,
            };
            let rows: Vec<(usize, usize)> = (0..rows).map(|row| (b, row)).collect();
            if rows.is_empty() {
                continue;
            }
            let taken = places(&spec.dims, row_dim(spec.id), &rows);
            if !spec.role.is_written() {
                own.change(spec.id, |values| *values = gathered(values, &taken));
                continue;
            }
            let whole = match self.rows(spec.id, &spec.dims) {
                None => taken,
                Some(packed) => {
                    let mut at = vec![None; spec.count()];
                    for (i, place) in packed.places.iter().enumerate().rev() {
                        at[*place] = Some(i);
                    }
                    taken.into_iter().filter_map(|place| at[place]).collect()
                }
            };
            results.push((spec.id, whole));
        }
        let what = format!("sequence {b} alone");
        Some(Excerpt { what, problem: Box::new(problem), data: own, places: results })
    }
}
