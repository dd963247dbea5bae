//! Forward over dense rows of a few whole vectors, as attention heads and images have: what a row takes besides its
//! elements is most of the work there.
//!
//! Four rows at a time go through three stages, a few rows apart, so that nothing waits for a root or a quotient: their
//! means, or provisional, unless RMS; the squares about those and all that follows from them; dst. The numbers of four rows
//! are one vector. In one turn each stage takes its four, row by row, so that loads and stores take turns. The bits are
//! those of row after row: the formulas are those of `row` and, for 16 rows, of `short`.

use super::forward::Kernel;
use super::job::{Forward, StatisticsUse};
use super::normalize::{BOTH, Row, RowParams, SCALE, Stream};
use super::problem::Flags;
use super::row::{
    LARGEST_MEAN_SQUARE, Moments, NEAR, PROVISIONAL_COLS, SMALLEST_MEAN_SQUARE, Statistics,
    provisional_lanes, value_lanes,
};
use super::short_forward::prefetch;
use super::types::KernelTypes;
use crate::simd::{
    Bf16, Element, F16, F32, FOUR, LANES, Level, Quad, Simd, entry_points, lane_sums, map,
};
use crate::tensor::DataType;

/// Rows at once.
const ROWS: usize = FOUR;
/// Rows between one stage and the next: about as many are written while a root and a quotient are taken.
const AHEAD: usize = 3 * ROWS;
/// The most rows of which something is known, in fours.
const KNOWN: usize = 8;
/// How many rows further on than the last that is read rows are asked for, if they come from memory.
const PREFETCH_ROWS: usize = 32;
/// The longest RMS rows, in bytes, that are asked for also where they come from a cache which cores share.
const LONGEST_PREFETCHED: usize = 128;

/// What is known of [`ROWS`] rows.
#[derive(Clone, Copy)]
struct Scalars {
    /// Between the stages, of rows of up to [`PROVISIONAL_COLS`] elements.
    mean: [f64; ROWS],
    /// The mean rounded to f32, or at first the provisional.
    high: [f32; ROWS],
    /// What the mean is short of `high`, times `r`.
    low: [f32; ROWS],
    r: [f32; ROWS],
}

/// The place of four rows, the first of which is `row`.
#[inline(always)]
fn place(row: usize) -> usize {
    row / ROWS % KNOWN
}

/// What the sweeps of a turn left of sums, a quarter of a vector of lanes for each row.
#[derive(Clone, Copy)]
struct Sums<S: Simd> {
    /// Of the values, or of those that make the provisional.
    values: [S::Q; ROWS],
    squares: [S::Q; ROWS],
    /// Of the values or deviations, beside the squares.
    terms: [S::Q; ROWS],
}

/// What four rows' sums came to.
#[derive(Clone, Copy)]
struct Found<S: Simd> {
    mean: S::Q,
    variance: S::Q,
}

/// What a turn of the loop does, and where: each stage takes its four rows.
struct Turn {
    meets: bool,
    knows: bool,
    writes: bool,
    prefetches: bool,
    non_temporal: bool,
    met_src: *const u8,
    known_src: *const u8,
    row_src: *const u8,
    row_dst: *mut u8,
}

