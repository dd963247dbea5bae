//! What the driver needs from a library: a primitive descriptor for a request.

use super::problem::Direction;
use crate::attributes::Attributes;
use crate::executor::{Control, Prepared, Refusal};
use crate::fill::DataType;
use crate::oracle::lnorm::Flags;
use crate::tensor::Layout;

/// The layout that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The library chooses.
    Any,
    /// No descriptor is passed.
    Null,
    /// Dense, the dimensions in this order, outermost first.
    Ordered(Vec<usize>),
    /// These very strides.
    Strided(Layout),
}

/// Type and layout of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRequest {
    /// The type.
    pub data_type: DataType,
    /// The layout.
    pub wanted: Wanted,
}

/// What a primitive descriptor is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is computed.
    pub direction: Direction,
    /// Dimensions of src and dst.
    pub dims: Vec<usize>,
    /// src and diff_src.
    pub src: TensorRequest,
    /// dst and diff_dst.
    pub dst: TensorRequest,
    /// mean and variance: one dimension less.
    pub stat: TensorRequest,
    /// Type of scale, shift and their gradients.
    pub ss_dt: DataType,
    /// Added to the variance inside the root.
    pub epsilon: f32,
    /// The kind of normalization.
    pub flags: Flags,
    /// Factors, post-ops and the like.
    pub attributes: Attributes,
}

/// A library as this driver sees it.
pub trait Executor: Control {
    /// Makes a primitive descriptor with the library's first implementation.
    fn prepare(&self, request: &Request) -> Result<Box<dyn Prepared>, Refusal>;
}
