//! Vector implementations of elementwise primitives: a chain whose first step reads the inputs.
//!
//! The elements are rows of merged dimensions, divided into units. Dense f32 is accessed in place, and so are the tensors
//! of a binary function that all have the same 16-bit type. Everything else passes through buffers on the stack, which
//! stay in the first-level cache, so no scratchpad is needed.

use super::collapse::Collapse;
use super::elementwise_side::{BUFFERED, Buffer, Buffers, Side};
use super::fence::Fence;
use super::pack::{Entry, entries};
use super::schedule::{
    BLOCKS_PER_THREAD, ELEMENTS_IN_PLACE, FEWEST_IN_PLACE, ROWS_OF_STRIDED, SHORTEST_IN_PLACE,
    Schedule,
};
use super::spread::{spread, width_of};
use crate::error::{Error, Result};
use crate::heap::{Counted, LINE, counted};
use crate::primitive::{
    Ahead, Attr, BeforePostOps, BinaryAlgorithm, BoundChain, ChainEntry, Execution, HalfEntry,
    HalfRows, INPUTS, Implementation, InputRows, Inputs, OpArgument, Padding, PostOpChain, Rows,
    Start, Usage, Variant, chain_entry, half_entry,
};
use crate::simd::Level;
use crate::tensor::{DataType, MAX_NDIMS, MemoryDesc};
use arrayvec::ArrayVec;
use norm_sys as sys;
use std::ops::Range;

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
        let output = Side::new(id, &merged, &order, false);
        Ok(counted(Vectorized {
            variant,
            halves: halves(level, &chain, &sides, &output),
            rows: if dst.has_zero_dim() { 0 } else { outer.iter().product::<i64>() as usize },
            cols: cols[0] as usize,
            inputs: sides,
            output,
            chain,
            apply: chain_entry(level),
            pack,
            unpack,
            fence: Fence::new(level),
            padding: Padding::of(dst)?,
            bytes,
        })?)
    }
}

/// The function of dense tensors of a single 16-bit type; `None` if they need buffers.
fn halves(
    level: Level,
    chain: &PostOpChain,
    inputs: &[Side],
    output: &Side,
) -> Option<(BinaryAlgorithm, HalfEntry)> {
    let suits = |side: &Side| {
        let dense = side.step == 1 && side.rows.step().is_some();
        dense && !side.scaled && side.data_type == output.data_type
    };
    let entry = half_entry(level, output.data_type)?;
    let all = inputs.iter().chain([output]).all(suits);
    chain.binary().filter(|_| all).map(|algorithm| (algorithm, entry))
}

struct Vectorized {
    variant: &'static Variant,
    rows: usize,
    cols: usize,
    inputs: ArrayVec<Side, INPUTS>,
    output: Side,
    chain: PostOpChain,
    apply: ChainEntry,
    halves: Option<(BinaryAlgorithm, HalfEntry)>,
    pack: Entry,
    unpack: Entry,
    fence: Fence,
    /// The padding of the output.
    padding: Padding,
    /// The size of all tensors.
    bytes: usize,
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
    /// Whether inputs are prefetched.
    prefetches: bool,
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
        let one_row = !strided && uneven && self.cols >= SHORTEST_IN_PLACE;
        let mut addresses = [dst; INPUTS];
        let mut direct = [true; INPUTS];
        for (i, input) in self.inputs.iter().enumerate() {
            addresses[i] = execution.arguments.get(input.id);
            direct[i] = input.is_direct(addresses[i], one_row);
        }
        let inputs = &addresses[..self.inputs.len()];
        let prefetches = Schedule::streams_bytes(self.bytes, width);
        let streams =
            prefetches && self.output.step == 1 && !inputs.contains(&dst) && !bound.read(dst);
        // A sum, or an operand at the same address, reads dst before it is overwritten.
        let direct_dst = self.output.is_direct(dst, one_row)
            && !bound.read(dst)
            && (!streams || bound.is_one_of_inputs());
        let in_place = self.halves.is_some() || direct_dst && direct == [true; INPUTS];
        let most = if in_place { ELEMENTS_IN_PLACE } else { BUFFERED };
        let share = self.rows * self.cols / (width * BLOCKS_PER_THREAD);
        let size = share.next_multiple_of(LINE).clamp(FEWEST_IN_PLACE, most);
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
        Plan {
            bound,
            addresses,
            dst,
            direct,
            direct_dst,
            in_place,
            streams,
            prefetches,
            unit,
            shift,
        }
    }

    /// Computes a range of units, which are numbered along columns.
    fn units(&self, plan: &Plan<'_>, chunks: usize, units: Range<usize>) {
        if plan.in_place {
            self.each_unit(plan, None, chunks, units);
        } else {
            self.buffered_units(plan, chunks, units);
        }
        // SAFETY: the machine has the level.
        unsafe { self.fence.after(plan.streams) };
    }

    /// A separate function, so that in-place problems do not allocate these buffers.
    #[inline(never)]
    fn buffered_units(&self, plan: &Plan<'_>, chunks: usize, units: Range<usize>) {
        let mut buffers = Buffers {
            inputs: [Buffer::EMPTY; INPUTS],
            output: Buffer::EMPTY,
            filled: [(0, 0); INPUTS],
        };
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
        if let Some((algorithm, apply)) = self.halves {
            // SAFETY: the execution's buffers were checked, units are given out once, and the machine has the level.
            return unsafe { apply(&self.half_rows(plan, algorithm, (first, &cols)), rows.len()) };
        }
        let mut inputs =
            [InputRows { start: std::ptr::null_mut(), step: 0, ahead: Ahead::NONE }; INPUTS];
        for (i, side) in self.inputs.iter().enumerate() {
            inputs[i] = match &mut buffers {
                Some(buffers) if !plan.direct[i] => {
                    let (buffer, filled) = (&mut buffers.inputs[i], &mut buffers.filled[i]);
                    // SAFETY: the execution's buffers were checked.
                    unsafe {
                        side.packed(self.pack, plan.addresses[i], (buffer, filled), (&rows, &cols))
                    }
                }
                _ => side.in_place(plan.addresses[i], first, cols.start),
            };
        }
        let (start, step) = match &mut buffers {
            Some(buffers) if !plan.direct_dst => (buffers.output.start(), cols.len()),
            _ => {
                let (start, step) = self.output.place(plan.dst, first, cols.start);
                (start.cast(), step)
            }
        };
        let streams = plan.streams && plan.direct_dst;
        let staged = Inputs { rows: &inputs, streams, prefetches: plan.prefetches };
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

    /// The rows of a unit whose tensors are all of a 16-bit type.
    fn half_rows(
        &self,
        plan: &Plan<'_>,
        algorithm: BinaryAlgorithm,
        (row, cols): (usize, &Range<usize>),
    ) -> HalfRows {
        let input = |i: usize| self.inputs[i].place(plan.addresses[i], row, cols.start);
        HalfRows {
            algorithm,
            data_type: self.output.data_type,
            inputs: [input(0), input(1)],
            output: self.output.place(plan.dst, row, cols.start),
            cols: cols.len(),
            streams: plan.streams,
            prefetches: plan.prefetches,
        }
    }
}
