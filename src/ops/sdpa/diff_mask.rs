//! The parts of the gradient of a mask.

use super::gradient::QUERIES;
use super::problem::Sdpa;
use super::rows::Heads;
use crate::error::Result;
use norm_sys as sys;

/// A mask whose gradient is computed.
#[derive(Clone, Copy)]
pub(super) struct DiffMask {
    pub(super) heads: Heads,
    pub(super) dims: [usize; 4],
}

impl DiffMask {
    /// `None` if the problem has no gradient of the mask.
    pub(super) fn new(problem: &Sdpa) -> Result<Option<Self>> {
        let id = sys::NORM_ARG_DIFF_ATTN_MASK;
        let &[batch, heads, queries, keys] = problem.desc(id).dims() else { return Ok(None) };
        let dims = [batch, heads, queries, keys].map(|dim| dim as usize);
        Ok(Some(Self { heads: Heads::new(problem, id, 2)?, dims }))
    }

    /// The number of rows in a part: a block of queries, or the single row that all queries share.
    fn rows(&self) -> usize {
        self.dims[2].min(QUERIES)
    }

    /// The number of elements in a part.
    pub(super) fn part_size(&self) -> usize {
        self.rows().saturating_mul(self.dims[3])
    }

    /// The number of blocks of rows.
    pub(super) fn blocks(&self) -> usize {
        self.dims[2].div_ceil(QUERIES)
    }

    /// The number of parts. Each has some rows of a head of a sequence of the mask.
    pub(super) fn parts(&self) -> usize {
        self.dims[0] * self.dims[1] * self.blocks()
    }
}
