//! The names of enumerators, for printing.

use super::convert::{implemented_prop_kind, unimplemented_data_type};
use super::exported;
use crate::ops::softmax::SoftmaxAlgorithm;
use crate::primitive::{
    AccumulationMode, BinaryAlgorithm, CpuIsa, EltwiseAlgorithm, FpmathMode, PropKind,
    RoundingMode, ScratchpadMode,
};
use crate::tensor::{DataType, c_letters_of};
use norm_sys as sys;
use std::ffi::{CStr, c_char};

/// A name for C, or the text for an unknown value.
pub(super) fn named(name: Option<&'static CStr>, unknown: &'static CStr) -> *const c_char {
    name.unwrap_or(unknown).as_ptr()
}

exported! {
    /// The name of a data type.
    fn norm_dt2str as dnnl_dt2str(data_type_value: sys::norm_data_type_t) -> *const c_char,
        else c"unknown data type".as_ptr(); {
        let name = match data_type_value {
            sys::norm_data_type_undef => Some(c"undef"),
            value => DataType::of_code(value)
                .map(DataType::c_name)
                .or_else(|| unimplemented_data_type(value).map(|(name, _)| name)),
        };
        Ok(named(name, c"unknown data type"))
    }
}

exported! {
    /// The letters of a format tag.
    fn norm_fmt_tag2str as dnnl_fmt_tag2str(tag: sys::norm_format_tag_t) -> *const c_char,
        else c"unknown format tag".as_ptr(); {
        let name = match tag {
            sys::norm_format_tag_undef => Some(c"undef"),
            sys::norm_format_tag_any => Some(c"any"),
            tag => c_letters_of(tag),
        };
        Ok(named(name, c"unknown format tag"))
    }
}

exported! {
    /// The name of a propagation kind.
    fn norm_prop_kind2str as dnnl_prop_kind2str(prop_kind_value: sys::norm_prop_kind_t) -> *const c_char,
        else c"unknown prop_kind".as_ptr(); {
        let name = match prop_kind_value {
            sys::norm_prop_kind_undef => Some(c"undef"),
            sys::norm_backward_weights => Some(c"backward_weights"),
            sys::norm_backward_bias => Some(c"backward_bias"),
            value => implemented_prop_kind(value).map(PropKind::c_name),
        };
        Ok(named(name, c"unknown prop_kind"))
    }
}

exported! {
    /// The name of an instruction set.
    fn norm_cpu_isa2str(isa: sys::norm_cpu_isa_t) -> *const c_char,
        else c"unknown cpu_isa".as_ptr(); {
        Ok(named(CpuIsa::find(isa).map(CpuIsa::c_name), c"unknown cpu_isa"))
    }
}

exported! {
    /// The name of a scratchpad mode.
    fn norm_scratchpad_mode2str as dnnl_scratchpad_mode2str(mode: sys::norm_scratchpad_mode_t) -> *const c_char, else c"unknown scratchpad_mode".as_ptr(); {
        Ok(named(ScratchpadMode::of_code(mode).map(ScratchpadMode::c_name), c"unknown scratchpad_mode"))
    }
}

exported! {
    /// The name of a math mode.
    fn norm_fpmath_mode2str as dnnl_fpmath_mode2str(mode: sys::norm_fpmath_mode_t) -> *const c_char, else c"unknown fpmath_mode".as_ptr(); {
        Ok(named(FpmathMode::of_code(mode).map(FpmathMode::c_name), c"unknown fpmath_mode"))
    }
}

exported! {
    /// The name of an accumulation mode.
    fn norm_accumulation_mode2str as dnnl_accumulation_mode2str(mode: sys::norm_accumulation_mode_t) -> *const c_char, else c"unknown accumulation_mode".as_ptr(); {
        Ok(named(AccumulationMode::of_code(mode).map(AccumulationMode::c_name), c"unknown accumulation_mode"))
    }
}

exported! {
    /// The name of a rounding mode.
    fn norm_rounding_mode2str as dnnl_rounding_mode2str(mode: sys::norm_rounding_mode_t) -> *const c_char, else c"unknown rounding_mode".as_ptr(); {
        Ok(named(RoundingMode::of_code(mode).map(RoundingMode::c_name), c"unknown rounding_mode"))
    }
}

