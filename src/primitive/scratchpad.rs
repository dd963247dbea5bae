//! Temporary memory that the library provides: one buffer per thread that grows on first use.

use crate::error::{Error, Result, Status};
use std::alloc::Layout;
use std::cell::Cell;

/// Alignment of every scratchpad: a cache line, and the widest vector.
pub(super) const ALIGN: usize = 64;

/// The first aligned address of a caller's scratchpad; null stays null.
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
        // SAFETY: the size is not 0, as the only caller grows from 0.
        let start = unsafe { std::alloc::alloc(layout) };
        (!start.is_null()).then_some(Self { start, size })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.start.is_null() {
            // SAFETY: `new` made it with this layout, which was valid then.
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

/// Calls `f` with `size` bytes, 64-byte aligned and not initialised; nothing is allocated if this
/// thread has used as much before. The buffer is taken away while `f` runs, so that an execution
/// within an execution (a caller's pool may do that on a waiting thread) gets another.
pub(crate) fn with_scratchpad<T>(size: usize, f: impl FnOnce(*mut u8) -> T) -> Result<T> {
    if size == 0 {
        return Ok(f(std::ptr::null_mut()));
    }
    let mut buffer = BUFFER.try_with(|cell| cell.replace(Buffer::EMPTY)).unwrap_or(Buffer::EMPTY);
    if buffer.size < size {
        buffer = Buffer::new(size).ok_or_else(|| {
            Error::new(Status::OutOfMemory, format!("a scratchpad of {size} bytes cannot be had"))
        })?;
    }
    let result = f(buffer.start);
    // A thread that is ending has no place for it any more; then it is freed here.
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
    fn too_much_is_out_of_memory() {
        let error = with_scratchpad(isize::MAX as usize - 64, |_| ()).unwrap_err();
        assert_eq!(error.status, Status::OutOfMemory);
    }
}
