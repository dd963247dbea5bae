//! Memory descriptors.

use super::convert::{data_type, data_type_code};
use super::exported;
use super::handle::{Handle, Out, is_null, slice, text};
use crate::error::{Error, Result};
use crate::tensor::{BLOB_MARK, BLOB_SIZE, Layout, MAX_NDIMS, MemoryDesc};
use arrayvec::ArrayVec;
use norm_sys as sys;
use std::ffi::{c_char, c_int, c_void};

/// The padded offsets of every descriptor: there is no padding in front.
static ZEROS: [i64; MAX_NDIMS] = [0; MAX_NDIMS];

/// Checks the number of dimensions.
fn dimensions(ndims: c_int) -> Result<usize> {
    usize::try_from(ndims).ok().filter(|n| *n <= MAX_NDIMS).ok_or_else(|| {
        Error::invalid(format_args!("ndims: {ndims} is not between 0 and {MAX_NDIMS}"))
    })
}

exported! {
    /// A descriptor with the layout of a tag.
    fn norm_memory_desc_create_with_tag as dnnl_memory_desc_create_with_tag(
        memory_desc: *mut sys::norm_memory_desc_t,
        ndims: c_int,
        dims: *const i64,
        data_type_value: sys::norm_data_type_t,
        tag: sys::norm_format_tag_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let (out, dims) = unsafe {
            (Out::new(memory_desc, "memory_desc")?, slice(dims, dimensions(ndims)?, "dims")?)
        };
        // As in oneDNN, whose programs describe absent tensors in this way.
        let is_absent = cfg!(feature = "onednn-abi") && tag == sys::norm_format_tag_undef;
        let desc = if dims.is_empty() || is_absent {
            MemoryDesc::EMPTY
        } else {
            MemoryDesc::with_tag(dims, data_type(data_type_value, "data_type")?, tag)?
        };
        out.set(desc.into_c()?);
        Ok(())
    }
}

exported! {
    /// A descriptor with the layout of a tag given as text.
    fn norm_memory_desc_create_with_string_tag as dnnl_memory_desc_create_with_string_tag(
        memory_desc: *mut sys::norm_memory_desc_t,
        ndims: c_int,
        dims: *const i64,
        data_type_value: sys::norm_data_type_t,
        tag: *const c_char,
    ) {
        // SAFETY: guaranteed by the caller.
        let (out, dims) = unsafe {
            (Out::new(memory_desc, "memory_desc")?, slice(dims, dimensions(ndims)?, "dims")?)
        };
        let desc = if dims.is_empty() {
            MemoryDesc::EMPTY
        } else {
            // SAFETY: guaranteed by the caller.
            let letters = unsafe { text(tag, "tag") }?;
            MemoryDesc::with_letters(dims, data_type(data_type_value, "data_type")?, letters)?
        };
        out.set(desc.into_c()?);
        Ok(())
    }
}

exported! {
    /// Changes the data type.
    fn norm_memory_desc_set_data_type as dnnl_memory_desc_set_data_type(
        memory_desc: sys::norm_memory_desc_t,
        data_type_value: sys::norm_data_type_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let desc = unsafe { MemoryDesc::get_mut(memory_desc, "memory_desc") }?;
        desc.set_data_type(data_type(data_type_value, "data_type")?)
    }
}

exported! {
    /// A descriptor with given strides.
    fn norm_memory_desc_create_with_strides as dnnl_memory_desc_create_with_strides(
        memory_desc: *mut sys::norm_memory_desc_t,
        ndims: c_int,
        dims: *const i64,
        data_type_value: sys::norm_data_type_t,
        strides: *const i64,
    ) {
        // SAFETY: guaranteed by the caller.
        let (out, dims) = unsafe {
            (Out::new(memory_desc, "memory_desc")?, slice(dims, dimensions(ndims)?, "dims")?)
        };
        let desc = if dims.is_empty() {
            MemoryDesc::EMPTY
        } else if strides.is_null() {
            MemoryDesc::dense(dims, data_type(data_type_value, "data_type")?)?
        } else {
            // SAFETY: guaranteed by the caller.
            let strides = unsafe { slice(strides, dims.len(), "strides") }?;
            MemoryDesc::with_strides(dims, data_type(data_type_value, "data_type")?, strides)?
        };
        out.set(desc.into_c()?);
        Ok(())
    }
}

exported! {
    /// A copy of a descriptor.
    fn norm_memory_desc_clone as dnnl_memory_desc_clone(
        memory_desc: *mut sys::norm_memory_desc_t,
        existing_memory_desc: sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = Out::new(memory_desc, "memory_desc")?;
            let desc = MemoryDesc::get(existing_memory_desc, "existing_memory_desc")?;
            out.set(desc.clone().into_c()?);
        }
        Ok(())
    }
}

exported! {
    /// Frees a descriptor.
    fn norm_memory_desc_destroy as dnnl_memory_desc_destroy(memory_desc: sys::norm_memory_desc_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { MemoryDesc::destroy(memory_desc, "memory_desc") }
    }
}

