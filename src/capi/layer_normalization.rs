//! The constructors of layer normalization.

use super::convert::{data_type, prop_kind};
use super::exported;
use super::handle::Handle;
use super::primitive_desc::{Descriptor, create};
use crate::error::Result;
use crate::ops::layer_normalization::{BackwardParameters, ForwardParameters, LayerNormalization};
use crate::primitive::Attr;
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::c_uint;

exported! {
    /// Forward with f32 scale and shift.
    fn norm_layer_normalization_forward_primitive_desc_create as dnnl_layer_normalization_forward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        prop_kind: sys::norm_prop_kind_t,
        src_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        stat_desc: sys::const_norm_memory_desc_t,
        epsilon: f32,
        flags: c_uint,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            create(primitive_desc, engine, attr, |attr| {
                forward(prop_kind, [src_desc, dst_desc, stat_desc], sys::norm_f32, epsilon, flags, attr)
            })
        }
    }
}

exported! {
    /// Forward with scale and shift of a given data type.
    fn norm_layer_normalization_forward_primitive_desc_create_v2 as dnnl_layer_normalization_forward_primitive_desc_create_v2(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        prop_kind: sys::norm_prop_kind_t,
        src_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        stat_desc: sys::const_norm_memory_desc_t,
        scale_shift_data_type: sys::norm_data_type_t,
        epsilon: f32,
        flags: c_uint,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            create(primitive_desc, engine, attr, |attr| {
                let descs = [src_desc, dst_desc, stat_desc];
                forward(prop_kind, descs, scale_shift_data_type, epsilon, flags, attr)
            })
        }
    }
}

/// # Safety
/// Descriptors are NULL or live handles.
unsafe fn forward(
    kind: sys::norm_prop_kind_t,
    [src, dst, stat]: [sys::const_norm_memory_desc_t; 3],
    scale_shift: sys::norm_data_type_t,
    epsilon: f32,
    flags: c_uint,
    attr: &Attr,
) -> Result<LayerNormalization> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        LayerNormalization::forward(&ForwardParameters {
            prop_kind: prop_kind(kind)?,
            src: MemoryDesc::tensor(src, "src_desc")?,
            dst: MemoryDesc::tensor(dst, "dst_desc")?,
            stat: MemoryDesc::optional_tensor(stat, "stat_desc")?,
            scale_shift: data_type(scale_shift, "scale_shift_data_type")?,
            epsilon,
            flags,
            attr,
        })
    }
}

exported! {
    /// Backward with f32 scale and shift.
    fn norm_layer_normalization_backward_primitive_desc_create as dnnl_layer_normalization_backward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        prop_kind: sys::norm_prop_kind_t,
        diff_src_desc: sys::const_norm_memory_desc_t,
        diff_dst_desc: sys::const_norm_memory_desc_t,
        src_desc: sys::const_norm_memory_desc_t,
        stat_desc: sys::const_norm_memory_desc_t,
        epsilon: f32,
        flags: c_uint,
        hint_fwd_pd: sys::const_norm_primitive_desc_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        let descs = [diff_src_desc, diff_dst_desc, src_desc, stat_desc];
        let types = [sys::norm_f32; 2];
        // SAFETY: guaranteed by the caller.
        unsafe {
            let hint = Descriptor::get_optional(hint_fwd_pd, "hint_fwd_pd")?;
            create(primitive_desc, engine, attr, |attr| {
                backward(prop_kind, descs, types, epsilon, (flags, hint), attr)
            })
        }
    }
}

exported! {
    /// Backward with scale and shift, and their gradients, of given data types.
    fn norm_layer_normalization_backward_primitive_desc_create_v2 as dnnl_layer_normalization_backward_primitive_desc_create_v2(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        prop_kind: sys::norm_prop_kind_t,
        diff_src_desc: sys::const_norm_memory_desc_t,
        diff_dst_desc: sys::const_norm_memory_desc_t,
        src_desc: sys::const_norm_memory_desc_t,
        stat_desc: sys::const_norm_memory_desc_t,
        diff_scale_shift_data_type: sys::norm_data_type_t,
        scale_shift_data_type: sys::norm_data_type_t,
        epsilon: f32,
        flags: c_uint,
        hint_fwd_pd: sys::const_norm_primitive_desc_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        let descs = [diff_src_desc, diff_dst_desc, src_desc, stat_desc];
        let types = [diff_scale_shift_data_type, scale_shift_data_type];
        // SAFETY: guaranteed by the caller.
        unsafe {
            let hint = Descriptor::get_optional(hint_fwd_pd, "hint_fwd_pd")?;
            create(primitive_desc, engine, attr, |attr| {
                backward(prop_kind, descs, types, epsilon, (flags, hint), attr)
            })
        }
    }
}

/// # Safety
/// Descriptors are NULL or live handles.
unsafe fn backward(
    kind: sys::norm_prop_kind_t,
    [diff_src, diff_dst, src, stat]: [sys::const_norm_memory_desc_t; 4],
    [diff_scale_shift, scale_shift]: [sys::norm_data_type_t; 2],
    epsilon: f32,
    (flags, hint): (c_uint, Option<&Descriptor>),
    attr: &Attr,
) -> Result<LayerNormalization> {
    let as_hint =
        |hint| Descriptor::as_hint(hint, sys::norm_layer_normalization, "layer normalization");
    let hint = hint.map(as_hint).transpose()?;
    // SAFETY: guaranteed by the caller.
    unsafe {
        LayerNormalization::backward(&BackwardParameters {
            prop_kind: prop_kind(kind)?,
            diff_src: MemoryDesc::tensor(diff_src, "diff_src_desc")?,
            diff_dst: MemoryDesc::tensor(diff_dst, "diff_dst_desc")?,
            src: MemoryDesc::tensor(src, "src_desc")?,
            stat: MemoryDesc::optional_tensor(stat, "stat_desc")?,
            diff_scale_shift: data_type(diff_scale_shift, "diff_scale_shift_data_type")?,
            scale_shift: data_type(scale_shift, "scale_shift_data_type")?,
            epsilon,
            flags,
            hint,
            attr,
        })
    }
}
