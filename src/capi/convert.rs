//! Conversion of enumerators, which C passes as integers.

use super::exported;
use crate::error::{Error, Result};
use crate::primitive::PropKind;
use crate::tensor::DataType;
use norm_sys as sys;
use std::ffi::CStr;

/// A data type that tensors can have.
pub(super) fn data_type(value: sys::norm_data_type_t, name: &str) -> Result<DataType> {
    if let Some(data_type) = DataType::of_code(value) {
        return Ok(data_type);
    }
    Err(match unimplemented_data_type(value) {
        Some((found, _)) => Error::unimplemented(format_args!(
            "{name}: tensors of {} are not implemented",
            found.to_str().unwrap_or_default()
        )),
        None => {
            let value = value as i32;
            Error::invalid(format_args!("{name}: {value} is not a data type with elements"))
        }
    })
}

/// The name and the element size, rounded up to bytes, of a data type that exists but is not
/// implemented.
pub(super) fn unimplemented_data_type(
    value: sys::norm_data_type_t,
) -> Option<(&'static CStr, usize)> {
    Some(match value {
        sys::norm_boolean => (c"boolean", 1),
        sys::norm_s4 => (c"s4", 1),
        sys::norm_u4 => (c"u4", 1),
        sys::norm_f4_e2m1 => (c"f4_e2m1", 1),
        sys::norm_f4_e3m0 => (c"f4_e3m0", 1),
        _ => return None,
    })
}

/// A data type; `norm_data_type_undef` is `None`.
pub(super) fn optional_data_type(
    value: sys::norm_data_type_t,
    name: &str,
) -> Result<Option<DataType>> {
    if value == sys::norm_data_type_undef { Ok(None) } else { data_type(value, name).map(Some) }
}

/// The C value of an optional data type.
pub(super) fn data_type_code(data_type: Option<DataType>) -> sys::norm_data_type_t {
    data_type.map_or(sys::norm_data_type_undef, DataType::code)
}

pub(super) fn implemented_prop_kind(value: sys::norm_prop_kind_t) -> Option<PropKind> {
    Some(match value {
        sys::norm_forward_training => PropKind::ForwardTraining,
        sys::norm_forward_inference => PropKind::ForwardInference,
        sys::norm_backward => PropKind::Backward,
        sys::norm_backward_data => PropKind::BackwardData,
        _ => return None,
    })
}

pub(super) fn prop_kind(value: sys::norm_prop_kind_t) -> Result<PropKind> {
    implemented_prop_kind(value).ok_or_else(|| {
        let value = value as i32;
        Error::invalid(format_args!(
            "prop_kind: {value} is not forward_training, forward_inference, backward or \
             backward_data"
        ))
    })
}

pub(super) fn prop_kind_code(prop_kind: PropKind) -> sys::norm_prop_kind_t {
    match prop_kind {
        PropKind::ForwardTraining => sys::norm_forward_training,
        PropKind::ForwardInference => sys::norm_forward_inference,
        PropKind::Backward => sys::norm_backward,
        PropKind::BackwardData => sys::norm_backward_data,
    }
}

exported! {
    /// Size of an element in bytes.
    fn norm_data_type_size as dnnl_data_type_size(data_type_value: sys::norm_data_type_t) -> usize, else 0; {
        let unimplemented = || unimplemented_data_type(data_type_value).map_or(0, |(_, size)| size);
        Ok(DataType::of_code(data_type_value).map_or_else(unimplemented, DataType::size))
    }
}

exported! {
    /// The machine epsilon of a data type.
    fn norm_data_type_epsilon(data_type_value: sys::norm_data_type_t) -> f64, else 0.0; {
        Ok(DataType::of_code(data_type_value).map_or(0.0, DataType::epsilon))
    }
}
