//! Forward: `dst = (src - mean) * r * scale + shift` with `r = 1/sqrt(variance + epsilon)`.
//!
//! Per row: one sweep for its statistics, one that writes dst. The second takes overlapped the first of rows
//! further on where that pays: while the one waits for memory, the other computes. The mean is trusted
//! as `high`, an f32, and what is left of it: `src - high` is exact where it is small, and the rest
//! enters by a fused multiply-add, as do scale and shift. Rows that f32 does not carry, or whose statistics take
//! another sweep, are left to `wide`.

use super::job::{Forward, StatisticsUse};
use super::normalize::{BOTH, Normalize, Prefetch, Row, RowParams, SCALE, Stream};
use super::problem::Flags;
use super::row::{Moments, Statistics, mean_residual, reciprocal};
use super::types::KernelTypes;
use crate::simd::{
    BLOCK, Bf16, Byte, Element, F16, F32, HalfAsF32, Level, Simd, WithPostOps, entry_points, fold,
    fold_beside, map, map_and_fold, unroll,
};
use crate::tensor::DataType;

/// The most rows whose statistics are known before they are written: while one row's lanes are joined, and
/// its root and quotient taken, other rows' sweeps run.
const DEPTH: usize = 4;
/// How many bytes of src or dst a row may have so that another's statistics are taken overlapped: with RMS, where there is
/// little to compute, and with mean and variance; the first where src and dst stay in the second-level cache, the
/// others where they do not.
const LONGEST_RMS_OVERLAPPED: usize = 8 * 1024;
const LONGEST_RMS_OVERLAPPED_NOT_RESIDENT: usize = 4 * 1024;
const LONGEST_OVERLAPPED_NOT_RESIDENT: usize = 20 * 1024;
/// The same from f32 to bf16, in any cache.
const LONGEST_F32_TO_BF16_OVERLAPPED: usize = 8 * 1024;

/// A job with the types and flags of its kernel.
pub(super) struct Kernel<'a, Src, Dst, const RMS: bool, const AFFINE: u8> {
    pub(super) job: &'a Forward,
    pub(super) src_type: Src,
    pub(super) dst_type: Dst,
}

