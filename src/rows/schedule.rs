//! Every constant that decides how rows are read and written. None of them changes a bit.
//!
//! Limits that depend on the caches near a core are parts of their sizes, which are read from the machine. The others
//! were measured on machines with 32 MiB of last-level cache or more.

use crate::tensor::DataType;
use std::sync::OnceLock;

/// Elements for which a thread is worth its start; with fewer, the hand-over costs more than it saves.
pub(super) const ELEMENTS_PER_THREAD: usize = 24 * 1024;
/// Elements for which it pays to wake a sleeping thread. With fewer, only threads that still spin after an earlier
/// execution take part.
pub(super) const ELEMENTS_TO_WAKE_FOR: usize = 512 * 1024;
/// Blocks for each thread where the split is free, so that a thread that is held up delays the others little.
pub(super) const BLOCKS_PER_THREAD: usize = 4;

/// Bytes of a problem's tensors from which outputs are stored non-temporally: the next reader would not find them in its
/// cache anyway, and the lines are not read before they are written.
const STREAMED_BYTES: usize = 16 << 20;
/// The same of src alone where the rows at work stay in the first-level cache: then a load never waits for a line that a
/// store evicted, and dst may fill a cache as long as src stays there too.
const STREAMED_SRC_BYTES: usize = 10 << 20;
/// The same of src and dst for rows of up to [`SHORT_COLS`] columns, where non-temporal stores cost more.
const STREAMED_BYTES_OF_SHORT: usize = 24 << 20;
const SHORT_COLS: usize = 256;
/// The same of src and dst for several threads: stores to a shared cache get faster with each, stores to memory do not.
const STREAMED_BYTES_OF_SEVERAL: usize = 48 << 20;
/// The same for rows that leave a stage: what is computed on the way gives the last-level cache time.
pub(super) const STREAMED_BYTES_OF_STAGED: usize = 64 << 20;

/// Rows at once where the last dimension is strided, if that many bytes suit a second-level cache: neighbouring rows
/// share cache lines.
pub(super) const ROWS_TO_TRANSPOSE: usize = 32;
pub(super) const BYTES_TO_TRANSPOSE: usize = 512 * 1024;
/// The most stages, and what they may take together: so many bytes, or a part of what all rows would take.
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
    /// What most server cores have at least.
    const USUAL: Self = Self { first: 48 << 10, second: 1 << 20 };

    /// Those of this machine; the usual ones where the system does not tell.
    pub(crate) fn get() -> Self {
        static CACHES: OnceLock<Caches> = OnceLock::new();
        *CACHES.get_or_init(Self::read)
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn read() -> Self {
        let size = |name, usual| {
            // SAFETY: no pointers.
            match unsafe { libc::sysconf(name) } {
                // Sizes of no real cache are an emulator's or a hypervisor's.
                bytes if (16 << 10..=64 << 20).contains(&bytes) => bytes as usize,
                _ => usual,
            }
        };
        Self {
            first: size(libc::_SC_LEVEL1_DCACHE_SIZE, Self::USUAL.first),
            second: size(libc::_SC_LEVEL2_CACHE_SIZE, Self::USUAL.second),
        }
    }

    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    fn read() -> Self {
        Self::USUAL
    }

    /// Bytes of src and dst that the rows at work may have to stay in the first-level cache.
    pub(crate) fn working_set(self) -> usize {
        self.first / 3 * 2
    }

    /// Bytes of a row of src and one of dst that stay there together with the next ones of each.
    pub(crate) fn row_pair(self) -> usize {
        self.first / 12 * 5
    }
}

/// Where a forward problem's tensors live, and so how its rows are read and written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) caches: Caches,
    /// Src and dst stay in the second-level caches of the cores at work.
    pub(crate) resident: bool,
    /// Dst is stored non-temporally.
    pub(crate) streams: bool,
}

impl Schedule {
    /// For rows of `cols` columns of src and dst, on a number of threads.
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
        let streams = if threads > 1 {
            both >= STREAMED_BYTES_OF_SEVERAL
        } else if cols <= SHORT_COLS {
            both >= STREAMED_BYTES_OF_SHORT
        } else if row <= caches.row_pair() {
            rows.saturating_mul(src) >= STREAMED_SRC_BYTES
        } else {
            both >= STREAMED_BYTES
        };
        Self { caches, resident: both <= threads * caches.second, streams }
    }

    /// Whether an output of tensors with so many bytes in all is stored non-temporally.
    pub(crate) fn streams_bytes(bytes: usize) -> bool {
        bytes >= STREAMED_BYTES
    }
}
