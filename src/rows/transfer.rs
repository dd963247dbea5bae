//! Copies of single rows from one tensor to another of another type, with the conversions of packing.

use super::pack::{Entry, Packing, entries};
use crate::simd::Level;
use crate::tensor::DataType;

/// Elements on the way as f32; they stay in the first-level cache.
const CHUNK: usize = 256;

/// The copy of rows to dense rows, rounded to nearest even. Types are f32, bf16 and f16, or the same.
pub(crate) struct Transfer {
    pack: Entry,
    unpack: Entry,
    from: DataType,
    to: DataType,
    /// The distance between elements of a row that is read.
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
        let mut way = [0.0f32; CHUNK];
        for first in (0..self.cols).step_by(CHUNK) {
            let cols = CHUNK.min(self.cols - first);
            let src = src.wrapping_add(first * self.step * self.from.size());
            let dst = dst.wrapping_add(first * self.to.size());
            // SAFETY: guaranteed by the caller; these columns are in the rows.
            unsafe { self.chunk(src, dst, cols, way.as_mut_ptr()) };
        }
    }

    /// # Safety
    /// As [`row`](Self::row), for `cols` columns; `way` has room for them.
    unsafe fn chunk(&self, src: *const u8, dst: *mut u8, cols: usize, way: *mut f32) {
        // Straight to dst if that is f32 or has the type of src.
        let straight = self.to == DataType::F32 || self.from == self.to;
        // Straight from src, which is not written, if that is dense f32.
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
}
