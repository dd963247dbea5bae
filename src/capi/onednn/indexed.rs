//! The `_v2` functions that pick one of several buffers of a tensor. Tensors here have one, so the
//! index is 0 and the function is the one without it.

use crate::capi::guard;
use crate::capi::handle::{Handle, is_null, slice};
use crate::capi::memory::{
    norm_memory_create, norm_memory_get_data_handle, norm_memory_map_data,
    norm_memory_set_data_handle, norm_memory_unmap_data,
};
use crate::capi::memory_desc::{norm_memory_desc_get_size, norm_memory_desc_query, put};
use crate::error::{Error, Result};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::{c_int, c_void};

/// oneDNN's number of the query for the count of buffers.
const QUERY_NUM_HANDLES: sys::norm_query_t = 268;

fn only(index: c_int) -> Result<()> {
    match index {
        0 => Ok(()),
        _ => Err(Error::invalid(format!("index: {index} is not 0, and tensors have one buffer"))),
    }
}

/// A function with an index behind its arguments.
macro_rules! indexed {
    ($($name:ident is $of:ident($($arg:ident: $ty:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty,)* index: c_int) -> sys::norm_status_t {
            match guard::status(stringify!($name), || only(index)) {
                // SAFETY: the caller's.
                sys::norm_success => unsafe { $of($($arg),*) },
                refused => refused,
            }
        }
    )*};
}

indexed! {
    dnnl_memory_get_data_handle_v2 is norm_memory_get_data_handle(
        memory: sys::const_norm_memory_t, handle: *mut *mut c_void);
    dnnl_memory_set_data_handle_v2 is norm_memory_set_data_handle(
        memory: sys::norm_memory_t, handle: *mut c_void);
    dnnl_memory_map_data_v2 is norm_memory_map_data(
        memory: sys::const_norm_memory_t, mapped_ptr: *mut *mut c_void);
    dnnl_memory_unmap_data_v2 is norm_memory_unmap_data(
        memory: sys::const_norm_memory_t, mapped_ptr: *mut c_void);
}

/// As many buffers as the descriptor has, which is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn dnnl_memory_create_v2(
    memory: *mut sys::norm_memory_t,
    memory_desc: sys::const_norm_memory_desc_t,
    engine: sys::norm_engine_t,
    nhandles: c_int,
    handles: *const *mut c_void,
) -> sys::norm_status_t {
    let mut handle = std::ptr::null_mut();
    let checked = guard::status("dnnl_memory_create_v2", || {
        if nhandles != 1 {
            return Err(Error::invalid(format!("nhandles: {nhandles} is not 1")));
        }
        // SAFETY: the caller's.
        handle = unsafe { slice(handles, 1, "handles") }?[0];
        Ok(())
    });
    match checked {
        // SAFETY: the caller's.
        sys::norm_success => unsafe { norm_memory_create(memory, memory_desc, engine, handle) },
        refused => refused,
    }
}

/// The query of how many buffers there are, and those without an index.
#[unsafe(no_mangle)]
unsafe extern "C" fn dnnl_memory_desc_query_v2(
    memory_desc: sys::const_norm_memory_desc_t,
    what: sys::norm_query_t,
    index: c_int,
    result: *mut c_void,
) -> sys::norm_status_t {
    let checked = guard::status("dnnl_memory_desc_query_v2", || {
        only(index)?;
        if what == QUERY_NUM_HANDLES {
            // SAFETY: the caller's.
            unsafe { MemoryDesc::get(memory_desc, "memory_desc") }?;
            if result.is_null() {
                return Err(is_null("result"));
            }
            // SAFETY: the answer is an int.
            unsafe { put(result, 1 as c_int) };
        }
        Ok(())
    });
    match checked {
        sys::norm_success if what == QUERY_NUM_HANDLES => sys::norm_success,
        // SAFETY: the caller's.
        sys::norm_success => unsafe { norm_memory_desc_query(memory_desc, what, result) },
        refused => refused,
    }
}

/// Bytes of the only buffer.
#[unsafe(no_mangle)]
unsafe extern "C" fn dnnl_memory_desc_get_size_v2(
    memory_desc: sys::const_norm_memory_desc_t,
    index: c_int,
) -> usize {
    match guard::status("dnnl_memory_desc_get_size_v2", || only(index)) {
        // SAFETY: the caller's.
        sys::norm_success => unsafe { norm_memory_desc_get_size(memory_desc) },
        _ => 0,
    }
}
