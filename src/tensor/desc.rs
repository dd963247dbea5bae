//! Memory descriptors: dimensions, element type and strides of a tensor, checked when made.

use super::{DataType, letters_of, tag_name};
use crate::error::{Error, Result};
use norm_sys as sys;

/// The largest number of dimensions.
pub(crate) const MAX_NDIMS: usize = sys::NORM_MAX_NDIMS as usize;

/// How elements are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Nothing is described: an argument that a problem does not have.
    Undef,
    /// To be chosen by a primitive descriptor.
    Any,
    /// By strides, counted in elements.
    Strided,
}

/// A tensor without data. Its byte size fits `isize`, so offsets never overflow.
#[derive(Clone, Debug)]
pub(crate) struct MemoryDesc {
    ndims: usize,
    dims: [i64; MAX_NDIMS],
    strides: [i64; MAX_NDIMS],
    data_type: Option<DataType>,
    layout: Layout,
}

impl MemoryDesc {
    /// The descriptor of nothing.
    pub(crate) const EMPTY: Self = Self {
        ndims: 0,
        dims: [0; MAX_NDIMS],
        strides: [0; MAX_NDIMS],
        data_type: None,
        layout: Layout::Undef,
    };

    /// Dense, outermost dimension first.
    pub(crate) fn dense(dims: &[i64], data_type: DataType) -> Result<Self> {
        let order: Vec<usize> = (0..dims.len()).collect();
        Self::ordered(dims, data_type, &order)
    }

    /// The layout that a tag names.
    pub(crate) fn with_tag(
        dims: &[i64],
        data_type: DataType,
        tag: sys::norm_format_tag_t,
    ) -> Result<Self> {
        if tag == sys::norm_format_tag_any {
            check_dims(dims)?;
            let mut any = Self::EMPTY;
            any.ndims = dims.len();
            any.dims[..dims.len()].copy_from_slice(dims);
            any.data_type = Some(data_type);
            any.layout = Layout::Any;
            return Ok(any);
        }
        let letters = letters_of(tag).ok_or_else(|| {
            Error::invalid(format!("tag: {tag} is not a format tag with a layout"))
        })?;
        if letters.len() != dims.len() {
            return Err(Error::invalid(format!(
                "tag: {letters} is for {} dimensions, ndims is {}",
                letters.len(),
                dims.len()
            )));
        }
        let order: Vec<usize> = letters.bytes().map(|l| usize::from(l - b'a')).collect();
        Self::ordered(dims, data_type, &order)
    }

    /// Dense, with the dimensions in the given order, outermost first.
    fn ordered(dims: &[i64], data_type: DataType, order: &[usize]) -> Result<Self> {
        check_dims(dims)?;
        let mut strides = [0; MAX_NDIMS];
        let mut stride: i64 = 1;
        for &d in order.iter().rev() {
            strides[d] = stride;
            stride = stride.checked_mul(dims[d].max(1)).ok_or_else(too_large)?;
        }
        Self::with_strides(dims, data_type, &strides[..dims.len()])
    }

    /// Any strides, 0 or more.
    pub(crate) fn with_strides(dims: &[i64], data_type: DataType, strides: &[i64]) -> Result<Self> {
        check_dims(dims)?;
        let mut desc = Self::EMPTY;
        desc.ndims = dims.len();
        desc.data_type = Some(data_type);
        desc.layout = Layout::Strided;
        desc.dims[..dims.len()].copy_from_slice(dims);
        desc.strides[..dims.len()].copy_from_slice(strides);
        if let Some(d) = strides.iter().position(|&s| s < 0) {
            return Err(Error::invalid(format!(
                "strides: strides[{d}] = {} is negative",
                strides[d]
            )));
        }
        let mut elements: i64 = 1;
        let mut last: i64 = 0;
        for (&dim, &stride) in dims.iter().zip(strides) {
            elements = elements.checked_mul(dim.max(1)).ok_or_else(too_large)?;
            let reach = (dim - 1).max(0).checked_mul(stride).ok_or_else(too_far)?;
            last = last.checked_add(reach).ok_or_else(too_far)?;
        }
        // Both the span and the number of elements are bounded, so that products of dimensions are
        // safe too when a stride is 0.
        let size = data_type.size() as i64;
        last.checked_add(1).and_then(|n| n.checked_mul(size)).ok_or_else(too_far)?;
        elements.checked_mul(size).ok_or_else(too_large)?;
        Ok(desc)
    }

    /// This descriptor in the layout of `other`, which has the same number of dimensions, without
    /// gaps: the order of the strides is kept.
    pub(crate) fn resolved_like(&self, other: &Self) -> Result<Self> {
        let Some(data_type) = self.data_type else { return Ok(Self::EMPTY) };
        Self::ordered(self.dims(), data_type, &other.order()[..self.ndims])
    }

