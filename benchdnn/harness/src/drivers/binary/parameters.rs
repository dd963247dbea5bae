//! One function of two tensors: its parameters, and what follows from them.

use crate::attributes::{Attributes, Context};
use crate::data_type::DataType;
use crate::oracle::post_ops::BinaryAlgorithm;
use crate::tensor::Tag;
use std::ops::RangeInclusive;

/// The numbers of dimensions that the primitive supports.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 1..=12;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct BinaryProblem {
    /// Dimensions of the sources, and of the condition if given.
    pub dims: Vec<Vec<usize>>,
    /// Its name; often empty.
    pub name: String,
    /// The function.
    pub algorithm: BinaryAlgorithm,
    /// Types of the sources.
    pub src_dts: [DataType; 2],
    /// Type of dst.
    pub dst_dt: DataType,
    /// Layouts of the sources and the condition, as far as given.
    pub src_tags: Vec<Tag>,
    /// Layout of dst.
    pub dst_tag: Tag,
    /// Scales and post-ops.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Whether dst shares the buffer of src0.
    pub inplace: bool,
}

impl Default for BinaryProblem {
    /// No dimensions, and the simplest choice for everything else.
    fn default() -> BinaryProblem {
        BinaryProblem {
            dims: Vec::new(),
            name: String::new(),
            algorithm: BinaryAlgorithm::Add,
            src_dts: [DataType::F32; 2],
            dst_dt: DataType::F32,
            src_tags: vec![Tag::parse("abx").expect("a tag"), Tag::Any],
            dst_tag: Tag::Any,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            inplace: false,
        }
    }
}

impl BinaryProblem {
    /// The number of sources, including the condition.
    pub(super) fn sources(&self) -> usize {
        if self.algorithm.is_ternary() { 3 } else { 2 }
    }

    /// The dimensions of a source. The condition has those of the first source if none were given.
    pub(super) fn source_dims(&self, source: usize) -> &[usize] {
        self.dims.get(source).unwrap_or(&self.dims[0])
    }

    pub(super) fn source_type(&self, source: usize) -> DataType {
        self.src_dts.get(source).copied().unwrap_or(DataType::S8)
    }

    /// The dimensions of dst.
    pub fn dst_dims(&self) -> Vec<usize> {
        let pairs = self.dims[0].iter().zip(&self.dims[1]);
        pairs.map(|(&a, &b)| if a == 1 { b } else { a }).collect()
    }
}
