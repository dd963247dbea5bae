//! The calls that create the primitive descriptor of a gated activation.

use super::parameters::Packing;
use crate::attributes::Attributes;
use crate::direction::Direction;
use crate::executor::{Prepared, Refusal};
use crate::library::{
    self, Connection, MemoryDesc, PrimitiveAttr, PrimitiveDesc, TensorRequest, functions,
};
use crate::oracle::gated::Function;
use norm_sys::*;
use std::ptr;
use std::rc::Rc;

/// The inputs of a primitive descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is computed.
    pub direction: Direction,
    /// The function of the gate.
    pub function: Function,
    /// The packing of gate and up.
    pub packing: Packing,
    /// alpha, limit and shift.
    pub numbers: [f32; 3],
    /// Dimensions of dst.
    pub dims: Vec<usize>,
    /// Dimensions of src.
    pub src_dims: Vec<usize>,
    /// gate and up, or the gate.
    pub src: TensorRequest,
    /// up, if it is separate.
    pub up: TensorRequest,
    /// The result.
    pub dst: TensorRequest,
    /// Whether backward also writes it.
    pub rewrites: bool,
    /// The gradient of src.
    pub diff_src: TensorRequest,
    /// The gradient of up, if it is separate.
    pub diff_up: TensorRequest,
    /// The gradient of dst.
    pub diff_dst: TensorRequest,
    /// Scales and post-ops.
    pub attributes: Attributes,
}

functions! {
    /// The functions that create the primitive descriptors.
    Functions {
        gated_forward_primitive_desc_create = norm_gated_forward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_prop_kind_t,
                norm_alg_kind_t,
                norm_gate_packing_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                f32,
                f32,
                f32,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
        gated_backward_primitive_desc_create = norm_gated_backward_primitive_desc_create:
            fn(
                *mut norm_primitive_desc_t,
                norm_engine_t,
                norm_alg_kind_t,
                norm_gate_packing_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                const_norm_memory_desc_t,
                f32,
                f32,
                f32,
                const_norm_primitive_desc_t,
                const_norm_primitive_attr_t
            ) -> norm_status_t;
    }
}

fn algorithm(function: Function) -> norm_alg_kind_t {
    match function {
        Function::Swish => norm_eltwise_swish,
        Function::GeluErf => norm_eltwise_gelu_erf,
        Function::GeluTanh => norm_eltwise_gelu_tanh,
        Function::Relu => norm_eltwise_relu,
        Function::Logistic => norm_eltwise_logistic,
        Function::Linear => norm_eltwise_linear,
    }
}

impl library::Request for Request {
    fn create(&self, connection: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal> {
        let (engine, dims) = (connection.engine(), &self.dims);
        let (kind, algorithm) = (self.direction.prop_kind(), algorithm(self.function));
        let packing = match self.packing {
            Packing::Separate => norm_gate_separate,
            Packing::GateFirst => norm_gate_first,
            Packing::UpFirst => norm_up_first,
            Packing::Interleaved => norm_gate_interleaved,
        };
        let second = |tensor: &TensorRequest| match self.packing {
            Packing::Separate => tensor.desc(connection, dims),
            _ => Ok(MemoryDesc::null()),
        };
        let src = self.src.desc(connection, &self.src_dims)?;
        let up = second(&self.up)?;
        let dst = match self.direction.is_forward() || self.rewrites {
            true => self.dst.desc(connection, dims)?,
            false => MemoryDesc::null(),
        };
        let diff_src = self.diff_src.desc(connection, &self.src_dims)?;
        let diff_up = second(&self.diff_up)?;
        let diff_dst = self.diff_dst.desc(connection, dims)?;
        let tensors = self.attributes.tensors(dims, 1);
        let attr = PrimitiveAttr::new(connection, &self.attributes, &tensors, dims.len())?;
        let functions = Functions::of(connection.source())?;
        let [alpha, limit, shift] = self.numbers;
        let (src, up, dst, attr) = (src.raw(), up.raw(), dst.raw(), attr.raw());
        let (diff_src, diff_up, diff_dst) = (diff_src.raw(), diff_up.raw(), diff_dst.raw());
        let created = PrimitiveDesc::create(connection, |pd| {
            // SAFETY: `pd` is a valid place for a handle; the engine and the descriptors are alive or NULL, and the
            // functions check everything else.
            let (name, status) = unsafe {
                if self.direction.is_forward() {
                    let create = functions.gated_forward_primitive_desc_create;
                    let status = create(
                        pd, engine, kind, algorithm, packing, src, up, dst, alpha, limit, shift,
                        attr,
                    );
                    ("forward", status)
                } else {
                    let create = functions.gated_backward_primitive_desc_create;
                    let (hint, numbers) = (ptr::null(), (alpha, limit, shift));
                    let status = create(
                        pd, engine, algorithm, packing, diff_src, diff_up, diff_dst, src, up, dst,
                        numbers.0, numbers.1, numbers.2, hint, attr,
                    );
                    ("backward", status)
                }
            };
            connection.check(&format!("gated_{name}_primitive_desc_create"), status)
        })?;
        Ok(Box::new(created))
    }
}
