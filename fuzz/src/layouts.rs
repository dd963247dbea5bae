//! Descriptors with strides.

use crate::handles::made;
use crate::source::Source;
use norm_sys as sys;

/// Strides in some order, with gaps, sometimes overlapping.
pub(crate) fn strides(source: &mut Source<'_>, dims: &[i64]) -> [i64; 13] {
    let mut strides = [0; 13];
    let mut order: Vec<usize> = (0..dims.len()).collect();
    if dims.len() > 1 && source.one_in(2) {
        order.swap(source.below(dims.len()), dims.len() - 1);
    }
    let mut stride = 1 + i64::from(source.one_in(4));
    for &d in order.iter().rev() {
        strides[d] = stride;
        stride = stride.wrapping_mul(dims[d].max(1)).wrapping_add(source.below(3) as i64);
    }
    if source.one_in(8) {
        strides[source.below(4)] = source.one_of(&[0, 1, -1, i64::MAX]);
    }
    strides
}

/// A descriptor with strides; `None` for dense ones.
pub(crate) fn described(
    dims: &[i64],
    data_type: u32,
    strides: Option<&[i64]>,
) -> Option<sys::norm_memory_desc_t> {
    let strides = strides.map_or(std::ptr::null(), <[i64]>::as_ptr);
    let (n, dims) = (dims.len() as i32, dims.as_ptr());
    made(|out| {
        // SAFETY: arrays of as many numbers.
        unsafe { sys::norm_memory_desc_create_with_strides(out, n, dims, data_type, strides) }
    })
}

/// Descriptors that are destroyed with this value.
#[derive(Default)]
pub(crate) struct Descs(Vec<sys::norm_memory_desc_t>);

impl Descs {
    /// Keeps a descriptor and returns it; NULL for none.
    pub(crate) fn keep(
        &mut self,
        desc: Option<sys::norm_memory_desc_t>,
    ) -> sys::norm_memory_desc_t {
        self.0.extend(desc);
        desc.unwrap_or(std::ptr::null_mut())
    }

    /// A tensor in a random layout, mostly dense.
    pub(crate) fn tensor(
        &mut self,
        source: &mut Source<'_>,
        dims: &[i64],
        data_type: u32,
    ) -> sys::norm_memory_desc_t {
        let strides = source.one_in(3).then(|| strides(source, dims));
        self.keep(described(dims, data_type, strides.as_ref().map(|s| &s[..dims.len()])))
    }
}

impl Drop for Descs {
    fn drop(&mut self) {
        for desc in &self.0 {
            // SAFETY: live handles that are not used again.
            unsafe { sys::norm_memory_desc_destroy(*desc) };
        }
    }
}
