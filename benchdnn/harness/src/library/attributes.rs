//! The library's primitive attributes, from those of the command line.

use super::connection::Connection;
use super::dropout::set_dropout;
use super::functions::functions;
use super::handle::Handle;
use super::objects::MemoryDesc;
use super::values::data_type;
use crate::attributes::{
    Accumulation, AttributeTensor, Attributes, MathMode, Policy, PostOp, Quantization, Rounding,
    Scratchpad, Source,
};
use crate::executor::{Refusal, RefusalKind};
use crate::oracle::post_ops::{BinaryAlgorithm, EltwiseAlgorithm};
use crate::tensor::Tag;
use norm_sys::*;
use std::ffi::c_int;
use std::ptr;

functions! {
    /// The functions of every oneDNN 3.x.
    Functions {
        primitive_attr_create = norm_primitive_attr_create:
        fn(*mut norm_primitive_attr_t) -> norm_status_t;
        primitive_attr_destroy = norm_primitive_attr_destroy:
        fn(norm_primitive_attr_t) -> norm_status_t;
        primitive_attr_set_scratchpad_mode = norm_primitive_attr_set_scratchpad_mode:
        fn(norm_primitive_attr_t, norm_scratchpad_mode_t) -> norm_status_t;
        primitive_attr_set_fpmath_mode = norm_primitive_attr_set_fpmath_mode:
        fn(norm_primitive_attr_t, norm_fpmath_mode_t) -> norm_status_t;
        primitive_attr_set_scales_mask = norm_primitive_attr_set_scales_mask:
        fn(norm_primitive_attr_t, c_int, c_int) -> norm_status_t;
        primitive_attr_set_zero_points_mask = norm_primitive_attr_set_zero_points_mask:
        fn(norm_primitive_attr_t, c_int, c_int) -> norm_status_t;
        primitive_attr_set_post_ops = norm_primitive_attr_set_post_ops:
        fn(norm_primitive_attr_t, const_norm_post_ops_t) -> norm_status_t;
        post_ops_create = norm_post_ops_create: fn(*mut norm_post_ops_t) -> norm_status_t;
        post_ops_destroy = norm_post_ops_destroy: fn(norm_post_ops_t) -> norm_status_t;
        post_ops_append_sum = norm_post_ops_append_sum:
        fn(norm_post_ops_t, f32, i32, norm_data_type_t) -> norm_status_t;
        post_ops_append_eltwise = norm_post_ops_append_eltwise:
        fn(norm_post_ops_t, norm_alg_kind_t, f32, f32) -> norm_status_t;
        post_ops_append_binary = norm_post_ops_append_binary:
        fn(norm_post_ops_t, norm_alg_kind_t, const_norm_memory_desc_t) -> norm_status_t;
        post_ops_append_prelu = norm_post_ops_append_prelu:
        fn(norm_post_ops_t, c_int) -> norm_status_t;
        post_ops_append_dw = norm_post_ops_append_dw:
        fn(
            norm_post_ops_t,
            norm_data_type_t,
            norm_data_type_t,
            norm_data_type_t,
            norm_dim_t,
            norm_dim_t,
            norm_dim_t
        ) -> norm_status_t;
    }
}

functions! {
    /// Types and groups of scales and zero points.
    Quantizing {
        primitive_attr_set_scales_v3 = norm_primitive_attr_set_scales_v3:
        fn(
            norm_primitive_attr_t,
            c_int,
            c_int,
            c_int,
            *const norm_dim_t,
            norm_data_type_t,
            c_int,
            norm_quantization_mode_t
        ) -> norm_status_t;
        primitive_attr_set_zero_points_v2 = norm_primitive_attr_set_zero_points_v2:
        fn(
            norm_primitive_attr_t,
            c_int,
            c_int,
            c_int,
            *const norm_dim_t,
            norm_data_type_t,
            c_int
        ) -> norm_status_t;
    }
}

functions! {
    /// Modes added after 3.2.
    Modes {
        primitive_attr_set_fpmath_mode_v2 = norm_primitive_attr_set_fpmath_mode_v2:
        fn(norm_primitive_attr_t, norm_fpmath_mode_t, c_int) -> norm_status_t;
        primitive_attr_set_accumulation_mode = norm_primitive_attr_set_accumulation_mode:
        fn(norm_primitive_attr_t, norm_accumulation_mode_t) -> norm_status_t;
        primitive_attr_set_deterministic = norm_primitive_attr_set_deterministic:
        fn(norm_primitive_attr_t, c_int) -> norm_status_t;
        primitive_attr_set_rounding = norm_primitive_attr_set_rounding:
        fn(norm_primitive_attr_t, c_int, norm_rounding_mode_t) -> norm_status_t;
    }
}

