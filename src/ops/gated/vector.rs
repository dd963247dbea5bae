//! The vector implementations. They compute dense elements in place, and others through f32 chunks in the first-level
//! cache.

use super::kernel::{Entry, Span, TURN, direct_entry, entry};
use super::problem::Numbers;
use super::problem::{Gated, GatedFunction};
use super::view::View;
use crate::error::{Error, Result};
use crate::heap::{Counted, counted};
use crate::primitive::{
    Arguments, BoundChain, ChainEntry, Execution, Implementation, PostOpChain, Quantized, Rows,
    Variant, chain_entry,
};
use crate::rows::{
    Chunk, Chunks, Fence, Memory, PLAIN_BLOCKS, Quantize, RowsOf, Schedule, row_order, spread,
    width_of,
};
use crate::simd::Level;
use crate::tensor::RowMap;
use arrayvec::ArrayVec;
use norm_sys as sys;
use std::mem::MaybeUninit;

/// Elements of a unit of work.
const UNIT: usize = 4096;
/// Elements of a chunk that is converted to f32. The buffers of all tensors stay in the first-level cache.
const CHUNK: usize = 512;
/// The most tensors: gate, up, diff_dst, dst and two gradients.
const TENSORS: usize = 6;

const _: () = assert!(CHUNK.is_multiple_of(TURN) && UNIT.is_multiple_of(CHUNK));

/// The vector implementation of a level, or the reason why it does not support the problem.
pub(super) fn make(
    problem: &Gated,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<Counted<dyn Implementation>>> {
    if let Some(blocked) = problem.arguments.iter().find(|argument| argument.desc.is_blocked()) {
        let text = format_args!("the layout of {} is blocked", blocked.name);
        return Err(Error::unimplemented(text));
    }
    let src = &problem.inputs[0].desc;
    if src.ndims() > RowMap::MAX_LEVELS + 1 {
        return Err(Error::unimplemented(format_args!("{} dimensions", src.ndims())));
    }
    let order = row_order(src, false);
    let chain = problem.chain(Some(&order))?.map(|chain| (chain, chain_entry(level)));
    let quantize = quantize(problem, &order);
    let (mut rows, mut cols) = (problem.rows, problem.cols);
    let view = |part| View::new(part, cols, &order);
    let mut inputs: ArrayVec<View, 3> = problem.inputs.iter().map(view).collect();
    let mut outputs: ArrayVec<View, 3> = problem.outputs.iter().map(view).collect();
    let even = inputs.iter().chain(&outputs).all(View::is_even);
    if even && rows > 1 && chain.is_none() && quantize.is_none() {
        let join = |view: View| view.joined(rows);
        inputs = inputs.into_iter().map(join).collect();
        outputs = outputs.into_iter().map(join).collect();
        (rows, cols) = (1, rows * cols);
    }
    let data_type = inputs[0].data_type;
    let alike = |view: &View| view.step == 1 && view.data_type == data_type;
    let direct =
        if chain.is_none() && quantize.is_none() && inputs.iter().chain(&outputs).all(alike) {
            direct_entry(level, data_type, (problem.function, problem.numbers))
        } else {
            None
        };
    Ok(counted(Vectorized {
        variant,
        level,
        function: problem.function,
        numbers: problem.numbers,
        forward: problem.prop_kind.is_forward(),
        rows,
        cols,
        inputs,
        outputs,
        chain,
        quantize,
        direct,
        fence: Fence::new(level),
        entry: entry(level),
        chunks: Chunks::new(level),
    })?)
}

/// How dst is quantized, if scales are computed from it.
pub(super) fn quantize(problem: &Gated, order: &[usize]) -> Option<Quantize> {
    const DST: i32 = sys::NORM_ARG_DST;
    let scales = problem.attr.scales.get(DST).filter(Quantized::is_dynamic)?;
    let rows = |id| Some(RowsOf::new(id, problem.argument(id)?, order));
    Some(Quantize {
        dst: rows(DST)?,
        scales: rows(sys::NORM_ARG_ATTR_SCALES | DST)?,
        zero_points: rows(sys::NORM_ARG_ATTR_ZERO_POINTS | DST),
        group: scales.group.map_or(problem.cols, |group| group as usize),
        mode: scales.mode,
    })
}

struct Vectorized {
    variant: &'static Variant,
    level: Level,
    function: GatedFunction,
    numbers: Numbers,
    forward: bool,
    rows: usize,
    cols: usize,
    /// gate, up and, backward, diff_dst.
    inputs: ArrayVec<View, 3>,
    /// dst, or diff_gate, diff_up and, if it is written, dst.
    outputs: ArrayVec<View, 3>,
    chain: Option<(PostOpChain, ChainEntry)>,
    quantize: Option<Quantize>,
    /// The loop over tensors in place.
    direct: Option<Entry>,
    /// Follows direct spans.
    fence: Fence,
    /// The loop over f32 chunks.
    entry: Entry,
    chunks: Chunks,
}

/// An execution.
struct Run<'a> {
    arguments: &'a Arguments,
    chain: Option<BoundChain<'a>>,
    streams: bool,
    /// Rows of f32, one for each block.
    scratchpad: *mut f32,
}

