//! Forward: `dst = (src - mean) * r * scale + shift` with `r = 1/sqrt(variance + epsilon)`.
//!
//! Each row takes two sweeps: one sums its statistics, one stores dst. Where it pays, storing one row overlaps with
//! summing a later one, so one waits for memory while the other computes. The mean is split into `high`, rounded to
//! f32, and a remainder. `src - high` is exact where it is small; the remainder, like scale and shift, enters by a
//! fused multiply-add. Rows that need a second pass or f64 are left to `f64_forward`.

use super::job::{Forward, StatisticsUse};
use super::normalize::{BOTH, InPairs, Normalize, Prefetch, Row, RowParams, SCALE, Stream};
use super::row::Moments;
use super::schedule::{DEPTH, Pipelining};
use super::types::KernelTypes;
use crate::primitive::normalization::Flags;
use crate::rows::row_lanes::Normalizers;
use crate::rows::statistics::Statistics;
use crate::simd::{
    Bf16, Byte, Cache, Element, F16, F32, HalfAsF32, Level, Simd, Sums, WithPostOps, entry_points,
    fold, fold_beside, map, map_and_fold, opaque, unroll, zeroed,
};
use crate::tensor::DataType;

/// A job with the types and flags of its kernel.
pub(super) struct Kernel<'a, Src, Dst, const RMS: bool, const AFFINE: u8> {
    pub(super) job: &'a Forward<'a>,
    pub(super) src_type: Src,
    pub(super) dst_type: Dst,
}

