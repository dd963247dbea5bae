//! The arguments of a kernel in one execution, forward or backward: addresses, types, row offsets, and scalars computed
//! for several rows at once.

use super::schedule::{LongRows, Pipelining, SHORTEST_STRETCH};
use crate::rows::row_lanes::RowLanes;
use crate::rows::statistics::{Statistics, mean_in_range, reciprocal, variance_is_usable};
use crate::rows::{CHAIN_ROWS, ColumnSums, Schedule, Staged};
use crate::simd::{Cache, Factors, FusedPostOps, LANES, LaneSums, read_scalar, zeroed};
use crate::tensor::{DataType, RowMap};

/// Where the statistics come from, and whether they are outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatisticsUse {
    /// Computed, but not stored.
    Hidden,
    /// Computed and stored.
    Written,
    /// Inputs.
    Given,
}

/// One forward execution.
#[derive(Clone, Copy)]
pub(super) struct Forward<'a> {
    pub(super) cols: usize,
    /// The number of columns in the mean square; fewer than all for a partial norm.
    pub(super) stat_cols: usize,
    pub(super) epsilon: f64,
    pub(super) src_type: DataType,
    pub(super) dst_type: DataType,
    pub(super) src: *const u8,
    pub(super) dst: *mut u8,
    /// Null with RMS.
    pub(super) mean: *mut f32,
    pub(super) variance: *mut f32,
    pub(super) scale: *const f32,
    pub(super) shift: *const f32,
    /// Whether a later step rounds dst to fewer bits.
    pub(super) rounded_again: bool,
    /// The row offsets stay in the plan: every execution writes a job anew, and a line of it that another thread has
    /// read must first be fetched from that thread's cache.
    pub(super) src_rows: &'a RowMap,
    pub(super) dst_rows: &'a RowMap,
    pub(super) stat_rows: &'a RowMap,
    pub(super) statistics: StatisticsUse,
    pub(super) rms: bool,
    /// Scales applied before rounding to integers.
    pub(super) factors: Factors,
    /// Fused post-operations.
    pub(super) post_ops: FusedPostOps,
    /// Whether dst is stored non-temporally.
    pub(super) streams: bool,
    /// Whether src comes from so far that prefetching the next row pays.
    pub(super) prefetches: bool,
    /// Whether RMS rows that do not overlap run one after another, and the next one is prefetched.
    pub(super) one_by_one: bool,
    /// The cache that rows of src are prefetched into.
    pub(super) prefetched_into: Cache,
    /// Whether dense RMS rows are prefetched even if dst is not streamed.
    pub(super) dense_prefetched: bool,
    /// The prefetch distance of short rows, in rows from the stored one.
    pub(super) short_rows_ahead: usize,
    pub(super) pipelining: Pipelining,
    /// How the statistics of short rows are computed.
    pub(super) short: ShortRows,
}

// SAFETY: threads write disjoint rows through these pointers and only read the rest.
unsafe impl Sync for Forward<'_> {}

impl<'a> Forward<'a> {
    /// Whether a tensor has f64 elements.
    #[inline(always)]
    pub(super) fn has_f64(&self) -> bool {
        self.src_type == DataType::F64 || self.dst_type == DataType::F64
    }

    /// The same job with src and dst on a stage.
    pub(super) fn on(&self, staged: &Staged<'a>, (rows, schedule): (&LongRows, Schedule)) -> Self {
        let [src, dst, _] = staged.tensors;
        // A stage is read again soon, so it should stay in the cache.
        let streams = self.streams && !dst.staged;
        let prefetches = self.prefetches && !src.staged;
        let to_stage = dst.staged && prefetches && rows.prefetches_beside_stage();
        Self {
            src: src.address,
            src_type: src.data_type,
            src_rows: &src.rows,
            dst: dst.address,
            dst_type: dst.data_type,
            dst_rows: &dst.rows,
            streams,
            prefetches,
            one_by_one: streams || to_stage,
            prefetched_into: if to_stage { Cache::Second } else { self.prefetched_into },
            pipelining: Pipelining::new(rows, Schedule { streams, ..schedule }),
            ..*self
        }
    }

    /// Whether the distances between rows vary, but stay constant over stretches that are long enough for the kernels
    /// for several rows at once. The heads of a token in a packed projection are an example.
    #[inline]
    pub(super) fn has_stretches(&self) -> bool {
        let (src, dst) = (self.src_rows.innermost().1, self.dst_rows.innermost().1);
        let even = src == usize::MAX && dst == usize::MAX;
        !even && src.min(dst) >= SHORTEST_STRETCH
    }

    /// Whether the groups of a kernel for short rows, from row `first` on, lie within stretches.
    #[inline]
    pub(super) fn has_short_groups(&self, first: usize) -> bool {
        let fits = |rows: &RowMap| rows.step_of_groups(ROWS_AT_ONCE, first).is_some();
        !matches!(self.short, ShortRows::None) && fits(self.src_rows) && fits(self.dst_rows)
    }

