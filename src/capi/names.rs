//! The names of enumerators, for printing.

use super::convert::{data_type, prop_kind_code, unimplemented_data_type};
use super::exported;
use crate::ops::softmax::SoftmaxAlgorithm;
use crate::primitive::{
    AccumulationMode, BinaryAlgorithm, CpuIsa, EltwiseAlgorithm, FpmathMode, PropKind,
    RoundingMode, ScratchpadMode,
};
use crate::tensor::{DataType, all_tags};
use norm_sys as sys;
use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicPtr, Ordering};

/// NUL-terminated copies of static names, created on first use, so that no name is written twice.
/// Not a `OnceLock`: after fork() the thread that holds it may not exist. If two threads create the
/// copies at once, one of them drops its own.
pub(super) struct Names<K>(AtomicPtr<Vec<(K, CString)>>);

impl<K: Copy + PartialEq> Names<K> {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The name of `key`, valid for the life of the process.
    pub(super) fn get<N: Into<Vec<u8>>>(
        &'static self,
        key: K,
        names: impl FnOnce() -> Vec<(K, N)>,
    ) -> Option<*const c_char> {
        let mut all = self.0.load(Ordering::Acquire);
        if all.is_null() {
            let c_string = |name: N| CString::new(name).unwrap_or_default();
            let copies = names().into_iter().map(|(key, name)| (key, c_string(name))).collect();
            all = self.publish(copies);
        }
        // SAFETY: published copies are never freed.
        let all = unsafe { &*all };
        all.iter().find(|(k, _)| *k == key).map(|(_, name)| name.as_ptr())
    }

    fn publish(&self, copies: Vec<(K, CString)>) -> *mut Vec<(K, CString)> {
        let (none, mine) = (std::ptr::null_mut(), Box::into_raw(Box::new(copies)));
        match self.0.compare_exchange(none, mine, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => mine,
            Err(first) => {
                // SAFETY: no other thread has seen these.
                drop(unsafe { Box::from_raw(mine) });
                first
            }
        }
    }
}

exported! {
    /// The name of a data type.
    fn norm_dt2str as dnnl_dt2str(data_type_value: sys::norm_data_type_t) -> *const c_char,
        else c"unknown data type".as_ptr(); {
        static NAMES: Names<sys::norm_data_type_t> = Names::new();
        let found = NAMES.get(data_type_value, || {
            let name = |v| {
                data_type(v, "").map(DataType::name).ok().or_else(|| unimplemented_data_type(v).map(|(name, _)| name))
            };
            let types = (1..=sys::norm_s64).filter_map(|v| Some((v, name(v)?)));
            types.chain([(sys::norm_data_type_undef, "undef")]).collect()
        });
        Ok(found.unwrap_or(c"unknown data type".as_ptr()))
    }
}

exported! {
    /// The letters of a format tag.
    fn norm_fmt_tag2str as dnnl_fmt_tag2str(tag: sys::norm_format_tag_t) -> *const c_char,
        else c"unknown format tag".as_ptr(); {
        static NAMES: Names<sys::norm_format_tag_t> = Names::new();
        let found = NAMES.get(tag, || {
            all_tags()
                .chain([(sys::norm_format_tag_undef, "undef"), (sys::norm_format_tag_any, "any")])
                .collect()
        });
        Ok(found.unwrap_or(c"unknown format tag".as_ptr()))
    }
}

exported! {
    /// The name of a propagation kind.
    fn norm_prop_kind2str as dnnl_prop_kind2str(prop_kind_value: sys::norm_prop_kind_t) -> *const c_char,
        else c"unknown prop_kind".as_ptr(); {
        static NAMES: Names<sys::norm_prop_kind_t> = Names::new();
        let found = NAMES.get(prop_kind_value, || {
            let kinds = [
                PropKind::ForwardTraining,
                PropKind::ForwardInference,
                PropKind::Backward,
                PropKind::BackwardData,
            ];
            let others = [
                (sys::norm_prop_kind_undef, "undef"),
                (sys::norm_backward_weights, "backward_weights"),
                (sys::norm_backward_bias, "backward_bias"),
            ];
            kinds.map(|k| (prop_kind_code(k), k.name())).into_iter().chain(others).collect()
        });
        Ok(found.unwrap_or(c"unknown prop_kind".as_ptr()))
    }
}

