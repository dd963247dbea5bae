//! The keys and values of a block as panels, from any layout, and their scales.

use super::BLOCK;
use super::inputs::Bound;
use super::order::{Right, Run};
use super::panels::Panels;
use super::rows::{Heads, runs};
use super::scales::ScalePlaces;
use crate::simd::LANES;
use std::ops::Range;
use std::ptr::null;

/// Rows that are staged at once: as many as a panel of keys has.
pub(super) const STAGED: usize = LANES;

/// Where panels of rows are written.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) panels: *mut f32,
    /// Room for [`STAGED`] rows of f32, and their stride.
    pub(super) stage: *mut f32,
    pub(super) stage_step: usize,
}

/// The most runs of a block, in pages of at least [`LANES`] keys.
const MOST_RUNS: usize = BLOCK / LANES + 1;

/// The values of a block, in runs of keys that are consecutive in memory.
pub(super) struct Runs {
    all: [Run; MOST_RUNS],
    count: usize,
}

impl Runs {
    pub(super) fn one(right: Right) -> Self {
        Self { all: [Run::all(right); MOST_RUNS], count: 1 }
    }

    pub(super) fn as_slice(&self) -> &[Run] {
        &self.all[..self.count]
    }
}

impl Bound<'_> {
    /// The values of a range of the block that begins at `first`, in place unless they must be staged.
    ///
    /// # Safety
    /// The arguments were checked, the keys are within the length of the sequence, and the stage has room for them.
    pub(super) unsafe fn in_place(
        &self,
        heads: &Heads,
        (sequence, group): (usize, usize),
        (first, keys): (usize, Range<usize>),
        to: &Target,
    ) -> Runs {
        let panel = LANES;
        let start = keys.start - first;
        let problem = &self.inputs.problem;
        let has_runs = problem.shape.page >= LANES && !problem.is_bf16();
        // SAFETY: guaranteed by the caller.
        unsafe {
            if !has_runs || !heads.is_direct(self.arguments) {
                let stage = (to.stage, to.stage_step);
                let (rows, term) = self.rows(heads, (sequence, group), keys, stage);
                return Runs::one(Right { start: rows, term, panel }.offset(start));
            }
            let mut found = Runs { count: 0, ..Runs::one(Right { start: null(), term: 0, panel }) };
            runs(&self.sequences, sequence, keys, |at, (page, rows)| {
                let grid = heads.grid(self.arguments, (page, group), rows);
                let right = Right { start: grid.start.cast(), term: grid.row_step, panel };
                let end = start + at + grid.rows;
                found.all[found.count] = Run { right: right.offset(start + at), end };
                found.count += 1;
            });
            found
        }
    }

    /// Panels of 16 keys or values, with a vector for each element of a head. Later rows, and those of `next` for the
    /// same keys, are prefetched.
    ///
    /// # Safety
    /// The arguments were checked, the keys are within the length of the sequence, and there is room.
    pub(super) unsafe fn row_panels(
        &self,
        (heads, next): (&Heads, Option<&Heads>),
        (sequence, group): (usize, usize),
        keys: Range<usize>,
        to: &Target,
    ) -> Right {
        let panel = heads.size * LANES;
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.pieces(heads, (sequence, group), keys, to, |at, key, (rows, step), count| {
                let (page, place) = self.sequences.page_of(sequence, key);
                let of = (page, group);
                (self.inputs.panels)(&Panels {
                    rows,
                    step,
                    count,
                    cols: heads.size,
                    of_rows: true,
                    panels: to.panels.wrapping_add(at / LANES * panel),
                    panel,
                    later: next.map(|next| {
                        let own = heads.later(self.arguments, of, place + LANES);
                        [own, next.later(self.arguments, of, place)]
                    }),
                });
            });
        }
        Right { start: to.panels, term: LANES, panel }
    }

    /// Panels of 16 elements of a head, with a vector for each key.
    ///
    /// # Safety
    /// As [`row_panels`](Self::row_panels).
    pub(super) unsafe fn column_panels(
        &self,
        heads: &Heads,
        place: (usize, usize),
        keys: Range<usize>,
        to: &Target,
    ) -> Right {
        let panel = keys.len() * LANES;
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.pieces(heads, place, keys, to, |at, _, (rows, step), count| {
                (self.inputs.panels)(&Panels {
                    rows,
                    step,
                    count,
                    cols: heads.size,
                    of_rows: false,
                    panels: to.panels.wrapping_add(at * LANES),
                    panel,
                    later: None,
                });
            });
        }
        Right { start: to.panels, term: LANES, panel }
    }

    /// Calls `f` for runs of keys that are consecutive in memory, or for a few staged ones. Its arguments are the index
    /// of the first key, in the range and in the sequence, the f32 rows with their stride, and the number of keys. Only
    /// the last call may have a partial vector.
    ///
    /// # Safety
    /// As [`row_panels`](Self::row_panels).
    unsafe fn pieces(
        &self,
        heads: &Heads,
        (sequence, group): (usize, usize),
        keys: Range<usize>,
        to: &Target,
        mut f: impl FnMut(usize, usize, (*const f32, usize), usize),
    ) {
        let direct = heads.is_direct(self.arguments);
        let mut key = keys.start;
        while key < keys.end {
            let run = self.sequences.run_from(key).min(keys.end - key);
            let whole = run.is_multiple_of(LANES) || key + run == keys.end;
            let count = if direct && whole { run } else { STAGED.min(keys.end - key) };
            let range = key..key + count;
            // SAFETY: guaranteed by the caller; rows that are not direct are at most those of the stage.
            let rows = unsafe {
                let stage = (to.stage, to.stage_step);
                self.rows(heads, (sequence, group), range, stage)
            };
            f(key - keys.start, key, rows, count);
            key += count;
        }
    }

    /// Copies the scales of a range of keys; null without scales.
    ///
    /// # Safety
    /// The arguments were checked, the keys are within the length of the sequence, and there is room for them.
    pub(super) unsafe fn scales(
        &self,
        places: Option<ScalePlaces>,
        (sequence, group): (usize, usize),
        keys: Range<usize>,
        to: *mut f32,
    ) -> *const f32 {
        let Some(ScalePlaces { id, strides }) = places else { return std::ptr::null() };
        let start = self.arguments.get(id).cast_const().cast::<f32>();
        // SAFETY: guaranteed by the caller.
        unsafe {
            runs(&self.sequences, sequence, keys, |at, (page, rows)| {
                let start = start.wrapping_add(page * strides[0] + group * strides[1]);
                for (i, row) in rows.enumerate() {
                    to.add(at + i).write(start.wrapping_add(row * strides[2]).read_unaligned());
                }
            });
        }
        to
    }
}
