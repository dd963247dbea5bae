//! The constructors of attention.

use super::convert::prop_kind;
use super::exported;
use super::handle::Handle;
use super::primitive_desc::{Descriptor, create};
use crate::error::{Error, Result};
use crate::ops::sdpa::{
    Gradients, MaskType, Parameters, Sdpa, WindowKind, WindowState, WindowStrategy, adaptive_window,
};
use crate::primitive::PropKind;
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::c_uint;

/// A descriptor that may be NULL or empty.
///
/// # Safety
/// NULL or valid.
unsafe fn optional<'a>(
    desc: sys::const_norm_memory_desc_t,
    name: &str,
) -> Result<Option<&'a MemoryDesc>> {
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { MemoryDesc::optional_tensor(desc, name) }?.filter(|desc| desc.ndims() > 0))
}

exported! {
    /// Forward.
    fn norm_sdpa_forward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        kind: sys::norm_prop_kind_t,
        query_desc: sys::const_norm_memory_desc_t,
        key_desc: sys::const_norm_memory_desc_t,
        value_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        mask_desc: sys::const_norm_memory_desc_t,
        page_table_desc: sys::const_norm_memory_desc_t,
        mask: sys::norm_attn_mask_type_t,
        kind_of_window: sys::norm_attn_window_t,
        window: sys::norm_dim_t,
        first_keys: sys::norm_dim_t,
        scale: f32,
        soft_cap: f32,
        flags: c_uint,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            create(primitive_desc, engine, attr, |attr| {
                let prop_kind = prop_kind(kind)?;
                prop_kind.check_forward()?;
                Sdpa::new(&Parameters {
                    prop_kind,
                    query: MemoryDesc::tensor(query_desc, "query_desc")?,
                    key: MemoryDesc::tensor(key_desc, "key_desc")?,
                    value: MemoryDesc::tensor(value_desc, "value_desc")?,
                    dst: MemoryDesc::tensor(dst_desc, "dst_desc")?,
                    mask: optional(mask_desc, "mask_desc")?,
                    page_table: optional(page_table_desc, "page_table_desc")?,
                    gradients: None,
                    mask_type: MaskType::given(mask, "mask_type")?,
                    window_kind: WindowKind::given(kind_of_window, "window_kind")?,
                    window,
                    first_keys,
                    scale,
                    soft_cap,
                    flags,
                    attr,
                })
            })
        }
    }
}

exported! {
    /// Backward.
    fn norm_sdpa_backward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        diff_query_desc: sys::const_norm_memory_desc_t,
        diff_key_desc: sys::const_norm_memory_desc_t,
        diff_value_desc: sys::const_norm_memory_desc_t,
        diff_dst_desc: sys::const_norm_memory_desc_t,
        query_desc: sys::const_norm_memory_desc_t,
        key_desc: sys::const_norm_memory_desc_t,
        value_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        mask_desc: sys::const_norm_memory_desc_t,
        diff_mask_desc: sys::const_norm_memory_desc_t,
        mask: sys::norm_attn_mask_type_t,
        kind_of_window: sys::norm_attn_window_t,
        window: sys::norm_dim_t,
        first_keys: sys::norm_dim_t,
        scale: f32,
        soft_cap: f32,
        flags: c_uint,
        hint_fwd_pd: sys::const_norm_primitive_desc_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            Descriptor::get_optional(hint_fwd_pd, "hint_fwd_pd")?;
            create(primitive_desc, engine, attr, |attr| {
                Sdpa::new(&Parameters {
                    prop_kind: PropKind::Backward,
                    query: MemoryDesc::tensor(query_desc, "query_desc")?,
                    key: MemoryDesc::tensor(key_desc, "key_desc")?,
                    value: MemoryDesc::tensor(value_desc, "value_desc")?,
                    dst: MemoryDesc::tensor(dst_desc, "dst_desc")?,
                    mask: optional(mask_desc, "mask_desc")?,
                    page_table: None,
                    gradients: Some(Gradients {
                        query: MemoryDesc::tensor(diff_query_desc, "diff_query_desc")?,
                        key: MemoryDesc::tensor(diff_key_desc, "diff_key_desc")?,
                        value: MemoryDesc::tensor(diff_value_desc, "diff_value_desc")?,
                        dst: MemoryDesc::tensor(diff_dst_desc, "diff_dst_desc")?,
                        mask: optional(diff_mask_desc, "diff_mask_desc")?,
                    }),
                    mask_type: MaskType::given(mask, "mask_type")?,
                    window_kind: WindowKind::given(kind_of_window, "window_kind")?,
                    window,
                    first_keys,
                    scale,
                    soft_cap,
                    flags,
                    attr,
                })
            })
        }
    }
}

exported! {
    /// The width of an adaptive sliding window.
    fn norm_adaptive_window(
        strategy: sys::norm_window_strategy_t,
        length: sys::norm_dim_t,
        min_window: sys::norm_dim_t,
        max_window: sys::norm_dim_t,
        measured: f64,
        vocabulary: f64,
        previous: sys::norm_dim_t,
        smoothing: f64,
        max_step: sys::norm_dim_t,
        window: *mut sys::norm_dim_t,
    ) {
        let strategy = WindowStrategy::given(strategy, "strategy")?;
        if window.is_null() {
            return Err(Error::invalid("window: NULL"));
        }
        let found = adaptive_window(&WindowState {
            strategy,
            length,
            min: min_window,
            max: max_window,
            measured,
            vocabulary,
            previous,
            smoothing,
            max_step,
        })?;
        // SAFETY: guaranteed by the caller.
        unsafe { window.write(found) };
        Ok(())
    }
}
