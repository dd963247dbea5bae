//! One rope: its parameters.

use super::choices::{Angles, Flags};
use crate::attributes::{Attributes, Context};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::oracle::rope::Pairing;
use crate::tensor::Tag;
use std::ops::RangeInclusive;

/// The numbers of dimensions that the primitive supports.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 2..=6;

/// Names for `--pairing`.
pub(super) const PAIRINGS: [(&str, Pairing); 3] = [
    ("INTERLEAVED", Pairing::Interleaved),
    ("HALF", Pairing::Half),
    ("HALF_OF_HEAD", Pairing::HalfOfHead),
];

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeProblem {
    /// Dimensions of src.
    pub dims: Vec<usize>,
    /// Its name; often empty.
    pub name: String,
    /// What is computed.
    pub direction: Direction,
    /// Which elements form a pair.
    pub pairing: Pairing,
    /// The source of cosines and sines.
    pub angles: Angles,
    /// Type of src and diff_src.
    pub src_dt: DataType,
    /// Type of dst and diff_dst.
    pub dst_dt: DataType,
    /// Type of positions.
    pub position_dt: DataType,
    /// Type of tables.
    pub table_dt: DataType,
    /// Layout of src.
    pub src_tag: Tag,
    /// Layout of dst.
    pub dst_tag: Tag,
    /// The dimensions that have positions, as letters; empty for the usual ones.
    pub tokens: String,
    /// The dimension whose index is added to positions, or -1.
    pub index_dim: i32,
    /// The elements of a head that are rotated; 0 for all.
    pub rotary: usize,
    /// The factor of cosines and sines.
    pub magnitude: f32,
    /// Pairs of each part of a position; empty for one part.
    pub sections: Vec<usize>,
    /// Added under the root of a normalization.
    pub epsilon: f32,
    /// The normalization, slots and the order of sections.
    pub flags: Flags,
    /// The positions are below this number.
    pub limit: usize,
    /// Only the scratchpad mode.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Whether dst shares the buffer of src, or diff_src that of diff_dst.
    pub inplace: bool,
}

impl Default for RopeProblem {
    /// No dimensions, and the simplest choice for everything else.
    fn default() -> RopeProblem {
        RopeProblem {
            dims: Vec::new(),
            name: String::new(),
            direction: Direction::default(),
            pairing: Pairing::default(),
            angles: Angles::default(),
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            position_dt: DataType::S32,
            table_dt: DataType::F32,
            src_tag: Tag::parse("abx").expect("a tag"),
            dst_tag: Tag::Any,
            tokens: String::new(),
            index_dim: -1,
            rotary: 0,
            magnitude: 1.0,
            sections: Vec::new(),
            epsilon: 1e-6,
            flags: Flags::default(),
            limit: 1 << 20,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            inplace: false,
        }
    }
}
