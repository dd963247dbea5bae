//! Softmax of borrowed tensors.

use super::cache::{Operation, Problem, plan};
use super::view::{Input, Pair};
use crate::error::Result;
use crate::primitive::{Arg, Args, PropKind};
use crate::softmax::Algorithm;

/// The pass, with what it reads besides the pair.
pub(crate) enum Direction<'a> {
    /// From src to dst.
    Forward,
    /// From diff_dst to diff_src, with dst.
    Backward { dst: Input<'a> },
}

/// Runs a pass along dimension `axis`.
pub(crate) fn run<'a>(
    algorithm: Algorithm,
    axis: usize,
    direction: Direction<'a>,
    pair: Pair<'a>,
) -> Result<()> {
    let [from, to] = pair.tensors();
    let operation = Operation::Softmax { algorithm, axis };
    let plan = plan(&match &direction {
        Direction::Forward => Problem {
            operation,
            prop_kind: PropKind::ForwardInference,
            data: from,
            dst: to,
            diff_src: None,
        },
        Direction::Backward { dst } => Problem {
            operation,
            prop_kind: PropKind::BackwardData,
            data: dst.tensor,
            dst: from,
            diff_src: Some(to),
        },
    })?;
    let engine = &plan.engine;
    let (ids, from_desc, to_desc) = match direction {
        Direction::Forward => ([Arg::Src, Arg::Dst], &plan.data, &plan.dst),
        Direction::Backward { .. } => ([Arg::DiffDst, Arg::DiffSrc], &plan.dst, &plan.diff_src),
    };
    let (dst, input, mut output);
    let mut args = Args::new();
    if let Direction::Backward { dst: tensor } = direction {
        dst = tensor.memory(engine, &plan.data)?;
        args = args.input(Arg::Dst, &dst);
    }
    match pair {
        Pair::Apart(from, to) => {
            input = from.memory(engine, from_desc)?;
            output = to.memory(engine, to_desc)?;
            args = args.input(ids[0], &input).output(ids[1], &mut output);
        }
        Pair::InPlace(both) => {
            output = both.memory(engine, to_desc)?;
            args = args.in_place(ids[0], ids[1], &mut output);
        }
    }
    plan.execute(args)
}
