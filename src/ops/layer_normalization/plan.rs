//! What surrounds the kernels: the cut into blocks, threads, the scratchpad, and scale and shift brought to
//! f32. The vector implementations and the reference implementation share it.

use super::caches::{Caches, STREAMED_BYTES};
use super::carry::{self, Carried};
use super::columns::{Blocks, ColumnSums, JoinEntry, Partial};
use super::gradient::{Kind, SUM_SCALE, SUM_SHIFT};
use super::job::{Backward, Forward, StatisticsUse};
use super::parameter::Neutral;
use super::problem::LayerNormalization;
use super::row::Statistics;
use super::short::Short;
use super::short_backward;
use super::staged::Staging;
use super::stages::Stages;
use super::types::{KernelTypes, has_chain};
use crate::primitive::{Arguments, Execution, PropKind, Steps};
use crate::simd::{DefaultEnvironment, Factors, Finish, Level, read_scalar};
use crate::tensor::{DataType, MemoryDesc, RowMap};
use crate::threads::Length;
use norm_sys as sys;

/// Elements that are worth a thread: with fewer for each, handing over costs more than it saves.
const ELEMENTS_PER_THREAD: usize = 24 * 1024;
/// Elements from which it pays to wake a thread that sleeps. With fewer, those take part that still look for
/// work after an execution just before.
const ELEMENTS_TO_WAKE_FOR: usize = 512 * 1024;
/// Blocks per thread where the cut is free, so that a thread that is held up keeps little from the
/// others.
const BLOCKS_PER_THREAD: usize = 4;

/// What an execution needs to know of a problem.
pub(super) struct Plan {
    rows: usize,
    cols: usize,
    epsilon: f64,
    statistics: StatisticsUse,
    global_stats: bool,
    rms: bool,
    src_type: DataType,
    dst_type: DataType,
    diff_src_type: DataType,
    scale_type: DataType,
    diff_scale_type: DataType,
    src_rows: RowMap,
    dst_rows: RowMap,
    diff_src_rows: RowMap,
    stat_rows: RowMap,
    /// Scale and shift are there and have to be converted to f32.
    converts: bool,
    /// The kernels read both, so that those which are not there are neutral values.
    neutral: bool,
    /// What converts them.
    convert: carry::Entry,
    /// How many of diff_scale and diff_shift are summed.
    column_sums: usize,
    sums_scale: bool,
    sums_shift: bool,
    /// The arguments and types of src's and dst's scales, where the kernels multiply and divide by them.
    scales: [Option<(i32, DataType)>; 2],
    /// Ramps that the kernels take results through.
    ramps: Option<Steps>,
    /// For rows that the kernels do not take as they are.
    staging: Option<Staging>,
    /// Of dst and diff_src: whether what the kernels write is rounded again to fewer bits.
    rounded_again: [bool; 2],
}

/// The dimensions that count rows, in an order that rows may be taken in: that of src's strides, so that
/// neighbours are neighbours in memory, unless the order shows in column sums.
fn order_of_rows(problem: &LayerNormalization) -> Vec<usize> {
    let outer = problem.src.ndims() - 1;
    let free = !problem.writes_scale() && !problem.writes_shift();
    if free {
        problem.src.order()[..=outer].iter().copied().filter(|d| *d != outer).collect()
    } else {
        (0..outer).collect()
    }
}

/// Where the rows of a tensor begin, whose dimensions but the last are taken in an order.
pub(super) fn row_map(desc: &MemoryDesc, order: &[usize]) -> RowMap {
    if desc.ndims() == 0 {
        return RowMap::new(&[], &[]);
    }
    let dims: Vec<i64> = order.iter().map(|d| desc.dims()[*d]).collect();
    let strides: Vec<i64> = order.iter().map(|d| desc.strides()[*d]).collect();
    RowMap::new(&dims, &strides)
}

impl Plan {
    /// For an implementation that takes rows as they are, in logical order.
    pub(super) fn new(problem: &LayerNormalization) -> Self {
        let order: Vec<usize> = (0..problem.src.ndims() - 1).collect();
        Self::with_order(problem, &order)
    }