// SAFETY: a block uses its own row of the scratchpad.
unsafe impl Sync for Run<'_> {}

/// Buffers of f32 for the chunks of all tensors.
#[repr(align(64))]
struct Buffers([[MaybeUninit<f32>; CHUNK]; TENSORS]);

impl Buffers {
    fn new() -> Self {
        Self([[MaybeUninit::uninit(); CHUNK]; TENSORS])
    }

    fn at(&mut self, i: usize) -> *mut f32 {
        self.0[i].as_mut_ptr().cast()
    }
}

/// Elements of a row.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    col: usize,
    len: usize,
}

impl Implementation for Vectorized {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        match self.quantize {
            None => 0,
            Some(_) => {
                let row = self.row_in_scratchpad().saturating_mul(size_of::<f32>());
                row.saturating_mul(self.rows.min(PLAIN_BLOCKS))
            }
        }
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let (rows, cols) = (self.rows, self.cols);
        if rows == 0 || cols == 0 {
            return 1;
        }
        let width = width_of(execution.threads, rows * cols);
        let chain = self.chain.as_ref();
        let run = Run {
            arguments: execution.arguments,
            // SAFETY: the execution's buffers were checked.
            chain: chain.map(|(chain, _)| unsafe { chain.bind(execution.arguments) }),
            streams: self.streams(execution.arguments, width),
            scratchpad: execution.scratchpad.cast(),
        };
        if self.quantize.is_some() {
            let units = (rows, rows * cols);
            return spread(execution, units, (width, PLAIN_BLOCKS), &|block, range| {
                range.for_each(|row| self.quantized_row(&run, block, row));
                // SAFETY: the machine has the level.
                unsafe { self.fence.after(run.streams) };
            });
        }
        let per_row = cols.div_ceil(UNIT);
        let units = (rows * per_row, rows * cols);
        spread(execution, units, (width, usize::MAX), &|_, range| {
            for unit in range {
                let (row, col) = (unit / per_row, unit % per_row * UNIT);
                self.unit(&run, Place { row, col, len: UNIT.min(cols - col) });
            }
            // SAFETY: the machine has the level.
            unsafe { self.fence.after(run.streams) };
        })
    }
}

impl Vectorized {
    /// Elements of a row in the scratchpad.
    fn row_in_scratchpad(&self) -> usize {
        self.cols.checked_next_multiple_of(TURN).unwrap_or(usize::MAX)
    }

    /// Whether outputs are stored non-temporally: they are large, and none overwrites an input.
    fn streams(&self, arguments: &Arguments, width: usize) -> bool {
        let elements = self.rows * self.cols;
        let views = self.inputs.iter().chain(&self.outputs);
        let bytes = views.map(|view| elements.saturating_mul(view.data_type.size()));
        let address = |view: &View| view.at(arguments, 0, 0);
        let in_place = self
            .outputs
            .iter()
            .any(|output| self.inputs.iter().any(|input| address(input) == address(output)));
        !in_place && Schedule::streams_bytes(bytes.fold(0, usize::saturating_add), width)
    }

