//! Primitives of group normalization.

use norm_rs::group_normalization::{Backward, Forward};
use norm_rs::layer_normalization::Flags;
use norm_rs::primitive::{Arg, PropKind};
use norm_rs::{Engine, Result};

use crate::options::Options;
use crate::plan::Problem;

/// A group normalization.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Groups {
    pub(crate) flags: Flags,
    pub(crate) epsilon: f32,
    /// How many each sample's channels are in.
    pub(crate) groups: usize,
    pub(crate) options: Options,
}

impl Groups {
    pub(crate) fn forward(&self, engine: &Engine, problem: &Problem) -> Result<Forward> {
        let (attr, groups) = (problem.attr(&self.options)?, self.groups as i64);
        let src = problem.desc_of(Arg::Src)?.expect("src");
        let dst = problem.desc_of(Arg::Dst)?.expect("dst");
        let builder = match problem.prop_kind {
            PropKind::ForwardTraining => Forward::training(engine, &src, groups),
            _ => Forward::inference(engine, &src, groups),
        };
        builder.dst(&dst).epsilon(self.epsilon).flags(self.flags).attr(&attr).build()
    }

    pub(crate) fn backward(&self, engine: &Engine, problem: &Problem) -> Result<Backward> {
        let (attr, groups) = (problem.attr(&self.options)?, self.groups as i64);
        let src = problem.desc_of(Arg::Src)?.expect("src");
        let diff_src = problem.desc_of(Arg::DiffSrc)?.expect("diff_src");
        let diff_dst = problem.desc_of(Arg::DiffDst)?.expect("diff_dst");
        let builder = match problem.prop_kind {
            PropKind::Backward => Backward::new(engine, &src, groups),
            _ => Backward::data(engine, &src, groups),
        };
        let builder = builder.diff_src(&diff_src).diff_dst(&diff_dst).attr(&attr);
        builder.epsilon(self.epsilon).flags(self.flags).build()
    }
}
