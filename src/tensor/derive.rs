//! Descriptors derived from others: the same layout, a part, permuted or regrouped dimensions.

use super::desc::check_dims;
use super::tags::Order;
use super::{DataType, Layout, MAX_NDIMS, MemoryDesc};
use crate::error::{Error, Result};
use arrayvec::ArrayVec;
use std::cmp::Ordering;

impl MemoryDesc {
    /// This descriptor in the layout of `other`, which has the same number of dimensions. Keeps the
    /// order of the strides and the blocks; gaps are removed.
    pub(crate) fn resolved_like(&self, other: &Self) -> Result<Self> {
        let Some(data_type) = self.data_type else { return Ok(Self::EMPTY) };
        Self::ordered(self.dims(), data_type, &other.order_and_blocks())
    }

    /// One number, stored in the memory object itself.
    pub(crate) fn host_scalar(data_type: DataType) -> Result<Self> {
        Ok(Self { layout: Layout::HostScalar, ..Self::any(&[1], data_type)? })
    }

    /// This descriptor, dense row-major.
    pub(crate) fn resolved_dense(&self) -> Result<Self> {
        self.data_type.map_or(Ok(Self::EMPTY), |data_type| Self::dense(self.dims(), data_type))
    }

    /// The f32 descriptor of row statistics: this one without its last dimension, in the same order
    /// of strides.
    pub(crate) fn statistics(&self) -> Result<Self> {
        let n = self.ndims - 1;
        let dims = self.order()[..self.ndims].iter().copied().filter(|&d| d != n).collect();
        let order = Order { dims, ..Order::default() };
        Self::ordered(&self.dims[..n], DataType::F32, &order)
    }

    /// The part that starts at `offsets`.
    pub(crate) fn part(&self, dims: &[i64], offsets: &[i64]) -> Result<Self> {
        if self.layout != Layout::Strided {
            return Err(Error::unimplemented("parent_memory_desc: the descriptor has no layout"));
        }
        let beyond = || Error::invalid("offsets: the part lies outside the address space");
        let mut part = self.clone();
        for d in 0..self.ndims {
            let (dim, offset) = (dims[d], offsets[d]);
            if dim < 0 {
                return Err(Error::invalid(format_args!("dims: dims[{d}] = {dim} is negative")));
            }
            if offset < 0 || offset.checked_add(dim).is_none_or(|end| end > self.dims[d]) {
                return Err(Error::invalid(format_args!(
                    "offsets: {dim} elements from {offset} are outside dimension {d} of size {}",
                    self.dims[d]
                )));
            }
        }
        for d in 0..self.ndims {
            let (dim, offset, block) = (dims[d], offsets[d], self.block_of(d));
            let reaches_end = offset + dim == self.dims[d];
            if offset % block != 0 || !(reaches_end || dim % block == 0 || dim < block) {
                return Err(Error::unimplemented(format_args!(
                    "offsets: a part must not split the blocks of {block} in dimension {d}"
                )));
            }
            part.dims[d] = dim;
            part.padded_dims[d] = if reaches_end { self.padded_dims[d] - offset } else { dim };
            let steps = (offset / block).checked_mul(self.strides[d]);
            let first = steps.and_then(|steps| steps.checked_add(part.offset));
            part.offset = first.ok_or_else(beyond)?;
        }
        part.checked().map_err(|_| beyond())
    }

    /// Dimension `d` becomes dimension `permutation[d]`.
    pub(crate) fn permuted(&self, permutation: &[usize]) -> Self {
        let mut permuted = self.clone();
        for (d, &to) in permutation.iter().enumerate() {
            permuted.dims[to] = self.dims[d];
            permuted.padded_dims[to] = self.padded_dims[d];
            permuted.strides[to] = self.strides[d];
        }
        for slot in 0..self.block_count {
            permuted.block_dims[slot] = permutation[self.block_dims[slot] as usize] as i64;
        }
        permuted
    }

    /// This descriptor with `axis` as its last dimension; the order of the others is kept.
    pub(crate) fn with_last(&self, axis: usize) -> Self {
        let place = |d: usize| match d.cmp(&axis) {
            Ordering::Less => d,
            Ordering::Equal => self.ndims.saturating_sub(1),
            Ordering::Greater => d - 1,
        };
        self.permuted(&std::array::from_fn::<usize, MAX_NDIMS, _>(place)[..self.ndims])
    }

    /// The same elements at the same addresses, in the same logical order, with other dimensions.
    pub(crate) fn reshaped(&self, dims: &[i64]) -> Result<Self> {
        check_dims(dims)?;
        let (own, other) = (volume(self.dims()), volume(dims));
        if own.is_none() || other.is_none() {
            return Err(Error::invalid(format_args!(
                "dims: the numbers of elements of {dims:?} and {:?} cannot be compared in 64 bits",
                self.dims()
            )));
        }
        if own != other {
            return Err(Error::invalid(format_args!(
                "dims: {dims:?} has another number of elements than {:?}",
                self.dims()
            )));
        }
        let Some(data_type) = self.data_type else { return Ok(Self::EMPTY) };
        match self.layout {
            Layout::Undef => Ok(Self::EMPTY),
            Layout::HostScalar => {
                Err(Error::invalid("in_memory_desc: a host scalar cannot be reshaped"))
            }
            Layout::Any => Self::any(dims, data_type),
            Layout::Strided => self.regrouped(dims, data_type),
        }
    }

