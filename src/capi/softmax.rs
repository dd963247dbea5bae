//! Softmax's constructors.

use super::convert::prop_kind;
use super::exported;
use super::handle::Handle;
use super::primitive_desc::{Descriptor, create};
use crate::ops::softmax::{Softmax, SoftmaxAlgorithm};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::c_int;

exported! {
    /// Forward.
    fn norm_softmax_forward_primitive_desc_create as dnnl_softmax_forward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        kind: sys::norm_prop_kind_t,
        alg_kind: sys::norm_alg_kind_t,
        src_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        softmax_axis: c_int,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            create(primitive_desc, engine, attr, |attr| {
                let descs =
                    [MemoryDesc::tensor(src_desc, "src_desc")?, MemoryDesc::tensor(dst_desc, "dst_desc")?];
                Softmax::forward(prop_kind(kind)?, SoftmaxAlgorithm::given(alg_kind, "alg_kind")?, descs, softmax_axis, attr)
            })
        }
    }
}

exported! {
    /// Backward.
    fn norm_softmax_backward_primitive_desc_create as dnnl_softmax_backward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        alg_kind: sys::norm_alg_kind_t,
        diff_src_desc: sys::const_norm_memory_desc_t,
        diff_dst_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        softmax_axis: c_int,
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
                    MemoryDesc::tensor(dst_desc, "dst_desc")?,
                ];
                Softmax::backward(SoftmaxAlgorithm::given(alg_kind, "alg_kind")?, descs, softmax_axis, attr)
            })
        }
    }
}
