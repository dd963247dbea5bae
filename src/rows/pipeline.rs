//! Runs the rows of a problem through blocks, threads and stages.

use super::around::{Around, Normalized};
use super::blocks::Blocks;
use super::columns::{ColumnSums, JoinEntry, Partial};
use super::order::row_map;
use super::schedule::{ALIASED, BLOCKS_PER_THREAD, PAGE, Schedule};
use super::slots::Slots;
use super::spread::{length_of, width_of};
use super::stage::{Operand, RowTensor, Stage, Staged, TENSORS};
use crate::primitive::{Execution, PostOpChain};
use crate::simd::Level;
use crate::tensor::{DataType, RowMap};
use std::ops::Range;

/// The parameters of a [`Pipeline`].
pub(crate) struct Spec<'a> {
    /// The level of the kernels; `None` if rows of any layout are accessed in place.
    pub(crate) level: Option<Level>,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// The tensors. The second is dst, to which post-operations are applied.
    pub(crate) operands: [Operand<'a>; TENSORS],
    /// The outer dimensions in the order in which rows are processed.
    pub(crate) order: &'a [usize],
    /// Post-operations that the kernels do not fuse.
    pub(crate) chain: Option<PostOpChain>,
    /// Steps before and after the kernels.
    pub(crate) around: Option<Around>,
    /// Whether diff_scale and diff_shift are summed over the rows.
    pub(crate) sums: [bool; 2],
    /// Bytes at the start of the scratchpad reserved for the operation, a multiple of 64.
    pub(crate) room: usize,
}

/// Computes the rows from the first to before the last, and adds to the column sums in the last argument. Without
/// `Staged`, the tensors are in place.
pub(crate) type Kernel<'a> = dyn Fn(Option<&Staged<'_>>, usize, usize, *mut f64) + Sync + 'a;

/// Bytes before the column sums, for their address.
const HEADER: usize = 64;

/// How the rows of a problem are computed.
pub(crate) struct Pipeline {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) types: [DataType; TENSORS],
    /// The row offsets of the tensors.
    pub(crate) maps: [RowMap; TENSORS],
    stage: Option<Stage>,
    sums: [bool; 2],
    /// Bytes of scratchpad reserved for the operation, and the offset of the stages after it and the column sums.
    room: usize,
    stages_at: usize,
}

impl Pipeline {
    pub(crate) fn new(spec: Spec<'_>) -> Self {
        let Spec { level, rows, cols, operands, order, chain, around, sums, room } = spec;
        let maps = operands.map(|operand| row_map(operand.desc, order));
        let types = operands.map(|operand| operand.desc.data_type().unwrap_or(DataType::F32));
        let whole_chains = sums.contains(&true);
        let stage = level.and_then(|level| {
            Stage::new(level, &operands, (rows, &maps), (chain, around), whole_chains)
        });
        let mut pipeline = Self { rows, cols, types, maps, stage, sums, room, stages_at: 0 };
        // Sizes beyond the address space saturate, and the allocation then fails.
        let blocks = if whole_chains { Blocks::of_column_sums(rows, cols).count() } else { 0 };
        let bytes = pipeline.stride().saturating_mul(blocks * size_of::<f64>());
        let extra = if whole_chains { HEADER + pipeline.slack() } else { 0 };
        pipeline.stages_at = room.saturating_add(bytes).saturating_add(extra);
        pipeline
    }

    /// Whether a tensor is staged.
    pub(crate) fn is_staged(&self) -> bool {
        self.stage.is_some()
    }

    /// Bytes of an execution's scratchpad: the operation's, the column sums, the stages.
    pub(crate) fn scratchpad_size(&self) -> usize {
        let stages = self.stage.as_ref().map_or(0, |stage| {
            let blocks = if self.sums.contains(&true) {
                Blocks::of_column_sums(self.rows, self.cols).count()
            } else {
                stage.blocks(self.rows, usize::MAX).count()
            };
            stage.bytes().saturating_mul(blocks.min(stage.most(self.rows)))
        });
        self.stages_at.saturating_add(stages)
    }

