//! The formula as plain loops over scalars, for any layout and types.
//!
//! It adds in the order that `simd::loops` documents, lane by lane, and rounds where the kernels round,
//! so that its results have the same bits: it runs what the vector implementations refuse, and shows
//! in tests that they do what is written down.

use super::forward::low_term;
use super::job::{Backward, Forward, Given, StatisticsUse};
use super::plan::Plan;
use super::problem::LayerNormalization;
use super::row::{
    NEAR, PILOT, Statistics, corrected, in_range, per_col, reciprocal, sums_narrowly,
};
use super::short::Short;
use super::types::{has_chain, post_ops_fit};
use crate::primitive::{
    BoundChain, Execution, Implementation, Padding, PostOpChain, Variant, apply_chain,
};
use crate::rows::{CHAIN_ROWS, join_entry};
use crate::simd::{
    BLOCK, CHAIN, DefaultEnvironment, GROUP, LANES, Level, read_scalar, read_wide, write_scalar,
    write_wide,
};
use crate::tensor::{DataType, DimOffsets, MemoryDesc, Offsets};
use norm_sys as sys;

/// Takes every problem.
pub(super) fn make(
    problem: &LayerNormalization,
    variant: &'static Variant,
) -> Box<dyn Implementation> {
    let forward = problem.prop_kind.is_forward();
    Box::new(Reference {
        variant,
        plan: Plan::reference(problem),
        src: Tensor::new(&problem.src),
        dst: Tensor::new(&problem.dst),
        diff_src: Tensor::new(&problem.diff_src),
        padding: Padding::of(if forward { &problem.dst } else { &problem.diff_src }),
        steps: PostOpChain::new(&problem.attr, &problem.dst, None),
        wide_sums: has_chain(problem) && !post_ops_fit(problem),
        forward,
        rms: problem.flags.rms(),
    })
}

/// Where the elements of a tensor lie.
struct Tensor {
    rows: Offsets,
    cols: DimOffsets,
}

impl Tensor {
    fn new(desc: &MemoryDesc) -> Self {
        let (rows, cols) = Offsets::of(desc).split_last();
        Self { rows, cols }
    }

    fn row(&self, data_type: DataType, start: *mut u8, row: usize) -> RowView<'_> {
        RowView { data_type, start, offset: self.rows.offset(row), cols: &self.cols }
    }
}

struct Reference {
    variant: &'static Variant,
    plan: Plan,
    src: Tensor,
    /// diff_dst backward.
    dst: Tensor,
    diff_src: Tensor,
    /// Of the output.
    padding: Padding,
    /// What attributes do to dst.
    steps: Option<PostOpChain>,
    /// Whether the statistics are those of an f32 dst, which it is before steps are taken.
    wide_sums: bool,
    forward: bool,
    rms: bool,
}

impl Implementation for Reference {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        self.plan.scratchpad_size()
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let output = if self.forward { sys::NORM_ARG_DST } else { sys::NORM_ARG_DIFF_SRC };
        // SAFETY: the execution's buffers were checked.
        unsafe { self.padding.clear(execution.arguments.get(output)) };
        if self.forward {
            let environment = DefaultEnvironment::enter();
            // SAFETY: the execution's buffers were checked.
            let bound = self.steps.as_ref().map(|steps| unsafe { steps.bind(execution.arguments) });
            drop(environment);
            self.plan.run_forward(execution, Short::No, &|job, first, last| {
                for row in first..last {
                    self.forward_row(job, row, bound.as_ref());
                }
            })
        } else {
            let join = join_entry(Level::Portable);
            self.plan.run_backward(execution, (join, None), &|job, first, last, sums| {
                self.backward_rows(job, first, last, sums);
            })
        }
    }
}

/// A row of a tensor.
#[derive(Clone, Copy)]
struct RowView<'a> {
    data_type: DataType,
    start: *mut u8,
    offset: usize,
    cols: &'a DimOffsets,
}

impl RowView<'_> {
    fn get(self, col: usize) -> f32 {
        // SAFETY: the execution's buffers were checked to hold every element of the descriptor.
        unsafe { read_scalar(self.data_type, self.start, self.offset + self.cols.offset(col)) }
    }

    fn set(self, col: usize, value: f32) {
        // SAFETY: as above, and rows of an output do not overlap.
        unsafe {
            write_scalar(self.data_type, self.start, self.offset + self.cols.offset(col), value)
        }
    }

    fn get_wide(self, col: usize) -> f64 {
        // SAFETY: as `get`.
        unsafe { read_wide(self.data_type, self.start, self.offset + self.cols.offset(col)) }
    }

    fn set_wide(self, col: usize, value: f64) {
        if matches!(self.data_type, DataType::F8E4m3 | DataType::F8E5m2) {
            // As from a stage.
            return self.set(col, value as f32);
        }
        // SAFETY: as `set`.
        unsafe {
            write_wide(self.data_type, self.start, self.offset + self.cols.offset(col), value)
        }
    }
}

