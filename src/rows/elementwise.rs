//! Vector implementations of elementwise primitives: a chain whose first step reads the inputs.
//!
//! The elements are rows of merged dimensions, divided into units. Everything except dense f32 passes through buffers
//! on the stack, which stay in the first-level cache, so no scratchpad is needed.

use super::collapse::Collapse;
use super::order::row_map;
use super::pack::{Entry, Packing, entries};
use super::schedule::{BLOCKS_PER_THREAD, Schedule};
use super::spread::{spread, width_of};
use crate::error::{Error, Result};
use crate::heap::{Counted, counted};
use crate::primitive::{
    Attr, BeforePostOps, BoundChain, ChainEntry, Execution, INPUTS, Implementation, InputRows,
    Inputs, OpArgument, Padding, PostOpChain, Rows, Start, Usage, Variant, chain_entry,
};
use crate::simd::{Level, read_scalar};
use crate::tensor::{DataType, MAX_NDIMS, MemoryDesc, RowMap};
use arrayvec::ArrayVec;
use norm_sys as sys;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements in a unit that is computed in buffers.
const BUFFERED: usize = 2048;
/// Elements in a unit that is computed in place, and the minimum, a multiple of the elements of a cache line.
const DIRECT: usize = 16 * 1024;
const FEWEST: usize = 1024;
/// Rows in a unit if a tensor is strided in the last dimension: adjacent rows share cache lines.
const ROWS_OF_STRIDED: usize = 32;
/// The minimum length of rows that are read in place one by one if their strides vary.
const LONG: usize = 128;
const LINE: usize = 64;

