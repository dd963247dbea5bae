//! Forward over rows so short that the per-row scalar work would dominate: 16 rows at once.

use super::forward::Kernel;
use super::job::{
    OverlappedRows, ROWS_AT_ONCE, ShortRows, ShortScalars, ShortStatistics, SumsOfRows,
};
use super::normalize::{RowParams, Stream};
use super::schedule::{
    LONGEST_SHORT_AHEAD, LONGEST_SHORT_AHEAD_OF_STREAMS, SHORTEST_SHORT_OVERLAPPED,
};
use crate::simd::{Cache, Element, LANES, Simd, map, opaque, vectors};
use crate::tensor::RowMap;
use std::hint::black_box;

// SAFETY of every block below: rows exist and belong to this thread, `cols` is not 0, and the CPU supports the
// instruction set of `S`, by the contract of `forward_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>
    Kernel<'_, Src, Dst, RMS, AFFINE>
{
    /// Runs short rows from `first`, 16 at a time, up to `last` or to 16 rows that need the row-by-row kernel. Returns
    /// the row it stopped at.
    #[inline(always)]
    pub(super) unsafe fn short_rows<S: Simd>(&self, first: usize, last: usize) -> usize {
        let job = self.job;
        let step = |rows: &RowMap| rows.step_of_groups(ROWS_AT_ONCE, first);
        let (Some(src_step), Some(dst_step)) = (step(job.src_rows), step(job.dst_rows)) else {
            return first;
        };
        if !S::UNROLLS || last - first < ROWS_AT_ONCE {
            return first;
        }
        // Opaque, so that the addresses of 16 rows are not computed in advance for long rows.
        let steps = black_box((src_step * self.src_type.size(), dst_step * self.dst_type.size()));
        unsafe {
            let overlaps = RMS && !job.streams && self.row_bytes() >= SHORTEST_SHORT_OVERLAPPED;
            match job.short {
                ShortRows::Separate(statistics, _) if !overlaps => {
                    self.separate_rows::<S>(first, last, steps, statistics)
                }
                ShortRows::Separate(_, functions) | ShortRows::Overlapped(functions) => {
                    self.overlapped_rows::<S>(first, last, steps, functions)
                }
                ShortRows::None => first,
            }
        }
    }

    /// Storing a row overlaps with summing the row 16 later. Loads and stores alternate, as in a copy, and nothing
    /// waits for a square root or a division.
    #[inline(always)]
    unsafe fn overlapped_rows<S: Simd>(
        &self,
        first: usize,
        last: usize,
        (src_step, dst_step): (usize, usize),
        functions: OverlappedRows,
    ) -> usize {
        let job = self.job;
        let (cols, src_type) = (job.cols, self.src_type);
        let mut sums = SumsOfRows::NONE;
        let mut scalars = ShortScalars::NONE;
        // Rows before `row` are stored. If `ready`, the scalars are those of the 16 rows from `row`.
        let (mut row, mut ready) = (first, false);
        unsafe {
            let non_temporal = self.non_temporal(self.dst(row), dst_step);
            let fetched = self.prefetch_bytes();
            let fetched_ahead = (job.short_rows_ahead - ROWS_AT_ONCE) * src_step;
            loop {
                let next = if ready { row + ROWS_AT_ONCE } else { row };
                let sum = next + ROWS_AT_ONCE <= last;
                if !(sum || ready) {
                    return row;
                }
                let (mut src, mut dst, mut summed) = (self.src(row), self.dst(row), self.src(next));
                if sum && !RMS {
                    (functions.means)(job, summed, src_step, &mut sums);
                }
                for i in 0..ROWS_AT_ONCE {
                    if sum {
                        let ahead = summed.wrapping_add(fetched_ahead);
                        prefetch::<S>(job.prefetched_into, ahead, fetched);
                        sums.sum::<S, Src, Dst, RMS>(i, (src_type, summed), cols);
                        summed = summed.wrapping_add(src_step);
                    }
                    if ready {
                        let normalize =
                            self.normalize([RowParams::from_lane(&scalars, i, src, dst)]);
                        map::<S, _>(cols, &Stream::alone(normalize, non_temporal));
                        (src, dst) = (src.wrapping_add(src_step), dst.wrapping_add(dst_step));
                    }
                }
                if ready {
                    row += ROWS_AT_ONCE;
                }
                ready = sum && (functions.statistics)(job, next, &sums, &mut scalars);
                if !ready {
                    return row;
                }
            }
        }
    }

    /// Bytes of a row of src.
    #[inline(always)]
    fn row_bytes(&self) -> usize {
        self.job.cols * self.src_type.size()
    }

    /// How many bytes of a row are prefetched: all if rows come from memory, unless they are so short that the hardware
    /// prefetches them.
    #[inline(always)]
    fn prefetch_bytes(&self) -> usize {
        let bytes = self.row_bytes();
        if self.job.streams && bytes > 64 { bytes } else { 0 }
    }

    /// Whether rows from the address on are stored non-temporally.
    #[inline(always)]
    pub(super) fn non_temporal(&self, dst: *mut u8, dst_step: usize) -> bool {
        let even = self.job.dst_rows.step().is_some() && dst_step.is_multiple_of(64);
        self.job.streams && even && self.dst_type.streams(dst)
    }

    /// Computes the scalars of 16 rows as vectors, then stores the rows. For very short rows it computes the scalars of
    /// the next 16 rows first, so the stores hide the latency of their square roots and divisions.
    #[inline(always)]
    unsafe fn separate_rows<S: Simd>(
        &self,
        first: usize,
        last: usize,
        steps: (usize, usize),
        statistics: ShortStatistics,
    ) -> usize {
        let job = self.job;
        let mut row = first;
        let mut scalars = [ShortScalars::NONE; 2];
        let [mut current, mut next] = scalars.each_mut();
        unsafe {
            let compute = |row: usize, scalars: &mut ShortScalars| {
                row + ROWS_AT_ONCE <= last && statistics(job, row, steps.0, scalars)
            };
            let longest =
                if job.streams { LONGEST_SHORT_AHEAD_OF_STREAMS } else { LONGEST_SHORT_AHEAD };
            let ahead = self.row_bytes() <= longest;
            let mut ready = compute(row, current);
            while ready {
                if ahead {
                    ready = compute(row + ROWS_AT_ONCE, next);
                }
                self.store_short::<S>(row, current, steps);
                if !ahead {
                    ready = compute(row + ROWS_AT_ONCE, next);
                }
                std::mem::swap(&mut current, &mut next);
                row += ROWS_AT_ONCE;
            }
        }
        row
    }

    /// Stores [`ROWS_AT_ONCE`] rows from `row`.
    #[inline(always)]
    unsafe fn store_short<S: Simd>(
        &self,
        row: usize,
        scalars: &ShortScalars,
        (src_step, dst_step): (usize, usize),
    ) {
        const AT_ONCE: usize = 2;
        let job = self.job;
        unsafe {
            let (mut src, mut dst) = (self.src(row), self.dst(row));
            if job.cols.is_multiple_of(LANES) && self.non_temporal(dst, dst_step) {
                let fetched = self.prefetch_bytes();
                // One row at a time: non-temporal stores are fastest at consecutive addresses. They need whole vectors.
                for i in 0..ROWS_AT_ONCE {
                    let ahead = src.wrapping_add(job.short_rows_ahead * src_step);
                    prefetch::<S>(job.prefetched_into, ahead, fetched);
                    let row = RowParams::from_lane(scalars, i, src, dst);
                    let stream = Stream::alone(self.normalize::<S, 1>([row]), true);
                    for col in (0..job.cols).step_by(LANES) {
                        stream.vectors::<1>(col);
                    }
                    (src, dst) = (src.wrapping_add(src_step), dst.wrapping_add(dst_step));
                }
                return;
            }
            let mut i = 0;
            while i < ROWS_AT_ONCE {
                // Unrolled by hand: arrays indexed in a loop may go through memory.
                let rows = [
                    RowParams::from_lane(scalars, i, src, dst),
                    RowParams::from_lane(
                        scalars,
                        i + 1,
                        src.wrapping_add(src_step),
                        dst.wrapping_add(dst_step),
                    ),
                ];
                vectors::<S, _>(0, job.cols, &self.normalize::<S, AT_ONCE>(rows));
                src = src.wrapping_add(AT_ONCE * src_step);
                dst = dst.wrapping_add(AT_ONCE * dst_step);
                i += AT_ONCE;
            }
        }
    }
}

/// Prefetches a number of bytes, which need not exist.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn prefetch<S: Simd>(cache: Cache, row: *const u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match cache {
            Cache::First => {
                for line in (0..bytes).step_by(64) {
                    S::prefetch(row.wrapping_add(line));
                }
            }
            Cache::Second => {
                // As in `Simd::prefetch_into`.
                let row = opaque(row);
                for line in (0..bytes).step_by(64) {
                    S::prefetch_second(row.wrapping_add(line));
                }
            }
        }
    }
}
