//! The attribute of dropout.

use super::connection::Connection;
use super::functions::functions;
use super::objects::MemoryDesc;
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
    let set = Dropping::of(connection.source())?.primitive_attr_set_dropout_v2;
    let offset = c_int::from(dropout.offset != 0);
    let host = c_int::from(dropout.host_scalars);
    // SAFETY: the attributes and the descriptor are alive.
    let status = unsafe { set(attr, mask.raw(), norm_s64, offset, host) };
    connection.check("primitive_attr_set_dropout_v2", status)
}
