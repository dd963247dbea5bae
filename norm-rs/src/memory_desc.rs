//! Dimensions, data type and layout of a tensor, without data: [`MemoryDesc`] and [`Dims`].

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr;

use norm_sys as sys;

use crate::data_type::DataType;
use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::tag::Tag;

/// Maximum number of dimensions of a descriptor.
pub const MAX_NDIMS: usize = sys::NORM_MAX_NDIMS as usize;

/// Up to [`MAX_NDIMS`] dimensions or strides. Dereferences to a slice.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dims {
    // Entries from `len` on are 0: equality compares whole arrays.
    entries: [usize; MAX_NDIMS],
    len: usize,
}

impl Dims {
    /// Copies a slice.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the slice is longer
    /// than [`MAX_NDIMS`].
    pub fn new(dims: &[usize]) -> Result<Self> {
        let mut entries = [0; MAX_NDIMS];
        match entries.get_mut(..dims.len()) {
            Some(front) => front.copy_from_slice(dims),
            None => {
                return Err(Error::invalid(
                    "dims",
                    format_args!("has {} entries; the maximum is {MAX_NDIMS}", dims.len()),
                ));
            }
        }
        Ok(Self { entries, len: dims.len() })
    }

    fn from_c(entries: &[sys::norm_dim_t]) -> Self {
        let mut dims = Self { entries: [0; MAX_NDIMS], len: entries.len() };
        for (to, &from) in dims.entries.iter_mut().zip(entries) {
            *to = usize::try_from(from).unwrap_or(0);
        }
        dims
    }
}

impl Deref for Dims {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.entries[..self.len]
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Dimensions or strides for C; `name` is used in errors.
fn dims_to_c(name: &'static str, dims: &[usize]) -> Result<sys::norm_dims_t> {
    let mut entries = [0; MAX_NDIMS];
    if dims.len() > MAX_NDIMS {
        let reason = format_args!("has {} entries; the maximum is {MAX_NDIMS}", dims.len());
        return Err(Error::invalid(name, reason));
    }
    for (to, &from) in entries.iter_mut().zip(dims) {
        *to = sys::norm_dim_t::try_from(from)
            .map_err(|_| Error::invalid(name, format_args!("has an entry of {from}: too large")))?;
    }
    Ok(entries)
}

/// Dimensions, data type and layout of a tensor, without data.
///
/// Two descriptors are equal if they describe the same tensor; strides of dimensions of size 1 are
/// ignored.
pub struct MemoryDesc(Handle<sys::norm_memory_desc>);

impl MemoryDesc {
    /// A dense row-major tensor: the last dimension is contiguous.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): more than [`MAX_NDIMS`]
    /// dimensions, or a tensor larger than the address space.
    pub fn dense(dims: &[usize], data_type: DataType) -> Result<Self> {
        Self::from_parts(dims, data_type, None)
    }

    /// A dense tensor with the layout of `tag`. With [`Tag::Any`] a primitive chooses the layout.
    ///
    /// ```
    /// use norm_rs::{DataType, MemoryDesc, Tag};
    /// let desc = MemoryDesc::with_tag(&[2, 3], DataType::F32, Tag::Ba)?;
    /// assert_eq!(desc.strides().unwrap()[..], [1, 2]);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`MemoryDesc::dense`]; also if the tag's number of letters is not the number of
    /// dimensions.
    pub fn with_tag(dims: &[usize], data_type: DataType, tag: Tag) -> Result<Self> {
        let c_dims = dims_to_c("dims", dims)?;
        let ndims = dims.len() as i32; // at most MAX_NDIMS
        // SAFETY: `c_dims` has NORM_MAX_NDIMS entries; on success a descriptor that the caller owns
        // is stored.
        let handle = unsafe {
            Handle::create(|out| {
                sys::norm_memory_desc_create_with_tag(
                    out,
                    ndims,
                    c_dims.as_ptr(),
                    data_type.to_c(),
                    tag.to_c(),
                )
            })
        };
        handle.map(Self)
    }

    /// A tensor with the given strides, in elements: `(i0, i1, ...)` is at `i0*strides[0] +
    /// i1*strides[1] + ...`.
    ///
    /// A stride of 0 broadcasts one element; it is valid for inputs only.
    ///
    /// # Errors
    /// As [`MemoryDesc::dense`]; also if the slices have different lengths.
    pub fn with_strides(dims: &[usize], data_type: DataType, strides: &[usize]) -> Result<Self> {
        Self::from_parts(dims, data_type, Some(strides))
    }

    /// The empty descriptor.
    pub(crate) fn empty() -> Result<Self> {
        Self::from_parts(&[], DataType::F32, None)
    }

