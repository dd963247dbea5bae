//! Zero-filled memory that C also reads and writes, so it is accessed only through addresses.

use crate::error::{Error, Result};
use crate::heap::LINE;
use std::alloc::Layout;

/// An owned allocation.
#[derive(Debug)]
pub(super) struct Buffer {
    start: *mut u8,
    layout: Layout,
}

impl Buffer {
    /// Allocates `size` bytes, at least 1. `what` names them in messages.
    pub(super) fn new(size: usize, what: &str) -> Result<Self> {
        let refused = || Error::out_of_memory(what, size);
        let layout = Layout::from_size_align(size.max(1), LINE).map_err(|_| refused())?;
        // SAFETY: the size is not 0.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() { Err(refused()) } else { Ok(Self { start, layout }) }
    }

    /// Room for `count` items of a plain type.
    pub(super) fn of<T: Copy>(count: usize, what: &str) -> Result<Self> {
        Self::new(size_of::<T>().saturating_mul(count), what)
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(super) fn size(&self) -> usize {
        self.layout.size()
    }

    /// # Safety
    /// The buffer has more than `index` items of this type.
    pub(super) unsafe fn get<T: Copy>(&self, index: usize) -> T {
        // SAFETY: guaranteed by the caller; the items are plain, and aligned.
        unsafe { self.start.cast::<T>().add(index).read() }
    }

    /// # Safety
    /// As [`get`](Self::get), and no other thread uses the item.
    pub(super) unsafe fn set<T: Copy>(&self, index: usize, item: T) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.start.cast::<T>().add(index).write(item) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout.
        unsafe { std::alloc::dealloc(self.start, self.layout) };
    }
}
