//! Where the elements of a call's tensors are: [`Shape`], [`Tensor`], [`Input`], [`Output`].

use std::marker::PhantomData;

use crate::data_type::{DataType, Element};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::memory::{Memory, ReadOnly};
use crate::memory_desc::MemoryDesc;

/// The number of dimensions that calls support.
pub(crate) const RANK: usize = 6;

/// Dimensions and strides, in elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    ndims: usize,
    // Entries from `ndims` on are 0: equality compares whole arrays.
    dims: [usize; RANK],
    strides: [usize; RANK],
}

impl Shape {
    /// Dense rows.
    pub(crate) fn rows(rows: usize, cols: usize) -> Self {
        let (mut dims, mut strides) = ([0; RANK], [0; RANK]);
        (dims[0], dims[1], strides[0], strides[1]) = (rows, cols, cols, 1);
        Self { ndims: 2, dims, strides }
    }

    /// The rows of a dense tensor along its second of three dimensions.
    fn along([outer, len, inner]: [usize; 3]) -> Self {
        let (mut dims, mut strides) = ([0; RANK], [0; RANK]);
        dims[..3].copy_from_slice(&[outer, inner, len]);
        strides[..3].copy_from_slice(&[len * inner, 1, inner]);
        Self { ndims: 3, dims, strides }
    }

    /// A dense vector.
    pub(crate) fn vector(len: usize) -> Self {
        let (mut dims, mut strides) = ([0; RANK], [0; RANK]);
        (dims[0], strides[0]) = (len, 1);
        Self { ndims: 1, dims, strides }
    }

    /// Any dimensions; `None` if there are more than [`RANK`].
    #[cfg(any(feature = "ndarray", feature = "candle"))]
    pub(crate) fn strided(dims: &[usize], strides: &[usize]) -> Option<Self> {
        let mut shape = Self { ndims: dims.len(), dims: [0; RANK], strides: [0; RANK] };
        shape.dims.get_mut(..dims.len())?.copy_from_slice(dims);
        for (to, (&dim, &stride)) in shape.strides.iter_mut().zip(dims.iter().zip(strides)) {
            // The stride of a dimension without a second index is arbitrary; equal tensors must have equal keys.
            *to = if dim < 2 { 1 } else { stride };
        }
        Some(shape)
    }

    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims[..self.ndims]
    }

    pub(crate) fn strides(&self) -> &[usize] {
        &self.strides[..self.ndims]
    }

    /// The size of the last dimension.
    pub(crate) fn cols(&self) -> usize {
        self.dims().last().copied().unwrap_or(0)
    }

    /// The dimensions without the last.
    pub(crate) fn outer(&self) -> &[usize] {
        &self.dims[..self.ndims.saturating_sub(1)]
    }
}

/// A tensor without its data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) data_type: DataType,
    pub(crate) shape: Shape,
}

impl Tensor {
    pub(crate) fn desc(&self) -> Result<MemoryDesc> {
        MemoryDesc::with_strides(self.shape.dims(), self.data_type, self.shape.strides())
    }
}

/// A tensor that a call reads.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) tensor: Tensor,
    data: *const u8,
    borrow: PhantomData<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// A slice as a vector.
    pub(crate) fn vector<T: Element>(slice: &'a [T]) -> Self {
        let tensor = Tensor { data_type: T::DATA_TYPE, shape: Shape::vector(slice.len()) };
        Self { tensor, data: slice.as_ptr().cast(), borrow: PhantomData }
    }

    /// A slice as rows; it must have as many elements.
    pub(crate) fn rows<T: Element>(
        name: &'static str,
        slice: &'a [T],
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        expect_rows(name, slice.len(), rows, cols)?;
        let tensor = Tensor { data_type: T::DATA_TYPE, shape: Shape::rows(rows, cols) };
        Ok(Self { tensor, data: slice.as_ptr().cast(), borrow: PhantomData })
    }

    /// A slice as the rows along its second of three dimensions; it must have as many elements.
    pub(crate) fn along<T: Element>(
        name: &'static str,
        slice: &'a [T],
        dims: [usize; 3],
    ) -> Result<Self> {
        expect_rows(name, slice.len(), dims[0].saturating_mul(dims[2]), dims[1])?;
        let tensor = Tensor { data_type: T::DATA_TYPE, shape: Shape::along(dims) };
        Ok(Self { tensor, data: slice.as_ptr().cast(), borrow: PhantomData })
    }

    /// # Safety
    /// `data` is the first element of such a tensor, whose elements are readable during `'a`.
    #[cfg(any(feature = "ndarray", feature = "candle"))]
    pub(crate) unsafe fn from_raw(tensor: Tensor, data: *const u8) -> Self {
        Self { tensor, data, borrow: PhantomData }
    }

    /// Memory over the tensor; `desc` is its descriptor.
    pub(super) fn memory(
        &self,
        engine: &Engine,
        desc: &MemoryDesc,
    ) -> Result<Memory<'a, ReadOnly>> {
        // SAFETY: the data have the tensor's type and layout, which the descriptor describes, and
        // are borrowed for 'a.
        unsafe { Memory::with_handle(engine, desc, self.data.cast_mut().cast()) }
    }
}

