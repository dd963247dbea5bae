//! Lists of post-operations.

use super::convert::{data_type, data_type_code, optional_data_type};
use super::exported;
use super::handle::{Handle, Out, put_optional};
use crate::error::{Error, Result};
use crate::primitive::{
    BinaryAlgorithm, Depthwise, EltwiseAlgorithm, PostOp, PostOps, unknown_enumerator,
};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::c_int;

/// The descriptor of an absent operand.
static EMPTY: MemoryDesc = MemoryDesc::EMPTY;

/// The bits of the f32 that oneDNN uses for values unknown at creation.
const RUNTIME_F32_BITS: u32 = 0x7fc0_00d0;

/// Refuses that value.
fn check_known(name: &str, value: f32) -> Result<()> {
    if value.to_bits() == RUNTIME_F32_BITS {
        return Err(Error::invalid(format_args!("{name}: runtime values are not supported")));
    }
    Ok(())
}

/// The entry at `index`.
///
/// # Safety
/// `post_ops` is NULL or a live handle.
unsafe fn entry<'a>(post_ops: sys::const_norm_post_ops_t, index: c_int) -> Result<&'a PostOp> {
    // SAFETY: guaranteed by the caller.
    let list = unsafe { PostOps::get(post_ops, "post_ops") }?;
    let found = usize::try_from(index).ok().and_then(|at| list.get(at));
    found.ok_or_else(|| {
        Error::invalid(format_args!("index: {index}, but the list has {} entries", list.len()))
    })
}

fn wrong_kind(index: c_int, found: &PostOp) -> Error {
    Error::invalid(format_args!("index: entry {index} is of kind {}", found.name()))
}

exported! {
    /// An empty list.
    fn norm_post_ops_create as dnnl_post_ops_create(post_ops: *mut sys::norm_post_ops_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { Out::new(post_ops, "post_ops") }?.set(PostOps::default().into_c()?);
        Ok(())
    }
}

exported! {
    /// A copy of a list.
    fn norm_post_ops_clone as dnnl_post_ops_clone(
        post_ops: *mut sys::norm_post_ops_t,
        existing_post_ops: sys::const_norm_post_ops_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = Out::new(post_ops, "post_ops")?;
            out.set(PostOps::get(existing_post_ops, "existing_post_ops")?.try_clone()?.into_c()?);
        }
        Ok(())
    }
}

exported! {
    /// Frees a list.
    fn norm_post_ops_destroy as dnnl_post_ops_destroy(post_ops: sys::norm_post_ops_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { PostOps::destroy(post_ops, "post_ops") }
    }
}

exported! {
    /// The number of entries.
    fn norm_post_ops_len as dnnl_post_ops_len(post_ops: sys::const_norm_post_ops_t) -> c_int, else 0; {
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { PostOps::get_optional(post_ops, "post_ops") }?.map_or(0, |list| list.len() as c_int))
    }
}

exported! {
    /// The kind of an entry.
    fn norm_post_ops_get_kind as dnnl_post_ops_get_kind(
        post_ops: sys::const_norm_post_ops_t,
        index: c_int,
    ) -> sys::norm_primitive_kind_t, else sys::norm_undefined_primitive; {
        // SAFETY: guaranteed by the caller.
        unsafe { entry(post_ops, index) }.map(PostOp::kind)
    }
}

exported! {
    /// Appends a sum with the previous output.
    fn norm_post_ops_append_sum as dnnl_post_ops_append_sum(
        post_ops: sys::norm_post_ops_t,
        scale: f32,
        zero_point: i32,
        data_type: sys::norm_data_type_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let list = unsafe { PostOps::get_mut(post_ops, "post_ops") }?;
        check_known("scale", scale)?;
        let data_type = optional_data_type(data_type, "data_type")?;
        list.append(PostOp::Sum { scale, zero_point, data_type })
    }
}

exported! {
    /// The parameters of a sum.
    fn norm_post_ops_get_params_sum as dnnl_post_ops_get_params_sum(
        post_ops: sys::const_norm_post_ops_t,
        index: c_int,
        scale: *mut f32,
        zero_point: *mut i32,
        data_type: *mut sys::norm_data_type_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match entry(post_ops, index)? {
                PostOp::Sum { scale: its_scale, zero_point: its_point, data_type: its_type } => {
                    put_optional(scale, *its_scale);
                    put_optional(zero_point, *its_point);
                    put_optional(data_type, data_type_code(*its_type));
                    Ok(())
                }
                other => Err(wrong_kind(index, other)),
            }
        }
    }
}

