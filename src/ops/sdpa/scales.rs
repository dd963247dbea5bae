//! The scales of quantized keys and values.

use super::inputs::Bound;
use super::problem::Sdpa;
use super::rows::runs;
use norm_sys as sys;
use std::ops::Range;

/// Where the scale of a key or value lies.
#[derive(Clone, Copy)]
pub(super) struct ScalePlaces {
    id: i32,
    /// The distances of sequences or pages, of heads and of keys; 0 where they share a scale.
    strides: [usize; 3],
}

impl ScalePlaces {
    /// Those of a tensor whose keys are dimension `keys`; `None` if it has none.
    pub(super) fn new(problem: &Sdpa, tensor: i32, keys: usize) -> Option<Self> {
        let id = sys::NORM_ARG_ATTR_SCALES | tensor;
        let desc = problem.desc(id);
        let stride =
            |dim: usize| if desc.dims()[dim] == 1 { 0 } else { desc.strides()[dim] as usize };
        (desc.ndims() > 0).then(|| Self { id, strides: [stride(0), stride(1), stride(keys)] })
    }
}

/// The scales of a block: a number for each key and each value, from the block's first on; null without.
#[derive(Clone, Copy)]
pub(super) struct Scales {
    pub(super) keys: *const f32,
    pub(super) values: *const f32,
}

impl Bound<'_> {
    /// Copies the scales of a range of keys; null without.
    ///
    /// # Safety
    /// The arguments were checked, the keys are within the length of the sequence, and there is room for them.
    pub(super) unsafe fn scales(
        &self,
        places: Option<ScalePlaces>,
        (sequence, group): (usize, usize),
        keys: Range<usize>,
        to: *mut f32,
    ) -> *const f32 {
        let Some(ScalePlaces { id, strides }) = places else { return std::ptr::null() };
        let start = self.arguments.get(id).cast_const().cast::<f32>();
        // SAFETY: guaranteed by the caller.
        unsafe {
            runs(&self.sequences, sequence, keys, |at, (page, rows)| {
                let start = start.wrapping_add(page * strides[0] + group * strides[1]);
                for (i, row) in rows.enumerate() {
                    to.add(at + i).write(start.wrapping_add(row * strides[2]).read_unaligned());
                }
            });
        }
        to
    }
}
