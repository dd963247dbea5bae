//! The library under test, behind function pointers.
//!
//! Nothing else in the harness calls the C functions by name: [`Library`] holds a pointer to each
//! that all drivers need, and a driver's own `library` module those that create its primitive
//! descriptors. Today both are filled with the functions that the program is linked with; another
//! library with the same C interface is one more way of filling them. [`Connection`] adds engine
//! and stream, [`PrimitiveDesc`] and the traits of [`crate::executor`] do the rest.

mod objects;
mod primitive;

pub use objects::{Handle, MemoryDesc};
pub use primitive::PrimitiveDesc;

use crate::executor::{Control, CpuIsa, Refusal, RefusalKind};
use norm as _;
use norm_sys::*;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

macro_rules! library {
    ($($name:ident = $function:ident: fn($($type:ty),*) $(-> $result:ty)?;)*) => {
        /// The C functions that every driver needs.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "named after the functions that norm.h documents")]
        pub struct Library {
            $(pub $name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        impl Library {
            /// The library that the program is linked with.
            pub fn linked() -> Library {
                Library { $($name: $function,)* }
            }
        }
    };
}

library! {
    status2str = norm_status2str: fn(norm_status_t) -> *const c_char;
    get_last_error = norm_get_last_error: fn() -> *const c_char;
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
    set_max_cpu_isa = norm_set_max_cpu_isa: fn(norm_cpu_isa_t) -> norm_status_t;
    get_effective_cpu_isa = norm_get_effective_cpu_isa: fn() -> norm_cpu_isa_t;
    set_num_threads = norm_set_num_threads: fn(c_int) -> norm_status_t;
    get_last_num_threads = norm_get_last_num_threads: fn() -> c_int;
}

impl Library {
    /// Turns a status into a result; `call` names the function for the message.
    pub fn check(&self, call: &str, status: norm_status_t) -> Result<(), Refusal> {
        if status == norm_success {
            return Ok(());
        }
        let kind = if status == norm_unimplemented {
            RefusalKind::Unimplemented
        } else if status == norm_invalid_arguments {
            RefusalKind::InvalidArguments
        } else {
            RefusalKind::Failure
        };
        // SAFETY: both functions take nothing that could be wrong, and return NUL-terminated text
        // that stays valid until the next failing call on this thread.
        let (name, reason) =
            unsafe { (text((self.status2str)(status)), text((self.get_last_error)())) };
        let message =
            if reason.is_empty() { format!("{call}: {name}") } else { format!("{name}: {reason}") };
        Err(Refusal { kind, message })
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
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// A library with an engine and a stream of it.
#[derive(Debug)]
pub struct Connection {
    library: Library,
    // The stream before the engine: it was made from it.
    stream: Handle<norm_stream>,
    engine: Handle<norm_engine>,
    /// What the library would use by itself: its environment's say, if nothing is set.
    initial_isa: norm_cpu_isa_t,
}

impl Connection {
    /// Makes an engine for the CPU and a stream.
    pub fn open(library: Library) -> Result<Connection, Refusal> {
        let engine = Handle::create(library.engine_destroy, |engine| {
            // SAFETY: `engine` is a valid place for a handle.
            let status = unsafe { (library.engine_create)(engine, norm_cpu, 0) };
            library.check("norm_engine_create", status)
        })?;
        let stream = Handle::create(library.stream_destroy, |stream| {
            // SAFETY: `stream` is a valid place for a handle and the engine is alive.
            let status =
                unsafe { (library.stream_create)(stream, engine.raw(), norm_stream_default_flags) };
            library.check("norm_stream_create", status)
        })?;
        // SAFETY: the function takes nothing.
        let initial_isa = unsafe { (library.get_effective_cpu_isa)() };
        Ok(Connection { library, stream, engine, initial_isa })
    }

    /// The functions.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The engine, owned by the connection.
    pub fn engine(&self) -> norm_engine_t {
        self.engine.raw()
    }

    /// The stream, owned by the connection.
    fn stream(&self) -> norm_stream_t {
        self.stream.raw()
    }
}

impl Control for Connection {
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal> {
        let value = match isa {
            CpuIsa::Default => self.initial_isa,
            CpuIsa::Portable => norm_cpu_isa_portable,
            CpuIsa::Avx2 => norm_cpu_isa_avx2,
            CpuIsa::Avx512 => norm_cpu_isa_avx512_core,
            CpuIsa::Neon => norm_cpu_isa_neon,
        };
        // SAFETY: the function takes any value.
        let status = unsafe { (self.library.set_max_cpu_isa)(value) };
        if status == norm_unimplemented {
            return Ok(false);
        }
        self.library.check("norm_set_max_cpu_isa", status)?;
        // SAFETY: the function takes nothing.
        let effective = unsafe { (self.library.get_effective_cpu_isa)() };
        Ok(isa == CpuIsa::Default || effective == value)
    }

    fn set_threads(&self, threads: u64) -> Result<(), Refusal> {
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the function takes any value.
        let status = unsafe { (self.library.set_num_threads)(threads) };
        self.library.check("norm_set_num_threads", status)
    }

    fn last_threads(&self) -> u64 {
        // SAFETY: the function takes nothing.
        let threads = unsafe { (self.library.get_last_num_threads)() };
        u64::try_from(threads).unwrap_or(0)
    }
}

/// The library's number of a type.
pub fn data_type(data_type: crate::fill::DataType) -> norm_data_type_t {
    use crate::fill::DataType;
    match data_type {
        DataType::F32 => norm_f32,
        DataType::Bf16 => norm_bf16,
        DataType::F16 => norm_f16,
    }
}

/// A query's answer of type `T`, which must be what norm.h says that the query writes.
fn answer<T>(initial: T, query: impl FnOnce(*mut c_void) -> norm_status_t) -> Option<T> {
    let mut result = initial;
    (query(ptr::from_mut(&mut result).cast()) == norm_success).then_some(result)
}
