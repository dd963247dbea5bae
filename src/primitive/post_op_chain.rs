//! Applies the attributes to rows of an output, in f32 and in order: the scale of src, the
//! post-operations, the scale of dst. The chain of an elementwise primitive starts with its function of the inputs.

use super::chunk::{Ahead, Chunk, binary, binary_after, each, eltwise, round, select};
use super::dropout::Drawing;
use super::operand::{INPUTS, Operand, Source};
use super::step::{BeforePostOps, Step, steps};
use super::{Arguments, Attr, BinaryAlgorithm};
use crate::error::Result;
use crate::simd::lanes::Lanes;
use crate::simd::{Bf16, F16, FusedOp, LANES, Level, Simd, entry_points, read_scalar, unroll};
use crate::tensor::{DataType, MemoryDesc};
use std::mem::MaybeUninit;

/// How many elements go through the whole chain at a time; they stay in the first-level cache.
const CHUNK: usize = 1024;

/// Maximum number of steps: rounding, parameters, gate, both scales, or the scales of two inputs and a function of
/// them; dropout; and every post-operation.
const MAX_STEPS: usize = super::MAX_POST_OPS + 6;

/// The steps of a primitive.
pub(crate) struct PostOpChain(Vec<Step>);

/// What an execution determines of a step: a factor, and the tensors that it reads.
#[derive(Clone, Copy)]
struct BoundStep {
    factor: f32,
    operands: [*const u8; 2],
}

/// A chain with the addresses of an execution.
pub(crate) struct BoundChain<'a> {
    steps: &'a PostOpChain,
    /// One for each step.
    bound: PerStep<BoundStep>,
    dropout: Option<Drawing>,
}

// SAFETY: the addresses are only read, except that each row of dst belongs to one thread.
unsafe impl Sync for BoundChain<'_> {}

/// The steps of an execution as fused operations.
pub(crate) type FusedOps = PerStep<FusedOp>;

/// A value for each step. Only those of the chain's steps are written, since most chains have one or two.
pub(crate) struct PerStep<T> {
    values: [MaybeUninit<T>; MAX_STEPS],
    count: usize,
}

impl<T: Copy> PerStep<T> {
    const EMPTY: Self = Self { values: [const { MaybeUninit::uninit() }; MAX_STEPS], count: 0 };

    fn push(&mut self, value: T) {
        self.values[self.count].write(value);
        self.count += 1;
    }
}

impl<T> std::ops::Deref for PerStep<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: as many were written.
        unsafe { std::slice::from_raw_parts(self.values.as_ptr().cast(), self.count) }
    }
}

impl BoundChain<'_> {
    /// Whether it is one step that reads no tensors but the inputs.
    #[inline(always)]
    pub(crate) fn is_one_of_inputs(&self) -> bool {
        matches!(
            &self.steps.0[..],
            [Step::Eltwise { .. } | Step::Gradient(_)]
                | [Step::Binary { first: Source::Input(_), .. }]
        )
    }

    /// Applies all steps to one element of a row, in scalar code, for reference implementations.
    ///
    /// # Safety
    /// The operands have this element, and no other thread writes it.
    pub(crate) unsafe fn applied(&self, mut value: f32, (row, col): (usize, usize)) -> f32 {
        let rows = Rows { start: &raw mut value, step: 0, cols: 1, first_col: col, inputs: None };
        // SAFETY: guaranteed by the caller.
        unsafe { entries::portable::entry_portable(self, &rows, row, row + 1) };
        value
    }

    /// Whether a step reads a tensor that starts at an address.
    pub(crate) fn read(&self, address: *const u8) -> bool {
        self.bound.iter().any(|step| step.operands.contains(&address))
    }
}

impl PostOpChain {
    /// The chain of attributes whose post-operations are resolved. `order` is the order in which
    /// rows are counted; `None` means logical order. `None` if there is nothing to apply.
    pub(crate) fn new(
        attr: &Attr,
        dst: &MemoryDesc,
        order: Option<&[usize]>,
    ) -> Result<Option<Self>> {
        Self::after(&BeforePostOps::default(), attr, dst, order)
    }

