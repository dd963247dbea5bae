//! Values of the C interface as those of the harness, and the reverse.

use crate::data_type::DataType;
use norm_sys::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// Copies a C string; empty for NULL.
///
/// # Safety
/// `string` is NULL or NUL-terminated.
pub(super) unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// The library's enumerator of a type.
pub fn data_type(data_type: DataType) -> norm_data_type_t {
    match data_type {
        DataType::F32 => norm_f32,
        DataType::Bf16 => norm_bf16,
        DataType::F16 => norm_f16,
        DataType::F64 => norm_f64,
        DataType::F8E5m2 => norm_f8_e5m2,
        DataType::F8E4m3 => norm_f8_e4m3,
        DataType::E8m0 => norm_e8m0,
        DataType::S32 => norm_s32,
        DataType::S64 => norm_s64,
        DataType::S8 => norm_s8,
        DataType::U8 => norm_u8,
    }
}

/// The result of a query, of type `T`, which must be the type that norm.h states for it.
pub(super) fn answer<T>(initial: T, query: impl FnOnce(*mut c_void) -> norm_status_t) -> Option<T> {
    let mut result = initial;
    (query(ptr::from_mut(&mut result).cast()) == norm_success).then_some(result)
}