/// An elementwise problem.
pub(crate) struct Elementwise<'a> {
    pub(super) start: Start,
    /// The inputs with their arguments, each broadcast to the output.
    pub(super) inputs: ArrayVec<(i32, &'a MemoryDesc), INPUTS>,
    pub(super) output: (i32, &'a MemoryDesc),
    /// The attributes, with the tensors of post-operations resolved.
    pub(super) attr: &'a Attr,
}

impl<'a> Elementwise<'a> {
    /// For the arguments of an operation, which come before those of attributes.
    pub(crate) fn new(start: Start, arguments: &'a [OpArgument], attr: &'a Attr) -> Self {
        let own = arguments.iter().filter(|argument| !argument.is_of_attribute());
        let (mut inputs, mut output) = (ArrayVec::new(), (0, &MemoryDesc::EMPTY));
        for argument in own {
            match argument.usage {
                Usage::Input => inputs.push((argument.id, &argument.desc)),
                Usage::Output => output = (argument.id, &argument.desc),
            }
        }
        Self { start, inputs, output, attr }
    }

    /// The implementation of a variant, or the reason why it does not support the problem.
    pub(crate) fn implement(
        &self,
        variant: &'static Variant,
    ) -> Result<Box<Counted<dyn Implementation>>> {
        match variant.level {
            Some(_) if self.is_wide() => {
                Err(Error::unimplemented("the reference implementation computes in f64"))
            }
            Some(level) => self.vectorized(variant, level),
            None if self.is_wide() => self.wide(variant),
            None => self.plain(variant),
        }
    }

    /// Whether a tensor is f64.
    fn is_wide(&self) -> bool {
        let descs = || self.inputs.iter().map(|(_, desc)| *desc).chain([self.output.1]);
        descs().any(|desc| desc.data_type() == Some(DataType::F64))
    }

    /// The chain, given attributes with resolved tensors.
    pub(super) fn chain(
        &self,
        attr: &Attr,
        dst: &MemoryDesc,
        order: Option<&[usize]>,
    ) -> Result<PostOpChain> {
        let before = BeforePostOps { start: Some(self.start), ..BeforePostOps::default() };
        PostOpChain::after(&before, attr, dst, order)?
            .ok_or_else(|| Error::unimplemented("no function"))
    }

    /// Whether an input is multiplied by a scale.
    fn is_scaled(&self, input: usize) -> bool {
        let args = [sys::NORM_ARG_SRC_0, sys::NORM_ARG_SRC_1];
        args.get(input).is_some_and(|arg| self.attr.scales.get(*arg).is_some())
    }

    /// The vector implementation of a level, or the reason why it does not support the problem.
    fn vectorized(
        &self,
        variant: &'static Variant,
        level: Level,
    ) -> Result<Box<Counted<dyn Implementation>>> {
        let (id, dst) = self.output;
        let collapse = Collapse::new(dst, |holds| {
            self.inputs.iter().map(|(_, desc)| *desc).chain(self.attr.tensors()).all(holds)
        })?;
        let merged = collapse.of(dst)?;
        let attr = self.attr.with_tensors(|tensor| collapse.of(tensor))?;
        let order: ArrayVec<usize, MAX_NDIMS> = (0..merged.ndims() - 1).collect();
        let chain = self.chain(&attr, &merged, Some(&order))?;
        let (outer, cols) = merged.dims().split_at(order.len());
        let mut sides = ArrayVec::new();
        for (i, (id, desc)) in self.inputs.iter().enumerate() {
            sides.push(Side::new(*id, &collapse.of(desc)?, &order, self.is_scaled(i)));
        }
        let sizes = self.inputs.iter().map(|(_, desc)| desc.size());
        let bytes = sizes.fold(dst.size(), usize::saturating_add);
        let (pack, unpack) = entries(level);
        Ok(counted(Vectorized {
            variant,
            rows: if dst.has_zero_dim() { 0 } else { outer.iter().product::<i64>() as usize },
            cols: cols[0] as usize,
            inputs: sides,
            output: Side::new(id, &merged, &order, false),
            chain,
            apply: chain_entry(level),
            pack,
            unpack,
            padding: Padding::of(dst)?,
            bytes,
        })?)
    }
}

/// A tensor as rows.
struct Side {
    id: i32,
    data_type: DataType,
    rows: RowMap,
    /// The stride of the last dimension, in elements.
    step: usize,
    /// Whether the chain multiplies it by a scale, which needs a buffer.
    scaled: bool,
}

impl Side {
    fn new(id: i32, desc: &MemoryDesc, order: &[usize], scaled: bool) -> Self {
        let last = desc.ndims() - 1;
        let is_one = desc.dims()[last] == 1;
        Self {
            id,
            data_type: desc.data_type().unwrap_or(DataType::F32),
            rows: row_map(desc, order),
            step: if is_one { 1 } else { desc.strides()[last] as usize },
            scaled,
        }
    }

    /// Whether rows at an address are dense f32, so that one row or, if they are evenly spaced, several are read in
    /// place.
    fn is_direct(&self, address: *mut u8, one: bool) -> bool {
        self.data_type == DataType::F32
            && self.step == 1
            && !self.scaled
            && (one || self.rows.step().is_some())
            && address.cast::<f32>().is_aligned()
    }

    /// The rows in place.
    fn in_place(&self, address: *mut u8, row: usize, col: usize) -> InputRows {
        let start = address.cast::<f32>().wrapping_add(self.rows.offset(row) + col);
        InputRows { start, step: self.rows.step().unwrap_or(0) }
    }

    fn packing(&self, address: *mut u8, cols: &Range<usize>, stage: *mut f32) -> Packing {
        let first = address.wrapping_add(cols.start * self.step * self.data_type.size());
        let elements = (first, self.data_type, self.step);
        Packing { rows: self.rows, ..Packing::of_row(elements, cols.len(), stage) }
    }
}

struct Vectorized {
    variant: &'static Variant,
    rows: usize,
    cols: usize,
    inputs: ArrayVec<Side, INPUTS>,
    output: Side,
    chain: PostOpChain,
    apply: ChainEntry,
    pack: Entry,
    unpack: Entry,
    /// The padding of the output.
    padding: Padding,
    /// The size of all tensors.
    bytes: usize,
}

/// A buffer for a unit.
#[repr(C, align(64))]
struct Buffer([MaybeUninit<f32>; BUFFERED]);

impl Buffer {
    fn start(&mut self) -> *mut f32 {
        self.0.as_mut_ptr().cast()
    }
}

/// The buffers of a thread.
struct Buffers {
    inputs: [Buffer; INPUTS],
    output: Buffer,
    /// For each input, the bits of the value that fills the start of its buffer, and how many times.
    filled: [(u32, usize); INPUTS],
}

/// How the elements of an execution are computed.
struct Plan<'a> {
    bound: BoundChain<'a>,
    addresses: [*mut u8; INPUTS],
    dst: *mut u8,
    /// Whether the inputs and the output are read and written in place.
    direct: [bool; INPUTS],
    direct_dst: bool,
    in_place: bool,
    /// Whether the output is stored non-temporally, from a buffer or directly.
    streams: bool,
    /// Rows and columns of a unit. The first unit has `shift` fewer columns, so that units write whole cache lines of
    /// dst.
    unit: (usize, usize),
    shift: usize,
}

