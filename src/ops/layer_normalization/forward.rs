//! Forward: `dst = (src - mean) * r * scale + shift` with `r = 1/sqrt(variance + epsilon)`.
//!
//! Per row: one sweep for its statistics, one that writes dst. The second takes along the first of rows
//! further on where that pays: while the one waits for memory, the other computes. The mean is carried
//! as `high`, an f32, and what is left of it: `src - high` is exact where it is small, and the rest
//! enters by a fused multiply-add, as do scale and shift. Rows that f32 does not carry, or whose statistics take
//! another sweep, are left to `wide`.

use super::job::{Forward, StatisticsUse};
use super::row::{Moments, Statistics, reciprocal};
use super::short;
use crate::simd::{
    BLOCK, Bf16, Element, F16, F32, LANES, Level, Map, Runtime, Simd, entry_points, fold, map,
    map_and_fold,
};
use crate::tensor::DataType;

/// The most rows whose statistics are known before they are written: while one row's lanes are joined, and
/// its root and quotient taken, other rows' sweeps run.
const DEPTH: usize = 4;
/// How much of src and dst the rows in work may be, so that they stay in a first-level cache of 48 KiB.
const ROWS_IN_CACHE: usize = 32 * 1024;
/// How long a row may be so that RMS takes another row's statistics along: there is too little to compute
/// for that to pay where the rows in work leave the first-level cache.
const LONGEST_RMS_ALONG: usize = 8 * 1024;

/// Vectors that are written in one turn of the loop.
const TURN: usize = 4;

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
struct Row {
    src: *const u8,
    dst: *mut u8,
    high: f32,
    /// What the mean is short of `high`, times `r`.
    low: f32,
    r: f32,
}

/// `(x - mean) * r`, then scale and shift, for `R` rows at once: scale and shift are loaded once.
struct Normalize<Src, Dst, const RMS: bool, const AFFINE: u8, const R: usize> {
    src_type: Src,
    dst_type: Dst,
    rows: [Row; R],
    scale: *const f32,
    shift: *const f32,
}

impl<Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8, const R: usize>
    Normalize<Src, Dst, RMS, AFFINE, R>
{
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn value<S: Simd>(row: &Row, x: S::F, scale: S::F, shift: S::F) -> S::F {
        // SAFETY: the caller's.
        unsafe {
            let r = S::splat(row.r);
            let xhat = if RMS {
                S::mul(x, r)
            } else {
                S::fma(S::sub(x, S::splat(row.high)), r, S::splat(row.low))
            };
            match AFFINE {
                0 => xhat,
                SCALE => S::mul(xhat, scale),
                SHIFT => S::add(xhat, shift),
                _ => S::fma(xhat, scale, shift),
            }
        }
    }

    /// The vectors of all rows at element `i`.
    ///
    /// # Safety
    /// As [`Map::apply`]; scale and shift are as long as a row, and there if AFFINE says so.
    #[inline(always)]
    unsafe fn values<S: Simd>(&self, i: usize) -> [S::F; R] {
        // SAFETY: the caller's.
        unsafe {
            let zero = S::splat(0.0);
            let scale = if AFFINE & SCALE != 0 { S::load(self.scale.add(i)) } else { zero };
            let shift = if AFFINE & SHIFT != 0 { S::load(self.shift.add(i)) } else { zero };
            let mut values = [zero; R];
            for (value, row) in values.iter_mut().zip(&self.rows) {
                *value = Self::value::<S>(row, self.src_type.load::<S>(row.src, i), scale, shift);
            }
            values
        }
    }
}

