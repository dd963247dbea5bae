//! Prefetching for few rows. Attention to few rows is memory-bound, so the next keys and values are fetched into the
//! cache during the computation. With many rows they are already there.

use super::panels::Later;
use crate::heap::LINE;
use crate::simd::{LANES, Simd};

/// Lines of memory to prefetch, one with each term of a product.
pub(super) trait Ahead {
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    unsafe fn fetch<S: Simd>(&mut self);
}

/// Prefetches nothing.
pub(super) struct Nothing;

impl Ahead for Nothing {
    #[inline(always)]
    unsafe fn fetch<S: Simd>(&mut self) {}
}

/// `N` sets of 16 rows. The rows of a set are consecutive in memory.
pub(super) struct Sets<const N: usize> {
    starts: [*const u8; N],
    /// The row stride and the size of a row, in bytes.
    step: usize,
    size: usize,
}

impl<const N: usize> Sets<N> {
    /// The sets whose rows `rows` returns. Instead of a missing set, the line at `instead` is fetched.
    pub(super) fn new(instead: *const u8, rows: impl Fn(usize) -> Option<Later>) -> Self {
        let mut sets = Self { starts: [instead; N], step: 0, size: 1 };
        for (set, start) in sets.starts.iter_mut().enumerate() {
            let Some(found) = rows(set) else { continue };
            (*start, sets.step, sets.size) = (found.start, found.step, found.size);
        }
        sets
    }

    /// The lines of part `part` of `parts` of the sets, in the order of their addresses.
    ///
    /// # Safety
    /// There is such a part.
    #[inline(always)]
    pub(super) unsafe fn lines(&self, part: usize, parts: usize) -> Lines {
        let (first, end) = (part * N / parts, (part + 1) * N / parts);
        // Rows may be empty.
        let lines = self.size.div_ceil(LINE).max(1);
        let dense = self.step == lines * LINE;
        let (lines, rows) = if dense { (lines * LANES, 1) } else { (lines, LANES) };
        // SAFETY: the part has a first set.
        let start = unsafe { self.starts.as_ptr().add(first) };
        Lines {
            // SAFETY: as above.
            at: unsafe { *start },
            lines,
            rows: rows - 1,
            start,
            sets: end.saturating_sub(first + 1),
            lines_of_row: lines,
            rows_of_set: rows,
            skip: self.step.wrapping_sub((lines - 1) * LINE),
        }
    }
}

/// The lines of sets of rows. After the last one, it repeats.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    at: *const u8,
    /// What remains: lines of this row, then rows of the set, then sets.
    lines: usize,
    rows: usize,
    sets: usize,
    /// Points to the set's start.
    start: *const *const u8,
    lines_of_row: usize,
    rows_of_set: usize,
    /// From the last line of a row to the first of the next.
    skip: usize,
}

impl Ahead for Lines {
    #[inline(always)]
    unsafe fn fetch<S: Simd>(&mut self) {
        // SAFETY: guaranteed by the caller; there are as many starts as sets.
        unsafe {
            S::prefetch(self.at);
            self.lines -= 1;
            if self.lines > 0 {
                self.at = self.at.wrapping_add(LINE);
                return;
            }
            self.lines = self.lines_of_row;
            if self.rows > 0 {
                self.rows -= 1;
                self.at = self.at.wrapping_add(self.skip);
            } else if self.sets > 0 {
                (self.sets, self.rows) = (self.sets - 1, self.rows_of_set - 1);
                self.start = self.start.add(1);
                self.at = *self.start;
            } else {
                // Do not go beyond the last row.
                (self.lines, self.lines_of_row) = (usize::MAX, usize::MAX);
            }
        }
    }
}
