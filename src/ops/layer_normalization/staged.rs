//! Rows that the kernels do not take as they are: of types that they do not know, with a last dimension that is
//! not dense, or with more to be done to dst than is theirs.
//!
//! A few rows at a time are brought to a place in the scratchpad, the stage, where they are dense and of a type
//! that the kernels take; these run there, and what they write is brought to where it belongs. A row's bits are
//! those of the same elements in any other layout.

use super::carry::{Carried, Entry, entries};
use super::columns::{Blocks, CHAIN_ROWS};
use super::job::{Backward, Forward};
use super::problem::LayerNormalization;
use super::types::{KernelTypes, has_chain};
use crate::primitive::{Arguments, BoundSteps, Rows, StepEntry, Steps, step_entry};
use crate::simd::Level;
use crate::tensor::{DataType, MemoryDesc, RowMap};

/// Bytes of rows on a stage, so that they stay in a first-level cache of 48 KiB.
const STAGE_BYTES: usize = 32 * 1024;
/// Rows at once where a last dimension is not dense, if that many bytes are not too much for a second-level
/// cache: neighbours share cache lines.
const ROWS_TO_TURN: usize = 32;
const BYTES_TO_TURN: usize = 512 * 1024;
/// The most stages, and what they may take together: so many bytes, or a part of what all rows would take.
pub(super) const MOST_STAGES: usize = 64;
const BYTES_OF_STAGES: usize = 64 << 20;
/// Bytes of src and dst from which rows go from a stage past the caches: what is computed on the way leaves the
/// third-level cache time, so that less is gained.
const STREAMED_BYTES: usize = 64 << 20;
const PART_OF_ROWS: usize = 8;
/// Rows begin at multiples of a cache line.
const LINE: usize = 64;

/// A tensor of rows.
struct Side {
    data_type: DataType,
    stage_type: DataType,
    rows: RowMap,
    step: usize,
    /// Where its rows are on the stage; `None` if the kernels take them where they are.
    offset: Option<usize>,
    /// Between rows there, in elements.
    stage_step: usize,
}

impl Side {
    fn new(desc: &MemoryDesc, rows: RowMap, stage_type: DataType) -> Self {
        let data_type = LayerNormalization::type_of(desc);
        let cols = desc.dims().last().map_or(0, |cols| *cols as usize);
        let staged = stage_type != data_type || !is_dense(desc);
        let per_line = LINE / stage_type.size();
        Self {
            data_type,
            stage_type,
            rows,
            step: desc.strides().last().map_or(1, |step| *step as usize),
            offset: staged.then_some(0),
            stage_step: cols.checked_next_multiple_of(per_line).unwrap_or(usize::MAX / LINE),
        }
    }

    /// Bytes of a row on the stage.
    fn row_bytes(&self) -> usize {
        match self.offset {
            Some(_) => self.stage_step.saturating_mul(self.stage_type.size()),
            None => 0,
        }
    }

    /// Rows from `first` on, on a stage at `slot`.
    fn carried(&self, tensor: *mut u8, cols: usize, slot: *mut u8) -> Carried {
        Carried {
            tensor,
            data_type: self.data_type,
            rows: self.rows,
            step: self.step,
            cols,
            stage: slot.wrapping_add(self.offset.unwrap_or(0)),
            stage_type: self.stage_type,
            stage_step: self.stage_step,
            streams: false,
        }
    }

    /// Where row 0 would be if row `first` is the first on the stage.
    fn base(&self, slot: *mut u8, first: usize) -> *mut u8 {
        let before = first * self.stage_step * self.stage_type.size();
        slot.wrapping_add(self.offset.unwrap_or(0)).wrapping_sub(before)
    }
}

/// Whether the kernels take the rows of a tensor where they are.
fn is_dense(desc: &MemoryDesc) -> bool {
    match (desc.dims().last(), desc.strides().last()) {
        (Some(dim), Some(step)) => *dim <= 1 || *step == 1,
        _ => true,
    }
}

