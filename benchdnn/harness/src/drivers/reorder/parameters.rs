//! One reorder: its parameters, and what follows from them.

use crate::attributes::{Attributes, Context};
use crate::data_type::DataType;
use crate::tensor::{Layout, Tag};
use std::ops::RangeInclusive;

/// The numbers of dimensions that the primitive supports.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 1..=12;

/// The compensation that dst stores for a convolution, as written: `FLAG:MASK[+...]`.
pub(super) type Extra = String;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct ReorderProblem {
    /// Dimensions.
    pub dims: Vec<usize>,
    /// Its name; often empty.
    pub name: String,
    /// Type of src.
    pub src_dt: DataType,
    /// Type of dst.
    pub dst_dt: DataType,
    /// Names of src's and dst's types if the library does not have them. The types above replace them.
    pub absent: [Option<&'static str>; 2],
    /// Layout of src.
    pub src_tag: Tag,
    /// Layout of dst.
    pub dst_tag: Tag,
    /// Strides of src and dst, which override the tags; empty to use the tag.
    pub strides: [Vec<usize>; 2],
    /// See `Extra`; empty for nothing.
    pub extra: String,
    /// Bits of the dimensions that are known only at execution.
    pub runtime_dims: u64,
    /// Scales, zero points and a sum.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
}

impl Default for ReorderProblem {
    /// No dimensions, and the simplest choice for everything else.
    fn default() -> ReorderProblem {
        let plain = Tag::parse("abx").expect("a tag");
        ReorderProblem {
            dims: Vec::new(),
            name: String::new(),
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            absent: [None; 2],
            src_tag: plain.clone(),
            dst_tag: plain,
            strides: [Vec::new(), Vec::new()],
            extra: String::new(),
            runtime_dims: 0,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
        }
    }
}

impl ReorderProblem {
    /// Elements of the tensor.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// The layouts of src and dst.
    pub fn layouts(&self) -> [Layout; 2] {
        let sides = [
            (&self.src_tag, &self.strides[0], self.src_dt),
            (&self.dst_tag, &self.strides[1], self.dst_dt),
        ];
        sides.map(|(tag, strides, data_type)| {
            if !strides.is_empty() {
                return Layout::strided(&self.dims, strides, data_type);
            }
            match tag.order(self.dims.len()).expect("checked with the descriptor") {
                Some(order) => Layout::blocked(&self.dims, &order, tag.blocks(), data_type),
                None => Layout::dense(&self.dims, data_type),
            }
        })
    }
}