exported! {
    /// Whether both describe the same tensor.
    fn norm_memory_desc_equal as dnnl_memory_desc_equal(
        lhs: sys::const_norm_memory_desc_t,
        rhs: sys::const_norm_memory_desc_t,
    ) -> c_int, else 0; {
        // SAFETY: guaranteed by the caller.
        let (lhs, rhs) = unsafe {
            (MemoryDesc::get_optional(lhs, "lhs")?, MemoryDesc::get_optional(rhs, "rhs")?)
        };
        Ok(c_int::from(lhs == rhs))
    }
}

exported! {
    /// Size in bytes of a buffer for the tensor.
    fn norm_memory_desc_get_size as dnnl_memory_desc_get_size(memory_desc: sys::const_norm_memory_desc_t) -> usize, else 0; {
        // SAFETY: guaranteed by the caller.
        unsafe { MemoryDesc::get(memory_desc, "memory_desc") }.map(told_size)
    }
}

/// oneDNN's size is that of the largest dimension with its stride. If the tensor needs more than that, its own size is
/// returned.
fn told_size(desc: &MemoryDesc) -> usize {
    if cfg!(feature = "onednn-abi") { desc.size().max(desc.size_by_strides()) } else { desc.size() }
}

exported! {
    /// The same for one buffer.
    fn norm_memory_desc_get_size_v2 as dnnl_memory_desc_get_size_v2(
        memory_desc: sys::const_norm_memory_desc_t,
        index: c_int,
    ) -> usize, else 0; {
        check_index(index)?;
        // SAFETY: guaranteed by the caller.
        unsafe { MemoryDesc::get(memory_desc, "memory_desc") }.map(told_size)
    }
}

exported! {
    /// A part of a tensor.
    fn norm_memory_desc_create_submemory as dnnl_memory_desc_create_submemory(
        memory_desc: *mut sys::norm_memory_desc_t,
        parent_memory_desc: sys::const_norm_memory_desc_t,
        dims: *const i64,
        offsets: *const i64,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = Out::new(memory_desc, "memory_desc")?;
            let parent = MemoryDesc::get(parent_memory_desc, "parent_memory_desc")?;
            let dims = slice(dims, parent.ndims(), "dims")?;
            out.set(parent.part(dims, slice(offsets, parent.ndims(), "offsets")?)?.into_c()?);
        }
        Ok(())
    }
}

exported! {
    /// A tensor with other dimensions.
    fn norm_memory_desc_reshape as dnnl_memory_desc_reshape(
        out_memory_desc: *mut sys::norm_memory_desc_t,
        in_memory_desc: sys::const_norm_memory_desc_t,
        ndims: c_int,
        dims: *const i64,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = Out::new(out_memory_desc, "out_memory_desc")?;
            let desc = MemoryDesc::get(in_memory_desc, "in_memory_desc")?;
            let dims = slice(dims, dimensions(ndims)?, "dims")?;
            if desc.ndims() == 0 || dims.is_empty() {
                return Err(Error::invalid("in_memory_desc: an empty descriptor cannot be reshaped"));
            }
            out.set(desc.reshaped(dims)?.into_c()?);
        }
        Ok(())
    }
}

exported! {
    /// A tensor with permuted dimensions.
    fn norm_memory_desc_permute_axes as dnnl_memory_desc_permute_axes(
        out_memory_desc: *mut sys::norm_memory_desc_t,
        in_memory_desc: sys::const_norm_memory_desc_t,
        permutation: *const c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        let (out, desc, permutation) = unsafe {
            let out = Out::new(out_memory_desc, "out_memory_desc")?;
            let desc = MemoryDesc::tensor(in_memory_desc, "in_memory_desc")?;
            (out, desc, slice(permutation, desc.ndims(), "permutation")?)
        };
        if desc.ndims() == 0 {
            return Err(Error::invalid("in_memory_desc: an empty descriptor has no axes"));
        }
        let mut to = ArrayVec::<usize, MAX_NDIMS>::new();
        for &axis in permutation {
            match usize::try_from(axis) {
                Ok(axis) if axis < permutation.len() && !to.contains(&axis) => to.push(axis),
                _ => {
                    return Err(Error::invalid(format_args!(
                        "permutation: {permutation:?} is not a permutation of {} axes",
                        permutation.len()
                    )));
                }
            }
        }
        out.set(desc.permuted(&to).into_c()?);
        Ok(())
    }
}

exported! {
    /// Serializes a descriptor, or returns the size of the blob.
    fn norm_memory_desc_get_blob as dnnl_memory_desc_get_blob(
        blob: *mut u8,
        size: *mut usize,
        memory_desc: sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let desc = MemoryDesc::get(memory_desc, "memory_desc")?;
            let size = size.as_mut().ok_or_else(|| is_null("size"))?;
            if blob.is_null() {
                *size = BLOB_SIZE;
                return Ok(());
            }
            if *size < BLOB_SIZE {
                return Err(Error::invalid(format_args!("size: {size} bytes, but the blob needs {BLOB_SIZE}")));
            }
            blob.copy_from_nonoverlapping(desc.to_blob().as_ptr(), BLOB_SIZE);
        }
        Ok(())
    }
}

