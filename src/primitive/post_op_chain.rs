//! Applies the attributes to rows of an output, in f32 and in order: the scale of src, the
//! post-operations, the scale of dst. The chain of an elementwise primitive starts with its function of the inputs.

use super::chunk::{Chunk, binary, each, eltwise, round, select};
use super::gradient::Gradient;
use super::operand::{INPUTS, Operand, Source};
use super::{Arguments, Attr, BinaryAlgorithm, EltwiseAlgorithm, Gating, PostOp};
use crate::error::Result;
use crate::heap;
use crate::simd::lanes::Lanes;
use crate::simd::math::Exponent;
use crate::simd::portable::Portable;
use crate::simd::{Bf16, F16, FusedOp, LANES, Level, Simd, entry_points, read_scalar, unroll};
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;
use std::mem::MaybeUninit;

/// Elements that pass through the whole chain at once; they stay in the first-level cache.
const CHUNK: usize = 1024;

/// One step. `x` is the element so far.
enum Step {
    /// Multiplies `x` by the scale of an argument.
    Multiply(i32, DataType),
    /// Multiplies `x` by the reciprocal of a scale.
    Divide(i32, DataType),
    Eltwise {
        algorithm: EltwiseAlgorithm,
        alpha: f32,
        beta: f32,
        exponent: Exponent,
    },
    Binary {
        algorithm: BinaryAlgorithm,
        first: Source,
        second: Option<Source>,
    },
    /// The gradient of an elementwise function, with the second input for diff_dst.
    Gradient(Gradient),
    /// Multiplies an input by the scale of an argument.
    ScaleInput(usize, i32, DataType),
    Sum {
        scale: f32,
        zero_point: f32,
        dst: Operand,
    },
    /// Rounds `x` to a type of 16 bits.
    Round(DataType),
    /// `x*scale + shift`, with 1 added to scale if so told.
    Affine {
        scale: Option<Operand>,
        shift: Option<Operand>,
        plus_one: bool,
    },
    /// Multiplies `x` by the function of a gate.
    Gate(Operand, Gating),
}

/// The function of an elementwise primitive.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    Eltwise {
        algorithm: EltwiseAlgorithm,
        alpha: f32,
        beta: f32,
    },
    /// Of src or dst, and diff_dst.
    Gradient(Gradient),
    /// Of src0 and src1, and the condition if there is one.
    Binary {
        algorithm: BinaryAlgorithm,
    },
}

impl Start {
    fn step(self) -> Step {
        match self {
            Self::Eltwise { algorithm, alpha, beta } => {
                Step::Eltwise { algorithm, alpha, beta, exponent: Exponent::new(beta) }
            }
            Self::Gradient(gradient) => Step::Gradient(gradient),
            Self::Binary { algorithm } => Step::Binary {
                algorithm,
                first: Source::Input(1),
                second: (algorithm == BinaryAlgorithm::Select).then_some(Source::Input(2)),
            },
        }
    }
}

