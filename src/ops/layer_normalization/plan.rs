//! The plan of a problem, made at creation: the pipeline of its rows, and what an execution needs to fill in the
//! kernels' jobs.

use super::forward;
use super::gradient::{Kind, SUM_SCALE, SUM_SHIFT};
use super::job::{Backward, ChainEntry, Forward, ShortRows, StatisticsUse};
use super::problem::LayerNormalization;
use super::schedule::{LongRows, Pipelining, Work};
use super::types::{KernelTypes, has_chain};
use crate::error::Result;
use crate::primitive::{Arguments, Execution, PostOpChain, PropKind};
use crate::rows::statistics::{Statistics, exact};
use crate::rows::{
    Caches, JoinEntry, Neutral, Normalized, Operand, Parameter, Pipeline, STATIC_COLS, Schedule,
    Spec, row_map, row_order,
};
use crate::simd::{Factors, FusedPostOps, Level, read_scalar};
use crate::tensor::{DataType, RowMap};
use norm_sys as sys;

pub(super) struct Plan {
    pipeline: Pipeline,
    caches: Caches,
    /// How forward may be pipelined.
    long_rows: LongRows,
    /// Scale and shift.
    parameters: [Parameter; 2],
    /// Bytes of the scratchpad for scale.
    scale_room: usize,
    epsilon: f64,
    statistics: StatisticsUse,
    global_stats: bool,
    rms: bool,
    /// The number of columns in the mean square.
    stat_cols: usize,
    /// The argument whose rows are normalized.
    src: i32,
    /// The stride of src's last dimension.
    src_step: usize,
    /// Whether the kernels, not the chain, apply scale and shift.
    kernel_parameters: bool,
    /// Whether backward kernels of long rows read scale, perhaps one of neutral values, and store diff_src as fast, in f32.
    /// Where they store 16 bits, scale is right behind the stores only for a part of the row: with ordinary stores, rows
    /// then took up to 1.2 times as long on a Zen 3.
    scale_stays_behind: bool,
    diff_scale_type: DataType,
    stat_rows: RowMap,
    /// Whether the kernels sum diff_scale and diff_shift.
    sums: [bool; 2],
    /// The rows of the gradient that the kernels add, if any.
    added: Option<RowMap>,
    /// The argument ids and types of the scales of src and dst, if the kernels apply them.
    scales: Option<[Option<(i32, DataType)>; 2]>,
    /// Post-operations fused into the kernels.
    fused: Option<PostOpChain>,
    /// Whether a later step rounds the kernels' dst or diff_src to fewer bits.
    rounded_again: bool,
}

impl Plan {
    /// For the reference implementation, which accesses rows in place, in logical order.
    pub(super) fn reference(problem: &LayerNormalization) -> Result<Self> {
        Self::new(problem, None)
    }

    /// For the kernels of a level, whose tensors have these types.
    pub(super) fn staged(
        problem: &LayerNormalization,
        level: Level,
        types: &KernelTypes,
    ) -> Result<Self> {
        Self::new(problem, Some((level, types)))
    }

    fn new(p: &LayerNormalization, kernels: Option<(Level, &KernelTypes)>) -> Result<Self> {
        let forward = p.prop_kind.is_forward();
        let own = |desc| LayerNormalization::type_of(desc);
        let unstaged = || [&p.src, &p.dst, &p.diff_src].map(own);
        let types = kernels.map_or_else(unstaged, |(_, types)| types.all());
        let sums = column_sums(p, kernels);
        let src = p.normalized_argument();
        let order = row_order(&p.src, kernels.is_none() || p.writes_scale() || p.writes_shift());
        let level = kernels.map(|(level, _)| level);
        let parameters = parameters(p, kernels);
        let scale_room = parameters[0].room(p.flags.scale());
        let reads_shift = forward || p.has_argument(sys::NORM_ARG_SHIFT);
        let shift_room = if reads_shift { parameters[1].room(p.flags.shift()) } else { 0 };
        let fuses = kernels.is_some_and(|(_, types)| types.fused);
        let adds = kernels.is_some_and(|(_, types)| types.adds);
        let staged_chain = kernels.is_some() && has_chain(p) && !fuses;
        let operand = |desc, kernel_type, output| Operand { desc, kernel_type, output };
        let pipeline = Pipeline::new(Spec {
            level,
            rows: p.rows,
            cols: p.cols,
            operands: [
                operand(p.argument(src), types[0], false),
                operand(&p.dst, types[1], forward),
                operand(&p.diff_src, types[2], !forward),
            ],
            order: &order,
            chain: if staged_chain { p.chain(None, Some(&order))? } else { None },
            around: if kernels.is_some() && !adds { p.steps(&order) } else { None },
            sums,
            room: scale_room.saturating_add(shift_room),
        });
        let rounded_again = kernels.is_some_and(|(_, types)| types.rounds_again(forward));
        let diff_sum = p.argument(sys::NORM_ARG_DIFF_RESIDUAL_DST);
        Ok(Self {
            pipeline,
            caches: Caches::get(),
            long_rows: long_rows(p, level, [types[0], types[1]]),
            parameters,
            scale_room,
            epsilon: exact(p.epsilon),
            statistics: statistics_use(p),
            global_stats: p.flags.global_stats(),
            rms: p.flags.rms(),
            stat_cols: p.stat_cols(),
            src,
            src_step: p.src.strides().last().map_or(1, |step| *step as usize),
            kernel_parameters: p.kernel_flags() == p.flags,
            scale_stays_behind: !forward
                && types[2] == DataType::F32
                && kernels
                    .is_some_and(|(level, types)| Kind::new(p, level, types).reads_scale(level)),
            diff_scale_type: own(&p.diff_scale_shift),
            stat_rows: row_map(&p.stat, &order),
            sums,
            added: adds.then(|| row_map(diff_sum, &order)),
            scales: if kernels.is_some() && !has_chain(p) { scales(p) } else { None },
            fused: if fuses { p.chain(None, Some(&order))? } else { None },
            rounded_again,
        })
    }