// SAFETY of every block below: rows exist and belong to this thread, `cols` is not 0, and the CPU supports the
// instruction set of `S`, by the contract of `forward_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>
    Kernel<'_, Src, Dst, RMS, AFFINE>
{
    /// The address of a row, which need not exist.
    #[inline(always)]
    pub(super) fn src(&self, row: usize) -> *const u8 {
        self.job.src.wrapping_add(self.job.src_rows.offset(row) * self.src_type.size())
    }

    /// The moments of the row at an address.
    #[inline(always)]
    unsafe fn moments<S: Simd>(&self, src: *const u8) -> Moments<Src, Dst, RMS> {
        unsafe { Moments::new::<S>(self.src_type, src, self.job.stat_cols) }
    }

    /// Computes the statistics of a row; `None` if the row needs a second pass or f64.
    #[inline(always)]
    unsafe fn prepare<S: Simd>(&self, row: usize, (src, dst): (*const u8, *mut u8)) -> Option<Row> {
        let job = self.job;
        unsafe {
            let found = if job.statistics == StatisticsUse::Given {
                job.given(row)?
            } else {
                let moments = self.moments::<S>(src);
                let late = job.pipelining.fetches_late && job.streams && self.dst_type.streams(dst);
                let sums = if const { S::UNROLLS && !RMS } && job.prefetches && !late {
                    // This sweep leaves memory bandwidth for prefetching the next row.
                    let (row, size) = (self.src(row + 1), self.src_type.size());
                    let prefetch = Prefetch { row, size, cache: job.prefetched_into };
                    fold_beside::<S, 1, _, _>(job.stat_cols, &moments, &prefetch)
                } else {
                    fold::<S, 1, _>(job.stat_cols, &moments)
                };
                moments.statistics(job.stat_cols, &sums)?
            };
            Some(self.row(row, (src, dst), &found))
        }
    }

    /// Adds rows from `next` to `end - 1` until enough are pending, or up to one that needs a second pass or f64. Returns
    /// the next row, and where the run ends.
    #[inline(always)]
    unsafe fn prepare_rows<S: Simd>(
        &self,
        pending: &mut Pending,
        mut next: usize,
        end: usize,
    ) -> (usize, usize) {
        while pending.len < self.job.pipelining.depth && next < end {
            let addresses = (self.src(next), self.dst(next));
            let Some(row) = (unsafe { self.prepare::<S>(next, addresses) }) else {
                return (next, next);
            };
            pending.add(row);
            next += 1;
        }
        (next, end)
    }

    /// Adds `count` summed rows from `next` on to the pending ones, up to a row that needs a second pass or f64. Returns
    /// how many it added.
    #[inline(always)]
    unsafe fn add(
        &self,
        pending: &mut Pending,
        next: usize,
        summed: &[Summed<Src, Dst, RMS>; 2],
        count: usize,
    ) -> usize {
        let mut added = 0;
        // A loop, so that a kernel has the scalar code of a row once.
        while added < count {
            let Summed { moments, sums } = &summed[added];
            let Some(found) = moments.statistics(self.job.cols, sums) else { break };
            let (src, dst) = (moments.src, self.dst(next + added));
            pending.add(unsafe { self.row(next + added, (src, dst), &found) });
            added += 1;
        }
        added
    }

    /// The scalars for storing a row. Stores its statistics if they are outputs.
    #[inline(always)]
    unsafe fn row(&self, row: usize, (src, dst): (*const u8, *mut u8), found: &Statistics) -> Row {
        let job = self.job;
        unsafe {
            job.write(row, found);
            let Normalizers { high, low, r } =
                Normalizers::<f64>::new::<RMS>(found.mean, found.variance, job.epsilon);
            Row { src, dst, high, low, r }
        }
    }

    #[inline(always)]
    pub(super) fn dst(&self, row: usize) -> *mut u8 {
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

    /// Takes the first `R` pending rows from the queue, ready to be stored.
    #[inline(always)]
    unsafe fn normalize_pending<S: Simd, const R: usize>(
        &self,
        pending: &mut Pending,
    ) -> Normalize<S, Src, Dst, RMS, AFFINE, R> {
        let rows = pending.take::<R>();
        unsafe {
            let mut params: [RowParams<S>; R] = zeroed();
            unroll!(r in R, {
                params[r] = RowParams::new(&rows[r]);
            });
            self.normalize::<S, R>(params)
        }
    }

    /// A row to be stored while `next` is prefetched unless it is null.
    #[inline(always)]
    unsafe fn stream<S: Simd>(
        &self,
        row: &Row,
        non_temporal: bool,
        next: *const u8,
    ) -> Stream<S, Src, Dst, RMS, AFFINE> {
        let normalize = self.normalize::<S, 1>([unsafe { RowParams::new(row) }]);
        Stream { normalize, non_temporal, next, cache: self.job.prefetched_into }
    }

    /// Runs rows `row` to `last - 1` one after another, up to a row that needs a second pass or f64. Prefetches the next
    /// row while one is stored. Returns the row it stopped at.
    ///
    /// What changes from row to row stays in registers: with one store to the stack among the non-temporal ones, rows of
    /// 2 KiB took 1.12 times as long on a Zen 4.
    #[inline(always)]
    unsafe fn run_one_by_one<S: Simd>(&self, mut row: usize, last: usize) -> usize {
        let job = self.job;
        let (src_rows, dst_rows) = (job.src_rows, job.dst_rows);
        let src_step = src_rows.innermost().0 * self.src_type.size();
        // A single row has a step of 0.
        let dst_step = (dst_rows.innermost().0 * self.dst_type.size()).max(1);
        while row < last {
            let count = match dst_rows.innermost() {
                (0, _) => 1,
                _ => (last - row).min(src_rows.stretch(row)).min(dst_rows.stretch(row)),
            };
            let (mut src, mut dst) = (self.src(row), self.dst(row));
            let (first, end) = (dst, dst.wrapping_add(count * dst_step));
            let done = |dst: *mut u8| (dst.addr() - first.addr()) / dst_step;
            while dst != end {
                unsafe {
                    let n = if job.statistics == StatisticsUse::Hidden { 0 } else { done(dst) };
                    let ready = self.prepare::<S>(row + n, (src, dst));
                    let Some(ready) = ready else { return row + done(dst) };
                    src = opaque(src.wrapping_add(src_step));
                    dst = dst.wrapping_add(dst_step);
                    let non_temporal = job.streams && self.dst_type.streams(ready.dst);
                    let op = self.stream::<S>(&ready, non_temporal, src);
                    if const { S::MANY_REGISTERS && !(Src::HALF || Src::EXACT || Dst::HALF) }
                        && op.cache == Cache::First
                    {
                        map::<S, _>(job.cols, &InPairs(op));
                    } else {
                        map::<S, _>(job.cols, &op);
                    }
                }
            }
            row += count;
        }
        row
    }

    /// Stores the first pending row and meanwhile sums the row at the first address. May prefetch the one at the second.
    #[inline(always)]
    unsafe fn write_and_sum<S: Simd>(
        &self,
        pending: &mut Pending,
        src: [*const u8; 2],
    ) -> Summed<Src, Dst, RMS> {
        let job = self.job;
        unsafe {
            let moments = self.moments::<S>(src[0]);
            let non_temporal = job.streams && self.dst_type.streams(pending.first().dst);
            let normalize = self.normalize_pending::<S, 1>(pending);
            // Where dst is streamed, src comes from memory too, so a later row is prefetched.
            let next = if job.streams { src[1] } else { std::ptr::null() };
            let op = Stream { normalize, non_temporal, next, cache: job.prefetched_into };
            let [sums] = map_and_fold::<S, 1, 1, _, _>(job.cols, &op, &[moments]);
            Summed { moments, sums }
        }
    }

    /// Stores the first two pending rows and meanwhile sums two.
    #[inline(always)]
    unsafe fn write_and_sum_two<S: Simd>(
        &self,
        pending: &mut Pending,
        src: [*const u8; 2],
    ) -> [Summed<Src, Dst, RMS>; 2] {
        unsafe {
            let moments = [self.moments::<S>(src[0]), self.moments::<S>(src[1])];
            let normalize = self.normalize_pending::<S, 2>(pending);
            let [a, b] = map_and_fold::<S, 1, 2, _, _>(self.job.cols, &normalize, &moments);
            [Summed { moments: moments[0], sums: a }, Summed { moments: moments[1], sums: b }]
        }
    }
}

/// A row with its sums, from which the statistics follow.
#[derive(Clone, Copy)]
struct Summed<Src, Dst, const RMS: bool> {
    moments: Moments<Src, Dst, RMS>,
    sums: Sums<1>,
}

/// A queue of rows whose statistics are computed but which are not stored yet.
struct Pending {
    rows: [Row; DEPTH],
    first: usize,
    len: usize,
}

impl Pending {
    #[inline(always)]
    fn add(&mut self, row: Row) {
        self.rows[(self.first + self.len) % DEPTH] = row;
        self.len += 1;
    }

    /// The row that was added first. There is one.
    #[inline(always)]
    fn first(&self) -> &Row {
        &self.rows[self.first % DEPTH]
    }

    #[inline(always)]
    fn take<const R: usize>(&mut self) -> [Row; R] {
        // SAFETY: rows are pointers and numbers.
        let mut rows: [Row; R] = unsafe { zeroed() };
        unroll!(r in R, {
            rows[r] = self.rows[(self.first + r) % DEPTH];
        });
        self.first += R;
        self.len -= R;
        rows
    }
}

/// Runs rows `first` to `last - 1`, or up to a row that needs a second pass or f64. Returns the row it stopped at.
///
/// # Safety
/// The rows exist and belong to this thread, `cols` is not 0, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn forward_rows<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>(
    job: &Forward<'_>,
    first: usize,
    last: usize,
) -> usize {
    let src_type = Src::of(job.src_type);
    // SAFETY: the job's post-operations outlive the call.
    let dst_type = unsafe { Dst::of(job.dst_type).scaled(job.factors).with_post_ops(job.post_ops) };
    let kernel = Kernel::<Src, Dst, RMS, AFFINE> { job, src_type, dst_type };
    let Pipelining { overlapped, pairs, rows_ahead, fetches_late, .. } = job.pipelining;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut pending: Pending = zeroed();
        let mut summed: [Summed<Src, Dst, RMS>; 2] = zeroed();
        // Rows before `next` are stored or pending; the run stops at `end`.
        let (mut next, mut end) = (first, last);
        loop {
            if pending.len == 0 {
                next = kernel.short_rows::<S>(next, end);
                if const { S::UNROLLS && RMS } && job.one_by_one && !overlapped {
                    next = kernel.run_one_by_one::<S>(next, end);
                    end = next;
                }
            }
            (next, end) = kernel.prepare_rows::<S>(&mut pending, next, end);
            let src = [kernel.src(next), kernel.src(next + rows_ahead)];
            let mut count = 1;
            // Without enough registers, these loops are not compiled.
            if const { S::MANY_REGISTERS && !RMS }
                && (overlapped && pairs && pending.len >= 2 && next + 2 <= end)
            {
                summed = kernel.write_and_sum_two::<S>(&mut pending, src);
                count = 2;
            } else if S::MANY_REGISTERS && overlapped && !pairs && pending.len >= 1 && next < end {
                summed[0] = kernel.write_and_sum::<S>(&mut pending, src);
            } else if pending.len == 0 {
                break;
            } else {
                if const { S::UNROLLS && !RMS }
                    && job.streams
                    && dst_type.streams(pending.first().dst)
                {
                    let fetched = !fetches_late && job.statistics != StatisticsUse::Given;
                    let next = if fetched { std::ptr::null() } else { src[0] };
                    let [row] = pending.take();
                    map::<S, _>(job.cols, &kernel.stream::<S>(&row, true, next));
                } else if const { S::MANY_REGISTERS && !RMS } && pairs && pending.len >= 2 {
                    map::<S, _>(job.cols, &kernel.normalize_pending::<S, 2>(&mut pending));
                } else {
                    map::<S, _>(job.cols, &kernel.normalize_pending::<S, 1>(&mut pending));
                }
                continue;
            }
            let added = kernel.add(&mut pending, next, &summed, count);
            next += added;
            if added < count {
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
    /// Forward, per level.
    mod entries: forward_rows<Src: Element, Dst: Element; const RMS: bool, const AFFINE: u8>(
        job: &Forward<'_>, first: usize, last: usize
    ) -> usize;
}

/// Runs rows from the first index to before the second. Returns the second index, or the row that needs `f64_forward`.
pub(super) type Entry = unsafe fn(&Forward<'_>, usize, usize) -> usize;

/// Whether there are kernels without parameters for the types, as there are for the most common ones.
fn is_bare(level: Level, types: &KernelTypes, flags: Flags) -> bool {
    use DataType::{Bf16 as B, F16 as H, F32 as F};
    let pair = (types.src.data_type, types.dst.data_type);
    let usual = matches!(pair, (B | F, B) | (B, F) | (H, H)) || pair == (F, F) && !types.dst.half;
    usual && !types.fused && !flags.scale() && !flags.shift() && level != Level::Portable
}

/// Whether the kernel for a problem reads scale and shift. The f64 kernels need neither.
pub(super) fn reads(level: Level, types: &KernelTypes, flags: Flags) -> [bool; 2] {
    let reads = !types.double() && !is_bare(level, types, flags);
    [reads, reads && (!flags.rms() || flags.shift() || level == Level::Portable)]
}

/// The kernel for a problem's types and parameters; `None` if all rows are computed in f64.
pub(super) fn entry(level: Level, types: &KernelTypes, flags: Flags) -> Option<Entry> {
    use DataType::{Bf16 as B, F16 as H, F32 as F, S8, U8};
    use entries::{at, portable::entry_portable as portable};
    let (src, dst, rms) = (types.src, types.dst, flags.rms());
    if types.double() {
        return None;
    }
    let bare = is_bare(level, types, flags);
    let pair = (src.data_type, dst.data_type);
    let entry = match pair {
        (_, S8 | U8) if rms && flags.shift() => at::<F32, Byte, true, BOTH>(level),
        _ if rms && flags.shift() => at::<F32, F32, true, BOTH>(level),
        (F, F) if types.fused => typed::<F32, WithPostOps<F32>>(level, rms),
        (B, B) if types.fused => typed::<Bf16, WithPostOps<Bf16>>(level, rms),
        (F, F) if bare => bare_entry::<F32, F32>(level, rms),
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
        (H, F) => typed::<F16, F32>(level, rms),
        (F, H) => typed::<F32, F16>(level, rms),
        (S8 | U8, F) => typed::<Byte, F32>(level, rms),
        _ => typed::<F32, F32>(level, rms),
    };
    // The only kernels of the portable level.
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
