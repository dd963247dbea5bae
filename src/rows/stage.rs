//! Staging of rows that the kernels cannot access in place: other data types, a strided last dimension, or
//! post-operations that are not fused.
//!
//! A few rows at a time are packed into the scratchpad, dense and in a type that the kernels support. The kernels run
//! there, then the post-op chain, and the results are unpacked. The layout does not change a bit of the results.

use super::around::{Around, Bound, Functions, Normalized, StagedRows};
use super::blocks::Blocks;
use super::columns::CHAIN_ROWS;
use super::fence::Fence;
use super::pack::{Entry, Packing, entries};
use super::schedule::{
    BLOCKS_PER_THREAD, BYTES_OF_STAGES, BYTES_TO_TRANSPOSE, Caches, MOST_STAGES, PART_OF_ROWS,
    PART_OF_SECOND, PART_OF_SECOND_FROM_MEMORY, ROWS_OF_CHAIN, ROWS_TO_TRANSPOSE,
    STREAMED_BYTES_OF_STAGED,
};
use crate::heap::LINE;
use crate::primitive::{Arguments, BoundChain, ChainEntry, PostOpChain, Rows, chain_entry};
use crate::simd::Level;
use crate::tensor::{DataType, MemoryDesc, RowMap};
use crate::threads::most_threads;

/// The maximum number of tensors that an operation reads or writes row by row.
pub(crate) const TENSORS: usize = 3;
/// The index of dst, to which post-operations are applied.
const DST: usize = 1;
/// A tensor of a problem.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) desc: &'a MemoryDesc,
    /// Its data type in the kernels.
    pub(crate) kernel_type: DataType,
    pub(crate) output: bool,
}

/// A tensor of an execution, as the kernels see it.
#[derive(Clone, Copy)]
pub(crate) struct RowTensor {
    /// The address of row 0, which need not exist on a stage.
    pub(crate) address: *mut u8,
    pub(crate) data_type: DataType,
    pub(crate) rows: RowMap,
    /// Whether it is staged, or will soon be read again by post-operations.
    pub(crate) staged: bool,
}

// SAFETY: threads write disjoint rows through the address.
unsafe impl Sync for RowTensor {}

/// A range of rows of a block, with some tensors on a stage.
pub(crate) struct Staged<'a> {
    pub(crate) tensors: &'a [RowTensor; TENSORS],
    /// Whether more rows of the block follow.
    pub(crate) more: bool,
}

/// How one tensor is staged.
struct Side {
    data_type: DataType,
    stage_type: DataType,
    rows: RowMap,
    /// The stride of the last dimension, in elements.
    step: usize,
    output: bool,
    /// The byte offset of its rows on the stage; `None` if it is not staged.
    offset: Option<usize>,
    /// The distance between rows on the stage, in elements.
    stage_step: usize,
    /// Whether the steps around the kernel write or read its stage.
    by_steps: bool,
}

impl Side {
    fn new(operand: &Operand<'_>, rows: RowMap) -> Self {
        let Operand { desc, kernel_type: stage_type, output } = *operand;
        let data_type = desc.data_type().unwrap_or(DataType::F32);
        let cols = desc.dims().last().map_or(0, |cols| *cols as usize);
        let staged = stage_type != data_type || !has_dense_rows(desc);
        let per_line = LINE / stage_type.size();
        Self {
            data_type,
            stage_type,
            rows,
            step: desc.strides().last().map_or(1, |step| *step as usize),
            output,
            offset: staged.then_some(0),
            stage_step: cols.checked_next_multiple_of(per_line).unwrap_or(usize::MAX / LINE),
            by_steps: false,
        }
    }

    /// Bytes of a row on the stage.
    fn row_bytes(&self) -> usize {
        match self.offset {
            Some(_) => self.stage_step.saturating_mul(self.stage_type.size()),
            None => 0,
        }
    }