    /// Whether the rows of src and dst are contiguous, at least in stretches, or staged, which can make them so.
    pub(super) fn has_dense_rows(&self) -> bool {
        let dense = |rows: &RowMap| rows.innermost().0 == self.pipeline.cols;
        self.pipeline.is_staged() || self.pipeline.maps[..2].iter().all(dense)
    }

    pub(super) fn scratchpad_size(&self) -> usize {
        self.pipeline.scratchpad_size()
    }

    /// The address of a parameter; null if no kernel applies it.
    #[inline]
    fn parameter(&self, execution: &Execution<'_>, id: i32) -> *mut u8 {
        if self.kernel_parameters { execution.arguments.get(id) } else { std::ptr::null_mut() }
    }

    /// Scale in f32.
    ///
    /// # Safety
    /// The execution's buffers were checked.
    #[inline]
    unsafe fn scale(&self, execution: &Execution<'_>) -> *const f32 {
        let given = self.parameter(execution, sys::NORM_ARG_SCALE);
        // SAFETY: the scratchpad begins with room for scale and shift.
        unsafe { self.parameters[0].get(given, execution.scratchpad) }
    }

    /// Shift in f32.
    ///
    /// # Safety
    /// The execution's buffers were checked.
    #[inline]
    unsafe fn shift(&self, execution: &Execution<'_>) -> *const f32 {
        let given = self.parameter(execution, sys::NORM_ARG_SHIFT);
        // SAFETY: as above.
        unsafe { self.parameters[1].get(given, execution.scratchpad.wrapping_add(self.scale_room)) }
    }

    /// The scales that the kernels apply.
    ///
    /// # Safety
    /// The execution's buffers were checked.
    unsafe fn factors(&self, arguments: &Arguments) -> Factors {
        let Some([src, dst]) = self.scales else { return Factors::NONE };
        let value = |scale: Option<(i32, DataType)>| match scale {
            // SAFETY: a scale is one element.
            Some((id, data_type)) => unsafe { read_scalar(data_type, arguments.get(id), 0) },
            None => 1.0,
        };
        Factors::new(value(src), value(dst))
    }

