//! Element offsets for any index in any layout.
//!
//! Each dimension contributes independently to the offset, even in blocked layouts, so an offset is
//! a sum of one term per dimension.

use super::{MAX_NDIMS, MemoryDesc};
use crate::error::Result;
use crate::heap;

/// The contribution of one dimension.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DimOffsets {
    /// `index * stride`.
    Plain { stride: usize },
    /// The sum of `index / divisor % modulus * stride`.
    Blocked(Vec<BlockLevel>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockLevel {
    divisor: usize,
    modulus: usize,
    stride: usize,
}

impl DimOffsets {
    fn of(desc: &MemoryDesc, dim: usize) -> Result<Self> {
        let stride = desc.strides()[dim] as usize;
        let mut levels = Vec::new();
        let (mut inside, mut divisor) = (1, 1);
        for (d, size) in desc.blocks().rev() {
            let size = size as usize;
            if d == dim {
                heap::push(&mut levels, BlockLevel { divisor, modulus: size, stride: inside })?;
                divisor *= size;
            }
            inside *= size;
        }
        if levels.is_empty() {
            return Ok(Self::Plain { stride });
        }
        heap::push(&mut levels, BlockLevel { divisor, modulus: usize::MAX, stride })?;
        Ok(Self::Blocked(levels))
    }

    /// The index distances at which the offset changes its stride: 1 and the block sizes.
    pub(crate) fn steps(&self) -> impl Iterator<Item = usize> {
        let levels = match self {
            Self::Plain { .. } => &[],
            Self::Blocked(levels) => &levels[..],
        };
        std::iter::once(1).chain(levels.iter().map(|level| level.divisor))
    }

    #[inline(always)]
    pub(crate) fn offset(&self, index: usize) -> usize {
        match self {
            Self::Plain { stride } => index * stride,
            Self::Blocked(levels) => {
                // Not `sum`, which may stay a call.
                let mut offset = 0;
                for level in levels {
                    offset += index / level.divisor % level.modulus * level.stride;
                }
                offset
            }
        }
    }
}

/// The offsets of a tensor's elements, from the first element.
#[derive(Debug)]
pub(crate) struct Offsets {
    dims: Vec<(usize, DimOffsets)>,
}

impl Offsets {
    pub(crate) fn of(desc: &MemoryDesc) -> Result<Self> {
        Self::over(desc, desc.dims())
    }

    /// Broadcasts to `dims`: dimensions of size 1 get stride 0.
    pub(crate) fn broadcast(mut self, dims: &[i64]) -> Self {
        for (own, dim) in self.dims.iter_mut().zip(dims) {
            if own.0 == 1 {
                *own = (*dim as usize, DimOffsets::Plain { stride: 0 });
            }
        }
        self
    }

    /// The same, including padding.
    pub(crate) fn of_padded(desc: &MemoryDesc) -> Result<Self> {
        Self::over(desc, desc.padded_dims())
    }

    fn over(desc: &MemoryDesc, sizes: &[i64]) -> Result<Self> {
        let mut dims = Vec::new();
        for (d, size) in sizes.iter().enumerate() {
            heap::push(&mut dims, (*size as usize, DimOffsets::of(desc, d)?))?;
        }
        Ok(Self { dims })
    }

    /// Splits off the last logical dimension, so that the rest are rows. A tensor without
    /// dimensions has a single offset.
    pub(crate) fn split_last(mut self) -> (Self, DimOffsets) {
        let last = self.dims.pop().map_or(DimOffsets::Plain { stride: 0 }, |(_, offsets)| offsets);
        (self, last)
    }

    pub(crate) fn dim(&self, dim: usize) -> &DimOffsets {
        &self.dims[dim].1
    }

    /// Offset of element or row number `flat` in logical order.
    #[inline(always)]
    pub(crate) fn offset(&self, flat: usize) -> usize {
        let mut rest = flat;
        let mut offset = 0;
        for (size, offsets) in self.dims.iter().rev() {
            let size = (*size).max(1);
            offset += offsets.offset(rest % size);
            rest /= size;
        }
        offset
    }

    /// Calls `f` with the offset of each index within the ranges, one per dimension.
    pub(crate) fn each_offset(&self, ranges: &[(i64, i64)], mut f: impl FnMut(usize)) {
        if ranges.iter().any(|(first, end)| first >= end) {
            return;
        }
        let mut index = [0; MAX_NDIMS];
        for (slot, (first, _)) in index.iter_mut().zip(ranges) {
            *slot = *first;
        }
        loop {
            f(self.offset_of(&index[..ranges.len()]));
            let mut d = ranges.len();
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                index[d] += 1;
                if index[d] < ranges[d].1 {
                    break;
                }
                index[d] = ranges[d].0;
            }
        }
    }

    /// Offset of the element at an index.
    pub(crate) fn offset_of(&self, index: &[i64]) -> usize {
        self.dims.iter().zip(index).map(|((_, offsets), i)| offsets.offset(*i as usize)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::DataType;
    use super::*;
    use norm_sys as sys;

    /// Compares a doubly blocked layout with its formula, written out.
    #[test]
    fn tiles_follow_their_letters() {
        let desc = MemoryDesc::with_tag(&[20, 24], DataType::F32, sys::norm_BA16a16b4a).unwrap();
        let offsets = Offsets::of(&desc).unwrap();
        for a in 0..20i64 {
            for b in 0..24i64 {
                let tile = (b / 16) * desc.strides()[1] + (a / 64) * desc.strides()[0];
                let inside = (a / 4 % 16) * 64 + (b % 16) * 4 + a % 4;
                assert_eq!(offsets.offset_of(&[a, b]) as i64, tile + inside);
                assert_eq!(offsets.offset((a * 24 + b) as usize) as i64, tile + inside);
            }
        }
        assert_eq!(desc.padded_dims(), [64, 32]);
    }

    #[test]
    fn a_tags_offsets_are_a_permutation() {
        let dims = [3i64, 5, 2, 3, 2, 1, 1, 1, 1, 1, 1, 1];
        for (tag, letters) in super::super::all_tags() {
            let n = super::super::tags::Order::of(letters).dims.len();
            let desc = MemoryDesc::with_tag(&dims[..n], DataType::U8, tag).unwrap();
            let padded: i64 = desc.padded_dims().iter().product();
            if padded > 1 << 16 {
                continue;
            }
            assert_eq!(desc.size() as i64, padded, "{letters}");
            let offsets = Offsets::of_padded(&desc).unwrap();
            let mut taken = vec![false; padded as usize];
            for flat in 0..padded as usize {
                let at = offsets.offset(flat);
                assert!(!std::mem::replace(&mut taken[at], true), "{letters}");
            }
        }
    }
}
