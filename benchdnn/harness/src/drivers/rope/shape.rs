//! The meaning of a problem's dimensions: tokens with positions, their angles, and heads that share
//! them.

use super::choices::Angles;
use super::parameters::RopeProblem;
use crate::direction::Direction;
use crate::execution::Role;
use crate::fill;
use crate::oracle::rope::{Pairing, section};
use crate::problem::Data;
use norm_sys::*;

/// Slots of dst that no token is written to.
const SPARE_SLOTS: usize = 3;

impl RopeProblem {
    /// The length of a head.
    pub(super) fn cols(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// The dimensions before the last.
    pub(super) fn outer(&self) -> &[usize] {
        &self.dims[..self.dims.len() - 1]
    }

    pub(super) fn rotary_dims(&self) -> usize {
        if self.rotary == 0 { self.cols() } else { self.rotary }
    }

    pub(super) fn pairs(&self) -> usize {
        self.rotary_dims() / 2
    }

    /// Whether tokens along a dimension have their own positions. By default they do along all dimensions except the
    /// last two or, with two dimensions, along the first.
    pub(super) fn has_positions(&self, dim: usize) -> bool {
        let letter = char::from(b'a' + dim as u8);
        match (&self.tokens[..], self.flags.slots()) {
            (_, true) => dim == 0,
            ("", _) => dim < (self.dims.len() - 2).max(1),
            (letters, _) => letters.contains(letter),
        }
    }

    /// The dimension whose index is added to positions.
    pub(super) fn index(&self) -> Option<usize> {
        usize::try_from(self.index_dim).ok()
    }

    /// The dimensions of positions, without that of the parts.
    pub(super) fn own_positions(&self) -> Vec<usize> {
        let own = |dim: usize| self.has_positions(dim) && self.index() != Some(dim);
        let outer = self.outer().iter().enumerate();
        outer.map(|(dim, size)| if own(dim) { *size } else { 1 }).collect()
    }

    pub(super) fn sections_text(&self) -> String {
        self.sections.iter().map(usize::to_string).collect::<Vec<_>>().join(":")
    }

    /// The parts of a position.
    pub(super) fn parts(&self) -> usize {
        self.sections.len().max(1)
    }

    /// The dimensions of the tensor of positions.
    pub(super) fn position_dims(&self) -> Vec<usize> {
        let mut dims = self.own_positions();
        if self.parts() > 1 {
            dims.push(self.parts());
        }
        dims
    }

    /// The positions are below this number.
    pub(super) fn limit(&self) -> usize {
        let limit = match self.angles {
            Angles::Frequencies => self.limit,
            Angles::Tables => self.limit.min(64),
        };
        // Leaves room for the index that is added.
        let added = self.index().map_or(0, |dim| self.dims[dim].saturating_sub(1));
        limit.saturating_sub(added).max(1)
    }

    /// Rows of tables.
    pub(super) fn table_rows(&self) -> usize {
        self.limit() + self.index().map_or(0, |dim| self.dims[dim].saturating_sub(1))
    }

    /// The index of a row's position among the positions, and the number that is added to it.
    pub(super) fn position_of(&self, row: usize) -> (usize, usize) {
        let (mut rest, mut index) = (row, vec![0; self.outer().len()]);
        for (dim, size) in self.outer().iter().enumerate().rev() {
            index[dim] = rest % size;
            rest /= size;
        }
        let own = self.own_positions();
        let at = index.iter().zip(&own).fold(0, |at, (index, size)| at * size + index % size);
        (at, self.index().map_or(0, |dim| index[dim]))
    }

    /// The cosines and sines of a row.
    pub(super) fn angles_of(&self, row: usize, data: &Data) -> Vec<(f64, f64)> {
        let (at, added) = self.position_of(row);
        let positions = data.get(NORM_ARG_POSITIONS);
        let turn = if self.direction.is_forward() { 1.0 } else { -1.0 };
        let one = |i: usize| {
            let part = section(i, &self.sections, self.flags.interleaved_sections());
            let position = positions[at * self.parts() + part] + added as f64;
            let (cos, sin) = match self.angles {
                Angles::Frequencies => {
                    let angle = position * data.get(NORM_ARG_ROPE_FREQUENCIES)[i];
                    (angle.cos(), angle.sin())
                }
                Angles::Tables => {
                    let at = position as usize * self.pairs() + i;
                    (data.get(NORM_ARG_ROPE_COS)[at], data.get(NORM_ARG_ROPE_SIN)[at])
                }
            };
            let magnitude = f64::from(self.magnitude);
            (cos * magnitude, sin * magnitude * turn)
        };
        (0..self.pairs()).map(one).collect()
    }

    /// The dimensions of dst: slots instead of tokens, some of them spare.
    pub(super) fn dst_dims(&self) -> Vec<usize> {
        let mut dims = self.dims.clone();
        if self.flags.slots() {
            dims[0] += SPARE_SLOTS;
        }
        dims
    }

    pub(super) fn dst_role(&self) -> Role {
        if self.flags.slots() { Role::Updated } else { Role::Output }
    }

    /// What dst holds before: with slots, rows that are not written keep it.
    pub(super) fn held(&self) -> Vec<f64> {
        match self.flags.slots() {
            true => fill::before(&self.dst_dims(), self.dst_dt),
            false => Vec::new(),
        }
    }

    /// The row of dst that a row of src is written to; `None` if its token has no slot.
    pub(super) fn dst_row(&self, row: usize, data: &Data) -> Option<usize> {
        if !self.flags.slots() {
            return Some(row);
        }
        let heads = self.outer()[1..].iter().product::<usize>();
        let slot = data.get(NORM_ARG_SLOTS)[row / heads];
        (slot >= 0.0).then(|| slot as usize * heads + row % heads)
    }

    /// Whether backward goes through a normalization.
    pub(super) fn through_norm(&self) -> bool {
        !self.direction.is_forward() && self.flags.norm()
    }

    /// Why the library refuses the problem.
    pub(super) fn refused(&self) -> Option<&'static str> {
        let (rotary, pairs) = (self.rotary_dims(), self.pairs());
        let forward = self.direction.is_forward();
        if !rotary.is_multiple_of(2) || rotary > self.cols() || rotary == 0 {
            return Some("the rotary dims must be even and at most a head");
        }
        if self.pairing == Pairing::HalfOfHead && !self.cols().is_multiple_of(2) {
            return Some("halves of a head need an even size");
        }
        if !self.sections.is_empty() && self.sections.iter().sum::<usize>() != pairs {
            return Some("the pairs of the sections must add up to all pairs");
        }
        let flags = self.flags;
        let sections = flags.interleaved_sections();
        if !forward && flags.slots() {
            return Some("backward has no slots");
        }
        if self.direction == Direction::Backward && !flags.scale() {
            return Some("there is no scale");
        }
        if self.through_norm() && self.dims.len() > 5 {
            return Some("a normalization has up to 5 dimensions");
        }
        if sections && self.sections.is_empty()
            || (flags.scale() || flags.rounded()) && !flags.norm()
            || flags.plus_one() && !flags.scale()
        {
            return Some("a flag requires another one");
        }
        let index = self.index();
        if flags.slots() && (self.dims.len() < 3 || index.is_some_and(|dim| dim > 0)) {
            return Some("slots need three dimensions, tokens first");
        }
        (index.is_some_and(|dim| dim + 1 >= self.dims.len())).then_some("no such dimension")
    }
}
