//! Backward, row by row.

use super::super::job::{Backward, Given};
use super::row::{Parameter, RowView, Tensor};
use super::statistics::f64_statistics;
use super::sums::{fold, fold_f64};
use crate::rows::CHAIN_ROWS;
use crate::rows::statistics::{Statistics, per_col, reciprocal};
use crate::tensor::DataType;

/// Whether a tensor is f64, so that all rows are computed in f64.
fn is_double(job: &Backward<'_>) -> bool {
    [job.src_type, job.diff_dst_type, job.diff_src_type].contains(&DataType::F64)
}

/// A row that is computed in f32.
struct F32Row<'a> {
    pub(super) src: RowView<'a>,
    pub(super) diff_dst: RowView<'a>,
    pub(super) diff_src: RowView<'a>,
    scale: Parameter,
    /// `None` with RMS.
    mean: Option<f32>,
    r: f32,
    /// `-r*sum(d)/C`.
    shift: f32,
    /// `r*sum(d*xhat)/C`.
    slope: f32,
    /// The number of columns in the mean square.
    stat_cols: usize,
}

impl F32Row<'_> {
    /// The slope in a column.
    fn slope(&self, col: usize) -> f32 {
        if col < self.stat_cols { self.slope } else { 0.0 }
    }

    fn xhat(&self, col: usize) -> f32 {
        let x = self.src.get(col);
        self.mean.map_or(x, |mean| x - mean) * self.r
    }

    fn d(&self, col: usize) -> f32 {
        let dd = self.diff_dst.get(col);
        self.scale.get(col).map_or(dd, |scale| scale * dd)
    }
}

/// A block's column sums and their open chains; empty if not wanted.
struct Columns<'a> {
    scale: &'a mut [f64],
    shift: &'a mut [f64],
    scale_chain: &'a mut [f32],
    shift_chain: &'a mut [f32],
}

impl Columns<'_> {
    fn of(job: &Backward<'_>, block: *mut f64) -> Self {
        fn slice<'a, T>(start: *mut T, cols: usize) -> &'a mut [T] {
            if start.is_null() {
                return &mut [];
            }
            // SAFETY: the block's scratchpad belongs to this thread.
            unsafe { std::slice::from_raw_parts_mut(start, cols) }
        }
        let sums = job.column_sums(block);
        // SAFETY: the block's scratchpad belongs to this thread.
        unsafe { sums.begin(job.cols) };
        Self {
            scale: slice(sums.diff_scale, job.cols),
            shift: slice(sums.diff_shift, job.cols),
            scale_chain: slice(sums.scale_chain, job.cols),
            shift_chain: slice(sums.shift_chain, job.cols),
        }
    }

    fn end_chains(&mut self) {
        let scale = self.scale.iter_mut().zip(self.scale_chain.iter_mut());
        let shift = self.shift.iter_mut().zip(self.shift_chain.iter_mut());
        for (sum, chain) in scale.chain(shift) {
            *sum += f64::from(*chain);
            *chain = 0.0;
        }
    }
}

/// The gradient, row by row.
pub(super) struct Gradient<'a> {
    pub(super) src: &'a Tensor,
    pub(super) diff_dst: &'a Tensor,
    pub(super) diff_src: &'a Tensor,
    pub(super) rms: bool,
}

