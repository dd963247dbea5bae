//! Primitive attributes.

use super::exported;
use super::handle::{Handle, Out};
use crate::error::Error;
use crate::primitive::{Attr, ScratchpadMode};
use norm_sys as sys;

exported! {
    /// Attributes with their defaults.
    fn norm_primitive_attr_create as dnnl_primitive_attr_create(attr: *mut sys::norm_primitive_attr_t) {
        // SAFETY: the caller's.
        unsafe { Out::new(attr, "attr") }?.set(Attr::default().into_c());
        Ok(())
    }
}

exported! {
    /// A copy.
    fn norm_primitive_attr_clone as dnnl_primitive_attr_clone(
        attr: *mut sys::norm_primitive_attr_t,
        existing_attr: sys::const_norm_primitive_attr_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let out = Out::new(attr, "attr")?;
            out.set(Attr::get(existing_attr, "existing_attr")?.clone().into_c());
        }
        Ok(())
    }
}

exported! {
    /// Frees attributes.
    fn norm_primitive_attr_destroy as dnnl_primitive_attr_destroy(attr: sys::norm_primitive_attr_t) {
        // SAFETY: the caller's.
        unsafe { Attr::destroy(attr) };
        Ok(())
    }
}

exported! {
    /// Who provides the scratchpad.
    fn norm_primitive_attr_get_scratchpad_mode as dnnl_primitive_attr_get_scratchpad_mode(
        attr: sys::const_norm_primitive_attr_t,
        mode: *mut sys::norm_scratchpad_mode_t,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let attr = Attr::get(attr, "attr")?;
            Out::new(mode, "mode")?.set(match attr.scratchpad_mode {
                ScratchpadMode::Library => sys::norm_scratchpad_mode_library,
                ScratchpadMode::User => sys::norm_scratchpad_mode_user,
            });
        }
        Ok(())
    }
}

exported! {
    /// Decides who provides the scratchpad.
    fn norm_primitive_attr_set_scratchpad_mode as dnnl_primitive_attr_set_scratchpad_mode(
        attr: sys::norm_primitive_attr_t,
        mode: sys::norm_scratchpad_mode_t,
    ) {
        // SAFETY: the caller's.
        let attr = unsafe { Attr::get_mut(attr, "attr") }?;
        attr.scratchpad_mode = match mode {
            sys::norm_scratchpad_mode_library => ScratchpadMode::Library,
            sys::norm_scratchpad_mode_user => ScratchpadMode::User,
            _ => {
                let mode = mode as i32;
                return Err(Error::invalid(format!("mode: {mode} is not a scratchpad mode")));
            }
        };
        Ok(())
    }
}
