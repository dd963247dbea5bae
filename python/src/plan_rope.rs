//! Primitives of rope.

use norm_rs::primitive::Arg;
use norm_rs::rope::{Backward, Forward, Norm, Pairing};
use norm_rs::{Engine, MemoryDesc, Result};

use crate::plan::Problem;

/// The most parts of a position.
pub(crate) const MOST_SECTIONS: usize = 4;

/// The pairs that each part of a position rotates.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct Sections {
    /// The first `parts` of these.
    pub(crate) pairs: [usize; MOST_SECTIONS],
    /// 0 for positions of one number.
    pub(crate) parts: usize,
    pub(crate) interleaved: bool,
}

/// How heads are normalized before the rotation, besides their scale.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct OfHeads {
    pub(crate) epsilon: f32,
    pub(crate) scale_plus_one: bool,
    pub(crate) rounded: bool,
}

/// How rope rotates.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Rotation {
    pub(crate) pairing: Pairing,
    pub(crate) rotary_dims: usize,
    pub(crate) magnitude: f32,
    pub(crate) sections: Sections,
    pub(crate) index_dim: Option<usize>,
    pub(crate) norm: Option<OfHeads>,
}

macro_rules! with_common {
    ($builder:expr, $rotation:expr, $table:expr) => {{
        let Rotation { rotary_dims, magnitude, sections, index_dim, .. } = $rotation;
        let mut builder = $builder.rotary_dims(*rotary_dims).magnitude(*magnitude);
        builder = builder.sections(&sections.pairs[..sections.parts], sections.interleaved);
        if let Some(dim) = index_dim {
            builder = builder.index_dim(*dim);
        }
        if let Some(table) = $table {
            builder = builder.tables(table);
        }
        builder
    }};
}

impl Rotation {
    /// A rotation alone.
    pub(crate) fn new(pairing: Pairing, rotary_dims: usize, magnitude: f32) -> Self {
        let sections = Sections::default();
        Self { pairing, rotary_dims, magnitude, sections, index_dim: None, norm: None }
    }

    fn norm<'b>(&self, scale: Option<&'b MemoryDesc>) -> Option<Norm<'b>> {
        self.norm.map(|OfHeads { epsilon, scale_plus_one, rounded }| Norm {
            epsilon,
            scale,
            scale_plus_one,
            rounded,
        })
    }

    pub(crate) fn forward(&self, engine: &Engine, problem: &Problem) -> Result<Forward> {
        let src = problem.desc_of(Arg::Src)?.expect("src");
        let dst = problem.desc_of(Arg::Dst)?.expect("dst");
        let positions = problem.desc_of(Arg::Positions)?.expect("positions");
        let (table, scale) = (problem.desc_of(Arg::RopeCos)?, problem.desc_of(Arg::Scale)?);
        let builder = Forward::new(engine, self.pairing, &src, &positions).dst(&dst);
        let mut builder = with_common!(builder, self, &table);
        if problem.desc_of(Arg::Slots)?.is_some() {
            builder = builder.slots();
        }
        if let Some(norm) = self.norm(scale.as_ref()) {
            builder = builder.norm(norm);
        }
        builder.build()
    }

    pub(crate) fn backward(&self, engine: &Engine, problem: &Problem) -> Result<Backward> {
        let diff_dst = problem.desc_of(Arg::DiffDst)?.expect("diff_dst");
        let diff_src = problem.desc_of(Arg::DiffSrc)?.expect("diff_src");
        let positions = problem.desc_of(Arg::Positions)?.expect("positions");
        let (table, scale) = (problem.desc_of(Arg::RopeCos)?, problem.desc_of(Arg::Scale)?);
        let (src, diff_scale) = (problem.desc_of(Arg::Src)?, problem.desc_of(Arg::DiffScale)?);
        let builder = Backward::new(engine, self.pairing, &diff_dst, &positions);
        let mut builder = with_common!(builder.diff_src(&diff_src), self, &table);
        if let Some((norm, src)) = self.norm(scale.as_ref()).zip(src.as_ref()) {
            builder = builder.norm(norm, src);
        }
        if let Some(diff_scale) = &diff_scale {
            builder = builder.diff_scale(diff_scale);
        }
        builder.build()
    }
}
