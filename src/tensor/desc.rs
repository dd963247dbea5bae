//! Memory descriptors: dimensions, element type and layout of a tensor, validated on creation.

use super::tags::Order;
use super::{DataType, MAX_NDIMS, letters_of};
use crate::error::{Error, Result};
use crate::mark::{Kind, Mark};
use crate::text::{joined, shown};
use arrayvec::ArrayVec;
use norm_sys as sys;
use std::fmt;

/// The placement of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// No tensor: an argument that the problem does not use.
    Undef,
    /// A primitive descriptor chooses the layout.
    Any,
    /// Strides, counted in elements, and inner blocks.
    Strided,
    /// Not a tensor but one number, stored in the memory object itself.
    HostScalar,
}

/// A tensor without data. Its size in bytes fits `isize`, so offsets never overflow.
///
/// A dimension may be blocked, more than once. Its stride is then that of the outermost blocks. The
/// inner blocks are dense, with the last one innermost. Padding up to the padded dimension belongs
/// to the tensor's memory but not to the tensor.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct MemoryDesc {
    /// C holds descriptors by pointer.
    pub(crate) mark: Mark,
    pub(super) ndims: usize,
    pub(super) dims: [i64; MAX_NDIMS],
    pub(super) padded_dims: [i64; MAX_NDIMS],
    pub(super) strides: [i64; MAX_NDIMS],
    /// The offset of the first element.
    pub(super) offset: i64,
    pub(super) block_count: usize,
    /// Sizes of the inner blocks, outermost first, and the dimensions that they divide.
    pub(super) block_sizes: [i64; MAX_NDIMS],
    pub(super) block_dims: [i64; MAX_NDIMS],
    pub(super) data_type: Option<DataType>,
    pub(super) layout: Layout,
}

impl MemoryDesc {
    /// The empty descriptor.
    pub(crate) const EMPTY: Self = Self {
        mark: Mark::part(Kind::MemoryDesc),
        ndims: 0,
        dims: [0; MAX_NDIMS],
        padded_dims: [0; MAX_NDIMS],
        strides: [0; MAX_NDIMS],
        offset: 0,
        block_count: 0,
        block_sizes: [0; MAX_NDIMS],
        block_dims: [0; MAX_NDIMS],
        data_type: None,
        layout: Layout::Undef,
    };

    /// Dense row-major.
    pub(crate) fn dense(dims: &[i64], data_type: DataType) -> Result<Self> {
        check_dims(dims)?;
        let order = Order { dims: (0..dims.len()).collect(), ..Order::default() };
        Self::ordered(dims, data_type, &order)
    }

    /// The layout of a tag.
    pub(crate) fn with_tag(
        dims: &[i64],
        data_type: DataType,
        tag: sys::norm_format_tag_t,
    ) -> Result<Self> {
        if tag == sys::norm_format_tag_any {
            return Self::any(dims, data_type);
        }
        let letters = letters_of(tag).ok_or_else(|| {
            Error::invalid(format_args!("tag: {tag} is not a format tag with a layout"))
        })?;
        Self::named(dims, data_type, &Order::of(letters), letters)
    }

    /// The layout of a tag given as text.
    pub(crate) fn with_letters(dims: &[i64], data_type: DataType, letters: &str) -> Result<Self> {
        let order = Order::parse(letters).ok_or_else(|| {
            Error::invalid(format_args!(
                "tag: '{letters}' is not a list of dimensions, each once, and of blocks"
            ))
        })?;
        Self::named(dims, data_type, &order, letters)
    }

    /// Dense, in the order of a named layout.
    fn named(dims: &[i64], data_type: DataType, order: &Order, name: &str) -> Result<Self> {
        if order.dims.len() != dims.len() {
            return Err(Error::invalid(format_args!(
                "tag: {name} has {} dimensions, but ndims is {}",
                order.dims.len(),
                dims.len()
            )));
        }
        Self::ordered(dims, data_type, order)
    }

