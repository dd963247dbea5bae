//! One softmax: its parameters, and what follows from them.

use crate::attributes::{Attributes, Context};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::oracle::softmax::{Arithmetic, Rows};
use crate::tensor::Tag;
use std::ops::RangeInclusive;

/// The function of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The quotients of the exponentials and their sum.
    #[default]
    Softmax,
    /// Their logarithms.
    Logsoftmax,
    /// The quotients, or zeros for a row that is all -Inf.
    InfAsZero,
}

impl Algorithm {
    /// Names and algorithms for `--alg`; the short ones come first.
    pub const NAMES: [(&'static str, Algorithm); 5] = [
        ("SOFTMAX", Algorithm::Softmax),
        ("LOGSOFTMAX", Algorithm::Logsoftmax),
        ("softmax_accurate_inf_as_zero", Algorithm::InfAsZero),
        ("softmax_accurate", Algorithm::Softmax),
        ("softmax_log", Algorithm::Logsoftmax),
    ];

    pub(super) fn name(self) -> &'static str {
        Algorithm::NAMES[self as usize].0
    }
}

/// The numbers of dimensions that the primitive supports.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 1..=12;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftmaxProblem {
    /// Dimensions.
    pub dims: Vec<usize>,
    /// Its name; often empty.
    pub name: String,
    /// What is computed.
    pub direction: Direction,
    /// The function of a row.
    pub algorithm: Algorithm,
    /// The dimension of the rows.
    pub axis: usize,
    /// Type of src and diff_src.
    pub src_dt: DataType,
    /// Type of dst and diff_dst.
    pub dst_dt: DataType,
    /// Layout of src.
    pub src_tag: Tag,
    /// Layout of dst.
    pub dst_tag: Tag,
    /// Scales and post-ops.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Layout of the logarithms of the sums; `undef` if they are not stored.
    pub stats_tag: Tag,
    /// Whether dst shares the buffer of src, or diff_src that of diff_dst.
    pub inplace: bool,
}

impl Default for SoftmaxProblem {
    /// No dimensions, and the simplest choice for everything else.
    fn default() -> SoftmaxProblem {
        SoftmaxProblem {
            dims: Vec::new(),
            name: String::new(),
            direction: Direction::default(),
            algorithm: Algorithm::default(),
            axis: 1,
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            src_tag: Tag::parse("abx").expect("a tag"),
            dst_tag: Tag::Any,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            stats_tag: Tag::Undef,
            inplace: false,
        }
    }
}

impl SoftmaxProblem {
    pub(super) fn rows(&self) -> Rows {
        Rows::of(&self.dims, self.axis)
    }

    /// f64 if a tensor is.
    pub(super) fn arithmetic(&self) -> Arithmetic {
        match [self.src_dt, self.dst_dt].contains(&DataType::F64) {
            true => Arithmetic::F64,
            false => Arithmetic::F32,
        }
    }

    pub(super) fn log(&self) -> bool {
        self.algorithm == Algorithm::Logsoftmax
    }

    /// The dimensions of the logarithms of the sums.
    pub(super) fn stats_dims(&self) -> Vec<usize> {
        let mut dims = self.dims.clone();
        dims[self.axis] = 1;
        dims
    }

    pub(super) fn has_stats(&self) -> bool {
        self.direction.is_forward() && self.stats_tag != Tag::Undef
    }
}
