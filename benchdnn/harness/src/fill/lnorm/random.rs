//! Realistic data: normally distributed values, rows with their own mean and deviation, and occasionally a row of
//! another magnitude. In backward, the statistics are the row's own, rounded to f32, as from a forward run.

use super::tensors::{LnormData, LnormShape};
use crate::data_type::DataType;
use crate::fill::generator::Generator;
use crate::fill::steps;
use crate::oracle::steps::sum;
use crate::parallel::{self, GRAIN};

/// Streams of random numbers. Each tensor has its own, so that they are independent.
const SRC: u64 = 0x0053_5243;
const DIFF_DST: u64 = 0x4444_5354;
const PARAMETERS: u64 = 0x5041_5241;

pub(super) fn fill(shape: &LnormShape, seed: u64, data: &mut LnormData) {
    let &LnormShape { cols, src_dt, dst_dt, ss_dt, .. } = shape;
    let mut generator = Generator::new(seed ^ PARAMETERS, 0);
    data.scale.iter_mut().for_each(|g| *g = ss_dt.round(1.0 + 0.5 * generator.normal()));
    data.shift.iter_mut().for_each(|b| *b = ss_dt.round(0.5 * generator.normal()));
    if cols == 0 {
        return;
    }
    let grain = GRAIN.div_ceil(cols);
    let fill_row = |row: usize, src: &mut [f64]| {
        let mut generator = Generator::new(seed ^ SRC, row);
        let (mean, deviation) = magnitude(src_dt, &mut generator);
        src.iter_mut().for_each(|x| *x = src_dt.round(mean + deviation * generator.normal()));
        generator
    };
    let generators: Vec<Generator> = parallel::map(data.src.chunks_mut(cols), grain, &fill_row);
    if let Some(residual) = shape.steps.residual.filter(|_| shape.forward) {
        data.residual = steps::random_residual(residual.data_type, cols, seed, &data.src);
    }
    let of_row = |row: usize, mut generator: Generator| {
        statistics(shape, &normalized(shape, row, data), &mut generator)
    };
    let statistics: Vec<(f64, f64)> = parallel::map(generators.into_iter(), grain, &of_row);
    data.mean.iter_mut().zip(&statistics).for_each(|(mean, s)| *mean = s.0);
    data.variance.iter_mut().zip(&statistics).for_each(|(variance, s)| *variance = s.1);
    parallel::for_each(data.diff_dst.chunks_mut(cols), grain, &|row, diff_dst: &mut [f64]| {
        let mut generator = Generator::new(seed ^ DIFF_DST, row);
        diff_dst.iter_mut().for_each(|d| *d = dst_dt.round(0.25 * generator.normal()));
    });
}

/// The elements of a row that are normalized.
fn normalized(shape: &LnormShape, row: usize, data: &LnormData) -> Vec<f64> {
    let range = row * shape.cols..(row + 1) * shape.cols;
    let residual = data.residual.get(range.clone()).unwrap_or_default();
    let gate = data.gate.get(range).unwrap_or_default();
    let mut x = data.src[row * shape.cols..][..shape.cols].to_vec();
    x.iter_mut().zip(residual).for_each(|(x, residual)| *x = sum(*x, *residual));
    if let Some(step) = shape.steps.gate.filter(|_| shape.flags.gate_input) {
        x.iter_mut().zip(gate).for_each(|(x, gate)| *x *= step.function.of(*gate).value);
    }
    x
}

