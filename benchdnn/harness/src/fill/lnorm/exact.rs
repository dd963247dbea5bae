//! Data with statistics that are exact in f32, which expose the known mistakes.
//!
//! A row is `unit * (middle + deviation)`, with small integers: an odd `middle` and even deviations
//! that are not 0 (so no element is 0). Deviations come in pairs of opposite sign, with one triple
//! if their number is odd. So the mean is `unit * middle`, and every partial sum of the elements,
//! of their squares and of the squared deviations is an integer below 2^24 times a power of two, in
//! any order of summation (up to 2^20 columns; beyond that only f64 or blocked sums are exact).
//!
//! Mistakes show because:
//! - the variance is near epsilon, so it matters whether epsilon is added inside the root;
//! - variances differ between rows and deviations between elements, so there are many different
//!   results, and a variance that is off by 1/cols moves some of them across a rounding boundary
//!   even in bf16;
//! - the last deviation is the largest and the last diff_dst four times the others, so every sum
//!   shows a lost last lane;
//! - backward, `variance + epsilon` is 4, 1/4 or 1 (for epsilon = 1/16), powers of four in any
//!   case; 1 comes last, because there gradients that differ by a factor `r` agree;
//! - `d = scale*diff_dst` is positive, and larger for elements farther from 0 than the mean than
//!   for any nearer: neither its mean nor that of `d*xhat` cancels.

use super::tensors::{LnormData, LnormShape};
use crate::data_type::DataType;
use crate::fill::generator::Generator;
use crate::fill::steps;
use crate::parallel::{self, GRAIN};

/// Streams of random numbers. Each tensor has its own, so that they are independent.
const SRC: u64 = 0x0053_5243;
const DIFF_DST: u64 = 0x4444_5354;

pub(super) fn fill(shape: &LnormShape, seed: u64, data: &mut LnormData) {
    let &LnormShape { rows, cols, .. } = shape;
    fill_parameters(shape, &mut data.scale, &mut data.shift);
    if rows == 0 || cols == 0 {
        return;
    }
    let largest = largest_integer(shape);
    let grain = GRAIN.div_ceil(cols);
    let plans: Vec<Row> = parallel::map(data.src.chunks_mut(cols), grain, &|row, src| {
        let mut generator = Generator::new(seed ^ SRC, row);
        fill_row(shape, row, largest, &mut generator, src)
    });
    data.mean.iter_mut().zip(&plans).for_each(|(mean, row)| *mean = row.mean);
    data.variance.iter_mut().zip(&plans).for_each(|(variance, row)| *variance = row.variance);

    if let Some(residual) = shape.steps.residual.filter(|_| shape.forward) {
        let units: Vec<f64> = plans.iter().map(|row| row.unit).collect();
        let src = &mut data.src;
        data.residual = steps::split(&residual, shape.src_dt, cols, &units, seed, src);
    }

    let scale = &data.scale;
    let rows = data.diff_dst.chunks_mut(cols).zip(data.src.chunks(cols)).zip(&plans);
    parallel::for_each(rows, grain, &|row, ((diff_dst, src), plan)| {
        let mut generator = Generator::new(seed ^ DIFF_DST, row);
        fill_diff_dst(&mut generator, src, plan.middle, diff_dst);
        // Exact, because these are powers of two.
        let factors = scale.iter().map(|&scale| power_near(shape.factor(scale)));
        diff_dst.iter_mut().zip(factors).for_each(|(diff_dst, factor)| *diff_dst /= factor);
    });
}

/// A scale that bf16 and f16 represent, and that bf16 loses when it is added to 1.
const TINY: f64 = 255.0 / 65_536.0;

/// The power of two at or below a factor, with its sign; 1 for 0.
pub(in crate::fill) fn power_near(factor: f64) -> f64 {
    // Without the fraction's bits.
    if factor == 0.0 { 1.0 } else { f64::from_bits(factor.to_bits() & (u64::MAX << 52)) }
}

