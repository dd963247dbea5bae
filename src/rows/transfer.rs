//! Copies single rows to a tensor of another type, with the conversions of packing.

use super::pack::{Entry, Packing, entries};
use super::quantize::RowScale;
use crate::simd::Level;
use crate::tensor::DataType;
use std::mem::MaybeUninit;

/// Elements converted at a time through f32; they stay in the first-level cache.
const CHUNK: usize = 256;

/// The copy of rows to dense rows, rounded to nearest even. Types are f32, bf16 and f16, or the same.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    pack: Entry,
    unpack: Entry,
    from: DataType,
    to: DataType,
    /// The stride of the elements that are read.
    step: usize,
    cols: usize,
}

impl Transfer {
    pub(crate) fn new(
        level: Level,
        (from, step): (DataType, usize),
        to: DataType,
        cols: usize,
    ) -> Self {
        let (pack, unpack) = entries(level);
        Self { pack, unpack, from, to, step, cols }
    }

    /// Copies a row.
    ///
    /// # Safety
    /// Both rows exist and do not overlap, no other thread writes them, and the CPU supports the level.
    pub(crate) unsafe fn row(&self, src: *const u8, dst: *mut u8) {
        if self.from == self.to && self.step == 1 {
            // SAFETY: guaranteed by the caller.
            unsafe { std::ptr::copy_nonoverlapping(src, dst, self.cols * self.to.size()) };
            return;
        }
        let mut way = [MaybeUninit::<f32>::uninit(); CHUNK];
        for first in (0..self.cols).step_by(CHUNK) {
            let cols = CHUNK.min(self.cols - first);
            let src = src.wrapping_add(first * self.step * self.from.size());
            let dst = dst.wrapping_add(first * self.to.size());
            // SAFETY: guaranteed by the caller; these columns are in the rows.
            unsafe { self.chunk(src, dst, cols, way.as_mut_ptr().cast()) };
        }
    }

    /// Loads columns of a row as f32.
    ///
    /// # Safety
    /// The row exists, `to` has room, and the CPU supports the level.
    unsafe fn load(&self, src: *const u8, (first, cols): (usize, usize), to: *mut f32) {
        let src = src.wrapping_add(first * self.step * self.from.size()).cast_mut();
        // SAFETY: guaranteed by the caller.
        unsafe { (self.pack)(&Packing::of_row((src, self.from, self.step), cols, to), 0, 1) };
    }

    /// # Safety
    /// As [`row`](Self::row), for `cols` columns; `way` has room for them.
    unsafe fn chunk(&self, src: *const u8, dst: *mut u8, cols: usize, way: *mut f32) {
        // Converted directly to dst, if that is f32 or has the type of src.
        let straight = self.to == DataType::F32 || self.from == self.to;
        // Read directly from src, which is not written, if that is dense f32.
        let dense = self.from == DataType::F32 && self.step == 1;
        let stage = match (straight, dense) {
            (true, _) => dst.cast::<f32>(),
            (false, true) => src.cast_mut().cast::<f32>(),
            (false, false) => way,
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            if straight || !dense {
                let mut packing =
                    Packing::of_row((src.cast_mut(), self.from, self.step), cols, stage);
                packing.stage_type = if straight { self.to } else { DataType::F32 };
                (self.pack)(&packing, 0, 1);
            }
            if !straight {
                (self.unpack)(&Packing::of_row((dst, self.to, 1), cols, stage), 0, 1);
            }
        }
    }
}

/// The quantization of rows to dense rows of s8 or f8_e4m3, with a scale for each row.
#[derive(Clone, Copy)]
pub(crate) struct QuantizedTransfer {
    transfer: Transfer,
    scale: RowScale,
}

impl QuantizedTransfer {
    pub(crate) fn new(level: Level, from: (DataType, usize), to: DataType, cols: usize) -> Self {
        let scale = RowScale::new(level, to);
        Self { transfer: Transfer::new(level, from, to, cols), scale }
    }

