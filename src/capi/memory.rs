//! Memory objects: a descriptor and a buffer.

use super::engine::HeldEngine;
use super::exported;
use super::handle::{Handle, Out, handles, slice};
use super::memory_desc::check_index;
use crate::error::{Error, Result, Status};
use crate::heap::LINE;
use crate::mark::{Kind, Mark};
use crate::tensor::{Layout, MemoryDesc};
use norm_sys as sys;
use std::alloc::Layout as Allocation;
use std::ffi::{c_int, c_void};

/// A buffer owned by the library.
#[derive(Debug)]
struct Owned {
    start: *mut u8,
    allocation: Allocation,
}

impl Owned {
    fn new(size: usize) -> Result<Self> {
        let refused = || {
            let text = format_args!("handle: cannot allocate a buffer of {size} bytes");
            Error::new(Status::OutOfMemory, text)
        };
        let allocation = Allocation::from_size_align(size, LINE).map_err(|_| refused())?;
        // SAFETY: the caller does not ask for 0 bytes.
        let start = unsafe { std::alloc::alloc_zeroed(allocation) };
        if start.is_null() { Err(refused()) } else { Ok(Self { start, allocation }) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout.
        unsafe { std::alloc::dealloc(self.start, self.allocation) };
    }
}

/// A tensor with data.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Memory {
    mark: Mark,
    /// A host scalar has none.
    engine: Option<HeldEngine>,
    pub(super) desc: MemoryDesc,
    /// The size of the descriptor, computed once.
    pub(super) size: usize,
    /// Null if there is no buffer.
    pub(super) data: *mut u8,
    owned: Option<Owned>,
}

handles! {
    Memory: norm_memory = Memory;
}

impl Memory {
    /// A memory that is part of another object, which owns the buffer.
    pub(super) fn part(engine: &HeldEngine, desc: MemoryDesc, data: *mut u8) -> Self {
        let (mark, engine, size) = (Mark::part(Kind::Memory), Some(engine.clone()), desc.size());
        Self { mark, engine, desc, size, data, owned: None }
    }

    /// A host scalar with the value at `value`.
    ///
    /// # Safety
    /// `value` has the bytes of a number of the descriptor's type.
    pub(super) unsafe fn scalar(desc: &MemoryDesc, value: *const u8) -> Result<Self> {
        let (mark, size) = (Mark::part(Kind::Memory), desc.size());
        let owned = Owned::new(size)?;
        // SAFETY: guaranteed by the caller; the buffer has the size.
        unsafe { owned.start.copy_from_nonoverlapping(value, size) };
        let data = owned.start;
        Ok(Self { mark, engine: None, desc: desc.clone(), size, data, owned: Some(owned) })
    }

    /// Refuses a memory that is not a tensor with data.
    pub(super) fn check_tensor(&self, name: &str) -> Result<()> {
        if self.desc.is_host_scalar() {
            return Err(Error::invalid(format_args!("{name}: a host scalar is not a tensor")));
        }
        if self.data.is_null() && self.size > 0 {
            return Err(Error::invalid(format_args!("{name}: its memory has no buffer")));
        }
        Ok(())
    }

    /// Refuses a host scalar, whose value is not in a buffer of the caller's.
    fn check_buffered(&self) -> Result<()> {
        match self.desc.is_host_scalar() {
            true => Err(Error::invalid("memory: a host scalar has no buffer")),
            false => Ok(()),
        }
    }
}

exported! {
    /// Creates memory.
    fn norm_memory_create as dnnl_memory_create(
        memory: *mut sys::norm_memory_t,
        memory_desc: sys::const_norm_memory_desc_t,
        engine: sys::norm_engine_t,
        handle: *mut c_void,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { create(memory, memory_desc, engine, handle) }
    }
}

