//! The calls that create the primitive descriptor of a rope.

use super::choices::Angles;
use super::parameters::RopeProblem;
use crate::data_type::DataType;
use crate::executor::{Prepared, Refusal};
use crate::library::{
    self, Connection, MemoryDesc, PrimitiveAttr, PrimitiveDesc, TensorRequest, functions,
};
use crate::oracle::rope::Pairing;
use crate::tensor::Layout;
use norm_sys::*;
use std::ffi::{c_int, c_uint};
use std::ptr;
use std::rc::Rc;

/// The inputs of a primitive descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The input of forward.
    pub src: TensorRequest,
    /// The result of forward, and the input of backward.
    pub dst: TensorRequest,
    /// The result of backward.
    pub diff_src: TensorRequest,
    /// Everything else.
    pub problem: RopeProblem,
}

functions! {
    /// The functions that create the primitive descriptors.
    Functions {
        rope_forward_primitive_desc_create = norm_rope_forward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                norm_rope_pairing_t,
                norm_rope_angles_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                c_int,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                norm_dim_t,
                f32,
                c_int,
                *const norm_dim_t,
                f32,
                c_uint,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
        rope_backward_primitive_desc_create = norm_rope_backward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_rope_pairing_t,
                norm_rope_angles_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                c_int,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                norm_dim_t,
                f32,
                c_int,
                *const norm_dim_t,
                f32,
                c_uint,
                const_norm_primitive_desc_t,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
    }
}

impl library::Request for Request {
    fn create(&self, connection: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal> {
        Ok(Box::new(self.descriptor(connection)?))
    }
}

/// The library's descriptors; NULL for those that a problem does not have.
struct Descs {
    src: MemoryDesc,
    dst: MemoryDesc,
    diff_src: MemoryDesc,
    position: MemoryDesc,
    table: MemoryDesc,
    scale: MemoryDesc,
}

/// The enumerators of the pairing and the angles.
fn codes(p: &RopeProblem) -> (norm_rope_pairing_t, norm_rope_angles_t) {
    let pairing = match p.pairing {
        Pairing::Interleaved => norm_rope_interleaved,
        Pairing::Half => norm_rope_half_split,
        Pairing::HalfOfHead => norm_rope_half_split_of_head,
    };
    let angles = match p.angles {
        Angles::Frequencies => norm_rope_from_frequencies,
        Angles::Tables => norm_rope_from_tables,
    };
    (pairing, angles)
}

impl Request {
    fn descs(&self, connection: &Rc<Connection>) -> Result<Descs, Refusal> {
        let p = &self.problem;
        let dense = |dims: &[usize], data_type: DataType| {
            MemoryDesc::strided(connection, &Layout::dense(dims, data_type))
        };
        Ok(Descs {
            src: self.src.desc(connection, &p.dims)?,
            dst: self.dst.desc(connection, &p.dst_dims())?,
            diff_src: self.diff_src.desc(connection, &p.dims)?,
            position: dense(&p.position_dims(), p.position_dt)?,
            table: match p.angles {
                Angles::Frequencies => MemoryDesc::null(),
                Angles::Tables => dense(&[p.table_rows(), p.rotary_dims() / 2], p.table_dt)?,
            },
            scale: match p.flags.scale() {
                true => dense(&[p.cols()], DataType::F32)?,
                false => MemoryDesc::null(),
            },
        })
    }

    fn descriptor(&self, connection: &Rc<Connection>) -> Result<PrimitiveDesc, Refusal> {
        let (p, d) = (&self.problem, self.descs(connection)?);
        let (pairing, angles) = codes(p);
        let sections: Vec<norm_dim_t> = p.sections.iter().map(|pairs| *pairs as _).collect();
        let attr = PrimitiveAttr::new(connection, &p.attributes, &[], p.dims.len())?;
        let functions = Functions::of(connection.source())?;
        PrimitiveDesc::create(connection, |pd| {
            // SAFETY: `pd` is a valid place for a handle; the engine, the descriptors and the
            // sections are alive, and the functions check everything else.
            let status = unsafe {
                if p.direction.is_forward() {
                    (functions.rope_forward_primitive_desc_create)(
                        pd,
                        connection.engine(),
                        p.direction.prop_kind(),
                        pairing,
                        angles,
                        d.src.raw(),
                        d.dst.raw(),
                        d.position.raw(),
                        p.index_dim as c_int,
                        d.table.raw(),
                        d.scale.raw(),
                        p.rotary_dims() as norm_dim_t,
                        p.magnitude,
                        sections.len() as c_int,
                        sections.as_ptr(),
                        p.epsilon,
                        p.flags.bits(),
                        attr.raw(),
                    )
                } else {
                    (functions.rope_backward_primitive_desc_create)(
                        pd,
                        connection.engine(),
                        pairing,
                        angles,
                        d.diff_src.raw(),
                        d.dst.raw(),
                        if p.through_norm() { d.src.raw() } else { ptr::null() },
                        d.position.raw(),
                        p.index_dim as c_int,
                        d.table.raw(),
                        d.scale.raw(),
                        if p.writes_diff_scale() { d.scale.raw() } else { ptr::null() },
                        p.rotary_dims() as norm_dim_t,
                        p.magnitude,
                        sections.len() as c_int,
                        sections.as_ptr(),
                        p.epsilon,
                        p.flags.bits(),
                        ptr::null(),
                        attr.raw(),
                    )
                }
            };
            let name = if p.direction.is_forward() { "forward" } else { "backward" };
            connection.check(&format!("rope_{name}_primitive_desc_create"), status)
        })
    }
}