exported! {
    /// The name of an instruction set.
    fn norm_cpu_isa2str(isa: sys::norm_cpu_isa_t) -> *const c_char,
        else c"unknown cpu_isa".as_ptr(); {
        static NAMES: Names<sys::norm_cpu_isa_t> = Names::new();
        let found = NAMES.get(isa, || CpuIsa::all().collect());
        Ok(found.unwrap_or(c"unknown cpu_isa".as_ptr()))
    }
}

exported! {
    /// The name of a scratchpad mode.
    fn norm_scratchpad_mode2str as dnnl_scratchpad_mode2str(mode: sys::norm_scratchpad_mode_t) -> *const c_char, else c"unknown scratchpad_mode".as_ptr(); {
        static NAMES: Names<sys::norm_scratchpad_mode_t> = Names::new();
        let all = || ScratchpadMode::ALL.iter().map(|mode| (mode.code(), mode.name())).collect();
        Ok(NAMES.get(mode, all).unwrap_or(c"unknown scratchpad_mode".as_ptr()))
    }
}

exported! {
    /// The name of a math mode.
    fn norm_fpmath_mode2str as dnnl_fpmath_mode2str(mode: sys::norm_fpmath_mode_t) -> *const c_char, else c"unknown fpmath_mode".as_ptr(); {
        static NAMES: Names<sys::norm_fpmath_mode_t> = Names::new();
        let all = || FpmathMode::ALL.iter().map(|mode| (mode.code(), mode.name())).collect();
        Ok(NAMES.get(mode, all).unwrap_or(c"unknown fpmath_mode".as_ptr()))
    }
}

exported! {
    /// The name of an accumulation mode.
    fn norm_accumulation_mode2str as dnnl_accumulation_mode2str(mode: sys::norm_accumulation_mode_t) -> *const c_char, else c"unknown accumulation_mode".as_ptr(); {
        static NAMES: Names<sys::norm_accumulation_mode_t> = Names::new();
        let all = || AccumulationMode::ALL.iter().map(|mode| (mode.code(), mode.name())).collect();
        Ok(NAMES.get(mode, all).unwrap_or(c"unknown accumulation_mode".as_ptr()))
    }
}

exported! {
    /// The name of a rounding mode.
    fn norm_rounding_mode2str as dnnl_rounding_mode2str(mode: sys::norm_rounding_mode_t) -> *const c_char, else c"unknown rounding_mode".as_ptr(); {
        static NAMES: Names<sys::norm_rounding_mode_t> = Names::new();
        let all = || RoundingMode::ALL.iter().map(|mode| (mode.code(), mode.name())).collect();
        Ok(NAMES.get(mode, all).unwrap_or(c"unknown rounding_mode".as_ptr()))
    }
}

exported! {
    /// The name of an algorithm.
    fn norm_alg_kind2str as dnnl_alg_kind2str(alg_kind: sys::norm_alg_kind_t) -> *const c_char,
        else c"unknown alg_kind".as_ptr(); {
        static NAMES: Names<sys::norm_alg_kind_t> = Names::new();
        let all = || {
            let eltwise = EltwiseAlgorithm::ALL.iter().map(|a| (a.code(), a.name()));
            let binary = BinaryAlgorithm::ALL.iter().map(|a| (a.code(), a.name()));
            let softmax = SoftmaxAlgorithm::ALL.iter().map(|a| (a.code(), a.name()));
            eltwise.chain(binary).chain(softmax).chain(OTHER_ALGORITHMS).collect()
        };
        Ok(NAMES.get(alg_kind, all).unwrap_or(c"unknown alg_kind".as_ptr()))
    }
}

/// Algorithms that are not implemented and only have a name.
const OTHER_ALGORITHMS: [(sys::norm_alg_kind_t, &str); 8] = [
    (sys::norm_alg_kind_undef, "undef"),
    (sys::norm_eltwise_relu_use_dst_for_bwd, "eltwise_relu_use_dst_for_bwd"),
    (sys::norm_eltwise_tanh_use_dst_for_bwd, "eltwise_tanh_use_dst_for_bwd"),
    (sys::norm_eltwise_elu_use_dst_for_bwd, "eltwise_elu_use_dst_for_bwd"),
    (sys::norm_eltwise_sqrt_use_dst_for_bwd, "eltwise_sqrt_use_dst_for_bwd"),
    (sys::norm_eltwise_logistic_use_dst_for_bwd, "eltwise_logistic_use_dst_for_bwd"),
    (sys::norm_eltwise_exp_use_dst_for_bwd, "eltwise_exp_use_dst_for_bwd"),
    (sys::norm_eltwise_clip_v2_use_dst_for_bwd, "eltwise_clip_v2_use_dst_for_bwd"),
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