exported! {
    /// Restores a descriptor from a blob.
    fn norm_memory_desc_create_with_blob as dnnl_memory_desc_create_with_blob(
        memory_desc: *mut sys::norm_memory_desc_t,
        blob: *const u8,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = Out::new(memory_desc, "memory_desc")?;
            // Other data may be shorter than a blob.
            if slice(blob, BLOB_MARK.len(), "blob")? != BLOB_MARK {
                return Err(Error::invalid("blob: it does not begin as norm_memory_desc_get_blob writes it"));
            }
            let mut bytes = [0; BLOB_SIZE];
            bytes.copy_from_slice(slice(blob, BLOB_SIZE, "blob")?);
            out.set(MemoryDesc::of_blob(&bytes)?.into_c()?);
        }
        Ok(())
    }
}

exported! {
    /// Answers a query.
    fn norm_memory_desc_query as dnnl_memory_desc_query(
        memory_desc: sys::const_norm_memory_desc_t,
        what: sys::norm_query_t,
        result: *mut c_void,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { query(memory_desc, what, result) }
    }
}

exported! {
    /// Answers a query about one buffer. There is only one.
    fn norm_memory_desc_query_v2 as dnnl_memory_desc_query_v2(
        memory_desc: sys::const_norm_memory_desc_t,
        what: sys::norm_query_t,
        index: c_int,
        result: *mut c_void,
    ) {
        check_index(index)?;
        // SAFETY: guaranteed by the caller.
        unsafe { query(memory_desc, what, result) }
    }
}

/// Checks the index of a buffer.
pub(super) fn check_index(index: c_int) -> Result<()> {
    match index {
        0 => Ok(()),
        _ => Err(Error::invalid(format_args!("index: {index}, but the only buffer is number 0"))),
    }
}

/// # Safety
/// The handle is NULL or live, and `result` is as the header describes.
unsafe fn query(
    memory_desc: sys::const_norm_memory_desc_t,
    what: sys::norm_query_t,
    result: *mut c_void,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let desc = unsafe { MemoryDesc::get(memory_desc, "memory_desc") }?;
    if result.is_null() {
        return Err(is_null("result"));
    }
    let strided = desc.layout() == Layout::Strided;
    let kind = match desc.layout() {
        Layout::Undef => sys::norm_format_kind_undef,
        Layout::Any => sys::norm_format_kind_any,
        Layout::Strided => sys::norm_blocked,
        Layout::HostScalar => sys::norm_format_kind_host_scalar,
    };
    // SAFETY: the header specifies the type of `result` for each query.
    unsafe {
        match what {
            sys::norm_query_ndims_s32 => put(result, desc.ndims() as c_int),
            sys::norm_query_dims => put(result, desc.raw_dims().as_ptr()),
            sys::norm_query_padded_dims => put(result, desc.raw_padded_dims().as_ptr()),
            sys::norm_query_data_type => put(result, data_type_code(desc.data_type())),
            sys::norm_query_submemory_offset_s64 => put(result, desc.offset()),
            sys::norm_query_padded_offsets => put(result, ZEROS.as_ptr()),
            sys::norm_query_format_kind => put(result, kind),
            sys::norm_query_num_handles_s32 => put(result, 1 as c_int),
            sys::norm_query_strides if strided => put(result, desc.raw_strides().as_ptr()),
            sys::norm_query_inner_nblks_s32 if strided => {
                put(result, desc.block_count() as c_int);
            }
            sys::norm_query_inner_blks if strided => {
                put(result, desc.raw_block_sizes().as_ptr());
            }
            sys::norm_query_inner_idxs if strided => {
                put(result, desc.raw_block_dims().as_ptr());
            }
            sys::norm_query_strides
            | sys::norm_query_inner_nblks_s32
            | sys::norm_query_inner_blks
            | sys::norm_query_inner_idxs => {
                return Err(Error::invalid("what: the descriptor has no strides or blocks"));
            }
            sys::norm_query_sparse_encoding | sys::norm_query_nnz_s64 => {
                return Err(Error::invalid("what: the descriptor is not sparse"));
            }
            _ => {
                let what = what as i32;
                return Err(Error::unimplemented(format_args!(
                    "what: {what} is not a query of memory descriptors"
                )));
            }
        }
    }
    Ok(())
}

/// Writes an answer.
///
/// # Safety
/// `result` points to a `T`.
pub(super) unsafe fn put<T>(result: *mut c_void, value: T) {
    // SAFETY: guaranteed by the caller.
    unsafe { result.cast::<T>().write_unaligned(value) }
}
