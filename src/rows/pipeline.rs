//! Runs the rows of a problem through blocks, threads and stages.

use super::around::{Around, Bound, Normalized};
use super::blocks::Blocks;
use super::columns::{CHAIN_ROWS, ColumnSums, JoinEntry, Partial};
use super::order::row_map;
use super::schedule::{ALIASED, BLOCKS_PER_THREAD, PAGE, Schedule};
use super::slots::Slots;
use super::spread::{length_of, width_of};
use super::stage::{Operand, RowTensor, Stage, Staged, TENSORS};
use crate::primitive::{BoundChain, Execution, PostOpChain};
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
/// A page, in f64.
const PAGE_OF_SUMS: usize = PAGE / size_of::<f64>();

/// The column sums of a problem, and their room in the scratchpad: a header with their address, and the blocks.
struct Sums {
    cols: usize,
    /// Whether diff_scale and diff_shift are summed.
    wanted: [bool; 2],
    blocks: Blocks,
    /// Whether no block has rows for more than one chain.
    single_chains: bool,
    /// The distance between blocks, in f64. Larger ones have the same offset in a page.
    stride: usize,
    /// The room, in bytes, for shifting the blocks.
    slack: usize,
}

impl Sums {
    fn new(wanted: [bool; 2], rows: usize, cols: usize) -> Self {
        let size = ColumnSums::size(wanted.into_iter().filter(|wanted| *wanted).count(), cols);
        let large = size >= PAGE_OF_SUMS;
        let stride = if large { size.checked_next_multiple_of(PAGE_OF_SUMS) } else { None };
        let blocks = Blocks::of_column_sums(rows, cols);
        Self {
            cols,
            wanted,
            blocks,
            single_chains: (0..blocks.count()).all(|block| blocks.range(block).len() <= CHAIN_ROWS),
            stride: stride.unwrap_or(size),
            slack: if large { PAGE } else { 0 },
        }
    }

    /// Bytes of the scratchpad.
    fn bytes(&self) -> usize {
        let blocks = self.stride.saturating_mul(self.blocks.count() * size_of::<f64>());
        blocks.saturating_add(HEADER + self.slack)
    }

    /// The first block, whose address is kept in the header. Blocks are shifted so that, if possible, loads of chains do
    /// not alias stores to the third tensor, nor loads of the others and of scale the stores to chains.
    fn place(
        &self,
        header: *mut u8,
        [src, diff_dst, stored]: [*mut u8; TENSORS],
        scale: *const f32,
    ) -> *mut f64 {
        const STEP: usize = 512;
        // Tensors at several offsets may leave no place that is far from all of them.
        const DISTANCES: [usize; 2] = [ALIASED, ALIASED / 4];
        let start = header.wrapping_add(HEADER);
        let is_apart = |shift: usize, near: usize| {
            let block = start.wrapping_add(shift).cast();
            let ColumnSums { scale_chain, shift_chain, .. } =
                ColumnSums::new(self.cols, self.wanted, block);
            let loads = [src.cast_const(), diff_dst.cast_const(), scale.cast()];
            [scale_chain, shift_chain].into_iter().filter(|chain| !chain.is_null()).all(|chain| {
                !Schedule::is_aliased(stored, chain.cast(), near)
                    && !loads.iter().any(|loads| Schedule::is_aliased(chain.cast(), *loads, near))
            })
        };
        let shifts = || (0..self.slack).step_by(STEP);
        let found =
            DISTANCES.iter().find_map(|near| shifts().find(|shift| is_apart(*shift, *near)));
        let sums = start.wrapping_add(found.unwrap_or(0)).cast();
        // SAFETY: the header is this execution's.
        unsafe { header.cast::<*mut f64>().write(sums) };
        sums
    }

    /// The sums of a block, started.
    ///
    /// # Safety
    /// The block exists and belongs to this thread.
    unsafe fn start(&self, first: *mut f64, block: usize) -> *mut f64 {
        let sums = first.wrapping_add(block * self.stride);
        // SAFETY: guaranteed by the caller.
        unsafe { ColumnSums::new(self.cols, self.wanted, sums).start(self.cols) };
        sums
    }
}