functions! {
    /// Post-ops with three operands.
    Ternary {
        post_ops_append_binary_v2 = norm_post_ops_append_binary_v2:
        fn(
            norm_post_ops_t,
            norm_alg_kind_t,
            const_norm_memory_desc_t,
            const_norm_memory_desc_t
        ) -> norm_status_t;
    }
}

/// Attributes of a primitive; NULL for none.
#[derive(Debug)]
pub struct PrimitiveAttr(Option<Handle<norm_primitive_attr>>);

impl PrimitiveAttr {
    /// The attributes of a problem with these dimensions and attribute tensors. `per_oc` is the
    /// channel dimension.
    pub fn new(
        connection: &Connection,
        attributes: &Attributes,
        tensors: &[AttributeTensor],
        ndims: usize,
    ) -> Result<PrimitiveAttr, Refusal> {
        if attributes.is_default() {
            return Ok(PrimitiveAttr(None));
        }
        let functions = Functions::of(connection.source())?;
        let attr = created(connection, functions)?;
        let builder = Builder { connection, functions, attr: &attr };
        builder.modes(attributes)?;
        builder.quantization(attributes, ndims)?;
        builder.post_ops(attributes, tensors, ndims)?;
        set_dropout(connection, attr.raw(), attributes, tensors)?;
        Ok(PrimitiveAttr(Some(attr)))
    }

    /// The handle of attributes that can be changed. Creates them if there are none.
    pub(super) fn or_created(
        &mut self,
        connection: &Connection,
    ) -> Result<norm_primitive_attr_t, Refusal> {
        if self.0.is_none() {
            self.0 = Some(created(connection, Functions::of(connection.source())?)?);
        }
        Ok(self.0.as_ref().map_or(ptr::null_mut(), Handle::raw))
    }

    /// The handle; NULL for no attributes.
    pub fn raw(&self) -> const_norm_primitive_attr_t {
        self.0.as_ref().map_or(ptr::null(), |handle| handle.raw().cast_const())
    }
}

fn created(
    connection: &Connection,
    functions: Functions,
) -> Result<Handle<norm_primitive_attr>, Refusal> {
    Handle::create(functions.primitive_attr_destroy, |attr| {
        // SAFETY: `attr` is a valid place for a handle.
        let status = unsafe { (functions.primitive_attr_create)(attr) };
        connection.check("primitive_attr_create", status)
    })
}

struct Builder<'c> {
    connection: &'c Connection,
    functions: Functions,
    attr: &'c Handle<norm_primitive_attr>,
}

