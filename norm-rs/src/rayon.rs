//! Streams on rayon's threads.

use ::rayon::ThreadPool;
use ::rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::engine::Engine;
use crate::error::Result;
use crate::stream::Stream;

/// The most threads that [`Stream::set_parallel_for`] accepts.
const MAX_THREADS: usize = 255;

/// Runs `body` for each index below `count` on the threads of the current pool.
fn on_current_pool(count: usize, body: &(dyn Fn(usize) + Sync)) {
    // Pieces are large: each may run on a thread of its own.
    (0..count).into_par_iter().with_max_len(1).for_each(body);
}

impl Stream<'static> {
    /// A stream that executes on rayon's threads: those of the pool that the executing thread
    /// belongs to, or the global pool. Feature `rayon`.
    ///
    /// ```
    /// let stream = norm_rs::Stream::on_rayon(&norm_rs::Engine::cpu()?)?;
    /// let (src, mut dst) = (vec![3.0f32; 1 << 20], vec![0.0f32; 1 << 20]);
    /// norm_rs::on_stream(&stream, || norm_rs::softmax(&src, 1 << 10, &mut dst))?;
    /// assert_eq!(dst[0], 1.0 / 1024.0);
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn on_rayon(engine: &Engine) -> Result<Self> {
        let mut stream = Stream::new(engine)?;
        let num_threads = ::rayon::current_num_threads().min(MAX_THREADS);
        stream.set_parallel_for(num_threads, on_current_pool)?;
        Ok(stream)
    }
}

impl<'p> Stream<'p> {
    /// A stream that executes on the threads of `pool`. A thread outside the pool waits for it.
    /// Feature `rayon`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn on_rayon_pool(engine: &Engine, pool: &'p ThreadPool) -> Result<Self> {
        let mut stream = Stream::new(engine)?;
        let num_threads = pool.current_num_threads().min(MAX_THREADS);
        stream.set_parallel_for(num_threads, |count, body| {
            pool.install(|| on_current_pool(count, body));
        })?;
        Ok(stream)
    }
}
