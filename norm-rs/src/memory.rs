//! A descriptor and a buffer: [`Memory`].
//!
//! The library allocates the buffer, or the memory borrows a slice. Memory over a `&[T]` can only
//! be an input. Memory over a `&mut [T]` has exclusive access to its elements while it lives.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::slice;

use norm_sys as sys;

use crate::data_type::{DataType, Element};
use crate::engine::Engine;
use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::memory_desc::MemoryDesc;

mod sealed {
    pub trait Sealed {}
}

/// The permitted use of a [`Memory`]: [`ReadWrite`] or [`ReadOnly`].
pub trait Access: sealed::Sealed + Send + Sync + 'static {}

/// The memory can be an input or an output.
#[derive(Debug)]
pub enum ReadWrite {}

/// The memory can only be an input: it borrows a shared slice.
#[derive(Debug)]
pub enum ReadOnly {}

impl sealed::Sealed for ReadWrite {}
impl sealed::Sealed for ReadOnly {}
impl Access for ReadWrite {}
impl Access for ReadOnly {}

/// A tensor: a [`MemoryDesc`] and a buffer borrowed for `'a` (`'static` if the library allocated
/// it).
///
/// The buffer must outlive the memory:
///
/// ```compile_fail,E0597
/// # use norm_rs::{DataType, Engine, Memory, MemoryDesc};
/// # let engine = Engine::cpu()?;
/// # let desc = MemoryDesc::dense(&[3], DataType::F32)?;
/// let memory = {
///     let x = vec![1.0f32, 2.0, 3.0];
///     Memory::from_slice(&engine, &desc, &x)?
/// };
/// println!("{memory:?}");
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// Two writable memories cannot share a buffer:
///
/// ```compile_fail,E0499
/// # use norm_rs::{DataType, Engine, Memory, MemoryDesc};
/// # let engine = Engine::cpu()?;
/// # let desc = MemoryDesc::dense(&[3], DataType::F32)?;
/// let mut x = vec![1.0f32, 2.0, 3.0];
/// let a = Memory::from_mut_slice(&engine, &desc, &mut x)?;
/// let b = Memory::from_mut_slice(&engine, &desc, &mut x)?;
/// drop(a);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Memory<'a, A: Access = ReadWrite> {
    handle: Handle<sys::norm_memory>,
    /// The address of the first element; null if there is no buffer.
    data: *mut u8,
    /// Elements from the first to the last in a buffer of the descriptor's size, including gaps.
    elements: usize,
    data_type: Option<DataType>,
    buffer: PhantomData<&'a mut [u8]>,
    access: PhantomData<A>,
}

// SAFETY: a memory is its handle, which is Send, and exclusive (ReadWrite) or shared (ReadOnly)
// access to a buffer of plain numbers for 'a; references of both kinds are Send.
unsafe impl<A: Access> Send for Memory<'_, A> {}
// SAFETY: `&Memory` only reads the buffer and does not modify the C object.
unsafe impl<A: Access> Sync for Memory<'_, A> {}

impl Memory<'static> {
    /// Memory with its own zero-filled, 64-byte aligned buffer.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory), or
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the layout is
    /// [`Tag::Any`](crate::Tag::Any).
    pub fn new(engine: &Engine, desc: &MemoryDesc) -> Result<Self> {
        // SAFETY: the library allocates the descriptor's size and frees it with the memory.
        unsafe { Self::with_handle(engine, desc, sys::NORM_MEMORY_ALLOCATE) }
    }

    /// A host scalar: a number stored in the memory object itself, without an engine or a buffer. Pass it only where
    /// [`Attr::set_host_scale`](crate::Attr::set_host_scale) or
    /// [`Attr::set_host_dropout`](crate::Attr::set_host_dropout) asks for one. Executions read the number when they
    /// run. Slices of it are empty.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn host_scalar<T: Element>(value: T) -> Result<Self> {
        let value = ptr::from_ref(&value).cast_mut().cast();
        // SAFETY: on success objects that the caller owns are stored. The number is copied, and
        // has the descriptor's type.
        let handle = unsafe {
            let data_type = T::DATA_TYPE.to_c();
            let desc: Handle<sys::norm_memory_desc> =
                Handle::create(|out| sys::norm_memory_desc_create_host_scalar(out, data_type))?;
            Handle::create(|out| sys::norm_memory_create_host_scalar(out, desc.as_ptr(), value))
        }?;
        Ok(Self {
            handle,
            data: ptr::null_mut(),
            elements: 0,
            data_type: Some(T::DATA_TYPE),
            buffer: PhantomData,
            access: PhantomData,
        })
    }

    /// Replaces the number of a host scalar.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): the number's type is not
    /// the memory's, or the memory is not a host scalar.
    pub fn set_host_scalar<T: Element>(&mut self, value: T) -> Result<()> {
        self.has_type::<T>("set_host_scalar")?;
        let value = ptr::from_ref(&value).cast();
        // SAFETY: the memory is valid and borrowed exclusively. The number is copied, and has the
        // memory's type.
        check(unsafe { sys::norm_memory_set_host_scalar_value(self.as_ptr(), value) })
    }
}