    /// The packing of its rows to and from the stage at `slot`.
    fn packing(&self, tensor: &RowTensor, cols: usize, slot: *mut u8) -> Packing {
        Packing {
            tensor: tensor.address,
            data_type: self.data_type,
            rows: self.rows,
            step: self.step,
            cols,
            stage: slot.wrapping_add(self.offset.unwrap_or(0)),
            stage_type: self.stage_type,
            stage_step: self.stage_step,
            streams: false,
            paired: false,
        }
    }

    /// Its rows on the stage at `slot`, from row `first`, if the steps around the kernel write or read them.
    fn of_steps(&self, slot: *mut u8, first: usize) -> Option<StagedRows> {
        let offset = self.offset.filter(|_| self.by_steps)?;
        Some(StagedRows { start: slot.wrapping_add(offset).cast(), first, step: self.stage_step })
    }

    /// The tensor on the stage at `slot`, which begins with row `first`.
    fn on_stage(&self, slot: *mut u8, first: usize) -> RowTensor {
        let before = first * self.stage_step * self.stage_type.size();
        RowTensor {
            address: slot.wrapping_add(self.offset.unwrap_or(0)).wrapping_sub(before),
            data_type: self.stage_type,
            rows: RowMap::every(self.stage_step),
            staged: true,
        }
    }
}

/// Whether the last dimension is dense.
pub(crate) fn has_dense_rows(desc: &MemoryDesc) -> bool {
    match (desc.dims().last(), desc.strides().last()) {
        (Some(dim), Some(step)) => *dim <= 1 || *step == 1,
        _ => true,
    }
}

/// How rows are staged.
pub(super) struct Stage {
    cols: usize,
    sides: [Side; TENSORS],
    /// The post-op chain and the function that applies it.
    chain: Option<(PostOpChain, ChainEntry)>,
    /// The steps around the kernel and the functions that compute them.
    around: Option<(Around, Functions)>,
    /// Whether the chain may be applied to dst in place, if its rows are aligned and equidistant.
    in_place: bool,
    rows_at_once: usize,
    /// Whether results may be unpacked with non-temporal stores.
    streams: bool,
    /// Bytes of one stage.
    bytes: usize,
    pack: Entry,
    unpack: Entry,
    fence: Fence,
}

