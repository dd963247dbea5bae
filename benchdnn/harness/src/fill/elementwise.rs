//! Data of elementwise functions of one tensor and of two: small whole numbers and fractions, values near the
//! parameters, values far outside the region where the function changes, and values at which an exponential overflows.

use super::Fill;
use super::generator::Generator;
use crate::data_type::DataType;
use crate::oracle::eltwise::{Function, is_for_positive, kinks};
use crate::oracle::post_ops::BinaryAlgorithm;

/// Streams of random numbers for each tensor.
const SRC: u64 = 0x656c_7477;
const DIFF_DST: u64 = 0x6469_6666;
const OPERANDS: u64 = 0x6269_6e61;

/// The values of src. For differences, they avoid points where the function is not smooth.
pub fn eltwise(
    count: usize,
    dt: DataType,
    function: Function,
    smooth: bool,
    fill: Fill,
) -> Vec<f64> {
    let positive = is_for_positive(function.algorithm);
    let value = |index: usize| {
        let mut generator = Generator::new(SRC, index);
        match fill {
            _ if smooth => away_from(&kinks(function), positive, &mut generator),
            Fill::Exact => element(index, dt, function, &mut generator),
            Fill::Random => random(index, dt, &mut generator),
            Fill::Perf => 3.0 * generator.normal(),
        }
    };
    (0..count).map(|index| dt.round(value(index))).collect()
}

/// The values of diff_dst.
pub fn gradient(count: usize, dt: DataType) -> Vec<f64> {
    let value = |index| {
        let mut generator = Generator::new(DIFF_DST, index);
        // Not 0, which hides the derivative.
        let size = 1.0 + generator.below(15) as f64;
        let size = if dt == DataType::F64 { size + generator.fraction(dt) } else { size };
        if generator.below(2) == 0 { size / 8.0 } else { -size / 8.0 }
    };
    (0..count).map(|index| dt.round(value(index))).collect()
}

/// The values of source number `source` of a function of two tensors; 2 is the condition.
pub fn operand(
    count: usize,
    dt: DataType,
    algorithm: BinaryAlgorithm,
    source: u64,
    fill: Fill,
) -> Vec<f64> {
    let value = |index: usize| {
        let mut generator = Generator::new(OPERANDS + source, index);
        if source == 2 {
            return generator.below(2) as f64;
        }
        if fill == Fill::Random {
            return random(index, dt, &mut generator);
        }
        // Halves from one source and whole numbers from the other are often equal, but not always.
        let whole = match algorithm.is_comparison() {
            // Few numbers, so that equal ones are frequent. Element 0, which may be broadcast to all others, is 1.
            true if index == 0 => 1.0,
            true => generator.below(5) as f64 - 1.0,
            false => generator.below(17) as f64 - 8.0,
        };
        let whole = if dt == DataType::U8 { whole.abs() } else { whole };
        match (source, algorithm) {
            _ if algorithm.is_comparison() => whole,
            (0, _) if dt.is_integer() => whole,
            // After subtracting an unsigned one, half of the results are positive.
            (0, BinaryAlgorithm::Sub) => whole / 2.0 + 4.0,
            (0, _) => whole / 2.0,
            (_, BinaryAlgorithm::Div | BinaryAlgorithm::Mul) if whole == 0.0 => 1.0,
            _ => whole,
        }
    };
    (0..count).map(|index| dt.round(value(index))).collect()
}

/// A value of many magnitudes, sometimes infinite.
fn random(index: usize, dt: DataType, generator: &mut Generator) -> f64 {
    let value = generator.normal();
    if dt.is_integer() {
        return 40.0 * value;
    }
    match index % 64 {
        7 => f64::INFINITY,
        21 => f64::NEG_INFINITY,
        35 => -0.0,
        49 => value * 1e-38,
        50 => value * 1e38,
        _ => value * [1.0, 0.01, 10.0, 100.0][index % 4],
    }
}

/// One of the kinds of values.
fn element(index: usize, dt: DataType, function: Function, generator: &mut Generator) -> f64 {
    let Function { algorithm, alpha, beta } = function;
    let (small, fraction) = (generator.below(11) as f64, generator.fraction(dt));
    // The logarithm of the largest number.
    let largest = if dt == DataType::F64 { 709.0 } else { 88.0 };
    let positive = is_for_positive(algorithm) || dt == DataType::U8;
    let sign = if generator.below(2) == 0 && !positive { -1.0 } else { 1.0 };
    let kinks = kinks(function);
    match index % 16 {
        // Between two kinks, which the other values may miss.
        4..8 if kinks.len() == 2 => kinks[0] + (kinks[1] - kinks[0]) * fraction,
        0..3 => sign * small,
        3..6 => sign * fraction,
        6..8 => sign * 4.0 * fraction,
        8 => sign * 0.09 * fraction,
        9 => sign * 10.0 * small,
        // Around this number, its half and its quarter.
        10 => largest + fraction,
        11 => largest / 2.0 + fraction,
        12 => largest / 4.0 + fraction,
        13 => alpha,
        14 => beta,
        // Outside the domain the result is NaN.
        _ => -fraction,
    }
}

/// A value at some distance from each of these points, and from non-positive ones if required.
fn away_from(points: &[f64], positive: bool, generator: &mut Generator) -> f64 {
    const DISTANCE: f64 = 0.125;
    // Values between the points reveal more.
    let middle = points.iter().sum::<f64>() / points.len().max(1) as f64;
    let middle = (middle * 16.0).round() / 16.0;
    let width = match points {
        [low, high] if low != high => (high - low).abs(),
        _ => 4.0,
    };
    let scale = if width < 1.0 { 0.25 } else { 1.0 };
    for _ in 0..64 {
        let below = generator.below(64) as f64 / 16.0;
        let value = if positive { 0.5 + below } else { middle + (below - 2.0) * scale };
        if points.iter().all(|point| (value - point).abs() > DISTANCE) {
            return value;
        }
    }
    // If there is no room between the points, a value beyond all of them.
    points.iter().fold(4.0, |most: f64, point| most.max(point.ceil() + 1.0))
}
