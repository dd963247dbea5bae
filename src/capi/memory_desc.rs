//! Memory descriptors.

use super::convert::{data_type, data_type_code};
use super::exported;
use super::handle::{Handle, Out, is_null, slice};
use crate::error::{Error, Result};
use crate::tensor::{Layout, MAX_NDIMS, MemoryDesc};
use norm_sys as sys;
use std::ffi::{c_int, c_void};

/// What padded offsets are here: nothing is padded.
static ZEROS: [i64; MAX_NDIMS] = [0; MAX_NDIMS];

/// `ndims` as a count.
fn dimensions(ndims: c_int) -> Result<usize> {
    usize::try_from(ndims)
        .ok()
        .filter(|n| *n <= MAX_NDIMS)
        .ok_or_else(|| Error::invalid(format!("ndims: {ndims} is not between 0 and {MAX_NDIMS}")))
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
        // SAFETY: the caller's.
        let (out, dims) = unsafe {
            (Out::new(memory_desc, "memory_desc")?, slice(dims, dimensions(ndims)?, "dims")?)
        };
        let desc = if dims.is_empty() {
            MemoryDesc::EMPTY
        } else {
            MemoryDesc::with_tag(dims, data_type(data_type_value, "data_type")?, tag)?
        };
        out.set(desc.into_c());
        Ok(())
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
        // SAFETY: the caller's.
        let (out, dims) = unsafe {
            (Out::new(memory_desc, "memory_desc")?, slice(dims, dimensions(ndims)?, "dims")?)
        };
        let desc = if dims.is_empty() {
            MemoryDesc::EMPTY
        } else if strides.is_null() {
            MemoryDesc::dense(dims, data_type(data_type_value, "data_type")?)?
        } else {
            // SAFETY: the caller's.
            let strides = unsafe { slice(strides, dims.len(), "strides") }?;
            MemoryDesc::with_strides(dims, data_type(data_type_value, "data_type")?, strides)?
        };
        out.set(desc.into_c());
        Ok(())
    }
}

exported! {
    /// A copy.
    fn norm_memory_desc_clone as dnnl_memory_desc_clone(
        memory_desc: *mut sys::norm_memory_desc_t,
        existing_memory_desc: sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let out = Out::new(memory_desc, "memory_desc")?;
            let desc = MemoryDesc::get(existing_memory_desc, "existing_memory_desc")?;
            out.set(desc.clone().into_c());
        }
        Ok(())
    }
}

exported! {
    /// Frees a descriptor.
    fn norm_memory_desc_destroy as dnnl_memory_desc_destroy(memory_desc: sys::norm_memory_desc_t) {
        // SAFETY: the caller's.
        unsafe { MemoryDesc::destroy(memory_desc) };
        Ok(())
    }
}

exported! {
    /// Whether both describe the same tensor.
    fn norm_memory_desc_equal as dnnl_memory_desc_equal(
        lhs: sys::const_norm_memory_desc_t,
        rhs: sys::const_norm_memory_desc_t,
    ) -> c_int, else 0; {
        // SAFETY: the caller's.
        let (lhs, rhs) = unsafe { (MemoryDesc::get_optional(lhs), MemoryDesc::get_optional(rhs)) };
        Ok(c_int::from(lhs == rhs))
    }
}

exported! {
    /// Bytes of a buffer for the tensor.
    fn norm_memory_desc_get_size as dnnl_memory_desc_get_size(memory_desc: sys::const_norm_memory_desc_t) -> usize, else 0; {
        // SAFETY: the caller's.
        unsafe { MemoryDesc::get(memory_desc, "memory_desc") }.map(MemoryDesc::size)
    }
}

exported! {
    /// Answers a query.
    fn norm_memory_desc_query as dnnl_memory_desc_query(
        memory_desc: sys::const_norm_memory_desc_t,
        what: sys::norm_query_t,
        result: *mut c_void,
    ) {
        // SAFETY: the caller's.
        let desc = unsafe { MemoryDesc::get(memory_desc, "memory_desc") }?;
        if result.is_null() {
            return Err(is_null("result"));
        }
        let kind = match desc.layout() {
            Layout::Undef => sys::norm_format_kind_undef,
            Layout::Any => sys::norm_format_kind_any,
            Layout::Strided => sys::norm_blocked,
        };
        // SAFETY: the header says what `result` points to for each query.
        unsafe {
            match what {
                sys::norm_query_ndims_s32 => put(result, desc.ndims() as c_int),
                sys::norm_query_dims | sys::norm_query_padded_dims => {
                    put(result, desc.raw_dims().as_ptr());
                }
                sys::norm_query_data_type => put(result, data_type_code(desc.data_type())),
                sys::norm_query_submemory_offset_s64 => put(result, 0i64),
                sys::norm_query_padded_offsets => put(result, ZEROS.as_ptr()),
                sys::norm_query_format_kind => put(result, kind),
                sys::norm_query_strides if desc.layout() == Layout::Strided => {
                    put(result, desc.raw_strides().as_ptr());
                }
                sys::norm_query_strides => {
                    return Err(Error::invalid("what: query_strides of a descriptor without strides"));
                }
                sys::norm_query_inner_nblks_s32 => put(result, 0 as c_int),
                sys::norm_query_inner_blks | sys::norm_query_inner_idxs => {
                    put(result, ZEROS.as_ptr());
                }
                _ => {
                    let what = what as i32;
                    return Err(Error::invalid(format!("what: {what} is not asked of a descriptor")));
                }
            }
        }
        Ok(())
    }
}

/// Writes an answer.
///
/// # Safety
/// `result` points to a `T`.
pub(super) unsafe fn put<T>(result: *mut c_void, value: T) {
    // SAFETY: the caller's.
    unsafe { result.cast::<T>().write_unaligned(value) }
}