// SAFETY of every block below: rows exist, are this thread's and dense, of `NV` vectors, and the instruction set of `S`
// is there, by the contract of the function `dense_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>
    Kernel<'_, Src, Dst, RMS, AFFINE>
{
    /// Rows from `first` on, as many as there are fours of them or up to some that f32 does not carry; gives the row it
    /// stopped at.
    #[inline(always)]
    unsafe fn by_fours<S: Simd, const NV: usize>(&self, first: usize, last: usize) -> usize {
        const { assert!(KNOWN * ROWS >= 2 * (AHEAD + ROWS)) };
        let job = self.job;
        let (src_step, dst_step) =
            (NV * LANES * self.src_type.size(), NV * LANES * self.dst_type.size());
        let none = [0.0; ROWS];
        let nothing = Scalars { mean: [0.0; ROWS], high: none, low: none, r: none };
        let mut ring = [nothing; KNOWN];
        unsafe {
            let (first_src, first_dst) = (self.src(first), self.dst(first));
            let non_temporal = self.non_temporal(first, dst_step);
            // Rows of a line or less come by themselves.
            let far =
                job.streams || RMS && !job.schedule.resident && src_step <= LONGEST_PREFETCHED;
            let prefetches = src_step > 64 && far;
            // How many rows each stage has taken, and how many there are.
            let (mut met, mut known, mut row) = (0, 0, 0);
            let end = (last - first) / ROWS * ROWS;
            let zero = [S::Q::splat(0.0); ROWS];
            let mut found = Found::<S> { mean: zero[0], variance: zero[0] };
            while known < end {
                let turn = Turn {
                    meets: !RMS && met < end.min(known + AHEAD + ROWS),
                    knows: RMS || met >= end.min(known + AHEAD),
                    writes: known >= row + AHEAD,
                    prefetches,
                    non_temporal,
                    met_src: first_src.wrapping_add(met * src_step),
                    known_src: first_src.wrapping_add(known * src_step),
                    row_src: first_src.wrapping_add(row * src_step),
                    row_dst: first_dst.wrapping_add(row * dst_step),
                };
                // Of the four that the turn before summed; nothing in this turn waits for the root and the quotient.
                if known > 0 {
                    self.roots::<S>(&found, &mut ring[place(known - ROWS)]);
                }
                let mut sums = Sums::<S> { values: zero, squares: zero, terms: zero };
                let (provisional, written) = (&ring[place(known)].high, &ring[place(row)]);
                if NV * LANES <= PROVISIONAL_COLS {
                    // Spelled out: what a loop makes may go through memory.
                    self.take::<S, NV>(0, &turn, provisional, written, &mut sums);
                    self.take::<S, NV>(1, &turn, provisional, written, &mut sums);
                    self.take::<S, NV>(2, &turn, provisional, written, &mut sums);
                    self.take::<S, NV>(3, &turn, provisional, written, &mut sums);
                } else {
                    for i in 0..ROWS {
                        self.take::<S, NV>(i, &turn, provisional, written, &mut sums);
                    }
                }
                if turn.writes {
                    row += ROWS;
                }
                if turn.meets {
                    let of_values = 1.0 / (NV * LANES).min(PROVISIONAL_COLS) as f64;
                    let scalars = &mut ring[place(met)];
                    let mean = S::Q::mul(S::Q::sums(sums.values), S::Q::splat(of_values));
                    if NV * LANES <= PROVISIONAL_COLS {
                        S::Q::store(scalars.mean.as_mut_ptr(), mean);
                    }
                    S::Q::store_narrowed(scalars.high.as_mut_ptr(), mean);
                    met += ROWS;
                }
                if turn.knows {
                    let scalars = &ring[place(known)];
                    // A branch and no flag: it is predicted, so the next turn does not wait for what this one finds.
                    match self.find::<S, NV>(first + known, &sums, scalars) {
                        Some(four) => found = four,
                        None => break,
                    }
                    known += ROWS;
                }
            }
            if known > 0 {
                self.roots::<S>(&found, &mut ring[place(known - ROWS)]);
            }
            while row < known {
                let src = first_src.wrapping_add(row * src_step);
                let dst = first_dst.wrapping_add(row * dst_step);
                let written = &ring[place(row)];
                self.write_dense::<S, NV>((src, dst), written, row % ROWS, non_temporal);
                row += 1;
            }
            first + row
        }
    }

    /// A turn's `i`th rows.
    #[inline(always)]
    unsafe fn take<S: Simd, const NV: usize>(
        &self,
        i: usize,
        turn: &Turn,
        provisional: &[f32; ROWS],
        written: &Scalars,
        sums: &mut Sums<S>,
    ) {
        let src_at = i * NV * LANES * self.src_type.size();
        let dst_at = i * NV * LANES * self.dst_type.size();
        unsafe {
            if turn.prefetches {
                let far = if RMS { turn.known_src } else { turn.met_src };
                let far =
                    far.wrapping_add(PREFETCH_ROWS * NV * LANES * self.src_type.size() + src_at);
                prefetch::<S>(far, NV * LANES * self.src_type.size());
            }
            if turn.meets {
                sums.values[i] = self.values::<S, NV>(turn.met_src.wrapping_add(src_at));
            }
            if turn.knows {
                let src = turn.known_src.wrapping_add(src_at);
                (sums.squares[i], sums.terms[i]) = self.squares::<S, NV>(src, &provisional[i]);
            }
            if turn.writes {
                let (src, dst) = (turn.row_src, turn.row_dst);
                let at = (src.wrapping_add(src_at), dst.wrapping_add(dst_at));
                self.write_dense::<S, NV>(at, written, i, turn.non_temporal);
            }
        }
    }

    /// Writes the `i`th of four rows.
    #[inline(always)]
    unsafe fn write_dense<S: Simd, const NV: usize>(
        &self,
        (src, dst): (*const u8, *mut u8),
        scalars: &Scalars,
        i: usize,
        non_temporal: bool,
    ) {
        let row = Row { src, dst, high: scalars.high[i], low: scalars.low[i], r: scalars.r[i] };
        unsafe {
            let normalize = self.normalize::<S, 1>([RowParams::new(&row)]);
            let op = Stream { normalize, non_temporal, next: std::ptr::null() };
            match NV {
                1 => op.vectors::<1>(0),
                2 => op.vectors::<2>(0),
                4 => op.vectors::<4>(0),
                _ => map::<S, _>(NV * LANES, &op),
            }
        }
    }

    /// A quarter of the sum of a row's values, or of those that make its provisional.
    #[inline(always)]
    unsafe fn values<S: Simd, const NV: usize>(&self, src: *const u8) -> S::Q {
        unsafe {
            S::wide_quarter(if NV * LANES > PROVISIONAL_COLS {
                provisional_lanes::<S, Src>(self.src_type, src)
            } else {
                value_lanes::<S, Src, Dst>(self.src_type, src, NV * LANES)
            })
        }
    }

    /// A quarter of the sum of a row's squares about its provisional, and of its terms where the mean is not known yet.
    #[inline(always)]
    unsafe fn squares<S: Simd, const NV: usize>(
        &self,
        src: *const u8,
        provisional: &f32,
    ) -> (S::Q, S::Q) {
        let about = if RMS { 0.0 } else { *provisional };
        let moments = Moments::<Src, Dst, RMS>::about(self.src_type, src, about);
        unsafe {
            let nothing = S::Q::splat(0.0);
            if NV * LANES <= PROVISIONAL_COLS {
                // A single chain: the others of its group are zero.
                let mut chain = S::splat(0.0);
                for v in 0..NV {
                    let d = moments.deviation::<S>(self.src_type.load::<S>(src, v * LANES));
                    chain = S::fma(d, d, chain);
                }
                return (S::wide_quarter(S::widen(chain)), nothing);
            }
            let sums = lane_sums::<S, 1, _>(NV * LANES, &moments);
            let terms = if RMS { nothing } else { S::wide_quarter(sums.terms) };
            (S::wide_quarter(sums.products[0]), terms)
        }
    }

    /// What four rows' sums come to, their statistics written if they are outputs; `None`, and nothing is written, if f32
    /// does not carry one of them or its sums have to be taken once more.
    #[inline(always)]
    unsafe fn find<S: Simd, const NV: usize>(
        &self,
        row: usize,
        sums: &Sums<S>,
        scalars: &Scalars,
    ) -> Option<Found<S>> {
        let job = self.job;
        unsafe {
            let per_col = S::Q::splat(1.0 / (NV * LANES) as f64);
            let mean_square = S::Q::mul(S::Q::sums(sums.squares), per_col);
            let (smallest, largest) =
                (S::Q::splat(SMALLEST_MEAN_SQUARE), S::Q::splat(LARGEST_MEAN_SQUARE));
            let mut trusted = S::Q::all_between(mean_square, smallest, largest);
            let mut found = Found::<S> { mean: S::Q::splat(0.0), variance: mean_square };
            if !RMS {
                let provisional = S::Q::load_widened(scalars.high.as_ptr());
                found.mean = if NV * LANES <= PROVISIONAL_COLS {
                    S::Q::load(scalars.mean.as_ptr())
                } else {
                    // Of the values, or of the deviations.
                    let terms = S::Q::mul(S::Q::sums(sums.terms), per_col);
                    if Dst::HALF { S::Q::add(provisional, terms) } else { terms }
                };
                let offset = S::Q::sub(found.mean, provisional);
                let square = S::Q::mul(offset, offset);
                let near = S::Q::mul(mean_square, S::Q::splat(NEAR));
                trusted &= S::Q::all_between(square, S::Q::splat(0.0), near);
                found.variance = S::Q::sub(mean_square, square);
            }
            if trusted && job.writes_statistics() && job.stat_rows.step() == Some(1) {
                let at = job.stat_rows.offset(row);
                if !RMS {
                    S::Q::store_narrowed(job.mean.add(at), found.mean);
                }
                S::Q::store_narrowed(job.variance.add(at), found.variance);
            } else if trusted && job.writes_statistics() {
                let (mut means, mut variances) = ([0.0f64; ROWS], [0.0f64; ROWS]);
                S::Q::store(means.as_mut_ptr(), found.mean);
                S::Q::store(variances.as_mut_ptr(), found.variance);
                for r in 0..ROWS {
                    job.write(row + r, &Statistics { mean: means[r], variance: variances[r] });
                }
            }
            trusted.then_some(found)
        }
    }

    /// The scalars of four rows.
    #[inline(always)]
    unsafe fn roots<S: Simd>(&self, found: &Found<S>, scalars: &mut Scalars) {
        unsafe {
            let root = S::Q::sqrt(S::Q::add(found.variance, S::Q::splat(self.job.epsilon)));
            S::Q::store_narrowed(scalars.r.as_mut_ptr(), S::Q::div(S::Q::splat(1.0), root));
            if !RMS {
                S::Q::store_narrowed(scalars.high.as_mut_ptr(), found.mean);
                let short = S::Q::sub(S::Q::load_widened(scalars.high.as_ptr()), found.mean);
                let low = S::Q::mul(short, S::Q::load_widened(scalars.r.as_ptr()));
                S::Q::store_narrowed(scalars.low.as_mut_ptr(), low);
            }
        }
    }
}

