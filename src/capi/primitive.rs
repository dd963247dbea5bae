//! Primitives and their execution.

use super::exported;
use super::handle::{Handle, Out, handles, slice, stranger};
use super::memory::Memory;
use super::primitive_desc::Descriptor;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::heap;
use crate::mark::{Kind, Mark};
use crate::per_thread;
use crate::primitive::{ArgumentName, Arguments, PrimitiveDesc, Usage};
use crate::rows::{Many, execute_many};
use crate::tensor::{DataType, MemoryDesc};
use crate::text::{Capitals, joined, shown};
use norm_sys as sys;
use std::ffi::c_int;
use std::fmt;

/// An executable problem.
#[repr(C)]
struct Primitive {
    mark: Mark,
    descriptor: Descriptor,
    needed: Vec<Needed>,
    /// The scratchpad argument in user mode.
    scratchpad: Option<Needed>,
}

impl Primitive {
    fn new(descriptor: Descriptor) -> Result<Self> {
        let desc = &descriptor.desc;
        let needed = desc.op().arguments().iter();
        let needed = heap::list(needed.map(|a| Needed::new(a.id, a.name, &a.desc)))?;
        let scratchpad = desc.scratchpad_desc();
        let name = ArgumentName::Tensor("scratchpad");
        let scratchpad = (scratchpad.ndims() > 0)
            .then(|| Needed::new(sys::NORM_ARG_SCRATCHPAD, name, scratchpad));
        Ok(Self { mark: Mark::part(Kind::Primitive), descriptor, needed, scratchpad })
    }

    /// Checks and stores the arguments of an execution. Returns the caller's scratchpad, null in library mode.
    #[inline]
    fn bind(&self, args: &[sys::norm_exec_arg_t], arguments: &mut Arguments) -> Result<*mut u8> {
        for needed in &self.needed {
            let buffer = needed.find(args).ok_or_else(|| self.refuse(needed, args))?;
            arguments.push(needed.id, buffer);
        }
        self.descriptor.desc.op().check_buffers(arguments)?;
        match &self.scratchpad {
            None => Ok(std::ptr::null_mut()),
            Some(needed) => needed.find(args).ok_or_else(|| self.refuse(needed, args)),
        }
    }

    /// The reason why [`find`](Needed::find) failed, and what is expected.
    #[cold]
    fn refuse(&self, needed: &Needed, args: &[sys::norm_exec_arg_t]) -> Error {
        let desc = &self.descriptor.desc;
        let argument = desc.op().arguments().iter().find(|argument| argument.id == needed.id);
        let expected = argument.map_or(desc.scratchpad_desc(), |argument| &argument.desc);
        let usage = match argument.map(|argument| argument.usage) {
            Some(Usage::Input) => "an input",
            _ => "an output",
        };
        let place = if needed.on_host { " on the host" } else { "" };
        let name = expected.data_type().map_or("undef", DataType::name);
        let (dims, reason) = (joined(expected.dims().iter(), "x"), needed.reason(args));
        let hint = if argument.is_none() { ", described by norm_query_scratchpad_md" } else { "" };
        Error::invalid(format_args!(
            "args: NORM_ARG_{}: {reason}; it is {usage}, {name} of {dims}{place}{hint}",
            Capitals(needed.name)
        ))
    }
}

handles! {
    Primitive: norm_primitive = Primitive;
}

/// Stores the number of threads of an execution.
fn remember(threads: usize) {
    per_thread::with(|thread| thread.last_threads.set(threads));
}

exported! {
    /// Creates a primitive.
    fn norm_primitive_create as dnnl_primitive_create(
        primitive: *mut sys::norm_primitive_t,
        primitive_desc: sys::const_norm_primitive_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = Out::new(primitive, "primitive")?;
            let descriptor = Descriptor::get(primitive_desc, "primitive_desc")?.clone();
            out.set(Primitive::new(descriptor)?.into_c()?);
        }
        Ok(())
    }
}