impl Gradient<'_> {
    /// Runs the rows of a block; their column terms form chains.
    pub(super) fn rows(&self, job: &Backward<'_>, first: usize, last: usize, sums: *mut f64) {
        let mut columns = Columns::of(job, sums);
        let mut in_chain = 0;
        for row in first..last {
            // SAFETY: the row exists.
            let in_f32 = match unsafe { job.given(row) } {
                Given::F32(found) if !is_double(job) => Some(found),
                _ => None,
            };
            if in_chain == CHAIN_ROWS || in_f32.is_none() {
                columns.end_chains();
                in_chain = 0;
            }
            if let Some(found) = in_f32 {
                self.f32_row(job, row, &found, &mut columns);
                in_chain += 1;
            } else {
                self.f64_row(job, row, &mut columns);
            }
        }
        columns.end_chains();
    }

    fn views(&self, job: &Backward<'_>, row: usize) -> [RowView<'_>; 3] {
        [
            self.src.row(job.src_type, job.src.cast_mut(), row),
            self.diff_dst.row(job.diff_dst_type, job.diff_dst.cast_mut(), row),
            self.diff_src.row(job.diff_src_type, job.diff_src, row),
        ]
    }

    /// A row in f32.
    fn f32_row(
        &self,
        job: &Backward<'_>,
        row: usize,
        found: &Statistics,
        columns: &mut Columns<'_>,
    ) {
        let row = self.prepare(job, row, found);
        for col in 0..job.cols {
            let (dd, d, xhat) = (row.diff_dst.get(col), row.d(col), row.xhat(col));
            if let Some(sum) = columns.scale_chain.get_mut(col) {
                *sum = dd.mul_add(xhat, *sum);
            }
            if let Some(sum) = columns.shift_chain.get_mut(col) {
                *sum += dd;
            }
            let value = match (job.global_stats, self.rms) {
                (true, _) => d * row.r,
                (false, true) => (-xhat).mul_add(row.slope(col), d * row.r),
                (false, false) => (-xhat).mul_add(row.slope(col), d.mul_add(row.r, row.shift)),
            };
            row.diff_src.set(col, value);
        }
    }

    /// A row in f32, with its statistics and sums.
    fn prepare(&self, job: &Backward<'_>, row: usize, found: &Statistics) -> F32Row<'_> {
        let [src, diff_dst, diff_src] = self.views(job, row);
        let r = reciprocal(found.variance, job.epsilon) as f32;
        let mean = (!self.rms).then_some(found.mean as f32);
        let scale = Parameter(job.scale);
        let stat_cols = job.stat_cols;
        let mut row =
            F32Row { src, diff_dst, diff_src, scale, mean, r, shift: 0.0, slope: 0.0, stat_cols };
        if !job.global_stats {
            let per_col = per_col(f64::from(r), stat_cols);
            row.slope = (per_col * fold(job.cols, |col| (row.d(col), row.xhat(col)))) as f32;
            if !self.rms {
                row.shift = -(per_col * fold(job.cols, |col| (row.d(col), 1.0))) as f32;
            }
        }
        row
    }

    /// A row in f64.
    fn f64_row(&self, job: &Backward<'_>, row: usize, columns: &mut Columns<'_>) {
        let scale = Parameter(job.scale);
        let [src, diff_dst, diff_src] = self.views(job, row);
        // SAFETY: the row exists.
        let found = match unsafe { job.given(row) } {
            Given::F32(found) | Given::F64(found) if job.global_stats || !is_double(job) => found,
            _ => f64_statistics(src, job.stat_cols, self.rms),
        };
        let r = reciprocal(found.variance, job.epsilon);
        let xhat = |col| (src.get_f64(col) - found.mean) * r;
        let d = |col| {
            let dd = diff_dst.get_f64(col);
            scale.get(col).map_or(dd, |scale| f64::from(scale) * dd)
        };
        let per_col = r / job.stat_cols as f64;
        let (mut shift, mut slope) = (0.0, 0.0);
        if !job.global_stats {
            if !self.rms {
                shift = per_col * fold_f64(job.cols, d);
            }
            slope = per_col * fold_f64(job.cols, |col| d(col) * xhat(col));
        }
        for col in 0..job.cols {
            let (dd, d, xhat) = (diff_dst.get_f64(col), d(col), xhat(col));
            let slope = if col < job.stat_cols { slope } else { 0.0 };
            let value = match (job.global_stats, self.rms) {
                (true, _) => d * r,
                (false, true) => d * r - xhat * slope,
                (false, false) => d * r - shift - xhat * slope,
            };
            diff_src.set_f64(col, value);
            if let Some(sum) = columns.scale.get_mut(col) {
                *sum += dd * xhat;
            }
            if let Some(sum) = columns.shift.get_mut(col) {
                *sum += dd;
            }
        }
    }
}
