//! The tensors of attributes, and the previous contents of an output that is added to.
//!
//! Neighbours along every dimension differ, so that a wrong broadcast shows. Every value is representable in its type.
//! Operands have the magnitude of normalized values, and both signs if the type has both, so that comparisons, `max`
//! and `min` choose either side.

use crate::attributes::{AttributeTensor, Source, Value};
use crate::data_type::DataType;
use crate::oracle::post_ops::BinaryAlgorithm;

/// The values of an attribute's tensor.
pub fn attribute(tensor: &AttributeTensor) -> Vec<f64> {
    let count: usize = tensor.dims.iter().product();
    let dt = tensor.data_type;
    match &tensor.source {
        Source::Quantization(quantization) => match quantization.value {
            Value::Given(value) => vec![dt.round(f64::from(value)); count],
            // Powers of two as factors, small numbers as zero points.
            Value::Filled if dt.is_integer() => (0..count).map(|i| (i * 5 % 7) as f64).collect(),
            Value::Filled => (0..count).map(|i| [2.0, 0.5, 4.0, 1.0, 0.25][i % 5]).collect(),
        },
        Source::Operand(binary) => spread(&tensor.dims, |i| operand(binary.algorithm, dt, i)),
        Source::Mask(_) => Vec::new(),
        Source::Number(value) => vec![*value],
        Source::Condition => spread(&tensor.dims, |i| f64::from(u8::from(i % 5 % 2 == 0))),
    }
}

/// The previous contents of a tensor with these dimensions.
pub fn before(dims: &[usize], dt: DataType) -> Vec<f64> {
    spread(dims, |i| operand(BinaryAlgorithm::Add, dt, i + 1))
}

fn operand(algorithm: BinaryAlgorithm, dt: DataType, i: usize) -> f64 {
    const WHOLE: [f64; 7] = [1.0, -2.0, 3.0, -1.0, 2.0, -3.0, 4.0];
    const HALVES: [f64; 7] = [0.25, -0.5, 0.75, -1.0, 1.5, -0.125, 1.0];
    // A factor of 0 would hide the value, and so would a large divisor.
    const FACTORS: [f64; 7] = [2.0, -1.0, 4.0, -2.0, 1.0, -4.0, 2.0];
    const DIVISORS: [f64; 7] = [0.5, -1.0, 2.0, -0.25, 1.0, -2.0, 0.5];
    let value = match (algorithm, dt.is_integer()) {
        (BinaryAlgorithm::Mul | BinaryAlgorithm::Div, true) => FACTORS[i % 7],
        (BinaryAlgorithm::Mul | BinaryAlgorithm::Div, false) => DIVISORS[i % 7],
        (_, true) => WHOLE[i % 7],
        (_, false) => HALVES[i % 7],
    };
    if dt == DataType::U8 { value.abs() } else { value }
}

/// A value for each element, made from a number that differs between neighbours in every dimension.
fn spread(dims: &[usize], value: impl Fn(usize) -> f64) -> Vec<f64> {
    let count: usize = dims.iter().product();
    let last = dims.last().copied().unwrap_or(1).max(1);
    (0..count).map(|i| value(i % last + i / last * 3)).collect()
}
