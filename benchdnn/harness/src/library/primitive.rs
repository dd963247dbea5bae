//! A primitive descriptor of the library as [`Prepared`], a primitive with memory as [`Bound`].

use super::connection::Connection;
use super::handle::Handle;
use super::objects::{self, MemoryDesc};
use super::values::{answer, text};
use crate::data_type::DataType;
use crate::executor::{Argument, Bound, Prepared, Refusal};
use crate::tensor::{Buffer, Layout};
use norm_sys::*;
use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

/// A primitive descriptor.
#[derive(Debug)]
pub struct PrimitiveDesc {
    handle: Handle<norm_primitive_desc>,
    connection: Rc<Connection>,
}

impl PrimitiveDesc {
    /// Creates one with `create`, which calls the operation's create function.
    pub fn create(
        connection: &Rc<Connection>,
        create: impl FnOnce(*mut norm_primitive_desc_t) -> Result<(), Refusal>,
    ) -> Result<PrimitiveDesc, Refusal> {
        let handle = Handle::create(connection.library().primitive_desc_destroy, create)?;
        Ok(PrimitiveDesc { handle, connection: connection.clone() })
    }

    /// The handle, valid as long as this value.
    pub fn raw(&self) -> const_norm_primitive_desc_t {
        self.handle.raw().cast_const()
    }

    fn argument_desc(&self, argument: i32) -> const_norm_memory_desc_t {
        let query = self.connection.library().primitive_desc_query_md;
        // SAFETY: the descriptor is alive, and any index is allowed.
        unsafe { query(self.handle.raw(), norm_query_exec_arg_md, argument as c_int) }
    }
}

impl PrimitiveDesc {
    /// The scratchpad that the primitive needs from the caller.
    fn scratchpad(&self) -> Result<Option<(Buffer, Handle<norm_memory>)>, Refusal> {
        let library = self.connection.library();
        // SAFETY: the descriptor is alive; without a scratchpad its descriptor is empty or NULL.
        let (desc, size) = unsafe {
            let desc =
                (library.primitive_desc_query_md)(self.handle.raw(), norm_query_scratchpad_md, 0);
            let size = if desc.is_null() { 0 } else { (library.memory_desc_get_size)(desc) };
            (desc, size)
        };
        if size == 0 {
            return Ok(None);
        }
        let buffer = Buffer::output(&Layout::dense(&[size], DataType::U8), 0);
        let memory = objects::memory(&self.connection, desc, &buffer)?;
        Ok(Some((buffer, memory)))
    }
}

impl Prepared for PrimitiveDesc {
    fn implementation(&self) -> String {
        let query = self.connection.library().primitive_desc_query;
        let name: Option<*const c_char> = answer(ptr::null(), |result| {
            // SAFETY: the descriptor is alive, and this query writes a string's address.
            unsafe { query(self.handle.raw(), norm_query_impl_info_str, 0, result) }
        });
        // SAFETY: the string is NULL or NUL-terminated and lives as long as the descriptor.
        name.map_or_else(String::new, |name| unsafe { text(name) })
    }

    fn creation(&self) -> Duration {
        self.handle.creation()
    }

    fn next_implementation(&mut self) -> Result<bool, Refusal> {
        let library = self.connection.library();
        // SAFETY: the descriptor is alive and `&mut self` makes the change exclusive.
        let status = unsafe { (library.primitive_desc_next_impl)(self.handle.raw()) };
        if status == norm_last_impl_reached {
            return Ok(false);
        }
        self.connection.check("primitive_desc_next_impl", status).map(|()| true)
    }

    fn layout(&self, argument: i32) -> Option<Layout> {
        objects::layout(self.connection.library(), self.argument_desc(argument))
    }

    fn bind<'a>(&self, arguments: &[Argument<'a>]) -> Result<Box<dyn Bound + 'a>, Refusal> {
        let library = self.connection.library();
        let primitive = Handle::create(library.primitive_destroy, |primitive| {
            // SAFETY: `primitive` is a valid place for a handle and the descriptor is alive.
            let status = unsafe { (library.primitive_create)(primitive, self.handle.raw()) };
            self.connection.check("primitive_create", status)
        })?;
        let mut memories = Vec::new();
        let mut pairs = Vec::new();
        for argument in arguments {
            let used = self.argument_desc(argument.id);
            // A library's descriptor of an unused argument need not match it.
            let fits = objects::layout(library, used)
                .is_some_and(|used| used.dims == argument.layout.dims);
            let memory = if objects::is_host_scalar(library, used) {
                objects::host_scalar(&self.connection, used, argument.buffer)?
            } else if fits {
                objects::memory(&self.connection, used, argument.buffer)?
            } else {
                let own = MemoryDesc::strided(&self.connection, argument.layout)?;
                objects::memory(&self.connection, own.raw(), argument.buffer)?
            };
            pairs.push(norm_exec_arg_t { arg: argument.id, memory: memory.raw() });
            memories.push(memory);
        }
        let scratchpad = self.scratchpad()?;
        if let Some((_, memory)) = &scratchpad {
            pairs.push(norm_exec_arg_t { arg: NORM_ARG_SCRATCHPAD, memory: memory.raw() });
        }
        Ok(Box::new(Primitive {
            pairs,
            _scratchpad: scratchpad,
            primitive,
            _memories: memories,
            connection: self.connection.clone(),
            buffers: PhantomData,
        }))
    }
}

struct Primitive<'a> {
    pairs: Vec<norm_exec_arg_t>,
    primitive: Handle<norm_primitive>,
    /// The scratchpad, if the caller provides it.
    _scratchpad: Option<(Buffer, Handle<norm_memory>)>,
    /// What the pairs point to.
    _memories: Vec<Handle<norm_memory>>,
    connection: Rc<Connection>,
    /// What the memories point to.
    buffers: PhantomData<&'a Buffer>,
}

impl Bound for Primitive<'_> {
    fn execute(&self) -> Result<(), Refusal> {
        let library = self.connection.library();
        let stream = self.connection.stream();
        // SAFETY: primitive, stream, memories and their buffers are alive, and no reference to the
        // buffers' bytes exists (see `Buffer`).
        let status = unsafe {
            (library.primitive_execute)(
                self.primitive.raw(),
                stream,
                self.pairs.len() as c_int,
                self.pairs.as_ptr(),
            )
        };
        self.connection.check("primitive_execute", status)?;
        // SAFETY: the stream is alive.
        self.connection.check("stream_wait", unsafe { (library.stream_wait)(stream) })
    }

    fn creation(&self) -> Duration {
        self.primitive.creation()
    }
}