    /// Quantizes a row and stores its scale, in f32. Rows that are longer than a chunk are read twice.
    ///
    /// # Safety
    /// As [`Transfer::row`], and there is room for the scale.
    pub(crate) unsafe fn row(&self, src: *const u8, dst: *mut u8, scale: *mut u8) {
        let transfer = &self.transfer;
        let mut way = [MaybeUninit::<f32>::uninit(); CHUNK];
        let values = way.as_mut_ptr().cast::<f32>();
        let chunks = || {
            let firsts = (0..transfer.cols).step_by(CHUNK);
            firsts.map(|first| (first, CHUNK.min(transfer.cols - first)))
        };
        // SAFETY: guaranteed by the caller; these columns are in the rows.
        unsafe {
            let mut most = 0;
            for (first, cols) in chunks() {
                transfer.load(src, (first, cols), values);
                most = most.max(self.scale.measure(values, cols));
            }
            let factor = self.scale.factor(most, scale);
            for (first, cols) in chunks() {
                if transfer.cols > CHUNK {
                    transfer.load(src, (first, cols), values);
                }
                self.scale.divide(values, cols, factor);
                let dst = dst.wrapping_add(first * transfer.to.size());
                (transfer.unpack)(&Packing::of_row((dst, transfer.to, 1), cols, values), 0, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{read_scalar, write_scalar};

    #[test]
    fn rows_are_rounded_once() {
        let types = [DataType::F32, DataType::Bf16, DataType::F16];
        for level in Level::available() {
            for (from, to) in types.iter().flat_map(|from| types.map(|to| (*from, to))) {
                for (step, cols) in [(1, 1), (1, 40), (3, 17), (2, 300), (1, 600)] {
                    let mut src = vec![0u8; cols * step * 4];
                    let mut dst = vec![0xa5u8; (cols + 1) * to.size()];
                    let mut expected = dst.clone();
                    for i in 0..cols {
                        let x = (i as f32 - 7.3) * 1.003f32.powi(i as i32);
                        // SAFETY: the lists have room for the elements.
                        unsafe {
                            write_scalar(from, src.as_mut_ptr(), i * step, x);
                            let x = read_scalar(from, src.as_ptr(), i * step);
                            write_scalar(to, expected.as_mut_ptr(), i, x);
                        }
                    }
                    let transfer = Transfer::new(*level, (from, step), to, cols);
                    // SAFETY: the lists have room for the rows, and the level is available.
                    unsafe { transfer.row(src.as_ptr(), dst.as_mut_ptr()) };
                    assert_eq!(dst, expected, "{from:?} {to:?} {step} {cols}");
                }
            }
        }
    }

    /// The rule, one element at a time: the scale, and the elements before rounding.
    fn plain(values: &[f32], largest: f32) -> (f32, Vec<f32>) {
        let most =
            values.iter().fold(0.0f32, |most, x| if x.is_nan() { *x } else { most.max(x.abs()) });
        let any_nan = values.iter().any(|x| x.is_nan());
        let scale = if any_nan { f32::NAN } else { most / largest };
        let scale = if scale == 0.0 || (1.0 / scale).is_infinite() { 1.0 } else { scale };
        let saturated = |x: f32| if x.is_nan() { x } else { x.clamp(-largest, largest) };
        (scale, values.iter().map(|x| saturated(x * (1.0 / scale))).collect())
    }

    #[test]
    fn rows_have_a_scale() {
        for (level, to) in Level::available()
            .iter()
            .flat_map(|level| [(*level, DataType::S8), (*level, DataType::F8E4m3)])
        {
            let largest = if to == DataType::S8 { 127.0 } else { 448.0 };
            let specials = [0.0, 1.0, 1e-39, 3e-37, f32::MAX, f32::INFINITY, f32::NAN];
            for (special, (step, cols)) in specials.iter().flat_map(|special| {
                [(1, 1), (1, 40), (3, 17), (1, 256), (1, 257), (2, 1000)]
                    .map(|size| (*special, size))
            }) {
                let from = if step == 2 { DataType::Bf16 } else { DataType::F32 };
                let mut src = vec![0u8; cols * step * 4];
                let mut values = vec![0.0f32; cols];
                for (i, value) in values.iter_mut().enumerate() {
                    let size = if special.is_finite() { special } else { 1.0 };
                    let x = if i == cols / 2 { special } else { size * (0.9 * i as f32).sin() };
                    // SAFETY: the list has room for the elements.
                    unsafe {
                        write_scalar(from, src.as_mut_ptr(), i * step, x);
                        *value = read_scalar(from, src.as_ptr(), i * step);
                    }
                }
                let (wanted, scaled) = plain(&values, largest);
                let mut expected = vec![0xa5u8; cols + 1];
                for (i, x) in scaled.iter().enumerate() {
                    // SAFETY: the list has room for the elements.
                    unsafe { write_scalar(to, expected.as_mut_ptr(), i, *x) };
                }
                let (mut dst, mut scale) = (vec![0xa5u8; cols + 1], 7.0f32);
                let transfer = QuantizedTransfer::new(level, (from, step), to, cols);
                // SAFETY: the lists have room for the rows, and the level is available.
                unsafe {
                    transfer.row(src.as_ptr(), dst.as_mut_ptr(), (&raw mut scale).cast());
                }
                assert_eq!(dst, expected, "{level:?} {to:?} {special} {step} {cols}");
                let same = scale.to_bits() == wanted.to_bits() || scale.is_nan() && wanted.is_nan();
                assert!(same, "{level:?} {to:?} {special} {cols}: {scale} {wanted}");
            }
        }
    }
}
