//! Scales and zero points of dst that are computed from its elements.

use super::{Attr, QuantizationMode, Quantized};
use crate::error::{Error, Result};
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;

/// The types for which scales are computed.
const QUANTIZED: [DataType; 4] = [DataType::S8, DataType::U8, DataType::F8E4m3, DataType::F8E5m2];
/// The elements that share a scale with `dynamic_mx`.
const MX_GROUP: i64 = 32;

/// Checks the scales and zero points of dst that are computed or have groups. Returns the attributes with zero points
/// that are outputs marked as such. `what` names the operation.
pub(crate) fn checked_quantization(what: &str, attr: Attr, dst: &MemoryDesc) -> Result<Attr> {
    const DST: i32 = sys::NORM_ARG_DST;
    let zero_points = attr.zero_points.get(DST);
    let scales = attr.scales.get(DST).filter(|scales| scales.is_dynamic() || scales.has_groups);
    let Some(scales) = scales else {
        return match zero_points {
            None => Ok(attr),
            Some(_) => Err(Error::unimplemented(format_args!(
                "attr: {what} supports a zero point for DST only with dynamic scales"
            ))),
        };
    };
    if !scales.is_dynamic() {
        return Err(Error::unimplemented(format_args!(
            "attr: {what} does not support a scale per group for DST unless it is dynamic"
        )));
    }
    check_groups("scales", &scales, dst)?;
    let dst_type = dst.data_type().unwrap_or(DataType::F32);
    if !QUANTIZED.contains(&dst_type) {
        return Err(Error::unimplemented(format_args!(
            "dst_desc: dynamic scales are computed for s8, u8, f8_e4m3 and f8_e5m2, not {}",
            dst_type.name()
        )));
    }
    let is_f8 = matches!(dst_type, DataType::F8E4m3 | DataType::F8E5m2);
    match (scales.mode, scales.data_type) {
        (QuantizationMode::DynamicMx, DataType::E8m0)
            if is_f8 && scales.group == Some(MX_GROUP) => {}
        (QuantizationMode::DynamicFp, DataType::F32 | DataType::F8E4m3) => {}
        (QuantizationMode::DynamicMx, _) => {
            return Err(Error::unimplemented(
                "attr: dynamic_mx scales are e8m0, for groups of 32 elements of f8_e4m3 or f8_e5m2",
            ));
        }
        (_, other) => {
            return Err(Error::unimplemented(format_args!(
                "attr: dynamic_fp scales are f32 or f8_e4m3, not {}",
                other.name()
            )));
        }
    }
    let mut attr = attr;
    if let Some(points) = zero_points {
        if dst_type != DataType::U8 {
            return Err(Error::unimplemented(
                "attr: zero points of DST are computed for u8; other types are symmetric",
            ));
        }
        if (points.mask, points.group) != (scales.mask, scales.group) {
            return Err(Error::invalid(
                "attr: the zero points of DST need the mask and groups of its scales",
            ));
        }
        attr.zero_points.set(DST, Quantized { mode: scales.mode, ..points })?;
    }
    Ok(attr)
}

/// Groups lie along rows and divide them.
fn check_groups(what: &str, quantized: &Quantized, dst: &MemoryDesc) -> Result<()> {
    let all = (1u32 << dst.ndims()) - 1;
    let Some(group) = quantized.group.filter(|_| quantized.mask == all) else {
        return Err(Error::unimplemented(format_args!(
            "attr: dynamic {what} of DST need mask {all:#x}, every dimension, and group_dims {{1, n}}"
        )));
    };
    let cols = dst.dims().last().copied().unwrap_or(0);
    if cols % group != 0 {
        return Err(Error::invalid(format_args!(
            "attr: groups of {group} do not divide the {cols} elements of a row"
        )));
    }
    Ok(())
}
