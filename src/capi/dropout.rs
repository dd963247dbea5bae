//! The attribute dropout.

use super::exported;
use super::handle::{Handle, put_optional};
use crate::error::{Error, Result};
use crate::heap::counted;
use crate::primitive::{Attr, Dropout};
use crate::tensor::{DataType, Layout, MemoryDesc};
use norm_sys as sys;
use std::ffi::c_int;

/// The mask that is not stored.
static NO_MASK: MemoryDesc = MemoryDesc::EMPTY;

exported! {
    /// Drops elements, with a seed of 32 bits.
    fn norm_primitive_attr_set_dropout as dnnl_primitive_attr_set_dropout(
        attr: sys::norm_primitive_attr_t,
        mask_desc: sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { set(attr, mask_desc, sys::norm_s32, [0, 0]) }
    }
}

exported! {
    /// Drops elements.
    fn norm_primitive_attr_set_dropout_v2 as dnnl_primitive_attr_set_dropout_v2(
        attr: sys::norm_primitive_attr_t,
        mask_desc: sys::const_norm_memory_desc_t,
        seed_data_type: sys::norm_data_type_t,
        use_offset: c_int,
        use_host_scalars: c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { set(attr, mask_desc, seed_data_type, [use_offset, use_host_scalars]) }
    }
}

/// # Safety
/// Handles are NULL or live.
unsafe fn set(
    attr: sys::norm_primitive_attr_t,
    mask_desc: sys::const_norm_memory_desc_t,
    seed: sys::norm_data_type_t,
    [use_offset, use_host_scalars]: [c_int; 2],
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (attr, mask) =
        unsafe { (Attr::get_mut(attr, "attr")?, MemoryDesc::tensor(mask_desc, "mask_desc")?) };
    let is_u8 = mask.data_type() == Some(DataType::U8);
    if mask.layout() != Layout::Undef && !is_u8 {
        let found = mask.data_type().map_or("undef", DataType::name);
        return Err(Error::invalid(format_args!("mask_desc: a mask is u8, not {found}")));
    }
    let seed = match DataType::of_code(seed) {
        Some(seed @ (DataType::S32 | DataType::S64)) => seed,
        _ => {
            let seed = seed as i32;
            return Err(Error::invalid(format_args!(
                "seed_data_type: {seed} is neither norm_s32 nor norm_s64"
            )));
        }
    };
    let dropout = Dropout {
        mask: mask.clone(),
        seed,
        has_offset: use_offset != 0,
        host_scalars: use_host_scalars != 0,
        numbers: MemoryDesc::EMPTY,
    };
    attr.dropout = Some(counted(dropout)?.into());
    Ok(())
}

exported! {
    /// The mask of dropout.
    fn norm_primitive_attr_get_dropout as dnnl_primitive_attr_get_dropout(
        attr: sys::const_norm_primitive_attr_t,
        mask_desc: *mut sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let dropout = Attr::get(attr, "attr")?.dropout.as_deref();
            put_optional(mask_desc, dropout.map_or(&NO_MASK, |dropout| &dropout.mask).lend());
        }
        Ok(())
    }
}

exported! {
    /// Everything about dropout.
    fn norm_primitive_attr_get_dropout_v2 as dnnl_primitive_attr_get_dropout_v2(
        attr: sys::const_norm_primitive_attr_t,
        mask_desc: *mut sys::const_norm_memory_desc_t,
        seed_data_type: *mut sys::norm_data_type_t,
        use_offset: *mut c_int,
        use_host_scalars: *mut c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let dropout = Attr::get(attr, "attr")?.dropout.as_deref();
            put_optional(mask_desc, dropout.map_or(&NO_MASK, |dropout| &dropout.mask).lend());
            let seed = dropout.map_or(sys::norm_data_type_undef, |dropout| dropout.seed.code());
            put_optional(seed_data_type, seed);
            put_optional(use_offset, c_int::from(dropout.is_some_and(|d| d.has_offset)));
            put_optional(use_host_scalars, c_int::from(dropout.is_some_and(|d| d.host_scalars)));
        }
        Ok(())
    }
}
