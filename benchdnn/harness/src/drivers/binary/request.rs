//! The call that creates the primitive descriptor of a function of two tensors.

use crate::attributes::Attributes;
use crate::executor::{Prepared, Refusal};
use crate::library::{
    self, Connection, MemoryDesc, PrimitiveAttr, PrimitiveDesc, TensorRequest, functions,
};
use crate::oracle::post_ops::BinaryAlgorithm;
use norm_sys::*;
use std::rc::Rc;

/// The inputs of a primitive descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The function.
    pub algorithm: BinaryAlgorithm,
    /// Dimensions of the sources and, if there is one, of the condition.
    pub source_dims: Vec<Vec<usize>>,
    /// Dimensions of dst.
    pub dims: Vec<usize>,
    /// The sources and the condition.
    pub sources: Vec<TensorRequest>,
    /// The result.
    pub dst: TensorRequest,
    /// Scales and post-ops.
    pub attributes: Attributes,
}

functions! {
    /// The function of every oneDNN 3.x.
    Functions {
        binary_primitive_desc_create = norm_binary_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_alg_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
    }
}

functions! {
    /// The function with a condition.
    Ternary {
        binary_primitive_desc_create_v2 = norm_binary_primitive_desc_create_v2:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_alg_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
    }
}

impl library::Request for Request {
    fn create(&self, connection: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal> {
        let (engine, algorithm) = (connection.engine(), library::binary(self.algorithm));
        let pairs = self.sources.iter().zip(&self.source_dims);
        let sources: Result<Vec<MemoryDesc>, Refusal> =
            pairs.map(|(source, dims)| source.desc(connection, dims)).collect();
        let sources = sources?;
        let raw: Vec<const_norm_memory_desc_t> = sources.iter().map(MemoryDesc::raw).collect();
        let dst = self.dst.desc(connection, &self.dims)?;
        let tensors = self.attributes.tensors(&self.dims, 1);
        let ndims = self.dims.len();
        let attr = PrimitiveAttr::new(connection, &self.attributes, &tensors, ndims)?;
        let (src0, src1, dst, attr) = (raw[0], raw[1], dst.raw(), attr.raw());
        let desc = match raw.get(2) {
            None => {
                let create = Functions::of(connection.source())?.binary_primitive_desc_create;
                PrimitiveDesc::create(connection, |pd| {
                    // SAFETY: `pd` is a valid place for a handle; the engine, the descriptors and
                    // the attributes are alive, and the function checks everything else.
                    let status = unsafe { create(pd, engine, algorithm, src0, src1, dst, attr) };
                    connection.check("binary_primitive_desc_create", status)
                })
            }
            Some(&src2) => {
                let create = Ternary::of(connection.source())?.binary_primitive_desc_create_v2;
                PrimitiveDesc::create(connection, |pd| {
                    // SAFETY: as above.
                    let status =
                        unsafe { create(pd, engine, algorithm, src0, src1, src2, dst, attr) };
                    connection.check("binary_primitive_desc_create_v2", status)
                })
            }
        };
        Ok(Box::new(desc?))
    }
}