/// Scales that are powers of two with either sign, but not 1, and shifts smaller than most results.
/// Every type represents both.
fn fill_parameters(shape: &LnormShape, scale: &mut [f64], shift: &mut [f64]) {
    const SCALES: [f64; 4] = [2.0, 0.5, 4.0, 0.25];
    // Integers saturate after a large gain; smaller scales make that rare.
    let gain = f64::from(shape.gain).max(8.0) / 8.0;
    let smaller = (-gain.log2().floor()).exp2();
    for (c, scale) in scale.iter_mut().enumerate() {
        let size = SCALES[(c + c / 4) % SCALES.len()];
        *scale = smaller * if c % 4 == 3 { -size } else { size };
        if shape.flags.round_first {
            // A power of two could be multiplied before the rounding as well.
            *scale *= 1.5;
        }
        if shape.flags.plus_one {
            *scale = match c % 2 {
                // When added to 1, these need more bits than bf16 has, so bf16 would lose them.
                0 if gain == 1.0 => TINY * if c % 4 == 0 { 1.0 } else { -0.5 },
                _ => shape.ss_dt.round(*scale - 1.0),
            };
        }
    }
    for (c, shift) in shift.iter_mut().enumerate() {
        let size = (1 + c * 3 % 7) as f64 / 16.0;
        *shift = if c % 2 == 1 { -size } else { size };
    }
    // A group of zeros, whose scale is 1.
    let group = shape.steps.group;
    if group > 0 && shape.cols >= 4 * group && !shape.flags.plus_one {
        scale.iter_mut().skip(group).take(group).for_each(|scale| *scale = 0.0);
        shift.iter_mut().skip(group).take(group).for_each(|shift| *shift = 0.0);
    }
}

/// The largest integer in a row. The types represent it, and the sum of that many squares is exact.
fn largest_integer(shape: &LnormShape) -> u64 {
    shape.types().map(|dt| largest_integer_of(dt, shape)).min().expect("src has a type")
}

fn largest_integer_of(dt: DataType, shape: &LnormShape) -> u64 {
    const EXACT: f64 = 16_777_216.0; // 2^24: f32 has every integer up to here
    let cols = shape.cols as f64;
    let of_type: f64 = match dt {
        // More bits than f32 has, to expose a library that computes in f32. The mean is exact, the sum of the squares
        // not quite. Given statistics are f32, so they need small integers.
        DataType::F64 if shape.forward && !shape.flags.global_stats => {
            return (1 << 27) - 1;
        }
        DataType::F32 | DataType::F64 => 4095.0,
        DataType::Bf16 | DataType::E8m0 => 127.0,
        DataType::F16 => 1023.0,
        DataType::F8E5m2 => 5.0,
        // The unit of integers is 1, so larger ones would make epsilon invisible.
        DataType::F8E4m3 | DataType::S8 | DataType::S32 | DataType::S64 => 15.0,
        // Twice as much, because there are no negative values.
        DataType::U8 => return (15.0_f64.min((EXACT / cols).sqrt() / 2.0) as u64).max(3),
    };
    // At least 3, to leave room for an odd middle and an even deviation.
    (of_type.min((EXACT / cols).sqrt()) as u64).max(3)
}

/// The parameters of a row.
struct Row {
    /// The elements are multiples of this.
    unit: f64,
    /// The mean of src.
    middle: f64,
    /// The statistics that are inputs.
    mean: f64,
    variance: f64,
}