impl Builder<'_> {
    fn modes(&self, attributes: &Attributes) -> Result<(), Refusal> {
        let (connection, attr) = (self.connection, self.attr.raw());
        if attributes.scratchpad.value == Scratchpad::User {
            let set = self.functions.primitive_attr_set_scratchpad_mode;
            // SAFETY: the attributes are alive, and any mode is checked.
            let status = unsafe { set(attr, norm_scratchpad_mode_user) };
            connection.check("primitive_attr_set_scratchpad_mode", status)?;
        }
        let (mode, whole) = attributes.math_mode.value;
        let mode = match mode {
            MathMode::Strict => norm_fpmath_mode_strict,
            MathMode::Bf16 => norm_fpmath_mode_bf16,
            MathMode::F16 => norm_fpmath_mode_f16,
            MathMode::Tf32 => norm_fpmath_mode_tf32,
            MathMode::Any => norm_fpmath_mode_any,
        };
        if mode != norm_fpmath_mode_strict && !whole {
            // SAFETY: as above.
            let status = unsafe { (self.functions.primitive_attr_set_fpmath_mode)(attr, mode) };
            connection.check("primitive_attr_set_fpmath_mode", status)?;
        }
        let later = whole
            || attributes.accumulation.value != Accumulation::Strict
            || attributes.deterministic.value
            || !attributes.rounding.value.modes.is_empty();
        if !later {
            return Ok(());
        }
        if whole {
            let modes = Modes::of(connection.source())?;
            // SAFETY: as above.
            let status = unsafe { (modes.primitive_attr_set_fpmath_mode_v2)(attr, mode, 1) };
            connection.check("primitive_attr_set_fpmath_mode_v2", status)?;
        }
        self.later_modes(attributes)
    }

    /// Sets the modes that are not at their defaults and whose functions a library may lack.
    fn later_modes(&self, attributes: &Attributes) -> Result<(), Refusal> {
        let (connection, attr) = (self.connection, self.attr.raw());
        let modes = Modes::of(connection.source())?;
        let accumulation = match attributes.accumulation.value {
            Accumulation::Strict => norm_accumulation_mode_strict,
            Accumulation::Relaxed => norm_accumulation_mode_relaxed,
            Accumulation::Any => norm_accumulation_mode_any,
            Accumulation::F32 => norm_accumulation_mode_f32,
            Accumulation::S32 => norm_accumulation_mode_s32,
            Accumulation::F16 => norm_accumulation_mode_f16,
        };
        // SAFETY: the attributes are alive, and any value is checked.
        unsafe {
            if accumulation != norm_accumulation_mode_strict {
                let status = (modes.primitive_attr_set_accumulation_mode)(attr, accumulation);
                connection.check("primitive_attr_set_accumulation_mode", status)?;
            }
            if attributes.deterministic.value {
                let status = (modes.primitive_attr_set_deterministic)(attr, 1);
                connection.check("primitive_attr_set_deterministic", status)?;
            }
            for &(argument, mode) in &attributes.rounding.value.modes {
                let mode = match mode {
                    Rounding::Environment => norm_rounding_mode_environment,
                    Rounding::Stochastic => norm_rounding_mode_stochastic,
                };
                let status = (modes.primitive_attr_set_rounding)(attr, argument, mode);
                connection.check("primitive_attr_set_rounding", status)?;
            }
        }
        Ok(())
    }

    fn quantization(&self, attributes: &Attributes, ndims: usize) -> Result<(), Refusal> {
        for scale in &attributes.scales.value {
            self.scale(scale, scale.policy.mask(ndims, 1) as c_int)?;
        }
        for zero_point in &attributes.zero_points.value {
            self.zero_point(zero_point, zero_point.policy.mask(ndims, 1) as c_int)?;
        }
        Ok(())
    }

    fn scale(&self, scale: &Quantization, mask: c_int) -> Result<(), Refusal> {
        let (connection, attr) = (self.connection, self.attr.raw());
        let plain = scale.data_type == crate::data_type::DataType::F32
            && scale.groups.is_empty()
            && !matches!(scale.policy, Policy::HostScalar | Policy::Mx | Policy::DynamicFp);
        if plain {
            let set = self.functions.primitive_attr_set_scales_mask;
            // SAFETY: the attributes are alive, and any argument and mask are checked.
            let status = unsafe { set(attr, scale.argument, mask) };
            return connection.check("primitive_attr_set_scales_mask", status);
        }
        let (groups, mode) = (
            groups(scale),
            match scale.policy {
                Policy::Mx => norm_quantization_mode_dynamic_mx,
                Policy::DynamicFp => norm_quantization_mode_dynamic_fp,
                _ => norm_quantization_mode_static_sazp,
            },
        );
        // SAFETY: as above; the array has the given number of entries.
        let status = unsafe {
            (Quantizing::of(connection.source())?.primitive_attr_set_scales_v3)(
                attr,
                scale.argument,
                mask,
                groups.len() as c_int,
                groups.as_ptr(),
                data_type(scale.data_type),
                c_int::from(scale.policy == Policy::HostScalar),
                mode,
            )
        };
        connection.check("primitive_attr_set_scales_v3", status)
    }

    fn zero_point(&self, zero_point: &Quantization, mask: c_int) -> Result<(), Refusal> {
        let (connection, attr) = (self.connection, self.attr.raw());
        let plain = zero_point.data_type == crate::data_type::DataType::S32
            && zero_point.groups.is_empty()
            && zero_point.policy != Policy::HostScalar;
        if plain {
            let set = self.functions.primitive_attr_set_zero_points_mask;
            // SAFETY: the attributes are alive, and any argument and mask are checked.
            let status = unsafe { set(attr, zero_point.argument, mask) };
            return connection.check("primitive_attr_set_zero_points_mask", status);
        }
        let groups = groups(zero_point);
        // SAFETY: as above; the array has the given number of entries.
        let status = unsafe {
            (Quantizing::of(connection.source())?.primitive_attr_set_zero_points_v2)(
                attr,
                zero_point.argument,
                mask,
                groups.len() as c_int,
                groups.as_ptr(),
                data_type(zero_point.data_type),
                c_int::from(zero_point.policy == Policy::HostScalar),
            )
        };
        connection.check("primitive_attr_set_zero_points_v2", status)
    }

    fn post_ops(
        &self,
        attributes: &Attributes,
        tensors: &[AttributeTensor],
        ndims: usize,
    ) -> Result<(), Refusal> {
        if attributes.post_ops.value.is_empty() {
            return Ok(());
        }
        let (connection, functions) = (self.connection, self.functions);
        let post_ops = Handle::create(functions.post_ops_destroy, |post_ops| {
            // SAFETY: `post_ops` is a valid place for a handle.
            let status = unsafe { (functions.post_ops_create)(post_ops) };
            connection.check("post_ops_create", status)
        })?;
        for (index, post_op) in attributes.post_ops.value.iter().enumerate() {
            let base = NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE * (index as i32 + 1);
            let desc = |argument: i32| {
                let tensor = tensors.iter().find(|tensor| tensor.id == base | argument);
                tensor_desc(connection, tensor.expect("a tensor for each operand"))
            };
            self.append(post_op, post_ops.raw(), ndims, desc)?;
        }
        let set = functions.primitive_attr_set_post_ops;
        // SAFETY: both objects are alive.
        let status = unsafe { set(self.attr.raw(), post_ops.raw().cast_const()) };
        connection.check("primitive_attr_set_post_ops", status)
    }

    fn append(
        &self,
        post_op: &PostOp,
        post_ops: norm_post_ops_t,
        ndims: usize,
        desc: impl Fn(i32) -> Result<MemoryDesc, Refusal>,
    ) -> Result<(), Refusal> {
        let (connection, functions) = (self.connection, self.functions);
        let type_or_undef =
            |dt: Option<crate::data_type::DataType>| dt.map_or(norm_data_type_undef, data_type);
        // SAFETY: the list and the descriptors are alive, and all numbers are checked.
        let (call, status) = unsafe {
            match post_op {
                PostOp::Sum { scale, zero_point, data_type } => (
                    "post_ops_append_sum",
                    (functions.post_ops_append_sum)(
                        post_ops,
                        *scale,
                        *zero_point,
                        type_or_undef(*data_type),
                    ),
                ),
                &PostOp::Eltwise { algorithm, alpha, beta } => (
                    "post_ops_append_eltwise",
                    (functions.post_ops_append_eltwise)(post_ops, eltwise(algorithm), alpha, beta),
                ),
                PostOp::Binary(binary) if binary.algorithm.is_ternary() => {
                    let (other, condition) = (desc(NORM_ARG_SRC_1)?, desc(NORM_ARG_SRC_2)?);
                    let append = Ternary::of(connection.source())?.post_ops_append_binary_v2;
                    let algorithm = self::binary(binary.algorithm);
                    (
                        "post_ops_append_binary_v2",
                        append(post_ops, algorithm, other.raw(), condition.raw()),
                    )
                }
                PostOp::Binary(binary) => {
                    let other = desc(NORM_ARG_SRC_1)?;
                    let algorithm = self::binary(binary.algorithm);
                    (
                        "post_ops_append_binary",
                        (functions.post_ops_append_binary)(post_ops, algorithm, other.raw()),
                    )
                }
                PostOp::Prelu(policy) => (
                    "post_ops_append_prelu",
                    (functions.post_ops_append_prelu)(post_ops, policy.mask(ndims, 1) as c_int),
                ),
                &PostOp::Depthwise { kernel, stride, padding, data_type } => (
                    "post_ops_append_dw",
                    (functions.post_ops_append_dw)(
                        post_ops,
                        norm_f32,
                        norm_f32,
                        data_type.map_or(norm_f32, self::data_type),
                        norm_dim_t::from(kernel),
                        norm_dim_t::from(stride),
                        norm_dim_t::from(padding),
                    ),
                ),
            }
        };
        connection.check(call, status)
    }
}