exported! {
    /// Appends an elementwise function.
    fn norm_post_ops_append_eltwise as dnnl_post_ops_append_eltwise(
        post_ops: sys::norm_post_ops_t,
        alg_kind: sys::norm_alg_kind_t,
        alpha: f32,
        beta: f32,
    ) {
        // SAFETY: guaranteed by the caller.
        let list = unsafe { PostOps::get_mut(post_ops, "post_ops") }?;
        let algorithm = eltwise_algorithm(alg_kind)?;
        check_known("alpha", alpha)?;
        check_known("beta", beta)?;
        let clips = matches!(algorithm, EltwiseAlgorithm::Clip | EltwiseAlgorithm::ClipV2);
        // NaN is not ordered either.
        if clips && alpha.partial_cmp(&beta).is_none_or(std::cmp::Ordering::is_gt) {
            return Err(Error::invalid(format_args!(
                "beta: the upper bound {beta} of the clip is less than alpha, the lower bound {alpha}"
            )));
        }
        list.append(PostOp::Eltwise { algorithm, code: alg_kind, alpha, beta })
    }
}

/// The algorithm of a C value. Those whose gradient uses dst have the formulas of the others.
pub(super) fn eltwise_algorithm(code: sys::norm_alg_kind_t) -> Result<EltwiseAlgorithm> {
    let formula = match code {
        sys::norm_eltwise_relu_use_dst_for_bwd => sys::norm_eltwise_relu,
        sys::norm_eltwise_tanh_use_dst_for_bwd => sys::norm_eltwise_tanh,
        sys::norm_eltwise_elu_use_dst_for_bwd => sys::norm_eltwise_elu,
        sys::norm_eltwise_sqrt_use_dst_for_bwd => sys::norm_eltwise_sqrt,
        sys::norm_eltwise_logistic_use_dst_for_bwd => sys::norm_eltwise_logistic,
        sys::norm_eltwise_exp_use_dst_for_bwd => sys::norm_eltwise_exp,
        sys::norm_eltwise_clip_v2_use_dst_for_bwd => sys::norm_eltwise_clip_v2,
        code => code,
    };
    EltwiseAlgorithm::of_code(formula)
        // Their names are too many for a message.
        .ok_or_else(|| {
            unknown_enumerator("alg_kind", code as i32, &["the functions norm_eltwise_*"])
        })
}

exported! {
    /// The parameters of an elementwise function.
    fn norm_post_ops_get_params_eltwise as dnnl_post_ops_get_params_eltwise(
        post_ops: sys::const_norm_post_ops_t,
        index: c_int,
        alg_kind: *mut sys::norm_alg_kind_t,
        alpha: *mut f32,
        beta: *mut f32,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match entry(post_ops, index)? {
                PostOp::Eltwise { code, alpha: its_alpha, beta: its_beta, .. } => {
                    put_optional(alg_kind, *code);
                    put_optional(alpha, *its_alpha);
                    put_optional(beta, *its_beta);
                    Ok(())
                }
                other => Err(wrong_kind(index, other)),
            }
        }
    }
}

exported! {
    /// Appends a binary function.
    fn norm_post_ops_append_binary as dnnl_post_ops_append_binary(
        post_ops: sys::norm_post_ops_t,
        alg_kind: sys::norm_alg_kind_t,
        src1_desc: sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { append_binary(post_ops, alg_kind, src1_desc, std::ptr::null()) }
    }
}

exported! {
    /// Appends a binary or ternary function.
    fn norm_post_ops_append_binary_v2 as dnnl_post_ops_append_binary_v2(
        post_ops: sys::norm_post_ops_t,
        alg_kind: sys::norm_alg_kind_t,
        src1_desc: sys::const_norm_memory_desc_t,
        src2_desc: sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { append_binary(post_ops, alg_kind, src1_desc, src2_desc) }
    }
}

/// # Safety
/// Handles are NULL or live.
unsafe fn append_binary(
    post_ops: sys::norm_post_ops_t,
    alg_kind: sys::norm_alg_kind_t,
    src1_desc: sys::const_norm_memory_desc_t,
    src2_desc: sys::const_norm_memory_desc_t,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let list = unsafe { PostOps::get_mut(post_ops, "post_ops") }?;
    let algorithm = BinaryAlgorithm::given(alg_kind, "alg_kind")?;
    // SAFETY: guaranteed by the caller.
    let src1 = unsafe { operand(src1_desc, "src1_desc") }?;
    let src2 = match algorithm {
        // SAFETY: guaranteed by the caller.
        BinaryAlgorithm::Select => Some(unsafe { operand(src2_desc, "src2_desc") }?),
        _ => None,
    };
    list.append(PostOp::Binary { algorithm, src1, src2 })
}

/// # Safety
/// `desc` is NULL or a live handle.
unsafe fn operand(desc: sys::const_norm_memory_desc_t, name: &str) -> Result<MemoryDesc> {
    // SAFETY: guaranteed by the caller.
    let desc = unsafe { MemoryDesc::tensor(desc, name) }?;
    if desc.ndims() == 0 {
        return Err(Error::invalid(format_args!("{name}: an empty descriptor")));
    }
    Ok(desc.clone())
}