impl Stage {
    /// For operands with `count` rows at the offsets `rows`; `None` if none is staged. With `whole_chains`, a stage
    /// holds whole chains of column sums.
    pub(super) fn new(
        level: Level,
        operands: &[Operand<'_>; TENSORS],
        (count, rows): (usize, &[RowMap; TENSORS]),
        (chain, around): (Option<PostOpChain>, Option<Around>),
        whole_chains: bool,
    ) -> Option<Self> {
        let mut sides = [0, 1, 2].map(|i| Side::new(&operands[i], rows[i]));
        let mut bytes_around = 0;
        if let Some(around) = &around {
            for (side, by_steps) in sides.iter_mut().zip(around.staged()) {
                if by_steps {
                    (side.by_steps, side.offset) = (true, Some(0));
                }
            }
            bytes_around = around.row_bytes();
        }
        let chain = chain.map(|chain| (chain, chain_entry(level)));
        let dst = &mut sides[DST];
        let in_place =
            chain.is_some() && dst.data_type == DataType::F32 && has_dense_rows(operands[DST].desc);
        if chain.is_some() {
            dst.offset = Some(0);
        }
        if around.is_none() && sides.iter().all(|side| side.offset.is_none()) {
            return None;
        }
        let transposes = operands.iter().any(|operand| !has_dense_rows(operand.desc));
        let staged = |sum: usize, side: &Side| sum.saturating_add(side.row_bytes());
        let row_bytes = sides.iter().fold(bytes_around, staged);
        let cols = operands[0].desc.dims().last().map_or(0, |cols| *cols as usize);
        let row = cols.saturating_mul(sides[0].data_type.size() + sides[DST].data_type.size());
        let streams = count.saturating_mul(row) >= STREAMED_BYTES_OF_STAGED;
        let part =
            if chain.is_some() && streams { PART_OF_SECOND_FROM_MEMORY } else { PART_OF_SECOND };
        let enough = if chain.is_some() && !in_place { ROWS_OF_CHAIN } else { usize::MAX };
        let all = (count, row_bytes.max(1));
        let rows_at_once =
            rows_at_once(all, (part, enough), transposes, whole_chains).min(count.max(1));
        let bytes = place(&mut sides, rows_at_once);
        let (pack, unpack) = entries(level);
        let around = around.map(|around| {
            let functions = Functions::new(level, &around);
            (around, functions)
        });
        Some(Self {
            cols,
            sides,
            chain,
            around,
            in_place,
            rows_at_once,
            streams,
            bytes,
            pack,
            unpack,
            fence: Fence::new(level),
        })
    }

    /// Bytes of one stage.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The maximum number of stages for a number of rows.
    pub(super) fn most(&self, rows: usize) -> usize {
        let part = rows / self.rows_at_once / PART_OF_ROWS;
        (BYTES_OF_STAGES / self.bytes.max(1)).max(part).clamp(1, MOST_STAGES)
    }

    /// The split of rows if results do not depend on it: `wanted` blocks, or as many as there are stages at most.
    pub(super) fn blocks(&self, rows: usize, wanted: usize) -> Blocks {
        Blocks::at_most(rows, wanted.min(self.most(rows)), self.rows_at_once)
    }

    /// The post-op chain of an execution.
    ///
    /// # Safety
    /// The execution's buffers were checked.
    pub(super) unsafe fn bind(&self, arguments: &Arguments) -> Option<BoundChain<'_>> {
        // SAFETY: guaranteed by the caller.
        self.chain.as_ref().map(|(chain, _)| unsafe { chain.bind(arguments) })
    }

