//! The constructors of group normalization.

use super::convert::prop_kind;
use super::exported;
use super::handle::Handle;
use super::primitive_desc::{Descriptor, create};
use crate::error::Result;
use crate::ops::group_normalization::{BackwardParameters, ForwardParameters, GroupNormalization};
use crate::primitive::Answer;
use crate::primitive::normalization::Hint;
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::c_uint;

exported! {
    /// Forward.
    fn norm_group_normalization_forward_primitive_desc_create as dnnl_group_normalization_forward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        kind: sys::norm_prop_kind_t,
        src_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        groups: sys::norm_dim_t,
        epsilon: f32,
        flags: c_uint,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            create(primitive_desc, engine, attr, |attr| {
                GroupNormalization::forward(&ForwardParameters {
                    prop_kind: prop_kind(kind)?,
                    src: MemoryDesc::tensor(src_desc, "src_desc")?,
                    dst: MemoryDesc::tensor(dst_desc, "dst_desc")?,
                    groups,
                    epsilon,
                    flags,
                    attr,
                })
            })
        }
    }
}

exported! {
    /// Backward.
    fn norm_group_normalization_backward_primitive_desc_create as dnnl_group_normalization_backward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        kind: sys::norm_prop_kind_t,
        diff_src_desc: sys::const_norm_memory_desc_t,
        diff_dst_desc: sys::const_norm_memory_desc_t,
        src_desc: sys::const_norm_memory_desc_t,
        groups: sys::norm_dim_t,
        epsilon: f32,
        flags: c_uint,
        hint_fwd_pd: sys::const_norm_primitive_desc_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let hint = Descriptor::get_optional(hint_fwd_pd, "hint_fwd_pd")?;
            let hint = hint.map(hint_parameters).transpose()?;
            create(primitive_desc, engine, attr, |attr| {
                GroupNormalization::backward(&BackwardParameters {
                    prop_kind: prop_kind(kind)?,
                    diff_src: MemoryDesc::tensor(diff_src_desc, "diff_src_desc")?,
                    diff_dst: MemoryDesc::tensor(diff_dst_desc, "diff_dst_desc")?,
                    src: MemoryDesc::tensor(src_desc, "src_desc")?,
                    groups,
                    epsilon,
                    flags,
                    hint,
                    attr,
                })
            })
        }
    }
}

/// A forward group normalization, and its groups.
fn hint_parameters(hint: &Descriptor) -> Result<(Hint<'_>, sys::norm_dim_t)> {
    let groups = match hint.desc.op().query(sys::norm_query_group_size_s64) {
        Some(Answer::S64(groups)) => groups,
        _ => 0,
    };
    Ok((hint.as_hint(sys::norm_group_normalization, "group normalization")?, groups))
}
