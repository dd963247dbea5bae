//! Library scratchpads: one buffer per thread, which grows on first use.

use crate::error::{Error, Result, Status};
use std::alloc::Layout;

/// Alignment of every scratchpad: a cache line and the widest vector.
pub(super) const ALIGN: usize = 64;

/// The first aligned address of a caller's scratchpad. Null stays null.
pub(super) fn align(p: *mut u8) -> *mut u8 {
    p.wrapping_add(p.addr().wrapping_neg() % ALIGN)
}

/// An owned, aligned allocation: the size of a scratchpad, and the scratchpad, each on cache lines
/// of its own.
struct Buffer {
    place: *mut u8,
}

impl Buffer {
    const EMPTY: Self = Self { place: std::ptr::null_mut() };

    fn new(size: usize) -> Option<Self> {
        let layout = Layout::from_size_align(size.checked_add(ALIGN)?, ALIGN).ok()?;
        // SAFETY: the size is not 0.
        let place = unsafe { std::alloc::alloc(layout) };
        if place.is_null() {
            return None;
        }
        // SAFETY: there is room for the size, aligned.
        unsafe { place.cast::<usize>().write(size) };
        Some(Self { place })
    }

    fn size(&self) -> usize {
        // SAFETY: `new` wrote it.
        if self.place.is_null() { 0 } else { unsafe { self.place.cast::<usize>().read() } }
    }

    /// The first byte of the scratchpad.
    fn start(&self) -> *mut u8 {
        self.place.wrapping_add(ALIGN)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.place.is_null() {
            return;
        }
        kept::forget(self.place);
        // SAFETY: allocated by `new` with this layout.
        unsafe {
            let layout = Layout::from_size_align_unchecked(self.size() + ALIGN, ALIGN);
            std::alloc::dealloc(self.place, layout);
        }
    }
}

/// Calls `f` with `size` uninitialized bytes, 64-byte aligned. Allocates only if this thread has not used as much
/// before. The buffer is taken while `f` runs, so that a nested execution (a caller's pool may run one on a waiting
/// thread) gets its own buffer.
#[inline]
pub(crate) fn with_scratchpad<T>(size: usize, f: impl FnOnce(*mut u8) -> T) -> Result<T> {
    if size == 0 {
        return Ok(f(std::ptr::null_mut()));
    }
    let mut buffer = kept::take();
    if buffer.size() < size {
        buffer = Buffer::new(size).ok_or_else(|| {
            let text = format_args!("cannot allocate a scratchpad of {size} bytes");
            Error::new(Status::OutOfMemory, text)
        })?;
    }
    let result = f(buffer.start());
    kept::put(buffer);
    Ok(result)
}

/// The buffer of this thread. A key of POSIX threads frees it when the thread ends: registering a destructor for
/// thread-local storage aborts the process if there is no memory.
#[cfg(unix)]
mod kept {
    use super::Buffer;
    use std::cell::Cell;
    use std::mem::ManuallyDrop;
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicU64, Ordering};

    thread_local! {
        static BUFFER: Cell<ManuallyDrop<Buffer>> = const {
            Cell::new(ManuallyDrop::new(Buffer::EMPTY))
        };
        /// The address that the key has for this thread.
        static REGISTERED: Cell<*mut u8> = const { Cell::new(null_mut()) };
    }

    fn replace(buffer: Buffer) -> Buffer {
        BUFFER.with(|kept| ManuallyDrop::into_inner(kept.replace(ManuallyDrop::new(buffer))))
    }

    #[inline]
    pub(super) fn take() -> Buffer {
        replace(Buffer::EMPTY)
    }

    /// Keeps a buffer for the next execution, or frees it if nothing would free it when the thread ends.
    #[inline]
    pub(super) fn put(buffer: Buffer) {
        if REGISTERED.get() == buffer.place || register(buffer.place) {
            drop(replace(buffer));
        }
    }

    /// A buffer is freed.
    pub(super) fn forget(place: *mut u8) {
        if REGISTERED.get() == place {
            register(null_mut());
        }
    }

    /// Frees the buffer at the end of a thread.
    extern "C" fn free(value: *mut std::ffi::c_void) {
        REGISTERED.set(null_mut());
        let buffer = Buffer { place: value.cast() };
        let kept = take();
        if kept.place == buffer.place {
            std::mem::forget(kept);
        } else {
            // On systems that destroy thread-local storage before keys, it is new and empty here.
            std::mem::forget(replace(kept));
        }
        drop(buffer);
    }

    #[cold]
    fn register(place: *mut u8) -> bool {
        let Some(key) = key() else { return false };
        // SAFETY: the key was created and is never deleted.
        let is_set = unsafe { libc::pthread_setspecific(key, place.cast()) } == 0;
        if is_set {
            REGISTERED.set(place);
        }
        is_set
    }

    /// The process's key, created on first use; `None` if there are too many. Not a `OnceLock`:
    /// after fork() the thread that holds it may not exist.
    fn key() -> Option<libc::pthread_key_t> {
        /// The key plus 1; 0 before the first use.
        static KEY: AtomicU64 = AtomicU64::new(0);
        let known = KEY.load(Ordering::Relaxed);
        if known > 0 {
            return Some((known - 1) as libc::pthread_key_t);
        }
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: the key is written; the library is never unloaded, so the destructor stays.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(free)) } != 0 {
            return None;
        }
        let mine = u64::from(key) + 1;
        match KEY.compare_exchange(0, mine, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Some(key),
            Err(first) => {
                // SAFETY: no thread has used this key.
                unsafe { libc::pthread_key_delete(key) };
                Some((first - 1) as libc::pthread_key_t)
            }
        }
    }
}

/// The buffer of this thread.
#[cfg(not(unix))]
mod kept {
    use super::Buffer;
    use std::cell::Cell;

    thread_local! {
        static BUFFER: Cell<Buffer> = const { Cell::new(Buffer::EMPTY) };
    }

    pub(super) fn take() -> Buffer {
        BUFFER.try_with(|kept| kept.replace(Buffer::EMPTY)).unwrap_or(Buffer::EMPTY)
    }

    pub(super) fn forget(_place: *mut u8) {}

    pub(super) fn put(buffer: Buffer) {
        // On an exiting thread the storage is gone and the buffer is freed here.
        let _ = BUFFER.try_with(move |kept| kept.set(buffer));
    }
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