    /// Runs `rows(job, first, last)` over all rows.
    pub(super) fn run_forward(
        &self,
        execution: &Execution<'_>,
        short: ShortRows,
        rows: &(dyn Fn(&Forward<'_>, usize, usize) + Sync),
    ) -> usize {
        let args: &Arguments = execution.arguments;
        let pipeline = &self.pipeline;
        let width = pipeline.width(execution);
        let (src, dst) = (args.get(self.src), args.get(sys::NORM_ARG_DST));
        // SAFETY: the buffers were checked.
        let (scale, shift, factors) =
            unsafe { (self.scale(execution), self.shift(execution), self.factors(args)) };
        // SAFETY: as above.
        let fused = unsafe { self.fused.as_ref().map(|chain| chain.fused(args)) };
        let [src_type, dst_type, _] = pipeline.types;
        let mut schedule =
            Schedule::new(self.caches, (pipeline.rows, pipeline.cols), (src_type, dst_type), width);
        schedule.streams = self.long_rows.streams(schedule, width);
        let in_place = src == dst;
        let streams = schedule.streams && !in_place;
        let job = Forward {
            cols: pipeline.cols,
            stat_cols: self.stat_cols,
            epsilon: self.epsilon,
            src_type,
            dst_type,
            src,
            dst,
            mean: args.get(sys::NORM_ARG_MEAN).cast(),
            variance: args.get(sys::NORM_ARG_VARIANCE).cast(),
            scale,
            shift,
            rounded_again: self.rounded_again,
            src_rows: &pipeline.maps[0],
            dst_rows: &pipeline.maps[1],
            stat_rows: &self.stat_rows,
            statistics: self.statistics,
            rms: self.rms,
            factors,
            post_ops: fused.as_ref().map_or(FusedPostOps::NONE, |ops| FusedPostOps::new(ops)),
            streams,
            prefetches: self.long_rows.prefetches(schedule),
            one_by_one: !in_place && self.long_rows.is_stored_one_by_one(schedule),
            prefetched_into: self.long_rows.prefetched_into(schedule),
            dense_prefetched: self.long_rows.dense_prefetches(schedule),
            short_rows_ahead: self.long_rows.short_rows_ahead,
            pipelining: Pipelining::new(&self.long_rows, Schedule { streams, ..schedule }),
            short: if self.statistics == StatisticsUse::Given { ShortRows::None } else { short },
        };
        if pipeline.cols == 0 {
            write_zeros(&job, pipeline.rows);
            return 1;
        }
        let addresses = [src, dst, std::ptr::null_mut()];
        let job = &job;
        pipeline.run(execution, addresses, (width, job.streams), &move |staged, first, last, _| {
            match staged {
                None => rows(job, first, last),
                Some(staged) => rows(&job.on(staged, (&self.long_rows, schedule)), first, last),
            }
        })
    }

    /// The arguments of the backward kernels.
    fn backward_job(&self, execution: &Execution<'_>, short: Option<ChainEntry>) -> Backward<'_> {
        let args: &Arguments = execution.arguments;
        let pipeline = &self.pipeline;
        let (src, diff_dst) = (args.get(sys::NORM_ARG_SRC), args.get(sys::NORM_ARG_DIFF_DST));
        let diff_src = args.get(sys::NORM_ARG_DIFF_SRC);
        let diff_sum = || args.get(sys::NORM_ARG_DIFF_RESIDUAL_DST);
        let added = if self.added.is_some() { diff_sum() } else { std::ptr::null_mut() };
        let [src_type, diff_dst_type, diff_src_type] = pipeline.types;
        // SAFETY: the buffers were checked.
        let scale = unsafe { self.scale(execution) };
        let inputs = [src_type, diff_dst_type];
        let of_src_type = if added.is_null() { 1 } else { 2 };
        let element = of_src_type * src_type.size() + diff_dst_type.size() + diff_src_type.size();
        let bytes = (pipeline.rows * pipeline.cols).saturating_mul(element);
        let behind = if self.scale_stays_behind { scale } else { std::ptr::null() };
        let loads = [src, diff_dst, added, behind.cast_mut().cast()];
        let streams = self.long_rows.streams_gradient(bytes, diff_src, loads);
        let (rows_ahead, chain_rows_ahead) = if streams {
            self.long_rows.gradient_rows_ahead(pipeline.cols, inputs)
        } else {
            (0, 0)
        };
        Backward {
            cols: pipeline.cols,
            stat_cols: self.stat_cols,
            epsilon: self.epsilon,
            src_type,
            diff_dst_type,
            diff_src_type,
            src,
            diff_dst,
            diff_src,
            mean: args.get(sys::NORM_ARG_MEAN).cast(),
            variance: args.get(sys::NORM_ARG_VARIANCE).cast(),
            scale,
            added,
            rounded_again: self.rounded_again,
            src_rows: &pipeline.maps[0],
            src_step: self.src_step,
            diff_dst_rows: &pipeline.maps[1],
            diff_src_rows: &pipeline.maps[2],
            added_rows: self.added.as_ref().unwrap_or(&self.stat_rows),
            stat_rows: &self.stat_rows,
            global_stats: self.global_stats,
            rms: self.rms,
            sums: self.sums,
            more: false,
            single_chains: pipeline.has_single_chains(),
            streams,
            prefetched_into: self.long_rows.gradient_prefetched_into(bytes),
            prefetched_in_sums: streams && self.long_rows.prefetches_in_sums(inputs),
            splits_prefetch: streams && self.long_rows.gradient_splits_prefetch(bytes),
            rows_ahead,
            chain_rows_ahead,
            short: if self.global_stats { None } else { short },
        }
    }

    /// Runs `rows(job, first, last, sums)` over all rows and joins the column sums.
    pub(super) fn run_backward(
        &self,
        execution: &Execution<'_>,
        (join, short): (JoinEntry, Option<ChainEntry>),
        rows: &(dyn Fn(&Backward<'_>, usize, usize, *mut f64) + Sync),
    ) -> usize {
        let pipeline = &self.pipeline;
        if pipeline.cols == 0 {
            return 1;
        }
        let job = self.backward_job(execution, short);
        let addresses = [job.src.cast_mut(), job.diff_dst.cast_mut(), job.diff_src];
        // SAFETY: the buffers were checked.
        let shift = unsafe { self.shift(execution) };
        let scalars = |row| job.scalars(row);
        let normalized = Normalized::Rows { scalars: &scalars, scale: job.scale, shift };
        let job = &job;
        let threads = pipeline.run_around(
            execution,
            addresses,
            (pipeline.width(execution), job.streams),
            Some(&normalized),
            &move |staged, first, last, sums| match staged {
                None => rows(job, first, last, sums),
                Some(staged) => rows(&job.on(staged), first, last, sums),
            },
        );
        self.join_sums(execution, join);
        threads.max(1)
    }

    /// Joins the column sums into diff_scale and diff_shift, if they are arguments.
    fn join_sums(&self, execution: &Execution<'_>, join: JoinEntry) {
        for (shift, id) in [(false, sys::NORM_ARG_DIFF_SCALE), (true, sys::NORM_ARG_DIFF_SHIFT)] {
            let out = execution.arguments.get(id);
            if !out.is_null() {
                // SAFETY: `out` was checked, and the kernels sum every output.
                unsafe { self.pipeline.join(execution, join, shift, (self.diff_scale_type, out)) };
            }
        }
    }
}

/// Whether diff_scale and diff_shift are summed.
fn column_sums(p: &LayerNormalization, kernels: Option<(Level, &KernelTypes)>) -> [bool; 2] {
    match kernels {
        Some((level, types)) if !p.prop_kind.is_forward() => {
            let sums = Kind::new(p, level, types).sums;
            [sums & SUM_SCALE != 0, sums & SUM_SHIFT != 0]
        }
        _ => [p.writes_scale(), p.writes_shift()],
    }
}

/// Scale and shift, with neutral values where kernels read one that the problem does not have.
fn parameters(p: &LayerNormalization, kernels: Option<(Level, &KernelTypes)>) -> [Parameter; 2] {
    // The kernels of long rows read what they need; those of short ones may read everything.
    let reads = match kernels {
        Some(_) if p.cols <= STATIC_COLS => [true; 2],
        Some((level, types)) if p.prop_kind.is_forward() => {
            forward::reads(level, types, p.kernel_flags())
        }
        Some((level, types)) => [Kind::new(p, level, types).reads_scale(level), false],
        None => [false; 2],
    };
    let level = kernels.map_or(Level::Portable, |(level, _)| level);
    let data_type = LayerNormalization::type_of(&p.scale_shift);
    let parameter =
        |i: usize, neutral| Parameter::new(level, p.cols, data_type, reads[i].then_some(neutral));
    let scale = parameter(0, Neutral::One).plus_one(p.flags.plus_one());
    [scale, parameter(1, Neutral::MinusZero)]
}

/// The statistics of empty rows are 0.
fn write_zeros(job: &Forward<'_>, rows: usize) {
    for row in 0..rows {
        let zero = Statistics { mean: 0.0, variance: 0.0 };
        // SAFETY: the row exists, and no other thread runs.
        unsafe { job.write(row, &zero) };
    }
}

fn statistics_use(p: &LayerNormalization) -> StatisticsUse {
    match (p.flags.global_stats(), p.prop_kind) {
        (true, _) => StatisticsUse::Given,
        (false, PropKind::ForwardTraining) => StatisticsUse::Written,
        (false, _) => StatisticsUse::Hidden,
    }
}

fn long_rows(p: &LayerNormalization, level: Option<Level>, types: [DataType; 2]) -> LongRows {
    let whole = p.stat_cols() == p.cols && statistics_use(p) != StatisticsUse::Given;
    let plain = p.attr.post_ops.is_empty();
    let work = Work { rms: p.flags.rms(), scale: p.flags.scale(), whole, plain };
    LongRows::new(level.unwrap_or(Level::Portable), p.cols, types, work)
}

/// The argument ids and types of the scales of src and dst, if there are any.
fn scales(p: &LayerNormalization) -> Option<[Option<(i32, DataType)>; 2]> {
    let scale = |arg: i32| {
        let scale = p.attr.scales.get(arg)?;
        Some((sys::NORM_ARG_ATTR_SCALES | arg, scale.data_type))
    };
    let scales = [sys::NORM_ARG_SRC, sys::NORM_ARG_DST].map(scale);
    (scales != [None; 2]).then_some(scales)
}
