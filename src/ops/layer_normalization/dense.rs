//! Forward over dense rows of a few full vectors, as in attention heads, where the per-row scalar work dominates.
//!
//! Groups of four rows go through three pipeline stages: the mean (or the provisional mean; none with RMS), the
//! variance, and the store. The stages are a few groups apart, so nothing waits for a square root or a division. Each
//! stage handles the scalars of its four rows as one vector. One step of the loop advances every stage by one group,
//! row by row, so loads and stores alternate. The formulas and bits are those of `row`.

use super::dense_stages::{
    Affine, GroupStatistics, Passed, RING, ROWS, Scalars, Step, Sums, Totals, counts_late, place,
};
use super::forward::Kernel;
use super::job::{Forward, StatisticsUse};
use super::normalize::{BOTH, Row, RowParams, SCALE, Stream};
use super::row::{
    Moments, PROVISIONAL_COLS, load_if, mean_of_terms, provisional_lanes, value_lanes,
};
use super::schedule::DENSE_PREFETCH_ROWS;
use super::short_forward::prefetch;
use super::types::KernelTypes;
use crate::primitive::normalization::Flags;
use crate::rows::row_lanes::{Four, Normalizers, RowLanes, per_col_of, variance_about};
use crate::simd::{
    Bf16, Element, F16, F32, Full, LANES, Level, Quad, Simd, entry_points, lane_sums, map, unroll,
    zeroed,
};
use crate::tensor::DataType;

