//! Primitives and their execution.

use super::exported;
use super::handle::{Handle, Out, slice};
use super::memory::Memory;
use super::primitive_desc::Descriptor;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::primitive::Arguments;
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;
use std::cell::Cell;
use std::ffi::c_int;

/// A problem ready to run.
struct Primitive {
    descriptor: Descriptor,
}

impl Handle for Primitive {
    type C = sys::norm_primitive;
}

thread_local! {
    /// Threads that took part in this thread's last execution.
    static LAST_THREADS: Cell<usize> = const { Cell::new(0) };
}

exported! {
    /// Creates a primitive.
    fn norm_primitive_create(
        primitive: *mut sys::norm_primitive_t,
        primitive_desc: sys::const_norm_primitive_desc_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let out = Out::new(primitive, "primitive")?;
            let descriptor = Descriptor::get(primitive_desc, "primitive_desc")?.clone();
            out.set(Primitive { descriptor }.into_c());
        }
        Ok(())
    }
}

exported! {
    /// Runs a primitive.
    fn norm_primitive_execute(
        primitive: sys::const_norm_primitive_t,
        stream: sys::norm_stream_t,
        nargs: c_int,
        args: *const sys::norm_exec_arg_t,
    ) {
        // SAFETY: the caller's.
        let (primitive, stream) =
            unsafe { (Primitive::get(primitive, "primitive")?, Stream::get(stream, "stream")?) };
        let nargs = usize::try_from(nargs)
            .map_err(|_| Error::invalid(format!("nargs: {nargs} is negative")))?;
        // SAFETY: the caller's.
        let args = unsafe { slice(args, nargs, "args") }?;
        let desc = &primitive.descriptor.desc;

        let mut arguments = Arguments::new();
        for argument in desc.op().arguments() {
            let address = buffer(args, argument.id, argument.name, &argument.desc)?;
            arguments.push(argument.id, address);
        }
        desc.op().check_buffers(&arguments)?;
        let scratchpad = match desc.scratchpad_desc() {
            none if none.ndims() == 0 => std::ptr::null_mut(),
            needed => buffer(args, sys::NORM_ARG_SCRATCHPAD, "scratchpad", needed)?,
        };
        let threads = desc.execute(&arguments, scratchpad, stream.threads)?;
        LAST_THREADS.set(threads);
        Ok(())
    }
}

/// The buffer given for an argument, if it is of the right type and large enough.
fn buffer(
    args: &[sys::norm_exec_arg_t],
    id: c_int,
    name: &str,
    needed: &MemoryDesc,
) -> Result<*mut u8> {
    let wrong =
        |what: String| Error::invalid(format!("args: NORM_ARG_{}: {what}", name.to_uppercase()));
    let given =
        args.iter().rev().find(|arg| arg.arg == id).ok_or_else(|| wrong("missing".into()))?;
    // SAFETY: the header asks for live handles.
    let memory = unsafe { Memory::get_optional(given.memory) };
    let memory = memory.ok_or_else(|| wrong("its memory is NULL".into()))?;
    let size = needed.size();
    if memory.desc.data_type() != needed.data_type() && memory.desc.ndims() > 0 {
        return Err(wrong(format!(
            "is {}, not {}",
            memory.desc.data_type().map_or("undef", DataType::name),
            needed.data_type().map_or("undef", DataType::name)
        )));
    }
    if memory.desc.size() < size {
        return Err(wrong(format!("has {} bytes, not {size}", memory.desc.size())));
    }
    if memory.data.is_null() && size > 0 {
        return Err(wrong("its memory has no buffer".into()));
    }
    Ok(memory.data)
}

exported! {
    /// The primitive descriptor.
    fn norm_primitive_get_primitive_desc(
        primitive: sys::const_norm_primitive_t,
        primitive_desc: *mut sys::const_norm_primitive_desc_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let primitive = Primitive::get(primitive, "primitive")?;
            Out::new(primitive_desc, "primitive_desc")?.set(primitive.descriptor.lend());
        }
        Ok(())
    }
}

exported! {
    /// Frees a primitive.
    fn norm_primitive_destroy(primitive: sys::norm_primitive_t) {
        // SAFETY: the caller's.
        unsafe { Primitive::destroy(primitive) };
        Ok(())
    }
}

exported! {
    /// Threads that took part in this thread's last execution.
    fn norm_get_last_num_threads() -> c_int, else 0; {
        Ok(LAST_THREADS.get() as c_int)
    }
}