    /// The steps around the kernel in an execution, if there are any.
    pub(super) fn bind_around<'a>(
        &'a self,
        arguments: &'a Arguments,
        normalized: Option<&'a Normalized<'a>>,
        streams: bool,
    ) -> Option<Bound<'a>> {
        let (around, functions) = self.around.as_ref()?;
        let cols = (0, self.cols);
        Some(Bound { around, functions, arguments, normalized, first_row: 0, cols, streams })
    }

    /// Runs `kernel(staged, first, last)` over a block of rows through the stage at `slot`. With `streams`, outputs
    /// may be stored non-temporally.
    ///
    /// # Safety
    /// The rows and the stage exist and belong to this thread.
    pub(super) unsafe fn run(
        &self,
        tensors: &[RowTensor; TENSORS],
        slot: *mut u8,
        block: std::ops::Range<usize>,
        (bound, around): (Option<&BoundChain<'_>>, Option<Bound<'_>>),
        streams: bool,
        kernel: &dyn Fn(&Staged<'_>, usize, usize),
    ) {
        let streams = streams && self.streams;
        let direct = self.direct(&tensors[DST], bound, streams);
        for first in block.clone().step_by(self.rows_at_once) {
            let last = block.end.min(first + self.rows_at_once);
            let steps = |i: usize| self.sides[i].of_steps(slot, first);
            if let Some(around) = around {
                // SAFETY: guaranteed by the caller.
                unsafe { around.enter(first, last, [steps(0), steps(1)]) };
            }
            let mut parts = *tensors;
            for (i, side) in self.sides.iter().enumerate() {
                if i == DST && direct.is_some() {
                    parts[i].staged = true;
                    continue;
                }
                if side.offset.is_none() {
                    continue;
                }
                parts[i] = side.on_stage(slot, first);
                if !side.output && !side.by_steps {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        (self.pack)(&side.packing(&tensors[i], self.cols, slot), first, last)
                    };
                }
            }
            kernel(&Staged { tensors: &parts, more: last < block.end }, first, last);
            // SAFETY: guaranteed by the caller.
            unsafe { self.complete(tensors, (slot, streams), (first, last), direct, bound) };
            if let Some(around) = around {
                // SAFETY: guaranteed by the caller.
                unsafe { around.leave(first, last, [steps(DST), steps(2)]) };
            }
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.fence.after(streams) };
    }

    /// The distance between rows of dst, in elements, if the chain is applied in place.
    fn direct(
        &self,
        dst: &RowTensor,
        bound: Option<&BoundChain<'_>>,
        streams: bool,
    ) -> Option<usize> {
        // A sum, or an operand at the same address, reads dst before it is overwritten.
        let unread = bound.is_none_or(|chain| !chain.read(dst.address));
        let usable = self.in_place && unread && !streams && dst.address.cast::<f32>().is_aligned();
        dst.rows.step().filter(|_| usable)
    }

    /// Applies the chain to rows that the kernel has stored, and unpacks outputs.
    ///
    /// # Safety
    /// As [`run`](Stage::run).
    unsafe fn complete(
        &self,
        tensors: &[RowTensor; TENSORS],
        (slot, streams): (*mut u8, bool),
        (first, last): (usize, usize),
        direct: Option<usize>,
        bound: Option<&BoundChain<'_>>,
    ) {
        if let (Some((_, apply)), Some(bound)) = (&self.chain, bound) {
            let dst = &tensors[DST];
            let (start, step) = match direct {
                Some(step) => {
                    (dst.address.cast::<f32>().wrapping_add(dst.rows.offset(first)), step)
                }
                None => {
                    let side = &self.sides[DST];
                    (slot.wrapping_add(side.offset.unwrap_or(0)).cast(), side.stage_step)
                }
            };
            // SAFETY: guaranteed by the caller.
            unsafe {
                apply(
                    bound,
                    &Rows { start, step, cols: self.cols, first_col: 0, inputs: None },
                    first,
                    last,
                )
            };
        }
        for (i, side) in self.sides.iter().enumerate() {
            let on_stage = side.offset.is_some() && !(i == DST && direct.is_some());
            if side.output && on_stage && !side.by_steps {
                let mut packing = side.packing(&tensors[i], self.cols, slot);
                packing.streams = streams && i == DST;
                // SAFETY: guaranteed by the caller.
                unsafe { (self.unpack)(&packing, first, last) };
            }
        }
    }
}

/// Places the staged tensors after each other. Returns the bytes of a stage.
fn place(sides: &mut [Side; TENSORS], rows_at_once: usize) -> usize {
    let mut bytes = 0usize;
    for side in sides {
        let size = side.row_bytes().saturating_mul(rows_at_once);
        if let Some(offset) = &mut side.offset {
            *offset = bytes;
            bytes = bytes.saturating_add(size);
        }
    }
    bytes
}

/// The number of rows of a stage, out of `count`: those that fit the first-level cache if they are `enough`, otherwise
/// up to a part of the second-level cache.
fn rows_at_once(
    (count, row_bytes): (usize, usize),
    (part_of_second, enough): (usize, usize),
    transposes: bool,
    whole_chains: bool,
) -> usize {
    let caches = Caches::get();
    // A kernel starts anew for each stage, so a few rows from the second-level cache beat one or two from the first, as
    // long as there are enough blocks for the threads.
    let few = CHAIN_ROWS.min(count / most_threads() / BLOCKS_PER_THREAD);
    let fit = few.min(caches.second / part_of_second / row_bytes);
    let near = caches.working_set() / row_bytes;
    let mut rows = if near >= enough { near } else { near.max(fit) };
    if transposes {
        rows = rows.max(ROWS_TO_TRANSPOSE.min(BYTES_TO_TRANSPOSE / row_bytes));
    }
    if transposes || whole_chains {
        rows = rows.max(CHAIN_ROWS);
    }
    // Rounds down to whole chains of column sums and whole groups of short rows.
    if rows > CHAIN_ROWS { rows - rows % CHAIN_ROWS } else { rows.max(1) }
}
