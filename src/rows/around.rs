//! Steps around a kernel: computations on a row before the kernel reads it and after the kernel has written it. They
//! add a residual, multiply by a gate, compute the gradients of both, and quantize results.
//!
//! [`Stage`](super::stage::Stage) runs them on the rows of a stage, so that elements stay in the first-level cache. A
//! row is processed in chunks of f32; each step is a loop over a chunk, compiled once per level.

use super::combine::{Combine, CombineEntry, combine_entry};
use super::pack::{Entry, Packing, entries};
use super::quantize::{Memory, Quantize};
use super::residual::{AddEntry, Addition, Tensor, add_entry};
use super::rows_of::RowsOf;
use super::schedule::SHORTEST_QUANTIZED_STREAMED;
use crate::primitive::{Arguments, Gating};
use crate::simd::Level;
use crate::tensor::{DataType, RowMap};
use std::mem::MaybeUninit;

/// Elements in a chunk; a chunk passes through all steps before the next one.
const CHUNK: usize = 1024;

/// A tensor added to src.
pub(crate) struct AddedRows {
    pub(crate) residual: RowsOf,
    /// The stored sum.
    pub(crate) sum: Option<RowsOf>,
    pub(crate) sum_type: DataType,
    /// Whether later steps use the f32 sum.
    pub(crate) exact: bool,
}

/// A tensor of gates. The factor is a function of its elements.
pub(crate) struct GateRows {
    pub(crate) gate: RowsOf,
    pub(crate) function: Gating,
    /// Whether it multiplies the input of the normalization, not its result.
    pub(crate) input: bool,
}

/// The tensors of a gradient.
pub(crate) struct GradientRows {
    pub(crate) diff_dst: RowsOf,
    pub(crate) diff_src: RowsOf,
    pub(crate) diff_gate: Option<RowsOf>,
    /// The gradient of the stored sum.
    pub(crate) diff_residual: Option<RowsOf>,
}

/// The steps of a problem. Output gates of forward are a step of the post-op chain instead.
pub(crate) struct Around {
    pub(crate) cols: usize,
    pub(crate) src: RowsOf,
    pub(crate) residual: Option<AddedRows>,
    pub(crate) gate: Option<GateRows>,
    pub(crate) gradient: Option<GradientRows>,
    pub(crate) quantize: Option<Quantize>,
}

impl Around {
    /// Which of src, dst or diff_dst, and diff_src the steps write to or read from a stage.
    pub(super) fn staged(&self) -> [bool; 3] {
        let gate_input = self.gate.as_ref().is_some_and(|gate| gate.input);
        let stored = |sum: &AddedRows| sum.sum.is_some() && !sum.exact;
        let adds = self.residual.as_ref().is_some_and(|sum| !stored(sum));
        let src = gate_input || adds;
        match &self.gradient {
            None => [src, self.quantize.is_some(), false],
            Some(gradient) => {
                let output_gate = self.gate.is_some() && !gate_input;
                let drained = gate_input || output_gate || gradient.diff_residual.is_some();
                [gate_input, output_gate, drained]
            }
        }
    }

    /// The function that adds dense rows in one sweep, if there is nothing else to do with them.
    fn add_entry(&self, level: Level) -> Option<AddEntry> {
        let (tensors, types) = match (&self.gradient, &self.residual) {
            (Some(GradientRows { diff_src, diff_residual: Some(added), .. }), _)
                if self.gate.is_none() =>
            {
                let types = [added.data_type, DataType::F32, diff_src.data_type];
                ([Some(*added), Some(*diff_src), None], types)
            }
            (None, Some(added)) if self.gate.as_ref().is_none_or(|gate| !gate.input) => {
                let types = [self.src.data_type, added.residual.data_type, added.sum_type];
                ([Some(self.src), Some(added.residual), added.sum], types)
            }
            _ => return None,
        };
        let dense = tensors.into_iter().flatten().all(|rows| rows.step == 1);
        dense.then(|| add_entry(level, types))
    }

    /// Bytes of a row of the tensors that the steps read and write.
    pub(super) fn row_bytes(&self) -> usize {
        let residual = self.residual.iter().flat_map(|added| [Some(added.residual), added.sum]);
        let gate = self.gate.iter().map(|gate| Some(gate.gate));
        let gradients = self.gradient.iter().flat_map(|g| [g.diff_gate, g.diff_residual]);
        let all = residual.chain(gate).chain(gradients).flatten();
        let sizes =
            all.map(|rows| rows.data_type.size()).sum::<usize>() + self.src.data_type.size();
        self.cols.saturating_mul(sizes)
    }
}

