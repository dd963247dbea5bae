//! The constructors of gated activation.

use super::convert::prop_kind;
use super::exported;
use super::handle::Handle;
use super::primitive_desc::{Descriptor, create};
use crate::error::Result;
use crate::ops::gated::{Backward, Common, Forward, Gated, GatedFunction, Packing};
use crate::primitive::Attr;
use crate::tensor::MemoryDesc;
use norm_sys as sys;

/// The parameters that both directions share.
///
/// # Safety
/// Pointers are NULL or valid as the header describes.
unsafe fn common<'a>(
    (alg_kind, packing): (sys::norm_alg_kind_t, sys::norm_gate_packing_t),
    (src_desc, up_desc): (sys::const_norm_memory_desc_t, sys::const_norm_memory_desc_t),
    numbers: [f32; 3],
    attr: &'a Attr,
) -> Result<Common<'a>> {
    let function = GatedFunction::given(alg_kind, "alg_kind")?;
    let packing = Packing::given(packing, "packing")?;
    // SAFETY: the caller's.
    let (src, up) = unsafe {
        (
            MemoryDesc::tensor(src_desc, "src_desc")?,
            MemoryDesc::optional_tensor(up_desc, "up_desc")?,
        )
    };
    Ok(Common { function, packing, src, up, numbers, attr })
}

exported! {
    /// Forward.
    fn norm_gated_forward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        kind: sys::norm_prop_kind_t,
        alg_kind: sys::norm_alg_kind_t,
        packing: sys::norm_gate_packing_t,
        src_desc: sys::const_norm_memory_desc_t,
        up_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        alpha: f32,
        limit: f32,
        shift: f32,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            create(primitive_desc, engine, attr, |attr| {
                let numbers = [alpha, limit, shift];
                Gated::forward(&Forward {
                    prop_kind: prop_kind(kind)?,
                    dst: MemoryDesc::tensor(dst_desc, "dst_desc")?,
                    common: common((alg_kind, packing), (src_desc, up_desc), numbers, attr)?,
                })
            })
        }
    }
}

exported! {
    /// Backward.
    fn norm_gated_backward_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        alg_kind: sys::norm_alg_kind_t,
        packing: sys::norm_gate_packing_t,
        diff_src_desc: sys::const_norm_memory_desc_t,
        diff_up_desc: sys::const_norm_memory_desc_t,
        diff_dst_desc: sys::const_norm_memory_desc_t,
        src_desc: sys::const_norm_memory_desc_t,
        up_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        alpha: f32,
        limit: f32,
        shift: f32,
        hint_fwd_pd: sys::const_norm_primitive_desc_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            Descriptor::get_optional(hint_fwd_pd, "hint_fwd_pd")?;
            create(primitive_desc, engine, attr, |attr| {
                let numbers = [alpha, limit, shift];
                Gated::backward(&Backward {
                    diff_src: MemoryDesc::tensor(diff_src_desc, "diff_src_desc")?,
                    diff_up: MemoryDesc::optional_tensor(diff_up_desc, "diff_up_desc")?,
                    diff_dst: MemoryDesc::tensor(diff_dst_desc, "diff_dst_desc")?,
                    dst: MemoryDesc::optional_tensor(dst_desc, "dst_desc")?,
                    common: common((alg_kind, packing), (src_desc, up_desc), numbers, attr)?,
                })
            })
        }
    }
}
