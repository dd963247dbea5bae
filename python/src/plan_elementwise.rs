//! Element-wise primitives: functions of one array or two, and gated activation.

use norm_rs::binary::{Binary, BinaryPrimitive};
use norm_rs::eltwise::{self, Eltwise};
use norm_rs::gated::{self, Activation, Packing};
use norm_rs::primitive::{Arg, Primitive};
use norm_rs::{Attr, Engine, Result};

use crate::plan::Problem;

/// A gated activation with its parameters.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Gated {
    pub(crate) activation: Activation,
    /// `None` for two arrays.
    pub(crate) packing: Option<Packing>,
    pub(crate) limit: f32,
    pub(crate) shift: f32,
    /// The number of elements that share a dynamic scale; 0 without dynamic scales.
    pub(crate) group: usize,
}

/// The primitive of an operation and a direction.
pub(crate) enum Elementwise {
    Eltwise(eltwise::Forward),
    EltwiseBackward(eltwise::Backward),
    Binary(BinaryPrimitive),
    Gated(gated::Forward),
    GatedBackward(gated::Backward),
}

impl Elementwise {
    pub(crate) fn eltwise(
        engine: &Engine,
        problem: &Problem,
        (function, from_dst): (Eltwise, bool),
        (alpha, beta): (f32, f32),
    ) -> Result<Self> {
        let Some(diff_dst) = problem.desc_of(Arg::DiffDst)? else {
            let src = problem.desc_of(Arg::Src)?.expect("src");
            let dst = problem.desc_of(Arg::Dst)?.expect("dst");
            let forward = eltwise::Forward::new(engine, &src, function).dst(&dst);
            return forward.alpha(alpha).beta(beta).build().map(Self::Eltwise);
        };
        let data = problem.desc_of(if from_dst { Arg::Dst } else { Arg::Src })?.expect("data");
        let diff_src = problem.desc_of(Arg::DiffSrc)?.expect("diff_src");
        let backward = eltwise::Backward::new(engine, &data, function).alpha(alpha).beta(beta);
        let backward = if from_dst { backward.from_dst() } else { backward };
        backward.diff_dst(&diff_dst).diff_src(&diff_src).build().map(Self::EltwiseBackward)
    }

    pub(crate) fn binary(
        engine: &Engine,
        problem: &Problem,
        function: Option<Binary>,
    ) -> Result<Self> {
        let src0 = problem.desc_of(Arg::Src)?.expect("src0");
        let src1 = problem.desc_of(Arg::Src1)?.expect("src1");
        let dst = problem.desc_of(Arg::Dst)?.expect("dst");
        let condition = problem.desc_of(Arg::Src2)?;
        let builder = match (function, &condition) {
            (Some(function), _) => BinaryPrimitive::new(engine, function, &src0, &src1),
            (None, condition) => {
                let condition = condition.as_ref().expect("condition");
                BinaryPrimitive::select(engine, condition, &src0, &src1)
            }
        };
        builder.dst(&dst).build().map(Self::Binary)
    }

    pub(crate) fn gated(engine: &Engine, problem: &Problem, gated: &Gated) -> Result<Self> {
        let Gated { activation, packing, limit, shift, .. } = *gated;
        let src = problem.desc_of(Arg::Src)?.expect("src");
        let up = problem.desc_of(Arg::Src1)?;
        let up = up.as_ref().unwrap_or(&src);
        let dst = problem.desc_of(Arg::Dst)?;
        let Some(diff_dst) = problem.desc_of(Arg::DiffDst)? else {
            let dst = dst.expect("dst");
            let mut attr = Attr::new()?;
            problem.quantize(&mut attr, dst.dims().len())?;
            let forward = match packing {
                Some(packing) => gated::Forward::packed(engine, activation, &src, packing, &dst),
                None => gated::Forward::separate(engine, activation, &src, up, &dst),
            };
            return forward.limit(limit).shift(shift).attr(&attr).build().map(Self::Gated);
        };
        let diff_src = problem.desc_of(Arg::DiffSrc)?.expect("diff_src");
        let diff_up = problem.desc_of(Arg::DiffSrc1)?;
        let backward = match packing {
            Some(packing) => gated::Backward::packed(engine, activation, &src, packing, &diff_dst),
            None => gated::Backward::separate(engine, activation, &src, up, &diff_dst),
        };
        let mut backward = backward.diff_src(&diff_src, diff_up.as_ref());
        if let Some(dst) = &dst {
            backward = backward.dst(dst);
        }
        backward.limit(limit).shift(shift).build().map(Self::GatedBackward)
    }

    pub(crate) fn primitive(&self) -> &Primitive {
        match self {
            Self::Eltwise(forward) => forward.primitive(),
            Self::EltwiseBackward(backward) => backward.primitive(),
            Self::Binary(binary) => binary.primitive(),
            Self::Gated(forward) => forward.primitive(),
            Self::GatedBackward(backward) => backward.primitive(),
        }
    }
}
