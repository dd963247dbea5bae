//! Execution of primitives on the library's threads or on the caller's: [`Stream`].

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::panic;
use std::ptr;

use norm_sys as sys;

use crate::engine::Engine;
use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::parallel_for::{Pool, run_on_pool};
use crate::primitive::{self, Call};

/// Executes primitives in call order. An execution has finished when `execute` returns.
///
/// `'p` is the lifetime of the closure passed to [`set_parallel_for`](Self::set_parallel_for). A
/// stream can move to another thread but is used by one thread at a time. Streams are cheap; give
/// each thread its own:
///
/// ```compile_fail,E0277
/// # let engine = norm_rs::Engine::cpu()?;
/// let stream = norm_rs::Stream::new(&engine)?;
/// std::thread::scope(|s| { s.spawn(|| &stream); });
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Stream<'p> {
    // Declared before `pool`: fields are dropped in this order, and the C stream holds the pool's
    // address.
    handle: Handle<sys::norm_stream>,
    pool: Option<RegisteredPool<'p>>,
    /// Makes the type !Sync: norm.h allows concurrent use of primitives, not of one stream.
    not_sync: PhantomData<Cell<()>>,
}

impl<'p> Stream<'p> {
    /// A stream that uses the library's threads.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn new(engine: &Engine) -> Result<Self> {
        let flags = sys::norm_stream_default_flags;
        // SAFETY: the engine is valid; on success a stream that the caller owns is stored.
        let handle =
            unsafe { Handle::create(|out| sys::norm_stream_create(out, engine.as_ptr(), flags)) }?;
        Ok(Self { handle, pool: None, not_sync: PhantomData })
    }

    /// Makes executions on this stream use the caller's threads instead of the library's.
    ///
    /// `parallel_for(count, body)` must run `body(0)` ... `body(count - 1)`, each once, in any
    /// order and on any threads, and return after all of them have returned. `num_threads` is the
    /// number of threads to split work over, 1 to 255. Results have the same bits either way.
    ///
    /// An incorrect closure is harmless. A repeated index is ignored, and a missing index runs on
    /// the calling thread afterwards. If the closure panics, the execution is completed first, and
    /// the panic continues in the caller of `execute`.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// # let engine = norm_rs::Engine::cpu()?;
    /// let mut stream = norm_rs::Stream::new(&engine)?;
    /// stream.set_parallel_for(2, |count, body| {
    ///     let next = AtomicUsize::new(0);
    ///     let work = || loop {
    ///         let index = next.fetch_add(1, Relaxed);
    ///         if index >= count {
    ///             break;
    ///         }
    ///         body(index);
    ///     };
    ///     std::thread::scope(|s| {
    ///         s.spawn(work);
    ///         work();
    ///     });
    /// })?;
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// Data that the closure borrows must outlive the stream:
    ///
    /// ```compile_fail,E0597
    /// # let engine = norm_rs::Engine::cpu()?;
    /// let mut stream = norm_rs::Stream::new(&engine)?;
    /// {
    ///     let calls = std::sync::atomic::AtomicUsize::new(0);
    ///     stream.set_parallel_for(1, |count, body| {
    ///         calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    ///         (0..count).for_each(body);
    ///     })?;
    /// }
    /// stream.wait()?;
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if `num_threads` is 0 or
    /// above 255. The stream is then unchanged.
    pub fn set_parallel_for<F>(&mut self, num_threads: usize, parallel_for: F) -> Result<()>
    where
        F: Fn(usize, &(dyn Fn(usize) + Sync)) + Send + Sync + 'p,
    {
        let num_threads = i32::try_from(num_threads).map_err(|_| {
            Error::invalid("num_threads", format_args!("is {num_threads}; the most is 255"))
        })?;
        let pool = RegisteredPool::new(Pool::new(Box::new(parallel_for)));
        // SAFETY: the stream is valid and `&mut self` makes the change exclusive. The pool lives
        // until the stream gets another one or is destroyed: `pool` is dropped after both.
        check(unsafe {
            sys::norm_stream_set_parallel_for(
                self.as_ptr(),
                Some(run_on_pool),
                pool.0.cast(),
                num_threads,
            )
        })?;
        self.pool = Some(pool);
        Ok(())
    }

    /// Restores the library's threads.
    ///
    /// # Errors
    /// None in practice; only an internal error of the library.
    pub fn use_library_threads(&mut self) -> Result<()> {
        // SAFETY: the stream is valid and `&mut self` makes the change exclusive.
        check(unsafe {
            sys::norm_stream_set_parallel_for(self.as_ptr(), None, ptr::null_mut(), 1)
        })?;
        self.pool = None;
        Ok(())
    }

    /// Executes calls that do not depend on each other in one parallel region. Results have the bits of executing
    /// them one after another. Threads take whole primitives, and then rows of those that still run.
    ///
    /// ```
    /// use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
    /// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
    ///
    /// let engine = Engine::cpu()?;
    /// let stream = Stream::new(&engine)?;
    /// // Norms of the heads of queries and keys.
    /// let (queries, keys) = (vec![0.5f32; 32 * 128], vec![2.0f32; 8 * 128]);
    /// let [query_desc, key_desc] =
    ///     [32, 8].map(|heads| MemoryDesc::dense(&[heads, 128], DataType::F32).unwrap());
    /// let norm = |desc| Forward::inference(&engine, desc).flags(Flags::RMS_NORM).build();
    /// let (query_norm, key_norm) = (norm(&query_desc)?, norm(&key_desc)?);
    /// let src = Memory::from_slice(&engine, &query_desc, &queries)?;
    /// let key_src = Memory::from_slice(&engine, &key_desc, &keys)?;
    /// let mut dst = Memory::new(&engine, &query_desc)?;
    /// let mut key_dst = Memory::new(&engine, &key_desc)?;
    /// stream.execute_many(&[
    ///     query_norm.with(ForwardArgs::new(&src, &mut dst))?,
    ///     key_norm.with(ForwardArgs::new(&key_src, &mut key_dst))?,
    /// ])?;
    /// assert!((key_dst.as_slice::<f32>()?[0] - 1.0).abs() < 1e-4);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), with the indices of the calls: they share a
    /// scratchpad. [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory). On failure nothing is written.
    ///
    /// # Panics
    /// As [`Primitive::execute`](crate::primitive::Primitive::execute).
    pub fn execute_many(&self, calls: &[Call<'_>]) -> Result<()> {
        primitive::execute_many(self, calls)
    }

    /// Waits until everything on the stream has finished. On the CPU that is always the case.
    ///
    /// # Errors
    /// None in practice; only an internal error of the library.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the stream is valid.
        check(unsafe { sys::norm_stream_wait(self.as_ptr()) })
    }

    /// Resumes a panic of the caller's closure, now that no C function is on the stack.
    pub(crate) fn resume_panic(&self) {
        if let Some(payload) = self.pool.as_ref().and_then(|pool| pool.get().take_panic()) {
            panic::resume_unwind(payload);
        }
    }

    pub(crate) fn as_ptr(&self) -> sys::norm_stream_t {
        self.handle.as_ptr()
    }
}

impl fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("parallel_for", &self.pool.is_some()).finish()
    }
}

/// A pool whose address C holds.
///
/// A raw pointer instead of a `Box`, because moving a `Box` asserts that no other pointer to its
/// content exists.
struct RegisteredPool<'p>(*mut Pool<'p>);

// SAFETY: it owns a Pool, which is Send (checked below).
unsafe impl Send for RegisteredPool<'_> {}
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Pool<'static>>();
};

impl<'p> RegisteredPool<'p> {
    fn new(pool: Pool<'p>) -> Self {
        Self(Box::into_raw(Box::new(pool)))
    }

    fn get(&self) -> &Pool<'p> {
        // SAFETY: from Box::into_raw, and only drop frees it.
        unsafe { &*self.0 }
    }
}

impl Drop for RegisteredPool<'_> {
    fn drop(&mut self) {
        // SAFETY: from Box::into_raw, and drop runs once.
        drop(unsafe { Box::from_raw(self.0) });
    }
}
