//! The tables of C functions that every driver needs.

use super::functions::functions;
use norm_sys::*;
use std::ffi::{c_char, c_int, c_uint, c_void};

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