exported! {
    /// The name of an algorithm.
    fn norm_alg_kind2str as dnnl_alg_kind2str(alg_kind: sys::norm_alg_kind_t) -> *const c_char,
        else c"unknown alg_kind".as_ptr(); {
        let eltwise = EltwiseAlgorithm::of_code(alg_kind).map(EltwiseAlgorithm::c_name);
        let binary = BinaryAlgorithm::of_code(alg_kind).map(BinaryAlgorithm::c_name);
        let softmax = SoftmaxAlgorithm::of_code(alg_kind).map(SoftmaxAlgorithm::c_name);
        let other = OTHER_ALGORITHMS.iter().find(|(code, _)| *code == alg_kind);
        let other = other.map(|(_, name)| *name);
        Ok(named(eltwise.or(binary).or(softmax).or(other), c"unknown alg_kind"))
    }
}

/// Algorithms that are not implemented and only have a name.
const OTHER_ALGORITHMS: [(sys::norm_alg_kind_t, &CStr); 8] = [
    (sys::norm_alg_kind_undef, c"undef"),
    (sys::norm_eltwise_relu_use_dst_for_bwd, c"eltwise_relu_use_dst_for_bwd"),
    (sys::norm_eltwise_tanh_use_dst_for_bwd, c"eltwise_tanh_use_dst_for_bwd"),
    (sys::norm_eltwise_elu_use_dst_for_bwd, c"eltwise_elu_use_dst_for_bwd"),
    (sys::norm_eltwise_sqrt_use_dst_for_bwd, c"eltwise_sqrt_use_dst_for_bwd"),
    (sys::norm_eltwise_logistic_use_dst_for_bwd, c"eltwise_logistic_use_dst_for_bwd"),
    (sys::norm_eltwise_exp_use_dst_for_bwd, c"eltwise_exp_use_dst_for_bwd"),
    (sys::norm_eltwise_clip_v2_use_dst_for_bwd, c"eltwise_clip_v2_use_dst_for_bwd"),
];

/// The name at index `value`.
fn numbered(value: u32, names: &[&'static CStr], unknown: &'static CStr) -> *const c_char {
    names.get(value as usize).copied().unwrap_or(unknown).as_ptr()
}

exported! {
    /// The name of an engine kind.
    fn norm_engine_kind2str as dnnl_engine_kind2str(kind: sys::norm_engine_kind_t) -> *const c_char,
        else c"unknown engine_kind".as_ptr(); {
        Ok(numbered(kind, &[c"any", c"cpu", c"gpu"], c"unknown engine_kind"))
    }
}

exported! {
    /// The name of a format kind.
    fn norm_fmt_kind2str as dnnl_fmt_kind2str(format_kind: sys::norm_format_kind_t) -> *const c_char,
        else c"unknown fmt_kind".as_ptr(); {
        let names = [c"undef", c"any", c"blocked", c"opaque", c"sparse", c"host_scalar"];
        Ok(numbered(format_kind, &names, c"unknown fmt_kind"))
    }
}

exported! {
    /// The name of a primitive kind.
    fn norm_prim_kind2str as dnnl_prim_kind2str(primitive_kind: sys::norm_primitive_kind_t) -> *const c_char,
        else c"unknown prim_kind".as_ptr(); {
        let names = [
            c"undef", c"reorder", c"shuffle", c"concat", c"sum", c"convolution", c"deconvolution",
            c"eltwise", c"lrn", c"batch_normalization", c"inner_product", c"rnn", c"gemm",
            c"binary", c"matmul", c"resampling", c"pooling", c"reduction", c"prelu", c"softmax",
            c"layer_normalization", c"group_normalization",
        ];
        let own = match primitive_kind {
            sys::norm_rope => c"rope",
            sys::norm_gated => c"gated",
            sys::norm_sdpa => c"sdpa",
            _ => c"",
        };
        if !own.is_empty() {
            return Ok(own.as_ptr());
        }
        Ok(numbered(primitive_kind, &names, c"unknown prim_kind"))
    }
}

exported! {
    /// The name of a quantization mode.
    fn norm_quantization_mode2str as dnnl_quantization_mode2str(mode: sys::norm_quantization_mode_t) -> *const c_char,
        else c"unknown quantization_mode".as_ptr(); {
        let names = [c"undef", c"static_sazp", c"dynamic_mx", c"dynamic_fp"];
        Ok(numbered(mode, &names, c"unknown quantization_mode"))
    }
}

exported! {
    /// The name of a hint.
    fn norm_cpu_isa_hints2str as dnnl_cpu_isa_hints2str(isa_hints: sys::norm_cpu_isa_hints_t) -> *const c_char,
        else c"unknown cpu_isa_hints".as_ptr(); {
        Ok(numbered(isa_hints, &[c"cpu_isa_no_hints", c"cpu_isa_prefer_ymm"], c"unknown cpu_isa_hints"))
    }
}
