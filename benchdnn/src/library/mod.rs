//! The library under test, called through function pointers.
//!
//! Nothing else in the harness calls the C functions by name: [`Library`] has a pointer to each
//! function that all drivers need, and a driver's [`Request`] calls those that create its primitive
//! descriptors. The pointers are those of the functions linked into the program, or of another
//! library with the same C interface ([`Opened`]). [`Connection`] adds an engine and a stream.
//! [`Executor`] is what the modes see, and tests replace it by a faulty library.

mod attributes;
mod connection;
mod explain;
mod functions;
mod objects;
mod primitive;
mod row_attributes;
mod steps;
mod wanted;

pub use attributes::PrimitiveAttr;
pub(crate) use attributes::{binary, eltwise};
pub use connection::Connection;
pub use functions::Opened;
pub(crate) use functions::functions;
pub use objects::{Handle, MemoryDesc, has_tag};
pub use primitive::PrimitiveDesc;
pub use steps::{ResidualRequest, StepsRequest, flag_bits};
pub(crate) use wanted::hint;
pub use wanted::{TensorRequest, Wanted};

use crate::executor::{Control, Explainable, Prepared, Refusal, RefusalKind};
use norm as _;
use norm_sys::*;
use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr;
use std::rc::Rc;

/// The inputs of a primitive descriptor: a driver's own type.
pub trait Request: Any + fmt::Debug {
    /// Creates the primitive descriptor, with the library's first implementation.
    fn create(&self, connection: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal>;
}

/// A library as the modes see it: settings, and primitive descriptors.
pub trait Executor: Control {
    /// Creates a primitive descriptor with the library's first implementation.
    fn prepare(&self, request: &dyn Request) -> Result<Box<dyn Prepared>, Refusal>;

    /// Explains the size of outputs, in lines of text.
    fn explain(&self, _explainable: &Explainable<'_>) -> Result<String, Refusal> {
        let message = "the library has no norm_explain".to_owned();
        Err(Refusal { kind: RefusalKind::Unimplemented, message })
    }
}

impl Executor for Rc<Connection> {
    fn prepare(&self, request: &dyn Request) -> Result<Box<dyn Prepared>, Refusal> {
        request.create(self)
    }

    fn explain(&self, explainable: &Explainable<'_>) -> Result<String, Refusal> {
        explain::explain(self, explainable)
    }
}

functions! {
    /// The C functions that every driver needs.
    pub Library {
        version = norm_version: fn() -> *const norm_version_t;
        status2str = norm_status2str: fn(norm_status_t) -> *const c_char;
        engine_create = norm_engine_create:
        fn(*mut norm_engine_t, norm_engine_kind_t, usize) -> norm_status_t;
        engine_destroy = norm_engine_destroy: fn(norm_engine_t) -> norm_status_t;
        stream_create = norm_stream_create:
        fn(*mut norm_stream_t, norm_engine_t, c_uint) -> norm_status_t;
        stream_wait = norm_stream_wait: fn(norm_stream_t) -> norm_status_t;
        stream_destroy = norm_stream_destroy: fn(norm_stream_t) -> norm_status_t;
        memory_desc_create_with_tag = norm_memory_desc_create_with_tag:
        fn(*mut norm_memory_desc_t, c_int, *const norm_dim_t, norm_data_type_t, norm_format_tag_t)
            -> norm_status_t;
        memory_desc_create_with_strides = norm_memory_desc_create_with_strides:
        fn(*mut norm_memory_desc_t, c_int, *const norm_dim_t, norm_data_type_t, *const norm_dim_t)
            -> norm_status_t;
        memory_desc_query = norm_memory_desc_query:
        fn(const_norm_memory_desc_t, norm_query_t, *mut c_void) -> norm_status_t;
        memory_desc_get_size = norm_memory_desc_get_size: fn(const_norm_memory_desc_t) -> usize;
        memory_desc_destroy = norm_memory_desc_destroy: fn(norm_memory_desc_t) -> norm_status_t;
        memory_create = norm_memory_create:
        fn(*mut norm_memory_t, const_norm_memory_desc_t, norm_engine_t, *mut c_void)
            -> norm_status_t;
        memory_destroy = norm_memory_destroy: fn(norm_memory_t) -> norm_status_t;
        primitive_desc_next_impl = norm_primitive_desc_next_impl:
        fn(norm_primitive_desc_t) -> norm_status_t;
        primitive_desc_query = norm_primitive_desc_query:
        fn(const_norm_primitive_desc_t, norm_query_t, c_int, *mut c_void) -> norm_status_t;
        primitive_desc_query_md = norm_primitive_desc_query_md:
        fn(const_norm_primitive_desc_t, norm_query_t, c_int) -> const_norm_memory_desc_t;
        primitive_desc_destroy = norm_primitive_desc_destroy:
        fn(norm_primitive_desc_t) -> norm_status_t;
        primitive_create = norm_primitive_create:
        fn(*mut norm_primitive_t, const_norm_primitive_desc_t) -> norm_status_t;
        primitive_execute = norm_primitive_execute:
        fn(const_norm_primitive_t, norm_stream_t, c_int, *const norm_exec_arg_t) -> norm_status_t;
        primitive_destroy = norm_primitive_destroy: fn(norm_primitive_t) -> norm_status_t;
    }
}

functions! {
    /// Functions that only this library has, or to which it gives its own meaning.
    pub Own {
        get_last_error = norm_get_last_error: fn() -> *const c_char;
        set_max_cpu_isa = norm_set_max_cpu_isa: fn(norm_cpu_isa_t) -> norm_status_t;
        get_effective_cpu_isa = norm_get_effective_cpu_isa: fn() -> norm_cpu_isa_t;
        set_num_threads = norm_set_num_threads: fn(c_int) -> norm_status_t;
        get_last_num_threads = norm_get_last_num_threads: fn() -> c_int;
        get_num_threads = norm_get_num_threads: fn() -> c_int;
    }
}

/// Copies a C string; empty for NULL.
///
/// # Safety
/// `string` is NULL or NUL-terminated.
unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// The library's enumerator of a type.
pub fn data_type(data_type: crate::data_type::DataType) -> norm_data_type_t {
    use crate::data_type::DataType;
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
fn answer<T>(initial: T, query: impl FnOnce(*mut c_void) -> norm_status_t) -> Option<T> {
    let mut result = initial;
    (query(ptr::from_mut(&mut result).cast()) == norm_success).then_some(result)
}
