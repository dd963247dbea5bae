//! Enumerators that arrive from C as integers, and the names of those that can be printed.

use super::exported;
use crate::error::{Error, Result};
use crate::primitive::{CpuIsa, PropKind};
use crate::tensor::{DataType, letters_of};
use norm_sys as sys;
use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A data type that has elements.
pub(super) fn data_type(value: sys::norm_data_type_t, name: &str) -> Result<DataType> {
    Ok(match value {
        sys::norm_f16 => DataType::F16,
        sys::norm_bf16 => DataType::Bf16,
        sys::norm_f32 => DataType::F32,
        sys::norm_s32 => DataType::S32,
        sys::norm_s8 => DataType::S8,
        sys::norm_u8 => DataType::U8,
        sys::norm_f64 => DataType::F64,
        _ => {
            let value = value as i32;
            return Err(Error::invalid(format!(
                "{name}: {value} is not a data type with elements"
            )));
        }
    })
}

/// The C value of an optional data type.
pub(super) fn data_type_code(data_type: Option<DataType>) -> sys::norm_data_type_t {
    match data_type {
        None => sys::norm_data_type_undef,
        Some(DataType::F16) => sys::norm_f16,
        Some(DataType::Bf16) => sys::norm_bf16,
        Some(DataType::F32) => sys::norm_f32,
        Some(DataType::S32) => sys::norm_s32,
        Some(DataType::S8) => sys::norm_s8,
        Some(DataType::U8) => sys::norm_u8,
        Some(DataType::F64) => sys::norm_f64,
    }
}

pub(super) fn prop_kind(value: sys::norm_prop_kind_t) -> Result<PropKind> {
    Ok(match value {
        sys::norm_forward_training => PropKind::ForwardTraining,
        sys::norm_forward_inference => PropKind::ForwardInference,
        sys::norm_backward => PropKind::Backward,
        sys::norm_backward_data => PropKind::BackwardData,
        _ => {
            let value = value as i32;
            return Err(Error::invalid(format!(
                "prop_kind: {value} is none of forward_training, forward_inference, backward and \
                 backward_data"
            )));
        }
    })
}

pub(super) fn prop_kind_code(prop_kind: PropKind) -> sys::norm_prop_kind_t {
    match prop_kind {
        PropKind::ForwardTraining => sys::norm_forward_training,
        PropKind::ForwardInference => sys::norm_forward_inference,
        PropKind::Backward => sys::norm_backward,
        PropKind::BackwardData => sys::norm_backward_data,
    }
}

/// NUL-terminated copies of static names, made on first use; C strings for every name would stand twice.
/// Nobody waits for who makes them: after fork() it may not be there. Of two that come at once, one
/// throws its copies away.
pub(super) struct Names<K>(AtomicPtr<Vec<(K, CString)>>);

impl<K: Copy + PartialEq> Names<K> {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The name of `key`, which lives as long as the process.
    pub(super) fn get<N: Into<Vec<u8>>>(
        &'static self,
        key: K,
        names: impl FnOnce() -> Vec<(K, N)>,
    ) -> Option<*const c_char> {
        let mut all = self.0.load(Ordering::Acquire);
        if all.is_null() {
            let c_string = |name: N| CString::new(name).unwrap_or_default();
            let copies = names().into_iter().map(|(key, name)| (key, c_string(name))).collect();
            all = self.keep_first(copies);
        }
        // SAFETY: what was kept is never freed.
        let all = unsafe { &*all };
        all.iter().find(|(k, _)| *k == key).map(|(_, name)| name.as_ptr())
    }

    fn keep_first(&self, copies: Vec<(K, CString)>) -> *mut Vec<(K, CString)> {
        let (none, mine) = (std::ptr::null_mut(), Box::into_raw(Box::new(copies)));
        match self.0.compare_exchange(none, mine, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => mine,
            Err(first) => {
                // SAFETY: nobody else has seen these.
                drop(unsafe { Box::from_raw(mine) });
                first
            }
        }
    }
}

exported! {
    /// Bytes per element.
    fn norm_data_type_size as dnnl_data_type_size(data_type_value: sys::norm_data_type_t) -> usize, else 0; {
        Ok(data_type(data_type_value, "data_type").map_or(0, DataType::size))
    }
}

exported! {
    /// The name of a data type.
    fn norm_dt2str as dnnl_dt2str(data_type_value: sys::norm_data_type_t) -> *const c_char,
        else c"unknown data type".as_ptr(); {
        static NAMES: Names<sys::norm_data_type_t> = Names::new();
        let found = NAMES.get(data_type_value, || {
            let types = (0..=sys::norm_f64).filter_map(|v| Some((v, data_type(v, "").ok()?)));
            types.map(|(v, t)| (v, t.name())).chain([(0, "undef")]).collect()
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
            let tags = (0..=sys::norm_dabc).filter_map(|v| Some((v, letters_of(v)?)));
            tags.chain([(sys::norm_format_tag_undef, "undef"), (sys::norm_format_tag_any, "any")])
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
            let undef = (sys::norm_prop_kind_undef, "undef");
            kinds.map(|k| (prop_kind_code(k), k.name())).into_iter().chain([undef]).collect()
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