/// How rows are staged.
pub(super) struct Staging {
    src: Side,
    /// Of diff_dst backward.
    dst: Side,
    diff_src: Side,
    /// What attributes do to the rows of dst.
    steps: Option<(Steps, StepEntry)>,
    /// Whether they are taken on dst, if its rows are aligned and equally far from each other.
    in_place: bool,
    rows_at_once: usize,
    /// Bytes of one stage.
    slot: usize,
    load: Entry,
    store: Entry,
}

impl Staging {
    /// For tensors that the kernels see as `types`, and whose rows begin as `rows` say, in the order src, dst or
    /// diff_dst, diff_src; `order` is that of the dimensions that count rows. `None` if the kernels take all as it is.
    pub(super) fn new(
        problem: &LayerNormalization,
        level: Level,
        types: &KernelTypes,
        rows: [RowMap; 3],
        order: &[usize],
    ) -> Option<Self> {
        let p = problem;
        let steps = if has_chain(p) && !types.fused {
            Steps::new(&p.attr, &p.dst, Some(order))
        } else {
            None
        };
        let steps = steps.map(|steps| (steps, step_entry(level)));
        let [src_type, dst_type, diff_src_type] = types.all();
        let mut src = Side::new(&p.src, rows[0], src_type);
        let mut dst = Side::new(&p.dst, rows[1], dst_type);
        if steps.is_some() {
            dst.offset = Some(0);
        }
        let mut diff_src = Side::new(&p.diff_src, rows[2], diff_src_type);
        // Steps are taken where dst is, if it is f32.
        let in_place = dst.data_type == DataType::F32 && is_dense(&p.dst) && steps.is_some();
        let sides = [&src, &dst, &diff_src];
        if sides.iter().all(|side| side.offset.is_none()) {
            return None;
        }
        let turns = [&p.src, &p.dst, &p.diff_src].iter().any(|desc| !is_dense(desc));
        let row_bytes = sides.iter().fold(0usize, |sum, side| sum.saturating_add(side.row_bytes()));
        let row_bytes = row_bytes.max(1);
        let mut rows_at_once = (STAGE_BYTES / row_bytes).max(1);
        if turns {
            rows_at_once =
                rows_at_once.max(ROWS_TO_TURN.min(BYTES_TO_TURN / row_bytes)).max(CHAIN_ROWS);
        }
        if p.writes_scale() || p.writes_shift() {
            // A chain of column sums ends with the rows of a stage.
            rows_at_once = rows_at_once.max(CHAIN_ROWS);
        }
        if rows_at_once > CHAIN_ROWS {
            // Whole chains of column sums, and rows by the 16 for the short ones.
            rows_at_once -= rows_at_once % CHAIN_ROWS;
        }
        let rows_at_once = rows_at_once.min(p.rows.max(1));
        let mut slot = 0usize;
        for side in [&mut src, &mut dst, &mut diff_src] {
            let bytes = side.row_bytes().saturating_mul(rows_at_once);
            if let Some(offset) = &mut side.offset {
                *offset = slot;
                slot = slot.saturating_add(bytes);
            }
        }
        let (load, store) = entries(level);
        Some(Self { src, dst, diff_src, steps, in_place, rows_at_once, slot, load, store })
    }

    /// Bytes of one stage.
    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    /// How many stages there may be.
    pub(super) fn most_stages(&self, rows: usize) -> usize {
        let part = rows / self.rows_at_once / PART_OF_ROWS;
        (BYTES_OF_STAGES / self.slot.max(1)).max(part).clamp(1, MOST_STAGES)
    }

    /// The cut of rows where it is free: `wanted` blocks, or as many as there are to be stages.
    pub(super) fn blocks(&self, rows: usize, wanted: usize) -> Blocks {
        Blocks::at_most(rows, wanted.min(self.most_stages(rows)), self.rows_at_once)
    }