    /// [`reshaped`](Self::reshaped) for a tensor with strides. Groups of old and new dimensions
    /// with equal numbers of elements, innermost first, get new strides.
    fn regrouped(&self, dims: &[i64], data_type: DataType) -> Result<Self> {
        let split = || {
            Err(Error::invalid(format_args!(
                "dims: {dims:?} splits or merges dimensions of {:?} that are not dense",
                self.dims()
            )))
        };
        let mut made = Self::any(dims, data_type)?;
        made.layout = Layout::Strided;
        made.offset = self.offset;
        (made.block_count, made.block_sizes) = (self.block_count, self.block_sizes);
        // Unpadded dimensions of size 1 can be added and removed freely, unless they are part of a block.
        let in_blocks = |d: usize| self.blocks().any(|(of, _)| of == d);
        let is_one = |d: usize| self.dims[d] == 1 && self.padded_dims[d] == 1 && !in_blocks(d);
        let old: ArrayVec<usize, MAX_NDIMS> = (0..self.ndims).filter(|&d| !is_one(d)).collect();
        let old_dims: ArrayVec<i64, MAX_NDIMS> = old.iter().map(|&d| self.dims[d]).collect();
        let (mut i, mut o) = (old.len(), dims.len());
        while i > 0 || o > 0 {
            // A padded dimension of size 1 must map to one of size 1.
            let padded_one = i > 0 && old_dims[i - 1] == 1;
            if o > 0 && dims[o - 1] == 1 && !padded_one {
                o -= 1;
                made.strides[o] = self.stride_left_of(if i > 0 { old[i - 1] + 1 } else { 0 });
                continue;
            }
            let (old_end, new_end) = (i, o);
            let Some(begins) = innermost_group(&old_dims[..i], &dims[..o]) else { return split() };
            (i, o) = begins;
            let group = &old[i..old_end];
            if group.len() == 1 && new_end - o == 1 {
                let d = group[0];
                made.strides[o] = self.strides[d];
                made.padded_dims[o] = self.padded_dims[d];
                for slot in (0..self.block_count).filter(|&s| self.block_dims[s] as usize == d) {
                    made.block_dims[slot] = o as i64;
                }
                continue;
            }
            let plain = |d: &usize| self.block_of(*d) == 1 && self.padded_dims[*d] == self.dims[*d];
            let dense = |pair: &[usize]| {
                let below = self.strides[pair[1]].checked_mul(self.dims[pair[1]]);
                below == Some(self.strides[pair[0]])
            };
            if !group.iter().all(plain) || !group.windows(2).all(dense) {
                return split();
            }
            let mut stride = self.strides[group[group.len() - 1]];
            for d in (o..new_end).rev() {
                made.strides[d] = stride;
                // The stride of the outermost dimension, which is not used, need not fit.
                stride = stride.saturating_mul(dims[d]);
            }
        }
        made.checked()
    }

    /// The stride of a dimension of size 1 that is inserted before dimension `d`: where the next block would be.
    fn stride_left_of(&self, d: usize) -> i64 {
        if d == self.ndims {
            return self.block_sizes[..self.block_count].iter().product();
        }
        self.strides[d].saturating_mul(self.dims[d]) / self.block_of(d)
    }
}

/// The number of elements, if it fits, where a dimension of size 0 counts as 1.
fn volume(dims: &[i64]) -> Option<i64> {
    dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d.max(1)))
}

