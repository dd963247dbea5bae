//! Masks that are given as tensors.

use crate::simd::lanes::Lanes;
use crate::simd::{Bf16, Element, F16, F32, LANES, Simd};
use crate::tensor::DataType;
use std::ops::Range;

/// The mask of a row of scores.
#[derive(Clone, Copy)]
pub(super) struct MaskRow {
    /// The element of key 0; null without a mask.
    pub(super) start: *const u8,
    pub(super) data_type: DataType,
    /// Whether all keys share the element.
    pub(super) shared: bool,
}

impl MaskRow {
    pub(super) const NONE: Self =
        Self { start: std::ptr::null(), data_type: DataType::F32, shared: true };

    /// Applies the mask to the scores of 16 keys from `key`. Only the keys in `there` exist.
    ///
    /// # Safety
    /// The elements exist, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn applied<S: Simd>(
        &self,
        key: usize,
        there: Range<usize>,
        s: Lanes<S>,
    ) -> Lanes<S> {
        if self.start.is_null() {
            return s;
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.data_type {
                DataType::U8 => {
                    let shown = self.bytes(key, there, s);
                    shown.eq(0.0).select(f32::NEG_INFINITY, s)
                }
                DataType::Bf16 => self.added(<Bf16 as Element>::of(self.data_type), key, there, s),
                DataType::F16 => self.added(<F16 as Element>::of(self.data_type), key, there, s),
                _ => self.added(<F32 as Element>::of(self.data_type), key, there, s),
            }
        }
    }

    /// The scores with the mask added. -Inf hides a key, even if its score is NaN.
    ///
    /// # Safety
    /// As [`applied`](Self::applied).
    #[inline(always)]
    unsafe fn added<S: Simd, E: Element>(
        &self,
        element: E,
        key: usize,
        there: Range<usize>,
        s: Lanes<S>,
    ) -> Lanes<S> {
        // SAFETY: guaranteed by the caller.
        let mask: Lanes<S> = unsafe { self.lanes(element, key, there) };
        mask.eq(f32::NEG_INFINITY).select(mask, s + mask)
    }

    /// # Safety
    /// As [`applied`](Self::applied).
    #[inline(always)]
    unsafe fn lanes<S: Simd, E: Element>(
        &self,
        element: E,
        key: usize,
        there: Range<usize>,
    ) -> Lanes<S> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.shared {
                let first = Lanes::<S>::new(element.load_n::<S>(self.start, 0, 1));
                let mut value = [0.0; LANES];
                first.store(value.as_mut_ptr(), LANES);
                return first.all(value[0]);
            }
            if there.len() == LANES {
                return Lanes::new(element.load::<S>(self.start, key));
            }
            let mut values = [0.0f32; LANES];
            let from = there.start - key;
            let loaded = Lanes::<S>::new(element.load_n::<S>(self.start, there.start, there.len()));
            loaded.store(values.as_mut_ptr().add(from), there.len());
            Lanes::load(values.as_ptr(), LANES)
        }
    }

    /// # Safety
    /// As [`applied`](Self::applied).
    #[inline(always)]
    unsafe fn bytes<S: Simd>(&self, key: usize, there: Range<usize>, s: Lanes<S>) -> Lanes<S> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.shared {
                return s.all(f32::from(*self.start));
            }
            if there.len() == LANES {
                return Lanes::new(S::load_bytes(self.start.add(key), 0, 0.0));
            }
            let mut bytes = [0u8; LANES];
            for (at, byte) in there.clone().enumerate() {
                bytes[there.start - key + at] = *self.start.add(byte);
            }
            Lanes::new(S::load_bytes(bytes.as_ptr(), 0, 0.0))
        }
    }
}