    /// The number of threads that pay off for the problem.
    #[inline]
    pub(crate) fn width(&self, execution: &Execution<'_>) -> usize {
        width_of(execution.threads, self.rows * self.cols)
    }

    /// The tensors at their addresses in an execution.
    pub(crate) fn tensors(&self, addresses: [*mut u8; TENSORS]) -> [RowTensor; TENSORS] {
        let tensor = |i: usize| RowTensor {
            address: addresses[i],
            data_type: self.types[i],
            rows: self.maps[i],
            staged: false,
        };
        [tensor(0), tensor(1), tensor(2)]
    }

    /// The size of a block's column sums, in f64.
    #[inline]
    fn size(&self) -> usize {
        let count = usize::from(self.sums[0]) + usize::from(self.sums[1]);
        ColumnSums::size(count, self.cols)
    }

    /// The distance between the column sums of blocks, in f64. Larger ones have the same offset in a page.
    #[inline]
    fn stride(&self) -> usize {
        const STEP: usize = PAGE / size_of::<f64>();
        let size = self.size();
        if size < STEP { size } else { size.checked_next_multiple_of(STEP).unwrap_or(size) }
    }

    /// The room, in bytes, for shifting the sums.
    #[inline]
    fn slack(&self) -> usize {
        if self.stride() >= PAGE / size_of::<f64>() { PAGE } else { 0 }
    }

    /// The sums of the first block, whose address is kept in the header. They are shifted so that, if possible, loads
    /// of chains do not alias stores to the third tensor, nor loads of the others and of scale the stores to chains.
    fn place_sums(
        &self,
        scratchpad: *mut u8,
        [src, diff_dst, stored]: [*mut u8; TENSORS],
        scale: *const f32,
    ) -> *mut f64 {
        const STEP: usize = 512;
        // Tensors at several offsets may leave no place that is far from all of them.
        const DISTANCES: [usize; 2] = [ALIASED, ALIASED / 4];
        let header = scratchpad.wrapping_add(self.room);
        let start = header.wrapping_add(HEADER);
        let is_apart = |shift: usize, near: usize| {
            let block = start.wrapping_add(shift).cast();
            let ColumnSums { scale_chain, shift_chain, .. } =
                ColumnSums::new(self.cols, self.sums, block);
            let loads = [src.cast_const(), diff_dst.cast_const(), scale.cast()];
            [scale_chain, shift_chain].into_iter().filter(|chain| !chain.is_null()).all(|chain| {
                !Schedule::is_aliased(stored, chain.cast(), near)
                    && !loads.iter().any(|loads| Schedule::is_aliased(chain.cast(), *loads, near))
            })
        };
        let shifts = || (0..self.slack()).step_by(STEP);
        let found =
            DISTANCES.iter().find_map(|near| shifts().find(|shift| is_apart(*shift, *near)));
        let sums = start.wrapping_add(found.unwrap_or(0)).cast();
        // SAFETY: the header is this execution's.
        unsafe { header.cast::<*mut f64>().write(sums) };
        sums
    }

    /// The split of rows for a number of threads.
    fn blocks(&self, width: usize) -> Blocks {
        let wanted = if width == 1 { 1 } else { width * BLOCKS_PER_THREAD };
        match &self.stage {
            _ if self.sums.contains(&true) => Blocks::of_column_sums(self.rows, self.cols),
            None => Blocks::about(self.rows, wanted),
            Some(stage) => stage.blocks(self.rows, wanted),
        }
    }

    /// Runs a kernel over all rows of the tensors at `addresses` on up to `width` threads. Returns the number of
    /// threads that took part. With `streams`, outputs may be unpacked with non-temporal stores.
    #[inline]
    pub(crate) fn run(
        &self,
        execution: &Execution<'_>,
        addresses: [*mut u8; TENSORS],
        (width, streams): (usize, bool),
        kernel: &Kernel<'_>,
    ) -> usize {
        self.run_around(execution, addresses, (width, streams), None, kernel)
    }

