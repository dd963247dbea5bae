//! The calls that create the primitive descriptor of a layer normalization.

use crate::attributes::Attributes;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::executor::{Prepared, Refusal};
use crate::library::{self, Connection, PrimitiveAttr, PrimitiveDesc, StepsRequest, TensorRequest};
use crate::library::{data_type, flag_bits, functions};
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
    /// mean and variance, with one dimension less.
    pub stat: TensorRequest,
    /// Type of scale, shift and their gradients.
    pub ss_dt: DataType,
    /// Added to the variance inside the root.
    pub epsilon: f32,
    /// The kind of normalization.
    pub flags: Flags,
    /// The options that every primitive has, such as scales and post-ops.
    pub attributes: Attributes,
    /// Residual, gate and partial norm.
    pub steps: StepsRequest,
}

functions! {
    /// The functions that create the primitive descriptors.
    Functions {
        layer_normalization_forward_primitive_desc_create =
            norm_layer_normalization_forward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                f32,
                c_uint,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
        layer_normalization_backward_primitive_desc_create =
            norm_layer_normalization_backward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                f32,
                c_uint,
                const_norm_primitive_desc_t,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
    }
}

functions! {
    /// The functions with a type for scale and shift, which oneDNN has had since about 3.3.
    FunctionsV2 {
        layer_normalization_forward_primitive_desc_create_v2 =
            norm_layer_normalization_forward_primitive_desc_create_v2:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                norm_data_type_t,
                f32,
                c_uint,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
        layer_normalization_backward_primitive_desc_create_v2 =
            norm_layer_normalization_backward_primitive_desc_create_v2:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                norm_data_type_t,
                norm_data_type_t,
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
        let src = self.src.desc(connection, dims)?;
        let diff_src = self.diff_src.desc(connection, dims)?;
        let dst = self.dst.desc(connection, dims)?;
        let stat = self.stat.desc(connection, &dims[..dims.len() - 1])?;
        let (flags, kind) = (flag_bits(connection, *flags)?, direction.prop_kind());
        let (src, diff_src, dst, stat) = (src.raw(), diff_src.raw(), dst.raw(), stat.raw());
        let ss = data_type(self.ss_dt);
        let hint = hint.map_or(ptr::null(), PrimitiveDesc::raw);
        // The channels of a layer normalization are its columns.
        let tensors = self.attributes.tensors(dims, dims.len() - 1);
        let mut attributes =
            PrimitiveAttr::new(connection, &self.attributes, &tensors, dims.len())?;
        attributes.add_steps(connection, dims, &self.steps)?;
        let (plain, attr) = (Functions::of(connection.source())?, attributes.raw());
        // f32 uses the shorter functions, so that both are tested.
        let v2 = match self.ss_dt {
            DataType::F32 => None,
            _ => Some(FunctionsV2::of(connection.source())?),
        };
        PrimitiveDesc::create(connection, |pd| {
            // SAFETY: `pd` is a valid place for a handle; the engine and the descriptors are alive
            // or NULL, and the functions check everything else.
            let (name, status) = unsafe {
                match (direction.is_forward(), v2) {
                    (true, None) => (
                        "forward_primitive_desc_create",
                        (plain.layer_normalization_forward_primitive_desc_create)(
                            pd, engine, kind, src, dst, stat, epsilon, flags, attr,
                        ),
                    ),
                    (true, Some(v2)) => (
                        "forward_primitive_desc_create_v2",
                        (v2.layer_normalization_forward_primitive_desc_create_v2)(
                            pd, engine, kind, src, dst, stat, ss, epsilon, flags, attr,
                        ),
                    ),
                    (false, None) => (
                        "backward_primitive_desc_create",
                        (plain.layer_normalization_backward_primitive_desc_create)(
                            pd, engine, kind, diff_src, dst, src, stat, epsilon, flags, hint, attr,
                        ),
                    ),
                    (false, Some(v2)) => (
                        "backward_primitive_desc_create_v2",
                        (v2.layer_normalization_backward_primitive_desc_create_v2)(
                            pd, engine, kind, diff_src, dst, src, stat, ss, ss, epsilon, flags,
                            hint, attr,
                        ),
                    ),
                }
            };
            connection.check(&format!("layer_normalization_{name}"), status)
        })
    }
}
