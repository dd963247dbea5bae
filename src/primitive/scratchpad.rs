//! Library scratchpads: one buffer per thread, which grows on first use.

use crate::error::{Error, Result, Status};
use crate::heap::LINE;
use crate::per_thread::{self, Buffer};

/// The first aligned address of a caller's scratchpad. Null stays null.
pub(super) fn align(p: *mut u8) -> *mut u8 {
    p.wrapping_add(p.addr().wrapping_neg() % LINE)
}

/// Calls `f` with `size` uninitialized bytes, 64-byte aligned. Allocates only if this thread has not used as much
/// before. The buffer is taken while `f` runs, so that a nested execution (a caller's pool may run one on a waiting
/// thread) gets its own buffer.
#[inline]
pub(crate) fn with_scratchpad<T>(size: usize, f: impl FnOnce(*mut u8) -> T) -> Result<T> {
    if size == 0 {
        return Ok(f(std::ptr::null_mut()));
    }
    let kept = per_thread::with(|thread| thread.scratchpad.replace(Buffer::EMPTY));
    let mut buffer = kept.unwrap_or(Buffer::EMPTY);
    if buffer.size() < size {
        buffer = Buffer::new(size, LINE).ok_or_else(|| {
            let text = format_args!("cannot allocate a scratchpad of {size} bytes");
            Error::new(Status::OutOfMemory, text)
        })?;
    }
    let result = f(buffer.start());
    // Freed here if the thread cannot keep it.
    per_thread::with(|thread| thread.scratchpad.set(buffer));
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
        assert_eq!(first % LINE, 0);
    }

    #[test]
    fn a_huge_scratchpad_is_out_of_memory() {
        let error = with_scratchpad(isize::MAX as usize - 64, |_| ()).unwrap_err();
        assert_eq!(error.status, Status::OutOfMemory);
    }
}