    /// This descriptor dense, outermost dimension first.
    pub(crate) fn resolved_dense(&self) -> Result<Self> {
        self.data_type.map_or(Ok(Self::EMPTY), |data_type| Self::dense(self.dims(), data_type))
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

    /// An f32 descriptor of the rows' statistics: this one without its last dimension, in the same
    /// order of strides.
    pub(crate) fn statistics(&self) -> Result<Self> {
        let n = self.ndims - 1;
        let order: Vec<usize> =
            self.order()[..self.ndims].iter().copied().filter(|&d| d != n).collect();
        Self::ordered(&self.dims[..n], DataType::F32, &order)
    }

    pub(crate) fn ndims(&self) -> usize {
        self.ndims
    }

    pub(crate) fn dims(&self) -> &[i64] {
        &self.dims[..self.ndims]
    }

    pub(crate) fn strides(&self) -> &[i64] {
        &self.strides[..self.ndims]
    }

    /// The whole arrays, for C queries.
    pub(crate) fn raw_dims(&self) -> &[i64; MAX_NDIMS] {
        &self.dims
    }

    pub(crate) fn raw_strides(&self) -> &[i64; MAX_NDIMS] {
        &self.strides
    }

    pub(crate) fn data_type(&self) -> Option<DataType> {
        self.data_type
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn has_zero_dim(&self) -> bool {
        self.dims().contains(&0)
    }

    /// Bytes from the first to one past the last element.
    pub(crate) fn size(&self) -> usize {
        if self.layout != Layout::Strided || self.ndims == 0 || self.has_zero_dim() {
            return 0;
        }
        let last: i64 = self.dims().iter().zip(self.strides()).map(|(d, s)| (d - 1) * s).sum();
        (last as usize + 1) * self.data_type.map_or(0, DataType::size)
    }

    /// Whether two elements share an address. Sorted by stride, each dimension must step past all
    /// that lies within it.
    pub(crate) fn overlaps_itself(&self) -> bool {
        if self.has_zero_dim() {
            return false;
        }
        let mut inner: Vec<(i64, i64)> = self
            .dims()
            .iter()
            .zip(self.strides())
            .filter(|(d, _)| **d > 1)
            .map(|(d, s)| (*s, *d))
            .collect();
        inner.sort_unstable();
        let mut reach = 0;
        inner.iter().any(|&(stride, dim)| {
            let overlap = stride <= reach;
            reach += (dim - 1) * stride;
            overlap
        })
    }

    /// `f32::blocked:ab` in oneDNN's notation, for verbose lines and messages.
    pub(crate) fn describe(&self) -> String {
        let name = self.data_type.map_or("undef", DataType::name);
        match self.layout {
            Layout::Undef => "undef::undef::".into(),
            Layout::Any => format!("{name}::any:"),
            Layout::Strided => match tag_name(&self.order()[..self.ndims]) {
                Some(tag) if self.is_dense() => format!("{name}::blocked:{tag}"),
                _ => {
                    let strides: Vec<String> =
                        self.strides().iter().map(ToString::to_string).collect();
                    format!("{name}::strided:{}", strides.join("x"))
                }
            },
        }
    }

    fn is_dense(&self) -> bool {
        let elements: i64 = self.dims().iter().product();
        self.size() == elements as usize * self.data_type.map_or(0, DataType::size)
    }
}

impl PartialEq for MemoryDesc {
    fn eq(&self, other: &Self) -> bool {
        self.ndims == other.ndims
            && self.data_type == other.data_type
            && self.layout == other.layout
            && self.dims() == other.dims()
            && (0..self.ndims).all(|d| self.dims[d] == 1 || self.strides[d] == other.strides[d])
    }
}

fn check_dims(dims: &[i64]) -> Result<()> {
    if dims.len() > MAX_NDIMS {
        return Err(Error::invalid(format!("ndims: {} is above {MAX_NDIMS}", dims.len())));
    }
    match dims.iter().position(|&d| d < 0) {
        Some(d) => Err(Error::invalid(format!("dims: dims[{d}] = {} is negative", dims[d]))),
        None => Ok(()),
    }
}

fn too_large() -> Error {
    Error::invalid("dims: the tensor is larger than an address space")
}

fn too_far() -> Error {
    Error::invalid("strides: the tensor spans more than an address space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_the_tag() {
        let desc = MemoryDesc::with_tag(&[2, 3, 5], DataType::F32, sys::norm_acb).unwrap();
        assert_eq!(desc.strides(), [15, 1, 3]);
        assert_eq!(desc.size(), 120);
        assert_eq!(desc.describe(), "f32::blocked:acb");
        assert_eq!(desc.statistics().unwrap().strides(), [3, 1]);
        let bac = MemoryDesc::with_tag(&[2, 3, 5], DataType::F32, sys::norm_bac).unwrap();
        assert_eq!(bac.statistics().unwrap().strides(), [1, 2]);
    }

    #[test]
    fn overlap_is_found() {
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
    fn sizes_that_overflow_are_refused() {
        let huge = i64::MAX / 2;
        assert!(MemoryDesc::dense(&[huge, 3], DataType::F32).is_err());
        assert!(MemoryDesc::with_strides(&[huge, 3], DataType::F32, &[0, 1]).is_err());
        assert!(MemoryDesc::with_strides(&[3, 3], DataType::F32, &[huge, 1]).is_err());
        assert!(MemoryDesc::dense(&[-1, 3], DataType::F32).is_err());
    }
}
