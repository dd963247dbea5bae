//! The locations of the rows of queries, keys, values and results.

use super::panels::Later;
use super::parameters::Shape;
use super::problem::Sdpa;
use super::sequences::{Sequences, integer};
use crate::error::{Error, Result};
use crate::primitive::{ArgumentName, Arguments};
use crate::rows::Grid;
use crate::tensor::DataType;
use std::ops::Range;

/// A tensor of four dimensions as matrices, one per sequence and head.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    id: i32,
    data_type: DataType,
    sequence: usize,
    head: usize,
    /// The strides of rows (queries, keys) and of elements.
    pub(super) row: usize,
    pub(super) element: usize,
    /// Elements in a row.
    pub(super) size: usize,
    /// The argument with the first row of each packed sequence.
    offsets: Option<i32>,
}

impl Heads {
    /// The matrices of an argument whose dimension `rows` is the rows, or why kernels do not support it.
    pub(super) fn new(problem: &Sdpa, id: i32, rows: usize) -> Result<Self> {
        let desc = problem.desc(id);
        if desc.is_blocked() {
            let found = problem.arguments.iter().find(|argument| argument.id == id);
            let name = found.map_or(ArgumentName::Tensor("a tensor"), |argument| argument.name);
            let text = format_args!("the layout of {name} is blocked");
            return Err(Error::unimplemented(text));
        }
        let elements = 5 - rows;
        let (dims, strides) = (desc.dims(), desc.strides());
        // Dimensions of size 1 have no stride.
        let stride = |dim: usize| if dims[dim] == 1 { 1 } else { strides[dim] as usize };
        Ok(Self {
            id,
            data_type: desc.data_type().unwrap_or(DataType::F32),
            sequence: strides[0] as usize,
            head: strides[1] as usize,
            row: stride(rows),
            element: stride(elements),
            size: dims[elements] as usize,
            offsets: problem.offsets_of(id),
        })
    }

    /// Rows of a head, numbered from the first of the sequence.
    pub(super) fn grid(
        &self,
        arguments: &Arguments,
        (sequence, head): (usize, usize),
        rows: Range<usize>,
    ) -> Grid {
        // SAFETY: the arguments of an execution were checked.
        let first = |id| unsafe { integer(arguments.get(id).cast_const(), sequence) } as usize;
        let sequence = self.offsets.map_or(sequence * self.sequence, |id| first(id) * self.row);
        let offset = sequence + head * self.head + rows.start * self.row;
        Grid {
            start: arguments.get(self.id).wrapping_add(offset * self.data_type.size()),
            data_type: self.data_type,
            rows: rows.len(),
            row_step: self.row,
            step: self.element,
            cols: self.size,
        }
    }

    /// The rows from a given one on, to prefetch; none if elements are strided.
    pub(super) fn later(&self, arguments: &Arguments, place: (usize, usize), row: usize) -> Later {
        if self.element != 1 {
            return Later::NONE;
        }
        let start = self.grid(arguments, place, row..row).start;
        let bytes = self.data_type.size();
        Later { start, step: self.row * bytes, size: self.size * bytes }
    }

    /// Whether rows are dense, aligned f32, which kernels read in place.
    pub(super) fn is_direct(&self, arguments: &Arguments) -> bool {
        let aligned = arguments.get(self.id).cast::<f32>().is_aligned();
        self.data_type == DataType::F32 && self.element == 1 && aligned
    }
}

/// Some queries of some heads of a group. Rows are numbered by query, then by head.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) sequence: usize,
    pub(super) group: usize,
    pub(super) heads: Range<usize>,
    pub(super) queries: Range<usize>,
}

impl Part {
    pub(super) fn rows(&self) -> usize {
        self.heads.len() * self.queries.len()
    }

    /// The query and the head of a row.
    pub(super) fn row(&self, row: usize) -> (usize, usize) {
        (self.queries.start + row / self.heads.len(), self.heads.start + row % self.heads.len())
    }
}

/// How the queries of a problem are split into parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    shape: Shape,
    /// Heads and queries per part.
    pub(super) heads: usize,
    pub(super) queries: usize,
    head_parts: usize,
    query_parts: usize,
}

impl Parts {
    /// Makes parts of about `rows` rows at most, and at least `least` of them if there are enough queries.
    pub(super) fn new(shape: Shape, rows: usize, least: usize) -> Self {
        let all = shape.heads_of_group().max(1);
        let heads = all.min(rows);
        let head_parts = all.div_ceil(heads);
        let sets = (shape.batch * shape.groups * head_parts).max(1);
        let fair = shape.queries.div_ceil(least.div_ceil(sets)).max(1);
        let queries = (rows / heads).clamp(1, fair.max(1));
        let query_parts = shape.queries.div_ceil(queries);
        Self { shape, heads, queries, head_parts, query_parts }
    }

    pub(super) fn count(&self) -> usize {
        self.shape.batch * self.shape.groups * self.head_parts * self.query_parts
    }

    /// The most rows of a part.
    pub(super) fn most_rows(&self) -> usize {
        self.heads * self.queries.min(self.shape.queries)
    }

    /// A part. Later queries, which see more keys, come first.
    pub(super) fn part(&self, number: usize) -> Part {
        let sets = self.count() / self.query_parts;
        let (set, from_end) = (number % sets, number / sets);
        let (head_part, set) = (set % self.head_parts, set / self.head_parts);
        let (group, sequence) = (set % self.shape.groups, set / self.shape.groups);
        let all = self.shape.heads_of_group();
        let first = group * all + head_part * self.heads;
        let query = (self.query_parts - 1 - from_end) * self.queries;
        Part {
            sequence,
            group,
            heads: first..(first + self.heads).min((group + 1) * all),
            queries: query..(query + self.queries).min(self.shape.queries),
        }
    }
}

/// Calls `f` for the runs of keys or values that are contiguous in memory.
///
/// # Safety
/// The arguments were checked, and the keys are within the length of the sequence.
pub(super) unsafe fn runs(
    sequences: &Sequences,
    sequence: usize,
    keys: Range<usize>,
    mut f: impl FnMut(usize, (usize, Range<usize>)),
) {
    let mut key = keys.start;
    while key < keys.end {
        // SAFETY: guaranteed by the caller.
        let (page, place) = unsafe { sequences.page_of(sequence, key) };
        let count = sequences.run_from(key).min(keys.end - key);
        f(key - keys.start, (page, place..place + count));
        key += count;
    }
}