/// An element of dst after the steps of the attributes.
fn stepped(bound: &BoundChain<'_>, value: f32, row: usize, col: usize) -> f32 {
    let mut one = [value];
    // SAFETY: the execution's buffers were checked, and the element exists.
    unsafe { apply_chain(bound, &mut one, (row, col), [&mut [0.0], &mut [0.0]]) };
    one[0]
}

/// Whether a tensor is f64, so that all rows are taken in f64.
fn is_double(job: &Backward) -> bool {
    [job.src_type, job.diff_dst_type, job.diff_src_type].contains(&DataType::F64)
}

/// An f32 parameter, or nothing.
#[derive(Clone, Copy)]
struct Parameter(*const f32);

impl Parameter {
    fn get(self, col: usize) -> Option<f32> {
        // SAFETY: the execution's parameters were checked to have as many elements as a row.
        (!self.0.is_null()).then(|| unsafe { self.0.add(col).read_unaligned() })
    }
}

/// A row of backward whose statistics f32 carries.
struct NarrowRow<'a> {
    src: RowView<'a>,
    diff_dst: RowView<'a>,
    diff_src: RowView<'a>,
    scale: Parameter,
    /// `None` with RMS.
    mean: Option<f32>,
    r: f32,
    /// `-r*sum(d)/C`.
    shift: f32,
    /// `r*sum(d*xhat)/C`.
    slope: f32,
}

impl NarrowRow<'_> {
    fn xhat(&self, col: usize) -> f32 {
        let x = self.src.get(col);
        self.mean.map_or(x, |mean| x - mean) * self.r
    }

    fn d(&self, col: usize) -> f32 {
        let dd = self.diff_dst.get(col);
        self.scale.get(col).map_or(dd, |scale| scale * dd)
    }
}

/// A block's column sums and chains; empty where none are asked for.
struct Columns<'a> {
    scale: &'a mut [f64],
    shift: &'a mut [f64],
    scale_chain: &'a mut [f32],
    shift_chain: &'a mut [f32],
}

