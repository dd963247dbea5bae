//! Primitive attributes.

use super::exported;
use super::handle::{Handle, Out, put_optional};
use crate::error::Result;
use crate::primitive::{AccumulationMode, Attr, FpmathMode, PostOps, RoundingMode, ScratchpadMode};
use norm_sys as sys;
use std::ffi::c_int;

exported! {
    /// Attributes with default values.
    fn norm_primitive_attr_create as dnnl_primitive_attr_create(attr: *mut sys::norm_primitive_attr_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { Out::new(attr, "attr") }?.set(Attr::default().into_c()?);
        Ok(())
    }
}

exported! {
    /// A copy of attributes.
    fn norm_primitive_attr_clone as dnnl_primitive_attr_clone(
        attr: *mut sys::norm_primitive_attr_t,
        existing_attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = Out::new(attr, "attr")?;
            out.set(Attr::get(existing_attr, "existing_attr")?.try_clone()?.into_c()?);
        }
        Ok(())
    }
}

exported! {
    /// Frees attributes.
    fn norm_primitive_attr_destroy as dnnl_primitive_attr_destroy(attr: sys::norm_primitive_attr_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { Attr::destroy(attr, "attr") }
    }
}

exported! {
    /// Who provides the scratchpad.
    fn norm_primitive_attr_get_scratchpad_mode as dnnl_primitive_attr_get_scratchpad_mode(
        attr: sys::const_norm_primitive_attr_t,
        mode: *mut sys::norm_scratchpad_mode_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get(attr, "attr")?;
            Out::new(mode, "mode")?.set(attr.scratchpad_mode.code());
        }
        Ok(())
    }
}

exported! {
    /// Sets who provides the scratchpad.
    fn norm_primitive_attr_set_scratchpad_mode as dnnl_primitive_attr_set_scratchpad_mode(
        attr: sys::norm_primitive_attr_t,
        mode: sys::norm_scratchpad_mode_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let attr = unsafe { Attr::get_mut(attr, "attr") }?;
        attr.scratchpad_mode = ScratchpadMode::given(mode, "mode")?;
        Ok(())
    }
}

exported! {
    /// The type of accumulators.
    fn norm_primitive_attr_get_accumulation_mode as dnnl_primitive_attr_get_accumulation_mode(
        attr: sys::const_norm_primitive_attr_t,
        mode: *mut sys::norm_accumulation_mode_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get(attr, "attr")?;
            Out::new(mode, "mode")?.set(attr.accumulation_mode.code());
        }
        Ok(())
    }
}

exported! {
    /// Sets the type of accumulators.
    fn norm_primitive_attr_set_accumulation_mode as dnnl_primitive_attr_set_accumulation_mode(
        attr: sys::norm_primitive_attr_t,
        mode: sys::norm_accumulation_mode_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let attr = unsafe { Attr::get_mut(attr, "attr") }?;
        attr.accumulation_mode = AccumulationMode::given(mode, "mode")?;
        Ok(())
    }
}

exported! {
    /// Whether f32 may be computed in a narrower type.
    fn norm_primitive_attr_get_fpmath_mode as dnnl_primitive_attr_get_fpmath_mode(
        attr: sys::const_norm_primitive_attr_t,
        mode: *mut sys::norm_fpmath_mode_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get(attr, "attr")?;
            Out::new(mode, "mode")?.set(attr.fpmath_mode.code());
        }
        Ok(())
    }
}

exported! {
    /// The same, with whether it applies to integers.
    fn norm_primitive_attr_get_fpmath_mode_v2 as dnnl_primitive_attr_get_fpmath_mode_v2(
        attr: sys::const_norm_primitive_attr_t,
        mode: *mut sys::norm_fpmath_mode_t,
        apply_to_int: *mut c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get(attr, "attr")?;
            put_optional(mode, attr.fpmath_mode.code());
            put_optional(apply_to_int, c_int::from(attr.fpmath_applies_to_int));
        }
        Ok(())
    }
}

exported! {
    /// Allows a narrower type.
    fn norm_primitive_attr_set_fpmath_mode as dnnl_primitive_attr_set_fpmath_mode(
        attr: sys::norm_primitive_attr_t,
        mode: sys::norm_fpmath_mode_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { set_fpmath_mode(attr, mode, false) }
    }
}

exported! {
    /// The same, optionally for integers too.
    fn norm_primitive_attr_set_fpmath_mode_v2 as dnnl_primitive_attr_set_fpmath_mode_v2(
        attr: sys::norm_primitive_attr_t,
        mode: sys::norm_fpmath_mode_t,
        apply_to_int: c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { set_fpmath_mode(attr, mode, apply_to_int != 0) }
    }
}

/// # Safety
/// `attr` is NULL or a live handle.
unsafe fn set_fpmath_mode(
    attr: sys::norm_primitive_attr_t,
    mode: sys::norm_fpmath_mode_t,
    apply_to_int: bool,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let attr = unsafe { Attr::get_mut(attr, "attr") }?;
    attr.fpmath_mode = FpmathMode::given(mode, "mode")?;
    attr.fpmath_applies_to_int = apply_to_int;
    Ok(())
}

exported! {
    /// Whether determinism was requested.
    fn norm_primitive_attr_get_deterministic as dnnl_primitive_attr_get_deterministic(
        attr: sys::const_norm_primitive_attr_t,
        value: *mut c_int,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get(attr, "attr")?;
            Out::new(value, "value")?.set(attr.deterministic);
        }
        Ok(())
    }
}

exported! {
    /// Requests determinism.
    fn norm_primitive_attr_set_deterministic as dnnl_primitive_attr_set_deterministic(attr: sys::norm_primitive_attr_t, value: c_int) {
        // SAFETY: guaranteed by the caller.
        unsafe { Attr::get_mut(attr, "attr") }?.deterministic = c_int::from(value != 0);
        Ok(())
    }
}

exported! {
    /// The rounding mode of an argument.
    fn norm_primitive_attr_get_rounding as dnnl_primitive_attr_get_rounding(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mode: *mut sys::norm_rounding_mode_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get(attr, "attr")?;
            Out::new(mode, "mode")?.set(attr.rounding_of(arg).code());
        }
        Ok(())
    }
}

exported! {
    /// Sets the rounding mode of an argument.
    fn norm_primitive_attr_set_rounding as dnnl_primitive_attr_set_rounding(
        attr: sys::norm_primitive_attr_t,
        arg: c_int,
        mode: sys::norm_rounding_mode_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let attr = unsafe { Attr::get_mut(attr, "attr") }?;
        let mode = RoundingMode::given(mode, "mode")?;
        attr.set_rounding(arg, mode)
    }
}

exported! {
    /// The post-operations.
    fn norm_primitive_attr_get_post_ops as dnnl_primitive_attr_get_post_ops(
        attr: sys::const_norm_primitive_attr_t,
        post_ops: *mut sys::const_norm_post_ops_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get(attr, "attr")?;
            Out::new(post_ops, "post_ops")?.set(attr.post_ops.lend());
        }
        Ok(())
    }
}

exported! {
    /// Replaces the post-operations.
    fn norm_primitive_attr_set_post_ops as dnnl_primitive_attr_set_post_ops(
        attr: sys::norm_primitive_attr_t,
        post_ops: sys::const_norm_post_ops_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get_mut(attr, "attr")?;
            // Clone first: the list may be the one that is replaced.
            attr.post_ops = PostOps::get(post_ops, "post_ops")?.try_clone()?;
        }
        Ok(())
    }
}
