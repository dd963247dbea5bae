//! Zeroes the block padding of an output.

use crate::error::Result;
use crate::heap;
use crate::tensor::{DataType, MAX_NDIMS, MemoryDesc, Offsets};
use arrayvec::ArrayVec;
use std::cmp::Ordering;

/// The padding of a tensor: elements of its memory outside its dimensions.
pub(crate) struct Padding {
    offsets: Offsets,
    /// Size of an element in bytes.
    size: usize,
    /// Boxes of indices, with a range for each dimension.
    boxes: Vec<ArrayVec<(i64, i64), MAX_NDIMS>>,
}

impl Padding {
    pub(crate) fn of(desc: &MemoryDesc) -> Result<Self> {
        // One box per padded dimension. It covers only the unpadded sizes of the dimensions before, so that boxes do
        // not overlap.
        let range = |past: usize, d: usize| match d.cmp(&past) {
            Ordering::Less => (0, desc.dims()[d]),
            Ordering::Equal => (desc.dims()[d], desc.padded_dims()[d]),
            Ordering::Greater => (0, desc.padded_dims()[d]),
        };
        let is_padded = |d: &usize| desc.dims()[*d] < desc.padded_dims()[*d];
        let past_end = (0..desc.ndims()).filter(|d| is_padded(d) && !desc.has_zero_dim());
        let boxes = past_end.map(|past| (0..desc.ndims()).map(|d| range(past, d)).collect());
        Ok(Self {
            offsets: Offsets::of_padded(desc)?,
            size: desc.data_type().map_or(0, DataType::size),
            boxes: heap::list(boxes)?,
        })
    }

    /// Writes the zeros.
    ///
    /// # Safety
    /// `start` points to the first element of a writable tensor with this layout.
    pub(crate) unsafe fn clear(&self, start: *mut u8) {
        for ranges in &self.boxes {
            self.offsets.each_offset(ranges, |offset| {
                // SAFETY: guaranteed by the caller; the offset is within the tensor's memory.
                unsafe { start.add(offset * self.size).write_bytes(0, self.size) };
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use norm_sys as sys;

    #[test]
    fn exactly_the_padding_is_cleared() {
        for tag in [sys::norm_ABc16b16a, sys::norm_aBc16b, sys::norm_Abc4a, sys::norm_abc] {
            let desc = MemoryDesc::with_tag(&[5, 18, 3], DataType::F16, tag).unwrap();
            let mut bytes = vec![1u8; desc.size()];
            // SAFETY: the buffer has the size of the tensor.
            unsafe { Padding::of(&desc).unwrap().clear(bytes.as_mut_ptr()) };
            let mut expected = vec![0u8; desc.size()];
            let offsets = Offsets::of(&desc).unwrap();
            for flat in 0..5 * 18 * 3 {
                expected[offsets.offset(flat) * 2..][..2].fill(1);
            }
            assert_eq!(bytes, expected, "{tag}");
        }
    }
}
