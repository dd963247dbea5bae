//! The calls that create the primitive descriptor of a layer normalization.

use super::problem::Direction;
use crate::attributes::Attributes;
use crate::data_type::DataType;
use crate::executor::{Prepared, Refusal};
use crate::library::{self, Connection, MemoryDesc, PrimitiveAttr, PrimitiveDesc};
use crate::library::{data_type, functions};
use crate::oracle::lnorm::Flags;
use crate::tensor::Layout;
use norm_sys::*;
use std::ffi::c_uint;
use std::ptr;
use std::rc::Rc;

/// The layout that is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The library chooses.
    Any,
    /// No descriptor is passed.
    Null,
    /// Dense, the dimensions in this order, outermost first.
    Ordered(Vec<usize>),
    /// These very strides.
    Strided(Layout),
}

/// Type and layout of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRequest {
    /// The type.
    pub data_type: DataType,
    /// The layout.
    pub wanted: Wanted,
}

/// What a primitive descriptor is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is computed.
    pub direction: Direction,
    /// Dimensions of src and dst.
    pub dims: Vec<usize>,
    /// src and diff_src.
    pub src: TensorRequest,
    /// dst and diff_dst.
    pub dst: TensorRequest,
    /// mean and variance: one dimension less.
    pub stat: TensorRequest,
    /// Type of scale, shift and their gradients.
    pub ss_dt: DataType,
    /// Added to the variance inside the root.
    pub epsilon: f32,
    /// The kind of normalization.
    pub flags: Flags,
    /// Scales, post-ops and the like.
    pub attributes: Attributes,
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
    /// The ones with a type for scale and shift, which oneDNN has had since about 3.3.
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

fn desc(
    connection: &Connection,
    dims: &[usize],
    request: &TensorRequest,
) -> Result<MemoryDesc, Refusal> {
    match &request.wanted {
        Wanted::Any => MemoryDesc::any(connection, dims, request.data_type),
        Wanted::Null => Ok(MemoryDesc::null()),
        Wanted::Ordered(order) => MemoryDesc::ordered(connection, dims, order, request.data_type),
        Wanted::Strided(layout) => MemoryDesc::strided(connection, layout),
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
        let src = desc(connection, dims, &self.src)?;
        let dst = desc(connection, dims, &self.dst)?;
        let stat = desc(connection, &dims[..dims.len() - 1], &self.stat)?;
        let flags = [
            (flags.global_stats, norm_use_global_stats),
            (flags.scale, norm_use_scale),
            (flags.shift, norm_use_shift),
            (flags.rms_norm, norm_rms_norm),
        ]
        .into_iter()
        .filter_map(|(set, bit)| set.then_some(bit))
        .fold(norm_normalization_flags_none, |flags, bit| flags | bit);
        let kind = match direction {
            Direction::ForwardTraining => norm_forward_training,
            Direction::ForwardInference => norm_forward_inference,
            Direction::BackwardData => norm_backward_data,
            Direction::Backward => norm_backward,
        };
        let (src, dst, stat) = (src.raw(), dst.raw(), stat.raw());
        let ss = data_type(self.ss_dt);
        let hint = hint.map_or(ptr::null(), PrimitiveDesc::raw);
        // The channels of a layer normalization are its columns.
        let tensors = self.attributes.tensors(dims, dims.len() - 1);
        let attributes = PrimitiveAttr::new(connection, &self.attributes, &tensors, dims.len())?;
        let (plain, attr) = (Functions::of(connection)?, attributes.raw());
        // f32 goes through the shorter functions, so that both are tested.
        let v2 = match self.ss_dt {
            DataType::F32 => None,
            _ => Some(FunctionsV2::of(connection)?),
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
                            pd, engine, kind, src, dst, src, stat, epsilon, flags, hint, attr,
                        ),
                    ),
                    (false, Some(v2)) => (
                        "backward_primitive_desc_create_v2",
                        (v2.layer_normalization_backward_primitive_desc_create_v2)(
                            pd, engine, kind, src, dst, src, stat, ss, ss, epsilon, flags, hint,
                            attr,
                        ),
                    ),
                }
            };
            connection.check(&format!("layer_normalization_{name}"), status)
        })
    }
}