exported! {
    /// Runs a primitive.
    fn norm_primitive_execute as dnnl_primitive_execute(
        primitive: sys::const_norm_primitive_t,
        stream: sys::norm_stream_t,
        nargs: c_int,
        args: *const sys::norm_exec_arg_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let (primitive, stream) =
            unsafe { (Primitive::get(primitive, "primitive")?, Stream::get(stream, "stream")?) };
        let nargs = usize::try_from(nargs)
            .map_err(|_| Error::invalid(format_args!("nargs: {nargs} is negative")))?;
        // SAFETY: guaranteed by the caller.
        let args = unsafe { slice(args, nargs, "args") }?;
        let desc = &primitive.descriptor.desc;

        let mut arguments = Arguments::new();
        let scratchpad = primitive.bind(args, &mut arguments)?;
        let threads = desc.execute(&arguments, scratchpad, stream.threads)?;
        remember(threads);
        Ok(())
    }
}

exported! {
    /// Runs several primitives in one parallel region.
    fn norm_primitive_execute_many(
        count: c_int,
        primitives: *const sys::const_norm_primitive_t,
        stream: sys::norm_stream_t,
        nargs: *const c_int,
        args: *const *const sys::norm_exec_arg_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let stream = unsafe { Stream::get(stream, "stream") }?;
        let count = usize::try_from(count)
            .map_err(|_| Error::invalid(format_args!("count: {count} is negative")))?;
        // SAFETY: guaranteed by the caller.
        let calls = unsafe {
            Calls {
                primitives: slice(primitives, count, "primitives")?,
                nargs: slice(nargs, count, "nargs")?,
                args: slice(args, count, "args")?,
            }
        };
        (0..count).try_for_each(|index| calls.check(index))?;
        if count > 0 {
            remember(execute_many(&calls, stream.threads)?);
        }
        Ok(())
    }
}

/// The arguments of [`norm_primitive_execute_many`].
struct Calls<'a> {
    primitives: &'a [sys::const_norm_primitive_t],
    nargs: &'a [c_int],
    args: &'a [*const sys::norm_exec_arg_t],
}

impl Calls<'_> {
    fn primitive(&self, index: usize) -> Result<&Primitive> {
        // SAFETY: the header requires handles.
        unsafe { Primitive::get(self.primitives[index], "primitive") }
    }

    fn args(&self, index: usize) -> Result<&[sys::norm_exec_arg_t]> {
        let nargs = usize::try_from(self.nargs[index]).map_err(|_| {
            Error::invalid(format_args!("nargs: {} is negative", self.nargs[index]))
        })?;
        // SAFETY: guaranteed by the caller.
        unsafe { slice(self.args[index], nargs, "args") }
    }

    /// Checks everything that does not need the memories.
    fn check(&self, index: usize) -> Result<()> {
        let checked = self.primitive(index).and_then(|_| self.args(index));
        checked.map(|_| ()).map_err(|error| of_primitive(index, &error))
    }
}

/// A failure of one of several primitives.
#[cold]
fn of_primitive(index: usize, error: &Error) -> Error {
    Error::new(error.status, format_args!("primitive {index}: {error}"))
}

impl Many for Calls<'_> {
    fn count(&self) -> usize {
        self.primitives.len()
    }

    fn desc(&self, index: usize) -> &PrimitiveDesc {
        // SAFETY: `check` found an object, and the header forbids to destroy it meanwhile.
        unsafe { &(*self.primitives[index].cast::<Primitive>()).descriptor.desc }
    }

    fn bind(&self, index: usize, arguments: &mut Arguments) -> Result<*mut u8> {
        let mut bound = || self.primitive(index)?.bind(self.args(index)?, arguments);
        bound().map_err(|error| of_primitive(index, &error))
    }
}

