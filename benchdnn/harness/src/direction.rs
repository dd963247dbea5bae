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
    /// The names with what they mean.
    const MEANINGS: [&'static str; 4] = [
        "FWD_D (training)",
        "FWD_I (inference)",
        "BWD_D (gradient of src)",
        "BWD_DW (gradients of src, scale and shift)",
    ];

    /// Reads a direction.
    pub fn parse(text: &str) -> Result<Direction, BadValue> {
        Direction::read(text, Direction::NAMES.len())
    }

    /// Reads a direction of a primitive without parameters.
    pub fn parse_without_parameters(text: &str) -> Result<Direction, BadValue> {
        Direction::read(text, 3)
    }

    /// Reads one of the first `count` directions.
    fn read(text: &str, count: usize) -> Result<Direction, BadValue> {
        one_of(text, &Direction::NAMES[..count]).map_err(|error| {
            let meanings = Direction::MEANINGS[..count].join(", ");
            BadValue { message: format!("'{text}' is none of {meanings}"), ..error }
        })
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

#[cfg(test)]
mod tests {
    use super::Direction;

    #[test]
    fn mistakes_name_the_directions_and_their_meanings() {
        for (at, (name, direction)) in Direction::NAMES.iter().enumerate() {
            assert_eq!(Direction::parse(name), Ok(*direction));
            let (said, meaning) = Direction::MEANINGS[at].split_once(' ').expect("a meaning");
            assert!(said == *name && meaning.starts_with('('));
        }
        let message = Direction::parse_without_parameters("BWD").expect_err("BWD").message;
        let names = "FWD_D (training), FWD_I (inference), BWD_D (gradient of src)";
        assert_eq!(message, format!("'BWD' is none of {names}"));
    }
}