impl<'a> Memory<'a> {
    /// Memory over a borrowed slice, for input and output.
    ///
    /// The slice may be longer than the tensor; the rest is not accessed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): the element type is not
    /// the descriptor's, or there are too few elements.
    pub fn from_mut_slice<T: Element>(
        engine: &Engine,
        desc: &MemoryDesc,
        slice: &'a mut [T],
    ) -> Result<Self> {
        fits::<T>(desc, slice.len())?;
        // SAFETY: the slice has the descriptor's type and at least its size, and is borrowed
        // exclusively while the memory lives.
        unsafe { Self::with_handle(engine, desc, slice.as_mut_ptr().cast()) }
    }

    /// Memory over a buffer that Rust does not manage, such as another language's, for input and output.
    ///
    /// `data` may be null. Executions with memory that has no buffer fail with
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) until
    /// [`set_raw`](Self::set_raw) sets one.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the layout is
    /// [`Tag::Any`](crate::Tag::Any).
    ///
    /// # Safety
    /// While the memory lives or until `set_raw` replaces it, `data` is null or points to a buffer
    /// of the descriptor's type, alignment and size. Executions with the memory as an input may
    /// read it, executions with the memory as an output may write it, and nothing else accesses it
    /// meanwhile, except readers of an input.
    pub unsafe fn from_raw(engine: &Engine, desc: &MemoryDesc, data: *mut u8) -> Result<Self> {
        // This value means "allocate" and is not the address of a buffer.
        if data.cast() == sys::NORM_MEMORY_ALLOCATE {
            return Err(Error::invalid("data", "is not an address"));
        }
        // SAFETY: the caller's promise.
        unsafe { Self::with_handle(engine, desc, data.cast()) }
    }

    /// Replaces the buffer; null removes it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if `data` is the
    /// library's mark for "allocate" (all bits set). The memory is then unchanged.
    ///
    /// # Safety
    /// As [`from_raw`](Self::from_raw).
    pub unsafe fn set_raw(&mut self, data: *mut u8) -> Result<()> {
        // SAFETY: the memory is valid and borrowed exclusively; the rest is the caller's promise.
        check(unsafe { sys::norm_memory_set_data_handle(self.as_ptr(), data.cast()) })?;
        self.data = data;
        Ok(())
    }

    /// The elements from the first to the last in memory, including gaps of the layout.
    ///
    /// # Errors
    /// As [`Memory::as_slice`].
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.has_type::<T>("as_mut_slice")?;
        let len = self.len();
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the buffer holds `len` initialized elements of this type with its alignment
        // (checked when the memory was created); `&mut self` makes the access exclusive.
        Ok(unsafe { slice::from_raw_parts_mut(self.data.cast(), len) })
    }

    /// Copies elements into the buffer, including gaps of the layout.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): the element type or the
    /// number of elements is not the memory's.
    pub fn copy_from_slice<T: Element>(&mut self, elements: &[T]) -> Result<()> {
        let buffer = self.as_mut_slice()?;
        if buffer.len() != elements.len() {
            return Err(Error::invalid(
                "elements",
                format_args!(
                    "has {} elements; pass {}, as the memory has",
                    elements.len(),
                    buffer.len()
                ),
            ));
        }
        buffer.copy_from_slice(elements);
        Ok(())
    }
}

impl<'a> Memory<'a, ReadOnly> {
    /// Memory over a borrowed slice, for input.
    ///
    /// The slice may be longer than the tensor.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): the element type is not
    /// the descriptor's, or there are too few elements.
    pub fn from_slice<T: Element>(
        engine: &Engine,
        desc: &MemoryDesc,
        slice: &'a [T],
    ) -> Result<Self> {
        fits::<T>(desc, slice.len())?;
        // SAFETY: the slice has the descriptor's type and at least its size, and is borrowed while
        // the memory lives. It is not written: a ReadOnly memory is only ever an input, and the
        // library does not write inputs.
        unsafe { Self::with_handle(engine, desc, slice.as_ptr().cast_mut().cast()) }
    }
}

