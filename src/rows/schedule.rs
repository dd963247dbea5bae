//! The tuning constants that operations share. None changes a bit of the results.
//!
//! Limits that depend on a core's own caches are fractions of their sizes, which are read from the machine. The others
//! were measured on machines with at least 32 MiB of last-level cache.

use crate::simd::Level;
use crate::tensor::DataType;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The fewest elements per thread. With fewer, the hand-over costs more than it saves.
pub(super) const ELEMENTS_PER_THREAD: usize = 24 * 1024;
/// The fewest elements for which sleeping threads are woken. With fewer, only threads that still spin after an earlier
/// execution take part.
pub(super) const ELEMENTS_TO_WAKE_FOR: usize = 512 * 1024;
/// Blocks per thread if the results do not depend on the split. With several, a delayed thread holds up the others only
/// a little.
pub(crate) const BLOCKS_PER_THREAD: usize = 4;

/// The most blocks of rows where each block may have a row of f32 in the scratchpad, as in reference implementations.
pub(crate) const PLAIN_BLOCKS: usize = 16;

/// Elementwise: the elements of a unit that is computed in place, and the fewest, a multiple of the elements of a cache
/// line.
pub(super) const ELEMENTS_IN_PLACE: usize = 16 * 1024;
pub(super) const FEWEST_IN_PLACE: usize = 1024;
/// Rows of a unit if a tensor is strided in the last dimension. Adjacent rows share cache lines.
pub(super) const ROWS_OF_STRIDED: usize = 32;
/// The shortest rows that are read in place one by one if their strides vary.
pub(super) const SHORTEST_IN_PLACE: usize = 128;

/// The total size of the tensors, in bytes, from which outputs are stored non-temporally. Larger outputs would not stay
/// in a cache for the next reader, and non-temporal stores do not read the lines first.
const STREAMED_BYTES: usize = 16 << 20;
/// The limit for src alone if the current rows stay in the first-level cache. No load then waits for a line that a
/// store evicted, so dst may fill a cache as long as src also fits.
const STREAMED_SRC_BYTES: usize = 10 << 20;
/// The limit for src and dst with rows of up to [`SHORT_COLS`] columns, where non-temporal stores cost more.
const STREAMED_BYTES_OF_SHORT: usize = 24 << 20;
const SHORT_COLS: usize = 256;
/// The limit for src and dst with several threads. The bandwidth of a shared cache scales with the threads, that of
/// memory does not.
pub(crate) const STREAMED_BYTES_OF_SEVERAL: usize = 48 << 20;
/// The same with a small first-level cache, where one thread streams rows of any length from [`STREAMED_BYTES`] on. On a
/// Zen 4 whose shared cache has 32 MiB, f32 of 16 MiB with one thread and of 32 MiB with two took 0.5 to 0.9 of the
/// time; RMS without scale in 16 bits, 0.7 to 1.4.
const STREAMED_BYTES_OF_SEVERAL_SMALL_FIRST: usize = 28 << 20;
/// The same if there are no AVX-512 kernels for the machine. On a Zen 3 whose shared cache has 32 MiB, f32 of 20 to 24 MiB
/// with two threads took 0.6 to 0.9 of the time; RMS and elementwise operations of 16 MiB, up to 1.3 times as long.
const STREAMED_BYTES_OF_SEVERAL_WITHOUT_AVX512: usize = 20 << 20;
/// The size of src and dst from which rows of streamed problems certainly come from memory.
const BYTES_IN_MEMORY: usize = 96 << 20;
/// The second-level cache of cores whose shared cache is slow, as on a Sapphire Rapids. There, streamed rows from memory
/// are fetched better during non-temporal stores than during sums: LayerNorm took 0.8 to 0.93 of the time.
const LARGE_SECOND: usize = 2 << 20;
/// The limit for rows that are unpacked from a stage. The computation in between gives the last-level cache time.
pub(super) const STREAMED_BYTES_OF_STAGED: usize = 64 << 20;

/// The shortest quantized rows that are stored non-temporally, in columns. Rows of s8 of half the length took 1.2 times
/// as long.
pub(super) const SHORTEST_QUANTIZED_STREAMED: usize = 256;

/// The part of the second-level cache that the few rows of a stage may fill: an eighth, or a 32nd for post-operations
/// on tensors in memory, whose rows should not leave the first-level cache on the way.
pub(super) const PART_OF_SECOND: usize = 8;
pub(super) const PART_OF_SECOND_FROM_MEMORY: usize = 32;
/// The fewest rows of a stage with post-operations that are left in the first-level cache rather than joined by more. A
/// sum over rows of 768 bf16 then took 0.88 of the time on a Sapphire Rapids.
pub(super) const ROWS_OF_CHAIN: usize = 8;
/// Rows per stage if the last dimension is strided, as many as fit these bytes of second-level cache. Adjacent rows
/// share cache lines.
pub(super) const ROWS_TO_TRANSPOSE: usize = 32;
pub(super) const BYTES_TO_TRANSPOSE: usize = 512 * 1024;
/// Bytes of a page. The low bits of an address are the offset in its page.
pub(crate) const PAGE: usize = 4096;
/// The distance behind a store, modulo a page, within which loads may have to wait for it.
pub(crate) const ALIASED: usize = 1024;
/// The most stages, and their total size: a number of bytes, or a fraction of the size of all rows.
pub(super) const MOST_STAGES: usize = 64;
pub(super) const BYTES_OF_STAGES: usize = 64 << 20;
pub(super) const PART_OF_ROWS: usize = 8;