    /// The longest stretch that begins at a row, up to `last`.
    pub(super) fn stretch(&self, row: usize, last: usize) -> Stretch {
        let maps = [self.src_rows, self.dst_rows];
        let end = maps.iter().fold(last, |end, map| end.min(row.saturating_add(map.stretch(row))));
        let [(src, src_rows), (dst, dst_rows)] = maps.map(|map| {
            let (step, _) = map.innermost();
            // Rows keep their numbers, so the address is that of row 0, which need not exist.
            (map.offset(row).wrapping_sub(row.wrapping_mul(step)), RowMap::every(step))
        });
        Stretch {
            src: self.src.wrapping_add(src.wrapping_mul(self.src_type.size())),
            dst: self.dst.wrapping_add(dst.wrapping_mul(self.dst_type.size())),
            src_rows,
            dst_rows,
            end,
        }
    }

    /// The same job for the rows of a stretch.
    pub(super) fn within<'b>(&'b self, stretch: &'b Stretch) -> Forward<'b> {
        let Stretch { src, dst, src_rows, dst_rows, .. } = stretch;
        Forward { src: *src, dst: *dst, src_rows, dst_rows, ..*self }
    }

    /// The given statistics of a row; `None` if the row needs f64.
    ///
    /// # Safety
    /// Statistics are given, and the row exists.
    #[inline(always)]
    pub(super) unsafe fn given(&self, row: usize) -> Option<Statistics> {
        // SAFETY: guaranteed by the caller.
        let (mean, variance) = unsafe { self.given_values(row) };
        let found = Statistics { mean: f64::from(mean), variance: f64::from(variance) };
        mean_in_range(mean).then_some(found)
    }

    /// The given mean and variance of a row.
    ///
    /// # Safety
    /// Statistics are given, and the row exists.
    #[inline(always)]
    pub(super) unsafe fn given_values(&self, row: usize) -> (f32, f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { read_statistics(self.mean, self.variance, self.stat_rows.offset(row)) }
    }

    #[inline(always)]
    pub(super) fn writes_statistics(&self) -> bool {
        self.statistics == StatisticsUse::Written
    }

    /// Stores a row's statistics if they are outputs.
    ///
    /// # Safety
    /// The row exists, and no other thread writes it.
    #[inline(always)]
    pub(super) unsafe fn write(&self, row: usize, statistics: &Statistics) {
        if !self.writes_statistics() {
            return;
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            let at = self.stat_rows.offset(row);
            if !self.mean.is_null() {
                self.mean.add(at).write_unaligned(statistics.mean as f32);
            }
            // Out-of-range values become +Inf.
            self.variance.add(at).write_unaligned(statistics.variance as f32);
        }
    }

    /// Stores the statistics of the rows from `first` if they are outputs.
    ///
    /// # Safety
    /// The rows exist, no other thread writes them, and as [`RowLanes`].
    #[inline(always)]
    pub(super) unsafe fn write_rows<L: RowLanes, const RMS: bool>(
        &self,
        first: usize,
        mean: L,
        variance: L,
    ) {
        const { assert!(L::ROWS <= ROWS_AT_ONCE) };
        if !self.writes_statistics() {
            return;
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.stat_rows.step() == Some(1) {
                let at = self.stat_rows.offset(first);
                if !RMS {
                    L::store_rounded(self.mean.add(at), mean);
                }
                L::store_rounded(self.variance.add(at), variance);
                return;
            }
            let mut rounded: [[f32; ROWS_AT_ONCE]; 2] = zeroed();
            L::store_rounded(rounded[0].as_mut_ptr(), mean);
            L::store_rounded(rounded[1].as_mut_ptr(), variance);
            for r in 0..L::ROWS {
                let [mean, variance] = [rounded[0][r].into(), rounded[1][r].into()];
                self.write(first + r, &Statistics { mean, variance });
            }
        }
    }
}

/// Rows with constant distances, up to `end`.
pub(super) struct Stretch {
    src: *const u8,
    dst: *mut u8,
    src_rows: RowMap,
    dst_rows: RowMap,
    pub(super) end: usize,
}

/// How the statistics of short rows are computed.
#[derive(Clone, Copy)]
pub(super) enum ShortRows {
    /// One row at a time, as for long rows.
    None,
    /// 16 rows at once, by a separate function. With RMS, the kernel may overlap them instead.
    Separate(ShortStatistics, OverlappedRows),
    /// 16 rows at once, summed by the kernel while it stores 16 earlier ones.
    Overlapped(OverlappedRows),
}