/// Dense rows from `first` on, as many as there are fours of them or up to some that f32 does not carry; gives the
/// row it stopped at.
///
/// # Safety
/// The rows are there and this thread's, of `NV` vectors and dense, of the types and flags that the function is made
/// for, and their statistics are computed, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn dense_rows<
    S: Simd,
    Src: Element,
    Dst: Element,
    const RMS: bool,
    const AFFINE: u8,
    const NV: usize,
>(
    job: &Forward,
    first: usize,
    last: usize,
) -> usize {
    let (src_type, dst_type) = (Src::of(job.src_type), Dst::of(job.dst_type));
    let kernel = Kernel::<Src, Dst, RMS, AFFINE> { job, src_type, dst_type };
    // SAFETY: guaranteed by the caller.
    unsafe {
        let row = kernel.by_fours::<S, NV>(first, last);
        if job.streams {
            S::stream_fence();
        }
        row
    }
}

entry_points! {
    /// Dense short rows forward, per level.
    mod entries: dense_rows<
        Src: Element, Dst: Element; const RMS: bool, const AFFINE: u8, const NV: usize
    >(job: &Forward, first: usize, last: usize) -> usize;
}

/// See [`dense_rows`].
type Entry = unsafe fn(&Forward, usize, usize) -> usize;