    /// Changes the data type.
    pub(crate) fn set_data_type(&mut self, data_type: DataType) -> Result<()> {
        if self.ndims == 0 {
            return Err(Error::invalid("memory_desc: an empty descriptor has no data type"));
        }
        let changed = Self { data_type: Some(data_type), ..self.clone() };
        let too_large =
            |_| Error::invalid("data_type: the tensor is larger than the address space");
        changed.checked().map_err(too_large)?;
        self.data_type = Some(data_type);
        Ok(())
    }

    /// A copy with another data type.
    #[cfg(test)]
    pub(crate) fn with_data_type(&self, data_type: DataType) -> Result<Self> {
        let mut copy = self.clone();
        copy.set_data_type(data_type).map(|()| copy)
    }

    /// A layout to be chosen later.
    pub(super) fn any(dims: &[i64], data_type: DataType) -> Result<Self> {
        check_dims(dims)?;
        let mut any = Self::EMPTY;
        any.ndims = dims.len();
        any.dims[..dims.len()].copy_from_slice(dims);
        any.padded_dims = any.dims;
        any.data_type = Some(data_type);
        any.layout = Layout::Any;
        Ok(any)
    }

    /// Dense, in the given order.
    pub(super) fn ordered(dims: &[i64], data_type: DataType, order: &Order) -> Result<Self> {
        let mut desc = Self::any(dims, data_type)?;
        desc.layout = Layout::Strided;
        let mut stride: i64 = 1;
        for (slot, &(dim, size)) in order.blocks.iter().enumerate() {
            desc.block_sizes[slot] = size;
            desc.block_dims[slot] = dim as i64;
            stride = stride.checked_mul(size).ok_or_else(too_large)?;
        }
        desc.block_count = order.blocks.len();
        for &d in order.dims.iter().rev() {
            let block = desc.block_of(d);
            let blocks = dims[d].div_euclid(block) + i64::from(dims[d] % block != 0);
            desc.padded_dims[d] = blocks.checked_mul(block).ok_or_else(too_large)?;
            desc.strides[d] = stride;
            stride = stride.checked_mul(blocks.max(1)).ok_or_else(too_large)?;
        }
        desc.checked().map_err(|_| too_large())
    }

    /// Arbitrary strides, 0 or more.
    pub(crate) fn with_strides(dims: &[i64], data_type: DataType, strides: &[i64]) -> Result<Self> {
        let mut desc = Self::any(dims, data_type)?;
        desc.layout = Layout::Strided;
        desc.strides[..dims.len()].copy_from_slice(strides);
        desc.checked()
    }

    /// Validates: no negative values, sizes within the address space.
    pub(super) fn checked(self) -> Result<Self> {
        check_dims(self.dims())?;
        if self.layout != Layout::Strided {
            return Ok(self);
        }
        if let Some(d) = self.strides().iter().position(|&s| s < 0) {
            return Err(Error::invalid(format_args!(
                "strides: strides[{d}] = {} is negative",
                self.strides[d]
            )));
        }
        let mut elements: i64 = 1;
        let mut last = self.offset;
        for (d, padded) in self.padded_dims[..self.ndims].iter().enumerate() {
            elements = elements.checked_mul((*padded).max(1)).ok_or_else(too_large)?;
            let steps = (self.outer_count(d) - 1).max(0);
            let reach = steps.checked_mul(self.strides[d]).ok_or_else(too_far)?;
            last = last.checked_add(reach).ok_or_else(too_far)?;
        }
        // Both the span and the number of elements are bounded, so that products of dimensions do
        // not overflow when a stride is 0.
        let size = self.data_type.map_or(1, DataType::size) as i64;
        let inside = self.inner_size();
        last.checked_add(inside).and_then(|n| n.checked_mul(size)).ok_or_else(too_far)?;
        elements.checked_mul(size).ok_or_else(too_large)?;
        Ok(self)
    }

    /// Dimension and size of each inner block, outermost first.
    pub(crate) fn blocks(&self) -> impl DoubleEndedIterator<Item = (usize, i64)> {
        let both = self.block_dims.iter().zip(&self.block_sizes).take(self.block_count);
        both.map(|(d, size)| (*d as usize, *size))
    }

    /// Whether any dimension is blocked.
    pub(crate) fn is_blocked(&self) -> bool {
        self.block_count > 0
    }