/// What the forward kernel calls before and after it sums [`ROWS_AT_ONCE`] rows: functions, so that each of its many
/// variants need not contain them.
#[derive(Clone, Copy)]
pub(super) struct OverlappedRows {
    /// Computes the provisional means of rows at an address, with a distance in bytes. Not called with RMS.
    pub(super) means: unsafe fn(&Forward<'_>, *const u8, usize, &mut SumsOfRows),
    /// As [`ShortStatistics`], from the sums.
    pub(super) statistics: unsafe fn(&Forward<'_>, usize, &SumsOfRows, &mut ShortScalars) -> bool,
}

/// Short rows computed together, one per lane.
pub(super) const ROWS_AT_ONCE: usize = LANES;

/// The scalars of [`ROWS_AT_ONCE`] rows, one per lane; see [`Row`](super::normalize::Row).
pub(super) struct ShortScalars {
    pub(super) high: [f32; ROWS_AT_ONCE],
    pub(super) low: [f32; ROWS_AT_ONCE],
    pub(super) r: [f32; ROWS_AT_ONCE],
}

impl ShortScalars {
    pub(super) const NONE: Self =
        Self { high: [0.0; ROWS_AT_ONCE], low: [0.0; ROWS_AT_ONCE], r: [0.0; ROWS_AT_ONCE] };
}

/// Computes the scalars of [`ROWS_AT_ONCE`] rows from an index, `src_step` bytes apart. Returns false if one of them
/// needs the row-by-row kernel.
pub(super) type ShortStatistics = unsafe fn(&Forward<'_>, usize, usize, &mut ShortScalars) -> bool;

/// The lane sums of rows about their provisional means, for rows of more than
/// [`PROVISIONAL_COLS`](super::row::PROVISIONAL_COLS) elements, or any with RMS.
pub(super) struct SumsOfRows {
    pub(super) provisional: [f32; ROWS_AT_ONCE],
    pub(super) squares: LaneSums,
    pub(super) terms: LaneSums,
}

impl SumsOfRows {
    pub(super) const NONE: Self =
        Self { provisional: [0.0; ROWS_AT_ONCE], squares: LaneSums::NONE, terms: LaneSums::NONE };
}

/// The mean (0 without one) and the variance at an index.
///
/// # Safety
/// `mean` is null or has an element `at`, and so does `variance`.
#[inline(always)]
unsafe fn read_statistics(mean: *const f32, variance: *const f32, at: usize) -> (f32, f32) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mean = if mean.is_null() { 0.0 } else { mean.add(at).read_unaligned() };
        (mean, variance.add(at).read_unaligned())
    }
}

/// One backward execution.
#[derive(Clone, Copy)]
pub(super) struct Backward<'a> {
    pub(super) cols: usize,
    /// As in [`Forward`].
    pub(super) stat_cols: usize,
    pub(super) epsilon: f64,
    pub(super) src_type: DataType,
    pub(super) diff_dst_type: DataType,
    pub(super) diff_src_type: DataType,
    pub(super) src: *const u8,
    pub(super) diff_dst: *const u8,
    pub(super) diff_src: *mut u8,
    /// Null with RMS.
    pub(super) mean: *const f32,
    pub(super) variance: *const f32,
    pub(super) scale: *const f32,
    /// The gradient of the stored sum, of src's type, if the kernels add it; else null.
    pub(super) added: *const u8,
    /// Whether a later step rounds diff_src to fewer bits.
    pub(super) rounded_again: bool,
    pub(super) src_rows: &'a RowMap,
    /// The stride of src's last dimension, if src is not staged.
    pub(super) src_step: usize,
    pub(super) diff_dst_rows: &'a RowMap,
    pub(super) diff_src_rows: &'a RowMap,
    /// The rows of `added`, if there are any.
    pub(super) added_rows: &'a RowMap,
    pub(super) stat_rows: &'a RowMap,
    pub(super) global_stats: bool,
    pub(super) rms: bool,
    /// Whether the kernel sums diff_scale and diff_shift.
    pub(super) sums: [bool; 2],
    /// Whether the block has more rows, so a chain of column sums may stay open.
    pub(super) more: bool,
    /// Whether blocks have rows for one chain only, which then stands for their sums.
    pub(super) single_chains: bool,
    /// Whether diff_src is stored non-temporally.
    pub(super) streams: bool,
    /// The cache that rows of inputs are prefetched into.
    pub(super) prefetched_into: Cache,
    /// Whether short rows are prefetched while their scalars are computed, rather than while they are stored.
    pub(super) prefetched_in_sums: bool,
    /// Whether long rows of src are prefetched while other rows are summed, and other inputs while they are stored.
    pub(super) splits_prefetch: bool,
    /// If diff_src is, the prefetch distance in rows from a row that is summed or stored, and from a stored row of a chain;
    /// 0 if none is prefetched then.
    pub(super) rows_ahead: usize,
    pub(super) chain_rows_ahead: usize,
    /// Computes the scalars of a chain of short rows at once; `None` for longer rows.
    pub(super) short: Option<ChainEntry>,
}

