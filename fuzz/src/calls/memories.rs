//! Memories: their buffers and mappings, and host scalars.

use super::{TYPES, World};
use crate::buffers::{Buffer, MOST};
use crate::handles::{done, got, made};
use crate::source::Source;
use norm_sys as sys;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// A memory and its buffer. The memory is destroyed with this value.
pub(super) struct Held {
    pub(super) handle: sys::norm_memory_t,
    pub(super) buffer: Buffer,
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: a live handle that is not used again.
        unsafe { sys::norm_memory_destroy(self.handle) };
    }
}

/// Bytes at the end or the start of a slot.
pub(super) fn filled(bytes: usize, slot: usize, source: &mut Source<'_>) -> Buffer {
    let buffer = Buffer::new(bytes, slot, source.one_in(2), false);
    let (pattern, step) = (source.byte(), source.byte());
    buffer.fill(|at| pattern.wrapping_add((at as u8).wrapping_mul(step)));
    buffer
}

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and buffers are as large as
// descriptors say.
impl World {
    /// A memory with a buffer in a slot, unless it is too large or the library refuses it.
    pub(super) fn held(
        &self,
        desc: sys::norm_memory_desc_t,
        slot: usize,
        source: &mut Source<'_>,
    ) -> Option<Held> {
        let bytes = unsafe { sys::norm_memory_desc_get_size(desc) };
        if bytes >= MOST {
            return None;
        }
        let buffer = filled(bytes, slot, source);
        let start = buffer.as_mut_ptr().cast::<c_void>();
        let handle = made(|out| unsafe { sys::norm_memory_create(out, desc, self.engine, start) });
        handle.map(|handle| Held { handle, buffer })
    }

    pub(super) fn memory(&mut self, source: &mut Source<'_>) {
        if source.one_in(3) {
            return self.host_scalar(source);
        }
        let desc = self.desc(source);
        if unsafe { sys::norm_memory_desc_get_size(desc) } >= MOST {
            return;
        }
        let Some(held) = self.held(desc, 0, source) else { return };
        held.buffer.protect(0);
        self.check_buffer(held.handle, held.buffer.as_mut_ptr().cast(), desc);
        self.allocate(desc, source);
        // Only an address: nothing reads it.
        let (other, index) = (source.one_of(&[null_mut(), sys::NORM_MEMORY_ALLOCATE]), -1);
        let (handle, start) = (held.handle, held.buffer.as_mut_ptr().cast::<c_void>());
        unsafe {
            assert!(!done(sys::norm_memory_set_data_handle_v2(handle, start, index)));
            let set = match source.below(2) {
                0 => sys::norm_memory_set_data_handle(handle, other),
                _ => sys::norm_memory_set_data_handle_v2(handle, other, 0),
            };
            assert_eq!(done(set), other.is_null());
            self.check_buffer(handle, if other.is_null() { other } else { start }, desc);
        }
        let engine = got(|out| unsafe { sys::norm_memory_get_engine(handle, out) });
        assert!(engine == Some(self.engine), "another engine");
    }

    /// Checks what a memory says about its buffer.
    fn check_buffer(
        &self,
        memory: sys::norm_memory_t,
        start: *mut c_void,
        desc: sys::norm_memory_desc_t,
    ) {
        type Getter = unsafe extern "C" fn(sys::const_norm_memory_t, *mut *mut c_void) -> u32;
        type Numbered =
            unsafe extern "C" fn(sys::const_norm_memory_t, *mut *mut c_void, i32) -> u32;
        let plain: [Getter; 2] = [sys::norm_memory_get_data_handle, sys::norm_memory_map_data];
        let numbered: [Numbered; 2] =
            [sys::norm_memory_get_data_handle_v2, sys::norm_memory_map_data_v2];
        for (plain, numbered) in plain.into_iter().zip(numbered) {
            assert!(got(|out| unsafe { plain(memory, out) }) == Some(start), "another buffer");
            assert!(got(|out| unsafe { numbered(memory, out, 0) }) == Some(start));
            assert!(got(|out| unsafe { numbered(memory, out, 1) }).is_none());
            assert!(got(|out| unsafe { plain(null(), out) }).is_none());
        }
        let wrong = start.cast::<u8>().wrapping_add(1).cast::<c_void>();
        unsafe {
            assert!(done(sys::norm_memory_unmap_data(memory, start)));
            assert!(done(sys::norm_memory_unmap_data_v2(memory, start, 0)));
            assert!(!done(sys::norm_memory_unmap_data(memory, wrong)));
            assert!(!done(sys::norm_memory_unmap_data_v2(memory, start, 1)));
        }
        let lent = got(|out| unsafe { sys::norm_memory_get_memory_desc(memory, out) });
        let lent = lent.expect("a descriptor");
        assert_eq!(unsafe { sys::norm_memory_desc_equal(lent, desc) }, 1);
    }