exported! {
    /// The parameters of a binary function.
    fn norm_post_ops_get_params_binary as dnnl_post_ops_get_params_binary(
        post_ops: sys::const_norm_post_ops_t,
        index: c_int,
        alg_kind: *mut sys::norm_alg_kind_t,
        src1_desc: *mut sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { binary_parameters(post_ops, index, alg_kind, src1_desc, std::ptr::null_mut()) }
    }
}

exported! {
    /// The parameters of a binary or ternary function.
    fn norm_post_ops_get_params_binary_v2 as dnnl_post_ops_get_params_binary_v2(
        post_ops: sys::const_norm_post_ops_t,
        index: c_int,
        alg_kind: *mut sys::norm_alg_kind_t,
        src1_desc: *mut sys::const_norm_memory_desc_t,
        src2_desc: *mut sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { binary_parameters(post_ops, index, alg_kind, src1_desc, src2_desc) }
    }
}

/// # Safety
/// The handle is NULL or live, and outputs are NULL or writable.
unsafe fn binary_parameters(
    post_ops: sys::const_norm_post_ops_t,
    index: c_int,
    alg_kind: *mut sys::norm_alg_kind_t,
    src1_desc: *mut sys::const_norm_memory_desc_t,
    src2_desc: *mut sys::const_norm_memory_desc_t,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match entry(post_ops, index)? {
            PostOp::Binary { algorithm, src1, src2 } => {
                put_optional(alg_kind, algorithm.code());
                put_optional(src1_desc, src1.lend());
                put_optional(src2_desc, src2.as_ref().unwrap_or(&EMPTY).lend());
                Ok(())
            }
            other => Err(wrong_kind(index, other)),
        }
    }
}

exported! {
    /// Appends a parametric ReLU.
    fn norm_post_ops_append_prelu as dnnl_post_ops_append_prelu(post_ops: sys::norm_post_ops_t, mask: c_int) {
        // SAFETY: guaranteed by the caller.
        unsafe { PostOps::get_mut(post_ops, "post_ops") }?.append(PostOp::Prelu { mask })
    }
}

exported! {
    /// The parameters of a parametric ReLU.
    fn norm_post_ops_get_params_prelu as dnnl_post_ops_get_params_prelu(
        post_ops: sys::const_norm_post_ops_t,
        index: c_int,
        mask: *mut c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match entry(post_ops, index)? {
                PostOp::Prelu { mask: its_mask } => {
                    put_optional(mask, *its_mask);
                    Ok(())
                }
                other => Err(wrong_kind(index, other)),
            }
        }
    }
}

exported! {
    /// Appends a depthwise convolution.
    fn norm_post_ops_append_dw as dnnl_post_ops_append_dw(
        post_ops: sys::norm_post_ops_t,
        weights_data_type: sys::norm_data_type_t,
        bias_data_type: sys::norm_data_type_t,
        dst_data_type: sys::norm_data_type_t,
        kernel_size: i64,
        stride_size: i64,
        padding_l_size: i64,
    ) {
        // SAFETY: guaranteed by the caller.
        let list = unsafe { PostOps::get_mut(post_ops, "post_ops") }?;
        for (name, value) in [("kernel_size", kernel_size), ("stride_size", stride_size)] {
            if value <= 0 {
                return Err(Error::invalid(format_args!("{name}: {value} is not positive")));
            }
        }
        if padding_l_size >= kernel_size {
            return Err(Error::invalid(format_args!(
                "padding_l_size: {padding_l_size} is not less than kernel_size, {kernel_size}"
            )));
        }
        list.append(PostOp::Depthwise(Depthwise {
            weights: data_type(weights_data_type, "weights_data_type")?,
            bias: optional_data_type(bias_data_type, "bias_data_type")?,
            dst: data_type(dst_data_type, "dst_data_type")?,
            kernel: kernel_size,
            stride: stride_size,
            padding: padding_l_size,
        }))
    }
}

exported! {
    /// The parameters of a depthwise convolution.
    fn norm_post_ops_get_params_dw as dnnl_post_ops_get_params_dw(
        post_ops: sys::const_norm_post_ops_t,
        index: c_int,
        weights_data_type: *mut sys::norm_data_type_t,
        bias_data_type: *mut sys::norm_data_type_t,
        dst_data_type: *mut sys::norm_data_type_t,
        kernel_size: *mut i64,
        stride_size: *mut i64,
        padding_l_size: *mut i64,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match entry(post_ops, index)? {
                PostOp::Depthwise(dw) => {
                    put_optional(weights_data_type, data_type_code(Some(dw.weights)));
                    put_optional(bias_data_type, data_type_code(dw.bias));
                    put_optional(dst_data_type, data_type_code(Some(dw.dst)));
                    put_optional(kernel_size, dw.kernel);
                    put_optional(stride_size, dw.stride);
                    put_optional(padding_l_size, dw.padding);
                    Ok(())
                }
                other => Err(wrong_kind(index, other)),
            }
        }
    }
}