    fn from_parts(dims: &[usize], data_type: DataType, strides: Option<&[usize]>) -> Result<Self> {
        let c_dims = dims_to_c("dims", dims)?;
        let c_strides = match strides {
            Some(strides) if strides.len() != dims.len() => {
                return Err(Error::invalid(
                    "strides",
                    format_args!(
                        "has {} entries, but dims has {}; pass one stride for each dimension",
                        strides.len(),
                        dims.len()
                    ),
                ));
            }
            Some(strides) => Some(dims_to_c("strides", strides)?),
            None => None,
        };
        let strides = c_strides.as_ref().map_or(ptr::null(), |strides| strides.as_ptr());
        let ndims = dims.len() as i32; // at most MAX_NDIMS
        // SAFETY: `c_dims`, and `strides` if not NULL, have NORM_MAX_NDIMS entries; on success a
        // descriptor that the caller owns is stored.
        let handle = unsafe {
            Handle::create(|out| {
                sys::norm_memory_desc_create_with_strides(
                    out,
                    ndims,
                    c_dims.as_ptr(),
                    data_type.to_c(),
                    strides,
                )
            })
        };
        handle.map(Self)
    }

    /// Owns a descriptor that a C function stored.
    ///
    /// # Safety
    /// The caller owns `desc`, which is valid or NULL.
    pub(crate) unsafe fn owned(desc: sys::norm_memory_desc_t) -> Result<Self> {
        let store = |out: *mut sys::norm_memory_desc_t| {
            // SAFETY: a place for the answer.
            unsafe { out.write(desc) };
            sys::norm_success
        };
        // SAFETY: the caller's promise.
        unsafe { Handle::create(store) }.map(Self)
    }

    /// Borrows a descriptor that C owns.
    ///
    /// # Safety
    /// `desc` is valid as long as the result is used.
    pub(crate) unsafe fn lent(desc: sys::const_norm_memory_desc_t) -> Result<ManuallyDrop<Self>> {
        // SAFETY: the caller's promise; nobody changes it or frees it through the result.
        unsafe { Self::owned(desc.cast_mut()) }.map(ManuallyDrop::new)
    }

    /// A copy of a descriptor that C owns.
    ///
    /// # Safety
    /// `desc` is valid.
    pub(crate) unsafe fn copy_of(desc: sys::const_norm_memory_desc_t) -> Result<Self> {
        // SAFETY: the caller's promise; on success a descriptor that the caller owns is stored.
        unsafe { Handle::create(|out| sys::norm_memory_desc_clone(out, desc)) }.map(Self)
    }

    /// The logical dimensions; empty for an empty descriptor.
    pub fn dims(&self) -> Dims {
        self.query_dims(sys::norm_query_dims).unwrap_or(Dims { entries: [0; MAX_NDIMS], len: 0 })
    }

    /// The strides in elements; `None` for [`Tag::Any`] and for an empty descriptor.
    pub fn strides(&self) -> Option<Dims> {
        self.query_dims(sys::norm_query_strides)
    }

    /// The element type; `None` for an empty descriptor.
    pub fn data_type(&self) -> Option<DataType> {
        let mut data_type = sys::norm_data_type_undef;
        // SAFETY: the answer to this query is a norm_data_type_t.
        unsafe { self.query(sys::norm_query_data_type, (&raw mut data_type).cast()) }.ok()?;
        DataType::from_c(data_type)
    }

