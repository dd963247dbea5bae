//! Scales and zero points of attributes.

use super::convert::data_type;
use super::exported;
use super::handle::{Handle, slice};
use crate::error::{Error, Result};
use crate::primitive::{Attr, QuantizationMode, Quantized};
use crate::tensor::{DataType, Support};
use norm_sys as sys;
use std::ffi::c_int;

/// The kind of quantization values.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Scales,
    ZeroPoints,
}

/// The arguments of a setter.
struct Parameters {
    arg: c_int,
    mask: c_int,
    group_ndims: c_int,
    group_dims: *const i64,
    data_type: sys::norm_data_type_t,
    is_on_host: c_int,
    mode: QuantizationMode,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Scales => "scales",
            Self::ZeroPoints => "zero points",
        }
    }

    fn check_argument(self, arg: c_int) -> Result<()> {
        let common =
            [sys::NORM_ARG_SRC, sys::NORM_ARG_SRC_2, sys::NORM_ARG_WEIGHTS, sys::NORM_ARG_DST];
        let fits = common.contains(&arg) || (self == Self::Scales && arg == sys::NORM_ARG_SRC_1);
        if fits || (cfg!(feature = "onednn-abi") && self.is_of_other_operations(arg)) {
            return Ok(());
        }
        let what = self.name();
        Err(Error::invalid(format_args!(
            "arg: {arg} cannot have {what}; NORM_ARG_SRC, NORM_ARG_DST and NORM_ARG_WEIGHTS can"
        )))
    }

    /// Whether the argument belongs to operations of oneDNN that this library lacks: further weights, one of several
    /// sources, or dst, weights and src of a depthwise post-operation. Descriptors of primitives refuse it.
    fn is_of_other_operations(self, arg: c_int) -> bool {
        const DEPTHWISE: c_int = 0x4000;
        let weights = [sys::NORM_ARG_WEIGHTS + 1, sys::NORM_ARG_WEIGHTS + 2].contains(&arg);
        let one_of_sources = (1024..2048).contains(&arg);
        let depthwise = [sys::NORM_ARG_SRC, sys::NORM_ARG_DST, sys::NORM_ARG_WEIGHTS]
            .map(|arg| arg | DEPTHWISE);
        weights || (self == Self::Scales && (one_of_sources || depthwise.contains(&arg)))
    }

    fn check_type(self, arg: c_int, data_type: DataType) -> Result<()> {
        let fits = match self {
            Self::Scales => !data_type.is_integer() && data_type.support() != Support::Wide,
            Self::ZeroPoints => data_type.is_integer() && data_type != DataType::S64,
        };
        if !fits {
            let (what, name) = (self.name(), data_type.name());
            return Err(Error::invalid(format_args!("data_type: {what} cannot be {name}")));
        }
        let is_input = [sys::NORM_ARG_SRC, sys::NORM_ARG_WEIGHTS].contains(&arg);
        if self == Self::ZeroPoints && !is_input && data_type != DataType::S32 {
            return Err(Error::invalid("data_type: zero points of this argument must be s32"));
        }
        Ok(())
    }
}

impl Parameters {
    /// Values in the default data type, without groups.
    fn plain(arg: c_int, mask: c_int, data_type: sys::norm_data_type_t) -> Self {
        Self {
            arg,
            mask,
            group_ndims: 0,
            group_dims: std::ptr::null(),
            data_type,
            is_on_host: 0,
            mode: QuantizationMode::Static,
        }
    }

    /// # Safety
    /// `group_dims` is NULL or has `group_ndims` elements.
    unsafe fn checked(&self, kind: Kind) -> Result<Quantized> {
        let ndims = self.group_ndims;
        let len = usize::try_from(ndims).ok().filter(|n| [0, 2].contains(n)).ok_or_else(|| {
            Error::invalid(format_args!("group_ndims: {ndims} is neither 0 nor 2"))
        })?;
        // SAFETY: guaranteed by the caller.
        let groups = unsafe { slice(self.group_dims, len, "group_dims") }?;
        kind.check_argument(self.arg)?;
        let Ok(mask) = u32::try_from(self.mask) else {
            return Err(Error::invalid(format_args!("mask: {} is negative", self.mask)));
        };
        let data_type = data_type(self.data_type, "data_type")?;
        kind.check_type(self.arg, data_type)?;
        if let Some(group) = groups.iter().find(|group| **group <= 0) {
            return Err(Error::invalid(format_args!("group_dims: {group} is not positive")));
        }
        let what = kind.name();
        if !groups.is_empty() && mask == 0 {
            return Err(Error::invalid(
                "mask: groups need a mask with the dimensions that they divide",
            ));
        }
        if self.is_on_host != 0 {
            if mask != 0 {
                return Err(Error::invalid("mask: a value on the host needs mask 0"));
            }
            if self.mode != QuantizationMode::Static {
                return Err(Error::invalid(format_args!(
                    "is_on_host: computed {what} cannot be host scalars"
                )));
            }
        }
        let group = match groups {
            [others @ .., last] if others.iter().all(|group| *group == 1) => Some(*last),
            _ => None,
        };
        let (has_groups, mode) = (!groups.is_empty(), self.mode);
        let on_host = self.is_on_host != 0;
        Ok(Quantized { mask, data_type, has_groups, group, mode, on_host })
    }
}