exported! {
    /// Creates memory from a list of handles.
    fn norm_memory_create_v2 as dnnl_memory_create_v2(
        memory: *mut sys::norm_memory_t,
        memory_desc: sys::const_norm_memory_desc_t,
        engine: sys::norm_engine_t,
        nhandles: c_int,
        handles: *mut *mut c_void,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let desc = MemoryDesc::get(memory_desc, "memory_desc")?;
            let handle = match (nhandles, desc.ndims()) {
                (1, _) => slice(handles, 1, "handles")?[0],
                (0, 0) => std::ptr::null_mut(),
                _ => {
                    return Err(Error::invalid(format_args!(
                        "nhandles: {nhandles}, but the descriptor has one buffer"
                    )));
                }
            };
            create(memory, memory_desc, engine, handle)
        }
    }
}

/// # Safety
/// Handles are NULL or live, `memory` is NULL or can be written.
unsafe fn create(
    memory: *mut sys::norm_memory_t,
    memory_desc: sys::const_norm_memory_desc_t,
    engine: sys::norm_engine_t,
    handle: *mut c_void,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (out, desc, engine) = unsafe {
        (
            Out::new(memory, "memory")?,
            MemoryDesc::get(memory_desc, "memory_desc")?,
            HeldEngine::new(engine, "engine")?,
        )
    };
    if desc.layout() == Layout::Any {
        return Err(Error::invalid(
            "memory_desc: the layout is `any`; use the descriptor that a primitive descriptor chose",
        ));
    }
    if desc.is_host_scalar() {
        return Err(Error::invalid(
            "memory_desc: a host scalar; norm_memory_create_host_scalar creates its memory",
        ));
    }
    let size = desc.size();
    let owned = match size {
        size if handle == sys::NORM_MEMORY_ALLOCATE && size > 0 => Some(Owned::new(size)?),
        _ => None,
    };
    let data = match &owned {
        Some(owned) => owned.start,
        None if handle == sys::NORM_MEMORY_ALLOCATE => std::ptr::null_mut(),
        None => handle.cast(),
    };
    let (mark, engine, desc) = (Mark::part(Kind::Memory), Some(engine), desc.clone());
    out.set(Memory { mark, engine, desc, size, data, owned }.into_c()?);
    Ok(())
}

exported! {
    /// Frees memory, and its buffer if the library allocated it.
    fn norm_memory_destroy as dnnl_memory_destroy(memory: sys::norm_memory_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { Memory::destroy(memory, "memory") }
    }
}

exported! {
    /// The descriptor of a memory.
    fn norm_memory_get_memory_desc as dnnl_memory_get_memory_desc(
        memory: sys::const_norm_memory_t,
        memory_desc: *mut sys::const_norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let memory = Memory::get(memory, "memory")?;
            Out::new(memory_desc, "memory_desc")?.set(memory.desc.lend());
        }
        Ok(())
    }
}

exported! {
    /// The engine of a memory.
    fn norm_memory_get_engine as dnnl_memory_get_engine(
        memory: sys::const_norm_memory_t,
        engine: *mut sys::norm_engine_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let memory = Memory::get(memory, "memory")?;
            Out::new(engine, "engine")?.set(memory.engine.as_ref().map_or(std::ptr::null_mut(), HeldEngine::handle));
        }
        Ok(())
    }
}

exported! {
    /// The buffer of a memory.
    fn norm_memory_get_data_handle as dnnl_memory_get_data_handle(
        memory: sys::const_norm_memory_t,
        handle: *mut *mut c_void,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { address(memory, handle) }
    }
}

exported! {
    /// Buffer number `index` of a memory.
    fn norm_memory_get_data_handle_v2 as dnnl_memory_get_data_handle_v2(
        memory: sys::const_norm_memory_t,
        handle: *mut *mut c_void,
        index: c_int,
    ) {
        check_index(index)?;
        // SAFETY: guaranteed by the caller.
        unsafe { address(memory, handle) }
    }
}