    /// The number of indices per step of a dimension's stride: 1 without blocks.
    pub(super) fn block_of(&self, dim: usize) -> i64 {
        self.blocks().filter(|(d, _)| *d == dim).map(|(_, size)| size).product()
    }

    /// The number of steps of its stride in a dimension.
    pub(super) fn outer_count(&self, dim: usize) -> i64 {
        let block = self.block_of(dim);
        self.padded_dims[dim] / block + i64::from(self.padded_dims[dim] % block != 0)
    }

    /// Elements in the tile formed by all blocks.
    fn inner_size(&self) -> i64 {
        self.blocks().map(|(_, size)| size).product()
    }

    /// The order of strides, and the blocks.
    pub(super) fn order_and_blocks(&self) -> Order {
        let dims = self.order()[..self.ndims].iter().copied().collect();
        Order { dims, blocks: self.blocks().collect() }
    }

    /// The dimensions from outermost to innermost by stride; ties keep the logical order.
    pub(crate) fn order(&self) -> [usize; MAX_NDIMS] {
        let mut order = [0; MAX_NDIMS];
        for (i, slot) in order.iter_mut().enumerate() {
            *slot = i;
        }
        order[..self.ndims].sort_by_key(|&d| std::cmp::Reverse(self.strides[d]));
        order
    }

    #[inline]
    pub(crate) fn ndims(&self) -> usize {
        self.ndims
    }

    pub(crate) fn dims(&self) -> &[i64] {
        &self.dims[..self.ndims]
    }

    pub(crate) fn padded_dims(&self) -> &[i64] {
        &self.padded_dims[..self.ndims]
    }

    pub(crate) fn strides(&self) -> &[i64] {
        &self.strides[..self.ndims]
    }

    /// The offset of the first element in the buffer. Executions add it to the address.
    pub(crate) fn offset(&self) -> i64 {
        self.offset
    }

    pub(crate) fn block_count(&self) -> usize {
        self.block_count
    }

    /// The whole arrays, for C queries.
    pub(crate) fn raw_dims(&self) -> &[i64; MAX_NDIMS] {
        &self.dims
    }

    pub(crate) fn raw_padded_dims(&self) -> &[i64; MAX_NDIMS] {
        &self.padded_dims
    }

    pub(crate) fn raw_strides(&self) -> &[i64; MAX_NDIMS] {
        &self.strides
    }

    pub(crate) fn raw_block_sizes(&self) -> &[i64; MAX_NDIMS] {
        &self.block_sizes
    }

    pub(crate) fn raw_block_dims(&self) -> &[i64; MAX_NDIMS] {
        &self.block_dims
    }

