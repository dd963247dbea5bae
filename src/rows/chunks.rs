//! Parts of rows as f32 in a buffer: loaded from tensors of any type and stride, and rounded and stored to them.

use super::pack::{Entry, Packing, entries};
use crate::simd::Level;
use crate::tensor::DataType;

/// A part of a row in a tensor.
#[derive(Clone, Copy)]
pub(crate) struct Chunk {
    /// The address of the first element.
    pub(crate) start: *mut u8,
    pub(crate) data_type: DataType,
    /// The stride of elements.
    pub(crate) step: usize,
    pub(crate) len: usize,
    /// Whether elements alternate with others, which no other thread writes.
    pub(crate) paired: bool,
}

/// The functions of a level.
#[derive(Clone, Copy)]
pub(crate) struct Chunks {
    pack: Entry,
    unpack: Entry,
}

impl Chunks {
    pub(crate) fn new(level: Level) -> Self {
        let (pack, unpack) = entries(level);
        Self { pack, unpack }
    }

    /// Loads a chunk as f32.
    ///
    /// # Safety
    /// The elements exist, there is room for them at `to`, and the CPU supports the level.
    pub(crate) unsafe fn load(&self, chunk: &Chunk, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.pack)(&packing(chunk, to, false), 0, 1) };
    }

    /// Rounds f32 to a chunk, with non-temporal stores if `streams` and the alignment allows. A fence must follow.
    ///
    /// # Safety
    /// As [`load`](Self::load), and no other thread accesses the elements.
    pub(crate) unsafe fn store(&self, chunk: &Chunk, from: *mut f32, streams: bool) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.unpack)(&packing(chunk, from, streams), 0, 1) };
    }
}

fn packing(chunk: &Chunk, stage: *mut f32, streams: bool) -> Packing {
    let Chunk { start, data_type, step, len, paired } = *chunk;
    Packing { streams, paired, ..Packing::of_row((start, data_type, step), len, stage) }
}
