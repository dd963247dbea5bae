//! The calls that create the primitive descriptor of an attention.

use super::choices::KvScales;
use super::parameters::SdpaProblem;
use crate::data_type::DataType;
use crate::executor::{Prepared, Refusal};
use crate::library::{
    self, Connection, MemoryDesc, PrimitiveAttr, PrimitiveDesc, TensorRequest, functions,
};
use crate::tensor::Layout;
use norm_sys::*;
use std::ffi::c_uint;
use std::ptr;
use std::rc::Rc;

/// The inputs of a primitive descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Queries.
    pub queries: TensorRequest,
    /// Keys.
    pub keys: TensorRequest,
    /// Values.
    pub values: TensorRequest,
    /// The result of forward.
    pub dst: TensorRequest,
    /// The gradient of queries.
    pub diff_queries: TensorRequest,
    /// The gradient of keys.
    pub diff_keys: TensorRequest,
    /// The gradient of values.
    pub diff_values: TensorRequest,
    /// The gradient of dst.
    pub diff_dst: TensorRequest,
    /// Everything else.
    pub problem: SdpaProblem,
}

functions! {
    /// The functions that create the primitive descriptors.
    Functions {
        sdpa_forward_primitive_desc_create = norm_sdpa_forward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                norm_attn_mask_type_t,
                norm_attn_window_t,
                norm_dim_t,
                norm_dim_t,
                f32,
                f32,
                c_uint,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
        sdpa_backward_primitive_desc_create = norm_sdpa_backward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                norm_attn_mask_type_t,
                norm_attn_window_t,
                norm_dim_t,
                norm_dim_t,
                f32,
                f32,
                c_uint,
                const_norm_primitive_desc_t,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
    }
}

impl library::Request for Request {
    fn create(&self, connection: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal> {
        let p = &self.problem;
        let mut attr = PrimitiveAttr::new(connection, &p.attributes, &[], 4)?;
        if p.kv_scales != KvScales::None {
            attr.set_scales_mask(connection, NORM_ARG_KEYS, p.kv_scales.mask(3))?;
            attr.set_scales_mask(connection, NORM_ARG_VALUES, p.kv_scales.mask(2))?;
        }
        let created = match p.direction.is_forward() {
            true => self.forward(connection, &attr),
            false => self.backward(connection, &attr),
        }?;
        Ok(Box::new(created))
    }
}

/// The library's descriptors; NULL for those that a problem does not have.
struct Descs {
    queries: MemoryDesc,
    keys: MemoryDesc,
    values: MemoryDesc,
    dst: MemoryDesc,
    mask: MemoryDesc,
}

impl Request {
    fn descs(&self, connection: &Rc<Connection>) -> Result<Descs, Refusal> {
        let p = &self.problem;
        Ok(Descs {
            queries: self
                .queries
                .desc(connection, &p.library_dims(NORM_ARG_QUERIES, p.dims[0].clone()))?,
            keys: self.keys.desc(connection, &p.library_dims(NORM_ARG_KEYS, p.key_dims()))?,
            values: self
                .values
                .desc(connection, &p.library_dims(NORM_ARG_VALUES, p.value_dims()))?,
            dst: self.dst.desc(connection, &p.library_dims(NORM_ARG_DST, p.dst_dims()))?,
            mask: match p.mask_tensor() {
                Some(dims) => MemoryDesc::strided(connection, &Layout::dense(&dims, p.mask_dt))?,
                None => MemoryDesc::null(),
            },
        })
    }

    fn forward(
        &self,
        connection: &Rc<Connection>,
        attr: &PrimitiveAttr,
    ) -> Result<PrimitiveDesc, Refusal> {
        let (p, d) = (&self.problem, self.descs(connection)?);
        let table = match p.page_size {
            0 => MemoryDesc::null(),
            _ => {
                let dims = [p.shape().sequences, p.pages()];
                MemoryDesc::strided(connection, &Layout::dense(&dims, DataType::S32))?
            }
        };
        let (window_kind, window) = p.window.code();
        let functions = Functions::of(connection.source())?;
        PrimitiveDesc::create(connection, |pd| {
            // SAFETY: `pd` is a valid place for a handle; the engine and the descriptors are alive,
            // and the function checks everything else.
            let status = unsafe {
                (functions.sdpa_forward_primitive_desc_create)(
                    pd,
                    connection.engine(),
                    p.direction.prop_kind(),
                    d.queries.raw(),
                    d.keys.raw(),
                    d.values.raw(),
                    d.dst.raw(),
                    d.mask.raw(),
                    table.raw(),
                    p.mask.code(),
                    window_kind,
                    window,
                    p.first_keys as norm_dim_t,
                    p.factor(),
                    p.soft_cap,
                    p.flags.bits(),
                    attr.raw(),
                )
            };
            connection.check("sdpa_forward_primitive_desc_create", status)
        })
    }

    fn backward(
        &self,
        connection: &Rc<Connection>,
        attr: &PrimitiveAttr,
    ) -> Result<PrimitiveDesc, Refusal> {
        let (p, d) = (&self.problem, self.descs(connection)?);
        let diff_queries = self
            .diff_queries
            .desc(connection, &p.library_dims(NORM_ARG_QUERIES, p.dims[0].clone()))?;
        let diff_keys =
            self.diff_keys.desc(connection, &p.library_dims(NORM_ARG_KEYS, p.key_dims()))?;
        let diff_values =
            self.diff_values.desc(connection, &p.library_dims(NORM_ARG_VALUES, p.value_dims()))?;
        let diff_dst =
            self.diff_dst.desc(connection, &p.library_dims(NORM_ARG_DST, p.dst_dims()))?;
        let diff_mask = match p.mask_tensor().filter(|_| p.diff_mask) {
            Some(dims) => MemoryDesc::strided(connection, &Layout::dense(&dims, p.mask_dt))?,
            None => MemoryDesc::null(),
        };
        let (window_kind, window) = p.window.code();
        let functions = Functions::of(connection.source())?;
        PrimitiveDesc::create(connection, |pd| {
            // SAFETY: as above.
            let status = unsafe {
                (functions.sdpa_backward_primitive_desc_create)(
                    pd,
                    connection.engine(),
                    diff_queries.raw(),
                    diff_keys.raw(),
                    diff_values.raw(),
                    diff_dst.raw(),
                    d.queries.raw(),
                    d.keys.raw(),
                    d.values.raw(),
                    d.dst.raw(),
                    d.mask.raw(),
                    diff_mask.raw(),
                    p.mask.code(),
                    window_kind,
                    window,
                    p.first_keys as norm_dim_t,
                    p.factor(),
                    p.soft_cap,
                    p.flags.bits(),
                    ptr::null(),
                    attr.raw(),
                )
            };
            connection.check("sdpa_backward_primitive_desc_create", status)
        })
    }
}
