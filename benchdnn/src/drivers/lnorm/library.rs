//! The executor that calls the C functions of layer normalization.

use super::executor::{Executor, Request, TensorRequest, Wanted};
use super::problem::Direction;
use crate::executor::{Control, CpuIsa, Prepared, Refusal};
use crate::fill::DataType;
use crate::library::{Connection, Library, MemoryDesc, PrimitiveDesc, data_type};
use norm_sys::*;
use std::ffi::c_uint;
use std::ptr;
use std::rc::Rc;

type Forward = unsafe extern "C" fn(
    *mut norm_primitive_desc_t,
    norm_engine_t,
    norm_prop_kind_t,
    const_norm_memory_desc_t,
    const_norm_memory_desc_t,
    const_norm_memory_desc_t,
    f32,
    c_uint,
    const_norm_primitive_attr_t,
) -> norm_status_t;

type ForwardV2 = unsafe extern "C" fn(
    *mut norm_primitive_desc_t,
    norm_engine_t,
    norm_prop_kind_t,
    const_norm_memory_desc_t,
    const_norm_memory_desc_t,
    const_norm_memory_desc_t,
    norm_data_type_t,
    f32,
    c_uint,
    const_norm_primitive_attr_t,
) -> norm_status_t;

type Backward = unsafe extern "C" fn(
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
    const_norm_primitive_attr_t,
) -> norm_status_t;

type BackwardV2 = unsafe extern "C" fn(
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
    const_norm_primitive_attr_t,
) -> norm_status_t;

/// Pointers to the functions that create the primitive descriptors.
#[derive(Clone, Copy, Debug)]
struct Functions {
    forward: Forward,
    forward_v2: ForwardV2,
    backward: Backward,
    backward_v2: BackwardV2,
}

/// A library behind its C functions.
#[derive(Debug)]
pub struct LibraryExecutor {
    connection: Rc<Connection>,
    functions: Functions,
}

impl LibraryExecutor {
    /// The library that the program is linked with.
    pub fn linked(connection: Rc<Connection>) -> LibraryExecutor {
        let functions = Functions {
            forward: norm_layer_normalization_forward_primitive_desc_create,
            forward_v2: norm_layer_normalization_forward_primitive_desc_create_v2,
            backward: norm_layer_normalization_backward_primitive_desc_create,
            backward_v2: norm_layer_normalization_backward_primitive_desc_create_v2,
        };
        LibraryExecutor { connection, functions }
    }

    fn desc(&self, dims: &[usize], request: &TensorRequest) -> Result<MemoryDesc, Refusal> {
        let library: &Library = self.connection.library();
        match &request.wanted {
            Wanted::Any => MemoryDesc::any(library, dims, request.data_type),
            Wanted::Null => Ok(MemoryDesc::null()),
            Wanted::Ordered(order) => MemoryDesc::ordered(library, dims, order, request.data_type),
            Wanted::Strided(layout) => MemoryDesc::strided(library, layout),
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

    fn last_threads(&self) -> u64 {
        self.connection.last_threads()
    }
}

impl Executor for LibraryExecutor {
    fn prepare(&self, request: &Request) -> Result<Box<dyn Prepared>, Refusal> {
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
        let ss_dt = data_type(request.ss_dt);
        // The shorter functions are the ones for f32; both kinds are to be tested.
        let plain = request.ss_dt == DataType::F32;
        let none = (ptr::null(), ptr::null());
        let Functions { forward, forward_v2, backward, backward_v2 } = self.functions;
        let pd = PrimitiveDesc::create(&self.connection, |pd| {
            // SAFETY: `pd` is a valid place for a handle; the engine and the descriptors are alive
            // or NULL, and the functions check everything else.
            let (name, status) = unsafe {
                match (direction.is_forward(), plain) {
                    (true, true) => (
                        "forward_primitive_desc_create",
                        forward(pd, engine, kind, src, dst, stat, epsilon, flags, none.1),
                    ),
                    (true, false) => (
                        "forward_primitive_desc_create_v2",
                        forward_v2(pd, engine, kind, src, dst, stat, ss_dt, epsilon, flags, none.1),
                    ),
                    (false, true) => (
                        "backward_primitive_desc_create",
                        backward(
                            pd, engine, kind, src, dst, src, stat, epsilon, flags, none.0, none.1,
                        ),
                    ),
                    (false, false) => (
                        "backward_primitive_desc_create_v2",
                        backward_v2(
                            pd, engine, kind, src, dst, src, stat, ss_dt, ss_dt, epsilon, flags,
                            none.0, none.1,
                        ),
                    ),
                }
            };
            let name = format!("norm_layer_normalization_{name}");
            self.connection.library().check(&name, status)
        })?;
        Ok(Box::new(pd))
    }
}