// SAFETY: threads write disjoint rows through the addresses.
unsafe impl Sync for Plan<'_> {}

impl Implementation for Vectorized {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        0
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let elements = self.rows * self.cols;
        if elements == 0 {
            return 1;
        }
        let width = width_of(execution.threads, elements);
        let plan = self.plan(execution, width);
        let chunks = (self.cols + plan.shift).div_ceil(plan.unit.1);
        let units = self.rows.div_ceil(plan.unit.0) * chunks;
        let threads = spread(execution, (units, elements), (width, usize::MAX), &|_, part| {
            self.units(&plan, chunks, part);
        });
        // SAFETY: the execution's buffers were checked.
        unsafe { self.padding.clear(plan.dst) };
        threads.max(1)
    }
}

impl Vectorized {
    fn plan<'a>(&'a self, execution: &Execution<'_>, width: usize) -> Plan<'a> {
        // SAFETY: the execution's buffers were checked.
        let bound = unsafe { self.chain.bind(execution.arguments) };
        let dst = execution.arguments.get(self.output.id);
        let sides = || self.inputs.iter().chain([&self.output]);
        let strided = sides().any(|side| side.step > 1);
        let uneven = sides().any(|side| side.rows.step().is_none());
        let one_row = !strided && uneven && self.cols >= LONG;
        let mut addresses = [dst; INPUTS];
        let mut direct = [true; INPUTS];
        for (i, input) in self.inputs.iter().enumerate() {
            addresses[i] = execution.arguments.get(input.id);
            direct[i] = input.is_direct(addresses[i], one_row);
        }
        let inputs = &addresses[..self.inputs.len()];
        let streams = Schedule::streams_bytes(self.bytes, width)
            && self.output.step == 1
            && !inputs.contains(&dst)
            && !bound.read(dst);
        // A sum, or an operand at the same address, reads dst before it is overwritten.
        let direct_dst = self.output.is_direct(dst, one_row)
            && !bound.read(dst)
            && (!streams || bound.is_one_of_inputs());
        let in_place = direct_dst && direct == [true; INPUTS];
        let most = if in_place { DIRECT } else { BUFFERED };
        let share = self.rows * self.cols / (width * BLOCKS_PER_THREAD);
        let size = share.next_multiple_of(LINE).clamp(FEWEST, most);
        let unit = if strided {
            let rows = ROWS_OF_STRIDED.min(self.rows);
            (rows, (BUFFERED / rows).min(self.cols))
        } else if one_row {
            (1, size.min(self.cols))
        } else if self.cols <= size {
            ((size / self.cols).min(self.rows), self.cols)
        } else {
            (1, size)
        };
        let element = self.output.data_type.size();
        let shift = if streams && self.rows == 1 && dst.addr().is_multiple_of(element) {
            dst.addr() % LINE / element
        } else {
            0
        };
        Plan { bound, addresses, dst, direct, direct_dst, in_place, streams, unit, shift }
    }

    /// Computes a range of units, which are numbered along columns.
    fn units(&self, plan: &Plan<'_>, chunks: usize, units: Range<usize>) {
        if plan.in_place {
            self.each_unit(plan, None, chunks, units);
        } else {
            self.buffered_units(plan, chunks, units);
        }
    }