    /// [`run`](Self::run), with the scalars for the steps after a gradient.
    pub(crate) fn run_around(
        &self,
        execution: &Execution<'_>,
        addresses: [*mut u8; TENSORS],
        (width, streams): (usize, bool),
        normalized: Option<&Normalized<'_>>,
        kernel: &Kernel<'_>,
    ) -> usize {
        let stride = self.stride();
        let alone = width == 1 && stride == 0 && self.rows > 0;
        if alone && self.stage.is_none() {
            // The fast path for small problems, where every instruction counts.
            kernel(None, 0, self.rows, std::ptr::null_mut());
            return 1;
        }
        let blocks = self.blocks(width);
        let length = length_of(self.rows * self.cols);
        let scale = match normalized {
            Some(Normalized::Rows { scale, .. }) => *scale,
            _ => std::ptr::null(),
        };
        let sums = match stride {
            0 => std::ptr::null_mut(),
            _ => self.place_sums(execution.scratchpad, addresses, scale),
        };
        let sums = Part(sums);
        let start = |block: usize| {
            let sums = sums.at(block * stride);
            if stride > 0 {
                // SAFETY: this part of the scratchpad belongs to the block.
                unsafe { sums.write_bytes(0, self.size()) };
            }
            sums
        };
        let Some(stage) = &self.stage else {
            return execution.run(blocks.count(), width, length, &|block| {
                let range = blocks.range(block);
                kernel(None, range.start, range.end, start(block));
            });
        };
        // SAFETY: the execution's buffers were checked.
        let bound = unsafe { stage.bind(execution.arguments) };
        let around = stage.bind_around(execution.arguments, normalized, streams);
        let stages = Part(execution.scratchpad.wrapping_add(self.stages_at));
        let tensors = self.tensors(addresses);
        let run = |rows: Range<usize>, slot: usize, sums: *mut f64| {
            let place = stages.at(slot * stage.bytes());
            let steps = (bound.as_ref(), around);
            // SAFETY: the rows belong to the block, and the stage to the slot.
            unsafe {
                stage.run(&tensors, place, rows, steps, streams, &|staged, first, last| {
                    kernel(Some(staged), first, last, sums);
                });
            }
        };
        if alone {
            run(0..self.rows, 0, std::ptr::null_mut());
            return 1;
        }
        // Each thread needs one stage at a time, so there may be fewer stages than blocks.
        let count = blocks.count().min(stage.most(self.rows));
        let slots = Slots::new(count);
        execution.run(blocks.count(), width.min(count), length, &|block| {
            let slot = slots.take();
            run(blocks.range(block), slot.number(), start(block));
        })
    }

    /// Adds the block sums of diff_scale, or of diff_shift with `shift`, and stores the result.
    ///
    /// # Safety
    /// [`run_around`](Self::run_around) has computed them in this execution, and `out` has a row of the type.
    pub(crate) unsafe fn join(
        &self,
        execution: &Execution<'_>,
        join: JoinEntry,
        shift: bool,
        (out_type, out): (DataType, *mut u8),
    ) {
        let header = execution.scratchpad.wrapping_add(self.room).cast::<*mut f64>();
        // SAFETY: the run has written it.
        let sums = unsafe { header.read() };
        let offset = if shift && self.sums[0] { self.cols } else { 0 };
        let blocks = Blocks::of_column_sums(self.rows, self.cols).count();
        let first = ColumnSums::first(sums).wrapping_add(offset);
        // SAFETY: every block has stored its sums; the rest is guaranteed by the caller.
        unsafe {
            join(&Partial { first, blocks, stride: self.stride() }, self.cols, out_type, out)
        };
    }
}

/// A region of the scratchpad with a part for each block.
#[derive(Clone, Copy)]
struct Part<T>(*mut T);

impl<T> Part<T> {
    fn at(self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}

// SAFETY: each block writes its own part only.
unsafe impl<T> Sync for Part<T> {}