/// How the rows of a problem are computed.
pub(crate) struct Pipeline {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) types: [DataType; TENSORS],
    /// The row offsets of the tensors.
    pub(crate) maps: [RowMap; TENSORS],
    stage: Option<Stage>,
    sums: Option<Sums>,
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
        let sums = whole_chains.then(|| Sums::new(sums, rows, cols));
        let stage = level.and_then(|level| {
            Stage::new(level, &operands, (rows, &maps), (chain, around), whole_chains)
        });
        // Sizes beyond the address space saturate, and the allocation then fails.
        let stages_at = room.saturating_add(sums.as_ref().map_or(0, Sums::bytes));
        Self { rows, cols, types, maps, stage, sums, room, stages_at }
    }

    /// Whether a tensor is staged.
    pub(crate) fn is_staged(&self) -> bool {
        self.stage.is_some()
    }

    /// Whether no block of column sums has rows for more than one chain, which may then stand for the sums.
    #[inline]
    pub(crate) fn has_single_chains(&self) -> bool {
        self.sums.as_ref().is_some_and(|sums| sums.single_chains)
    }

    /// Bytes of an execution's scratchpad: the operation's, the column sums, the stages.
    pub(crate) fn scratchpad_size(&self) -> usize {
        let stages = self.stage.as_ref().map_or(0, |stage| {
            let blocks = match &self.sums {
                Some(sums) => sums.blocks,
                None => stage.blocks(self.rows, usize::MAX),
            };
            stage.bytes().saturating_mul(blocks.count().min(stage.most(self.rows)))
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

    /// The split of rows for a number of threads.
    fn blocks(&self, width: usize) -> Blocks {
        let wanted = if width == 1 { 1 } else { width * BLOCKS_PER_THREAD };
        match (&self.sums, &self.stage) {
            (Some(sums), _) => sums.blocks,
            (None, None) => Blocks::about(self.rows, wanted),
            (None, Some(stage)) => stage.blocks(self.rows, wanted),
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
        if width == 1 && self.sums.is_none() && self.stage.is_none() && self.rows > 0 {
            // The fast path for small problems, where every instruction counts.
            kernel(None, 0, self.rows, std::ptr::null_mut());
            return 1;
        }
        let blocks = self.blocks(width);
        let scale = match normalized {
            Some(Normalized::Rows { scale, .. }) => *scale,
            _ => std::ptr::null(),
        };
        let first = Part(match &self.sums {
            Some(sums) => {
                sums.place(execution.scratchpad.wrapping_add(self.room), addresses, scale)
            }
            None => std::ptr::null_mut(),
        });
        let sums = self.sums.as_ref();
        let start = move |block: usize| match sums {
            // SAFETY: this part of the scratchpad belongs to the block.
            Some(sums) => unsafe { sums.start(first.at(0), block) },
            None => std::ptr::null_mut(),
        };
        if let Some(stage) = &self.stage {
            // SAFETY: the execution's buffers were checked.
            let bound = unsafe { stage.bind(execution.arguments) };
            let around = stage.bind_around(execution.arguments, normalized, streams);
            let steps = (bound.as_ref(), around);
            let on_stage = StagedRun { stage, tensors: self.tensors(addresses), steps, streams };
            return self.run_staged(execution, &on_stage, (width, blocks), &start, kernel);
        }
        if blocks.count() == 1 {
            kernel(None, 0, self.rows, start(0));
            return 1;
        }
        let length = length_of(self.rows * self.cols);
        execution.run(blocks.count(), width, length, &move |block| {
            let range = blocks.range(block);
            kernel(None, range.start, range.end, start(block));
        })
    }

    /// Runs a kernel over all rows, on stages. `start` returns the column sums of a block.
    fn run_staged(
        &self,
        execution: &Execution<'_>,
        on_stage: &StagedRun<'_>,
        (width, blocks): (usize, Blocks),
        start: &(dyn Fn(usize) -> *mut f64 + Sync),
        kernel: &Kernel<'_>,
    ) -> usize {
        let StagedRun { stage, tensors, steps, streams } = on_stage;
        let stages = Part(execution.scratchpad.wrapping_add(self.stages_at));
        let run = |rows: Range<usize>, slot: usize, sums: *mut f64| {
            let place = stages.at(slot * stage.bytes());
            // SAFETY: the rows belong to the block, and the stage to the slot.
            unsafe {
                stage.run(tensors, place, rows, *steps, *streams, &|staged, first, last| {
                    kernel(Some(staged), first, last, sums);
                });
            }
        };
        if width == 1 && self.sums.is_none() {
            run(0..self.rows, 0, std::ptr::null_mut());
            return 1;
        }
        // Each thread needs one stage at a time, so there may be fewer stages than blocks.
        let count = blocks.count().min(stage.most(self.rows));
        let slots = Slots::new(count);
        let length = length_of(self.rows * self.cols);
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
        let Some(sums) = &self.sums else { return };
        let header = execution.scratchpad.wrapping_add(self.room).cast::<*mut f64>();
        // SAFETY: the run has written it.
        let first = unsafe { header.read() };
        let blocks = sums.blocks.count();
        let block =
            |i: usize| ColumnSums::new(self.cols, sums.wanted, first.wrapping_add(i * sums.stride));
        let mut chains = std::ptr::null_mut();
        if sums.single_chains {
            // SAFETY: the run has started every block, and stored its sums or its chains.
            unsafe {
                if (0..blocks).all(|i| block(i).are_empty()) {
                    chains = if shift { block(0).shift_chain } else { block(0).scale_chain };
                } else {
                    (0..blocks).for_each(|i| block(i).settle(self.cols));
                }
            }
        }
        let first = if shift { block(0).diff_shift } else { block(0).diff_scale };
        let partial = Partial { first, chains, blocks, stride: sums.stride };
        // SAFETY: as above; the rest is guaranteed by the caller.
        unsafe { join(&partial, self.cols, out_type, out) };
    }
}

/// What stages need in an execution.
struct StagedRun<'a> {
    stage: &'a Stage,
    tensors: [RowTensor; TENSORS],
    /// The post-op chain and the steps around the kernel.
    steps: (Option<&'a BoundChain<'a>>, Option<Bound<'a>>),
    /// Whether results may be unpacked with non-temporal stores.
    streams: bool,
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