// SAFETY of every block below: rows exist, belong to this thread, are dense and have `NV` vectors, and the CPU supports
// the instruction set of `S`, by the contract of `dense_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>
    Kernel<'_, Src, Dst, RMS, AFFINE>
{
    /// Runs groups of dense rows from `first` to `last`, or up to a group with a row that needs another kernel. Returns
    /// the row it stopped at.
    #[inline(always)]
    unsafe fn groups<S: Simd, const NV: usize>(&self, first: usize, last: usize) -> usize {
        let job = self.job;
        unsafe {
            let mut ring: [Scalars; RING] = zeroed();
            let affine = self.affine::<S, NV>();
            let rows = (self.src(first), self.dst(first));
            let steps = (NV * LANES * self.src_type.size(), NV * LANES * self.dst_type.size());
            let non_temporal = self.non_temporal(rows.1, steps.1);
            // The hardware prefetches rows of up to a cache line well enough.
            let far = job.streams || RMS && job.dense_prefetched;
            let prefetches = steps.0 > 64 && far;
            let mut passed = Passed::default();
            let end = (last - first) / ROWS * ROWS;
            let mut totals: Totals<S> = zeroed();
            let mut group: GroupStatistics<S> = zeroed();
            while passed.variances < end {
                let step = passed.step::<RMS, S>(end, rows, steps, (prefetches, non_temporal));
                let mut sums: Sums<S> = zeroed();
                self.sweep::<S, NV>(&step, &ring, &passed, &affine, &mut sums);
                if step.store {
                    passed.stores += ROWS;
                }
                if step.mean {
                    store_means::<S, NV>(&sums, &mut ring[place(passed.means)]);
                    passed.means += ROWS;
                }
                let state = (&mut passed, &mut ring, &mut group);
                if const { counts_late::<S>(RMS) } {
                    if state.0.variances < state.0.sums
                        && !self.count::<S, NV>(first, state, &totals)
                    {
                        break;
                    }
                    if step.squares {
                        totals = Totals::of(&sums);
                        passed.sums += ROWS;
                    }
                } else if step.squares {
                    state.0.sums += ROWS;
                    if !self.count::<S, NV>(first, state, &Totals::of(&sums)) {
                        break;
                    }
                }
            }
            let Passed { variances, stores, .. } = passed;
            if variances > 0 {
                self.reciprocals::<S>(&group, &mut ring[place(variances - ROWS)]);
            }
            self.drain::<S, NV>(rows, stores..variances, (&ring, &affine), non_temporal);
            first + variances
        }
    }

    /// Computes the statistics of the next group, from its sums, and the scalars of the one before. False if a row needs
    /// another kernel.
    #[inline(always)]
    unsafe fn count<S: Simd, const NV: usize>(
        &self,
        first: usize,
        (passed, ring, group): (&mut Passed, &mut [Scalars; RING], &mut GroupStatistics<S>),
        totals: &Totals<S>,
    ) -> bool {
        let row = passed.variances;
        unsafe {
            // A branch rather than a flag: it is predicted, so the next step does not wait for the result.
            let found = self.statistics::<S, NV>(first + row, totals, &ring[place(row)]);
            let Some(found) = found else { return false };
            if row > 0 {
                self.reciprocals::<S>(group, &mut ring[place(row - ROWS)]);
            }
            *group = found;
        }
        passed.variances += ROWS;
        true
    }

    /// Stores the remaining rows of the ring.
    #[inline(always)]
    unsafe fn drain<S: Simd, const NV: usize>(
        &self,
        (first_src, first_dst): (*const u8, *mut u8),
        rows: std::ops::Range<usize>,
        (ring, affine): (&[Scalars; RING], &Affine<S>),
        non_temporal: bool,
    ) {
        let mut row = rows.start;
        while row < rows.end {
            let src = first_src.wrapping_add(row * NV * LANES * self.src_type.size());
            let dst = first_dst.wrapping_add(row * NV * LANES * self.dst_type.size());
            unsafe {
                let params = (&ring[place(row)], affine);
                self.store_row::<S, NV>((src, dst), params, row % ROWS, non_temporal);
            }
            row += 1;
        }
    }

    /// Advances every stage of a step by a group.
    #[inline(always)]
    unsafe fn sweep<S: Simd, const NV: usize>(
        &self,
        step: &Step,
        ring: &[Scalars; RING],
        passed: &Passed,
        affine: &Affine<S>,
        sums: &mut Sums<S>,
    ) {
        unsafe {
            if const { NV * LANES <= PROVISIONAL_COLS } {
                // Unrolled by hand: arrays indexed in a loop may go through memory.
                self.sweep_row::<S, NV>(0, step, ring, passed, affine, sums);
                self.sweep_row::<S, NV>(1, step, ring, passed, affine, sums);
                self.sweep_row::<S, NV>(2, step, ring, passed, affine, sums);
                self.sweep_row::<S, NV>(3, step, ring, passed, affine, sums);
            } else {
                for i in 0..ROWS {
                    self.sweep_row::<S, NV>(i, step, ring, passed, affine, sums);
                }
            }
        }
    }

    /// Advances each stage by row `i` of its group.
    #[inline(always)]
    unsafe fn sweep_row<S: Simd, const NV: usize>(
        &self,
        i: usize,
        step: &Step,
        ring: &[Scalars; RING],
        passed: &Passed,
        affine: &Affine<S>,
        sums: &mut Sums<S>,
    ) {
        let (provisional, stored) = (&ring[place(passed.sums)].high, &ring[place(passed.stores)]);
        let src_at = i * NV * LANES * self.src_type.size();
        let dst_at = i * NV * LANES * self.dst_type.size();
        unsafe {
            if step.prefetches {
                let far = if RMS { step.squares_src } else { step.mean_src };
                let distance = DENSE_PREFETCH_ROWS * NV * LANES * self.src_type.size();
                let far = far.wrapping_add(distance + src_at);
                prefetch::<S>(self.job.prefetched_into, far, NV * LANES * self.src_type.size());
            }
            if step.mean {
                sums.values[i] = self.values::<S, NV>(step.mean_src.wrapping_add(src_at));
            }
            if step.squares {
                let src = step.squares_src.wrapping_add(src_at);
                let into = (&mut sums.squares[i], &mut sums.terms[i]);
                self.squares::<S, NV>(src, &provisional[i], into);
            }
            if step.store {
                let at = (step.store_src.wrapping_add(src_at), step.dst.wrapping_add(dst_at));
                self.store_row::<S, NV>(at, (stored, affine), i, step.non_temporal);
            }
        }
    }

    /// Stores row `i` of a group.
    #[inline(always)]
    unsafe fn store_row<S: Simd, const NV: usize>(
        &self,
        (src, dst): (*const u8, *mut u8),
        (scalars, affine): (&Scalars, &Affine<S>),
        i: usize,
        non_temporal: bool,
    ) {
        let row = Row { src, dst, high: scalars.high[i], low: scalars.low[i], r: scalars.r[i] };
        unsafe {
            let normalize = self.normalize::<S, 1>([RowParams::new(&row)]);
            let op = Stream::alone(normalize, non_temporal);
            match const { NV } {
                1 => op.store_with::<1>(&affine.scale, &affine.shift),
                2 => op.store_with::<2>(&affine.scale, &affine.shift),
                4 => op.store_with::<4>(&affine.scale, &affine.shift),
                _ => map::<S, _>(NV * LANES, &op),
            }
        }
    }

    /// Scale and shift of short rows.
    #[inline(always)]
    unsafe fn affine<S: Simd, const NV: usize>(&self) -> Affine<S> {
        let mut affine = unsafe { Affine { scale: S::zeros::<4>(), shift: S::zeros::<4>() } };
        unroll!(v in 4, {
            let (i, reads) = (v * LANES, v < NV && const { NV <= 4 });
            unsafe {
                let (scale, shift) = (self.job.scale, self.job.shift);
                affine.scale[v] = load_if::<S>(reads && AFFINE & SCALE != 0, scale, i, Full);
                affine.shift[v] = load_if::<S>(reads && AFFINE == BOTH, shift, i, Full);
            }
        });
        affine
    }

    /// A quarter of the sum of the values for a row's mean or provisional mean.
    #[inline(always)]
    unsafe fn values<S: Simd, const NV: usize>(&self, src: *const u8) -> S::F64x4 {
        unsafe {
            S::wide_quarter(if const { NV * LANES > PROVISIONAL_COLS } {
                provisional_lanes::<S, Src>(self.src_type, src)
            } else {
                value_lanes::<S, Src, Dst>(self.src_type, src, NV * LANES)
            })
        }
    }

    /// A quarter of the sum of a row's squares about its provisional mean, and of the terms that correct it if there are
    /// any.
    #[inline(always)]
    unsafe fn squares<S: Simd, const NV: usize>(
        &self,
        src: *const u8,
        provisional: &f32,
        (squares, terms): (&mut S::F64x4, &mut S::F64x4),
    ) {
        let about = if RMS { 0.0 } else { *provisional };
        let moments = Moments::<Src, Dst, RMS>::about(self.src_type, src, about);
        unsafe {
            if const { RMS || NV * LANES <= PROVISIONAL_COLS } {
                *squares = S::wide_quarter(moments.squares::<S, NV>());
            } else {
                let sums = lane_sums::<S, 1, _>(NV * LANES, &moments);
                *squares = S::wide_quarter(sums.products[0]);
                *terms = S::wide_quarter(sums.terms);
            }
        }
    }

    /// The statistics of a group, stored if they are outputs. `None`, with nothing stored, if one of the rows needs a
    /// second pass or f64.
    #[inline(always)]
    unsafe fn statistics<S: Simd, const NV: usize>(
        &self,
        row: usize,
        totals: &Totals<S>,
        scalars: &Scalars,
    ) -> Option<GroupStatistics<S>> {
        let job = self.job;
        unsafe {
            let cols = NV * LANES;
            let mean_square = per_col_of(Four::<S>(totals.squares), cols);
            let about = Four::<S>::widen(scalars.high);
            let mean = if RMS {
                Four::splat(0.0)
            } else if const { NV * LANES <= PROVISIONAL_COLS } {
                Four(S::F64x4::load(scalars.mean.as_ptr()))
            } else {
                mean_of_terms::<Four<S>, Dst>(Four(totals.terms), about, cols)
            };
            let (variance, trusted) = variance_about::<Four<S>, RMS>(mean_square, mean, about);
            if !trusted {
                return None;
            }
            job.write_rows::<Four<S>, RMS>(row, mean, variance);
            Some(GroupStatistics { mean, variance })
        }
    }

    /// The scalars of a group, from its statistics, one step after them. Instructions retire in order: right after the
    /// statistics, a square root and a division held up the next step, which took up to 1.2 times as long on a Zen 3.
    #[inline(always)]
    unsafe fn reciprocals<S: Simd>(&self, found: &GroupStatistics<S>, scalars: &mut Scalars) {
        unsafe {
            let GroupStatistics { mean, variance } = *found;
            let Normalizers { high, low, r } =
                Normalizers::<Four<S>>::new::<RMS>(mean, variance, self.job.epsilon);
            scalars.r = r;
            if !RMS {
                (scalars.high, scalars.low) = (high, low);
            }
        }
    }
}

