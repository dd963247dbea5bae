//! What the driver needs from a library, and the library behind its C functions.

use crate::attributes::Attributes;
use crate::executor::{Control, CpuIsa, Prepared, Refusal};
use crate::library::{Connection, MemoryDesc, PrimitiveAttr, PrimitiveDesc, functions};
use crate::tensor::Layout;
use norm_sys::*;
use std::ffi::{c_char, c_int};
use std::rc::Rc;

functions! {
    /// The functions that create the primitive descriptor and blocked layouts.
    Functions {
        memory_desc_create_with_string_tag = norm_memory_desc_create_with_string_tag:
        fn(*mut norm_memory_desc_t, c_int, *const norm_dim_t, norm_data_type_t, *const c_char)
            -> norm_status_t;
        reorder_primitive_desc_create = norm_reorder_primitive_desc_create:
        fn(
            *mut norm_primitive_desc_t,
            const_norm_memory_desc_t,
            norm_engine_t,
            const_norm_memory_desc_t,
            norm_engine_t,
            const_norm_primitive_attr_t
        ) -> norm_status_t;
    }
}

/// What a primitive descriptor is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// src.
    pub src: Layout,
    /// dst.
    pub dst: Layout,
    /// Whether src and dst are asked for by their strides; by a tag otherwise.
    pub strided: [bool; 2],
    /// Factors, zero points and a sum.
    pub attributes: Attributes,
}

/// A library as this driver sees it.
pub trait Executor: Control {
    /// Makes a primitive descriptor with the library's first implementation.
    fn prepare(&self, request: &Request) -> Result<Box<dyn Prepared>, Refusal>;
}

/// A library behind its C functions.
#[derive(Debug)]
pub struct LibraryExecutor {
    connection: Rc<Connection>,
    functions: Functions,
}

impl LibraryExecutor {
    /// The library of a connection.
    pub fn new(connection: Rc<Connection>) -> Result<LibraryExecutor, Refusal> {
        let functions = match connection.source() {
            None => Functions::linked(),
            Some(opened) => Functions::opened(opened)?,
        };
        Ok(LibraryExecutor { connection, functions })
    }

    fn desc(&self, layout: &Layout, strided: bool) -> Result<MemoryDesc, Refusal> {
        let connection = &self.connection;
        match strided {
            true => MemoryDesc::strided(connection, layout),
            false if !layout.blocks.is_empty() => {
                let create = self.functions.memory_desc_create_with_string_tag;
                MemoryDesc::blocked(connection, layout, create)
            }
            false => {
                MemoryDesc::ordered(connection, &layout.dims, &layout.order(), layout.data_type)
            }
        }
    }
}

impl Control for LibraryExecutor {
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal> {
        self.connection.set_cpu_isa(isa)
    }

    fn set_threads(&self, threads: u64) -> Result<(), Refusal> {
        self.connection.set_threads(threads)
    }

    fn threads(&self) -> u64 {
        self.connection.threads()
    }

    fn last_threads(&self) -> u64 {
        self.connection.last_threads()
    }
}

impl Executor for LibraryExecutor {
    fn prepare(&self, request: &Request) -> Result<Box<dyn Prepared>, Refusal> {
        let Request { src, dst, strided, attributes } = request;
        let (src_desc, dst_desc) = (self.desc(src, strided[0])?, self.desc(dst, strided[1])?);
        let (dims, engine) = (&src.dims, self.connection.engine());
        let tensors = attributes.tensors(dims, 1);
        let attr = PrimitiveAttr::new(&self.connection, attributes, &tensors, dims.len())?;
        let create = self.functions.reorder_primitive_desc_create;
        let desc = PrimitiveDesc::create(&self.connection, |pd| {
            // SAFETY: `pd` is a valid place for a handle; the engine, the descriptors and the
            // attributes are alive, and the function checks everything else.
            let status =
                unsafe { create(pd, src_desc.raw(), engine, dst_desc.raw(), engine, attr.raw()) };
            self.connection.check("reorder_primitive_desc_create", status)
        })?;
        Ok(Box::new(desc))
    }
}
