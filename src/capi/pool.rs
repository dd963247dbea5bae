//! The memory of objects that C holds. It is never returned to the system, so that the mark of a destroyed object can
//! be read. New objects of the same kind reuse it, but only after [`KEPT`] others have been destroyed, so that stale
//! handles are detected for a while.

use crate::error::{Error, Result};
use crate::fork::in_children;
use std::alloc::Layout;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// The destroyed objects of a kind whose memory is not reused yet.
pub(super) const KEPT: usize = 32;

/// Memory without an object: its mark, which is not that of a live one, and the next memory in a list.
#[repr(C)]
struct Free {
    mark: u64,
    below: *mut Free,
}

/// The memory of one kind of objects.
pub(super) struct Pool {
    /// The memory of the last destroyed objects, and where the next goes.
    kept: [AtomicPtr<Free>; KEPT],
    next: AtomicUsize,
    /// The memory of objects destroyed before them, as a list.
    free: AtomicPtr<Free>,
    /// Set while a thread takes from the list. Only one does at a time, so that the rest of the list does not change
    /// meanwhile.
    taking: AtomicBool,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self {
            kept: [const { AtomicPtr::new(null_mut()) }; KEPT],
            next: AtomicUsize::new(0),
            free: AtomicPtr::new(null_mut()),
            taking: AtomicBool::new(false),
        }
    }

    /// Memory for an object. A pool serves one layout.
    pub(super) fn take(&self, object: Layout) -> Result<*mut u8> {
        if !self.free.load(Ordering::Relaxed).is_null() && resets_in_children() {
            while self.taking.swap(true, Ordering::Acquire) {
                std::thread::yield_now();
            }
            let taken = self.pop();
            self.taking.store(false, Ordering::Release);
            if !taken.is_null() {
                return Ok(taken.cast());
            }
        }
        let free = Layout::new::<Free>();
        let (size, align) = (object.size().max(free.size()), object.align().max(free.align()));
        let refused = || Error::out_of_memory("an object", size);
        let layout = Layout::from_size_align(size, align).map_err(|_| refused())?;
        // SAFETY: the size is not 0.
        let place = unsafe { std::alloc::alloc(layout) };
        if place.is_null() { Err(refused()) } else { Ok(place) }
    }

    fn pop(&self) -> *mut Free {
        let mut top = self.free.load(Ordering::Acquire);
        while !top.is_null() {
            // SAFETY: memory in the list stays there until this thread takes it.
            let below = unsafe { (*top).below };
            let order = (Ordering::Acquire, Ordering::Acquire);
            match self.free.compare_exchange_weak(top, below, order.0, order.1) {
                Ok(_) => return top,
                Err(now) => top = now,
            }
        }
        top
    }

    /// Takes back the memory of a destroyed object.
    ///
    /// # Safety
    /// It came from this pool, and nothing but stale handles points to it.
    pub(super) unsafe fn put(&self, place: *mut u8) {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % KEPT;
        let oldest = self.kept[at].swap(place.cast(), Ordering::AcqRel);
        if oldest.is_null() {
            return;
        }
        let mut top = self.free.load(Ordering::Relaxed);
        loop {
            // SAFETY: this thread alone has the memory.
            unsafe { (*oldest).below = top };
            let order = (Ordering::Release, Ordering::Relaxed);
            match self.free.compare_exchange_weak(top, oldest, order.0, order.1) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }
}

/// A pool for each kind.
pub(super) static POOLS: [Pool; crate::mark::Kind::ALL.len()] =
    [const { Pool::new() }; crate::mark::Kind::ALL.len()];

/// Makes children of fork() forget threads that were taking from a list, which they lack. The lists themselves are
/// always consistent. Returns whether the system agreed.
fn resets_in_children() -> bool {
    extern "C" fn reset() {
        for pool in &POOLS {
            pool.taking.store(false, Ordering::Relaxed);
        }
    }
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    in_children(reset, &REGISTERED)
}
