//! The attributes of primitives on rows: the logarithms of softmax's sums, and the scales of attention.

use super::attributes::PrimitiveAttr;
use super::connection::Connection;
use super::functions::functions;
use super::objects::MemoryDesc;
use crate::executor::Refusal;
use norm_sys::*;
use std::ffi::c_int;

functions! {
    /// The logarithms of softmax's sums, which only this library has.
    Stats {
        primitive_attr_set_softmax_stats = norm_primitive_attr_set_softmax_stats:
        fn(norm_primitive_attr_t, const_norm_memory_desc_t) -> norm_status_t;
    }
}

functions! {
    /// Scales of f32.
    Scaling {
        primitive_attr_set_scales_mask = norm_primitive_attr_set_scales_mask:
        fn(norm_primitive_attr_t, c_int, c_int) -> norm_status_t;
    }
}

impl PrimitiveAttr {
    /// Gives an argument f32 scales along the dimensions of a mask.
    pub fn set_scales_mask(
        &mut self,
        connection: &Connection,
        argument: i32,
        mask: c_int,
    ) -> Result<(), Refusal> {
        let set = Scaling::of(connection.source())?.primitive_attr_set_scales_mask;
        let attr = self.or_created(connection)?;
        // SAFETY: the attributes are alive.
        connection.check("primitive_attr_set_scales_mask", unsafe { set(attr, argument, mask) })
    }

    /// Makes softmax store the logarithms of its sums in this descriptor.
    pub fn set_softmax_stats(
        &mut self,
        connection: &Connection,
        stats: &MemoryDesc,
    ) -> Result<(), Refusal> {
        let functions = Stats::of(connection.source())?;
        let attr = self.or_created(connection)?;
        // SAFETY: the attributes and the descriptor are alive.
        let status = unsafe { (functions.primitive_attr_set_softmax_stats)(attr, stats.raw()) };
        connection.check("primitive_attr_set_softmax_stats", status)
    }
}