fn fill_row(
    shape: &LnormShape,
    row: usize,
    largest: u64,
    generator: &mut Generator,
    src: &mut [f64],
) -> Row {
    // Deviations up to `reach`, twice an odd number. With two columns the deviations are +-reach, and a power of two
    // could make xhat exactly 1, where the gradient of rms_norm vanishes.
    let reach = 2 + 4 * upper_half((largest * 3 / 4 - 2) / 4 + 1, generator);
    // An odd number that leaves room for them.
    let middle = (1 + 2 * upper_half((largest - reach).div_ceil(2), generator)) as f64;
    let middle = match generator.bits() & 1 {
        // No element may be negative; the triple needs 4 even if the reach is 2.
        _ if shape.src_dt == DataType::U8 => middle + reach.max(4) as f64,
        1 => -middle,
        _ => middle,
    };

    // An odd offset of a given mean from the row's own, so that it equals no element.
    let offset = (reach / 2) as f64;

    let last_sign = match shape.src_dt {
        // Their middle is always positive; the last element must not always be above it.
        DataType::U8 if generator.bits() & 1 == 1 => -1.0,
        _ => middle.signum(),
    };
    let squares = fill_deviations(generator, reach, last_sign, src);
    let cols = src.len() as f64;
    let spread = match (shape.flags.rms_norm, src.len()) {
        (true, _) => (middle * middle + squares / cols).sqrt(),
        // A single column deviates only from a given mean.
        (false, 1) => offset,
        (false, _) => (squares / cols).sqrt(),
    };
    let epsilon = f64::from(shape.epsilon);
    let (unit, variance) = if shape.forward {
        forward_scale(row, spread, epsilon, level(shape))
    } else {
        backward_scale(row, spread, epsilon)
    };
    let wanted = unit;
    let lowest = shape.types().map(lowest_unit).fold(0.0, f64::max);
    let highest = shape.types().map(highest_unit).fold(f64::INFINITY, f64::min);
    let unit = unit.clamp(lowest, highest);
    // If the type cannot represent the unit, a given variance is scaled with the unit that is used.
    let given = shape.forward && shape.src_dt.is_integer();
    let variance = if given { variance * (unit / wanted) * (unit / wanted) } else { variance };
    src.iter_mut().for_each(|x| *x = (*x + middle) * unit);

    // A global mean other than the row's own exposes a library that computes its own. In backward the mean is the row's
    // own, as from a forward run, except for a single column, where the whole gradient would be 0.
    let own_mean = !shape.flags.global_stats && src.len() > 1;
    let offset = if own_mean { 0.0 } else { offset };
    Row {
        unit,
        middle: middle * unit,
        mean: DataType::F32.round((middle + offset) * unit),
        variance: DataType::F32.round(variance),
    }
}

/// A number in the upper half of `0..count`.
fn upper_half(count: u64, generator: &mut Generator) -> u64 {
    count / 2 + generator.below(count - count / 2)
}

/// The variance of forward data, relative to epsilon. Integer results would be 0 if small, and saturate if the gain is
/// large: xhat is about `30/gain`, at most near 1.
fn level(shape: &LnormShape) -> f64 {
    if !shape.dst_dt.is_integer() {
        return 0.6;
    }
    let square = (30.0 / f64::from(shape.gain)).min(1.0).powi(2);
    (square / (1.0 - square).max(0.1)).min(9.6)
}

/// Forward: the unit that makes the variance close to epsilon, and a given variance that differs from the row's own.
fn forward_scale(row: usize, spread: f64, epsilon: f64, level: f64) -> (f64, f64) {
    let reference = if epsilon > 0.0 { epsilon } else { 1.0 };
    // As the unit is a power of two, the variance is between half and twice the level. For epsilon
    // = 1/16, 3.5 must be avoided: there sqrt(variance) + epsilon equals the root.
    let unit = ((level * reference).sqrt() / spread).log2().round().exp2();
    (unit, reference * [0.25, 1.5, 0.125][row % 3])
}

/// Backward: the unit that makes the mean square of xhat between 1/2 and 1, and the variance.
fn backward_scale(row: usize, spread: f64, epsilon: f64) -> (f64, f64) {
    const LOWEST: f64 = 1.0 / 4096.0; // keeps the gradient within f16
    let least =
        if epsilon > 0.0 { (2.0 * (epsilon.log2() / 2.0).ceil()).exp2() * 4.0 } else { 0.25 };
    let square = least.max(LOWEST) * [16.0, 1.0, 4.0][row % 3];
    let unit = power_near(square.sqrt() / spread);
    (unit, square - epsilon)
}

