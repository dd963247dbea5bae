//! The attributes of normalizations that oneDNN does not have: residual, gate, partial norm.

use super::exported;
use super::handle::{Handle, Out, put_optional};
use crate::error::{Error, Result};
use crate::heap::counted;
use crate::primitive::{Attr, EltwiseAlgorithm, Gate, Residual, ResidualRounding, check_tensor};
use crate::tensor::MemoryDesc;
use norm_sys as sys;

/// A descriptor that is not empty; `None` for NULL.
///
/// # Safety
/// `desc` is NULL or a live handle.
unsafe fn given(desc: sys::const_norm_memory_desc_t, name: &str) -> Result<Option<MemoryDesc>> {
    // SAFETY: guaranteed by the caller.
    let Some(desc) = (unsafe { MemoryDesc::optional_tensor(desc, name) })? else { return Ok(None) };
    check_tensor(name, desc)?;
    Ok(Some(desc.clone()))
}

/// The handle of a descriptor that an attribute owns, or NULL.
fn lent(desc: Option<&MemoryDesc>) -> sys::const_norm_memory_desc_t {
    desc.map_or(std::ptr::null(), MemoryDesc::lend)
}

exported! {
    /// Adds a tensor to src before the normalization.
    fn norm_primitive_attr_set_residual(
        attr: sys::norm_primitive_attr_t,
        residual_desc: sys::const_norm_memory_desc_t,
        sum_desc: sys::const_norm_memory_desc_t,
        rounding: sys::norm_residual_rounding_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get_mut(attr, "attr")?;
            let desc = given(residual_desc, "residual_desc")?;
            let sum = given(sum_desc, "sum_desc")?;
            let rounding = ResidualRounding::given(rounding, "rounding")?;
            attr.around.residual = match desc {
                None if sum.is_some() => {
                    return Err(Error::invalid("residual_desc: NULL, but sum_desc is not: it is the sum with a residual"));
                }
                Some(desc) => Some(counted(Residual { desc, sum, rounding })?.into()),
                None => None,
            };
        }
        Ok(())
    }
}

exported! {
    /// The tensor that is added to src.
    fn norm_primitive_attr_get_residual(
        attr: sys::const_norm_primitive_attr_t,
        residual_desc: *mut sys::const_norm_memory_desc_t,
        sum_desc: *mut sys::const_norm_memory_desc_t,
        rounding: *mut sys::norm_residual_rounding_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let residual = Attr::get(attr, "attr")?.around.residual.as_ref();
            put_optional(residual_desc, lent(residual.map(|residual| &residual.desc)));
            put_optional(sum_desc, lent(residual.and_then(|residual| residual.sum.as_ref())));
            let its_rounding = residual.map_or(ResidualRounding::Rounded, |residual| residual.rounding);
            put_optional(rounding, its_rounding.code());
        }
        Ok(())
    }
}

exported! {
    /// Multiplies by a function of a tensor.
    fn norm_primitive_attr_set_gate(
        attr: sys::norm_primitive_attr_t,
        gate_desc: sys::const_norm_memory_desc_t,
        alg_kind: sys::norm_alg_kind_t,
        alpha: f32,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get_mut(attr, "attr")?;
            let Some(desc) = given(gate_desc, "gate_desc")? else {
                attr.around.gate = None;
                return Ok(());
            };
            let usual = |a: &EltwiseAlgorithm| matches!(a, EltwiseAlgorithm::Swish | EltwiseAlgorithm::Logistic);
            let Some(algorithm) = EltwiseAlgorithm::of_code(alg_kind).filter(usual) else {
                let alg_kind = alg_kind as i32;
                return Err(Error::invalid(format_args!(
                    "alg_kind: {alg_kind} is neither norm_eltwise_swish nor norm_eltwise_logistic"
                )));
            };
            if !alpha.is_finite() {
                return Err(Error::invalid(format_args!("alpha: {alpha} is not finite")));
            }
            attr.around.gate = Some(counted(Gate { desc, algorithm, alpha })?.into());
        }
        Ok(())
    }
}

exported! {
    /// The tensor of the gate.
    fn norm_primitive_attr_get_gate(
        attr: sys::const_norm_primitive_attr_t,
        gate_desc: *mut sys::const_norm_memory_desc_t,
        alg_kind: *mut sys::norm_alg_kind_t,
        alpha: *mut f32,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let gate = Attr::get(attr, "attr")?.around.gate.as_ref();
            put_optional(gate_desc, lent(gate.map(|gate| &gate.desc)));
            put_optional(alg_kind, gate.map_or(sys::norm_alg_kind_undef, |gate| gate.algorithm.code()));
            put_optional(alpha, gate.map_or(0.0, |gate| gate.alpha));
        }
        Ok(())
    }
}

exported! {
    /// Limits the mean square to the first elements of each row.
    fn norm_primitive_attr_set_partial_norm(attr: sys::norm_primitive_attr_t, elements: i64) {
        // SAFETY: guaranteed by the caller.
        let attr = unsafe { Attr::get_mut(attr, "attr") }?;
        if elements < 0 {
            return Err(Error::invalid(format_args!("elements: {elements} is negative")));
        }
        attr.around.partial = (elements > 0).then_some(elements);
        Ok(())
    }
}

exported! {
    /// The number of a row's elements in the mean square; 0 for all.
    fn norm_primitive_attr_get_partial_norm(
        attr: sys::const_norm_primitive_attr_t,
        elements: *mut i64,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get(attr, "attr")?;
            Out::new(elements, "elements")?.set(attr.around.partial.unwrap_or(0));
        }
        Ok(())
    }
}