/// The scalars for recomputing the normalized elements in a gradient.
pub(crate) enum Normalized<'a> {
    /// The scalars of a row, which are its mean (0 with RMS) and `1/sqrt(variance + epsilon)`, and the parameters of
    /// all rows, null if absent.
    Rows { scalars: &'a (dyn Fn(usize) -> (f32, f32) + Sync), scale: *const f32, shift: *const f32 },
    /// Mean, `1/sqrt(variance + epsilon)`, scale and shift of each channel from the first column. With `rows`, there is
    /// one for each of that many rows instead.
    Channels { numbers: [*const f32; 4], rows: Option<usize> },
}

// SAFETY: the parameters are only read.
unsafe impl Sync for Normalized<'_> {}

/// Staged rows of f32.
#[derive(Clone, Copy)]
pub(super) struct StagedRows {
    /// The first element of row `first`.
    pub(super) start: *mut f32,
    pub(super) first: usize,
    pub(super) step: usize,
}

impl StagedRows {
    fn at(&self, row: usize, col: usize) -> *mut f32 {
        // The stage of a section begins with its first column, so the address of column 0 need not exist.
        let before = self.first * self.step;
        self.start.wrapping_add(row * self.step + col).wrapping_sub(before)
    }
}

/// The functions of a level.
pub(super) struct Functions {
    pack: Entry,
    unpack: Entry,
    combine: CombineEntry,
    /// Adds the residual, or in backward the gradient of the sum, in one sweep.
    add: Option<AddEntry>,
    level: Level,
}

impl Functions {
    pub(super) fn new(level: Level, around: &Around) -> Self {
        let (pack, unpack) = entries(level);
        Self { pack, unpack, combine: combine_entry(level), add: around.add_entry(level), level }
    }
}

/// The steps, with the functions of a level and the buffers of an execution.
#[derive(Clone, Copy)]
pub(super) struct Bound<'a> {
    pub(super) around: &'a Around,
    pub(super) functions: &'a Functions,
    pub(super) arguments: &'a Arguments,
    pub(super) normalized: Option<&'a Normalized<'a>>,
    /// The first row, and the range of columns.
    pub(super) first_row: usize,
    pub(super) cols: (usize, usize),
    /// Whether diff_src, or quantized dst, may be stored non-temporally.
    pub(super) streams: bool,
}

/// Chunk buffers.
struct Buffers {
    x: [MaybeUninit<f32>; CHUNK],
    y: [MaybeUninit<f32>; CHUNK],
    z: [MaybeUninit<f32>; CHUNK],
}

impl Buffers {
    fn new() -> Self {
        let none = [MaybeUninit::uninit(); CHUNK];
        Self { x: none, y: none, z: none }
    }

    fn pointers(&mut self) -> [*mut f32; 3] {
        [self.x.as_mut_ptr().cast(), self.y.as_mut_ptr().cast(), self.z.as_mut_ptr().cast()]
    }
}

