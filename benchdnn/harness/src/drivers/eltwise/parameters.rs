//! One elementwise function of a tensor: its parameters, and what follows from them.

use crate::attributes::{Attributes, Context};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::oracle::eltwise::{Function, reads_dst};
use crate::oracle::post_ops::EltwiseAlgorithm;
use crate::tensor::Tag;
use norm_sys::{NORM_ARG_DST, NORM_ARG_SRC};
use std::ops::RangeInclusive;

/// The numbers of dimensions that the primitive supports.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 1..=12;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct EltwiseProblem {
    /// Dimensions.
    pub dims: Vec<usize>,
    /// Its name; often empty.
    pub name: String,
    /// What is computed.
    pub direction: Direction,
    /// The function.
    pub algorithm: EltwiseAlgorithm,
    /// Its first parameter.
    pub alpha: f32,
    /// Its second parameter.
    pub beta: f32,
    /// Type of src and diff_src.
    pub src_dt: DataType,
    /// Type of dst and diff_dst.
    pub dst_dt: DataType,
    /// Layout of src.
    pub src_tag: Tag,
    /// Layout of dst.
    pub dst_tag: Tag,
    /// Post-ops.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Whether dst shares the buffer of src, or diff_src that of diff_dst.
    pub inplace: bool,
    /// Whether data avoids the points where the function has no derivative.
    pub smooth: bool,
}

impl Default for EltwiseProblem {
    /// No dimensions, and the simplest choice for everything else.
    fn default() -> EltwiseProblem {
        EltwiseProblem {
            dims: Vec::new(),
            name: String::new(),
            direction: Direction::default(),
            algorithm: EltwiseAlgorithm::Relu,
            alpha: 0.0,
            beta: 0.0,
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            src_tag: Tag::parse("abx").expect("a tag"),
            dst_tag: Tag::Any,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            inplace: false,
            smooth: false,
        }
    }
}

impl EltwiseProblem {
    /// The function with its parameters.
    pub fn function(&self) -> Function {
        let (alpha, beta) = (f64::from(self.alpha), f64::from(self.beta));
        Function { algorithm: self.algorithm, alpha, beta }
    }

    /// Whether a tensor, and hence the arithmetic, is f64.
    pub(super) fn is_wide(&self) -> bool {
        [self.src_dt, self.dst_dt].contains(&DataType::F64)
    }

    pub(super) fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// The tensor that backward reads besides diff_dst.
    pub(super) fn read(&self) -> (i32, &'static str, DataType) {
        match reads_dst(self.algorithm) {
            true => (NORM_ARG_DST, "dst", self.dst_dt),
            false => (NORM_ARG_SRC, "src", self.src_dt),
        }
    }
}
