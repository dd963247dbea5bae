//! The attributes of primitives on rows: dropout, the logarithms of softmax's sums, and the scales of attention.

use super::attributes::PrimitiveAttr;
use super::functions::functions;
use super::{Connection, MemoryDesc};
use crate::attributes::{AttributeTensor, Attributes};
use crate::executor::Refusal;
use crate::tensor::Tag;
use norm_sys::*;
use std::ffi::c_int;

functions! {
    /// Dropout with its options, of oneDNN 3.10 and later.
    Dropping {
        primitive_attr_set_dropout_v2 = norm_primitive_attr_set_dropout_v2:
        fn(
            norm_primitive_attr_t,
            const_norm_memory_desc_t,
            norm_data_type_t,
            c_int,
            c_int
        ) -> norm_status_t;
    }
}

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
        let set = Scaling::of(connection)?.primitive_attr_set_scales_mask;
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
        let functions = Stats::of(connection)?;
        let attr = self.or_created(connection)?;
        // SAFETY: the attributes and the descriptor are alive.
        let status = unsafe { (functions.primitive_attr_set_softmax_stats)(attr, stats.raw()) };
        connection.check("primitive_attr_set_softmax_stats", status)
    }
}

/// Sets dropout, if there is any.
pub(super) fn set_dropout(
    connection: &Connection,
    attr: norm_primitive_attr_t,
    attributes: &Attributes,
    tensors: &[AttributeTensor],
) -> Result<(), Refusal> {
    let Some(dropout) = &attributes.dropout.value else { return Ok(()) };
    let mask = match tensors.iter().find(|tensor| tensor.is_output()) {
        Some(mask) if dropout.tag == Tag::Any => {
            MemoryDesc::any(connection, &mask.dims, mask.data_type)?
        }
        Some(mask) => MemoryDesc::strided(connection, &mask.layout())?,
        None => MemoryDesc::empty(connection)?,
    };
    let set = Dropping::of(connection)?.primitive_attr_set_dropout_v2;
    let offset = c_int::from(dropout.offset != 0);
    let host = c_int::from(dropout.host_scalars);
    // SAFETY: the attributes and the descriptor are alive.
    let status = unsafe { set(attr, mask.raw(), norm_s64, offset, host) };
    connection.check("primitive_attr_set_dropout_v2", status)
}
