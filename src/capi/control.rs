//! Process-wide settings: instruction set, threads, verbosity.

use super::exported;
use super::handle::Out;
use crate::error::Error;
use crate::primitive::{
    CpuIsa, FpmathMode, Verbosity, default_fpmath_mode, effective_level, set_cap,
    set_default_fpmath_mode, set_verbosity,
};
use crate::threads::{MAX_THREADS, set_threads, threads};
use norm_sys as sys;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

exported! {
    /// Limits the instruction set.
    fn norm_set_max_cpu_isa(isa: sys::norm_cpu_isa_t) {
        set_cap(isa)
    }
}

exported! {
    /// The instruction set in use.
    fn norm_get_effective_cpu_isa() -> sys::norm_cpu_isa_t, else sys::norm_cpu_isa_portable; {
        Ok(CpuIsa::of_level(effective_level()))
    }
}

/// Stored for programs that read them back, without effect.
static ISA_HINTS: AtomicU32 = AtomicU32::new(sys::norm_cpu_isa_no_hints);
static CACHE_CAPACITY: AtomicI32 = AtomicI32::new(1024);

exported! {
    /// Sets the preferred instructions.
    fn norm_set_cpu_isa_hints as dnnl_set_cpu_isa_hints(isa_hints: sys::norm_cpu_isa_hints_t) {
        if !matches!(isa_hints, sys::norm_cpu_isa_no_hints | sys::norm_cpu_isa_prefer_ymm) {
            let value = isa_hints as i32;
            return Err(Error::invalid(format_args!("isa_hints: {value} is not a norm_cpu_isa_hints_t")));
        }
        ISA_HINTS.store(isa_hints, Ordering::Relaxed);
        Ok(())
    }
}

exported! {
    /// The preferred instructions.
    fn norm_get_cpu_isa_hints as dnnl_get_cpu_isa_hints() -> sys::norm_cpu_isa_hints_t, else sys::norm_cpu_isa_no_hints; {
        Ok(ISA_HINTS.load(Ordering::Relaxed))
    }
}

exported! {
    /// The capacity of the primitive cache.
    fn norm_get_primitive_cache_capacity as dnnl_get_primitive_cache_capacity(capacity: *mut c_int) {
        // SAFETY: guaranteed by the caller.
        unsafe { Out::new(capacity, "capacity") }?.set(CACHE_CAPACITY.load(Ordering::Relaxed));
        Ok(())
    }
}

exported! {
    /// Sets the capacity of the primitive cache.
    fn norm_set_primitive_cache_capacity as dnnl_set_primitive_cache_capacity(capacity: c_int) {
        if capacity < 0 {
            return Err(Error::invalid(format_args!("capacity: {capacity} is negative")));
        }
        CACHE_CAPACITY.store(capacity, Ordering::Relaxed);
        Ok(())
    }
}

exported! {
    /// Sets the math mode of attributes created from now on.
    fn norm_set_default_fpmath_mode as dnnl_set_default_fpmath_mode(mode: sys::norm_fpmath_mode_t) {
        set_default_fpmath_mode(FpmathMode::given(mode, "mode")?);
        Ok(())
    }
}

exported! {
    /// The math mode of attributes created now.
    fn norm_get_default_fpmath_mode as dnnl_get_default_fpmath_mode(mode: *mut sys::norm_fpmath_mode_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { Out::new(mode, "mode") }?.set(default_fpmath_mode().code());
        Ok(())
    }
}

exported! {
    /// Sets the number of threads.
    fn norm_set_num_threads(num_threads: c_int) {
        let count = usize::try_from(num_threads).ok().filter(|n| *n <= MAX_THREADS);
        let count = count.ok_or_else(|| {
            Error::invalid(format_args!("num_threads: {num_threads} is not between 0 and {MAX_THREADS}"))
        })?;
        set_threads(count);
        Ok(())
    }
}

exported! {
    /// The number of threads in use.
    fn norm_get_num_threads() -> c_int, else 1; {
        Ok(threads() as c_int)
    }
}

exported! {
    /// Sets the verbosity.
    fn norm_set_verbose as dnnl_set_verbose(level: c_int) {
        let verbosity = Verbosity::from_level(level)
            .ok_or_else(|| Error::invalid(format_args!("level: {level} is not 0, 1 or 2")))?;
        set_verbosity(verbosity);
        Ok(())
    }
}