    fn with_order(problem: &LayerNormalization, order: &[usize]) -> Self {
        let p = problem;
        let row_map = |desc: &MemoryDesc| row_map(desc, order);
        let statistics = match (p.flags.global_stats(), p.prop_kind) {
            (true, _) => StatisticsUse::Given,
            (false, PropKind::ForwardTraining) => StatisticsUse::Written,
            (false, _) => StatisticsUse::Hidden,
        };
        let scale_type = LayerNormalization::type_of(&p.scale_shift);
        Self {
            rows: p.rows,
            cols: p.cols,
            epsilon: exact(p.epsilon),
            statistics,
            global_stats: p.flags.global_stats(),
            rms: p.flags.rms(),
            src_type: LayerNormalization::type_of(&p.src),
            dst_type: LayerNormalization::type_of(&p.dst),
            diff_src_type: LayerNormalization::type_of(&p.diff_src),
            scale_type,
            diff_scale_type: LayerNormalization::type_of(&p.diff_scale_shift),
            src_rows: row_map(&p.src),
            dst_rows: row_map(&p.dst),
            diff_src_rows: row_map(&p.diff_src),
            stat_rows: row_map(&p.stat),
            converts: scale_type != DataType::F32,
            neutral: false,
            convert: carry::entries(Level::Portable).0,
            column_sums: usize::from(p.writes_scale()) + usize::from(p.writes_shift()),
            sums_scale: p.writes_scale(),
            sums_shift: p.writes_shift(),
            scales: [None; 2],
            ramps: None,
            staging: None,
            rounded_again: [false; 2],
        }
    }

    /// For kernels of a level that see the tensors as `types`.
    pub(super) fn staged(problem: &LayerNormalization, level: Level, types: &KernelTypes) -> Self {
        let order = order_of_rows(problem);
        let mut plan = Self::with_order(problem, &order);
        plan.neutral = true;
        plan.rounded_again = [types.dst, types.diff_src].map(|t| t.rounded_again);
        if !problem.prop_kind.is_forward() {
            let sums = Kind::new(problem, level, types).sums;
            (plan.sums_scale, plan.sums_shift) = (sums & SUM_SCALE != 0, sums & SUM_SHIFT != 0);
            plan.column_sums = usize::from(plan.sums_scale) + usize::from(plan.sums_shift);
        }
        let rows = [plan.src_rows, plan.dst_rows, plan.diff_src_rows];
        let scale = |arg: i32| {
            let scale = problem.attr.scales.get(arg)?;
            Some((sys::NORM_ARG_ATTR_SCALES | arg, scale.data_type))
        };
        let scales = match has_chain(problem) {
            true => [None; 2],
            false => [sys::NORM_ARG_SRC, sys::NORM_ARG_DST].map(scale),
        };
        let staging = Staging::new(problem, level, types, rows, &order);
        let ramps =
            if types.fused { Steps::new(&problem.attr, &problem.dst, Some(&order)) } else { None };
        let (convert, _) = carry::entries(level);
        Self { scales, ramps, staging, convert, ..plan }
    }

    /// Bytes of one parameter that is converted or neutral, rounded up to a cache line.
    fn converted_size(&self) -> usize {
        let size = self.cols.saturating_mul(size_of::<f32>()).min(usize::MAX / 2);
        let needs_room = self.converts || self.neutral && Neutral::needs_room(self.cols);
        if needs_room { size.next_multiple_of(64) } else { 0 }
    }

    /// Bytes of the column sums of all blocks.
    fn sums_size(&self) -> usize {
        let blocks = Blocks::of_column_sums(self.rows, self.cols).count();
        // What does not fit an address space saturates, and cannot be had.
        let block = ColumnSums::size(self.column_sums, self.cols);
        block.saturating_mul(blocks * size_of::<f64>())
    }

    /// Converted parameters, column sums, stages.
    pub(super) fn scratchpad_size(&self) -> usize {
        let stages = self.staging.as_ref().map_or(0, |staging| {
            let blocks = if self.column_sums > 0 {
                let blocks = Blocks::of_column_sums(self.rows, self.cols).count();
                blocks.min(staging.most_stages(self.rows))
            } else {
                staging.blocks(self.rows, usize::MAX).count()
            };
            staging.slot().saturating_mul(blocks)
        });
        let converted = self.converted_size().saturating_mul(2);
        converted.saturating_add(self.sums_size()).saturating_add(stages)
    }

    /// The cut of rows where it is free, for a number of threads.
    fn free_blocks(&self, width: usize) -> Blocks {
        let wanted = if width == 1 { 1 } else { width * BLOCKS_PER_THREAD };
        match &self.staging {
            None => Blocks::about(self.rows, wanted),
            Some(staging) => staging.blocks(self.rows, wanted),
        }
    }

    /// Where the stages begin in a scratchpad.
    fn stages(&self, scratchpad: *mut u8) -> Part<u8> {
        Part(scratchpad.wrapping_add(2 * self.converted_size() + self.sums_size()))
    }