/// The steps of a normalization between its kernel and the attributes that all operations have, or of an elementwise
/// primitive before them.
#[derive(Default)]
pub(crate) struct BeforePostOps<'a> {
    /// The type that values are rounded to.
    pub(crate) round: Option<DataType>,
    /// Scale and shift, of a row, after the rounding.
    pub(crate) parameters: [Option<&'a MemoryDesc>; 2],
    pub(crate) plus_one: bool,
    pub(crate) gate: Option<(&'a MemoryDesc, Gating)>,
    pub(crate) start: Option<Start>,
}

impl Step {
    /// The argument and type of the single element that the step reads.
    fn value(&self) -> Option<(i32, DataType)> {
        match self {
            Self::Multiply(id, data_type) | Self::Divide(id, data_type) => Some((*id, *data_type)),
            Self::Binary { first: Source::Tensor(first), second: None, .. } if first.single => {
                Some((first.argument, first.data_type))
            }
            _ => None,
        }
    }

    /// The step as a fused operation for the value that it reads, if it is one.
    fn fused(&self, value: Option<f32>) -> Option<FusedOp> {
        use {BinaryAlgorithm as B, EltwiseAlgorithm as E};
        Some(match (self, value) {
            (Self::Multiply(..), Some(value)) => FusedOp::times(value),
            (Self::Divide(..), Some(value)) => FusedOp::times(1.0 / value),
            (Self::Binary { algorithm: B::Add, .. }, Some(value)) => FusedOp::plus(value),
            (Self::Binary { algorithm: B::Sub, .. }, Some(value)) => FusedOp::plus(-value),
            (Self::Binary { algorithm: B::Mul, .. }, Some(value)) => FusedOp::times(value),
            (Self::Eltwise { algorithm, alpha, beta, .. }, _) => match algorithm {
                E::Relu if *alpha == 0.0 => FusedOp::between(0.0, f32::INFINITY),
                E::Linear => FusedOp::linear(*alpha, *beta),
                E::Clip | E::ClipV2 => FusedOp::between(*alpha, *beta),
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// Maximum number of steps: rounding, parameters, gate, both scales, or the scales of two inputs and a function of them; and
/// every post-operation.
const MAX_STEPS: usize = super::MAX_POST_OPS + 5;

/// The steps of a primitive.
pub(crate) struct PostOpChain(Vec<Step>);

/// The argument id of an operand of post-operation `at`.
fn post_op_argument(at: usize, arg: i32) -> i32 {
    sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(at as i32) | arg
}

/// A chain with the addresses of an execution.
pub(crate) struct BoundChain<'a> {
    steps: &'a PostOpChain,
    /// The factor of each step, and the tensors that it reads.
    factors: [f32; MAX_STEPS],
    operands: [[*const u8; 2]; MAX_STEPS],
}

// SAFETY: the addresses are only read, except that each row of dst belongs to one thread.
unsafe impl Sync for BoundChain<'_> {}

/// The steps of an execution as fused operations.
pub(crate) struct FusedOps {
    ops: [FusedOp; MAX_STEPS],
    count: usize,
}

impl std::ops::Deref for FusedOps {
    type Target = [FusedOp];
    fn deref(&self) -> &[FusedOp] {
        &self.ops[..self.count]
    }
}

impl BoundChain<'_> {
    /// Whether it is one step that reads no tensors but the inputs.
    #[inline(always)]
    fn is_one_of_inputs(&self) -> bool {
        matches!(
            &self.steps.0[..],
            [Step::Eltwise { .. } | Step::Gradient(_)]
                | [Step::Binary { first: Source::Input(_), .. }]
        )
    }

    /// Whether a step reads a tensor that starts at an address.
    pub(crate) fn read(&self, address: *const u8) -> bool {
        self.operands.iter().flatten().any(|operand| *operand == address)
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
        let operand = |argument, desc: &MemoryDesc, data_type: Option<DataType>| {
            let data_type = data_type.or(desc.data_type()).unwrap_or(DataType::F32);
            Operand::new(argument, desc, data_type, dst.dims(), order)
        };
        let tensor = |at, arg, desc: &MemoryDesc| {
            operand(post_op_argument(at, arg), desc, None).map(Source::Tensor)
        };
        let scale = |arg| {
            let scale = attr.scales.get(arg).filter(|scale| !scale.is_dynamic())?;
            Some((sys::NORM_ARG_ATTR_SCALES | arg, scale.data_type))
        };
        let mut steps = Vec::new();
        heap::extend(&mut steps, before.round.map(Step::Round))?;
        let parameter = |i: usize, id| match before.parameters[i] {
            Some(desc) => Some(operand(id, desc, None)).transpose(),
            None => Ok(None),
        };
        let (scale_step, shift) =
            (parameter(0, sys::NORM_ARG_SCALE)?, parameter(1, sys::NORM_ARG_SHIFT)?);
        if scale_step.is_some() || shift.is_some() {
            let plus_one = before.plus_one;
            heap::push(&mut steps, Step::Affine { scale: scale_step, shift, plus_one })?;
        }
        if let Some((desc, gating)) = before.gate {
            let gate = operand(sys::NORM_ARG_GATE, desc, None)?;
            heap::push(&mut steps, Step::Gate(gate, gating))?;
        }
        if let Some(start) = before.start {
            for (input, arg) in [sys::NORM_ARG_SRC_0, sys::NORM_ARG_SRC_1].into_iter().enumerate() {
                let step = scale(arg).map(|(id, kind)| Step::ScaleInput(input, id, kind));
                heap::extend(&mut steps, step)?;
            }
            heap::push(&mut steps, start.step())?;
        } else {
            let multiply = scale(sys::NORM_ARG_SRC).map(|(id, kind)| Step::Multiply(id, kind));
            heap::extend(&mut steps, multiply)?;
        }
        for (at, post_op) in attr.post_ops.iter().enumerate() {
            let step = match post_op {
                PostOp::Eltwise { algorithm, alpha, beta, .. } => Some(Step::Eltwise {
                    algorithm: *algorithm,
                    alpha: *alpha,
                    beta: *beta,
                    exponent: Exponent::new(*beta),
                }),
                PostOp::Binary { algorithm, src1, src2 } => Some(Step::Binary {
                    algorithm: *algorithm,
                    first: tensor(at, sys::NORM_ARG_SRC_1, src1)?,
                    second: match src2 {
                        None => None,
                        Some(src2) => Some(tensor(at, sys::NORM_ARG_SRC_2, src2)?),
                    },
                }),
                PostOp::Sum { scale, zero_point, data_type } => Some(Step::Sum {
                    scale: *scale,
                    zero_point: *zero_point as f32,
                    dst: operand(sys::NORM_ARG_DST, dst, *data_type)?,
                }),
                PostOp::Prelu { .. } | PostOp::Depthwise(_) => None,
            };
            heap::extend(&mut steps, step)?;
        }
        let divide = scale(sys::NORM_ARG_DST).map(|(id, kind)| Step::Divide(id, kind));
        heap::extend(&mut steps, divide)?;
        Ok((!steps.is_empty()).then_some(Self(steps)))
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
        let mut fused = FusedOps { ops: [FusedOp::NONE; MAX_STEPS], count: self.0.len() };
        for (op, step) in fused.ops.iter_mut().zip(&self.0) {
            // SAFETY: a single element is read.
            let value = step.value().map(|(argument, data_type)| unsafe {
                read_scalar(data_type, arguments.get(argument), 0)
            });
            *op = step.fused(value).unwrap_or(FusedOp::NONE);
        }
        fused
    }

    /// The chain of one execution.
    ///
    /// # Safety
    /// The buffers were checked.
    #[allow(clippy::undocumented_unsafe_blocks)]
    pub(crate) unsafe fn bind(&self, arguments: &Arguments) -> BoundChain<'_> {
        let mut bound = BoundChain {
            steps: self,
            factors: [1.0; MAX_STEPS],
            operands: [[std::ptr::null(); 2]; MAX_STEPS],
        };
        let address = |operand: &Operand| arguments.get(operand.argument).cast_const();
        for (i, step) in self.0.iter().enumerate() {
            match step {
                // SAFETY of both: a scale is a single element.
                Step::Multiply(id, data_type) | Step::ScaleInput(_, id, data_type) => {
                    bound.factors[i] = unsafe { read_scalar(*data_type, arguments.get(*id), 0) };
                }
                Step::Divide(id, data_type) => {
                    let scale = unsafe { read_scalar(*data_type, arguments.get(*id), 0) };
                    bound.factors[i] = 1.0 / scale;
                }
                Step::Binary { first, second, .. } => {
                    let address = |s: &Source| s.tensor().map_or(std::ptr::null(), address);
                    bound.operands[i] =
                        [address(first), second.as_ref().map_or(std::ptr::null(), address)];
                }
                Step::Sum { dst, .. } => bound.operands[i][0] = address(dst),
                Step::Affine { scale, shift, .. } => {
                    bound.operands[i] =
                        [scale, shift].map(|p| p.as_ref().map_or(std::ptr::null(), address));
                }
                Step::Gate(gate, _) => bound.operands[i][0] = address(gate),
                Step::Eltwise { .. } | Step::Gradient(_) | Step::Round(_) => {}
            }
        }
        bound
    }
}

/// [`apply`] without vectors, for reference implementations.
///
/// # Safety
/// As [`apply`].
pub(crate) unsafe fn apply_chain(
    bound: &BoundChain<'_>,
    chunk: &mut [f32],
    at: (usize, usize),
    others: [&mut [MaybeUninit<f32>]; 2],
) {
    let (to, len) = (chunk.as_mut_ptr(), chunk.len());
    // SAFETY: guaranteed by the caller.
    unsafe { apply::<Portable>(bound, Chunk { from: to, to, len }, at, ([to; INPUTS], others)) }
}

/// Applies all steps to the elements of a row from `col` on: the first from where the chunk is read, the others where it is
/// written. `others` are buffers for operands, as long as `chunk` unless no step reads any.
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
        let factor = bound.factors[i];
        if let Step::ScaleInput(input, ..) = step {
            let scaled = Chunk { from: inputs[*input], to: inputs[*input], len: chunk.len };
            each!(scaled, by 4, |x| x * factor);
            continue;
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            apply_step::<S>(step, chunk, at, (factor, bound.operands[i]), &inputs, [ys, zs]);
        }
        chunk.from = chunk.to;
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
            Step::Binary { algorithm, first, second: None } => {
                binary::<S>(chunk, *algorithm, first.read(inputs, operands[0], at, ys));
            }
            Step::Binary { first, second: Some(second), .. } => {
                let ys = first.read(inputs, operands[0], at, ys);
                select::<S>(chunk, ys, second.read(inputs, operands[1], at, zs));
            }
            Step::Sum { scale, zero_point, dst } => {
                let ys = dst.read(operands[0], at.0, at.1, ys).as_ptr();
                each!(chunk, by 4, |x, y: ys| (y - *zero_point).mul_add(*scale, x));
            }
            Step::Round(DataType::F16) => round::<S, F16>(chunk, DataType::F16),
            Step::Round(data_type) => round::<S, Bf16>(chunk, *data_type),
            Step::Affine { scale, shift, plus_one } => {
                let read = |operand: &Option<Operand>, which: usize, to| match operand {
                    Some(operand) => operand.read(operands[which], at.0, at.1, to).as_ptr(),
                    None => std::ptr::null(),
                };
                let (ys, zs) = (read(scale, 0, ys), read(shift, 1, zs));
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
                let ys = gate.read(operands[0], at.0, at.1, ys).as_ptr();
                each!(chunk, |x, y: ys| x * gating.value(y));
            }
            // Applied before.
            Step::ScaleInput(..) => (),
        }
    }
}