impl<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8, const R: usize> Map<S>
    for Normalize<Src, Dst, RMS, AFFINE, R>
{
    const UNROLL: usize = TURN / R;

    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        const { assert!(TURN % R == 0) };
        // SAFETY: the caller's.
        unsafe {
            let mut values = [[S::splat(0.0); R]; TURN];
            for (v, values) in values[..TURN / R].iter_mut().enumerate() {
                *values = self.values::<S>(i + v * LANES);
            }
            for (r, row) in self.rows.iter().enumerate() {
                let [a, b, c, d] = [values[0][r], values[1][r], values[2][r], values[3][r]];
                match TURN / R {
                    4 => self.dst_type.store_all::<S, 4>(row.dst, i, &[a, b, c, d]),
                    2 => self.dst_type.store_all::<S, 2>(row.dst, i, &[a, b]),
                    _ => self.dst_type.store_all::<S, 1>(row.dst, i, &[a]),
                }
            }
        }
    }
    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe {
            // All rows are loaded before one is stored: a load that follows a store to an address a
            // multiple of 4 KiB away waits for it.
            let values = self.values::<S>(i);
            for (value, row) in values.iter().zip(&self.rows) {
                self.dst_type.store::<S>(row.dst, i, *value);
            }
        }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        // SAFETY: the caller's.
        unsafe {
            let zero = S::splat(0.0);
            let scale = if AFFINE & SCALE != 0 { S::load_n(self.scale.add(i), n) } else { zero };
            let shift = if AFFINE & SHIFT != 0 { S::load_n(self.shift.add(i), n) } else { zero };
            for row in &self.rows {
                let x = self.src_type.load_n::<S>(row.src, i, n);
                let value = Self::value::<S>(row, x, scale, shift);
                self.dst_type.store_n::<S>(row.dst, i, value, n);
            }
        }
    }
}

/// [`Normalize`] of a row whose dst is stored past the caches, while the src of a row further on is fetched.
struct Stream<Src, Dst, const RMS: bool, const AFFINE: u8> {
    normalize: Normalize<Src, Dst, RMS, AFFINE, 1>,
    /// Where that row begins, if there is one.
    next: *const u8,
}

impl<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8> Map<S>
    for Stream<Src, Dst, RMS, AFFINE>
{
    const UNROLL: usize = TURN;

    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        let Normalize { src_type, dst_type, rows: [row], .. } = &self.normalize;
        // SAFETY: the caller's.
        unsafe {
            let mut values = [S::splat(0.0); TURN];
            for (v, value) in values.iter_mut().enumerate() {
                let at = i + v * LANES;
                S::prefetch(self.next.wrapping_add(at * src_type.size()));
                [*value] = self.normalize.values::<S>(at);
            }
            dst_type.stream_all::<S, TURN>(row.dst, i, &values);
        }
    }
    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        let Normalize { src_type, dst_type, rows: [row], .. } = &self.normalize;
        // SAFETY: the caller's.
        unsafe {
            S::prefetch(self.next.wrapping_add(i * src_type.size()));
            let [value] = self.normalize.values::<S>(i);
            dst_type.stream::<S>(row.dst, i, value);
        }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        // SAFETY: the caller's.
        unsafe { Map::<S>::apply_n(&self.normalize, i, n) }
    }
}

/// A job with the types and flags of its kernel.
struct Kernel<'a, Src, Dst, const RMS: bool, const AFFINE: u8> {
    job: &'a Forward,
    src_type: Src,
    dst_type: Dst,
}

