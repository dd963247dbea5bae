//! Element-wise primitives: functions of one array or two, and gated activation.

use norm_rs::binary::{Binary, BinaryPrimitive};
use norm_rs::eltwise::{self, Eltwise};
use norm_rs::gated::{self, Activation, Packing};
use norm_rs::primitive::{Arg, Primitive};
use norm_rs::{Engine, Result};

use crate::plan::Problem;

/// A gated activation with its parameters.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Gated {
    pub(crate) activation: Activation,
    /// `None` for two arrays.
    pub(crate) packing: Option<Packing>,
    pub(crate) limit: f32,
    pub(crate) shift: f32,
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
        function: Eltwise,
        (alpha, beta): (f32, f32),
    ) -> Result<Self> {
        let src = problem.desc_of(Arg::Src)?.expect("src");
        if let Some(dst) = problem.desc_of(Arg::Dst)? {
            let forward = eltwise::Forward::new(engine, &src, function).dst(&dst);
            return forward.alpha(alpha).beta(beta).build().map(Self::Eltwise);
        }
        let diff_dst = problem.desc_of(Arg::DiffDst)?.expect("diff_dst");
        let diff_src = problem.desc_of(Arg::DiffSrc)?.expect("diff_src");
        let backward = eltwise::Backward::new(engine, &src, function).alpha(alpha).beta(beta);
        backward.diff_dst(&diff_dst).diff_src(&diff_src).build().map(Self::EltwiseBackward)
    }

    pub(crate) fn binary(engine: &Engine, problem: &Problem, function: Binary) -> Result<Self> {
        let src0 = problem.desc_of(Arg::Src)?.expect("src0");
        let src1 = problem.desc_of(Arg::Src1)?.expect("src1");
        let dst = problem.desc_of(Arg::Dst)?.expect("dst");
        BinaryPrimitive::new(engine, function, &src0, &src1).dst(&dst).build().map(Self::Binary)
    }

    pub(crate) fn gated(engine: &Engine, problem: &Problem, gated: &Gated) -> Result<Self> {
        let Gated { activation, packing, limit, shift } = *gated;
        let src = problem.desc_of(Arg::Src)?.expect("src");
        let up = problem.desc_of(Arg::Src1)?;
        let up = up.as_ref().unwrap_or(&src);
        if let Some(dst) = problem.desc_of(Arg::Dst)? {
            let forward = match packing {
                Some(packing) => gated::Forward::packed(engine, activation, &src, packing, &dst),
                None => gated::Forward::separate(engine, activation, &src, up, &dst),
            };
            return forward.limit(limit).shift(shift).build().map(Self::Gated);
        }
        let diff_dst = problem.desc_of(Arg::DiffDst)?.expect("diff_dst");
        let diff_src = problem.desc_of(Arg::DiffSrc)?.expect("diff_src");
        let diff_up = problem.desc_of(Arg::DiffSrc1)?;
        let backward = match packing {
            Some(packing) => gated::Backward::packed(engine, activation, &src, packing, &diff_dst),
            None => gated::Backward::separate(engine, activation, &src, up, &diff_dst),
        };
        let backward = backward.diff_src(&diff_src, diff_up.as_ref());
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