    /// The steps of an execution, if there are any.
    ///
    /// # Safety
    /// Its buffers were checked.
    pub(super) unsafe fn bind(&self, arguments: &Arguments) -> Option<BoundSteps<'_>> {
        // SAFETY: the caller's.
        self.steps.as_ref().map(|(steps, _)| unsafe { steps.bind(arguments) })
    }

    /// Runs `rows(job, first, last)` over a block of rows, by way of the stage at `slot`.
    ///
    /// # Safety
    /// The rows are there and this thread's, as the stage is.
    pub(super) unsafe fn forward(
        &self,
        job: &Forward,
        slot: *mut u8,
        (first, last): (usize, usize),
        bound: Option<&BoundSteps<'_>>,
        rows: &(dyn Fn(&Forward, usize, usize) + Sync),
    ) {
        let src = self.src.carried(job.src.cast_mut(), job.cols, slot);
        let mut dst = self.dst.carried(job.dst, job.cols, slot);
        let bytes = job.rows * job.cols * (job.src_type.size() + job.dst_type.size());
        dst.streams = job.streams && bytes >= STREAMED_BYTES;
        // What dst held is read before it is written, by a sum or as an operand that lies there.
        let apart = bound.is_none_or(|steps| !steps.read(job.dst));
        let in_place = match job.dst_rows.step() {
            Some(step) if self.in_place && apart && !dst.streams => {
                job.dst.cast::<f32>().is_aligned().then_some(step)
            }
            _ => None,
        };
        let leaves_dst = self.dst.offset.is_some() && in_place.is_none();
        for begin in (first..last).step_by(self.rows_at_once) {
            let end = last.min(begin + self.rows_at_once);
            let mut part = *job;
            (part.src_type, part.dst_type) = (self.src.stage_type, self.dst.stage_type);
            if self.src.offset.is_some() {
                // SAFETY: the caller's.
                unsafe { (self.load)(&src, begin, end) };
                part.src = self.src.base(slot, begin);
                part.src_rows = RowMap::every(self.src.stage_step);
            }
            if leaves_dst {
                part.dst = self.dst.base(slot, begin);
                part.dst_rows = RowMap::every(self.dst.stage_step);
            }
            // What is read again stays in the caches.
            part.streams &= self.dst.offset.is_none();
            part.fetches &= self.src.offset.is_none();
            rows(&part, begin, end);
            // SAFETY: the caller's.
            unsafe {
                if let (Some((_, entry)), Some(bound)) = (&self.steps, bound) {
                    let there = job.dst.cast::<f32>().wrapping_add(job.dst_rows.offset(begin));
                    let (start, step) = match in_place {
                        Some(step) => (there, step),
                        None => (dst.stage.cast(), self.dst.stage_step),
                    };
                    entry(bound, &Rows { start, step, cols: job.cols }, begin, end);
                }
                if leaves_dst {
                    (self.store)(&dst, begin, end);
                }
            }
        }
    }

    /// As [`forward`](Staging::forward), into the block's column sums and without steps.
    ///
    /// # Safety
    /// As [`forward`](Staging::forward), with the sums.
    pub(super) unsafe fn backward(
        &self,
        job: &Backward,
        slot: *mut u8,
        (first, last): (usize, usize),
        rows: &dyn Fn(&Backward, usize, usize),
    ) {
        let src = self.src.carried(job.src.cast_mut(), job.cols, slot);
        let diff_dst = self.dst.carried(job.diff_dst.cast_mut(), job.cols, slot);
        let diff_src = self.diff_src.carried(job.diff_src, job.cols, slot);
        for begin in (first..last).step_by(self.rows_at_once) {
            let end = last.min(begin + self.rows_at_once);
            let mut part = *job;
            part.src_type = self.src.stage_type;
            part.diff_dst_type = self.dst.stage_type;
            part.diff_src_type = self.diff_src.stage_type;
            // SAFETY: the caller's.
            unsafe {
                if self.src.offset.is_some() {
                    (self.load)(&src, begin, end);
                    part.src = self.src.base(slot, begin);
                    part.src_rows = RowMap::every(self.src.stage_step);
                }
                if self.dst.offset.is_some() {
                    (self.load)(&diff_dst, begin, end);
                    part.diff_dst = self.dst.base(slot, begin);
                    part.diff_dst_rows = RowMap::every(self.dst.stage_step);
                }
                if self.diff_src.offset.is_some() {
                    part.diff_src = self.diff_src.base(slot, begin);
                    part.diff_src_rows = RowMap::every(self.diff_src.stage_step);
                    part.streams = false;
                }
                rows(&part, begin, end);
                if self.diff_src.offset.is_some() {
                    (self.store)(&diff_src, begin, end);
                }
            }
        }
    }
}