    /// A memory whose buffer the library allocates: zeros.
    fn allocate(&self, desc: sys::norm_memory_desc_t, source: &mut Source<'_>) {
        let bytes = unsafe { sys::norm_memory_desc_get_size(desc) };
        let count = source.one_of(&[1, 1, 1, 0, 2, -1]);
        let mut list = [sys::NORM_MEMORY_ALLOCATE; 2];
        let memory = made(|out| unsafe {
            sys::norm_memory_create_v2(out, desc, self.engine, count, list.as_mut_ptr())
        });
        let Some(memory) = memory else { return assert!(count != 1, "no memory") };
        let start = got::<*mut c_void>(|out| unsafe { sys::norm_memory_map_data(memory, out) });
        let start = start.expect("an address");
        self.check_buffer(memory, start, desc);
        assert_eq!(start.is_null(), bytes == 0);
        if bytes > 0 {
            assert_eq!(start.addr() % 64, 0);
            let zeros = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), bytes) };
            assert!(zeros.iter().all(|byte| *byte == 0), "a buffer is not zero");
        }
        unsafe { sys::norm_memory_destroy(memory) };
    }

    /// A memory that holds a number.
    fn host_scalar(&mut self, source: &mut Source<'_>) {
        let data_type =
            if source.one_in(12) { source.below(20) as u32 } else { source.one_of(&TYPES) };
        let desc = made(|out| unsafe { sys::norm_memory_desc_create_host_scalar(out, data_type) });
        let Some(desc) = desc else { return };
        let bytes = unsafe { sys::norm_data_type_size(data_type) };
        assert_eq!(unsafe { sys::norm_memory_desc_get_size(desc) }, bytes);
        let [first, second] = [0, 1].map(|slot| filled(bytes, slot, source));
        first.protect(0);
        second.protect(1);
        let of = |desc, number: *mut u8| {
            made(|out| unsafe { sys::norm_memory_create_host_scalar(out, desc, number.cast()) })
        };
        assert!(of(desc, null_mut()).is_none() && of(null_mut(), first.as_mut_ptr()).is_none());
        let memory = of(desc, first.as_mut_ptr()).expect("a host scalar");
        let number = || -> Vec<u8> {
            let value = got::<[u8; 16]>(|out| unsafe {
                sys::norm_memory_get_host_scalar_value(memory, out.cast())
            });
            let value = value.expect("a number");
            assert!(value[bytes..].iter().all(|byte| *byte == 0x5a), "more than a number");
            value[..bytes].to_vec()
        };
        assert!(number() == first.contents(), "another number");
        unsafe {
            assert!(!done(sys::norm_memory_set_host_scalar_value(memory, null())));
            let set = sys::norm_memory_set_host_scalar_value(memory, second.as_mut_ptr().cast());
            assert!(done(set) && number() == second.contents(), "another number");
            assert!(!done(sys::norm_memory_set_data_handle(memory, null_mut())));
        }
        assert!(got(|out| unsafe { sys::norm_memory_get_data_handle(memory, out) }).is_none());
        let engine = got(|out| unsafe { sys::norm_memory_get_engine(memory, out) });
        assert!(engine == Some(null_mut()), "an engine of a host scalar");
        let start = got::<*mut c_void>(|out| unsafe { sys::norm_memory_map_data(memory, out) });
        assert!(done(unsafe { sys::norm_memory_unmap_data(memory, start.expect("an address")) }));
        unsafe { sys::norm_memory_destroy(memory) };
        // It is not a tensor: most functions refuse it.
        self.descs.push(desc);
    }
}
