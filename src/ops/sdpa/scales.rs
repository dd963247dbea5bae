//! The scales of quantized keys and values.

use super::problem::Sdpa;
use norm_sys as sys;

/// The location of the scale of a key or value.
#[derive(Clone, Copy)]
pub(super) struct ScalePlaces {
    pub(super) id: i32,
    /// The strides of sequences or pages, of heads and of keys; 0 where a scale is shared.
    pub(super) strides: [usize; 3],
}

impl ScalePlaces {
    /// The scales of a tensor whose keys are dimension `keys`; `None` if it has none.
    pub(super) fn new(problem: &Sdpa, tensor: i32, keys: usize) -> Option<Self> {
        let id = sys::NORM_ARG_ATTR_SCALES | tensor;
        let desc = problem.desc(id);
        let stride =
            |dim: usize| if desc.dims()[dim] == 1 { 0 } else { desc.strides()[dim] as usize };
        (desc.ndims() > 0).then(|| Self { id, strides: [stride(0), stride(1), stride(keys)] })
    }
}

/// The scales of a block's keys and values, one each, from the block's first; null without scales.
#[derive(Clone, Copy)]
pub(super) struct Scales {
    pub(super) keys: *const f32,
    pub(super) values: *const f32,
}

impl Scales {
    pub(super) const NONE: Self = Self { keys: std::ptr::null(), values: std::ptr::null() };
}
