//! Data of the steps around a normalization: residuals, gates, and the gradient of the sum.

use super::Fill;
use super::generator::Generator;
use crate::data_type::DataType;
use crate::oracle::steps::sum;
use crate::parallel::{self, GRAIN};
use crate::steps::Residual;

/// Streams of random numbers.
const RESIDUAL: u64 = 0x5245_5344;
const GATE: u64 = 0x4741_5445;
const DIFF_SUM: u64 = 0x4453_554d;

/// Splits rows of sums into src, which replaces them, and the residual, which is returned.
///
/// One of the two is a small multiple of the row's unit. In half of the rows a quarter of an ulp of the stored sum is
/// added to it, where both types can represent the result: the exact sum and the stored one then differ, and rounding
/// the exact sum gives the stored one.
pub(super) fn split(
    residual: &Residual,
    src_dt: DataType,
    cols: usize,
    units: &[f64],
    seed: u64,
    src: &mut [f64],
) -> Vec<f64> {
    let mut residuals = vec![0.0; src.len()];
    let cols = cols.max(1);
    parallel::for_each(
        src.chunks_mut(cols).zip(residuals.chunks_mut(cols)).zip(units),
        GRAIN.div_ceil(cols),
        &|row, ((src, residuals), &unit)| {
            let mut generator = Generator::new(seed ^ RESIDUAL, row);
            let stored = residual.stored();
            for (x, other) in src.iter_mut().zip(residuals) {
                let bits = generator.bits();
                let is_small_src = bits & 1 == 1;
                let (small_dt, large_dt) = match is_small_src {
                    true => (src_dt, residual.data_type),
                    false => (residual.data_type, src_dt),
                };
                let size = unit * (1 + (bits >> 8) % 15) as f64;
                let signed = if bits & 2 == 2 { size } else { -size };
                let quarter = stored.ulp(*x) / if bits & 4 == 4 { 4.0 } else { -4.0 };
                let fits = |dt: DataType, value: f64| dt.round(value) == value;
                // Candidates that keep the rounded sum, best first.
                let choices = [(signed, quarter), (signed, 0.0), (unit, 0.0), (0.0, 0.0)];
                let first = usize::from(row % 2 == 1);
                let (small, large) = choices[first..]
                    .iter()
                    .map(|&(small, off)| (small + off, *x - small))
                    .find(|&(small, large)| {
                        let total = stored.round(sum(small, large));
                        fits(small_dt, small) && fits(large_dt, large) && total == *x
                    })
                    .unwrap_or((0.0, *x));
                (*x, *other) = if is_small_src { (small, large) } else { (large, small) };
            }
        },
    );
    residuals
}

/// A residual for random rows, with the magnitude of the row and occasionally much larger.
pub(super) fn random_residual(dt: DataType, cols: usize, seed: u64, src: &[f64]) -> Vec<f64> {
    let mut values = vec![0.0; src.len()];
    let rows = values.chunks_mut(cols.max(1)).zip(src.chunks(cols.max(1)));
    parallel::for_each(rows, 1, &|row, (values, src)| {
        let mut generator = Generator::new(seed ^ RESIDUAL, row);
        let squares: f64 = src.iter().map(|x| x * x).sum();
        let size = (squares / src.len() as f64).sqrt().clamp(1e-30, 1e30);
        let factor = [0.25, 1.0, 1.0, 16.0][generator.below(4) as usize];
        // Stays within the range of f16.
        let most = if dt == DataType::F16 { 16_000.0 } else { f64::MAX };
        let size = (factor * size).min(most);
        values.iter_mut().for_each(|value| *value = dt.round(size * generator.normal()));
    });
    values
}

/// The elements of a gate: multiples of 1/16 from 1/4 to 4, three of four positive. Random ones extend to where the
/// exponential overflows.
pub(super) fn gate(dt: DataType, fill: Fill, cols: usize, seed: u64, count: usize) -> Vec<f64> {
    let mut values = vec![0.0; count];
    parallel::for_each(values.chunks_mut(cols.max(1)), 1, &|row, values: &mut [f64]| {
        let mut generator = Generator::new(seed ^ GATE, row);
        for value in values {
            let bits = generator.bits();
            let size = (4 + (bits >> 8) % 61) as f64 / 16.0;
            let plain = if bits & 3 == 3 { -size } else { size };
            *value = match fill {
                Fill::Random if bits >> 58 == 0 => dt.round(100.0 * generator.normal()),
                Fill::Random => dt.round(1.5 * generator.normal()),
                Fill::Exact | Fill::Perf => plain,
            };
        }
    });
    values
}

/// The gradient of the sum: multiples of 1/8 from 1/8 to 2, three of four positive.
pub(super) fn diff_sum(dt: DataType, cols: usize, seed: u64, count: usize) -> Vec<f64> {
    let mut values = vec![0.0; count];
    parallel::for_each(values.chunks_mut(cols.max(1)), 1, &|row, values: &mut [f64]| {
        let mut generator = Generator::new(seed ^ DIFF_SUM, row);
        for value in values {
            let bits = generator.bits();
            let size = (1 + (bits >> 8) % 16) as f64 / 8.0;
            *value = dt.round(if bits & 3 == 3 { -size } else { size });
        }
    });
    values
}
