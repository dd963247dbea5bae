//! The executor that calls the C functions of layer normalization.

use super::executor::{Executor, Request, TensorRequest, Wanted};
use super::problem::Direction;
use crate::attributes::Attributes;
use crate::executor::{Control, CpuIsa, Prepared, Refusal};
use crate::fill::DataType;
use crate::library::{Connection, MemoryDesc, PrimitiveAttr, PrimitiveDesc, data_type, functions};
use norm_sys::*;
use std::ffi::c_uint;
use std::ptr;
use std::rc::Rc;

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
    /// Those that take the type of scale and shift; oneDNN has them since 3.3 or so.
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

/// A library behind its C functions.
#[derive(Debug)]
pub struct LibraryExecutor {
    connection: Rc<Connection>,
    functions: Functions,
    /// Or the refusal that says which one is missing.
    functions_v2: Result<FunctionsV2, Refusal>,
}

impl LibraryExecutor {
    /// The library of a connection.
    pub fn new(connection: Rc<Connection>) -> Result<LibraryExecutor, Refusal> {
        let (functions, functions_v2) = match connection.source() {
            None => (Functions::linked(), Ok(FunctionsV2::linked())),
            Some(opened) => (Functions::opened(opened)?, FunctionsV2::opened(opened)),
        };
        Ok(LibraryExecutor { connection, functions, functions_v2 })
    }

    fn desc(&self, dims: &[usize], request: &TensorRequest) -> Result<MemoryDesc, Refusal> {
        let connection = &*self.connection;
        match &request.wanted {
            Wanted::Any => MemoryDesc::any(connection, dims, request.data_type),
            Wanted::Null => Ok(MemoryDesc::null()),
            Wanted::Ordered(order) => {
                MemoryDesc::ordered(connection, dims, order, request.data_type)
            }
            Wanted::Strided(layout) => MemoryDesc::strided(connection, layout),
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
        // oneDNN's backward wants to know the forward that it belongs to.
        let hint = match self.connection.source() {
            Some(_) if !request.direction.is_forward() => {
                let direction = Direction::ForwardTraining;
                let attributes = Attributes::default();
                Some(self.create(&Request { direction, attributes, ..request.clone() }, None)?)
            }
            _ => None,
        };
        Ok(Box::new(self.create(request, hint.as_ref())?))
    }
}

impl LibraryExecutor {
    fn create(
        &self,
        request: &Request,
        hint: Option<&PrimitiveDesc>,
    ) -> Result<PrimitiveDesc, Refusal> {
        let Request { direction, dims, epsilon, flags, .. } = request;
        let (engine, epsilon) = (self.connection.engine(), *epsilon);
        let src = self.desc(dims, &request.src)?;
        let dst = self.desc(dims, &request.dst)?;
        let stat = self.desc(&dims[..dims.len() - 1], &request.stat)?;
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
        let ss = data_type(request.ss_dt);
        let hint = hint.map_or(ptr::null(), PrimitiveDesc::raw);
        // The channels of a layer normalization are its columns.
        let tensors = request.attributes.tensors(dims, dims.len() - 1);
        let attributes =
            PrimitiveAttr::new(&self.connection, &request.attributes, &tensors, dims.len())?;
        let (plain, attr) = (self.functions, attributes.raw());
        // The shorter functions are the ones for f32; both kinds are to be tested.
        let v2 = match request.ss_dt {
            DataType::F32 => None,
            _ => Some(self.functions_v2.clone()?),
        };
        PrimitiveDesc::create(&self.connection, |pd| {
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
            self.connection.check(&format!("layer_normalization_{name}"), status)
        })
    }
}