    /// The chain with steps before those of the attributes.
    pub(crate) fn after(
        before: &BeforePostOps<'_>,
        attr: &Attr,
        dst: &MemoryDesc,
        order: Option<&[usize]>,
    ) -> Result<Option<Self>> {
        let steps = steps(before, attr, dst, order)?;
        Ok((!steps.is_empty()).then_some(Self(steps)))
    }

    /// The algorithm if it is one binary function of the inputs.
    pub(crate) fn binary(&self) -> Option<BinaryAlgorithm> {
        match &self.0[..] {
            [Step::Binary { algorithm, first: Source::Input(_), second: None, .. }] => {
                Some(*algorithm)
            }
            _ => None,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether every step can be fused.
    pub(crate) fn is_fusible(&self) -> bool {
        self.0.iter().all(|step| step.fused(step.value().map(|_| 1.0)).is_some())
    }

    /// The fused operations of one execution.
    ///
    /// # Safety
    /// The buffers were checked.
    pub(crate) unsafe fn fused(&self, arguments: &Arguments) -> FusedOps {
        let mut fused = FusedOps::EMPTY;
        for step in &self.0 {
            // SAFETY: a single element is read.
            let value = step.value().map(|(argument, data_type)| unsafe {
                read_scalar(data_type, arguments.get(argument), 0)
            });
            fused.push(step.fused(value).unwrap_or(FusedOp::NONE));
        }
        fused
    }

    /// The chain of one execution.
    ///
    /// # Safety
    /// The buffers were checked.
    #[allow(clippy::undocumented_unsafe_blocks)]
    pub(crate) unsafe fn bind(&self, arguments: &Arguments) -> BoundChain<'_> {
        let mut chain = BoundChain { steps: self, bound: PerStep::EMPTY, dropout: None };
        let address = |operand: &Operand| arguments.get(operand.argument).cast_const();
        let or_null = |operand: Option<&Operand>| operand.map_or(std::ptr::null(), address);
        for step in &self.0 {
            let mut bound = BoundStep { factor: 1.0, operands: [std::ptr::null(); 2] };
            match step {
                // SAFETY of both: a scale is a single element.
                Step::Multiply(id, data_type) | Step::ScaleInput(_, id, data_type) => {
                    bound.factor = unsafe { read_scalar(*data_type, arguments.get(*id), 0) };
                }
                Step::Divide(id, data_type) => {
                    let scale = unsafe { read_scalar(*data_type, arguments.get(*id), 0) };
                    bound.factor = 1.0 / scale;
                }
                Step::Binary { first, second, .. } => {
                    let second = second.as_ref().and_then(Source::tensor);
                    bound.operands = [first.tensor(), second].map(or_null);
                }
                Step::Affine { scale, shift, .. } => {
                    bound.operands = [scale.as_ref(), shift.as_ref()].map(or_null);
                }
                Step::Sum { dst: tensor, .. } | Step::Gate(tensor, _) => {
                    bound.operands[0] = address(tensor);
                }
                Step::Dropout(dropping) => {
                    chain.dropout = Some(unsafe { dropping.bind(arguments) })
                }
                Step::Eltwise { .. } | Step::Gradient(_) | Step::Round(_) => {}
            }
            chain.bound.push(bound);
        }
        chain
    }
}

/// Applies all steps to the elements of a row from `col`. The first step reads the chunk's source, the others its
/// destination. `others` are buffers for operands, as long as `chunk` unless no step reads any.
///
/// # Safety
/// The operands and inputs have this row and these elements, and no other thread writes them. The CPU supports the
/// instruction set of `S`.
#[inline(always)]
unsafe fn apply<S: Simd>(
    bound: &BoundChain<'_>,
    mut chunk: Chunk,
    at: (usize, usize),
    (inputs, others): ([*mut f32; INPUTS], [&mut [MaybeUninit<f32>]; 2]),
) {
    let [ys, zs] = others;
    for (i, step) in bound.steps.0.iter().enumerate() {
        let of = bound.bound[i];
        let factor = of.factor;
        if let Step::ScaleInput(input, ..) = step {
            let scaled = Chunk::in_place(inputs[*input], chunk.len);
            each!(scaled, by 4, |x| x * factor);
            continue;
        }
        if let (Step::Dropout(dropping), Some(drawing)) = (step, &bound.dropout) {
            // SAFETY: guaranteed by the caller.
            unsafe { dropping.apply::<S>(drawing, chunk, at, ys) };
            chunk = chunk.written();
            continue;
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            apply_step::<S>(step, chunk, at, (factor, of.operands), &inputs, [ys, zs]);
        }
        chunk = chunk.written();
    }
}

/// # Safety
/// As [`apply`].
#[inline(always)]
#[allow(unused_unsafe, reason = "expressions of vectors bring their own blocks")]
unsafe fn apply_step<S: Simd>(
    step: &Step,
    chunk: Chunk,
    at: (usize, usize),
    (factor, operands): (f32, [*const u8; 2]),
    inputs: &[*mut f32; INPUTS],
    [ys, zs]: [&mut [MaybeUninit<f32>]; 2],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match step {
            Step::Multiply(..) | Step::Divide(..) => each!(chunk, by 4, |x| x * factor),
            Step::Eltwise { algorithm, alpha, beta, exponent } => {
                eltwise::<S>(chunk, *algorithm, (*alpha, *beta), *exponent);
            }
            Step::Gradient(gradient) => gradient.apply::<S>(chunk, inputs[1]),
            Step::Binary { after, algorithm, first, second: None } => {
                let ys = first.read::<S>(inputs, operands[0], at, ys);
                match after {
                    Some(before) => binary_after::<S>(chunk, before, *algorithm, ys),
                    None => binary::<S>(chunk, *algorithm, ys),
                }
            }
            Step::Binary { first, second: Some(second), .. } => {
                let ys = first.read::<S>(inputs, operands[0], at, ys);
                select::<S>(chunk, ys, second.read::<S>(inputs, operands[1], at, zs));
            }
            Step::Sum { scale, zero_point, dst } => {
                let ys = dst.read::<S>(operands[0], at, ys);
                each!(chunk, by 4, |x, y: ys| (y - *zero_point).mul_add(*scale, x));
            }
            Step::Round(DataType::F16) => round::<S, F16>(chunk, DataType::F16),
            Step::Round(data_type) => round::<S, Bf16>(chunk, *data_type),
            Step::Affine { scale, shift, plus_one } => {
                let ys = parameter::<S>(scale, operands[0], at, ys);
                let zs = parameter::<S>(shift, operands[1], at, zs);
                match (scale.is_some(), shift.is_some(), *plus_one) {
                    (true, true, true) => each!(chunk, |x, y: ys, z: zs| x.mul_add(y + 1.0, z)),
                    (true, true, false) => each!(chunk, |x, y: ys, z: zs| x.mul_add(y, z)),
                    (true, false, true) => each!(chunk, |x, y: ys| x * (y + 1.0)),
                    (true, false, false) => each!(chunk, |x, y: ys| x * y),
                    (false, true, _) => each!(chunk, |x, z: zs| x + z),
                    (false, false, _) => (),
                }
            }
            Step::Gate(gate, gating) => {
                let ys = gate.read::<S>(operands[0], at, ys);
                each!(chunk, |x, y: ys| x * gating.value(y));
            }
            // Applied before.
            Step::ScaleInput(..) | Step::Dropout(_) => (),
        }
    }
}