/// Stores the means of a group, or its provisional means.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn store_means<S: Simd, const NV: usize>(sums: &Sums<S>, scalars: &mut Scalars) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let values = (NV * LANES).min(PROVISIONAL_COLS);
        let Four(mean) = per_col_of(Four::<S>(S::F64x4::sums(sums.values)), values);
        if const { NV * LANES <= PROVISIONAL_COLS } {
            S::F64x4::store(scalars.mean.as_mut_ptr(), mean);
        }
        S::F64x4::store_narrowed(scalars.high.as_mut_ptr(), mean);
    }
}

/// Runs dense rows from `first` in groups. Returns the row it stopped at.
///
/// # Safety
/// The rows exist, are dense, have `NV` vectors and belong to this thread. The job has the types and flags of the type
/// parameters and computes its statistics. The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn dense_rows<
    S: Simd,
    Src: Element,
    Dst: Element,
    const RMS: bool,
    const AFFINE: u8,
    const NV: usize,
>(
    job: &Forward<'_>,
    first: usize,
    last: usize,
) -> usize {
    let (src_type, dst_type) = (Src::of(job.src_type), Dst::of(job.dst_type));
    let kernel = Kernel::<Src, Dst, RMS, AFFINE> { job, src_type, dst_type };
    // SAFETY: guaranteed by the caller.
    unsafe {
        let row = kernel.groups::<S, NV>(first, last);
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
    >(job: &Forward<'_>, first: usize, last: usize) -> usize;
}

/// See [`dense_rows`].
type Entry = unsafe fn(&Forward<'_>, usize, usize) -> usize;

/// The kernel for dense rows of a problem, if there is one for its types, flags and columns.
#[derive(Clone, Copy)]
pub(super) struct Dense(Option<Entry>);

impl Dense {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Only the common types have such kernels.
    pub(super) fn new(level: Level, types: &KernelTypes, flags: Flags, cols: usize) -> Self {
        use DataType::{Bf16 as B, F16 as H, F32 as F};
        let (src, dst, rms) = (types.src, types.dst, flags.rms());
        Self(match (src.data_type, dst.data_type) {
            _ if types.fused || rms && flags.shift() => None,
            (F, F) if dst.half => None,
            (F, F) => by_flags::<F32, F32>(level, flags, cols),
            (B, B) => by_flags::<Bf16, Bf16>(level, flags, cols),
            (H, H) => by_flags::<F16, F16>(level, flags, cols),
            (F, B) => by_flags::<F32, Bf16>(level, flags, cols),
            (B, F) => by_flags::<Bf16, F32>(level, flags, cols),
            _ => None,
        })
    }

    /// Runs rows from `first`. Returns the row it stopped at.
    ///
    /// # Safety
    /// The job has the types, flags and columns of this kernel, the rows exist and belong to this thread, and the CPU
    /// supports the level.
    #[inline]
    pub(super) unsafe fn run(&self, job: &Forward<'_>, first: usize, last: usize) -> usize {
        let dense = Some(job.cols);
        match self.0 {
            Some(entry)
                if job.src_rows.step() == dense
                    && job.dst_rows.step() == dense
                    && job.statistics != StatisticsUse::Given =>
            {
                // SAFETY: guaranteed by the caller, and the rows are dense.
                unsafe { entry(job, first, last) }
            }
            _ => first,
        }
    }
}

fn by_flags<Src: Element, Dst: Element>(level: Level, flags: Flags, cols: usize) -> Option<Entry> {
    match (flags.rms(), flags.scale()) {
        // There is so little work per element that reading ones would cost 5 to 7 per cent.
        (true, false) => by_cols::<Src, Dst, true, 0>(level, cols),
        (true, true) => by_cols::<Src, Dst, true, SCALE>(level, cols),
        (false, _) => by_cols::<Src, Dst, false, BOTH>(level, cols),
    }
}

fn by_cols<Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>(
    level: Level,
    cols: usize,
) -> Option<Entry> {
    // For longer rows of 16-bit elements, this kernel pays only if there are few operations per element.
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
