//! The inputs of both directions at a level: rows of queries, and the keys and values of a block as panels.

use super::mask::MaskRow;
use super::panels;
use super::problem::Sdpa;
use super::rows::{Heads, runs};
use super::scales::ScalePlaces;
use super::score::ScoreRow;
use super::sequences::Sequences;
use crate::error::{Error, Result};
use crate::primitive::{Arguments, Execution};
use crate::rows::Grids;
use crate::simd::Level;
use crate::tensor::DataType;
use norm_sys as sys;
use std::ops::Range;

/// Floats in a cache line; every buffer is a multiple of it.
const LINE: usize = 16;

/// The size of `count` elements of a type, in floats, rounded up to whole lines.
pub(super) const fn floats<T>(count: usize) -> usize {
    (count * size_of::<T>()).div_ceil(4).next_multiple_of(LINE)
}

/// The starts of adjacent buffers with these sizes, in floats.
pub(super) fn starts<const N: usize>(start: *mut f32, sizes: [usize; N]) -> [*mut f32; N] {
    let mut at = start;
    sizes.map(|size| {
        let found = at;
        at = at.wrapping_add(size);
        found
    })
}

/// An address that threads share; each accesses its own part.
pub(super) struct Shared(pub(super) *mut f32);

// SAFETY: see above.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn get(&self) -> *mut f32 {
        self.0
    }
}

/// The strides of a mask, in elements; 0 where it is broadcast.
#[derive(Clone, Copy)]
struct MaskPlaces {
    data_type: DataType,
    strides: [usize; 4],
}

impl MaskPlaces {
    fn new(problem: &Sdpa) -> Result<Option<Self>> {
        let desc = problem.desc(sys::NORM_ARG_ATTN_MASK);
        let Some(data_type) = desc.data_type() else { return Ok(None) };
        let mut strides = [0; 4];
        for (dim, stride) in strides.iter_mut().enumerate() {
            *stride = if desc.dims()[dim] == 1 { 0 } else { desc.strides()[dim] as usize };
        }
        if desc.is_blocked() || strides[3] > 1 {
            return Err(Error::unimplemented("the mask of a query is not dense"));
        }
        Ok(Some(Self { data_type, strides }))
    }
}

/// The locations of a problem's inputs, and the functions of a level.
pub(super) struct Inputs {
    pub(super) problem: Sdpa,
    pub(super) queries: Heads,
    pub(super) keys: Heads,
    pub(super) values: Heads,
    pub(super) key_scales: Option<ScalePlaces>,
    pub(super) value_scales: Option<ScalePlaces>,
    mask: Option<MaskPlaces>,
    pub(super) grids: Grids,
    pub(super) panels: panels::Entry,
}

impl Inputs {
    pub(super) fn new(problem: &Sdpa, level: Level) -> Result<Self> {
        Ok(Self {
            problem: problem.try_clone()?,
            queries: Heads::new(problem, sys::NORM_ARG_QUERIES, 2)?,
            keys: Heads::new(problem, sys::NORM_ARG_KEYS, 3)?,
            values: Heads::new(problem, sys::NORM_ARG_VALUES, 2)?,
            key_scales: ScalePlaces::new(problem, sys::NORM_ARG_KEYS, 3),
            value_scales: ScalePlaces::new(problem, sys::NORM_ARG_VALUES, 2),
            mask: MaskPlaces::new(problem)?,
            grids: Grids::new(level),
            panels: panels::entry(level),
        })
    }
}

impl Inputs {
    /// The number of threads that pay off for a problem, limited by the execution and its buffers.
    pub(super) fn width(&self, execution: &Execution<'_>, rooms: usize) -> usize {
        /// The number of multiplications that pays for another thread.
        const WORTH: usize = 1 << 18;
        let shape = &self.problem.shape;
        let factors = [shape.batch, shape.heads, shape.queries, shape.keys.max(1)];
        let pairs = factors.into_iter().fold(1usize, usize::saturating_mul);
        let work = pairs.saturating_mul(shape.key_size + shape.value_size);
        execution.threads.count().min(rooms).min(work / WORTH).max(1)
    }
}

/// The inputs of an execution.
pub(super) struct Bound<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) arguments: &'a Arguments,
    pub(super) sequences: Sequences,
}

impl<'a> Bound<'a> {
    pub(super) fn new(inputs: &'a Inputs, arguments: &'a Arguments) -> Self {
        Self { inputs, arguments, sequences: Sequences::new(&inputs.problem, arguments) }
    }

    /// One number per head; `None` without the argument.
    ///
    /// # Safety
    /// The arguments were checked.
    pub(super) unsafe fn of_head(&self, id: i32, head: usize) -> Option<f32> {
        let start = self.arguments.get(id).cast_const().cast::<f32>();
        // SAFETY: guaranteed by the caller.
        (!start.is_null()).then(|| unsafe { start.add(head).read_unaligned() })
    }

    /// A row of scores.
    ///
    /// # Safety
    /// The arguments were checked.
    pub(super) unsafe fn score_row(&self, sequence: usize, head: usize, query: usize) -> ScoreRow {
        let masking = &self.inputs.problem.masking;
        // SAFETY: guaranteed by the caller.
        let (lengths, slope) = unsafe {
            (self.sequences.lengths(sequence), self.of_head(sys::NORM_ARG_ALIBI_SLOPES, head))
        };
        let keys = masking.keys(query, lengths);
        ScoreRow {
            kept: masking.kept(&keys),
            keys,
            position: masking.position(query, lengths),
            slope,
            mask: self.mask_row(sequence, head, query),
        }
    }

    fn mask_row(&self, sequence: usize, head: usize, query: usize) -> MaskRow {
        let Some(MaskPlaces { data_type, strides }) = self.inputs.mask else {
            return MaskRow::NONE;
        };
        let offset = sequence * strides[0] + head * strides[1] + query * strides[2];
        let start = self.arguments.get(sys::NORM_ARG_ATTN_MASK).cast_const();
        let start = start.wrapping_add(offset * data_type.size());
        MaskRow { start, data_type, shared: strides[3] == 0 }
    }

    /// The rows of keys or values in f32, in place or staged. Returns the first row and the row stride.
    ///
    /// # Safety
    /// The arguments were checked, the keys are within the length of the sequence, and the stage has room for them.
    pub(super) unsafe fn rows(
        &self,
        heads: &Heads,
        (sequence, group): (usize, usize),
        keys: Range<usize>,
        (stage, step): (*mut f32, usize),
    ) -> (*const f32, usize) {
        let whole = self.sequences.run_from(keys.start) >= keys.len();
        // SAFETY: guaranteed by the caller.
        unsafe {
            if whole && heads.is_direct(self.arguments) {
                let (page, at) = self.sequences.page_of(sequence, keys.start);
                let grid = heads.grid(self.arguments, (page, group), at..at + keys.len());
                return (grid.start.cast(), grid.row_step);
            }
            self.staged(heads, (sequence, group), keys, (stage, step))
        }
    }

    /// [`rows`](Self::rows), on the stage.
    ///
    /// # Safety
    /// As [`rows`](Self::rows).
    unsafe fn staged(
        &self,
        heads: &Heads,
        (sequence, group): (usize, usize),
        keys: Range<usize>,
        (stage, step): (*mut f32, usize),
    ) -> (*const f32, usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            runs(&self.sequences, sequence, keys, |at, (page, rows)| {
                let grid = heads.grid(self.arguments, (page, group), rows);
                self.inputs.grids.load(&grid, stage.add(at * step), step);
            });
        }
        (stage, step)
    }
}
