//! How the kernels of layer normalization order their work: the tuning constants, and what one execution derives from
//! them. None changes a bit of the results. [`Schedule`] has what all operations share.

use crate::rows::Schedule;
use crate::simd::{BLOCK, Level};
use crate::tensor::DataType;

/// The most rows whose statistics are computed ahead. Sweeps over other rows then hide the latency of a row's
/// horizontal sum, square root and division.
pub(super) const DEPTH: usize = 4;

/// The longest rows of src or dst, in bytes, for which storing overlaps with summing a later row. RMS computes little
/// per element, so its limits are lower. The limits depend on whether src and dst stay in the second-level cache.
const LONGEST_RMS_OVERLAPPED: usize = 8 * 1024;
const LONGEST_RMS_OVERLAPPED_NOT_RESIDENT: usize = 4 * 1024;
const LONGEST_OVERLAPPED_NOT_RESIDENT: usize = 20 * 1024;
/// The limit for f32 to bf16, wherever the tensors are.
const LONGEST_F32_TO_BF16_OVERLAPPED: usize = 8 * 1024;

/// Short rows, 16 at a time: the longest rows, in bytes, for which the statistics of the next 16 are computed before 16
/// are stored.
pub(super) const LONGEST_SHORT_AHEAD: usize = 256;
pub(super) const LONGEST_SHORT_AHEAD_OF_STREAMS: usize = 64;
/// The shortest RMS rows, in bytes, for which summing overlaps with storing 16 earlier ones. Rows of more than
/// [`PROVISIONAL_COLS`](super::row::PROVISIONAL_COLS) elements always overlap.
pub(super) const SHORTEST_SHORT_OVERLAPPED: usize = 256;
/// The prefetch distance, in rows from the stored one.
pub(super) const SHORT_PREFETCH_ROWS: usize = 32;

/// Dense rows, four at a time: the prefetch distance in rows, if they come from memory.
pub(super) const DENSE_PREFETCH_ROWS: usize = 32;
/// The longest dense RMS rows, in bytes, that are also prefetched from a shared cache.
pub(super) const LONGEST_DENSE_PREFETCHED: usize = 128;
/// How many rows the general kernel runs after an f64 row before the dense kernel is tried again. Rows that need f64
/// come in runs, as padding does, and the dense kernel is slow to start.
pub(super) const ROWS_AFTER_F64: usize = 16;
/// The fewest rows with constant distances that are worth a job of their own.
pub(super) const SHORTEST_STRETCH: usize = 4;

/// Backward, a chain of short rows at a time: the longest rows of src or diff_dst, in bytes, for which a chain stays in
/// the first-level cache.
pub(super) const LONGEST_CHAINED: usize = 1024;
/// The longest if diff_src is stored non-temporally. Longer rows would be stored in pieces, alternating between the
/// rows of a chain.
pub(super) const LONGEST_CHAINED_STREAMED: usize = 512;
/// The longest for which the scalars of the next chain are computed before a chain is stored.
pub(super) const LONGEST_CHAIN_AHEAD: usize = 256;

/// The rows of a forward problem.
#[derive(Clone, Copy)]
pub(super) struct LongRows {
    pub(super) cols: usize,
    pub(super) types: [DataType; 2],
    pub(super) rms: bool,
    /// Whether the statistics are computed, and over whole rows.
    pub(super) whole: bool,
    pub(super) schedule: Schedule,
    /// Whether dst is stored non-temporally.
    pub(super) streams: bool,
}

impl LongRows {
    /// Bytes of a row of src and of dst.
    fn bytes(&self) -> [usize; 2] {
        self.types.map(|data_type| self.cols * data_type.size())
    }

    /// Whether storing a row overlaps with summing a later one, given enough registers.
    fn overlap(&self) -> bool {
        let [src, dst] = self.bytes();
        let (longest, resident) = (src.max(dst), self.schedule.resident);
        let f32_to_bf16 = self.types == [DataType::F32, DataType::Bf16];
        let fits = match (self.rms, resident, self.streams) {
            (true, true, _) => longest <= LONGEST_RMS_OVERLAPPED,
            (true, false, streams) => !streams && longest <= LONGEST_RMS_OVERLAPPED_NOT_RESIDENT,
            (false, _, false) if f32_to_bf16 => longest <= LONGEST_F32_TO_BF16_OVERLAPPED,
            (false, true, _) => true,
            (false, false, true) => src + dst <= self.schedule.caches.row_pair(),
            (false, false, false) => longest <= LONGEST_OVERLAPPED_NOT_RESIDENT,
        };
        self.whole && self.cols <= BLOCK && fits
    }
}

/// How forward pipelines long rows.
#[derive(Clone, Copy)]
pub(super) struct Pipelining {
    /// Whether storing a row overlaps with summing a later one.
    pub(super) overlapped: bool,
    /// Whether two rows are stored at once.
    pub(super) pairs: bool,
    /// How many rows may be pending: summed, but not stored yet.
    pub(super) depth: usize,
}

impl Pipelining {
    #[inline]
    pub(super) fn new(rows: &LongRows, level: Level) -> Self {
        let many_registers = level.has_many_registers();
        let (resident, [src, dst]) = (rows.schedule.resident, rows.bytes());
        let overlapped = many_registers && rows.overlap();
        // Stores of bf16 are batched, and with two rows at once there are fewer vectors to batch.
        let batched = rows.types[1] == DataType::Bf16 && overlapped;
        let pairs = many_registers && !rows.rms && resident && !batched;
        let rows_at_once = if pairs { 2 } else { 1 };
        let in_cache = rows.schedule.caches.working_set() / src.max(dst).max(1);
        let depth = if overlapped && in_cache < 3 * rows_at_once {
            rows_at_once
        } else if overlapped {
            2 * rows_at_once
        } else if rows.rms && !resident {
            // Both sweeps are memory-bound, so a row is stored while it is still in the cache.
            1
        } else {
            (in_cache / 4).clamp(1, DEPTH)
        };
        Self { overlapped, pairs, depth }
    }
}
