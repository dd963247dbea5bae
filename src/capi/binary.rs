//! The constructors of binary functions.

use super::exported;
use super::primitive_desc::create;
use crate::error::Result;
use crate::ops::binary::Binary;
use crate::primitive::BinaryAlgorithm;
use crate::tensor::MemoryDesc;
use norm_sys as sys;

exported! {
    /// An element-wise function of two tensors.
    fn norm_binary_primitive_desc_create as dnnl_binary_primitive_desc_create(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        alg_kind: sys::norm_alg_kind_t,
        src0_desc: sys::const_norm_memory_desc_t,
        src1_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        let descs = [src0_desc, src1_desc, std::ptr::null(), dst_desc];
        // SAFETY: the caller's.
        unsafe { create_binary(primitive_desc, engine, alg_kind, descs, attr) }
    }
}

exported! {
    /// The same, or a selection between two tensors by a third.
    fn norm_binary_primitive_desc_create_v2 as dnnl_binary_primitive_desc_create_v2(
        primitive_desc: *mut sys::norm_primitive_desc_t,
        engine: sys::norm_engine_t,
        alg_kind: sys::norm_alg_kind_t,
        src0_desc: sys::const_norm_memory_desc_t,
        src1_desc: sys::const_norm_memory_desc_t,
        src2_desc: sys::const_norm_memory_desc_t,
        dst_desc: sys::const_norm_memory_desc_t,
        attr: sys::const_norm_primitive_attr_t,
    ) {
        let descs = [src0_desc, src1_desc, src2_desc, dst_desc];
        // SAFETY: the caller's.
        unsafe { create_binary(primitive_desc, engine, alg_kind, descs, attr) }
    }
}

/// # Safety
/// Pointers are NULL or valid as the header describes.
unsafe fn create_binary(
    primitive_desc: *mut sys::norm_primitive_desc_t,
    engine: sys::norm_engine_t,
    alg_kind: sys::norm_alg_kind_t,
    [src0_desc, src1_desc, src2_desc, dst_desc]: [sys::const_norm_memory_desc_t; 4],
    attr: sys::const_norm_primitive_attr_t,
) -> Result<()> {
    // SAFETY: the caller's.
    unsafe {
        create(primitive_desc, engine, attr, |attr| {
            let algorithm = BinaryAlgorithm::given(alg_kind, "alg_kind")?;
            let descs = [
                MemoryDesc::tensor(src0_desc, "src0_desc")?,
                MemoryDesc::tensor(src1_desc, "src1_desc")?,
                MemoryDesc::tensor(dst_desc, "dst_desc")?,
            ];
            let src2 = match algorithm {
                BinaryAlgorithm::Select => Some(MemoryDesc::tensor(src2_desc, "src2_desc")?),
                _ => None,
            };
            Binary::new(algorithm, descs, src2, attr)
        })
    }
}
