//! Forward: `dst = (src - mean) * r * scale + shift` with `r = 1/sqrt(variance + epsilon)`.
//!
//! Per row: the statistics (one sweep for RMS, two otherwise), then one sweep that writes dst, and takes
//! along the mean of a row of the next batch. The mean is carried as `high`, an f32, and what is left
//! of it: `src - high` is exact where it is small, and the rest enters by a fused multiply-add, as do
//! scale and shift. Rows that f32 does not carry are left to `wide`.

use super::row::{Statistics, WideValues, mean, mean_in_range, reciprocal, variance};
use crate::simd::{
    BLOCK, Bf16, Element, F16, F32, Level, Map, Runtime, Simd, entry_points, map, map_and_fold_wide,
};
use crate::tensor::{DataType, RowMap};

/// Where the statistics come from and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatisticsUse {
    /// Computed, not shown.
    Hidden,
    /// Computed and written.
    Written,
    /// Read.
    Given,
}

/// One forward execution.
#[derive(Clone, Copy)]
pub(super) struct Forward {
    pub(super) cols: usize,
    pub(super) epsilon: f64,
    pub(super) src_type: DataType,
    pub(super) dst_type: DataType,
    pub(super) src: *const u8,
    pub(super) dst: *mut u8,
    /// Null with RMS.
    pub(super) mean: *mut f32,
    pub(super) variance: *mut f32,
    /// f32, or null.
    pub(super) scale: *const f32,
    pub(super) shift: *const f32,
    pub(super) src_rows: RowMap,
    pub(super) dst_rows: RowMap,
    pub(super) stat_rows: RowMap,
    pub(super) statistics: StatisticsUse,
    pub(super) rms: bool,
    /// Whether dst is too large to stay in a cache.
    pub(super) streams: bool,
}

// SAFETY: threads write different rows through these addresses; everything else is read.
unsafe impl Sync for Forward {}

impl Forward {
    /// The statistics given for a row; `None` if f32 does not carry them.
    ///
    /// # Safety
    /// They are given, and the row exists.
    #[inline(always)]
    pub(super) unsafe fn given(&self, row: usize) -> Option<Statistics> {
        // SAFETY: the caller's.
        let (mean, variance) = unsafe { self.given_values(row) };
        let found = Statistics { mean: f64::from(mean), variance: f64::from(variance) };
        mean_in_range(mean).then_some(found)
    }

    /// The mean and variance given for a row.
    ///
    /// # Safety
    /// They are given, and the row exists.
    #[inline(always)]
    pub(super) unsafe fn given_values(&self, row: usize) -> (f32, f32) {
        // SAFETY: the caller's.
        unsafe {
            let at = self.stat_rows.offset(row);
            let mean = if self.mean.is_null() { 0.0 } else { self.mean.add(at).read_unaligned() };
            (mean, self.variance.add(at).read_unaligned())
        }
    }

    /// Writes a row's statistics, if they are outputs.
    ///
    /// # Safety
    /// The row exists and is this thread's.
    #[inline(always)]
    pub(super) unsafe fn write(&self, row: usize, statistics: &Statistics) {
        if self.statistics != StatisticsUse::Written {
            return;
        }
        // SAFETY: the caller's.
        unsafe {
            let at = self.stat_rows.offset(row);
            if !self.mean.is_null() {
                self.mean.add(at).write_unaligned(statistics.mean as f32);
            }
            // What does not fit saturates to +Inf.
            self.variance.add(at).write_unaligned(statistics.variance as f32);
        }
    }
}

/// The most rows that go through each sweep together: while one row's lanes are joined, and while its
/// root and quotient are taken, the next one's sweep runs.
const BATCH: usize = 4;
/// How much of src a batch may be, so that it, the next one and its part of dst stay in a first-level
/// cache of 48 KiB.
const BATCH_BYTES: usize = 16 * 1024;
/// The same where two rows are written at once, which saves more than the cache does.
const PAIRED_BYTES: usize = 32 * 1024;

/// What follows the normalization: bit 0 a scale, bit 1 a shift.
pub(super) const SCALE: u8 = 1;
pub(super) const SHIFT: u8 = 2;

/// What `xhat = (x - high)*r + low` takes besides the mean rounded to f32. `x - high` is 0, or at least
/// as large as what the rounding left, so the term's own rounding is never magnified.
#[inline(always)]
pub(super) fn low_term(mean: f64, high: f32, r: f32) -> f32 {
    ((f64::from(high) - mean) * f64::from(r)) as f32
}

/// A row, ready to be written.
#[derive(Clone, Copy)]
struct Row<S: Simd> {
    src: *const u8,
    dst: *mut u8,
    high: S::F,
    /// What the mean is short of `high`, times `r`.
    low: S::F,
    r: S::F,
}