// SAFETY of every block below: rows exist and are this thread's, `cols` is not 0 and the instruction set
// of `S` is there, by the contract of `forward_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>
    Kernel<'_, Src, Dst, RMS, AFFINE>
{
    #[inline(always)]
    unsafe fn src(&self, row: usize) -> *const u8 {
        self.job.src.wrapping_add(self.job.src_rows.offset(row) * self.src_type.size())
    }

    #[inline(always)]
    unsafe fn moments<S: Simd>(&self, row: usize) -> Moments<Src, Dst, RMS> {
        unsafe { Moments::new::<S>(self.src_type, self.src(row), self.job.cols) }
    }

    /// A row by itself; `None` if f32 does not carry it.
    #[inline(always)]
    unsafe fn alone<S: Simd>(&self, row: usize) -> Option<Row> {
        unsafe {
            let found = if self.job.statistics == StatisticsUse::Given {
                self.job.given(row)?
            } else {
                let moments = self.moments::<S>(row);
                let sums = fold::<S, 1, _>(self.job.cols, &moments);
                moments.statistics(self.job.cols, &sums)?
            };
            Some(self.ready(row, &found))
        }
    }

    /// What writing a row takes; its statistics are written here, if they are outputs.
    #[inline(always)]
    unsafe fn ready(&self, row: usize, found: &Statistics) -> Row {
        let job = self.job;
        unsafe {
            job.write(row, found);
            let high = found.mean as f32;
            let r = reciprocal(found.variance, job.epsilon) as f32;
            let low = if RMS { 0.0 } else { low_term(found.mean, high, r) };
            Row { src: self.src(row), dst: self.dst(row), high, low, r }
        }
    }

    #[inline(always)]
    unsafe fn dst(&self, row: usize) -> *mut u8 {
        self.job.dst.wrapping_add(self.job.dst_rows.offset(row) * self.dst_type.size())
    }

    /// Writes short rows, as many at once as there are; gives the row it stopped at.
    ///
    /// What writing them takes is a few vectors for all: no row is looked at by itself.
    #[inline(always)]
    unsafe fn short_rows<S: Simd>(&self, first: usize, last: usize) -> usize {
        const AT_ONCE: usize = 4;
        let job = self.job;
        let mut row = first;
        let (Some(statistics), Some(src_step), Some(dst_step)) =
            (job.short, job.src_rows.step(), job.dst_rows.step())
        else {
            return row;
        };
        let (src_step, dst_step) =
            (src_step * self.src_type.size(), dst_step * self.dst_type.size());
        let mut scalars = short::Scalars::NONE;
        unsafe {
            while row + short::ROWS <= last {
                if !statistics(job, row, src_step, &mut scalars) {
                    break;
                }
                let short::Scalars { high, low, r } = &scalars;
                let (mut src, mut dst) = (self.src(row), self.dst(row));
                let streams = job.streams && self.dst_type.streams(dst) && dst_step % 64 == 0;
                if streams {
                    // One after another: stores past the caches want to come in order.
                    for i in 0..short::ROWS {
                        let row = Row { src, dst, high: high[i], low: low[i], r: r[i] };
                        let next = src.wrapping_add(short::ROWS * src_step);
                        let normalize = self.normalize::<1>([row]);
                        map::<S, _>(job.cols, &Stream { normalize, next });
                        (src, dst) = (src.wrapping_add(src_step), dst.wrapping_add(dst_step));
                    }
                } else {
                    for i in (0..short::ROWS).step_by(AT_ONCE) {
                        let mut rows = [Row { src, dst, high: 0.0, low: 0.0, r: 0.0 }; AT_ONCE];
                        for (j, slot) in rows.iter_mut().enumerate() {
                            let (high, low, r) = (high[i + j], low[i + j], r[i + j]);
                            *slot = Row { src, dst, high, low, r };
                            (src, dst) = (src.wrapping_add(src_step), dst.wrapping_add(dst_step));
                        }
                        map::<S, _>(job.cols, &self.normalize::<AT_ONCE>(rows));
                    }
                }
                row += short::ROWS;
            }
        }
        row
    }

    #[inline(always)]
    fn normalize<const R: usize>(&self, rows: [Row; R]) -> Normalize<Src, Dst, RMS, AFFINE, R> {
        let (scale, shift) = (self.job.scale, self.job.shift);
        Normalize { src_type: self.src_type, dst_type: self.dst_type, rows, scale, shift }
    }

    /// Writes one row, of which `next` comes next.
    #[inline(always)]
    unsafe fn write_past_caches<S: Simd>(&self, row: Row, next: usize) {
        let normalize = self.normalize::<1>([row]);
        unsafe {
            if self.dst_type.streams(normalize.rows[0].dst) {
                let next = self
                    .job
                    .src
                    .wrapping_add(self.job.src_rows.offset(next) * self.src_type.size());
                map::<S, _>(self.job.cols, &Stream { normalize, next });
            } else {
                map::<S, _>(self.job.cols, &normalize);
            }
        }
    }

    /// Writes `R` rows and takes along the statistics of as many from `next` on, which follow those that
    /// are known already; gives how many there are before one that f32 does not carry.
    #[inline(always)]
    unsafe fn write_and_fold<S: Simd, const R: usize>(
        &self,
        known: &mut Known,
        next: usize,
    ) -> usize {
        unsafe {
            let cols = self.job.cols;
            let mut moments = [Moments::none(self.src_type); R];
            for (r, moments) in moments.iter_mut().enumerate() {
                *moments = self.moments::<S>(next + r);
            }
            let normalize = self.normalize::<R>(known.take());
            let sums = map_and_fold::<S, 1, R, _, _>(cols, &normalize, &moments);
            for r in 0..R {
                let Some(found) = moments[r].statistics(cols, &sums[r]) else { return r };
                known.add(self.ready(next + r, &found));
            }
            R
        }
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
        for (r, row) in rows.iter_mut().enumerate() {
            *row = self.rows[(self.first + r) % DEPTH];
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
/// The rows are there and this thread's; `cols` is not 0; the instruction set of `S` is there.
#[inline(always)]
unsafe fn forward_rows<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>(
    job: &Forward,
    first: usize,
    last: usize,
) -> usize {
    let (src_type, dst_type) = (Src::of(job.src_type), Dst::of(job.dst_type));
    let kernel = Kernel::<Src, Dst, RMS, AFFINE> { job, src_type, dst_type };
    let row_bytes = job.cols * src_type.size().max(dst_type.size());
    let given = job.statistics == StatisticsUse::Given;
    let pairs = S::MANY_REGISTERS && !RMS;
    let along = S::MANY_REGISTERS
        && !given
        && !job.streams
        && job.cols <= BLOCK
        && !Dst::LOOKS
        && (!RMS || row_bytes <= LONGEST_RMS_ALONG);
    let rows_at_once = if pairs { 2 } else { 1 };
    let in_cache = ROWS_IN_CACHE / row_bytes;
    let depth = if along && in_cache < 3 * rows_at_once {
        rows_at_once
    } else if along {
        2 * rows_at_once
    } else {
        (in_cache / 2).clamp(1, DEPTH)
    };
    // SAFETY: the caller's.
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
            let folded = if along && pairs && known.len >= 2 && next + 2 <= end {
                kernel.write_and_fold::<S, 2>(&mut known, next)
            } else if along && !pairs && known.len >= 1 && next < end {
                kernel.write_and_fold::<S, 1>(&mut known, next)
            } else if job.streams && known.len >= 1 {
                let [row] = known.take();
                kernel.write_past_caches::<S>(row, next);
                continue;
            } else if pairs && known.len >= 2 {
                map::<S, _>(job.cols, &kernel.normalize::<2>(known.take()));
                continue;
            } else if known.len >= 1 {
                map::<S, _>(job.cols, &kernel.normalize::<1>(known.take()));
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

/// The kernel for a problem's types and flags. The portable level looks types up as it goes.
pub(super) fn entry(level: Level, src: DataType, dst: DataType, rms: bool, affine: u8) -> Entry {
    let typed = match src {
        DataType::Bf16 => by_dst::<Bf16>(level, dst, rms, affine),
        DataType::F16 => by_dst::<F16>(level, dst, rms, affine),
        _ => by_dst::<F32>(level, dst, rms, affine),
    };
    typed.unwrap_or_else(|| portable_entry(src.is_half() && dst.is_half(), rms, affine))
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

fn portable_entry(halves: bool, rms: bool, affine: u8) -> Entry {
    if halves {
        portable_by_flags::<Runtime<true>>(rms, affine)
    } else {
        portable_by_flags::<Runtime>(rms, affine)
    }
}

fn portable_by_flags<E: Element>(rms: bool, affine: u8) -> Entry {
    use entries::entry_portable as at;
    match (rms, affine) {
        (false, 0) => at::<E, E, false, 0>,
        (false, SCALE) => at::<E, E, false, SCALE>,
        (false, SHIFT) => at::<E, E, false, SHIFT>,
        (false, _) => at::<E, E, false, { SCALE | SHIFT }>,
        (true, 0) => at::<E, E, true, 0>,
        (true, SCALE) => at::<E, E, true, SCALE>,
        (true, SHIFT) => at::<E, E, true, SHIFT>,
        (true, _) => at::<E, E, true, { SCALE | SHIFT }>,
    }
}