impl<A: Access> Memory<'_, A> {
    /// # Safety
    /// `buffer` is `NORM_MEMORY_ALLOCATE`, or points to a buffer of the type and size of `desc`,
    /// readable (and writable if `A` is `ReadWrite`) for the lifetime of the result.
    pub(crate) unsafe fn with_handle(
        engine: &Engine,
        desc: &MemoryDesc,
        buffer: *mut std::ffi::c_void,
    ) -> Result<Self> {
        // SAFETY: descriptor and engine are valid, and the caller guarantees the buffer; on success
        // a memory that the caller owns is stored.
        let handle = unsafe {
            Handle::create(|out| {
                sys::norm_memory_create(out, desc.as_ptr(), engine.as_ptr(), buffer)
            })
        }?;
        let mut data = ptr::null_mut();
        // SAFETY: the memory is valid and `data` is a place for the answer.
        check(unsafe { sys::norm_memory_get_data_handle(handle.as_ptr(), &mut data) })?;
        let data_type = desc.data_type();
        let elements = data_type.map_or(0, |data_type| desc.size() / data_type.size());
        Ok(Self {
            handle,
            data: data.cast(),
            elements,
            data_type,
            buffer: PhantomData,
            access: PhantomData,
        })
    }

    /// The elements from the first to the last in memory, including gaps of the layout.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments): the element type is not
    /// the memory's.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.has_type::<T>("as_slice")?;
        let len = self.len();
        if len == 0 {
            return Ok(&[]);
        }
        // SAFETY: the buffer holds `len` initialized elements of this type with its alignment
        // (checked when the memory was created); nothing writes while `&self` lives.
        Ok(unsafe { slice::from_raw_parts(self.data.cast(), len) })
    }

    /// The number of elements that the slices have; 0 without a buffer.
    fn len(&self) -> usize {
        if self.data.is_null() { 0 } else { self.elements }
    }

    /// A copy of the descriptor.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn desc(&self) -> Result<MemoryDesc> {
        // SAFETY: the memory is valid, and so is the descriptor that it owns.
        unsafe { MemoryDesc::copy_of(self.desc_ptr()?) }
    }

    /// The descriptor, owned by the C object.
    pub(crate) fn desc_ptr(&self) -> Result<sys::const_norm_memory_desc_t> {
        // SAFETY: the memory is valid.
        unsafe { desc_of(self.as_ptr()) }
    }

    pub(crate) fn as_ptr(&self) -> sys::norm_memory_t {
        self.handle.as_ptr()
    }

    /// Rejects another element type than the memory's in a method.
    fn has_type<T: Element>(&self, method: &str) -> Result<()> {
        let Some(own) = self.data_type.filter(|own| *own != T::DATA_TYPE) else { return Ok(()) };
        let given = T::DATA_TYPE;
        Err(match own.rust_name() {
            Some(name) => Error::invalid(
                "T",
                format_args!(
                    "is {given}, but the tensor's elements are {own}; call {method}::<{name}>"
                ),
            ),
            None => Error::invalid(
                "T",
                format_args!(
                    "is {given}, but the tensor's elements are {own}, which no type in Rust stands for; create the memory \
                     over bytes of your own with from_raw"
                ),
            ),
        })
    }
}

/// The descriptor of a memory, owned by it.
///
/// # Safety
/// `memory` is valid.
pub(crate) unsafe fn desc_of(memory: sys::norm_memory_t) -> Result<sys::const_norm_memory_desc_t> {
    let mut desc = ptr::null();
    // SAFETY: the caller's promise; `desc` is a place for the answer.
    check(unsafe { sys::norm_memory_get_memory_desc(memory, &mut desc) })?;
    Ok(desc)
}

/// Whether a slice of `len` elements is large enough for the tensor.
fn fits<T: Element>(desc: &MemoryDesc, len: usize) -> Result<()> {
    if let Some(own) = desc.data_type()
        && own != T::DATA_TYPE
    {
        let given = T::DATA_TYPE;
        return Err(Error::invalid(
            "slice",
            format_args!(
                "has elements of {given}, but the tensor's are {own}; pass a slice of {own} or a \
                 descriptor of {given}"
            ),
        ));
    }
    let needed = desc.size() / size_of::<T>();
    if len < needed {
        return Err(Error::invalid(
            "slice",
            format_args!("has {len} elements; pass {}", at_least(needed, desc)),
        ));
    }
    Ok(())
}

/// A number of elements, with its factors or else with the descriptor whose layout needs them.
fn at_least(needed: usize, desc: &MemoryDesc) -> String {
    let dims = desc.dims();
    let count = dims.iter().fold(1usize, |count, dim| count.saturating_mul(*dim));
    if count != needed {
        return format!("{needed} or more, for {desc}");
    }
    if dims.len() == 1 {
        return format!("{needed} or more");
    }
    let factors: Vec<_> = dims.iter().map(usize::to_string).collect();
    format!("{} = {needed} or more", factors.join(" x "))
}

impl<A: Access> fmt::Debug for Memory<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.desc() {
            Ok(desc) => write!(f, "Memory({desc})"),
            Err(_) => f.write_str("Memory"),
        }
    }
}