/// The elements of a parameter, if it exists.
///
/// # Safety
/// As [`Operand::read`].
#[inline(always)]
unsafe fn parameter<S: Simd>(
    operand: &Option<Operand>,
    start: *const u8,
    at: (usize, usize),
    to: &mut [MaybeUninit<f32>],
) -> *const f32 {
    match operand {
        // SAFETY: guaranteed by the caller.
        Some(operand) => unsafe { operand.read::<S>(start, at, to) },
        None => std::ptr::null(),
    }
}

/// Rows of f32, `step` elements apart.
pub(crate) struct Rows<'a> {
    pub(crate) start: *mut f32,
    pub(crate) step: usize,
    pub(crate) cols: usize,
    /// The column of the first element.
    pub(crate) first_col: usize,
    /// The inputs of the first step; `None` for the rows themselves.
    pub(crate) inputs: Option<Inputs<'a>>,
}

/// The inputs of a chain.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) rows: &'a [InputRows; INPUTS],
    /// Whether results are written with non-temporal stores, which a chain of one step can do. A fence must follow.
    pub(crate) streams: bool,
    /// Whether what will be read later is prefetched.
    pub(crate) prefetches: bool,
}

/// Rows of an input of a chain, `step` elements apart. They are written if the input is scaled.
#[derive(Clone, Copy)]
pub(crate) struct InputRows {
    pub(crate) start: *mut f32,
    pub(crate) step: usize,
    /// What is prefetched while the elements are read.
    pub(crate) ahead: Ahead,
}