// SAFETY of every block below: rows exist and are this thread's, `cols` is not 0 and the instruction set
// of `S` is there, by the contract of `forward_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>
    Kernel<'_, Src, Dst, RMS, AFFINE>
{
    #[inline(always)]
    pub(super) unsafe fn src(&self, row: usize) -> *const u8 {
        self.job.src.wrapping_add(self.job.src_rows.offset(row) * self.src_type.size())
    }

    #[inline(always)]
    unsafe fn moments<S: Simd>(&self, row: usize) -> Moments<Src, Dst, RMS> {
        unsafe { Moments::new::<S>(self.src_type, self.src(row), self.job.cols) }
    }

    /// A row by itself; `None` if f32 does not carry it.
    #[inline(always)]
    unsafe fn alone<S: Simd>(&self, row: usize) -> Option<Row> {
        let job = self.job;
        unsafe {
            let found = if job.statistics == StatisticsUse::Given {
                job.given(row)?
            } else {
                let moments = self.moments::<S>(row);
                let sums = if job.prefetches
                    && !(RMS && job.streams && self.dst_type.streams(self.dst(row)))
                {
                    // The memory has nothing else to do in this sweep, which takes a while: the next row may
                    // come. RMS asks while it writes, where it writes non-temporally.
                    let prefetch =
                        Prefetch { row: self.src_ahead(row + 1), size: self.src_type.size() };
                    fold_beside::<S, 1, _, _>(job.cols, &moments, &prefetch)
                } else {
                    fold::<S, 1, _>(job.cols, &moments)
                };
                moments.statistics(job.cols, &sums)?
            };
            Some(self.ready(row, &found))
        }
    }

    /// Where a row begins, if it is there.
    #[inline(always)]
    fn src_ahead(&self, row: usize) -> *const u8 {
        self.job.src.wrapping_add(self.job.src_rows.offset(row) * self.src_type.size())
    }

    /// What writing a row takes; its statistics are written here, if they are outputs.
    #[inline(always)]
    unsafe fn ready(&self, row: usize, found: &Statistics) -> Row {
        let job = self.job;
        unsafe {
            job.write(row, found);
            let high = found.mean as f32;
            let r = reciprocal(found.variance, job.epsilon) as f32;
            let low = if RMS { 0.0 } else { mean_residual(found.mean, high, r) };
            Row { src: self.src(row), dst: self.dst(row), high, low, r }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn dst(&self, row: usize) -> *mut u8 {
        self.job.dst.wrapping_add(self.job.dst_rows.offset(row) * self.dst_type.size())
    }

    #[inline(always)]
    pub(super) fn normalize<S: Simd, const R: usize>(
        &self,
        rows: [RowParams<S>; R],
    ) -> Normalize<S, Src, Dst, RMS, AFFINE, R> {
        let (scale, shift) = (self.job.scale, self.job.shift);
        Normalize { src_type: self.src_type, dst_type: self.dst_type, rows, scale, shift }
    }

    /// The first of the rows that are known.
    #[inline(always)]
    unsafe fn known<S: Simd, const R: usize>(
        &self,
        known: &mut Known,
    ) -> Normalize<S, Src, Dst, RMS, AFFINE, R> {
        let rows = known.take::<R>();
        unsafe {
            let mut written = [RowParams::new(&rows[0]); R];
            for r in 1..R {
                written[r] = RowParams::new(&rows[r]);
            }
            self.normalize::<S, R>(written)
        }
    }

    /// Writes one row, of which `next` comes next.
    #[inline(always)]
    unsafe fn write_non_temporal<S: Simd>(&self, row: Row, next: usize) {
        unsafe {
            let normalize = self.normalize::<S, 1>([RowParams::new(&row)]);
            if self.dst_type.streams(row.dst) {
                let fetched = !RMS && self.job.statistics != StatisticsUse::Given;
                let next = if fetched { std::ptr::null() } else { self.src_ahead(next) };
                map::<S, _>(self.job.cols, &Stream { normalize, non_temporal: true, next });
            } else {
                map::<S, _>(self.job.cols, &normalize);
            }
        }
    }

    /// Writes a row and takes overlapped the statistics of row `next`, which follows those that are known already; gives
    /// how many there are before one that f32 does not carry.
    #[inline(always)]
    unsafe fn write_one_and_fold<S: Simd>(&self, known: &mut Known, next: usize) -> usize {
        let job = self.job;
        unsafe {
            let moments = [self.moments::<S>(next)];
            let [row] = known.take();
            let normalize = self.normalize::<S, 1>([RowParams::new(&row)]);
            let non_temporal = job.streams && self.dst_type.streams(row.dst);
            // The row after the one that is summed, if it comes from memory.
            let far = if job.streams { self.src_ahead(next + 1) } else { std::ptr::null() };
            let op = Stream { normalize, non_temporal, next: far };
            let [sums] = map_and_fold::<S, 1, 1, _, _>(job.cols, &op, &moments);
            let Some(found) = moments[0].statistics(job.cols, &sums) else { return 0 };
            known.add(self.ready(next, &found));
            1
        }
    }

    /// The same for two rows.
    #[inline(always)]
    unsafe fn write_two_and_fold<S: Simd>(&self, known: &mut Known, next: usize) -> usize {
        let cols = self.job.cols;
        unsafe {
            let moments = [self.moments::<S>(next), self.moments::<S>(next + 1)];
            let normalize = self.known::<S, 2>(known);
            let sums = map_and_fold::<S, 1, 2, _, _>(cols, &normalize, &moments);
            unroll!(r in 2, {
                let Some(found) = moments[r].statistics(cols, &sums[r]) else { return r };
                known.add(self.ready(next + r, &found));
            });
            2
        }
    }

    /// Whether rows take overlapped the statistics of others.
    #[inline(always)]
    fn overlaps<S: Simd>(&self) -> bool {
        let job = self.job;
        let (src, dst) = (job.cols * self.src_type.size(), job.cols * self.dst_type.size());
        let fits = match (RMS, job.schedule.resident) {
            (true, true) => src.max(dst) <= LONGEST_RMS_OVERLAPPED,
            (true, false) => !job.streams && src.max(dst) <= LONGEST_RMS_OVERLAPPED_NOT_RESIDENT,
            (false, _) if Dst::BATCHED_STORE && !Src::HALF && !job.streams => {
                src.max(dst) <= LONGEST_F32_TO_BF16_OVERLAPPED
            }
            (false, true) => true,
            (false, false) if job.streams => src + dst <= job.schedule.caches.row_pair(),
            (false, false) => src.max(dst) <= LONGEST_OVERLAPPED_NOT_RESIDENT,
        };
        let given = job.statistics == StatisticsUse::Given;
        S::MANY_REGISTERS && !given && job.cols <= BLOCK && fits
    }
}

/// The rows whose statistics are known, in order.
struct Known {
    rows: [Row; DEPTH],
    first: usize,
    len: usize,
}

impl Known {
    #[inline(always)]
    fn add(&mut self, row: Row) {
        self.rows[(self.first + self.len) % DEPTH] = row;
        self.len += 1;
    }

    #[inline(always)]
    fn take<const R: usize>(&mut self) -> [Row; R] {
        let mut rows = [self.rows[self.first % DEPTH]; R];
        for r in 1..R {
            rows[r] = self.rows[(self.first + r) % DEPTH];
        }
        self.first += R;
        self.len -= R;
        rows
    }
}

/// Rows from `first` on, up to `last - 1` or to one that f32 does not carry; gives the row it stopped
/// at.
///
/// # Safety
/// The rows are there and this thread's; `cols` is not 0, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn forward_rows<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>(
    job: &Forward,
    first: usize,
    last: usize,
) -> usize {
    let src_type = Src::of(job.src_type);
    // SAFETY: the job's ramps are there.
    let dst_type = unsafe { Dst::of(job.dst_type).scaled(job.factors).with_post_ops(job.post_ops) };
    let kernel = Kernel::<Src, Dst, RMS, AFFINE> { job, src_type, dst_type };
    let row_bytes = job.cols * src_type.size().max(dst_type.size());
    let overlapped = kernel.overlaps::<S>();
    // Stores that look at several vectors of a row do so less often for rows one by one.
    let pairs =
        S::MANY_REGISTERS && !RMS && job.schedule.resident && !(Dst::BATCHED_STORE && overlapped);
    let rows_at_once = if pairs { 2 } else { 1 };
    let in_cache = job.schedule.caches.working_set() / row_bytes;
    let depth = if overlapped && in_cache < 3 * rows_at_once {
        rows_at_once
    } else if overlapped {
        2 * rows_at_once
    } else if RMS && !job.schedule.resident {
        // Its sweeps are memory's: the row that was summed is written while it is near.
        1
    } else {
        (in_cache / 4).clamp(1, DEPTH)
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        let nothing = Row { src: job.src, dst: job.dst, high: 0.0, low: 0.0, r: 0.0 };
        let mut known = Known { rows: [nothing; DEPTH], first: 0, len: 0 };
        // Rows before `next` are written or known; `end` is where they stop.
        let (mut next, mut end) = (first, last);
        loop {
            if known.len == 0 {
                next = kernel.short_rows::<S>(next, end);
            }
            while known.len < depth && next < end {
                let Some(ready) = kernel.alone::<S>(next) else {
                    end = next;
                    break;
                };
                known.add(ready);
                next += 1;
            }
            let folded = if overlapped && pairs && known.len >= 2 && next + 2 <= end {
                kernel.write_two_and_fold::<S>(&mut known, next)
            } else if overlapped && !pairs && known.len >= 1 && next < end {
                kernel.write_one_and_fold::<S>(&mut known, next)
            } else if job.streams && known.len >= 1 {
                let [row] = known.take();
                kernel.write_non_temporal::<S>(row, next);
                continue;
            } else if pairs && known.len >= 2 {
                map::<S, _>(job.cols, &kernel.known::<S, 2>(&mut known));
                continue;
            } else if known.len >= 1 {
                map::<S, _>(job.cols, &kernel.known::<S, 1>(&mut known));
                continue;
            } else {
                break;
            };
            next += folded;
            if folded < rows_at_once {
                end = next;
            }
        }
        if job.streams {
            S::stream_fence();
        }
        end
    }
}

entry_points! {
    /// Rows forward, per level.
    mod entries: forward_rows<Src: Element, Dst: Element; const RMS: bool, const AFFINE: u8>(
        job: &Forward, first: usize, last: usize
    ) -> usize;
}

/// Runs rows from `first` on and gives the row it stopped at: `last`, or one for `wide`.
pub(super) type Entry = unsafe fn(&Forward, usize, usize) -> usize;

/// The kernel for a problem's types and parameters; `None` if all rows are computed in f64.
pub(super) fn entry(level: Level, types: &KernelTypes, flags: Flags) -> Option<Entry> {
    use DataType::{Bf16 as B, F16 as H, F32 as F, S8, U8};
    use entries::{at, portable::entry_portable as portable};
    let (src, dst, rms) = (types.src, types.dst, flags.rms());
    if types.double() {
        return None;
    }
    let bare = !flags.scale() && !flags.shift();
    let pair = (src.data_type, dst.data_type);
    let entry = match pair {
        (_, S8 | U8) if rms && flags.shift() => at::<F32, Byte, true, BOTH>(level),
        _ if rms && flags.shift() => at::<F32, F32, true, BOTH>(level),
        (F, F) if types.fused => typed::<F32, WithPostOps<F32>>(level, rms),
        (B, B) if types.fused => typed::<Bf16, WithPostOps<Bf16>>(level, rms),
        (F, F) if bare && !dst.half => bare_entry::<F32, F32>(level, rms),
        (B, B) if bare => bare_entry::<Bf16, Bf16>(level, rms),
        (H, H) if bare => bare_entry::<F16, F16>(level, rms),
        (F, B) if bare => bare_entry::<F32, Bf16>(level, rms),
        (B, F) if bare => bare_entry::<Bf16, F32>(level, rms),
        (F, F) if src.half && dst.half => at::<HalfAsF32, HalfAsF32, false, BOTH>(level),
        (F, F) if dst.half => at::<F32, HalfAsF32, false, BOTH>(level),
        (F, S8 | U8) => typed::<F32, Byte>(level, rms),
        (B, F) => typed::<Bf16, F32>(level, rms),
        (B, B) => typed::<Bf16, Bf16>(level, rms),
        (B, S8 | U8) => typed::<Bf16, Byte>(level, rms),
        (H, H) => typed::<F16, F16>(level, rms),
        (F, B) => typed::<F32, Bf16>(level, rms),
        (S8 | U8, F) => typed::<Byte, F32>(level, rms),
        _ => typed::<F32, F32>(level, rms),
    };
    // At the portable level all is one of these.
    Some(entry.unwrap_or(match (src.half, dst.half, dst.is_byte(), rms) {
        (_, _, true, true) => portable::<F32, Byte, true, BOTH>,
        (true, _, true, false) => portable::<HalfAsF32, Byte, false, BOTH>,
        (false, _, true, false) => portable::<F32, Byte, false, BOTH>,
        (_, _, false, true) => portable::<F32, F32, true, BOTH>,
        (true, true, false, false) => portable::<HalfAsF32, HalfAsF32, false, BOTH>,
        (false, true, false, false) => portable::<F32, HalfAsF32, false, BOTH>,
        (_, false, false, false) => portable::<F32, F32, false, BOTH>,
    }))
}

fn bare_entry<Src: Element, Dst: Element>(level: Level, rms: bool) -> Option<Entry> {
    if rms {
        entries::at::<Src, Dst, true, 0>(level)
    } else {
        entries::at::<Src, Dst, false, 0>(level)
    }
}

fn typed<Src: Element, Dst: Element>(level: Level, rms: bool) -> Option<Entry> {
    if rms {
        entries::at::<Src, Dst, true, SCALE>(level)
    } else {
        entries::at::<Src, Dst, false, BOTH>(level)
    }
}
