//! The memories of an execution.

use crate::error::Result;
use crate::kv_cache::RopeArgs;
use crate::memory::{Access, Memory};
use crate::primitive::{Arg, Args};

/// The memories of one forward execution.
#[derive(Debug)]
#[must_use]
pub struct ForwardArgs<'x>(pub(super) Args<'x>);

impl<'x> ForwardArgs<'x> {
    /// From `src` to `dst`.
    pub fn new<A: Access, P: Access>(
        src: &'x Memory<'_, A>,
        dst: &'x mut Memory<'_>,
        positions: &'x Memory<'_, P>,
    ) -> Self {
        let args = Args::new().input(Arg::Src, src).output(Arg::Dst, dst);
        Self(args.input(Arg::Positions, positions))
    }

    /// From `src` to a layer of a [cache](crate::kv_cache), which provides the slots and positions of the open step and
    /// is borrowed until the execution ends. The primitive must have [slots](super::ForwardBuilder::slots) and the `dst` of
    /// the cache.
    ///
    /// # Errors
    /// None in practice; only an internal error of the library.
    pub fn to_cache<A: Access>(src: &'x Memory<'_, A>, layer: RopeArgs<'x>) -> Result<Self> {
        layer.bind(Args::new().input(Arg::Src, src)).map(Self)
    }

    /// `src` is overwritten with `dst`.
    pub fn in_place<P: Access>(src_dst: &'x mut Memory<'_>, positions: &'x Memory<'_, P>) -> Self {
        let args = Args::new().in_place(Arg::Src, Arg::Dst, src_dst);
        Self(args.input(Arg::Positions, positions))
    }

    /// The scale of a [`Norm`](super::Norm).
    pub fn scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Scale, scale))
    }

    /// The slot of each token, -1 for none, with [`ForwardBuilder::slots`](super::ForwardBuilder::slots).
    pub fn slots<A: Access>(self, slots: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Slots, slots))
    }
}

/// The memories of one backward execution.
#[derive(Debug)]
#[must_use]
pub struct BackwardArgs<'x>(pub(super) Args<'x>);

impl<'x> BackwardArgs<'x> {
    /// From `diff_dst` to `diff_src`.
    pub fn new<A: Access, P: Access>(
        diff_dst: &'x Memory<'_, A>,
        diff_src: &'x mut Memory<'_>,
        positions: &'x Memory<'_, P>,
    ) -> Self {
        let args = Args::new().input(Arg::DiffDst, diff_dst).output(Arg::DiffSrc, diff_src);
        Self(args.input(Arg::Positions, positions))
    }

    /// `diff_dst` is overwritten with `diff_src`.
    pub fn in_place<P: Access>(diff: &'x mut Memory<'_>, positions: &'x Memory<'_, P>) -> Self {
        let args = Args::new().in_place(Arg::DiffDst, Arg::DiffSrc, diff);
        Self(args.input(Arg::Positions, positions))
    }

    /// `src`, what forward normalized, is overwritten with `diff_src`, with [`BackwardBuilder::norm`](super::BackwardBuilder::norm); their types and
    /// layouts must be the same.
    pub fn in_place_of_src<A: Access, P: Access>(
        src_diff: &'x mut Memory<'_>,
        diff_dst: &'x Memory<'_, A>,
        positions: &'x Memory<'_, P>,
    ) -> Self {
        let args = Args::new().in_place(Arg::Src, Arg::DiffSrc, src_diff);
        Self(args.input(Arg::DiffDst, diff_dst).input(Arg::Positions, positions))
    }

    /// What forward normalized, with [`BackwardBuilder::norm`](super::BackwardBuilder::norm).
    pub fn src<A: Access>(self, src: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Src, src))
    }

    /// The scale of the [`Norm`](super::Norm).
    pub fn scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Scale, scale))
    }

    /// The gradient of the scale, with [`BackwardBuilder::diff_scale`](super::BackwardBuilder::diff_scale).
    pub fn diff_scale(self, diff_scale: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::DiffScale, diff_scale))
    }
}

/// The sources of angles, which both directions have.
macro_rules! angles {
    ($args:ident) => {
        impl<'x> $args<'x> {
            /// Radians per position of each pair, in f64.
            pub fn frequencies<A: Access>(self, frequencies: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::RopeFrequencies, frequencies))
            }

            /// The tables of cosines and sines.
            pub fn tables<A: Access>(self, cos: &'x Memory<'_, A>, sin: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::RopeCos, cos).input(Arg::RopeSin, sin))
            }
        }
    };
}
angles!(ForwardArgs);
angles!(BackwardArgs);
