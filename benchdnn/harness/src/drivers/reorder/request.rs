//! The calls that create the primitive descriptor of a reorder.

use crate::attributes::Attributes;
use crate::executor::{Prepared, Refusal};
use crate::library::{self, Connection, MemoryDesc, PrimitiveAttr, PrimitiveDesc, functions};
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

/// The inputs of a primitive descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// src.
    pub src: Layout,
    /// dst.
    pub dst: Layout,
    /// Whether src and dst are described by strides instead of a tag.
    pub strided: [bool; 2],
    /// Scales, zero points and a sum.
    pub attributes: Attributes,
}

impl Request {
    fn desc(
        connection: &Connection,
        functions: Functions,
        layout: &Layout,
        strided: bool,
    ) -> Result<MemoryDesc, Refusal> {
        match strided {
            true => MemoryDesc::strided(connection, layout),
            false if !layout.blocks.is_empty() => {
                let create = functions.memory_desc_create_with_string_tag;
                MemoryDesc::blocked(connection, layout, create)
            }
            false => {
                MemoryDesc::ordered(connection, &layout.dims, &layout.order(), layout.data_type)
            }
        }
    }
}

impl library::Request for Request {
    fn create(&self, connection: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal> {
        let Request { src, dst, strided, attributes } = self;
        let functions = Functions::of(connection.source())?;
        let src_desc = Request::desc(connection, functions, src, strided[0])?;
        let dst_desc = Request::desc(connection, functions, dst, strided[1])?;
        let (dims, engine) = (&src.dims, connection.engine());
        let tensors = attributes.tensors(dims, 1);
        let attr = PrimitiveAttr::new(connection, attributes, &tensors, dims.len())?;
        let create = functions.reorder_primitive_desc_create;
        let desc = PrimitiveDesc::create(connection, |pd| {
            // SAFETY: `pd` is a valid place for a handle; the engine, the descriptors and the
            // attributes are alive, and the function checks everything else.
            let status =
                unsafe { create(pd, src_desc.raw(), engine, dst_desc.raw(), engine, attr.raw()) };
            connection.check("reorder_primitive_desc_create", status)
        })?;
        Ok(Box::new(desc))
    }
}
