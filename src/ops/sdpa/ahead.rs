//! Prefetching for few rows: with few rows, attention is bound by memory, so what they read next is fetched into the
//! cache while they compute. With many rows the keys and values are already in the cache.

use super::panels::Later;
use crate::simd::{LANES, Simd};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines of memory, one of which is fetched with each term of a product.
pub(super) trait Ahead {
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    unsafe fn fetch<S: Simd>(&mut self);
}

/// No lines.
pub(super) struct Nothing;

impl Ahead for Nothing {
    #[inline(always)]
    unsafe fn fetch<S: Simd>(&mut self) {}
}

/// `N` sets of 16 rows. The rows of a set are consecutive in memory.
pub(super) struct Sets<const N: usize> {
    starts: [*const u8; N],
    /// The distance of rows, and the size of one, in bytes.
    step: usize,
    size: usize,
}

impl<const N: usize> Sets<N> {
    /// The sets whose rows `rows` returns. For a missing set the line at `instead` is fetched.
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

/// Lines of sets of rows, and then the last one again.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    at: *const u8,
    /// What is left: lines of this row, then further rows of the set, then further sets.
    lines: usize,
    rows: usize,
    sets: usize,
    /// Points to the set's start.
    start: *const *const u8,
    lines_of_row: usize,
    rows_of_set: usize,
    /// From the last line of a row to the next row.
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
                // Not beyond the last row.
                (self.lines, self.lines_of_row) = (usize::MAX, usize::MAX);
            }
        }
    }
}
