//! Buffers of exactly the size of a descriptor, between pages that cannot be accessed. Inputs can be made read-only.
//! Under Miri, which detects such accesses itself, they are plain vectors.

/// A buffer. Its bytes are reset when it is made.
pub(crate) struct Buffer {
    start: *mut u8,
    bytes: usize,
    #[cfg(miri)]
    _words: Vec<u64>,
}

/// The most bytes of a buffer. Miri takes seconds to fill a large one.
pub(crate) const MOST: usize = if cfg!(miri) { 1 << 12 } else { 1 << 16 };

impl Buffer {
    pub(crate) fn as_mut_ptr(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn contents(&self) -> Vec<u8> {
        // SAFETY: the buffer has these bytes, and nothing writes them during the call.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }.to_vec()
    }

    pub(crate) fn fill(&self, mut byte: impl FnMut(usize) -> u8) {
        for at in 0..self.bytes {
            // SAFETY: inside the buffer, which is writable until it is protected.
            unsafe { self.start.add(at).write(byte(at)) };
        }
    }
}

#[cfg(miri)]
impl Buffer {
    pub(crate) fn new(bytes: usize, _slot: usize, _at_end: bool, odd: bool) -> Self {
        let mut words = vec![0u64; bytes.div_ceil(8) + 1];
        let start = words.as_mut_ptr().cast::<u8>().wrapping_add(usize::from(odd));
        Self { start, bytes, _words: words }
    }

    pub(crate) fn protect(&self, _slot: usize) {}
}

#[cfg(not(miri))]
mod pages {
    use super::{Buffer, MOST};
    use std::cell::RefCell;

    const PAGE: usize = 4096;

    thread_local! {
        /// Runs of pages between two inaccessible ones, which are reused.
        static SLOTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    /// The first byte of a slot, which is made writable.
    fn slot(number: usize) -> usize {
        SLOTS.with_borrow_mut(|slots| {
            while slots.len() <= number {
                // SAFETY: a new mapping.
                let all = unsafe {
                    libc::mmap(
                        std::ptr::null_mut(),
                        MOST + 2 * PAGE,
                        libc::PROT_NONE,
                        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                        -1,
                        0,
                    )
                };
                assert!(all != libc::MAP_FAILED, "no memory for a slot");
                slots.push(all as usize + PAGE);
            }
            protection(slots[number], libc::PROT_READ | libc::PROT_WRITE);
            slots[number]
        })
    }

    fn protection(start: usize, flags: i32) {
        // SAFETY: the pages of a slot.
        let status = unsafe { libc::mprotect(start as *mut libc::c_void, MOST, flags) };
        assert_eq!(status, 0, "mprotect");
    }

    impl Buffer {
        /// A buffer in a slot: at its end or at its start, or one byte off.
        pub(crate) fn new(bytes: usize, number: usize, at_end: bool, odd: bool) -> Self {
            assert!(bytes < MOST);
            let odd = usize::from(odd);
            let start = slot(number) + if at_end { MOST - bytes - odd } else { odd };
            Self { start: start as *mut u8, bytes }
        }

        /// Makes the slot read-only until it is reused.
        pub(crate) fn protect(&self, number: usize) {
            let start = SLOTS.with_borrow(|slots| slots[number]);
            protection(start, libc::PROT_READ);
        }
    }
}