/// Rows of f32, `step` elements apart.
pub(crate) struct Rows<'a> {
    pub(crate) start: *mut f32,
    pub(crate) step: usize,
    pub(crate) cols: usize,
    /// The column of the first element.
    pub(crate) first_col: usize,
    /// The rows that the first step reads; the same rows if there are none.
    pub(crate) inputs: Option<&'a [InputRows; INPUTS]>,
}

/// Rows of an input of a chain, `step` elements apart. They are written if the input is scaled.
#[derive(Clone, Copy)]
pub(crate) struct InputRows {
    pub(crate) start: *mut f32,
    pub(crate) step: usize,
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
    // Most operands are read in place. What is not written costs neither time nor cache.
    let (mut ys, mut zs) = ([MaybeUninit::uninit(); CHUNK], [MaybeUninit::uninit(); CHUNK]);
    let most = if bound.is_one_of_inputs() { usize::MAX } else { CHUNK };
    for row in first..last {
        let start = rows.start.wrapping_add((row - first) * rows.step);
        let mut inputs = [start; INPUTS];
        if let Some(given) = rows.inputs {
            for i in 0..INPUTS {
                inputs[i] = given[i].start.wrapping_add((row - first) * given[i].step);
            }
        }
        let mut col = 0;
        while col < rows.cols {
            let len = most.min(rows.cols - col);
            let inputs = [0, 1, 2].map(
                #[inline(always)]
                |i: usize| inputs[i].wrapping_add(col),
            );
            let buffers = len.min(CHUNK);
            // SAFETY: guaranteed by the caller.
            unsafe {
                let chunk = Chunk { from: inputs[0], to: start.add(col), len };
                let at = (row, rows.first_col + col);
                let others = [&mut ys[..buffers], &mut zs[..buffers]];
                apply::<S>(bound, chunk, at, (inputs, others));
            }
            col += len;
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