// SAFETY: threads write disjoint rows through these pointers and only read the rest.
unsafe impl Sync for Backward<'_> {}

/// The given statistics of a row, by the precision that the row needs.
pub(super) enum Given {
    /// Usable in f32.
    F32(Statistics),
    /// Usable in f64 only.
    F64(Statistics),
    /// Unusable: recomputed from src in f64.
    Recompute,
}

impl<'a> Backward<'a> {
    /// Whether a tensor has f64 elements.
    #[inline(always)]
    pub(super) fn has_f64(&self) -> bool {
        self.src_type == DataType::F64
            || self.diff_dst_type == DataType::F64
            || self.diff_src_type == DataType::F64
    }

    /// The same job with its tensors on a stage.
    pub(super) fn on(&self, staged: &Staged<'a>) -> Self {
        let [src, diff_dst, diff_src] = staged.tensors;
        Self {
            src: src.address,
            src_type: src.data_type,
            src_rows: &src.rows,
            diff_dst: diff_dst.address,
            diff_dst_type: diff_dst.data_type,
            diff_dst_rows: &diff_dst.rows,
            diff_src: diff_src.address,
            diff_src_type: diff_src.data_type,
            diff_src_rows: &diff_src.rows,
            streams: self.streams && !diff_src.staged,
            more: staged.more,
            ..*self
        }
    }

    /// A row of the gradient that is added; null if there is none.
    #[inline(always)]
    pub(super) fn added(&self, row: usize) -> *const u8 {
        if self.added.is_null() {
            return self.added;
        }
        self.added.wrapping_add(self.added_rows.offset(row) * self.src_type.size())
    }

    /// The column sums of the block whose scratchpad begins at `block`.
    #[inline(always)]
    pub(super) fn column_sums(&self, block: *mut f64) -> ColumnSums {
        ColumnSums::new(self.cols, self.sums, block)
    }

    /// The mean and `1/sqrt(variance + epsilon)` of a row in f32, for the steps after the gradient.
    pub(super) fn scalars(&self, row: usize) -> (f32, f32) {
        // SAFETY: the row exists.
        let found = match unsafe { self.given(row) } {
            Given::F32(found) | Given::F64(found) => found,
            Given::Recompute => self.recomputed(row),
        };
        (found.mean as f32, reciprocal(found.variance, self.epsilon) as f32)
    }

    /// The statistics of a row whose variance does not fit f32.
    fn recomputed(&self, row: usize) -> Statistics {
        let start = self.src_rows.offset(row);
        let x = |col| {
            // SAFETY: the row exists.
            f64::from(unsafe { read_scalar(self.src_type, self.src, start + col * self.src_step) })
        };
        let n = self.stat_cols as f64;
        let mean = if self.rms { 0.0 } else { (0..self.stat_cols).map(x).sum::<f64>() / n };
        let square = |col| (x(col) - mean) * (x(col) - mean);
        Statistics { mean, variance: (0..self.stat_cols).map(square).sum::<f64>() / n }
    }

    /// The given statistics of a row.
    ///
    /// # Safety
    /// The row exists.
    #[inline(always)]
    pub(super) unsafe fn given(&self, row: usize) -> Given {
        // SAFETY: guaranteed by the caller.
        let (mean, variance) =
            unsafe { read_statistics(self.mean, self.variance, self.stat_rows.offset(row)) };
        let found = Statistics { mean: f64::from(mean), variance: f64::from(variance) };
        if !self.global_stats && !variance_is_usable(variance) {
            Given::Recompute
        } else if mean_in_range(mean) {
            Given::F32(found)
        } else {
            Given::F64(found)
        }
    }
}

/// The scalars of a chain of rows, one per lane.
pub(super) struct ChainScalars {
    pub(super) mean: [f32; CHAIN_ROWS],
    pub(super) r: [f32; CHAIN_ROWS],
    /// `-r*sum(d)/C`.
    pub(super) shift: [f32; CHAIN_ROWS],
    /// `r*sum(d*xhat)/C`.
    pub(super) slope: [f32; CHAIN_ROWS],
}

impl ChainScalars {
    pub(super) const NONE: Self = {
        let none = [0.0; CHAIN_ROWS];
        Self { mean: none, r: none, shift: none, slope: none }
    };
}

/// Computes the scalars of the chain that begins at a row, given the byte distances between rows of src and of
/// diff_dst. Returns false if one of the rows needs the row-by-row kernel.
pub(super) type ChainEntry =
    unsafe fn(&Backward<'_>, usize, (usize, usize), &mut ChainScalars) -> bool;