/// Gives the address of the buffer.
///
/// # Safety
/// The handle is NULL or live, `out` is NULL or can be written.
unsafe fn address(memory: sys::const_norm_memory_t, out: *mut *mut c_void) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let memory = Memory::get(memory, "memory")?;
        memory.check_buffered()?;
        Out::new(out, "handle")?.set(memory.data.cast());
    }
    Ok(())
}

exported! {
    /// Replaces the buffer.
    fn norm_memory_set_data_handle as dnnl_memory_set_data_handle(memory: sys::norm_memory_t, handle: *mut c_void) {
        // SAFETY: guaranteed by the caller.
        unsafe { set_address(memory, handle) }
    }
}

exported! {
    /// Replaces the buffer with a number.
    fn norm_memory_set_data_handle_v2 as dnnl_memory_set_data_handle_v2(
        memory: sys::norm_memory_t,
        handle: *mut c_void,
        index: c_int,
    ) {
        check_index(index)?;
        // SAFETY: guaranteed by the caller.
        unsafe { set_address(memory, handle) }
    }
}

/// # Safety
/// The handle is NULL or live.
unsafe fn set_address(memory: sys::norm_memory_t, handle: *mut c_void) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let memory = unsafe { Memory::get_mut(memory, "memory") }?;
    memory.check_buffered()?;
    if handle == sys::NORM_MEMORY_ALLOCATE {
        return Err(Error::invalid(
            "handle: NORM_MEMORY_ALLOCATE is only valid for norm_memory_create",
        ));
    }
    if memory.data.cast() != handle {
        memory.owned = None;
        memory.data = handle.cast();
    }
    Ok(())
}

/// Gives an address to read and write at: of the buffer, or of a host scalar's number.
///
/// # Safety
/// The handle is NULL or live, `out` is NULL or can be written.
unsafe fn map(memory: sys::const_norm_memory_t, out: *mut *mut c_void) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let memory = Memory::get(memory, "memory")?;
        Out::new(out, "mapped_ptr")?.set(memory.data.cast());
    }
    Ok(())
}

exported! {
    /// An address to read and write at.
    fn norm_memory_map_data as dnnl_memory_map_data(
        memory: sys::const_norm_memory_t,
        mapped_ptr: *mut *mut c_void,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { map(memory, mapped_ptr) }
    }
}

exported! {
    /// An address for the buffer with a number.
    fn norm_memory_map_data_v2 as dnnl_memory_map_data_v2(
        memory: sys::const_norm_memory_t,
        mapped_ptr: *mut *mut c_void,
        index: c_int,
    ) {
        check_index(index)?;
        // SAFETY: guaranteed by the caller.
        unsafe { map(memory, mapped_ptr) }
    }
}

exported! {
    /// Ends a mapping.
    fn norm_memory_unmap_data as dnnl_memory_unmap_data(memory: sys::const_norm_memory_t, mapped_ptr: *mut c_void) {
        // SAFETY: guaranteed by the caller.
        unsafe { unmap(memory, mapped_ptr) }
    }
}

exported! {
    /// Ends a mapping of the buffer with a number.
    fn norm_memory_unmap_data_v2 as dnnl_memory_unmap_data_v2(
        memory: sys::const_norm_memory_t,
        mapped_ptr: *mut c_void,
        index: c_int,
    ) {
        check_index(index)?;
        // SAFETY: guaranteed by the caller.
        unsafe { unmap(memory, mapped_ptr) }
    }
}

/// # Safety
/// The handle is NULL or live.
unsafe fn unmap(memory: sys::const_norm_memory_t, mapped_ptr: *mut c_void) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let memory = unsafe { Memory::get(memory, "memory") }?;
    if memory.data.cast() == mapped_ptr {
        Ok(())
    } else {
        Err(Error::invalid(
            "mapped_ptr: not the address that norm_memory_map_data returned for this memory",
        ))
    }
}
