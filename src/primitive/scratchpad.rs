//! Library scratchpads: one buffer per thread, which grows on first use.

use crate::error::{Error, Result, Status};
use std::alloc::Layout;
use std::cell::Cell;

/// Alignment of every scratchpad: a cache line and the widest vector.
pub(super) const ALIGN: usize = 64;

/// The first aligned address of a caller's scratchpad. Null stays null.
pub(super) fn align(p: *mut u8) -> *mut u8 {
    p.wrapping_add(p.addr().wrapping_neg() % ALIGN)
}

/// An owned, aligned buffer.
struct Buffer {
    start: *mut u8,
    size: usize,
}

impl Buffer {
    const EMPTY: Self = Self { start: std::ptr::null_mut(), size: 0 };

    fn new(size: usize) -> Option<Self> {
        let layout = Layout::from_size_align(size, ALIGN).ok()?;
        // SAFETY: the size is not 0, because the only caller grows from 0.
        let start = unsafe { std::alloc::alloc(layout) };
        (!start.is_null()).then_some(Self { start, size })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.start.is_null() {
            // SAFETY: allocated by `new` with this layout.
            unsafe {
                let layout = Layout::from_size_align_unchecked(self.size, ALIGN);
                std::alloc::dealloc(self.start, layout);
            }
        }
    }
}

thread_local! {
    static BUFFER: Cell<Buffer> = const { Cell::new(Buffer::EMPTY) };
}

/// Calls `f` with `size` uninitialised bytes, 64-byte aligned. Allocates only if this thread has
/// not used as much before. The buffer is taken while `f` runs, so that a nested execution (a
/// caller's pool may run one on a waiting thread) gets a buffer of its own.
#[inline]
pub(crate) fn with_scratchpad<T>(size: usize, f: impl FnOnce(*mut u8) -> T) -> Result<T> {
    if size == 0 {
        return Ok(f(std::ptr::null_mut()));
    }
    let mut buffer = BUFFER.try_with(|cell| cell.replace(Buffer::EMPTY)).unwrap_or(Buffer::EMPTY);
    if buffer.size < size {
        buffer = Buffer::new(size).ok_or_else(|| {
            Error::new(Status::OutOfMemory, format!("cannot allocate a scratchpad of {size} bytes"))
        })?;
    }
    let result = f(buffer.start);
    // On an exiting thread the storage is gone and the buffer is freed here.
    let _ = BUFFER.try_with(move |cell| cell.set(buffer));
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_is_kept_and_nested_use_gets_another() {
        let first = with_scratchpad(100, |p| p as usize).unwrap();
        let (second, nested) =
            with_scratchpad(64, |p| (p as usize, with_scratchpad(10, |q| q as usize).unwrap()))
                .unwrap();
        assert_eq!(first, second);
        assert_ne!(second, nested);
        assert_eq!(first % ALIGN, 0);
    }

    #[test]
    fn a_huge_scratchpad_is_out_of_memory() {
        let error = with_scratchpad(isize::MAX as usize - 64, |_| ()).unwrap_err();
        assert_eq!(error.status, Status::OutOfMemory);
    }
}