    fn unit(&self, run: &Run<'_>, place: Place) {
        let mut done = 0;
        if let Some(direct) = self.direct {
            done = place.len - place.len % TURN;
            if done > 0 {
                let at = |view: &View| view.at(run.arguments, place.row, place.col);
                let (inputs, outputs) = (self.inputs.iter().map(at), self.outputs.iter().map(at));
                let span = self.span(inputs.collect(), outputs.collect(), done, run.streams);
                // SAFETY: the execution's buffers were checked, elements are given out once, and the machine has the
                // level.
                unsafe { direct(&span) };
            }
        }
        while done < place.len {
            let len = CHUNK.min(place.len - done);
            self.chunk(run, Place { col: place.col + done, len, ..place }, None);
            done += len;
        }
    }

    fn span(
        &self,
        inputs: ArrayVec<*mut u8, 3>,
        outputs: ArrayVec<*mut u8, 3>,
        len: usize,
        streams: bool,
    ) -> Span {
        let null = std::ptr::null_mut();
        let get = |of: &[*mut u8], i: usize| of.get(i).copied().unwrap_or(null);
        let [dst, diff_gate, diff_up] = match self.forward {
            true => [outputs[0], null, null],
            false => [get(&outputs, 2), outputs[0], outputs[1]],
        };
        Span {
            function: self.function,
            numbers: self.numbers,
            len,
            gate: inputs[0],
            up: inputs[1],
            diff_dst: get(&inputs, 2),
            dst,
            diff_gate,
            diff_up,
            streams,
        }
    }

    /// Computes a chunk in f32. With `kept`, stores only the result, there.
    #[allow(clippy::undocumented_unsafe_blocks, reason = "one comment is about all of them")]
    fn chunk(&self, run: &Run<'_>, place: Place, kept: Option<*mut f32>) {
        let Place { row, col, len } = place;
        let mut buffers = Buffers::new();
        let part = |view: &View| Chunk {
            start: view.at(run.arguments, row, col),
            data_type: view.data_type,
            step: view.step,
            len,
            paired: view.paired,
        };
        let whole = len.next_multiple_of(TURN);
        let mut addresses = ArrayVec::<*mut f32, TENSORS>::new();
        // SAFETY of all blocks: the execution's buffers were checked, elements are given out once, buffers have room
        // for whole turns, and the machine has the level.
        for (i, view) in self.inputs.iter().enumerate() {
            let buffer = buffers.at(i);
            unsafe {
                self.chunks.load(&part(view), buffer);
                buffer.add(len).write_bytes(0, whole - len);
            }
            addresses.push(buffer);
        }
        let count = self.inputs.len();
        for i in 0..self.outputs.len() {
            addresses.push(kept.unwrap_or(buffers.at(count + i)));
        }
        let bytes = |of: &[*mut f32]| of.iter().map(|address| address.cast::<u8>()).collect();
        let span = self.span(bytes(&addresses[..count]), bytes(&addresses[count..]), whole, false);
        unsafe { (self.entry)(&span) };
        if let (Some((_, apply)), Some(bound)) = (&self.chain, &run.chain) {
            let rows =
                Rows { start: addresses[count], step: 0, cols: len, first_col: col, inputs: None };
            unsafe { apply(bound, &rows, row, row + 1) };
        }
        if kept.is_none() {
            for (view, buffer) in self.outputs.iter().zip(&addresses[count..]) {
                unsafe { self.chunks.store(&part(view), *buffer, run.streams) };
            }
        }
    }

    /// Computes a row whose scales depend on its elements.
    fn quantized_row(&self, run: &Run<'_>, block: usize, row: usize) {
        let Some(quantize) = &self.quantize else { return };
        let values = run.scratchpad.wrapping_add(block * self.row_in_scratchpad());
        for col in (0..self.cols).step_by(CHUNK) {
            let place = Place { row, col, len: CHUNK.min(self.cols - col) };
            self.chunk(run, place, Some(values.wrapping_add(col)));
        }
        let dst = &self.outputs[0];
        let start = dst.at(run.arguments, row, 0);
        let (data_type, step, len) = (dst.data_type, dst.step, self.cols);
        let (place, row_of) = ((row, 0), (values, len));
        // SAFETY: as in `chunk`.
        unsafe {
            if quantize.stored_row(self.level, run.arguments, place, row_of, &Memory::NONE) {
                return;
            }
            quantize.row(self.level, run.arguments, place, row_of);
            self.chunks.store(
                &Chunk { start, data_type, step, len, paired: false },
                values,
                run.streams,
            );
        }
    }
}
