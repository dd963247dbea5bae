//! The constructor of reorder.

use super::engine::Engine;
use super::exported;
use super::handle::{Handle, Out};
use super::primitive_desc::create;
use crate::ops::reorder::Reorder;
use crate::tensor::MemoryDesc;
use norm_sys as sys;

exported! {
    /// A reorder between layouts and data types.
    fn norm_reorder_primitive_desc_create as dnnl_reorder_primitive_desc_create(
        reorder_primitive_desc: *mut sys::norm_primitive_desc_t,
        src_desc: sys::const_norm_memory_desc_t,
        src_engine: sys::norm_engine_t,
        dst_desc: sys::const_norm_memory_desc_t,
        dst_engine: sys::norm_engine_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            Out::new(reorder_primitive_desc, "reorder_primitive_desc")?;
            Engine::get(src_engine, "src_engine")?;
            Engine::get(dst_engine, "dst_engine")?;
            create(reorder_primitive_desc, src_engine, attr, |attr| {
                let src = MemoryDesc::tensor(src_desc, "src_desc")?;
                Reorder::new(src, MemoryDesc::tensor(dst_desc, "dst_desc")?, attr)
            })
        }
    }
}