/// # Safety
/// `attr` is NULL or a live handle. The group dimensions are NULL or `group_ndims` elements.
unsafe fn set(attr: sys::norm_primitive_attr_t, kind: Kind, given: &Parameters) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (attr, quantized) = unsafe { (Attr::get_mut(attr, "attr")?, given.checked(kind)?) };
    match kind {
        Kind::Scales => attr.scales.set(given.arg, quantized),
        Kind::ZeroPoints => attr.zero_points.set(given.arg, quantized),
    }
}

exported! {
    /// Sets scales in f32.
    fn norm_primitive_attr_set_scales_mask as dnnl_primitive_attr_set_scales_mask(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { set(attr, Kind::Scales, &Parameters::plain(arg, mask, sys::norm_f32)) }
    }
}

exported! {
    /// Sets scales of a data type.
    fn norm_primitive_attr_set_scales as dnnl_primitive_attr_set_scales(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        group_ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
    ) {
        let given = Parameters { arg, mask, group_ndims, group_dims, data_type, is_on_host: 0, mode: QuantizationMode::Static };
        // SAFETY: guaranteed by the caller.
        unsafe { set(attr, Kind::Scales, &given) }
    }
}

exported! {
    /// Sets scales that are execution arguments or on the host.
    fn norm_primitive_attr_set_scales_v2 as dnnl_primitive_attr_set_scales_v2(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
        is_on_host: c_int,
    ) {
        let given =
            Parameters { arg, mask, group_ndims: ndims, group_dims, data_type, is_on_host, mode: QuantizationMode::Static };
        // SAFETY: guaranteed by the caller.
        unsafe { set(attr, Kind::Scales, &given) }
    }
}

exported! {
    /// Sets scales that are static or computed from the data.
    fn norm_primitive_attr_set_scales_v3 as dnnl_primitive_attr_set_scales_v3(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
        is_on_host: c_int,
        qmode: sys::norm_quantization_mode_t,
    ) {
        let mode = match qmode {
            sys::norm_quantization_mode_static_sazp => QuantizationMode::Static,
            sys::norm_quantization_mode_dynamic_mx => QuantizationMode::DynamicMx,
            sys::norm_quantization_mode_dynamic_fp => QuantizationMode::DynamicFp,
            _ => {
                let qmode = qmode as i32;
                return Err(Error::invalid(format_args!("qmode: {qmode} is not a quantization mode")));
            }
        };
        let given =
            Parameters { arg, mask, group_ndims: ndims, group_dims, data_type, is_on_host, mode };
        // SAFETY: guaranteed by the caller.
        unsafe { set(attr, Kind::Scales, &given) }
    }
}

exported! {
    /// Sets zero points in s32.
    fn norm_primitive_attr_set_zero_points_mask as dnnl_primitive_attr_set_zero_points_mask(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { set(attr, Kind::ZeroPoints, &Parameters::plain(arg, mask, sys::norm_s32)) }
    }
}

exported! {
    /// Sets zero points of a data type.
    fn norm_primitive_attr_set_zero_points as dnnl_primitive_attr_set_zero_points(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        group_ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
    ) {
        let given = Parameters { arg, mask, group_ndims, group_dims, data_type, is_on_host: 0, mode: QuantizationMode::Static };
        // SAFETY: guaranteed by the caller.
        unsafe { set(attr, Kind::ZeroPoints, &given) }
    }
}

exported! {
    /// Sets zero points that are execution arguments or on the host.
    fn norm_primitive_attr_set_zero_points_v2 as dnnl_primitive_attr_set_zero_points_v2(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mask: c_int,
        ndims: c_int,
        group_dims: *const i64,
        data_type: sys::norm_data_type_t,
        is_on_host: c_int,
    ) {
        let given =
            Parameters { arg, mask, group_ndims: ndims, group_dims, data_type, is_on_host, mode: QuantizationMode::Static };
        // SAFETY: guaranteed by the caller.
        unsafe { set(attr, Kind::ZeroPoints, &given) }
    }
}