/// `(x - mean) * r`, then scale and shift, for `R` rows at once: scale and shift are loaded once.
struct Normalize<S: Simd, Src, Dst, const RMS: bool, const AFFINE: u8, const R: usize> {
    src_type: Src,
    dst_type: Dst,
    rows: [Row<S>; R],
    scale: *const f32,
    shift: *const f32,
    streams: bool,
}

impl<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8, const R: usize>
    Normalize<S, Src, Dst, RMS, AFFINE, R>
{
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn value(row: &Row<S>, x: S::F, scale: S::F, shift: S::F) -> S::F {
        // SAFETY: the caller's.
        unsafe {
            let xhat =
                if RMS { S::mul(x, row.r) } else { S::fma(S::sub(x, row.high), row.r, row.low) };
            match AFFINE {
                0 => xhat,
                SCALE => S::mul(xhat, scale),
                SHIFT => S::add(xhat, shift),
                _ => S::fma(xhat, scale, shift),
            }
        }
    }
}

impl<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8, const R: usize> Map<S>
    for Normalize<S, Src, Dst, RMS, AFFINE, R>
{
    const UNROLL: usize = 4 / R;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's; scale and shift are as long as a row, and there if AFFINE says so.
        unsafe {
            let zero = S::splat(0.0);
            let scale = if AFFINE & SCALE != 0 { S::load(self.scale.add(i)) } else { zero };
            let shift = if AFFINE & SHIFT != 0 { S::load(self.shift.add(i)) } else { zero };
            // All rows are loaded before one is stored: a load that follows a store to an address a
            // multiple of 4 KiB away waits for it.
            let mut values = [zero; R];
            for (value, row) in values.iter_mut().zip(&self.rows) {
                *value = Self::value(row, self.src_type.load::<S>(row.src, i), scale, shift);
            }
            for (value, row) in values.iter().zip(&self.rows) {
                if self.streams {
                    self.dst_type.stream::<S>(row.dst, i, *value);
                } else {
                    self.dst_type.store::<S>(row.dst, i, *value);
                }
            }
        }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        // SAFETY: as above.
        unsafe {
            let zero = S::splat(0.0);
            let scale = if AFFINE & SCALE != 0 { S::load_n(self.scale.add(i), n) } else { zero };
            let shift = if AFFINE & SHIFT != 0 { S::load_n(self.shift.add(i), n) } else { zero };
            for row in &self.rows {
                let x = self.src_type.load_n::<S>(row.src, i, n);
                let value = Self::value(row, x, scale, shift);
                self.dst_type.store_n::<S>(row.dst, i, value, n);
            }
        }
    }
}

/// Rows from `first` on, up to `last - 1` or to one that f32 does not carry; gives the row it stopped
/// at.
///
/// # Safety
/// The rows are there and this thread's; `cols` is not 0; the instruction set of `S` is there.
#[inline(always)]
unsafe fn forward_rows<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>(
    job: &Forward,
    first: usize,
    last: usize,
) -> usize {
    let (src_type, dst_type) = (Src::of(job.src_type), Dst::of(job.dst_type));
    let given = job.statistics == StatisticsUse::Given;
    let takes_mean = !RMS && !given;
    let bytes = if takes_mean && S::MANY_REGISTERS { PAIRED_BYTES } else { BATCH_BYTES };
    let batch = (bytes / (job.cols * src_type.size())).clamp(1, BATCH);
    // SAFETY: the caller's, for rows of the problem.
    let src = |row| unsafe { job.src.add(job.src_rows.offset(row) * src_type.size()) };
    // The means of the batch that begins at `row`, as far as they were taken along.
    let mut means = [0.0; BATCH];
    let mut taken = 0;
    let mut row = first;
    while row < last {
        let rows = batch.min(last - row);
        let mut ready = 0;
        // SAFETY: the caller's.
        unsafe {
            let zero = S::splat(0.0);
            let nothing = Row::<S> { src: job.src, dst: job.dst, high: zero, low: zero, r: zero };
            let mut prepared = [nothing; BATCH];
            while takes_mean && taken < rows {
                means[taken] = mean::<S, Src>(src_type, src(row + taken), job.cols);
                taken += 1;
            }
            for (prepared, mean) in prepared[..rows].iter_mut().zip(means) {
                let row = row + ready;
                let known = if given {
                    job.given(row)
                } else {
                    variance::<S, Src, RMS>(src_type, src(row), job.cols, mean)
                        .map(|variance| Statistics { mean, variance })
                };
                let Some(found) = known else { break };
                job.write(row, &found);
                let high = found.mean as f32;
                let r = reciprocal(found.variance, job.epsilon) as f32;
                *prepared = Row {
                    src: src(row),
                    dst: job.dst.add(job.dst_rows.offset(row) * dst_type.size()),
                    high: S::splat(high),
                    low: S::splat(low_term(found.mean, high, r)),
                    r: S::splat(r),
                };
                ready += 1;
            }
            taken = 0;
            let streams = |row: &Row<S>| job.streams && dst_type.streams(row.dst);
            let (scale, shift) = (job.scale, job.shift);
            let values = |row| WideValues { element: src_type, src: src(row) };
            let along = takes_mean && ready == rows && job.cols <= BLOCK;
            let mut i = 0;
            while i < ready {
                let one = prepared[i];
                let next = row + rows + i;
                if S::MANY_REGISTERS && along && i + 1 < ready && next + 1 < last {
                    let pair = [one, prepared[i + 1]];
                    let streams = pair.iter().all(streams);
                    let normalize = Normalize::<S, Src, Dst, RMS, AFFINE, 2> {
                        src_type,
                        dst_type,
                        rows: pair,
                        scale,
                        shift,
                        streams,
                    };
                    let next = [values(next), values(next + 1)];
                    let sums = map_and_fold_wide::<S, _, _, 2>(job.cols, &normalize, &next);
                    means[i] = sums[0] / job.cols as f64;
                    means[i + 1] = sums[1] / job.cols as f64;
                    i += 2;
                    taken = i;
                    continue;
                }
                let normalize = Normalize::<S, Src, Dst, RMS, AFFINE, 1> {
                    src_type,
                    dst_type,
                    rows: [one],
                    scale,
                    shift,
                    streams: streams(&one),
                };
                if along && next < last {
                    let next = [values(next)];
                    let [sum] = map_and_fold_wide::<S, _, _, 1>(job.cols, &normalize, &next);
                    means[i] = sum / job.cols as f64;
                    taken = i + 1;
                } else {
                    map(job.cols, &normalize);
                }
                i += 1;
            }
        }
        row += ready;
        if ready < rows {
            break;
        }
    }
    if job.streams {
        // SAFETY: the caller's.
        unsafe { S::stream_fence() };
    }
    row
}

