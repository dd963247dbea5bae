//! The calls that create the primitive descriptor of a softmax.

use super::problem::{Algorithm, Direction};
use crate::attributes::Attributes;
use crate::data_type::DataType;
use crate::executor::{Prepared, Refusal};
use crate::library::{self, Connection, MemoryDesc, PrimitiveAttr, PrimitiveDesc, functions};
use crate::tensor::Layout;
use norm_sys::*;
use std::ffi::c_int;
use std::ptr;
use std::rc::Rc;

/// The layout that is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The library chooses.
    Any,
    /// Dense, the dimensions in this order, outermost first.
    Ordered(Vec<usize>),
    /// These very strides.
    Strided(Layout),
}

/// What a primitive descriptor is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is computed.
    pub direction: Direction,
    /// Of a row.
    pub algorithm: Algorithm,
    /// Dimensions of all tensors.
    pub dims: Vec<usize>,
    /// The dimension of the rows.
    pub axis: usize,
    /// Type of src and diff_src.
    pub src_dt: DataType,
    /// Type of dst and diff_dst.
    pub dst_dt: DataType,
    /// Layouts of src and dst.
    pub forward: [Wanted; 2],
    /// Layouts of diff_src and diff_dst.
    pub backward: [Wanted; 2],
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
        // oneDNN's backward needs the descriptor of its forward.
        let hint = match connection.source() {
            Some(_) if !self.direction.is_forward() => {
                let direction = Direction::ForwardTraining;
                let attributes = Attributes::default();
                let forward = Request { direction, attributes, ..self.clone() };
                Some(forward.descriptor(connection, None)?)
            }
            _ => None,
        };
        Ok(Box::new(self.descriptor(connection, hint.as_ref())?))
    }
}

impl Request {
    fn desc(
        &self,
        connection: &Connection,
        wanted: &Wanted,
        data_type: DataType,
    ) -> Result<MemoryDesc, Refusal> {
        match wanted {
            Wanted::Any => MemoryDesc::any(connection, &self.dims, data_type),
            Wanted::Ordered(order) => MemoryDesc::ordered(connection, &self.dims, order, data_type),
            Wanted::Strided(layout) => MemoryDesc::strided(connection, layout),
        }
    }

    fn descriptor(
        &self,
        connection: &Rc<Connection>,
        hint: Option<&PrimitiveDesc>,
    ) -> Result<PrimitiveDesc, Refusal> {
        let (engine, axis) = (connection.engine(), self.axis as c_int);
        let kind = match self.direction {
            Direction::ForwardInference => norm_forward_inference,
            Direction::ForwardTraining | Direction::Backward => norm_forward_training,
        };
        let algorithm = match self.algorithm {
            Algorithm::Softmax => norm_softmax_accurate,
            Algorithm::Logsoftmax => norm_softmax_log,
        };
        let [src, dst] = &self.forward;
        let [diff_src, diff_dst] = &self.backward;
        let dst = match (self.direction, dst) {
            // Backward reads dst as forward wrote it: where the library chose, like src.
            (Direction::Backward, Wanted::Any) => self.desc(connection, src, self.dst_dt)?,
            _ => self.desc(connection, dst, self.dst_dt)?,
        };
        let src = self.desc(connection, src, self.src_dt)?;
        let diff_src = self.desc(connection, diff_src, self.src_dt)?;
        let diff_dst = self.desc(connection, diff_dst, self.dst_dt)?;
        let hint = hint.map_or(ptr::null(), PrimitiveDesc::raw);
        let tensors = self.attributes.tensors(&self.dims, 1);
        let attr = PrimitiveAttr::new(connection, &self.attributes, &tensors, self.dims.len())?;
        let functions = Functions::of(connection)?;
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
