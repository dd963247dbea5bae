//! Starts threads with the system call, which reports a lack of memory. The standard library allocates first and aborts
//! the process if that fails.

/// The work of worker threads.
pub(super) trait Work: Sync + 'static {
    /// Runs on each thread that [`start`] starts.
    fn work(&'static self);
}

#[cfg(unix)]
pub(super) use posix::{name, start};
#[cfg(not(unix))]
pub(super) use standard::{name, start};

#[cfg(unix)]
mod posix {
    use super::Work;
    use crate::text::Text;
    use std::ffi::c_void;
    use std::fmt::Write;

    /// Bytes of a stack, as for the standard library's threads.
    const STACK: usize = 2 << 20;

    /// Starts a thread. Returns whether the system started it.
    pub(in super::super) fn start<W: Work>(work: &'static W) -> bool {
        extern "C" fn run<W: Work>(context: *mut c_void) -> *mut c_void {
            // SAFETY: the context is the reference below.
            unsafe { &*context.cast::<W>() }.work();
            std::ptr::null_mut()
        }
        let context = std::ptr::from_ref(work).cast_mut().cast();
        // SAFETY: the attributes are initialized before they are used, and `work` is never freed.
        unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            if libc::pthread_attr_init(&raw mut attributes) != 0 {
                return false;
            }
            let mut thread: libc::pthread_t = std::mem::zeroed();
            let detached = libc::PTHREAD_CREATE_DETACHED;
            let is_started = libc::pthread_attr_setstacksize(&raw mut attributes, STACK) == 0
                && libc::pthread_attr_setdetachstate(&raw mut attributes, detached) == 0
                && libc::pthread_create(&raw mut thread, &raw const attributes, run::<W>, context)
                    == 0;
            libc::pthread_attr_destroy(&raw mut attributes);
            is_started
        }
    }

    /// Names the calling thread `norm-<number>`, for debuggers.
    pub(in super::super) fn name(number: usize) {
        let mut name = Text::<16>::new();
        let _ = write!(name, "norm-{number}");
        let name = name.as_c_str().as_ptr();
        // SAFETY: the name is a C string.
        #[cfg(target_vendor = "apple")]
        unsafe {
            libc::pthread_setname_np(name)
        };
        // SAFETY: as above.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::pthread_setname_np(libc::pthread_self(), name)
        };
        #[cfg(not(any(target_vendor = "apple", target_os = "linux")))]
        let _ = name;
    }
}

#[cfg(not(unix))]
mod standard {
    use super::Work;

    /// Starts a thread. Returns whether the system started it.
    pub(in super::super) fn start<W: Work>(work: &'static W) -> bool {
        std::thread::Builder::new().spawn(move || work.work()).is_ok()
    }

    pub(in super::super) fn name(_number: usize) {}
}
