//! Rows for reference implementations: one element at a time, in any layout and type.

use crate::error::Result;
use crate::simd::lanes::Lanes;
use crate::simd::portable::Portable;
use crate::simd::{BLOCK, CHAIN, GROUP, LANES, read_scalar, read_wide, write_scalar, write_wide};
use crate::tensor::{DataType, DimOffsets, MemoryDesc, Offsets};

/// The rows of a tensor of any layout.
pub(crate) struct PlainTensor {
    data_type: DataType,
    rows: Offsets,
    cols: DimOffsets,
}

impl PlainTensor {
    pub(crate) fn new(desc: &MemoryDesc) -> Result<Self> {
        let (rows, cols) = Offsets::of(desc)?.split_last();
        Ok(Self { data_type: desc.data_type().unwrap_or(DataType::F32), rows, cols })
    }

    /// A tensor that is broadcast to `dims`.
    pub(crate) fn broadcast(desc: &MemoryDesc, dims: &[i64]) -> Result<Self> {
        let (rows, cols) = Offsets::of(desc)?.broadcast(dims).split_last();
        Ok(Self { data_type: desc.data_type().unwrap_or(DataType::F32), rows, cols })
    }

    /// A row of the tensor whose first element is at `start`.
    ///
    /// # Safety
    /// The tensor exists while the row is used, and no other thread writes the row.
    pub(crate) unsafe fn row(&self, start: *mut u8, row: usize) -> PlainRow<'_> {
        PlainRow { tensor: self, start, offset: self.rows.offset(row) }
    }
}

/// A row of a tensor.
#[derive(Clone, Copy)]
pub(crate) struct PlainRow<'a> {
    tensor: &'a PlainTensor,
    start: *mut u8,
    offset: usize,
}

impl PlainRow<'_> {
    pub(crate) fn get(self, col: usize) -> f32 {
        let at = self.offset + self.tensor.cols.offset(col);
        // SAFETY: guaranteed by the caller of `PlainTensor::row`.
        unsafe { read_scalar(self.tensor.data_type, self.start, at) }
    }

    pub(crate) fn set(self, col: usize, value: f32) {
        let at = self.offset + self.tensor.cols.offset(col);
        // SAFETY: as above.
        unsafe { write_scalar(self.tensor.data_type, self.start, at, value) }
    }

    pub(crate) fn get_wide(self, col: usize) -> f64 {
        let at = self.offset + self.tensor.cols.offset(col);
        // SAFETY: as above.
        unsafe { read_wide(self.tensor.data_type, self.start, at) }
    }

    pub(crate) fn set_wide(self, col: usize, value: f64) {
        let at = self.offset + self.tensor.cols.offset(col);
        // SAFETY: as above.
        unsafe { write_wide(self.tensor.data_type, self.start, at, value) }
    }
}

/// `simd::fold`, one lane at a time: the sum of `a*b` over `(a, b) = terms(col)`.
pub(crate) fn plain_fold(cols: usize, terms: impl Fn(usize) -> (f32, f32)) -> f64 {
    let mut total = 0.0;
    for block in (0..cols).step_by(BLOCK) {
        let block_end = cols.min(block + BLOCK);
        let mut lanes = [0.0f64; LANES];
        for group in (block..block_end).step_by(GROUP) {
            let mut chains = [[0.0f32; LANES]; GROUP / LANES / CHAIN];
            for col in group..block_end.min(group + GROUP) {
                let (vector, lane) = ((col - group) / LANES, (col - group) % LANES);
                let (a, b) = terms(col);
                let sum = &mut chains[vector / CHAIN][lane];
                *sum = a.mul_add(b, *sum);
            }
            for lane in 0..LANES {
                let [a, b, c, d] = chains.map(|chain| chain[lane]);
                lanes[lane] += f64::from((a + b) + (c + d));
            }
        }
        total += halve(lanes);
    }
    total
}

/// The sum of f64 terms, with compensation for the rounding error of each addition.
pub(crate) fn wide_fold(cols: usize, term: impl Fn(usize) -> f64) -> f64 {
    let (mut sum, mut low) = (0.0f64, 0.0);
    for col in 0..cols {
        let term = term(col);
        let next = sum + term;
        let there = next - sum;
        low += (sum - (next - there)) + (term - there);
        sum = next;
    }
    if sum.is_finite() { sum + low } else { sum }
}

/// Applies an elementary function to every value.
pub(crate) fn plain_map(values: &mut [f32], f: fn(Lanes<Portable>) -> Lanes<Portable>) {
    for values in values.chunks_mut(LANES) {
        let (start, n) = (values.as_mut_ptr(), values.len());
        // SAFETY: there are 1 to 16 values, and every machine has the level.
        unsafe { f(Lanes::load(start, n)).store(start, n) };
    }
}

/// The sum of 16 lanes, by halves.
pub(crate) fn halve(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}
