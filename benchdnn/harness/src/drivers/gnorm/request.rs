//! The calls that create the primitive descriptor of a group normalization.

use crate::attributes::Attributes;
use crate::direction::Direction;
use crate::executor::{Prepared, Refusal};
use crate::library::{self, Connection, PrimitiveAttr, PrimitiveDesc, StepsRequest, TensorRequest};
use crate::library::{flag_bits, functions};
use crate::oracle::lnorm::Flags;
use norm_sys::*;
use std::ffi::c_uint;
use std::ptr;
use std::rc::Rc;

/// The inputs of a primitive descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is computed.
    pub direction: Direction,
    /// Dimensions of src and dst.
    pub dims: Vec<usize>,
    /// src.
    pub src: TensorRequest,
    /// diff_src.
    pub diff_src: TensorRequest,
    /// dst and diff_dst.
    pub dst: TensorRequest,
    /// Groups of channels.
    pub groups: usize,
    /// Added to the variance inside the root.
    pub epsilon: f32,
    /// The kind of normalization.
    pub flags: Flags,
    /// The options that every primitive has, such as scales and post-ops.
    pub attributes: Attributes,
    /// Residual and gate.
    pub steps: StepsRequest,
}

functions! {
    /// The functions that create the primitive descriptors.
    Functions {
        group_normalization_forward_primitive_desc_create =
            norm_group_normalization_forward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                norm_dim_t,
                f32,
                c_uint,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
        group_normalization_backward_primitive_desc_create =
            norm_group_normalization_backward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                norm_dim_t,
                f32,
                c_uint,
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
        let Request { direction, dims, epsilon, flags, .. } = self;
        let (engine, epsilon) = (connection.engine(), *epsilon);
        let groups = self.groups as norm_dim_t;
        let src = self.src.desc(connection, dims)?;
        let dst = self.dst.desc(connection, dims)?;
        let (flags, kind) = (flag_bits(connection, *flags)?, direction.prop_kind());
        let diff_src = self.diff_src.desc(connection, dims)?;
        let (src, diff_src, dst) = (src.raw(), diff_src.raw(), dst.raw());
        let hint = hint.map_or(ptr::null(), PrimitiveDesc::raw);
        let tensors = self.attributes.tensors(dims, 1);
        let mut attributes =
            PrimitiveAttr::new(connection, &self.attributes, &tensors, dims.len())?;
        attributes.add_steps(connection, dims, &self.steps)?;
        let (functions, attr) = (Functions::of(connection.source())?, attributes.raw());
        PrimitiveDesc::create(connection, |pd| {
            // SAFETY: `pd` is a valid place for a handle; the engine and the descriptors are alive
            // or NULL, and the functions check everything else.
            let (name, status) = unsafe {
                if direction.is_forward() {
                    let create = functions.group_normalization_forward_primitive_desc_create;
                    ("forward", create(pd, engine, kind, src, dst, groups, epsilon, flags, attr))
                } else {
                    let create = functions.group_normalization_backward_primitive_desc_create;
                    let status = create(
                        pd, engine, kind, diff_src, dst, src, groups, epsilon, flags, hint, attr,
                    );
                    ("backward", status)
                }
            };
            connection.check(&format!("group_normalization_{name}_primitive_desc_create"), status)
        })
    }
}
