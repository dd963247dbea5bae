//! What the library keeps for each thread: its error messages, its scratchpad, and the number of threads of its last
//! execution.
//!
//! The memory is allocated when a thread first needs it. Thread-local storage would not do: a library loaded with
//! `dlopen()` gets it at a thread's first access, and glibc ends the process if there is none. Here a few threads can
//! start without memory, if the system needs none for their keys; the others have no messages and keep no scratchpad.

use crate::text::Text;
use std::alloc::Layout;
use std::cell::{Cell, RefCell};

/// Room for a message. Longer ones are cut.
const MESSAGE: usize = 480;
/// Room for a function's name and a message.
const LAST_ERROR: usize = 576;

/// The state of a thread.
pub(crate) struct PerThread {
    /// The message of the last [`Error`](crate::error::Error).
    pub(crate) message: RefCell<Text<MESSAGE>>,
    /// The last failure of a C function.
    pub(crate) last_error: RefCell<Text<LAST_ERROR>>,
    /// Kept between executions.
    pub(crate) scratchpad: Cell<Buffer>,
    /// The number of threads in the last execution.
    pub(crate) last_threads: Cell<usize>,
}

impl PerThread {
    const fn new() -> Self {
        Self {
            message: RefCell::new(Text::new()),
            last_error: RefCell::new(Text::new()),
            scratchpad: Cell::new(Buffer::EMPTY),
            last_threads: Cell::new(0),
        }
    }
}

/// An allocation; null if empty.
pub(crate) struct Buffer {
    start: *mut u8,
    layout: Layout,
}

impl Buffer {
    pub(crate) const EMPTY: Self =
        Self { start: std::ptr::null_mut(), layout: Layout::new::<()>() };

    /// `None` if there is not enough memory. `size` is not 0.
    pub(crate) fn new(size: usize, align: usize) -> Option<Self> {
        let layout = Layout::from_size_align(size, align).ok()?;
        // SAFETY: the size is not 0.
        let start = unsafe { std::alloc::alloc(layout) };
        (!start.is_null()).then_some(Self { start, layout })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn size(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.start.is_null() {
            // SAFETY: allocated by `new` with this layout.
            unsafe { std::alloc::dealloc(self.start, self.layout) };
        }
    }
}

/// Calls `f` with the thread's state; `None` if there is no memory for it, and the reserve is used up.
#[inline]
pub(crate) fn with<T>(f: impl FnOnce(&PerThread) -> T) -> Option<T> {
    system::with(f)
}

/// A key of POSIX threads, which frees the state when a thread ends.
#[cfg(unix)]
mod system {
    use super::PerThread;
    use std::alloc::Layout;
    use std::cell::UnsafeCell;
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// A state for a thread without memory.
    struct Spare {
        taken: AtomicBool,
        state: UnsafeCell<PerThread>,
    }

    // SAFETY: only the thread that has set `taken` uses the state.
    unsafe impl Sync for Spare {}

    static RESERVE: [Spare; 8] = [const {
        Spare { taken: AtomicBool::new(false), state: UnsafeCell::new(PerThread::new()) }
    }; 8];

    /// The key plus 1; 0 before the first use. Not a `OnceLock`: after fork() the thread that holds it may not exist.
    static KEY: AtomicU64 = AtomicU64::new(0);

    #[inline]
    pub(super) fn with<T>(f: impl FnOnce(&PerThread) -> T) -> Option<T> {
        let known = KEY.load(Ordering::Relaxed);
        let state: *const PerThread = match known {
            0 => std::ptr::null(),
            // SAFETY: the key was created and is never deleted.
            _ => unsafe { libc::pthread_getspecific((known - 1) as libc::pthread_key_t) }.cast(),
        };
        let state = if state.is_null() { made()? } else { state };
        // SAFETY: `made` made it, and it is freed after the thread's last call.
        Some(f(unsafe { &*state }))
    }

    /// A new state for this thread.
    #[cold]
    fn made() -> Option<*const PerThread> {
        let key = key()?;
        // SAFETY: the size is not 0.
        let allocated =
            unsafe { std::alloc::alloc(Layout::new::<PerThread>()) }.cast::<PerThread>();
        let state = if allocated.is_null() {
            RESERVE.iter().find(|spare| !spare.taken.swap(true, Ordering::Acquire))?.state.get()
        } else {
            // SAFETY: there is room for it.
            unsafe { allocated.write(PerThread::new()) };
            allocated
        };
        // SAFETY: the key was created.
        if unsafe { libc::pthread_setspecific(key, state.cast()) } != 0 {
            free(state.cast());
            return None;
        }
        Some(state)
    }

    extern "C" fn free(state: *mut c_void) {
        let state = state.cast::<PerThread>();
        let spare = RESERVE.iter().find(|spare| spare.state.get() == state);
        // SAFETY: `made` made it, and nobody uses it any more.
        unsafe {
            state.drop_in_place();
            match spare {
                Some(spare) => {
                    state.write(PerThread::new());
                    spare.taken.store(false, Ordering::Release);
                }
                None => std::alloc::dealloc(state.cast(), Layout::new::<PerThread>()),
            }
        }
    }

    /// The process's key; `None` if there are too many.
    fn key() -> Option<libc::pthread_key_t> {
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

#[cfg(not(unix))]
mod system {
    use super::PerThread;

    pub(super) fn with<T>(f: impl FnOnce(&PerThread) -> T) -> Option<T> {
        thread_local! {
            static STATE: PerThread = const { PerThread::new() };
        }
        STATE.try_with(f).ok()
    }
}
