//! One gated activation: its parameters.

use crate::attributes::{Attributes, Context};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::oracle::gated::Function;
use crate::tensor::Tag;
use std::ops::RangeInclusive;

/// Names and functions for `--alg`.
pub(super) const FUNCTIONS: [(&str, Function); 6] = [
    ("SWISH", Function::Swish),
    ("GELU_ERF", Function::GeluErf),
    ("GELU_TANH", Function::GeluTanh),
    ("RELU", Function::Relu),
    ("LOGISTIC", Function::Logistic),
    ("LINEAR", Function::Linear),
];

/// The packing of gate and up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// In two tensors.
    #[default]
    Separate,
    /// The gate is the first half of each row.
    GateFirst,
    /// The gate is the second half.
    UpFirst,
    /// The gate is in the even columns.
    Interleaved,
}

impl Packing {
    /// Names and packings for `--packing`.
    pub(super) const NAMES: [(&'static str, Packing); 4] = [
        ("separate", Packing::Separate),
        ("gate_first", Packing::GateFirst),
        ("up_first", Packing::UpFirst),
        ("interleaved", Packing::Interleaved),
    ];

    pub(super) fn name(self) -> &'static str {
        Packing::NAMES[self as usize].0
    }
}

/// The numbers of dimensions that the primitive supports.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 1..=12;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct GatedProblem {
    /// Dimensions of dst.
    pub dims: Vec<usize>,
    /// Its name; often empty.
    pub name: String,
    /// What is computed.
    pub direction: Direction,
    /// The function of the gate.
    pub function: Function,
    /// The packing of gate and up.
    pub packing: Packing,
    /// Type of src and its gradient.
    pub src_dt: DataType,
    /// Type of dst and its gradient.
    pub dst_dt: DataType,
    /// Layout of src.
    pub src_tag: Tag,
    /// Layout of dst.
    pub dst_tag: Tag,
    /// The function's number.
    pub alpha: f32,
    /// The limit of gate and up; infinite for none.
    pub limit: f32,
    /// Added to up.
    pub shift: f32,
    /// Whether backward also writes dst.
    pub rewrites: bool,
    /// Scales and post-ops.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Whether dst, or diff_src, shares the buffer of src.
    pub inplace: bool,
}

impl Default for GatedProblem {
    /// No dimensions, and the simplest choice for everything else.
    fn default() -> GatedProblem {
        GatedProblem {
            dims: Vec::new(),
            name: String::new(),
            direction: Direction::default(),
            function: Function::default(),
            packing: Packing::default(),
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            src_tag: Tag::parse("abx").expect("a tag"),
            dst_tag: Tag::Any,
            alpha: 1.0,
            limit: f32::INFINITY,
            shift: 0.0,
            rewrites: false,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            inplace: false,
        }
    }
}