/// The caches that belong to one core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caches {
    pub(crate) first: usize,
    pub(crate) second: usize,
}

impl Caches {
    /// Sizes that most server cores have at least.
    const USUAL: Self = Self { first: 48 << 10, second: 1 << 20 };

    /// The caches of this machine, or the usual ones if the system does not report them.
    pub(crate) fn get() -> Self {
        // 0 before the first use. Not a `OnceLock`: after fork() the thread that holds it may not exist.
        static FIRST: AtomicUsize = AtomicUsize::new(0);
        static SECOND: AtomicUsize = AtomicUsize::new(0);
        let known =
            Self { first: FIRST.load(Ordering::Relaxed), second: SECOND.load(Ordering::Relaxed) };
        if known.first != 0 && known.second != 0 {
            return known;
        }
        let read = Self::read();
        FIRST.store(read.first, Ordering::Relaxed);
        SECOND.store(read.second, Ordering::Relaxed);
        read
    }

    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    fn read() -> Self {
        let size = |name, usual| {
            // SAFETY: no pointers.
            match unsafe { libc::sysconf(name) } {
                // Emulators and hypervisors may report sizes that no real cache has.
                bytes if (16 << 10..=64 << 20).contains(&bytes) => bytes as usize,
                _ => usual,
            }
        };
        Self {
            first: size(libc::_SC_LEVEL1_DCACHE_SIZE, Self::USUAL.first),
            second: size(libc::_SC_LEVEL2_CACHE_SIZE, Self::USUAL.second),
        }
    }

    #[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
    fn read() -> Self {
        Self::USUAL
    }

    /// Bytes of src and dst rows that fit the first-level cache.
    #[inline]
    pub(crate) fn working_set(self) -> usize {
        self.first / 3 * 2
    }

    /// Whether the second-level cache is large, which goes with a slow shared cache. Work on rows from there gains by
    /// having more of them in flight.
    #[inline]
    pub(crate) fn has_large_second(self) -> bool {
        self.second >= LARGE_SECOND
    }

    /// Whether the first-level cache is small, as on cores before Zen 5 and Ice Lake. On a Zen 4, prefetching from memory
    /// was much faster into the second-level cache.
    #[inline]
    pub(crate) fn has_small_first(self) -> bool {
        self.first < Self::USUAL.first
    }

    /// The total size of the tensors, in bytes, from which a number of threads stores non-temporally.
    #[inline]
    fn streamed_bytes(self, threads: usize) -> usize {
        match (threads, self.has_small_first()) {
            (..=1, _) => STREAMED_BYTES,
            (_, true) if Level::available()[0].has_many_registers() => {
                STREAMED_BYTES_OF_SEVERAL_SMALL_FIRST
            }
            (_, true) => STREAMED_BYTES_OF_SEVERAL_WITHOUT_AVX512,
            (_, false) => STREAMED_BYTES_OF_SEVERAL,
        }
    }

    /// Bytes of a row of src and one of dst that fit there together with the next row of each.
    #[inline]
    pub(crate) fn row_pair(self) -> usize {
        self.first / 12 * 5
    }
}

/// How the rows of a forward problem are read and written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// Src and dst stay in the second-level caches of the cores at work.
    pub(crate) resident: bool,
    /// Dst is stored non-temporally.
    pub(crate) streams: bool,
    /// Src comes from memory, and is better fetched while other rows are stored than while they are summed.
    pub(crate) fetches_late: bool,
    /// The size of src and dst.
    pub(crate) bytes: usize,
}

impl Schedule {
    /// For `rows` rows of `cols` columns, the data types of src and dst, and a number of threads.
    #[inline]
    pub(crate) fn new(
        caches: Caches,
        (rows, cols): (usize, usize),
        (src, dst): (DataType, DataType),
        threads: usize,
    ) -> Self {
        let (src, dst) = (cols.saturating_mul(src.size()), cols.saturating_mul(dst.size()));
        let row = src.saturating_add(dst);
        let both = rows.saturating_mul(row);
        let by_length = threads == 1 && !caches.has_small_first();
        let streams = if by_length && cols <= SHORT_COLS {
            both >= STREAMED_BYTES_OF_SHORT
        } else if by_length && row <= caches.row_pair() {
            rows.saturating_mul(src) >= STREAMED_SRC_BYTES
        } else {
            both >= caches.streamed_bytes(threads)
        };
        let fetches_late = streams && both >= BYTES_IN_MEMORY && caches.has_large_second();
        Self { resident: both <= threads * caches.second, streams, fetches_late, bytes: both }
    }

    /// Whether loads soon reach the offset in a page of earlier stores, because they are less than `near` bytes behind.
    /// Such loads wait for the stores (4K aliasing), and especially long for non-temporal ones.
    #[inline]
    pub(crate) fn is_aliased(stores: *mut u8, loads: *const u8, near: usize) -> bool {
        let ahead = stores.addr().wrapping_sub(loads.addr()) % PAGE;
        !loads.is_null() && (1..near).contains(&ahead)
    }

    /// Whether outputs are stored non-temporally if all tensors together have `bytes` bytes.
    pub(crate) fn streams_bytes(bytes: usize, threads: usize) -> bool {
        bytes >= Caches::get().streamed_bytes(threads)
    }
}