impl Columns<'_> {
    fn of(job: &Backward, block: *mut f64) -> Self {
        fn slice<'a, T>(start: *mut T, cols: usize) -> &'a mut [T] {
            if start.is_null() {
                return &mut [];
            }
            // SAFETY: the block's part of the scratchpad is this thread's.
            unsafe { std::slice::from_raw_parts_mut(start, cols) }
        }
        let sums = job.column_sums(block);
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

/// `simd::fold`, one lane at a time: the sum of `a*b` over `(a, b) = terms(col)`.
fn fold(cols: usize, terms: impl Fn(usize) -> (f32, f32)) -> f64 {
    let mut total = 0.0;
    for block in (0..cols).step_by(BLOCK) {
        let block_end = cols.min(block + BLOCK);
        let mut wide = [0.0f64; LANES];
        for group in (block..block_end).step_by(GROUP) {
            let mut chains = [[0.0f32; LANES]; GROUP / LANES / CHAIN];
            for col in group..block_end.min(group + GROUP) {
                let (vector, lane) = ((col - group) / LANES, (col - group) % LANES);
                let (a, b) = terms(col);
                let sum = &mut chains[vector / CHAIN][lane];
                *sum = a.mul_add(b, *sum);
            }
            for lane in 0..LANES {
                let [a, b, c, d] = chains.map(|chain| chain[lane]);
                wide[lane] += f64::from((a + b) + (c + d));
            }
        }
        total += halve(wide);
    }
    total
}

/// The terms in f64 of `simd::fold`, one lane at a time.
fn fold_wide(cols: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut total = 0.0;
    for block in (0..cols).step_by(BLOCK) {
        let mut sums = [0.0f64; LANES];
        for col in block..cols.min(block + BLOCK) {
            sums[(col - block) % LANES] += term(col);
        }
        total += halve(sums);
    }
    total
}

/// The sum of 16 lanes, by halves.
fn halve(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The statistics of a row, in f64 throughout.
fn wide_statistics(src: RowView<'_>, cols: usize, rms: bool) -> Statistics {
    let n = cols as f64;
    let x = |col| src.get_wide(col);
    let squares_about = |about: f64| {
        let square = |col| {
            let d = x(col) - about;
            d * d
        };
        fold_wide(cols, square) / n
    };
    if rms {
        return Statistics { mean: 0.0, variance: squares_about(0.0) };
    }
    let first = cols.min(LANES);
    let about = fold_wide(first, x) / first as f64;
    let offset = fold_wide(cols, |col| x(col) - about) / n;
    let (mean, square, mean_square) = (about + offset, offset * offset, squares_about(about));
    let near = square <= mean_square * NEAR;
    let variance = if near { mean_square - square } else { squares_about(mean) };
    Statistics { mean, variance }
}

/// The statistics of a row for a type of dst; `None` if f32 does not carry it. As `Moments::statistics` and, where
/// that does not tell, `row::again`.
fn statistics(src: RowView<'_>, cols: usize, rms: bool, dst: DataType) -> Option<Statistics> {
    let first_mean = first_mean(src, cols, rms, dst);
    let pilot = first_mean as f32;
    let mean = if rms || cols <= PILOT {
        first_mean
    } else if sums_narrowly(dst) {
        f64::from(pilot) + per_col(fold(cols, |col| (src.get(col) - pilot, 1.0)), cols)
    } else {
        per_col(fold_wide(cols, |col| f64::from(src.get(col))), cols)
    };
    let offset = mean - f64::from(pilot);
    let found = mean_square(src, cols, pilot);
    let near = rms || offset * offset <= found * NEAR;
    if in_range(found) && near {
        let variance = if rms { found } else { found - offset * offset };
        return Some(Statistics { mean, variance });
    }
    again(src, cols, rms)
}

/// As `row::again`.
fn again(src: RowView<'_>, cols: usize, rms: bool) -> Option<Statistics> {
    let values = |col| f64::from(src.get(col));
    let mean = if rms { 0.0 } else { per_col(fold_wide(cols, values), cols) };
    let mut about = first_mean(src, cols, rms, DataType::F32) as f32;
    let mut found = mean_square(src, cols, about);
    if !rms && found != 0.0 {
        about = mean as f32;
        found = mean_square(src, cols, about);
    }
    if found == 0.0 {
        let constant = (0..cols).all(|col| src.get(col) == about);
        return constant.then_some(Statistics { mean: f64::from(about), variance: 0.0 });
    }
    in_range(found).then(|| Statistics { mean, variance: corrected(found, mean, about) })
}

/// The mean of the squares about a value, 0 with RMS.
fn mean_square(src: RowView<'_>, cols: usize, about: f32) -> f64 {
    let distance = |col| src.get(col) - about;
    per_col(fold(cols, |col| (distance(col), distance(col))), cols)
}

/// As `row::first_mean`.
fn first_mean(src: RowView<'_>, cols: usize, rms: bool, dst: DataType) -> f64 {
    if rms {
        return 0.0;
    }
    if cols <= PILOT {
        let narrow = src.data_type.is_half() && sums_narrowly(dst);
        let sum = if narrow {
            fold(cols, |col| (src.get(col), 1.0))
        } else {
            fold_wide(cols, |col| f64::from(src.get(col)))
        };
        return per_col(sum, cols);
    }
    let x = |v: usize, lane: usize| src.get(v * LANES + lane);
    let lane = |lane: usize| f64::from((x(0, lane) + x(1, lane)) + (x(2, lane) + x(3, lane)));
    per_col(halve(std::array::from_fn(lane)), PILOT)
}

impl Reference {
    fn forward_row(&self, job: &Forward, row: usize, bound: Option<&BoundChain<'_>>) {
        let src = self.src.row(job.src_type, job.src.cast_mut(), row);
        let dst = self.dst.row(job.dst_type, job.dst, row);
        let given = job.statistics == StatisticsUse::Given;
        let double = [job.src_type, job.dst_type].contains(&DataType::F64);
        let narrow = if double {
            None
        } else if given {
            // SAFETY: the statistics are given and the row exists.
            unsafe { job.given(row) }
        } else {
            let dst_type = if self.wide_sums { DataType::F32 } else { job.dst_type };
            statistics(src, job.cols, self.rms, dst_type)
        };
        let found = narrow.unwrap_or_else(|| {
            if !given {
                return wide_statistics(src, job.cols, self.rms);
            }
            // SAFETY: as above.
            let (mean, variance) = unsafe { job.given_values(row) };
            Statistics { mean: f64::from(mean), variance: f64::from(variance) }
        });
        // SAFETY: the row exists and is this thread's.
        unsafe { job.write(row, &found) };
        let (scale, shift) = (Parameter(job.scale), Parameter(job.shift));
        let r = reciprocal(found.variance, job.epsilon);
        if narrow.is_none() {
            for col in 0..job.cols {
                let xhat = (src.get_wide(col) - found.mean) * r;
                let value = match (scale.get(col), shift.get(col)) {
                    (None, None) => xhat,
                    (Some(scale), None) => xhat * f64::from(scale),
                    (None, Some(shift)) => xhat + f64::from(shift),
                    (Some(scale), Some(shift)) => xhat.mul_add(f64::from(scale), f64::from(shift)),
                };
                match bound {
                    None => dst.set_wide(col, value),
                    Some(bound) => dst.set(col, stepped(bound, value as f32, row, col)),
                }
            }
            return;
        }
        let high = found.mean as f32;
        let r = r as f32;
        let low = low_term(found.mean, high, r);
        for col in 0..job.cols {
            let x = src.get(col);
            let xhat = if self.rms { x * r } else { (x - high).mul_add(r, low) };
            let value = match (scale.get(col), shift.get(col)) {
                (None, None) => xhat,
                (Some(scale), None) => xhat * scale,
                (None, Some(shift)) => xhat + shift,
                (Some(scale), Some(shift)) => xhat.mul_add(scale, shift),
            };
            dst.set(col, bound.map_or(value, |bound| stepped(bound, value, row, col)));
        }
    }

    /// A block's rows, and the chains that they make of the column sums.
    fn backward_rows(&self, job: &Backward, first: usize, last: usize, sums: *mut f64) {
        let mut columns = Columns::of(job, sums);
        let mut in_chain = 0;
        for row in first..last {
            // SAFETY: the row exists.
            let narrow = match unsafe { job.given(row) } {
                Given::Narrow(found) if !is_double(job) => Some(found),
                _ => None,
            };
            if in_chain == CHAIN_ROWS || narrow.is_none() {
                columns.end_chains();
                in_chain = 0;
            }
            if let Some(found) = narrow {
                self.narrow_row(job, row, &found, &mut columns);
                in_chain += 1;
            } else {
                self.wide_row(job, row, &mut columns);
            }
        }
        columns.end_chains();
    }

    fn views(&self, job: &Backward, row: usize) -> [RowView<'_>; 3] {
        [
            self.src.row(job.src_type, job.src.cast_mut(), row),
            self.dst.row(job.diff_dst_type, job.diff_dst.cast_mut(), row),
            self.diff_src.row(job.diff_src_type, job.diff_src, row),
        ]
    }

    /// A row whose statistics f32 carries.
    fn narrow_row(
        &self,
        job: &Backward,
        row: usize,
        found: &Statistics,
        columns: &mut Columns<'_>,
    ) {
        let row = self.narrow(job, row, found);
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
                (false, true) => (-xhat).mul_add(row.slope, d * row.r),
                (false, false) => (-xhat).mul_add(row.slope, d.mul_add(row.r, row.shift)),
            };
            row.diff_src.set(col, value);
        }
    }

    /// A row's statistics and sums.
    fn narrow(&self, job: &Backward, row: usize, found: &Statistics) -> NarrowRow<'_> {
        let [src, diff_dst, diff_src] = self.views(job, row);
        let r = reciprocal(found.variance, job.epsilon) as f32;
        let mean = (!self.rms).then_some(found.mean as f32);
        let scale = Parameter(job.scale);
        let mut row = NarrowRow { src, diff_dst, diff_src, scale, mean, r, shift: 0.0, slope: 0.0 };
        if !job.global_stats {
            let per_col = per_col(f64::from(r), job.cols);
            row.slope = (per_col * fold(job.cols, |col| (row.d(col), row.xhat(col)))) as f32;
            if !self.rms {
                row.shift = -(per_col * fold(job.cols, |col| (row.d(col), 1.0))) as f32;
            }
        }
        row
    }

    /// A row in f64.
    fn wide_row(&self, job: &Backward, row: usize, columns: &mut Columns<'_>) {
        let scale = Parameter(job.scale);
        let [src, diff_dst, diff_src] = self.views(job, row);
        // SAFETY: the row exists.
        let found = match unsafe { job.given(row) } {
            Given::Narrow(found) | Given::Wide(found) if job.global_stats || !is_double(job) => {
                found
            }
            _ => wide_statistics(src, job.cols, self.rms),
        };
        let r = reciprocal(found.variance, job.epsilon);
        let xhat = |col| (src.get_wide(col) - found.mean) * r;
        let d = |col| {
            let dd = diff_dst.get_wide(col);
            scale.get(col).map_or(dd, |scale| f64::from(scale) * dd)
        };
        let per_col = r / job.cols as f64;
        let (mut shift, mut slope) = (0.0, 0.0);
        if !job.global_stats {
            if !self.rms {
                shift = per_col * fold_wide(job.cols, d);
            }
            slope = per_col * fold_wide(job.cols, |col| d(col) * xhat(col));
        }
        for col in 0..job.cols {
            let (dd, d, xhat) = (diff_dst.get_wide(col), d(col), xhat(col));
            let value = match (job.global_stats, self.rms) {
                (true, _) => d * r,
                (false, true) => d * r - xhat * slope,
                (false, false) => d * r - shift - xhat * slope,
            };
            diff_src.set_wide(col, value);
            if let Some(sum) = columns.scale.get_mut(col) {
                *sum += dd * xhat;
            }
            if let Some(sum) = columns.shift.get_mut(col) {
                *sum += dd;
            }
        }
    }
}