    /// The same elements in the same logical order with other dimensions. Dimensions that are merged or split must be
    /// dense.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the number of elements differs or the
    /// layout does not allow it.
    pub fn reshape(&self, dims: &[usize]) -> Result<Self> {
        let entries = dims_to_c("dims", dims)?;
        // SAFETY: the descriptor is valid, and there are as many dimensions; on success a descriptor that the caller
        // owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_memory_desc_reshape(
                    out,
                    self.as_ptr(),
                    dims.len() as i32,
                    entries.as_ptr(),
                )
            })
        };
        desc.map(Self)
    }

    /// The tensor with its axes in another order: axis `i` becomes axis `permutation[i]`. No element moves.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if it is no permutation of the axes.
    pub fn permute_axes(&self, permutation: &[usize]) -> Result<Self> {
        if permutation.len() != self.dims().len() {
            let count = self.dims().len();
            return Err(Error::invalid(
                "permutation",
                format_args!("has {} axes, the tensor {count}", permutation.len()),
            ));
        }
        let axes: Vec<i32> =
            permutation.iter().map(|axis| i32::try_from(*axis).unwrap_or(-1)).collect();
        // SAFETY: as above.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_memory_desc_permute_axes(out, self.as_ptr(), axes.as_ptr())
            })
        };
        desc.map(Self)
    }

    /// The tensor with its last `trailing` dimensions as one, for PyTorch's `normalized_shape`.
    ///
    /// ```
    /// use norm_rs::{DataType, MemoryDesc};
    /// let images = MemoryDesc::dense(&[8, 3, 16, 16], DataType::F32)?;
    /// assert_eq!(&*images.normalized_shape(3)?.dims(), [8, 768]);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`reshape`](Self::reshape), and if there are not so many dimensions.
    pub fn normalized_shape(&self, trailing: usize) -> Result<Self> {
        let mut dims = self.dims().to_vec();
        if trailing == 0 || trailing > dims.len() {
            let count = dims.len();
            return Err(Error::invalid(
                "trailing",
                format_args!("is {trailing} of {count} dimensions"),
            ));
        }
        let last = dims.split_off(dims.len() - trailing).iter().product();
        dims.push(last);
        self.reshape(&dims)
    }

    /// The tensor with an axis as the last one, for Keras' `axis`. The other axes keep their order.
    ///
    /// ```
    /// use norm_rs::{DataType, MemoryDesc};
    /// let images = MemoryDesc::dense(&[8, 3, 16, 16], DataType::F32)?;
    /// let channels = images.with_axis_last(1)?;
    /// assert_eq!(&*channels.dims(), [8, 16, 16, 3]);
    /// assert_eq!(channels.strides().as_deref(), Some(&[768, 16, 1, 256][..]));
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the tensor does not have the axis.
    pub fn with_axis_last(&self, axis: usize) -> Result<Self> {
        let count = self.dims().len();
        if axis >= count {
            return Err(Error::invalid("axis", format_args!("is {axis} of {count} dimensions")));
        }
        let place = |at: usize| if at == axis { count - 1 } else { at - usize::from(at > axis) };
        self.permute_axes(&(0..count).map(place).collect::<Vec<_>>())
    }

    /// Size in bytes of a buffer for the tensor; 0 for [`Tag::Any`] or if a dimension is 0.
    pub fn size(&self) -> usize {
        // SAFETY: the descriptor is valid.
        unsafe { sys::norm_memory_desc_get_size(self.as_ptr()) }
    }

    /// Whether this tensor and `rows` are dense, and `rows` has the layout of this tensor's first rows.
    pub(crate) fn begins_with(&self, rows: &Self) -> bool {
        let (dims, fewer) = (self.dims(), rows.dims());
        let (Some((count, rest)), Some((less, others))) = (dims.split_first(), fewer.split_first())
        else {
            return false;
        };
        let is_dense = |desc: &Self, dims: &[usize]| {
            let Some(strides) = desc.strides() else { return false };
            let mut step = 1;
            dims.iter().zip(strides.iter()).rev().all(|(dim, stride)| {
                let dense = *dim <= 1 || *stride == step;
                step *= dim;
                dense
            })
        };
        let same_type = self.data_type() == rows.data_type();
        same_type
            && less <= count
            && rest == others
            && is_dense(self, &dims)
            && is_dense(rows, &fewer)
    }

    fn query_dims(&self, what: sys::norm_query_t) -> Option<Dims> {
        let mut ndims = 0;
        let mut entries: *const sys::norm_dims_t = ptr::null();
        // SAFETY: the answers to these queries are an int and a pointer to norm_dims_t.
        unsafe {
            self.query(sys::norm_query_ndims_s32, (&raw mut ndims).cast()).ok()?;
            self.query(what, (&raw mut entries).cast()).ok()?;
        }
        // SAFETY: the pointer is NULL or points to NORM_MAX_NDIMS entries that live as long as the
        // descriptor.
        let entries = unsafe { entries.as_ref() }?;
        entries.get(..usize::try_from(ndims).ok()?).map(Dims::from_c)
    }

    /// # Safety
    /// `result` points to the type that norm_query_t specifies for `what`.
    unsafe fn query(&self, what: sys::norm_query_t, result: *mut std::ffi::c_void) -> Result<()> {
        // SAFETY: the descriptor is valid; the rest is the caller's promise.
        check(unsafe { sys::norm_memory_desc_query(self.as_ptr(), what, result) })
    }

    pub(crate) fn as_ptr(&self) -> sys::const_norm_memory_desc_t {
        self.0.as_ptr()
    }
}

impl Clone for MemoryDesc {
    /// # Panics
    /// If the copy cannot be allocated.
    fn clone(&self) -> Self {
        // SAFETY: the descriptor is valid.
        unsafe { Self::copy_of(self.as_ptr()) }.expect("memory for a descriptor")
    }
}

impl PartialEq for MemoryDesc {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: both descriptors are valid.
        unsafe { sys::norm_memory_desc_equal(self.as_ptr(), other.as_ptr()) != 0 }
    }
}

impl Eq for MemoryDesc {}

impl fmt::Debug for MemoryDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryDesc({self})")
    }
}

impl fmt::Display for MemoryDesc {
    /// `f32 [2, 3] strides [3, 1]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(data_type) = self.data_type() else { return f.write_str("empty") };
        write!(f, "{data_type} {:?}", self.dims())?;
        match self.strides() {
            Some(strides) => write!(f, " strides {strides:?}"),
            None => f.write_str(" any layout"),
        }
    }
}
