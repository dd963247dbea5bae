//! Streams: the order of executions, and the threads that run them.

use super::engine::HeldEngine;
use super::exported;
use super::handle::{Handle, Out, handles};
use crate::error::Error;
use crate::mark::{Kind, Mark};
use crate::threads::{CallerPool, MAX_THREADS, ParallelFor, Threads};
use norm_sys as sys;
use std::ffi::{c_int, c_uint, c_void};

/// `norm_parallel_for_t`, not NULL.
type Registered = unsafe extern "C" fn(*mut c_void, c_int, sys::norm_parallel_body_t, *mut c_void);

/// Executes primitives.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Stream {
    mark: Mark,
    engine: HeldEngine,
    pub(super) threads: Threads,
}

handles! {
    Stream: norm_stream = Stream;
}

exported! {
    /// Creates a stream.
    fn norm_stream_create as dnnl_stream_create(
        stream: *mut sys::norm_stream_t,
        engine: sys::norm_engine_t,
        flags: c_uint,
    ) {
        // SAFETY: guaranteed by the caller.
        let (out, engine) = unsafe { (Out::new(stream, "stream")?, HeldEngine::new(engine, "engine")?) };
        if !matches!(flags, sys::norm_stream_in_order | sys::norm_stream_out_of_order) {
            return Err(Error::invalid(format_args!(
                "flags: {flags:#x} is neither stream_in_order nor stream_out_of_order"
            )));
        }
        let (mark, threads) = (Mark::part(Kind::Stream), Threads::Library);
        out.set(Stream { mark, engine, threads }.into_c()?);
        Ok(())
    }
}

exported! {
    /// The engine of a stream.
    fn norm_stream_get_engine as dnnl_stream_get_engine(
        stream: sys::const_norm_stream_t,
        engine: *mut sys::norm_engine_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let stream = Stream::get(stream, "stream")?;
            Out::new(engine, "engine")?.set(stream.engine.handle());
        }
        Ok(())
    }
}

exported! {
    /// Waits for executions, which are synchronous and so have finished.
    fn norm_stream_wait as dnnl_stream_wait(stream: sys::norm_stream_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { Stream::get(stream, "stream") }.map(|_| ())
    }
}

exported! {
    /// Frees a stream.
    fn norm_stream_destroy as dnnl_stream_destroy(stream: sys::norm_stream_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { Stream::destroy(stream, "stream") }
    }
}

exported! {
    /// Selects the caller's threads or the library's.
    fn norm_stream_set_parallel_for(
        stream: sys::norm_stream_t,
        parallel_for: sys::norm_parallel_for_t,
        pool: *mut c_void,
        num_threads: c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        let stream = unsafe { Stream::get_mut(stream, "stream") }?;
        stream.threads = match parallel_for {
            None => Threads::Library,
            Some(parallel_for) => {
                let threads = usize::try_from(num_threads).unwrap_or(0);
                if !(1..=MAX_THREADS).contains(&threads) {
                    return Err(Error::invalid(format_args!(
                        "num_threads: {num_threads} is not between 1 and {MAX_THREADS}"
                    )));
                }
                // SAFETY: the two calling conventions differ only in what an exception does.
                let parallel_for = unsafe { std::mem::transmute::<Registered, ParallelFor>(parallel_for) };
                Threads::Caller(CallerPool { parallel_for, pool, threads })
            }
        };
        Ok(())
    }
}
