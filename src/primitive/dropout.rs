//! Dropout of the elements of a chunk, with oneDNN's generator: Philox 4x32-10 (Salmon et al., "Parallel random
//! numbers: as easy as 1, 2, 3", 2011).
//!
//! ```text
//! group = element / 4, x = 4*group, element counted in row-major order
//! offset != 0   counter = [offset, offset >> 32, x, x >> 32], key = [seed, seed >> 32],
//!               number = philox(counter, key)[element % 4]
//! offset == 0   counter = [x, x + 1, x, x + 3], key = [seed, seed], of the lowest 32 bits of x and seed,
//!               number = philox(counter, key)[2], the same for the four elements of a group
//! mask = number > (2^32 - 1)*p,   x becomes mask ? x * 1/(1 - p) : 0
//! ```
//!
//! The second form is oneDNN 3.x's; the masks are the same byte for byte.

use super::Arguments;
use super::attr::Dropout;
use super::chunk::{Chunk, each};
use super::operand::Operand;
use crate::error::Result;
use crate::simd::lanes::Lanes;
use crate::simd::{LANES, Simd, read_scalar, unroll};
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;
use std::mem::MaybeUninit;

/// Groups whose numbers are computed together.
const GROUPS: usize = 8;
const ROUNDS: usize = 10;

/// The step of a chain.
pub(super) struct Dropping {
    mask: Option<Operand>,
    numbers: Operand,
    seed: DataType,
    has_offset: bool,
}

/// The parameters of dropout in an execution.
#[derive(Clone, Copy)]
pub(super) struct Drawing {
    seed: u64,
    offset: u64,
    /// Elements with larger numbers are kept.
    threshold: u32,
    /// The factor of kept elements.
    factor: f32,
    mask: *mut u8,
}

impl Dropping {
    /// For an output of dimensions `dims`; see [`Operand::new`]. The arguments of the operands are not used.
    pub(super) fn new(dropout: &Dropout, dims: &[i64], order: Option<&[usize]>) -> Result<Self> {
        let operand = |desc: &MemoryDesc| Operand::new(0, desc, DataType::U8, dims, order);
        let mask = dropout.has_mask().then(|| operand(&dropout.mask)).transpose()?;
        let numbers = operand(&dropout.numbers)?;
        Ok(Self { mask, numbers, seed: dropout.seed, has_offset: dropout.has_offset })
    }

    /// The values of an execution.
    ///
    /// # Safety
    /// Its buffers were checked.
    pub(super) unsafe fn bind(&self, arguments: &Arguments) -> Drawing {
        let integer = |id, data_type| {
            let address = arguments.get(id);
            // SAFETY: guaranteed by the caller.
            unsafe {
                match data_type {
                    DataType::S64 => address.cast::<i64>().read_unaligned(),
                    _ => i64::from(address.cast::<i32>().read_unaligned()),
                }
            }
        };
        let probability = arguments.get(sys::NORM_ARG_ATTR_DROPOUT_PROBABILITY);
        // SAFETY: guaranteed by the caller.
        let p = unsafe { read_scalar(DataType::F32, probability, 0) };
        let offset = match self.has_offset {
            true => integer(sys::NORM_ARG_ATTR_DROPOUT_OFFSET, DataType::S64),
            false => 0,
        };
        Drawing {
            seed: integer(sys::NORM_ARG_ATTR_DROPOUT_SEED, self.seed) as u64,
            offset: offset as u64,
            threshold: (f64::from(u32::MAX) * f64::from(p)) as u32,
            factor: if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) },
            mask: arguments.get(sys::NORM_ARG_ATTR_DROPOUT_MASK),
        }
    }

    /// Drops elements of a row from `col` on and stores the mask.
    ///
    /// # Safety
    /// The elements and the mask belong to this thread, `kept` is as long as the chunk, and the CPU supports the
    /// instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn apply<S: Simd>(
        &self,
        drawing: &Drawing,
        chunk: Chunk,
        (row, col): (usize, usize),
        kept: &mut [MaybeUninit<f32>],
    ) {
        let kept = kept.as_mut_ptr().cast::<f32>();
        // SAFETY: guaranteed by the caller.
        unsafe { self.draw(drawing, (row, col), chunk.len, kept) };
        let factor = drawing.factor;
        each!(chunk, |x, y: kept| y.eq(0.0).select(0.0, x * factor));
    }

    /// Stores 1 for kept elements and 0 for dropped ones, as f32 at `kept` and in the mask.
    ///
    /// # Safety
    /// As [`apply`](Self::apply).
    #[inline(always)]
    unsafe fn draw(
        &self,
        drawing: &Drawing,
        (row, col): (usize, usize),
        len: usize,
        kept: *mut f32,
    ) {
        let dense = self.numbers.is_dense();
        let mut i = 0;
        while i < len {
            let first = self.numbers.offset(row, col + i);
            // Neighbours share groups, or each element has its own.
            let (count, lead) = if dense { (4 * GROUPS, first % 4) } else { (GROUPS, 0) };
            let count = (count - lead).min(len - i);
            let mut groups = [0u64; GROUPS];
            for g in 0..GROUPS {
                groups[g] = if dense {
                    (first / 4 + g) as u64
                } else {
                    (self.numbers.offset(row, col + i + g.min(count - 1)) / 4) as u64
                };
            }
            let numbers = drawing.numbers(&groups);
            for n in 0..count {
                let (group, lane) = if dense {
                    ((lead + n) / 4, (lead + n) % 4)
                } else {
                    (n, self.numbers.offset(row, col + i + n) % 4)
                };
                let stays = numbers[lane % 4][group % GROUPS] > drawing.threshold;
                // SAFETY: guaranteed by the caller.
                unsafe {
                    kept.add(i + n).write(if stays { 1.0 } else { 0.0 });
                    if let Some(mask) = &self.mask {
                        drawing.mask.add(mask.offset(row, col + i + n)).write(u8::from(stays));
                    }
                }
            }
            i += count;
        }
    }
}

impl Drawing {
    /// The numbers of the four elements of each group.
    #[inline(always)]
    fn numbers(&self, groups: &[u64; GROUPS]) -> [[u32; GROUPS]; 4] {
        const FACTORS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
        const STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
        let plain = self.offset == 0;
        let mut key = [self.seed as u32, if plain { self.seed } else { self.seed >> 32 } as u32];
        let mut counter = [[0u32; GROUPS]; 4];
        for g in 0..GROUPS {
            let x = groups[g] << 2;
            let (low, high) = (x as u32, (x >> 32) as u32);
            counter[0][g] = if plain { low } else { self.offset as u32 };
            counter[1][g] = if plain { low | 1 } else { (self.offset >> 32) as u32 };
            counter[2][g] = low;
            counter[3][g] = if plain { low | 3 } else { high };
        }
        for _ in 0..ROUNDS {
            for g in 0..GROUPS {
                let first = u64::from(FACTORS[0]) * u64::from(counter[0][g]);
                let second = u64::from(FACTORS[1]) * u64::from(counter[2][g]);
                counter[0][g] = (second >> 32) as u32 ^ counter[1][g] ^ key[0];
                counter[1][g] = second as u32;
                counter[2][g] = (first >> 32) as u32 ^ counter[3][g] ^ key[1];
                counter[3][g] = first as u32;
            }
            key = [key[0].wrapping_add(STEPS[0]), key[1].wrapping_add(STEPS[1])];
        }
        if plain { [counter[2]; 4] } else { counter }
    }
}