/// The start indices of the shortest non-empty suffixes of `old` and `new` with equal products.
fn innermost_group(old: &[i64], new: &[i64]) -> Option<(usize, usize)> {
    let (mut i, mut o) = (old.len(), new.len());
    let (mut old_volume, mut new_volume) = (1i64, 1i64);
    loop {
        if i > 0 && (i == old.len() || (o < new.len() && old_volume < new_volume)) {
            i -= 1;
            old_volume = old_volume.checked_mul(old[i])?;
        } else if o > 0 && (o == new.len() || new_volume < old_volume) {
            o -= 1;
            new_volume = new_volume.checked_mul(new[o])?;
        } else {
            return None;
        }
        if i < old.len() && o < new.len() && old_volume == new_volume {
            return Some((i, o));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Offsets;
    use super::*;
    use crate::error::Status;
    use norm_sys as sys;

    fn indices(dims: &[i64]) -> Vec<Vec<i64>> {
        let mut all = vec![vec![]];
        for &dim in dims {
            all = all
                .into_iter()
                .flat_map(|index: Vec<i64>| (0..dim).map(move |i| [&index[..], &[i]].concat()))
                .collect();
        }
        all
    }

    /// Offsets of all elements in logical order, including the descriptor's own offset.
    fn offsets(desc: &MemoryDesc) -> Vec<i64> {
        let all = Offsets::of(desc).unwrap();
        indices(desc.dims()).iter().map(|i| desc.offset() + all.offset_of(i) as i64).collect()
    }

    #[test]
    fn a_part_keeps_its_elements_offsets() {
        let tags = [sys::norm_abc, sys::norm_cab, sys::norm_aBc16b, sys::norm_ABc16b16a];
        for tag in tags {
            let whole = MemoryDesc::with_tag(&[32, 48, 3], DataType::F16, tag).unwrap();
            let part = whole.part(&[16, 16, 2], &[16, 32, 1]).unwrap();
            let (all, of_part) = (Offsets::of(&whole).unwrap(), offsets(&part));
            for (index, at) in indices(&[16, 16, 2]).iter().zip(of_part) {
                let index = [index[0] + 16, index[1] + 32, index[2] + 1];
                assert_eq!(at, all.offset_of(&index) as i64, "{tag}");
            }
        }
        let blocked = MemoryDesc::with_tag(&[32, 40], DataType::F32, sys::norm_AB16b16a).unwrap();
        let status = |dims: [i64; 2], offsets: [i64; 2]| {
            blocked.part(&dims, &offsets).map_err(|e| e.status).map(|p| p.padded_dims().to_vec())
        };
        assert_eq!(status([16, 8], [0, 32]), Ok(vec![16, 16]));
        assert_eq!(status([16, 8], [0, 8]), Err(Status::Unimplemented));
        assert_eq!(status([16, 24], [0, 0]), Err(Status::Unimplemented));
        assert_eq!(status([16, 8], [0, 40]), Err(Status::InvalidArguments));
        assert_eq!(status([16, 8], [-16, 0]), Err(Status::InvalidArguments));
    }

    #[test]
    fn permuting_and_reshaping_keep_offsets() {
        let desc = MemoryDesc::with_tag(&[20, 3, 4], DataType::F32, sys::norm_Abc16a).unwrap();
        let permuted = desc.permuted(&[2, 0, 1]);
        assert_eq!(permuted.dims(), [3, 4, 20]);
        let (before, after) = (Offsets::of(&desc).unwrap(), Offsets::of(&permuted).unwrap());
        for index in indices(&[20, 3, 4]) {
            let to = [index[1], index[2], index[0]];
            assert_eq!(before.offset_of(&index), after.offset_of(&to));
        }
        let joined = desc.reshaped(&[20, 12]).unwrap();
        assert_eq!(offsets(&joined), offsets(&desc));
        assert_eq!(joined.reshaped(&[1, 20, 2, 1, 6, 1]).unwrap().size(), desc.size());
        assert_eq!(offsets(&joined.reshaped(&[1, 20, 2, 1, 6, 1]).unwrap()), offsets(&desc));
        assert!(desc.reshaped(&[10, 2, 12]).is_err());
        assert!(desc.reshaped(&[20, 13]).is_err());
        let loose = MemoryDesc::with_strides(&[4, 6], DataType::F32, &[8, 1]).unwrap();
        assert!(loose.reshaped(&[24]).is_err());
        assert_eq!(offsets(&loose.reshaped(&[2, 2, 3, 2]).unwrap()), offsets(&loose));
        let padded = MemoryDesc::with_tag(&[1, 5], DataType::F32, sys::norm_AB16b16a).unwrap();
        assert!(padded.reshaped(&[5]).is_err());
        assert_eq!(offsets(&padded.reshaped(&[1, 5]).unwrap()), offsets(&padded));
        let whole = MemoryDesc::with_tag(&[20, 5], DataType::F32, sys::norm_AB16b16a).unwrap();
        let inside = whole.part(&[1, 5], &[0, 0]).unwrap();
        assert!(inside.reshaped(&[5]).is_err());
        assert_eq!(offsets(&inside.reshaped(&[1, 5]).unwrap()), offsets(&inside));
        let empty = MemoryDesc::dense(&[0, 3], DataType::F32).unwrap();
        assert!(empty.reshaped(&[3, 0]).is_err());
        let empty = MemoryDesc::dense(&[2, 3, 0, 2], DataType::F32).unwrap();
        assert_eq!(empty.reshaped(&[6, 0, 2]).unwrap().strides(), [2, 2, 1]);
        // Two numbers of elements that both exceed 64 bits need not be equal.
        let huge = MemoryDesc::any(&[1 << 40, 1 << 40], DataType::F32).unwrap();
        assert!(huge.reshaped(&[1 << 41, 1 << 41]).is_err());
        assert!(huge.reshaped(&[1 << 40]).is_err());
        let nothing = MemoryDesc::any(&[1 << 40, 1 << 40, 0], DataType::F32).unwrap();
        assert!(nothing.reshaped(&[0, 7]).is_err());
        let nothing = MemoryDesc::any(&[1 << 40, 0, 7], DataType::F32).unwrap();
        assert_eq!(nothing.reshaped(&[0, 7 << 40]).unwrap().dims(), [0, 7 << 40]);
    }
}
