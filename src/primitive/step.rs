//! The steps of a chain, made from attributes.

use super::dropout::Dropping;
use super::gradient::Gradient;
use super::operand::{Operand, Source};
use super::{Attr, BinaryAlgorithm, EltwiseAlgorithm, Gating, PostOp};
use crate::error::Result;
use crate::heap;
use crate::simd::FusedOp;
use crate::simd::math::Exponent;
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;

/// One step. `x` is the element so far.
pub(super) enum Step {
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
        /// The step before, computed in the same pass; `None` in chains of inputs.
        after: Option<FusedOp>,
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
    /// `x*scale + shift`, or `x*(1 + scale) + shift`.
    Affine {
        scale: Option<Operand>,
        shift: Option<Operand>,
        plus_one: bool,
    },
    /// Multiplies `x` by the function of a gate.
    Gate(Operand, Gating),
    Dropout(Dropping),
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
                after: None,
                algorithm,
                first: Source::Input(1),
                second: (algorithm == BinaryAlgorithm::Select).then_some(Source::Input(2)),
            },
        }
    }
}

/// The steps between a normalization's kernel and the attributes that all operations share, or the first steps of an
/// element-wise primitive.
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
    pub(super) fn value(&self) -> Option<(i32, DataType)> {
        match self {
            Self::Multiply(id, data_type) | Self::Divide(id, data_type) => Some((*id, *data_type)),
            Self::Binary { first: Source::Tensor(first), second: None, .. } if first.single => {
                Some((first.argument, first.data_type))
            }
            _ => None,
        }
    }

    /// The step as a fused operation for the value that it reads, if it is one.
    pub(super) fn fused(&self, value: Option<f32>) -> Option<FusedOp> {
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

/// The argument id of an operand of post-operation `at`.
fn post_op_argument(at: usize, arg: i32) -> i32 {
    sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(at as i32) | arg
}

/// Removes the last step if it is computed in the pass of a binary step after it, and returns it.
fn take_joined(
    steps: &mut Vec<Step>,
    before: &BeforePostOps<'_>,
    algorithm: BinaryAlgorithm,
    first: &Source,
) -> Option<FusedOp> {
    let joins = before.start.is_none()
        && matches!(algorithm, BinaryAlgorithm::Add | BinaryAlgorithm::Mul)
        && first.tensor().is_some_and(|operand| !operand.single);
    let last = steps.last()?.fused(None).filter(|_| joins)?;
    steps.pop();
    Some(last)
}

/// The steps of attributes whose post-operations are resolved, and those before them. `order` is the order in which rows
/// are counted; `None` means logical order.
pub(super) fn steps(
    before: &BeforePostOps<'_>,
    attr: &Attr,
    dst: &MemoryDesc,
    order: Option<&[usize]>,
) -> Result<Vec<Step>> {
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
    let parameter =
        |i: usize, id| before.parameters[i].map(|desc| operand(id, desc, None)).transpose();
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
    let dropping = attr.dropout.as_ref().map(|d| Dropping::new(d, dst.dims(), order));
    heap::extend(&mut steps, dropping.transpose()?.map(Step::Dropout))?;
    for (at, post_op) in attr.post_ops.iter().enumerate() {
        let step = match post_op {
            &PostOp::Eltwise { algorithm, alpha, beta, .. } => {
                let exponent = Exponent::new(beta);
                Some(Step::Eltwise { algorithm, alpha, beta, exponent })
            }
            PostOp::Binary { algorithm, src1, src2 } => {
                let first = tensor(at, sys::NORM_ARG_SRC_1, src1)?;
                let second = |desc| tensor(at, sys::NORM_ARG_SRC_2, desc);
                let (second, algorithm) = (src2.as_ref().map(second).transpose()?, *algorithm);
                let after = take_joined(&mut steps, before, algorithm, &first);
                Some(Step::Binary { after, algorithm, first, second })
            }
            PostOp::Sum { scale, zero_point, data_type } => {
                let dst = operand(sys::NORM_ARG_DST, dst, *data_type)?;
                Some(Step::Sum { scale: *scale, zero_point: *zero_point as f32, dst })
            }
            PostOp::Prelu { .. } | PostOp::Depthwise(_) => None,
        };
        heap::extend(&mut steps, step)?;
    }
    let divide = scale(sys::NORM_ARG_DST).map(|(id, kind)| Step::Divide(id, kind));
    heap::extend(&mut steps, divide).map(|()| steps)
}
