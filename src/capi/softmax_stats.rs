//! The attribute of softmax that oneDNN does not have: the logarithms of the sums.

use super::exported;
use super::handle::{Handle, Out};
use crate::heap::counted;
use crate::primitive::Attr;
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;

exported! {
    /// Stores the logarithm of the sum of each row.
    fn norm_primitive_attr_set_softmax_stats(
        attr: sys::norm_primitive_attr_t,
        stats_desc: sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let attr = Attr::get_mut(attr, "attr")?;
            let Some(desc) = MemoryDesc::optional_tensor(stats_desc, "stats_desc")? else {
                attr.softmax_stats = None;
                return Ok(());
            };
            desc.check_type("stats_desc", "the attribute", |t| t == DataType::F32)?;
            attr.softmax_stats = Some(counted(desc.clone())?.into());
        }
        Ok(())
    }
}

exported! {
    /// The descriptor of the logarithms.
    fn norm_primitive_attr_get_softmax_stats(
        attr: sys::const_norm_primitive_attr_t,
        stats_desc: *mut sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let stats = Attr::get(attr, "attr")?.softmax_stats.as_deref();
            Out::new(stats_desc, "stats_desc")?.set(stats.map_or(std::ptr::null(), MemoryDesc::lend));
        }
        Ok(())
    }
}