/// A required argument of an execution.
struct Needed {
    id: c_int,
    name: ArgumentName,
    data_type: Option<DataType>,
    /// Whether it is a host scalar.
    on_host: bool,
    size: usize,
    /// Offset in bytes of the tensor's first element in the buffer.
    offset: usize,
}

impl Needed {
    fn new(id: c_int, name: ArgumentName, desc: &MemoryDesc) -> Self {
        let element = desc.data_type().map_or(0, DataType::size);
        let offset = desc.offset() as usize * element;
        let (data_type, on_host) = (desc.data_type(), desc.is_host_scalar());
        Self { id, name, data_type, on_host, size: desc.size(), offset }
    }

    /// The buffer passed for it, if its type and size are right. If an id is repeated, the last
    /// argument counts.
    #[inline]
    fn find(&self, args: &[sys::norm_exec_arg_t]) -> Option<*mut u8> {
        let given = args.iter().rev().find(|arg| arg.arg == self.id)?;
        // SAFETY: the header requires live handles.
        let memory = unsafe { Memory::find(given.memory) }?;
        let fits = self.fits(memory) && !(memory.data.is_null() && self.size > 0);
        fits.then(|| memory.data.wrapping_add(self.offset))
    }

    #[inline]
    fn fits(&self, memory: &Memory) -> bool {
        memory.size >= self.size
            && self.has_type_of(&memory.desc)
            && memory.desc.is_host_scalar() == self.on_host
    }

    #[inline]
    fn has_type_of(&self, desc: &MemoryDesc) -> bool {
        desc.data_type() == self.data_type || desc.ndims() == 0
    }

    /// The reason why [`find`](Self::find) failed.
    fn reason(&self, args: &[sys::norm_exec_arg_t]) -> impl fmt::Display {
        let given = args.iter().rev().find(|arg| arg.arg == self.id).map(|arg| arg.memory);
        // SAFETY: the header requires live handles.
        let memory = given.and_then(|given| unsafe { Memory::find(given) });
        let name = |data_type: Option<DataType>| data_type.map_or("undef", DataType::name);
        shown(move |f| match memory {
            None => match given {
                None => f.write_str("missing"),
                Some(given) if given.is_null() => f.write_str("its memory is NULL"),
                // SAFETY: the header requires handles.
                Some(given) => write!(f, "its memory: {}", unsafe { stranger::<Memory>(given) }),
            },
            Some(m) if m.desc.is_host_scalar() && !self.on_host => {
                f.write_str("its memory is a host scalar, but the attributes do not ask for one")
            }
            Some(m) if !m.desc.is_host_scalar() && self.on_host => {
                f.write_str("its memory is not a host scalar, but the attributes ask for one")
            }
            Some(m) if !self.has_type_of(&m.desc) => {
                write!(f, "is {}, not {}", name(m.desc.data_type()), name(self.data_type))
            }
            Some(m) if m.size < self.size => {
                write!(f, "has {} bytes, fewer than the {} needed", m.size, self.size)
            }
            Some(_) => f.write_str("its memory has no buffer"),
        })
    }
}

exported! {
    /// The primitive descriptor of a primitive.
    fn norm_primitive_get_primitive_desc as dnnl_primitive_get_primitive_desc(
        primitive: sys::const_norm_primitive_t,
        primitive_desc: *mut sys::const_norm_primitive_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let primitive = Primitive::get(primitive, "primitive")?;
            Out::new(primitive_desc, "primitive_desc")?.set(primitive.descriptor.lend());
        }
        Ok(())
    }
}

exported! {
    /// Frees a primitive.
    fn norm_primitive_destroy as dnnl_primitive_destroy(primitive: sys::norm_primitive_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { Primitive::destroy(primitive, "primitive") }
    }
}

exported! {
    /// The number of threads in this thread's last execution.
    fn norm_get_last_num_threads() -> c_int, else 0; {
        Ok(per_thread::with(|thread| thread.last_threads.get()).unwrap_or(0) as c_int)
    }
}
