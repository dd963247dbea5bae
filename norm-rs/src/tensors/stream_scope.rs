//! The stream of a thread's calls: [`on_stream`].

use std::cell::Cell;
use std::ptr::NonNull;

use crate::stream::Stream;

thread_local! {
    /// The stream of the innermost `on_stream` on this thread. Its lifetime is erased.
    static CURRENT: Cell<Option<NonNull<Stream<'static>>>> = const { Cell::new(None) };
}

/// Runs `f`; functions on slices, arrays and tensors that it calls on this thread execute on
/// `stream` instead of on the library's threads.
///
/// This is how they use the program's own thread pool:
///
/// ```
/// let mut stream = norm_rs::Stream::new(&norm_rs::Engine::cpu()?)?;
/// stream.set_parallel_for(1, |count, body| (0..count).for_each(body))?;
/// let (src, mut dst) = ([1.0f32, 7.0], [0.0f32; 2]);
/// norm_rs::on_stream(&stream, || norm_rs::rms_norm(&src, 2, None::<&[f32]>, None, 0.0, &mut dst))?;
/// assert_eq!(dst, [0.2, 1.4]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub fn on_stream<R>(stream: &Stream<'_>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<NonNull<Stream<'static>>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace(Some(NonNull::from(stream).cast())));
    f()
}

/// Calls `f` with the thread's stream, or with `own` outside of `on_stream`.
pub(crate) fn with_current<R>(own: &Stream<'_>, f: impl FnOnce(&Stream<'_>) -> R) -> R {
    match CURRENT.get() {
        // SAFETY: `on_stream` borrows the stream until it has taken the pointer out again, and the
        // pointer does not leave the thread.
        Some(stream) => f(unsafe { stream.as_ref() }),
        None => f(own),
    }
}