    /// The address of scale or shift as f32: its own, or that of a copy or of neutral values. Null for the reference
    /// implementation if there is none.
    ///
    /// # Safety
    /// The execution's buffers were checked.
    unsafe fn parameter(&self, execution: &Execution<'_>, neutral: Neutral) -> *const f32 {
        let (id, slot) = match neutral {
            Neutral::One => (sys::NORM_ARG_SCALE, 0),
            Neutral::MinusZero => (sys::NORM_ARG_SHIFT, 1),
        };
        let given = execution.arguments.get(id);
        let room = execution.scratchpad.wrapping_add(slot * self.converted_size());
        if given.is_null() && self.neutral {
            // SAFETY: the scratchpad has room for two parameters if they need it.
            return unsafe { neutral.values(self.cols, room.cast()) };
        }
        if given.is_null() || !self.converts {
            return given.cast();
        }
        let parameter = Carried {
            tensor: given,
            data_type: self.scale_type,
            rows: RowMap::every(0),
            step: 1,
            cols: self.cols,
            stage: room,
            stage_type: DataType::F32,
            stage_step: self.cols,
            streams: false,
        };
        // SAFETY: the scratchpad has room for two converted parameters, and the machine has the level.
        unsafe { (self.convert)(&parameter, 0, 1) };
        parameter.stage.cast()
    }

    /// What the scales ask of the kernels, if it is theirs to do.
    ///
    /// # Safety
    /// The execution's buffers were checked.
    unsafe fn factors(&self, arguments: &Arguments) -> Factors {
        let [src, dst] = self.scales.map(|scale| match scale {
            // SAFETY: a scale is one element.
            Some((id, data_type)) => unsafe { read_scalar(data_type, arguments.get(id), 0) },
            None => 1.0,
        });
        if self.scales == [None; 2] { Factors::NONE } else { Factors::new(src, dst) }
    }

    /// Bytes of tensors of these types.
    fn bytes(&self, types: &[DataType]) -> usize {
        let element: usize = types.iter().map(|data_type| data_type.size()).sum();
        (self.rows * self.cols).saturating_mul(element)
    }

    /// How many threads the problem is worth.
    fn width(&self, execution: &Execution<'_>) -> usize {
        let worth = self.rows * self.cols / ELEMENTS_PER_THREAD;
        if worth <= 1 { 1 } else { execution.threads.count().min(worth) }
    }

    fn length(&self) -> Length {
        if self.rows * self.cols >= ELEMENTS_TO_WAKE_FOR { Length::Long } else { Length::Short }
    }

    /// Runs `rows(job, first, last)` over all rows.
    pub(super) fn run_forward(
        &self,
        execution: &Execution<'_>,
        short: Short,
        rows: &(dyn Fn(&Forward, usize, usize) + Sync),
    ) -> usize {
        let args: &Arguments = execution.arguments;
        let width = self.width(execution);
        let environment = DefaultEnvironment::enter();
        // SAFETY: the buffers were checked.
        let (scale, shift) = unsafe {
            (self.parameter(execution, Neutral::One), self.parameter(execution, Neutral::MinusZero))
        };
        // SAFETY: the buffers were checked.
        let bound = self.staging.as_ref().and_then(|staging| unsafe { staging.bind(args) });
        // SAFETY: the buffers were checked.
        let ramps = self.ramps.as_ref().map(|steps| unsafe { steps.ramps(args) });
        drop(environment);
        let caches = Caches::new(self.rows, self.cols, (self.src_type, self.dst_type), width);
        let job = Forward {
            rows: self.rows,
            cols: self.cols,
            epsilon: self.epsilon,
            src_type: self.src_type,
            dst_type: self.dst_type,
            src: args.get(sys::NORM_ARG_SRC),
            dst: args.get(sys::NORM_ARG_DST),
            mean: args.get(sys::NORM_ARG_MEAN).cast(),
            variance: args.get(sys::NORM_ARG_VARIANCE).cast(),
            scale: scale,
            shift,
            rounded_again: self.rounded_again[0],
            src_rows: self.src_rows,
            dst_rows: self.dst_rows,
            stat_rows: self.stat_rows,
            statistics: self.statistics,
            rms: self.rms,
            // SAFETY: the buffers were checked.
            factors: unsafe { self.factors(args) },
            finish: ramps.as_ref().map_or(Finish::NONE, |ramps| Finish::new(ramps)),
            resident: caches.resident,
            streams: caches.streams && args.get(sys::NORM_ARG_SRC) != args.get(sys::NORM_ARG_DST),
            fetches: caches.streams || (!self.rms && !caches.resident),
            short: if self.statistics == StatisticsUse::Given { Short::No } else { short },
        };
        if self.cols == 0 {
            // The statistics of nothing are 0.
            for row in 0..self.rows {
                let zero = Statistics { mean: 0.0, variance: 0.0 };
                // SAFETY: the row exists, and nobody else runs.
                unsafe { job.write(row, &zero) };
            }
            return 1;
        }
        let blocks = self.free_blocks(width);
        let stages = self.stages(execution.scratchpad);
        execution.threads.run(blocks.count(), width, self.length(), &|block| {
            let _environment = DefaultEnvironment::enter();
            let range = blocks.range(block);
            match &self.staging {
                None => rows(&job, range.start, range.end),
                // SAFETY: the block's rows and stage.
                Some(staging) => unsafe {
                    let slot = stages.at(block * staging.slot());
                    staging.forward(&job, slot, (range.start, range.end), bound.as_ref(), rows);
                },
            }
        })
    }