/// The kernel for dense rows, if the types, flags and columns have one.
#[derive(Clone, Copy)]
pub(super) struct Dense(Option<Entry>);

impl Dense {
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// For the usual types.
    pub(super) fn new(level: Level, types: &KernelTypes, flags: Flags, cols: usize) -> Self {
        use DataType::{Bf16 as B, F16 as H, F32 as F};
        let (src, dst, rms) = (types.src, types.dst, flags.rms());
        Self(match (src.data_type, dst.data_type) {
            _ if types.fused || rms && flags.shift() => None,
            (F, F) if dst.half => None,
            (F, F) => by_flags::<F32, F32>(level, rms, cols),
            (B, B) => by_flags::<Bf16, Bf16>(level, rms, cols),
            (H, H) => by_flags::<F16, F16>(level, rms, cols),
            (F, B) => by_flags::<F32, Bf16>(level, rms, cols),
            (B, F) => by_flags::<Bf16, F32>(level, rms, cols),
            _ => None,
        })
    }

    /// Rows from `first` on; gives the row it stopped at.
    ///
    /// # Safety
    /// The job is of the types, flags and columns that this was made for; the rows are there and this thread's; the
    /// level's instruction set is there.
    pub(super) unsafe fn run(&self, job: &Forward, first: usize, last: usize) -> usize {
        let dense = Some(job.cols);
        match self.0 {
            Some(entry)
                if job.src_rows.step() == dense
                    && job.dst_rows.step() == dense
                    && job.statistics != StatisticsUse::Given =>
            {
                // SAFETY: guaranteed by the caller; the rows are dense.
                unsafe { entry(job, first, last) }
            }
            _ => first,
        }
    }
}

fn by_flags<Src: Element, Dst: Element>(level: Level, rms: bool, cols: usize) -> Option<Entry> {
    if rms {
        by_cols::<Src, Dst, true, SCALE>(level, cols)
    } else {
        by_cols::<Src, Dst, false, BOTH>(level, cols)
    }
}

fn by_cols<Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>(
    level: Level,
    cols: usize,
) -> Option<Entry> {
    // Longer rows of 16 bits gain only where little is computed.
    let light = const { !Src::HALF || RMS && !Dst::HALF };
    match cols {
        16 => entries::at::<Src, Dst, RMS, AFFINE, 1>(level),
        32 => entries::at::<Src, Dst, RMS, AFFINE, 2>(level),
        64 => entries::at::<Src, Dst, RMS, AFFINE, 4>(level),
        96 if light => entries::at::<Src, Dst, RMS, AFFINE, 6>(level),
        128 if light => entries::at::<Src, Dst, RMS, AFFINE, 8>(level),
        _ => None,
    }
}