/// Mean and deviation of a row. One row in sixteen is far from 1. If the type has the range of f32, squares of some
/// rows overflow or underflow in f32.
fn magnitude(dt: DataType, generator: &mut Generator) -> (f64, f64) {
    let deviation = [0.5, 1.0, 2.0, 4.0][generator.below(4) as usize];
    let mean = deviation * generator.normal();
    match dt {
        // Integers that rarely saturate.
        DataType::U8 => return (128.0 + 4.0 * mean, 10.0 * deviation),
        DataType::S8 | DataType::S32 => return (4.0 * mean, 10.0 * deviation),
        _ => {}
    }
    let wide = !matches!(dt, DataType::F16 | DataType::F8E5m2 | DataType::F8E4m3);
    match generator.below(64) {
        0 => (64.0 * deviation, deviation),
        1 => (mean * 1e-3, deviation * 1e-3),
        2 if wide => (mean * 1e20, deviation * 1e20),
        3 if wide => (mean * 1e-30, deviation * 1e-30),
        2 | 3 => (mean * 1e3, deviation * 1e3),
        _ => (mean, deviation),
    }
}

/// The given mean and variance of a row, as f32 values.
fn statistics(shape: &LnormShape, src: &[f64], generator: &mut Generator) -> (f64, f64) {
    if shape.forward && !shape.flags.global_stats {
        return (0.0, 0.0); // they are outputs
    }
    let counted = if shape.steps.partial == 0 { src.len() } else { shape.steps.partial };
    let src = &src[..counted.min(src.len())];
    let count = src.len() as f64;
    let own_mean = if shape.flags.rms_norm { 0.0 } else { src.iter().sum::<f64>() / count };
    let own_variance = src.iter().map(|x| (x - own_mean) * (x - own_mean)).sum::<f64>() / count;
    let (mean, variance) = if shape.flags.global_stats {
        // The statistics of another sample, near the row's own.
        let deviation = own_variance.sqrt();
        (
            own_mean + 0.25 * deviation * generator.normal(),
            own_variance * (1.0 + 0.25 * generator.normal()),
        )
    } else {
        (own_mean, own_variance)
    };
    (DataType::F32.round(mean), DataType::F32.round(variance))
}

/// Odd multiples of 1/128 between -2 and 2, which every type represents, eight from each random number: mean 0,
/// variance 1, scales near 1. No value is 0, because activations rarely are and special cases for zeros should not be
/// timed.
pub(super) fn fill_plainly(shape: &LnormShape, seed: u64, data: &mut LnormData) {
    // Integers would be zeros and ones; halves are rounded below.
    let (base, step) = match shape.src_dt {
        DataType::U8 => (128.0, 0.5),
        dt if dt.is_integer() => (0.0, 0.5),
        _ => (0.0, 1.0 / 128.0),
    };
    let fill = |stream: u64, values: &mut [f64], base: f64, step: f64| {
        parallel::for_each(values.chunks_mut(GRAIN), 1, &|chunk, values: &mut [f64]| {
            let mut generator = Generator::new(seed ^ stream, chunk);
            for eight in values.chunks_mut(8) {
                let bytes = generator.bits().to_le_bytes();
                for (value, byte) in eight.iter_mut().zip(bytes) {
                    *value = base + step * f64::from(2 * i32::from(byte as i8) + 1);
                }
            }
        });
    };
    fill(SRC, &mut data.src, base, step);
    if shape.src_dt.size() == 1 {
        parallel::change(&mut data.src, &|_, x| *x = shape.src_dt.round(*x));
    }
    fill(DIFF_DST, &mut data.diff_dst, 0.0, 1.0 / 128.0);
    fill(PARAMETERS, &mut data.scale, 1.0, 1.0 / 512.0);
    fill(PARAMETERS + 1, &mut data.shift, 0.0, 1.0 / 128.0);
    for tensor in [&mut data.scale, &mut data.shift] {
        tensor.iter_mut().for_each(|value| *value = shape.ss_dt.round(*value));
    }
    if let Some(residual) = shape.steps.residual.filter(|_| shape.forward) {
        data.residual = vec![0.0; data.src.len()];
        fill(PARAMETERS + 2, &mut data.residual, 0.0, 1.0 / 128.0);
        parallel::change(&mut data.residual, &|_, x| *x = residual.data_type.round(*x));
    }
    data.variance.fill(1.0);
}