    /// Runs `rows(job, first, last, sums)` over all rows and joins the column sums.
    pub(super) fn run_backward(
        &self,
        execution: &Execution<'_>,
        (join, short): (JoinEntry, Option<short_backward::Entry>),
        rows: &(dyn Fn(&Backward, usize, usize, *mut f64) + Sync),
    ) -> usize {
        let args: &Arguments = execution.arguments;
        let environment = DefaultEnvironment::enter();
        // SAFETY: the buffers were checked.
        let scale = unsafe { self.parameter(execution, Neutral::One) };
        drop(environment);
        let job = Backward {
            cols: self.cols,
            epsilon: self.epsilon,
            src_type: self.src_type,
            diff_dst_type: self.dst_type,
            diff_src_type: self.diff_src_type,
            src: args.get(sys::NORM_ARG_SRC),
            diff_dst: args.get(sys::NORM_ARG_DIFF_DST),
            diff_src: args.get(sys::NORM_ARG_DIFF_SRC),
            mean: args.get(sys::NORM_ARG_MEAN).cast(),
            variance: args.get(sys::NORM_ARG_VARIANCE).cast(),
            scale: scale,
            rounded_again: self.rounded_again[1],
            src_rows: self.src_rows,
            diff_dst_rows: self.dst_rows,
            diff_src_rows: self.diff_src_rows,
            stat_rows: self.stat_rows,
            global_stats: self.global_stats,
            rms: self.rms,
            sums_scale: self.sums_scale,
            sums_shift: self.sums_shift,
            streams: self.bytes(&[self.src_type, self.dst_type, self.diff_src_type])
                >= STREAMED_BYTES
                && args.get(sys::NORM_ARG_DIFF_SRC) != args.get(sys::NORM_ARG_DIFF_DST),
            short: if self.global_stats { None } else { short },
        };
        if self.cols == 0 {
            return 1;
        }
        let mut width = self.width(execution);
        let blocks = if self.column_sums > 0 {
            Blocks::of_column_sums(self.rows, self.cols)
        } else {
            self.free_blocks(width)
        };
        // The blocks are those of the sums, so there may be more than stages, of which each thread at work has one.
        let stage_count = match &self.staging {
            Some(staging) => blocks.count().min(staging.most_stages(self.rows)),
            None => usize::MAX,
        };
        width = width.min(stage_count);
        let free = Stages::new(stage_count);
        let stride = ColumnSums::size(self.column_sums, self.cols);
        let sums = Part(execution.scratchpad.wrapping_add(2 * self.converted_size()).cast::<f64>());
        let stages = self.stages(execution.scratchpad);
        let threads = execution.threads.run(blocks.count(), width, self.length(), &|block| {
            let _environment = DefaultEnvironment::enter();
            let range = blocks.range(block);
            let sums = sums.at(block * stride);
            // SAFETY: the block's part of the scratchpad.
            unsafe { sums.write_bytes(0, stride) };
            match &self.staging {
                None => rows(&job, range.start, range.end, sums),
                // SAFETY: the block's rows and sums, and a stage that nobody else has.
                Some(staging) => unsafe {
                    let stage = free.take();
                    let slot = stages.at(stage.number() * staging.slot());
                    let rows = |part: &Backward, first, last| rows(part, first, last, sums);
                    staging.backward(&job, slot, (range.start, range.end), &rows);
                },
            }
        });
        let _environment = DefaultEnvironment::enter();
        let outputs = [sys::NORM_ARG_DIFF_SCALE, sys::NORM_ARG_DIFF_SHIFT];
        for (slot, id) in outputs.into_iter().enumerate() {
            let out = args.get(id);
            if !out.is_null() {
                let offset = if slot == 1 && self.sums_scale { self.cols } else { 0 };
                let partial = Partial { first: sums.at(offset), blocks: blocks.count(), stride };
                // SAFETY: every block has written its sums, and `out` was checked.
                unsafe { join(&partial, self.cols, self.diff_scale_type, out) };
            }
        }
        threads.max(1)
    }
}

/// An f32 of 0 or more as f64, also where the thread's floating-point mode takes subnormals for zeros.
fn exact(x: f32) -> f64 {
    const SMALLEST: f64 = f64::from_bits((1023 - 149) << 52);
    if x.is_subnormal() { f64::from(x.to_bits()) * SMALLEST } else { f64::from(x) }
}

/// A part of the scratchpad, of which each block has its own.
#[derive(Clone, Copy)]
struct Part<T>(*mut T);

impl<T> Part<T> {
    fn at(self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}

// SAFETY: each block writes its own.
unsafe impl<T> Sync for Part<T> {}
