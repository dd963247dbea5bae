//! The calls that create the primitive descriptor of a softmax.

use super::parameters::Algorithm;
use crate::attributes::Attributes;
use crate::direction::Direction;
use crate::executor::{Prepared, Refusal};
use crate::library::{
    self, Connection, PrimitiveAttr, PrimitiveDesc, TensorRequest, Wanted, functions,
};
use norm_sys::*;
use std::ffi::c_int;
use std::ptr;
use std::rc::Rc;

/// The inputs of a primitive descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is computed.
    pub direction: Direction,
    /// The function of a row.
    pub algorithm: Algorithm,
    /// Dimensions of all tensors.
    pub dims: Vec<usize>,
    /// The dimension of the rows.
    pub axis: usize,
    /// The input of forward.
    pub src: TensorRequest,
    /// The result of forward, an input of backward.
    pub dst: TensorRequest,
    /// The gradient of src.
    pub diff_src: TensorRequest,
    /// The gradient of dst.
    pub diff_dst: TensorRequest,
    /// The logarithms of the sums, forward; NULL if they are not stored.
    pub stats: TensorRequest,
    /// Scales and post-ops.
    pub attributes: Attributes,
}

functions! {
    /// The functions that create the primitive descriptors.
    Functions {
        softmax_forward_primitive_desc_create = norm_softmax_forward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                norm_alg_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                c_int,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
        softmax_backward_primitive_desc_create = norm_softmax_backward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_alg_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                c_int,
                const_norm_primitive_desc_t,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
    }
}

impl library::Request for Request {
    fn create(&self, connection: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal> {
        let hint = library::hint(connection, !self.direction.is_forward(), || {
            let (direction, attributes) = (Direction::ForwardTraining, Attributes::default());
            let stats = TensorRequest { wanted: Wanted::Null, ..self.stats.clone() };
            Request { direction, attributes, stats, ..self.clone() }.descriptor(connection, None)
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
        let (engine, axis) = (connection.engine(), self.axis as c_int);
        let (kind, dims) = (self.direction.prop_kind(), &self.dims);
        let algorithm = match self.algorithm {
            Algorithm::Softmax => norm_softmax_accurate,
            Algorithm::Logsoftmax => norm_softmax_log,
            Algorithm::InfAsZero => norm_softmax_accurate_inf_as_zero,
        };
        let dst = match (self.direction, &self.dst.wanted) {
            // Backward reads dst as forward wrote it: in the layout that the library chose, like src.
            (Direction::BackwardData, Wanted::Any) => {
                &TensorRequest { data_type: self.dst.data_type, ..self.src.clone() }
            }
            _ => &self.dst,
        };
        let dst = dst.desc(connection, dims)?;
        let src = self.src.desc(connection, dims)?;
        let diff_src = self.diff_src.desc(connection, dims)?;
        let diff_dst = self.diff_dst.desc(connection, dims)?;
        let hint = hint.map_or(ptr::null(), PrimitiveDesc::raw);
        let tensors = self.attributes.tensors(dims, 1);
        let mut attr = PrimitiveAttr::new(connection, &self.attributes, &tensors, dims.len())?;
        if self.direction.is_forward() && self.stats.wanted != Wanted::Null {
            let mut dims = dims.clone();
            dims[self.axis] = 1;
            attr.set_softmax_stats(connection, &self.stats.desc(connection, &dims)?)?;
        }
        let functions = Functions::of(connection.source())?;
        PrimitiveDesc::create(connection, |pd| {
            // SAFETY: `pd` is a valid place for a handle; the engine and the descriptors are alive,
            // the hint too or NULL, and the functions check everything else.
            let (name, status) = unsafe {
                if self.direction.is_forward() {
                    let create = functions.softmax_forward_primitive_desc_create;
                    let (src, dst, attr) = (src.raw(), dst.raw(), attr.raw());
                    ("forward", create(pd, engine, kind, algorithm, src, dst, axis, attr))
                } else {
                    let create = functions.softmax_backward_primitive_desc_create;
                    let (diff_src, diff_dst, dst) = (diff_src.raw(), diff_dst.raw(), dst.raw());
                    let attr = attr.raw();
                    let status =
                        create(pd, engine, algorithm, diff_src, diff_dst, dst, axis, hint, attr);
                    ("backward", status)
                }
            };
            connection.check(&format!("softmax_{name}_primitive_desc_create"), status)
        })
    }
}
