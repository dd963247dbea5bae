//! The attributes that are scales and zero points.

use super::convert::data_type;
use super::exported;
use super::handle::{Handle, slice};
use crate::error::{Error, Result};
use crate::primitive::{Attr, Quantized};
use crate::tensor::DataType;
use norm_sys as sys;
use std::ffi::c_int;

/// What the functions are given for one argument.
struct Parameters<'a> {
    arg: c_int,
    mask: c_int,
    data_type: sys::norm_data_type_t,
    groups: &'a [i64],
    is_on_host: bool,
}

impl Parameters<'_> {
    fn check(&self, types: &[DataType], what: &str) -> Result<Quantized> {
        let Ok(mask) = u32::try_from(self.mask) else {
            return Err(Error::invalid(format!("mask: {} is negative", self.mask)));
        };
        let data_type = data_type(self.data_type, "data_type")?;
        if !types.contains(&data_type) {
            let name = data_type.name();
            return Err(Error::invalid(format!("data_type: {what} are not {name}")));
        }
        if let Some(group) = self.groups.iter().find(|group| **group <= 0) {
            return Err(Error::invalid(format!("group_dims: {group} is not above 0")));
        }
        if !self.groups.is_empty() {
            if mask == 0 {
                return Err(Error::invalid("mask: groups need a dimension that they divide"));
            }
            return Err(Error::unimplemented(format!(
                "group_ndims: groups of {what} are not built"
            )));
        }
        if self.is_on_host {
            if mask != 0 {
                return Err(Error::invalid("mask: there is one value on the host, for mask 0"));
            }
            return Err(Error::unimplemented(format!(
                "is_on_host: {what} are arguments of the execution"
            )));
        }
        Ok(Quantized { mask, data_type })
    }
}

/// # Safety
/// `group_dims` is NULL or has as many elements.
unsafe fn groups<'a>(group_ndims: c_int, group_dims: *const i64) -> Result<&'a [i64]> {
    let len = usize::try_from(group_ndims)
        .ok()
        .filter(|n| *n <= sys::NORM_MAX_NDIMS as usize)
        .ok_or_else(|| Error::invalid(format!("group_ndims: {group_ndims} is out of range")))?;
    // SAFETY: the caller's.
    unsafe { slice(group_dims, len, "group_dims") }
}

/// # Safety
/// `attr` is NULL or a live handle.
unsafe fn set_scales(attr: sys::norm_primitive_attr_t, p: &Parameters<'_>) -> Result<()> {
    const TYPES: &[DataType] =
        &[DataType::F32, DataType::Bf16, DataType::F16, DataType::F8E5m2, DataType::F8E4m3];
    // SAFETY: the caller's.
    let attr = unsafe { Attr::get_mut(attr, "attr") }?;
    let args = [
        sys::NORM_ARG_SRC,
        sys::NORM_ARG_SRC_1,
        sys::NORM_ARG_SRC_2,
        sys::NORM_ARG_WEIGHTS,
        sys::NORM_ARG_DST,
    ];
    if !args.contains(&p.arg) {
        return Err(Error::invalid(format!("arg: {} is not one that has a scale", p.arg)));
    }
    attr.scales.set(p.arg, p.check(TYPES, "scales")?);
    Ok(())
}

/// # Safety
/// `attr` is NULL or a live handle.
unsafe fn set_zero_points(attr: sys::norm_primitive_attr_t, p: &Parameters<'_>) -> Result<()> {
    const TYPES: &[DataType] = &[DataType::S32, DataType::S8, DataType::U8];
    // SAFETY: the caller's.
    let attr = unsafe { Attr::get_mut(attr, "attr") }?;
    let inputs = [sys::NORM_ARG_SRC, sys::NORM_ARG_WEIGHTS];
    if !inputs.contains(&p.arg) && ![sys::NORM_ARG_SRC_2, sys::NORM_ARG_DST].contains(&p.arg) {
        return Err(Error::invalid(format!("arg: {} is not one that has a zero point", p.arg)));
    }
    let quantized = p.check(TYPES, "zero points")?;
    if !inputs.contains(&p.arg) && quantized.data_type != DataType::S32 {
        return Err(Error::invalid("data_type: zero points other than of inputs are s32"));
    }
    attr.zero_points.set(p.arg, quantized);
    Ok(())
}

exported! {
    /// Scales in f32.
    fn norm_primitive_attr_set_scales_mask(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
    ) {
        let (data_type, groups, is_on_host) = (sys::norm_f32, &[][..], false);
        // SAFETY: the caller's.
        unsafe { set_scales(attr, &Parameters { arg, mask, data_type, groups, is_on_host }) }
    }
}

exported! {
    /// Scales of a type.
    fn norm_primitive_attr_set_scales(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        group_ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let groups = groups(group_ndims, group_dims)?;
            let is_on_host = false;
            set_scales(attr, &Parameters { arg, mask, data_type, groups, is_on_host })
        }
    }
}

exported! {
    /// Scales, as an argument or from the host.
    fn norm_primitive_attr_set_scales_v2(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
        is_on_host: c_int,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let (groups, is_on_host) = (groups(ndims, group_dims)?, is_on_host != 0);
            set_scales(attr, &Parameters { arg, mask, data_type, groups, is_on_host })
        }
    }
}

exported! {
    /// Scales, given or taken from the data.
    fn norm_primitive_attr_set_scales_v3(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
        is_on_host: c_int,
        qmode: sys::norm_quantization_mode_t,
    ) {
        match qmode {
            sys::norm_quantization_mode_static_sazp => (),
            sys::norm_quantization_mode_dynamic_mx | sys::norm_quantization_mode_dynamic_fp => {
                return Err(Error::unimplemented("qmode: scales taken from the data are not built"));
            }
            _ => {
                let qmode = qmode as i32;
                return Err(Error::invalid(format!("qmode: {qmode} is not a quantization mode")));
            }
        }
        // SAFETY: the caller's.
        unsafe {
            let (groups, is_on_host) = (groups(ndims, group_dims)?, is_on_host != 0);
            set_scales(attr, &Parameters { arg, mask, data_type, groups, is_on_host })
        }
    }
}

exported! {
    /// Zero points in s32.
    fn norm_primitive_attr_set_zero_points_mask(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
    ) {
        let (data_type, groups, is_on_host) = (sys::norm_s32, &[][..], false);
        // SAFETY: the caller's.
        unsafe { set_zero_points(attr, &Parameters { arg, mask, data_type, groups, is_on_host }) }
    }
}

exported! {
    /// Zero points of a type.
    fn norm_primitive_attr_set_zero_points(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        group_ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let groups = groups(group_ndims, group_dims)?;
            let is_on_host = false;
            set_zero_points(attr, &Parameters { arg, mask, data_type, groups, is_on_host })
        }
    }
}

exported! {
    /// Zero points, as an argument or from the host.
    fn norm_primitive_attr_set_zero_points_v2(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
        is_on_host: c_int,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let (groups, is_on_host) = (groups(ndims, group_dims)?, is_on_host != 0);
            set_zero_points(attr, &Parameters { arg, mask, data_type, groups, is_on_host })
        }
    }
}