    #[inline]
    pub(crate) fn data_type(&self) -> Option<DataType> {
        self.data_type
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    #[inline]
    pub(crate) fn is_host_scalar(&self) -> bool {
        self.layout == Layout::HostScalar
    }

    #[inline]
    pub(crate) fn has_zero_dim(&self) -> bool {
        self.dims().contains(&0)
    }

    /// Size in bytes of a buffer, from its start to the end of the last element, including padding.
    pub(crate) fn size(&self) -> usize {
        if self.is_host_scalar() {
            return self.data_type.map_or(0, DataType::size);
        }
        if self.layout != Layout::Strided || self.ndims == 0 || self.has_zero_dim() {
            return 0;
        }
        let last: i64 = (0..self.ndims).map(|d| (self.outer_count(d) - 1) * self.strides[d]).sum();
        let elements = self.offset + last + self.inner_size();
        elements as usize * self.data_type.map_or(0, DataType::size)
    }

    /// Size in bytes of the dimension that spans most, with the gap after its last index.
    pub(crate) fn size_by_strides(&self) -> usize {
        if self.layout != Layout::Strided || self.has_zero_dim() {
            return 0;
        }
        let span = |d: usize| match self.outer_count(d) {
            1 => 1,
            count => count.saturating_mul(self.strides[d]),
        };
        let elements = (0..self.ndims).map(span).max().unwrap_or(0) as usize;
        elements.saturating_mul(self.data_type.map_or(0, DataType::size))
    }

    /// Whether two elements share an address. In order of strides, each stride must exceed the span
    /// of the smaller dimensions.
    pub(crate) fn overlaps_itself(&self) -> bool {
        if self.has_zero_dim() {
            return false;
        }
        let mut inner: ArrayVec<(i64, i64), MAX_NDIMS> = (0..self.ndims)
            .map(|d| (self.strides[d], self.outer_count(d)))
            .filter(|(_, count)| *count > 1)
            .collect();
        inner.sort_unstable();
        // The elements of a tile are dense.
        let mut reach = self.inner_size() - 1;
        inner.iter().any(|&(stride, count)| {
            let overlap = stride <= reach;
            reach += (count - 1) * stride;
            overlap
        })
    }

    /// Whether both have the same layout, apart from the offset.
    pub(crate) fn same_layout(&self, other: &Self) -> bool {
        Self { offset: 0, ..self.clone() } == Self { offset: 0, ..other.clone() }
    }

    /// Whether there are no gaps between elements except block padding.
    pub(crate) fn is_dense(&self) -> bool {
        let elements = self.padded_dims().iter().try_fold(1i64, |n, &dim| n.checked_mul(dim));
        let element = self.data_type.map_or(0, DataType::size);
        let end = elements.and_then(|elements| elements.checked_add(self.offset));
        let size = end.and_then(|end| (end as usize).checked_mul(element));
        !self.overlaps_itself() && Some(self.size()) == size
    }

    /// `f32::blocked:ab` in oneDNN's notation, for verbose lines and messages.
    pub(crate) fn describe(&self) -> impl fmt::Display {
        let name = self.data_type.map_or("undef", DataType::name);
        shown(move |f| match self.layout {
            Layout::Undef => f.write_str("undef::undef::"),
            Layout::Any => write!(f, "{name}::any:"),
            Layout::HostScalar => write!(f, "{name}::host_scalar:"),
            Layout::Strided if self.is_dense() => {
                write!(f, "{name}::blocked:{}", self.order_and_blocks().letters())
            }
            Layout::Strided => {
                write!(f, "{name}::strided:{}", joined(self.strides().iter(), "x"))?;
                let mut blocks = self.blocks().map(|(d, size)| (size, char::from(b'a' + d as u8)));
                blocks.try_for_each(|(size, d)| write!(f, ":{size}{d}"))
            }
        })
    }
}

impl PartialEq for MemoryDesc {
    fn eq(&self, other: &Self) -> bool {
        self.ndims == other.ndims
            && self.data_type == other.data_type
            && self.layout == other.layout
            && self.dims() == other.dims()
            && self.padded_dims() == other.padded_dims()
            && self.offset == other.offset
            && self.blocks().eq(other.blocks())
            && (0..self.ndims)
                .all(|d| self.outer_count(d) == 1 || self.strides[d] == other.strides[d])
    }
}

pub(super) fn check_dims(dims: &[i64]) -> Result<()> {
    if dims.len() > MAX_NDIMS {
        return Err(Error::invalid(format_args!("ndims: {} exceeds {MAX_NDIMS}", dims.len())));
    }
    match dims.iter().position(|&d| d < 0) {
        Some(d) => Err(Error::invalid(format_args!("dims: dims[{d}] = {} is negative", dims[d]))),
        None => Ok(()),
    }
}

fn too_large() -> Error {
    Error::invalid("dims: the tensor is larger than the address space")
}

fn too_far() -> Error {
    Error::invalid("strides: the tensor spans more than the address space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_the_tag() {
        let desc = MemoryDesc::with_tag(&[2, 3, 5], DataType::F32, sys::norm_acb).unwrap();
        assert_eq!(desc.strides(), [15, 1, 3]);
        assert_eq!(desc.size(), 120);
        assert_eq!(desc.describe().to_string(), "f32::blocked:acb");
        assert_eq!(desc.statistics().unwrap().strides(), [3, 1]);
        let bac = MemoryDesc::with_tag(&[2, 3, 5], DataType::F32, sys::norm_bac).unwrap();
        assert_eq!(bac.statistics().unwrap().strides(), [1, 2]);
    }

    #[test]
    fn blocks_are_padded_and_dense() {
        let desc = MemoryDesc::with_tag(&[20, 30, 2], DataType::F32, sys::norm_ABc16b16a).unwrap();
        assert_eq!(desc.padded_dims(), [32, 32, 2]);
        assert_eq!(desc.strides(), [2 * 2 * 256, 2 * 256, 256]);
        assert_eq!(desc.size(), 32 * 32 * 2 * 4);
        assert_eq!(desc.describe().to_string(), "f32::blocked:ABc16b16a");
        assert!(desc.is_dense() && !desc.overlaps_itself());
        let empty = MemoryDesc::with_tag(&[0, 30], DataType::F32, sys::norm_AB16b16a).unwrap();
        assert_eq!((empty.size(), empty.padded_dims()), (0, &[0, 32][..]));
    }

    #[test]
    fn letters_describe_tags_and_other_layouts() {
        let dims = [20, 30, 2];
        let of = |letters| MemoryDesc::with_letters(&dims, DataType::F32, letters).unwrap();
        let tag = |tag| MemoryDesc::with_tag(&dims, DataType::F32, tag).unwrap();
        assert_eq!(of("ABc16b16a"), tag(sys::norm_ABc16b16a));
        assert_eq!(of("cab"), tag(sys::norm_cab));
        let odd = of("cBA6a7b");
        assert_eq!(odd.padded_dims(), [24, 35, 2]);
        assert_eq!(odd.strides(), [42, 4 * 42, 5 * 4 * 42]);
        assert_eq!(odd.describe().to_string(), "f32::blocked:cBA6a7b");
        assert_eq!(MemoryDesc::of_blob(&odd.to_blob()).unwrap(), odd);
        assert!(MemoryDesc::with_letters(&dims, DataType::F32, "ab").is_err());
        let halves = odd.with_data_type(DataType::F16).unwrap();
        assert_eq!(
            (halves.size() * 2, halves.describe().to_string()),
            (odd.size(), "f16::blocked:cBA6a7b".into())
        );
        assert!(halves.same_layout(&odd.with_data_type(DataType::F16).unwrap()));
    }

    #[test]
    fn overlap_is_detected() {
        let desc = |dims: &[i64], strides: &[i64]| {
            MemoryDesc::with_strides(dims, DataType::F32, strides).unwrap().overlaps_itself()
        };
        assert!(!desc(&[4, 8], &[8, 1]));
        assert!(!desc(&[4, 8], &[9, 1]));
        assert!(!desc(&[4, 8], &[1, 4]));
        assert!(desc(&[4, 8], &[7, 1]));
        assert!(desc(&[4, 8], &[0, 1]));
        assert!(!desc(&[1, 8], &[0, 1]));
        assert!(!desc(&[0, 8], &[0, 0]));
    }

    #[test]
    fn overflowing_sizes_are_rejected() {
        let huge = i64::MAX / 2;
        assert!(MemoryDesc::dense(&[huge, 3], DataType::F32).is_err());
        assert!(MemoryDesc::with_strides(&[huge, 3], DataType::F32, &[0, 1]).is_err());
        assert!(MemoryDesc::with_strides(&[3, 3], DataType::F32, &[huge, 1]).is_err());
        assert!(MemoryDesc::dense(&[-1, 3], DataType::F32).is_err());
        let tag = sys::norm_AB16b16a;
        assert!(MemoryDesc::with_tag(&[i64::MAX, 1], DataType::U8, tag).is_err());
        assert!(MemoryDesc::with_tag(&[i64::MAX / 16, 1], DataType::U8, tag).is_err());
        let letters = "a99999999a99999999a99999999a";
        assert!(MemoryDesc::with_letters(&[1], DataType::U8, letters).is_err());
        let bytes = MemoryDesc::dense(&[i64::MAX / 4], DataType::U8).unwrap();
        assert!(bytes.with_data_type(DataType::F64).is_err());
        assert!(MemoryDesc::EMPTY.with_data_type(DataType::F32).is_err());
    }
}
