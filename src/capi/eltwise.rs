//! The constructors of element-wise functions.

use super::convert::prop_kind;
use super::exported;
use super::handle::Handle;
use super::post_ops::eltwise_algorithm;
use super::primitive_desc::{Descriptor, create};
use crate::error::Result;
use crate::ops::eltwise::{Eltwise, EltwiseFunction};
use crate::tensor::MemoryDesc;
use norm_sys as sys;

fn function(code: sys::norm_alg_kind_t, alpha: f32, beta: f32) -> Result<EltwiseFunction> {
    Ok(EltwiseFunction { algorithm: eltwise_algorithm(code)?, code, alpha, beta })
}

exported! {
    /// Forward.
    fn norm_eltwise_forward_primitive_desc_create as dnnl_eltwise_forward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        kind: sys::norm_prop_kind_t,
        alg_kind: sys::norm_alg_kind_t,
        src_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        alpha: f32,
        beta: f32,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            create(primitive_desc, engine, attr, |attr| {
                let descs =
                    [MemoryDesc::tensor(src_desc, "src_desc")?, MemoryDesc::tensor(dst_desc, "dst_desc")?];
                Eltwise::forward(prop_kind(kind)?, function(alg_kind, alpha, beta)?, descs, attr)
            })
        }
    }
}

exported! {
    /// Backward.
    fn norm_eltwise_backward_primitive_desc_create as dnnl_eltwise_backward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        alg_kind: sys::norm_alg_kind_t,
        diff_src_desc: sys::const_norm_memory_desc_t,
        diff_dst_desc: sys::const_norm_memory_desc_t,
        data_desc: sys::const_norm_memory_desc_t,
        alpha: f32,
        beta: f32,
        hint_fwd_pd: sys::const_norm_primitive_desc_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            Descriptor::get_optional(hint_fwd_pd, "hint_fwd_pd")?;
            create(primitive_desc, engine, attr, |attr| {
                let descs = [
                    MemoryDesc::tensor(diff_src_desc, "diff_src_desc")?,
                    MemoryDesc::tensor(diff_dst_desc, "diff_dst_desc")?,
                    MemoryDesc::tensor(data_desc, "data_desc")?,
                ];
                Eltwise::backward(function(alg_kind, alpha, beta)?, descs, attr)
            })
        }
    }
}
