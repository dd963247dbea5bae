//! What a kernel is told of one execution, forward or backward: addresses, types, where rows begin.

use super::row::{Statistics, mean_in_range, variance_tells};
use super::short::Short;
use super::short_backward;
use crate::rows::{ColumnSums, RowTensor, Schedule, TENSORS};
use crate::simd::{Factors, FusedPostOps};
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
    pub(super) scale: *const f32,
    pub(super) shift: *const f32,
    /// Whether dst will be rounded again to fewer bits.
    pub(super) rounded_again: bool,
    pub(super) src_rows: RowMap,
    pub(super) dst_rows: RowMap,
    pub(super) stat_rows: RowMap,
    pub(super) statistics: StatisticsUse,
    pub(super) rms: bool,
    /// What integers are multiplied and divided by before they are stored.
    pub(super) factors: Factors,
    /// What all results go through before they are stored.
    pub(super) finish: FusedPostOps,
    pub(super) schedule: Schedule,
    /// Whether dst is too large to stay in a cache.
    pub(super) streams: bool,
    /// Whether src comes from memory, so that a row is asked for while another is summed.
    pub(super) fetches: bool,
    /// How the statistics of short rows are computed; of several at once only if they are computed at all.
    pub(super) short: Short,
}

// SAFETY: threads write different rows through these addresses; everything else is read.
unsafe impl Sync for Forward {}

impl Forward {
    /// The same with src and dst on a stage.
    pub(super) fn on(&self, [src, dst, _]: &[RowTensor; TENSORS]) -> Self {
        Self {
            src: src.address,
            src_type: src.data_type,
            src_rows: src.rows,
            dst: dst.address,
            dst_type: dst.data_type,
            dst_rows: dst.rows,
            // What is read again soon stays in the caches.
            streams: self.streams && !dst.staged,
            fetches: self.fetches && !src.staged,
            ..*self
        }
    }

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
        unsafe { read_statistics(self.mean, self.variance, self.stat_rows.offset(row)) }
    }

    #[inline(always)]
    pub(super) fn writes_statistics(&self) -> bool {
        self.statistics == StatisticsUse::Written
    }

    /// Writes a row's statistics, if they are outputs.
    ///
    /// # Safety
    /// The row exists and is this thread's.
    #[inline(always)]
    pub(super) unsafe fn write(&self, row: usize, statistics: &Statistics) {
        if !self.writes_statistics() {
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

/// A mean, 0 if there are none, and a variance.
///
/// # Safety
/// `mean` is null or, as `variance`, has an element `at`.
#[inline(always)]
unsafe fn read_statistics(mean: *const f32, variance: *const f32, at: usize) -> (f32, f32) {
    // SAFETY: the caller's.
    unsafe {
        let mean = if mean.is_null() { 0.0 } else { mean.add(at).read_unaligned() };
        (mean, variance.add(at).read_unaligned())
    }
}

/// One backward execution.
#[derive(Clone, Copy)]
pub(super) struct Backward {
    pub(super) cols: usize,
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
    /// Whether diff_src will be rounded again to fewer bits.
    pub(super) rounded_again: bool,
    pub(super) src_rows: RowMap,
    pub(super) diff_dst_rows: RowMap,
    pub(super) diff_src_rows: RowMap,
    pub(super) stat_rows: RowMap,
    pub(super) global_stats: bool,
    pub(super) rms: bool,
    /// Whether diff_scale and diff_shift are summed.
    pub(super) sums: [bool; 2],
    /// Whether diff_src is too large to stay in a cache.
    pub(super) streams: bool,
    /// The scalars of several rows at once, if rows are short.
    pub(super) short: Option<short_backward::Entry>,
}

// SAFETY: threads write different rows through these addresses; everything else is read.
unsafe impl Sync for Backward {}

/// What a row's statistics are, and whether they are to be trusted in f32.
pub(super) enum Given {
    /// In f32.
    Narrow(Statistics),
    /// In f64.
    Wide(Statistics),
    /// In f64, taken anew from src.
    Anew,
}

impl Backward {
    /// The same with its tensors on a stage.
    pub(super) fn on(&self, [src, diff_dst, diff_src]: &[RowTensor; TENSORS]) -> Self {
        Self {
            src: src.address,
            src_type: src.data_type,
            src_rows: src.rows,
            diff_dst: diff_dst.address,
            diff_dst_type: diff_dst.data_type,
            diff_dst_rows: diff_dst.rows,
            diff_src: diff_src.address,
            diff_src_type: diff_src.data_type,
            diff_src_rows: diff_src.rows,
            streams: self.streams && !diff_src.staged,
            ..*self
        }
    }

    /// The column sums of the block whose part of the scratchpad begins at `block`.
    #[inline(always)]
    pub(super) fn column_sums(&self, block: *mut f64) -> ColumnSums {
        ColumnSums::new(self.cols, self.sums, block)
    }

    /// The statistics given for a row.
    ///
    /// # Safety
    /// The row exists.
    #[inline(always)]
    pub(super) unsafe fn given(&self, row: usize) -> Given {
        // SAFETY: the caller's.
        let (mean, variance) =
            unsafe { read_statistics(self.mean, self.variance, self.stat_rows.offset(row)) };
        let found = Statistics { mean: f64::from(mean), variance: f64::from(variance) };
        if !self.global_stats && !variance_tells(variance) {
            Given::Anew
        } else if mean_in_range(mean) {
            Given::Narrow(found)
        } else {
            Given::Wide(found)
        }
    }
}
