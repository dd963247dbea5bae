//! Host scalars: memory objects that hold one number themselves, for scales, zero points and dropout.
//!
//! Their descriptor describes no tensor, so functions that take tensors read descriptors through
//! [`MemoryDesc::tensor`], which refuses it.

use super::convert::data_type;
use super::exported;
use super::handle::{Handle, Out, is_null};
use super::memory::Memory;
use crate::error::{Error, Result};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::c_void;

impl MemoryDesc {
    /// The tensor that a handle describes.
    ///
    /// # Safety
    /// As [`Handle::find`].
    pub(super) unsafe fn tensor<'a>(
        p: sys::const_norm_memory_desc_t,
        name: &str,
    ) -> Result<&'a Self> {
        // SAFETY: guaranteed by the caller.
        let desc = unsafe { Self::get(p, name) }?;
        match desc.is_host_scalar() {
            true => Err(Error::invalid(format_args!("{name}: a host scalar is not a tensor"))),
            false => Ok(desc),
        }
    }

    /// The same; `None` for NULL.
    ///
    /// # Safety
    /// As [`Handle::find`].
    pub(super) unsafe fn optional_tensor<'a>(
        p: sys::const_norm_memory_desc_t,
        name: &str,
    ) -> Result<Option<&'a Self>> {
        // SAFETY: guaranteed by the caller.
        if p.is_null() { Ok(None) } else { unsafe { Self::tensor(p, name) }.map(Some) }
    }
}

exported! {
    /// A descriptor of a host scalar.
    fn norm_memory_desc_create_host_scalar as dnnl_memory_desc_create_host_scalar(
        memory_desc: *mut sys::norm_memory_desc_t,
        data_type_value: sys::norm_data_type_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let out = unsafe { Out::new(memory_desc, "memory_desc") }?;
        let desc = MemoryDesc::host_scalar(data_type(data_type_value, "data_type")?)?;
        out.set(desc.into_c()?);
        Ok(())
    }
}

exported! {
    /// Creates memory that holds a number.
    fn norm_memory_create_host_scalar as dnnl_memory_create_host_scalar(
        memory: *mut sys::norm_memory_t,
        memory_desc: sys::const_norm_memory_desc_t,
        scalar_ptr: *mut c_void,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = Out::new(memory, "memory")?;
            let desc = MemoryDesc::get(memory_desc, "memory_desc")?;
            if !desc.is_host_scalar() {
                return Err(Error::invalid("memory_desc: not a host scalar"));
            }
            if scalar_ptr.is_null() {
                return Err(is_null("scalar_ptr"));
            }
            out.set(Memory::scalar(desc, scalar_ptr.cast_const().cast())?.into_c()?);
        }
        Ok(())
    }
}

/// Refuses a memory with a buffer.
fn check_scalar(memory: &Memory) -> Result<()> {
    match memory.desc.is_host_scalar() {
        true => Ok(()),
        false => Err(Error::invalid("memory: not a host scalar")),
    }
}

exported! {
    /// Copies the number out.
    fn norm_memory_get_host_scalar_value as dnnl_memory_get_host_scalar_value(
        memory: sys::const_norm_memory_t,
        value: *mut c_void,
    ) {
        // SAFETY: guaranteed by the caller: `value` has the bytes of a number of its type.
        unsafe {
            let memory = Memory::get(memory, "memory")?;
            check_scalar(memory)?;
            if value.is_null() {
                return Err(is_null("value"));
            }
            value.cast::<u8>().copy_from_nonoverlapping(memory.data, memory.size);
        }
        Ok(())
    }
}

exported! {
    /// Replaces the number.
    fn norm_memory_set_host_scalar_value as dnnl_memory_set_host_scalar_value(
        memory: sys::norm_memory_t,
        value: *const c_void,
    ) {
        // SAFETY: guaranteed by the caller: `value` has the bytes of a number of its type.
        unsafe {
            let memory = Memory::get_mut(memory, "memory")?;
            check_scalar(memory)?;
            if value.is_null() {
                return Err(is_null("value"));
            }
            memory.data.copy_from_nonoverlapping(value.cast(), memory.size);
        }
        Ok(())
    }
}
