//! The directions of primitives that have a gradient.

use crate::language::value::{BadValue, one_of};
use norm_sys::{
    norm_backward, norm_backward_data, norm_forward_inference, norm_forward_training,
    norm_prop_kind_t,
};

/// The direction of a primitive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Forward for training.
    #[default]
    ForwardTraining,
    /// Forward for inference.
    ForwardInference,
    /// The gradient of src.
    BackwardData,
    /// The gradients of src and of the parameters.
    Backward,
}

impl Direction {
    /// Names and directions for `--dir`.
    const NAMES: [(&'static str, Direction); 4] = [
        ("FWD_D", Direction::ForwardTraining),
        ("FWD_I", Direction::ForwardInference),
        ("BWD_D", Direction::BackwardData),
        ("BWD_DW", Direction::Backward),
    ];

    /// Reads a direction.
    pub fn parse(text: &str) -> Result<Direction, BadValue> {
        one_of(text, &Direction::NAMES)
    }

    /// Reads a direction of a primitive without parameters.
    pub fn parse_without_parameters(text: &str) -> Result<Direction, BadValue> {
        one_of(text, &Direction::NAMES[..3])
    }

    /// Whether it is a forward direction.
    pub fn is_forward(self) -> bool {
        matches!(self, Direction::ForwardTraining | Direction::ForwardInference)
    }

    /// The name for `--dir`.
    pub fn name(self) -> &'static str {
        Direction::NAMES[self as usize].0
    }

    /// The C interface's enumerator.
    pub fn prop_kind(self) -> norm_prop_kind_t {
        match self {
            Direction::ForwardTraining => norm_forward_training,
            Direction::ForwardInference => norm_forward_inference,
            Direction::BackwardData => norm_backward_data,
            Direction::Backward => norm_backward,
        }
    }
}