entry_points! {
    /// Rows forward, per level.
    mod entries: forward_rows<Src: Element, Dst: Element; const RMS: bool, const AFFINE: u8>(
        job: &Forward, first: usize, last: usize
    ) -> usize;
}

/// Runs rows from `first` on and gives the row it stopped at: `last`, or one for `wide`.
pub(super) type Entry = unsafe fn(&Forward, usize, usize) -> usize;

/// The kernel for a problem's types and flags. The portable level looks types up as it goes.
pub(super) fn entry(level: Level, src: DataType, dst: DataType, rms: bool, affine: u8) -> Entry {
    let typed = match src {
        DataType::Bf16 => by_dst::<Bf16>(level, dst, rms, affine),
        DataType::F16 => by_dst::<F16>(level, dst, rms, affine),
        _ => by_dst::<F32>(level, dst, rms, affine),
    };
    typed.unwrap_or_else(|| portable_entry(rms, affine))
}

fn by_dst<Src: Element>(level: Level, dst: DataType, rms: bool, affine: u8) -> Option<Entry> {
    match dst {
        DataType::Bf16 => by_flags::<Src, Bf16>(level, rms, affine),
        DataType::F16 => by_flags::<Src, F16>(level, rms, affine),
        _ => by_flags::<Src, F32>(level, rms, affine),
    }
}

fn by_flags<Src: Element, Dst: Element>(level: Level, rms: bool, affine: u8) -> Option<Entry> {
    match (rms, affine) {
        (false, 0) => entries::at::<Src, Dst, false, 0>(level),
        (false, SCALE) => entries::at::<Src, Dst, false, SCALE>(level),
        (false, SHIFT) => entries::at::<Src, Dst, false, SHIFT>(level),
        (false, _) => entries::at::<Src, Dst, false, { SCALE | SHIFT }>(level),
        (true, 0) => entries::at::<Src, Dst, true, 0>(level),
        (true, SCALE) => entries::at::<Src, Dst, true, SCALE>(level),
        (true, SHIFT) => entries::at::<Src, Dst, true, SHIFT>(level),
        (true, _) => entries::at::<Src, Dst, true, { SCALE | SHIFT }>(level),
    }
}

fn portable_entry(rms: bool, affine: u8) -> Entry {
    use entries::entry_portable as at;
    match (rms, affine) {
        (false, 0) => at::<Runtime, Runtime, false, 0>,
        (false, SCALE) => at::<Runtime, Runtime, false, SCALE>,
        (false, SHIFT) => at::<Runtime, Runtime, false, SHIFT>,
        (false, _) => at::<Runtime, Runtime, false, { SCALE | SHIFT }>,
        (true, 0) => at::<Runtime, Runtime, true, 0>,
        (true, SCALE) => at::<Runtime, Runtime, true, SCALE>,
        (true, SHIFT) => at::<Runtime, Runtime, true, SHIFT>,
        (true, _) => at::<Runtime, Runtime, true, { SCALE | SHIFT }>,
    }
}