fn groups(quantization: &Quantization) -> Vec<norm_dim_t> {
    quantization.groups.iter().map(|&group| group as norm_dim_t).collect()
}

/// The descriptor of an operand, by its tag or with a layout that the library chooses.
fn tensor_desc(connection: &Connection, tensor: &AttributeTensor) -> Result<MemoryDesc, Refusal> {
    let (dims, dt) = (&tensor.dims, tensor.data_type);
    let tag = match &tensor.source {
        Source::Operand(binary) => &binary.tag,
        Source::Quantization(_) | Source::Condition | Source::Mask(_) | Source::Number(_) => {
            &Tag::Any
        }
    };
    match tag.order(dims.len()).map_err(unimplemented)? {
        Some(order) => MemoryDesc::ordered(connection, dims, &order, dt),
        None => MemoryDesc::any(connection, dims, dt),
    }
}

fn unimplemented(message: impl Into<String>) -> Refusal {
    Refusal { kind: RefusalKind::Unimplemented, message: message.into() }
}

/// The C interface's enumerator.
pub(crate) fn eltwise(algorithm: EltwiseAlgorithm) -> norm_alg_kind_t {
    match algorithm {
        EltwiseAlgorithm::Abs => norm_eltwise_abs,
        EltwiseAlgorithm::Clip => norm_eltwise_clip,
        EltwiseAlgorithm::ClipV2 => norm_eltwise_clip_v2,
        EltwiseAlgorithm::ClipV2Dst => norm_eltwise_clip_v2_use_dst_for_bwd,
        EltwiseAlgorithm::Elu => norm_eltwise_elu,
        EltwiseAlgorithm::EluDst => norm_eltwise_elu_use_dst_for_bwd,
        EltwiseAlgorithm::Exp => norm_eltwise_exp,
        EltwiseAlgorithm::ExpDst => norm_eltwise_exp_use_dst_for_bwd,
        EltwiseAlgorithm::GeluErf => norm_eltwise_gelu_erf,
        EltwiseAlgorithm::GeluTanh => norm_eltwise_gelu_tanh,
        EltwiseAlgorithm::Hardsigmoid => norm_eltwise_hardsigmoid,
        EltwiseAlgorithm::Hardswish => norm_eltwise_hardswish,
        EltwiseAlgorithm::Linear => norm_eltwise_linear,
        EltwiseAlgorithm::Log => norm_eltwise_log,
        EltwiseAlgorithm::Logistic => norm_eltwise_logistic,
        EltwiseAlgorithm::LogisticDst => norm_eltwise_logistic_use_dst_for_bwd,
        EltwiseAlgorithm::Mish => norm_eltwise_mish,
        EltwiseAlgorithm::Pow => norm_eltwise_pow,
        EltwiseAlgorithm::Relu => norm_eltwise_relu,
        EltwiseAlgorithm::ReluDst => norm_eltwise_relu_use_dst_for_bwd,
        EltwiseAlgorithm::Round => norm_eltwise_round,
        EltwiseAlgorithm::Sqrt => norm_eltwise_sqrt,
        EltwiseAlgorithm::SqrtDst => norm_eltwise_sqrt_use_dst_for_bwd,
        EltwiseAlgorithm::Square => norm_eltwise_square,
        EltwiseAlgorithm::SoftRelu => norm_eltwise_soft_relu,
        EltwiseAlgorithm::Swish => norm_eltwise_swish,
        EltwiseAlgorithm::Tanh => norm_eltwise_tanh,
        EltwiseAlgorithm::TanhDst => norm_eltwise_tanh_use_dst_for_bwd,
    }
}

/// The C interface's enumerator.
pub(crate) fn binary(algorithm: BinaryAlgorithm) -> norm_alg_kind_t {
    match algorithm {
        BinaryAlgorithm::Add => norm_binary_add,
        BinaryAlgorithm::Div => norm_binary_div,
        BinaryAlgorithm::Eq => norm_binary_eq,
        BinaryAlgorithm::Ge => norm_binary_ge,
        BinaryAlgorithm::Gt => norm_binary_gt,
        BinaryAlgorithm::Le => norm_binary_le,
        BinaryAlgorithm::Lt => norm_binary_lt,
        BinaryAlgorithm::Max => norm_binary_max,
        BinaryAlgorithm::Min => norm_binary_min,
        BinaryAlgorithm::Mul => norm_binary_mul,
        BinaryAlgorithm::Ne => norm_binary_ne,
        BinaryAlgorithm::Select => norm_binary_select,
        BinaryAlgorithm::Sub => norm_binary_sub,
    }
}
