//! The calls that create the primitive descriptor of an elementwise function.

use crate::attributes::Attributes;
use crate::direction::Direction;
use crate::executor::{Prepared, Refusal};
use crate::library::{
    self, Connection, PrimitiveAttr, PrimitiveDesc, TensorRequest, Wanted, functions,
};
use crate::oracle::eltwise::reads_dst;
use crate::oracle::post_ops::EltwiseAlgorithm;
use norm_sys::*;
use std::ptr;
use std::rc::Rc;

/// The inputs of a primitive descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is computed.
    pub direction: Direction,
    /// The function.
    pub algorithm: EltwiseAlgorithm,
    /// Its parameters.
    pub parameters: [f32; 2],
    /// Dimensions of all tensors.
    pub dims: Vec<usize>,
    /// The input of forward.
    pub src: TensorRequest,
    /// The result of forward.
    pub dst: TensorRequest,
    /// The gradient of src.
    pub diff_src: TensorRequest,
    /// The gradient of dst.
    pub diff_dst: TensorRequest,
    /// Post-ops.
    pub attributes: Attributes,
}

functions! {
    /// The functions that create the primitive descriptors.
    Functions {
        eltwise_forward_primitive_desc_create = norm_eltwise_forward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                norm_alg_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                f32,
                f32,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
        eltwise_backward_primitive_desc_create = norm_eltwise_backward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_alg_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                f32,
                f32,
                const_norm_primitive_desc_t,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
    }
}

impl library::Request for Request {
    fn create(&self, connection: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal> {
        let hint = library::hint(connection, !self.direction.is_forward(), || {
            let (direction, attributes) = (Direction::ForwardTraining, Attributes::default());
            Request { direction, attributes, ..self.clone() }.descriptor(connection, None)
        })?;
        Ok(Box::new(self.descriptor(connection, hint.as_ref())?))
    }
}

impl Request {
    fn descriptor(
        &self,
        connection: &Rc<Connection>,
        hint: Option<&PrimitiveDesc>,
    ) -> Result<PrimitiveDesc, Refusal> {
        let (engine, [alpha, beta]) = (connection.engine(), self.parameters);
        let (kind, algorithm) = (self.direction.prop_kind(), library::eltwise(self.algorithm));
        let dims = &self.dims;
        let backward = !self.direction.is_forward();
        let dst = match &self.dst.wanted {
            // Backward reads dst as forward wrote it: in the layout that the library chose, like src.
            Wanted::Any if backward => {
                &TensorRequest { data_type: self.dst.data_type, ..self.src.clone() }
            }
            _ => &self.dst,
        };
        let src = self.src.desc(connection, dims)?;
        let dst = dst.desc(connection, dims)?;
        let diff_src = self.diff_src.desc(connection, dims)?;
        let diff_dst = self.diff_dst.desc(connection, dims)?;
        let hint = hint.map_or(ptr::null(), PrimitiveDesc::raw);
        let tensors = self.attributes.tensors(dims, 1);
        let attr = PrimitiveAttr::new(connection, &self.attributes, &tensors, dims.len())?;
        let functions = Functions::of(connection.source())?;
        PrimitiveDesc::create(connection, |pd| {
            let (src, dst, attr) = (src.raw(), dst.raw(), attr.raw());
            // SAFETY: `pd` is a valid place for a handle; the engine and the descriptors are alive,
            // the hint too or NULL, and the functions check everything else.
            let (name, status) = unsafe {
                if backward {
                    let create = functions.eltwise_backward_primitive_desc_create;
                    let data = if reads_dst(self.algorithm) { dst } else { src };
                    let diff = (diff_src.raw(), diff_dst.raw());
                    let status = create(
                        pd, engine, algorithm, diff.0, diff.1, data, alpha, beta, hint, attr,
                    );
                    ("backward", status)
                } else {
                    let create = functions.eltwise_forward_primitive_desc_create;
                    ("forward", create(pd, engine, kind, algorithm, src, dst, alpha, beta, attr))
                }
            };
            connection.check(&format!("eltwise_{name}_primitive_desc_create"), status)
        })
    }
}