/// The smallest unit whose odd multiples the type represents.
fn lowest_unit(dt: DataType) -> f64 {
    match dt {
        DataType::F16 | DataType::F8E5m2 | DataType::F8E4m3 => dt.ulp(0.0),
        DataType::S64 | DataType::S32 | DataType::S8 | DataType::U8 => 1.0,
        DataType::F32 | DataType::Bf16 | DataType::F64 | DataType::E8m0 => f64::exp2(-60.0),
    }
}

/// The largest unit, so that the type represents its largest multiple and f32 its square.
fn highest_unit(dt: DataType) -> f64 {
    match dt {
        DataType::F16 => 32.0,
        DataType::F8E5m2 => 4096.0,
        DataType::F8E4m3 => 16.0,
        DataType::S64 | DataType::S32 | DataType::S8 | DataType::U8 => 1.0,
        DataType::F32 | DataType::Bf16 | DataType::F64 | DataType::E8m0 => f64::exp2(40.0),
    }
}

/// Even numbers from 2 to `reach` with either sign that add up to 0. Returns the sum of their squares. The last is the
/// largest and has the given sign. A single deviation is 0.
fn fill_deviations(
    generator: &mut Generator,
    reach: u64,
    last_sign: f64,
    deviations: &mut [f64],
) -> f64 {
    let cols = deviations.len();
    let (triple, pairs) = match cols {
        1 => {
            deviations[0] = 0.0;
            return 0.0;
        }
        _ => deviations.split_at_mut(if cols % 2 == 1 { 3 } else { 0 }),
    };
    let mut squares = 0.0;
    if let [first, second, third] = triple {
        // Two smaller ones balance a larger one, which is 4 even if the reach is 2.
        let count = (reach / 2).max(2);
        let whole = 2.0 * count as f64;
        let part = 2.0 * (1 + generator.below(count - 1)) as f64;
        let sign = if cols == 3 || generator.bits() & 1 == 1 { last_sign } else { -last_sign };
        (*first, *second, *third) = (-sign * part, -sign * (whole - part), sign * whole);
        squares += part * part + (whole - part) * (whole - part) + whole * whole;
    }
    let pairs = pairs.as_chunks_mut::<2>().0;
    for pair in pairs.iter_mut() {
        let bits = generator.bits();
        let size = 2.0 * (1 + (((bits >> 32) * (reach / 2)) >> 32)) as f64;
        *pair = if bits & 1 == 1 { [size, -size] } else { [-size, size] };
        squares += 2.0 * size * size;
    }
    if let Some(last) = pairs.last_mut() {
        let largest = last_sign * reach as f64;
        squares += 2.0 * (largest * largest - last[0] * last[0]);
        *last = [-largest, largest];
    }
    squares
}

/// Numbers with few bits: 1/4, 3/8 or 1/2 divided by the scale, three times that for elements farther from 0 than the
/// middle, and four times that at the end.
fn fill_diff_dst(generator: &mut Generator, src: &[f64], middle: f64, diff_dst: &mut [f64]) {
    const SIZES: [f64; 4] = [0.25, 0.375, 0.5, 0.5];
    let mut bits = 0;
    for (c, (diff_dst, src)) in diff_dst.iter_mut().zip(src).enumerate() {
        if c % 32 == 0 {
            bits = generator.bits();
        }
        let is_farther = (src - middle) * middle >= 0.0;
        *diff_dst = SIZES[(bits & 3) as usize] * if is_farther { 3.0 } else { 1.0 };
        bits >>= 2;
    }
    if let Some(last) = diff_dst.last_mut() {
        *last *= 4.0;
    }
}