/// Applies all steps to rows `first` to `last - 1`. `rows` starts at row `first`.
///
/// # Safety
/// The rows are aligned, writable and not used by another thread. The operands are readable and do
/// not overlap them. Inputs may be the rows themselves. The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn apply_to_rows<S: Simd>(
    bound: &BoundChain<'_>,
    rows: &Rows<'_>,
    first: usize,
    last: usize,
) {
    // Most operands are read in place. Buffers that are not written cost neither time nor cache.
    let (mut ys, mut zs) = ([MaybeUninit::uninit(); CHUNK], [MaybeUninit::uninit(); CHUNK]);
    let most = if bound.is_one_of_inputs() { usize::MAX } else { CHUNK };
    for i in first..last {
        // From the last row on, because a kernel that has just stored them left the last ones in the nearest cache.
        let row = if rows.inputs.is_none() { first + (last - 1 - i) } else { i };
        let start = rows.start.wrapping_add((row - first) * rows.step);
        let mut inputs = [start; INPUTS];
        let (mut streams, mut ahead) = (false, None);
        if let Some(given) = rows.inputs {
            for i in 0..INPUTS {
                let InputRows { start, step, .. } = given.rows[i];
                inputs[i] = start.wrapping_add((row - first) * step);
            }
            streams = given.streams && start.addr().is_multiple_of(64);
            if given.prefetches {
                let mut of = [Ahead::NONE; INPUTS];
                for i in 0..INPUTS {
                    let InputRows { ahead, step, .. } = given.rows[i];
                    of[i] = ahead.after((row - first) * step);
                }
                ahead = Some(of);
            }
        }
        let mut col = 0;
        while col < rows.cols {
            let len = most.min(rows.cols - col);
            let buffers = len.min(CHUNK);
            // SAFETY: guaranteed by the caller.
            unsafe {
                let chunk = Chunk { from: inputs[0], to: start.add(col), len, streams, ahead };
                let at = (row, rows.first_col + col);
                let others = [&mut ys[..buffers], &mut zs[..buffers]];
                apply::<S>(bound, chunk, at, (inputs, others));
            }
            col += len;
            for i in 0..INPUTS {
                inputs[i] = inputs[i].wrapping_add(len);
            }
            if let Some(ahead) = &mut ahead {
                for i in 0..INPUTS {
                    ahead[i] = ahead[i].after(len);
                }
            }
        }
    }
}

entry_points! {
    /// The chain, compiled for each level.
    mod entries: apply_to_rows<>(
        bound: &BoundChain<'_>, rows: &Rows<'_>, first: usize, last: usize
    ) -> ();
}

/// Applies all steps to rows; see [`apply_to_rows`].
pub(crate) type ChainEntry = unsafe fn(&BoundChain<'_>, &Rows<'_>, usize, usize);

pub(crate) fn chain_entry(level: Level) -> ChainEntry {
    entries::at(level).unwrap_or(entries::portable::entry_portable)
}