    /// A separate function, so that in-place problems do not allocate these buffers.
    #[inline(never)]
    fn buffered_units(&self, plan: &Plan<'_>, chunks: usize, units: Range<usize>) {
        const EMPTY: Buffer = Buffer([const { MaybeUninit::uninit() }; BUFFERED]);
        let mut buffers =
            Buffers { inputs: [EMPTY; INPUTS], output: EMPTY, filled: [(0, 0); INPUTS] };
        self.each_unit(plan, Some(&mut buffers), chunks, units);
    }

    fn each_unit(
        &self,
        plan: &Plan<'_>,
        mut buffers: Option<&mut Buffers>,
        chunks: usize,
        units: Range<usize>,
    ) {
        let ((height, width), shift) = (plan.unit, plan.shift);
        for unit in units {
            let (group, chunk) = (unit / chunks, unit % chunks);
            let first = group * height;
            let rows = first..self.rows.min(first + height);
            let start = (chunk * width).saturating_sub(shift);
            let cols = start..self.cols.min((chunk + 1) * width - shift);
            self.unit(plan, buffers.as_deref_mut(), rows, cols);
        }
    }

    fn unit(
        &self,
        plan: &Plan<'_>,
        mut buffers: Option<&mut Buffers>,
        rows: Range<usize>,
        cols: Range<usize>,
    ) {
        let (first, last) = (rows.start, rows.end);
        let mut inputs = [InputRows { start: std::ptr::null_mut(), step: 0 }; INPUTS];
        for (i, side) in self.inputs.iter().enumerate() {
            inputs[i] = match &mut buffers {
                Some(buffers) if !plan.direct[i] => {
                    let (buffer, filled) = (&mut buffers.inputs[i], &mut buffers.filled[i]);
                    self.packed(side, plan.addresses[i], (buffer, filled), (&rows, &cols))
                }
                _ => side.in_place(plan.addresses[i], first, cols.start),
            };
        }
        let output = match &mut buffers {
            Some(buffers) if !plan.direct_dst => {
                InputRows { start: buffers.output.start(), step: cols.len() }
            }
            _ => self.output.in_place(plan.dst, first, cols.start),
        };
        let InputRows { start, step } = output;
        let staged = Inputs { rows: &inputs, streams: plan.streams && plan.direct_dst };
        let staged =
            Rows { start, step, cols: cols.len(), first_col: cols.start, inputs: Some(staged) };
        // SAFETY: the execution's buffers were checked, units are given out once, and the machine has the level.
        unsafe {
            (self.apply)(&plan.bound, &staged, first, last);
            if !plan.direct_dst {
                let mut packing = self.output.packing(plan.dst, &cols, start);
                packing.streams = plan.streams;
                (self.unpack)(&packing, first, last);
            }
        }
    }

    /// Rows of an input as f32 in a buffer.
    fn packed(
        &self,
        side: &Side,
        address: *mut u8,
        (buffer, filled): (&mut Buffer, &mut (u32, usize)),
        (rows, cols): (&Range<usize>, &Range<usize>),
    ) -> InputRows {
        let (start, len) = (buffer.start(), cols.len());
        let shared = side.rows.step() == Some(0) && !side.scaled;
        let last = if shared { rows.start + 1 } else { rows.end };
        let step = if shared { 0 } else { len };
        if side.step > 0 {
            let packing = side.packing(address, cols, start);
            // SAFETY: the execution's buffers were checked, and the buffer has the elements of a unit.
            unsafe { (self.pack)(&packing, rows.start, last) };
            return InputRows { start, step };
        }
        for (at, row) in (rows.start..last).enumerate() {
            // SAFETY: as above.
            let value = unsafe { read_scalar(side.data_type, address, side.rows.offset(row)) };
            let is_there = filled.0 == value.to_bits() && filled.1 >= len;
            if !(shared && is_there) {
                let to = &mut buffer.0[at * len..(at + 1) * len];
                to.fill(MaybeUninit::new(value));
            }
            *filled = if shared { (value.to_bits(), len.max(filled.1)) } else { (0, 0) };
        }
        InputRows { start, step }
    }
}