/// A tensor that a call writes.
pub(crate) struct Output<'a> {
    pub(crate) tensor: Tensor,
    data: *mut u8,
    borrow: PhantomData<&'a mut [u8]>,
}

impl<'a> Output<'a> {
    /// A slice as a vector.
    pub(crate) fn vector<T: Element>(slice: &'a mut [T]) -> Self {
        let tensor = Tensor { data_type: T::DATA_TYPE, shape: Shape::vector(slice.len()) };
        Self { tensor, data: slice.as_mut_ptr().cast(), borrow: PhantomData }
    }

    /// A slice as rows; it must have as many elements.
    pub(crate) fn rows<T: Element>(
        name: &'static str,
        slice: &'a mut [T],
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        expect_rows(name, slice.len(), rows, cols)?;
        let tensor = Tensor { data_type: T::DATA_TYPE, shape: Shape::rows(rows, cols) };
        Ok(Self { tensor, data: slice.as_mut_ptr().cast(), borrow: PhantomData })
    }

    /// A slice as the rows along its second of three dimensions; it must have as many elements.
    pub(crate) fn along<T: Element>(
        name: &'static str,
        slice: &'a mut [T],
        dims: [usize; 3],
    ) -> Result<Self> {
        expect_rows(name, slice.len(), dims[0].saturating_mul(dims[2]), dims[1])?;
        let tensor = Tensor { data_type: T::DATA_TYPE, shape: Shape::along(dims) };
        Ok(Self { tensor, data: slice.as_mut_ptr().cast(), borrow: PhantomData })
    }

    /// # Safety
    /// `data` is the first element of such a tensor, whose elements are readable and writable during
    /// `'a`, by nobody else.
    #[cfg(any(feature = "ndarray", feature = "candle"))]
    pub(crate) unsafe fn from_raw(tensor: Tensor, data: *mut u8) -> Self {
        Self { tensor, data, borrow: PhantomData }
    }

    /// Memory over the tensor; `desc` is its descriptor.
    pub(super) fn memory(self, engine: &Engine, desc: &MemoryDesc) -> Result<Memory<'a>> {
        // SAFETY: as for `Input::memory`, and the borrow is exclusive.
        unsafe { Memory::with_handle(engine, desc, self.data.cast()) }
    }
}

/// A tensor, and a result of the same dimensions that may share its memory.
pub(crate) enum Pair<'a> {
    Apart(Input<'a>, Output<'a>),
    InPlace(Output<'a>),
}

impl Pair<'_> {
    pub(crate) fn tensors(&self) -> [Tensor; 2] {
        match self {
            Self::Apart(from, to) => [from.tensor, to.tensor],
            Self::InPlace(both) => [both.tensor; 2],
        }
    }
}

/// The number of rows of `cols` elements in a slice.
pub(crate) fn rows(name: &'static str, len: usize, cols: usize) -> Result<usize> {
    if cols == 0 {
        return Err(Error::invalid("cols", "is 0; pass the number of elements of a row"));
    }
    if !len.is_multiple_of(cols) {
        return Err(Error::invalid(
            name,
            format_args!("has {len} elements; pass rows x {cols} (cols)"),
        ));
    }
    Ok(len / cols)
}

/// Rejects a slice that does not hold exactly these rows.
fn expect_rows(name: &'static str, len: usize, rows: usize, cols: usize) -> Result<()> {
    // The statistics may claim more rows than any slice holds.
    let expected = rows.saturating_mul(cols);
    if len == expected {
        return Ok(());
    }
    Err(Error::invalid(
        name,
        format_args!("has {len} elements; pass {rows} rows of {cols}, {expected} elements"),
    ))
}

/// Rejects a parameter that does not have one element per column.
pub(crate) fn expect_len(name: &'static str, len: usize, cols: usize) -> Result<()> {
    if len == cols {
        return Ok(());
    }
    Err(Error::invalid(
        name,
        format_args!("has {len} elements; pass one for each of the {cols} columns"),
    ))
}