// SAFETY of every block below: the execution's buffers were checked, and the rows and the stage belong to this thread,
// by the contracts of `enter` and `leave`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Bound<'_> {
    /// Runs the steps before the kernel, for rows `first` to `last - 1`.
    ///
    /// # Safety
    /// The execution's buffers were checked. The rows and the stages, of src and of dst or diff_dst, belong to this
    /// thread.
    pub(super) unsafe fn enter(&self, first: usize, last: usize, stages: [Option<StagedRows>; 2]) {
        let around = self.around;
        if around.gradient.is_none() && around.residual.is_none() && around.gate.is_none() {
            return;
        }
        unsafe {
            let added = around.residual.as_ref().filter(|_| around.gradient.is_none());
            if let (Some(add), Some(added)) = (self.functions.add, added) {
                add(&self.addition(added, stages[0]), first, last);
                return;
            }
            let mut buffers = Buffers::new();
            for row in first..last {
                self.chunks(|col, len| match (&around.gradient, &around.gate) {
                    (None, _) => self.enter_forward(row, col, len, stages[0], &mut buffers),
                    (Some(_), Some(gate)) if gate.input => {
                        self.enter_gated(
                            gate,
                            &around.src,
                            (row, col, len),
                            stages[0],
                            &mut buffers,
                        );
                    }
                    (Some(gradient), Some(gate)) => {
                        let rows = &gradient.diff_dst;
                        self.enter_gated(gate, rows, (row, col, len), stages[1], &mut buffers);
                    }
                    (Some(_), None) => (),
                });
            }
        }
    }

    /// The rows of a tensor from the first column on.
    fn tensor(&self, rows: &RowsOf) -> Tensor<*mut u8> {
        (rows.at(self.arguments, 0, self.cols.0), rows.rows, rows.data_type)
    }

    fn addition(&self, added: &AddedRows, stage: Option<StagedRows>) -> Addition {
        let (first_col, end) = self.cols;
        Addition {
            cols: end - first_col,
            src: self.tensor(&self.around.src),
            residual: self.tensor(&added.residual),
            sum: added.sum.as_ref().map(|rows| self.tensor(rows)),
            sum_type: added.sum_type,
            exact: added.exact,
            stage: stage.map(|stage| (stage.at(0, first_col), stage.step)),
            streams: false,
        }
    }

    /// The sum of a staged gradient and that of the stored sum.
    fn gradient_sum(&self, gradient: &GradientRows, added: &RowsOf, stage: StagedRows) -> Addition {
        let (first_col, end) = self.cols;
        let staged = stage.at(0, first_col).cast();
        Addition {
            cols: end - first_col,
            src: self.tensor(added),
            residual: (staged, RowMap::every(stage.step), DataType::F32),
            sum: Some(self.tensor(&gradient.diff_src)),
            sum_type: gradient.diff_src.data_type,
            exact: false,
            stage: None,
            streams: self.streams,
        }
    }

    /// What a quantized row in memory needs, if it is one of the rows `first` to `last - 1` of a stage. The same row of the
    /// next stage is prefetched.
    fn memory(&self, row: usize, (first, last): (usize, usize)) -> Memory {
        if !self.streams || self.cols.1 - self.cols.0 < SHORTEST_QUANTIZED_STREAMED {
            return Memory::NONE;
        }
        let src = &self.around.src;
        let next = src.at(self.arguments, row + (last - first), self.cols.0).cast_const();
        let next = if src.step == 1 { (next, src.data_type.size()) } else { Memory::NONE.next };
        Memory { streams: true, fences: row + 1 == last, next }
    }

    fn chunks(&self, mut step: impl FnMut(usize, usize)) {
        let (first, last) = self.cols;
        for col in (first..last).step_by(CHUNK) {
            step(col, CHUNK.min(last - col));
        }
    }

    /// Computes the input of the normalization.
    unsafe fn enter_forward(
        &self,
        row: usize,
        col: usize,
        len: usize,
        stage: Option<StagedRows>,
        buffers: &mut Buffers,
    ) {
        let [x, y, z] = buffers.pointers();
        let x = stage.map_or(x, |stage| stage.at(row, col));
        unsafe {
            self.load(&self.around.src, (row, col, len), x);
            if let Some(added) = &self.around.residual {
                self.load(&added.residual, (row, col, len), y);
                self.combine(Combine::Add, x, y, z, len);
                if let Some(sum) = &added.sum {
                    self.store(sum, (row, col, len), x);
                }
                if !added.exact && added.sum_type != DataType::F32 {
                    self.round(added.sum_type, x, y, len);
                }
            }
            if let Some(gate) = self.around.gate.as_ref().filter(|gate| gate.input) {
                self.load(&gate.gate, (row, col, len), y);
                let step = Combine::Gate(gate.function);
                self.combine(step, x, y, z, len);
            }
        }
    }

    /// Stages the products of a tensor and the function of the gate.
    unsafe fn enter_gated(
        &self,
        gate: &GateRows,
        rows: &RowsOf,
        at: (usize, usize, usize),
        stage: Option<StagedRows>,
        buffers: &mut Buffers,
    ) {
        let Some(stage) = stage else { return };
        let [_, y, z] = buffers.pointers();
        let x = stage.at(at.0, at.1);
        unsafe {
            self.load(rows, at, x);
            self.load(&gate.gate, at, y);
            self.combine(Combine::Gate(gate.function), x, y, z, at.2);
        }
    }

    /// Runs the steps after the kernel and the post-op chain, for rows `first` to `last - 1`.
    ///
    /// # Safety
    /// As [`enter`](Self::enter), for the stages of dst and of diff_src.
    pub(super) unsafe fn leave(&self, first: usize, last: usize, stages: [Option<StagedRows>; 2]) {
        let around = self.around;
        unsafe {
            if let (Some(quantize), Some(stage)) = (&around.quantize, stages[0]) {
                let (col, len) = (self.cols.0, self.cols.1 - self.cols.0);
                for row in first..last {
                    let memory = self.memory(row, (first, last));
                    let values = stage.at(row, col);
                    let (level, arguments) = (self.functions.level, self.arguments);
                    let (place, row_of) = ((row, col), (values, len));
                    if !quantize.stored_row(level, arguments, place, row_of, &memory) {
                        quantize.row(level, arguments, place, row_of);
                        self.store(&quantize.dst, (row, col, len), values);
                    }
                }
            }
            if let (Some(gradient), Some(stage)) = (&around.gradient, stages[1]) {
                if let (Some(add), Some(added)) = (self.functions.add, &gradient.diff_residual) {
                    add(&self.gradient_sum(gradient, added, stage), first, last);
                    return;
                }
                let mut buffers = Buffers::new();
                for row in first..last {
                    self.chunks(|col, len| {
                        let at = (row, col, len);
                        self.leave_backward(gradient, at, stage.at(row, col), &mut buffers);
                    });
                }
            }
        }
    }

    /// Computes diff_gate and diff_src. `du` is the gradient of the normalization's input.
    unsafe fn leave_backward(
        &self,
        gradient: &GradientRows,
        at: (usize, usize, usize),
        du: *mut f32,
        buffers: &mut Buffers,
    ) {
        let [x, y, z] = buffers.pointers();
        unsafe {
            if let (Some(gate), Some(diff_gate)) = (&self.around.gate, &gradient.diff_gate) {
                self.load(&self.around.src, at, z);
                self.load(&gate.gate, at, y);
                if gate.input {
                    self.combine(Combine::GateGradient(gate.function), du, y, z, at.2);
                } else {
                    self.normalize(at, z);
                    self.load(&gradient.diff_dst, at, x);
                    self.combine(Combine::GateGradient(gate.function), x, y, z, at.2);
                }
                self.store(diff_gate, at, y);
            }
            if let Some(diff_residual) = &gradient.diff_residual {
                self.load(diff_residual, at, y);
                self.combine(Combine::Add, du, y, z, at.2);
            }
            self.store(&gradient.diff_src, at, du);
        }
    }

    /// Recomputes the normalized elements of a chunk.
    unsafe fn normalize(&self, (row, col, len): (usize, usize, usize), values: *mut f32) {
        let step = match self.normalized {
            None => return,
            Some(Normalized::Rows { scalars, scale, shift }) => {
                let (mean, r) = scalars(row);
                let from = |p: *const f32| if p.is_null() { p } else { p.wrapping_add(col) };
                Combine::Normalize { mean, r, scale: from(*scale), shift: from(*shift) }
            }
            Some(Normalized::Channels { numbers, rows }) => {
                let (at, step) = match rows {
                    Some(rows) => ((row - self.first_row) / rows, 0),
                    None => (col - self.cols.0, 1),
                };
                Combine::NormalizeChannels { numbers: numbers.map(|p| p.wrapping_add(at)), step }
            }
        };
        unsafe { self.combine(step, values, std::ptr::null_mut(), std::ptr::null_mut(), len) };
    }

    unsafe fn combine(&self, step: Combine, x: *mut f32, y: *mut f32, z: *mut f32, len: usize) {
        unsafe { (self.functions.combine)(&step, [x, y, z], len) };
    }

    /// Loads a chunk as f32.
    unsafe fn load(&self, rows: &RowsOf, at: (usize, usize, usize), to: *mut f32) {
        unsafe { self.move_row(self.functions.pack, rows, at, to) };
    }

    /// Rounds a chunk and stores it.
    unsafe fn store(&self, rows: &RowsOf, at: (usize, usize, usize), from: *mut f32) {
        unsafe { self.move_row(self.functions.unpack, rows, at, from) };
    }

    unsafe fn move_row(
        &self,
        entry: Entry,
        rows: &RowsOf,
        (row, col, len): (usize, usize, usize),
        values: *mut f32,
    ) {
        let tensor = rows.at(self.arguments, row, col);
        unsafe { self.move_values(entry, (tensor, rows.data_type, rows.step), values, len) };
    }

    unsafe fn move_values(
        &self,
        entry: Entry,
        elements: (*mut u8, DataType, usize),
        values: *mut f32,
        len: usize,
    ) {
        unsafe { entry(&Packing::of_row(elements, len, values), 0, 1) };
    }

    /// Rounds a chunk to a type, through an f32 buffer of the same length.
    unsafe fn round(&self, data_type: DataType, x: *mut f32, buffer: *mut f32, len: usize) {
        let rounded = (buffer.cast::<u8>(), data_type, 1);
        unsafe {
            self.move_values(self.functions.unpack, rounded, x, len);
            self.move_values(self.functions.pack, rounded, x, len);
        }
    }
}
