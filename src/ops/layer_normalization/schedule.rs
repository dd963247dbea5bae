//! How the kernels of layer normalization order their work: the tuning constants, and what a problem and an execution
//! derive from them. None changes a bit of the results. [`Schedule`](crate::rows::Schedule) has what all operations
//! share.

use crate::heap::LINE;
use crate::rows::{ALIASED, CHAIN_ROWS, Caches, PAGE, STREAMED_BYTES_OF_SEVERAL, Schedule};
use crate::simd::{BLOCK, Cache, GROUP, LANES, Level};
use crate::tensor::DataType;

/// The most rows whose statistics are computed ahead. Sweeps over other rows then hide the latency of a row's
/// horizontal sum, square root and division.
pub(super) const DEPTH: usize = 4;

/// The longest rows of src or dst, in bytes, for which storing overlaps with summing a later row. RMS computes little
/// per element, so its limits are lower. The limits depend on whether src and dst stay in the second-level cache.
const LONGEST_RMS_OVERLAPPED: usize = 8 * 1024;
const LONGEST_RMS_OVERLAPPED_NOT_RESIDENT: usize = 4 * 1024;
/// The same with a large second-level cache. Rows of 3072 to 5120 bf16 took 0.85 to 0.9 of the time.
const LONGEST_RMS_OVERLAPPED_LARGE_SECOND: usize = 16 * 1024;
const LONGEST_OVERLAPPED_NOT_RESIDENT: usize = 20 * 1024;
/// The limit for RMS rows of src, dst and scale together with a small first-level cache, if src and dst differ in type
/// and stay in the second. On a Zen 4, such rows took 0.8 to 0.95 of the time; longer ones, up to 1.1 times as long. Rows
/// of 16 bits of any length took 0.87 to 0.99.
const LONGEST_RMS_OVERLAPPED_CONVERTED: usize = 26 * 1024;
/// How many rows must fit the first-level cache if a row is summed while another waits to be stored, for each row that is
/// stored at once; the same for RMS in f32 if that cache is small and src and dst exceed it by a quarter. With none
/// waiting, rows of 4 to 6 KiB then took 0.8 to 1.0 of the time on a Zen 4; shorter ones, and those of smaller tensors,
/// up to 1.2 times as long.
const FEWEST_IN_CACHE: usize = 3;
const FEWEST_RMS_IN_CACHE: usize = 6;
/// The shortest RMS rows, in bytes, that overlap if dst is streamed, and the total size of the tensors, if the first-level
/// cache is small and src or dst is not of 16 bits. On a Zen 4 they took 0.8 to 0.95 of the time; rows of 4 to 20 KiB, up
/// to 1.1 times as long. Rows of 16 bits of any length took 0.74 to 1.05 of the time.
const SHORTEST_RMS_STREAMED: usize = 32 * 1024;
const RMS_BYTES_STREAMED: usize = 64 << 20;
/// The shortest rows, in bytes, that are not stored in pairs unless they are whole cache lines. The stores of one of the
/// two then cross lines, and may make loads of the other wait (4K aliasing): one by one, rows of 1000 to 5000 f32 took
/// 0.78 to 1.0 of the time on a Sapphire Rapids, and rows of 500 to 700, more than in pairs.
const SHORTEST_UNEVEN: usize = 3584;
/// The limit for f32 to bf16, wherever the tensors are.
const LONGEST_F32_TO_BF16_OVERLAPPED: usize = 8 * 1024;

/// The shortest rows of src, in bytes, that are prefetched into the second-level cache if the first is small: LayerNorm
/// of long rows, where the next row is prefetched; the same of rows of up to [`GROUP`] columns, where one many rows
/// ahead is, with f32 and with 16 bits; backward, with AVX-512 only. Forward RMS has no such limit. From memory on a Zen
/// 4, such rows took 0.65 to 0.98 of the time; shorter ones, and backward with AVX2, up to 1.2 times as long.
const SHORTEST_NEXT_INTO_SECOND: usize = 2 * 1024;
const SHORTEST_INTO_SECOND: usize = 256;
const SHORTEST_HALF_INTO_SECOND: usize = 384;
/// The RMS rows that are prefetched into the first-level cache nevertheless, unless src and dst have 16 bits: the shortest
/// row of src and the most that two of them and scale may have together, in bytes for each byte of an element of src or
/// dst, whichever is smaller, and at least for two. From memory on a Zen 4, such rows took 0.74 to 1.0 of the time; shorter
/// ones 0.88 to 1.15, longer ones 1.0 to 1.36.
const SHORTEST_RMS_INTO_FIRST: usize = 2 * 1024;
const LONGEST_RMS_INTO_FIRST: usize = 12 * 1024;
/// The smallest total size of the tensors, in bytes, for which long RMS rows are prefetched into the second-level cache.
/// Smaller tensors may be in a shared cache; rows from there took 1.0 to 1.2 times as long.
const RMS_BYTES_INTO_SECOND: usize = 40 << 20;
/// The longest RMS rows of src or dst, in bytes, that are prefetched into the second-level cache if dst is staged, unless
/// that cache is large. From memory, post-operation chains over such rows took 0.79 to 1.0 of the time on a Zen 4, and 0.88
/// to 1.0 on a Zen 5; over longer ones, up to 1.07 times as long on the Zen 4.
const LONGEST_RMS_BESIDE_STAGE: usize = 24 * 1024;
/// The size of src and dst from which RMS rows with scale are prefetched although they are not streamed, because little
/// of src is left in the shared cache. On two threads of a Zen 5, 32 to 40 MiB of 16 bits took 0.76 to 0.87 of the time;
/// 24 MiB, and rows without scale, up to 1.14 times as long.
const SHARED_BYTES_PREFETCHED: usize = 28 << 20;
/// The fewest bytes between a row that is summed and one that is meanwhile prefetched into the second-level cache.
const BYTES_AHEAD: usize = 4 * 1024;

/// The longest pair of rows, in bytes, that fits any first-level cache unless rows are whole pages, which compete for
/// the same sets. With 32 KiB, overlapped rows of 5120 bf16 took 0.9 of the time, rows of 4096 took 1.1 times as long.
const LONGEST_PAIR_OFF_PAGES: usize = 20 * 1024;

/// Short rows, 16 at a time: the longest rows, in bytes, for which the statistics of the next 16 are computed before 16
/// are stored.
pub(super) const LONGEST_SHORT_AHEAD: usize = 256;
pub(super) const LONGEST_SHORT_AHEAD_OF_STREAMS: usize = 64;
/// The shortest RMS rows, in bytes, for which summing overlaps with storing 16 earlier ones. Rows of more than
/// [`PROVISIONAL_COLS`](super::row::PROVISIONAL_COLS) elements always overlap.
pub(super) const SHORTEST_SHORT_OVERLAPPED: usize = 256;
/// The prefetch distance from the stored row: in bytes of src, and its limits in rows. With 32 rows, rows of 192 to 384
/// bytes of 16-bit elements took 1.1 to 1.3 times as long from memory on a Zen 5 as with 48; longer rows of f32 did not.
const SHORT_BYTES_AHEAD: usize = 18 * 1024;
const FEWEST_SHORT_ROWS_AHEAD: usize = 32;
const MOST_SHORT_ROWS_AHEAD: usize = 48;

/// Dense rows, four at a time: the prefetch distance in rows, if they come from memory.
pub(super) const DENSE_PREFETCH_ROWS: usize = 32;
/// The longest dense RMS rows, in bytes, that are also prefetched from a shared cache, unless the first-level cache is
/// small. On a Zen 4, rows of 32 f32 took 1.06 to 1.14 times as long with it.
const LONGEST_DENSE_PREFETCHED: usize = 128;
/// How many rows the general kernel runs after an f64 row before the dense kernel is tried again. Rows that need f64
/// come in runs, as padding does, and the dense kernel is slow to start.
pub(super) const ROWS_AFTER_F64: usize = 16;
/// The fewest rows with constant distances that are worth a job of their own.
pub(super) const SHORTEST_STRETCH: usize = 4;

/// Backward, rows that are stored together, so scale and the column chains are loaded once for all of them.
pub(super) const TILE: usize = 2;
/// Backward, a chain of short rows at a time: the longest rows of src or diff_dst, in bytes, for which a chain stays in
/// the first-level cache.
pub(super) const LONGEST_CHAINED: usize = 1024;
/// The longest if diff_src is stored non-temporally. Longer rows would be stored in pieces, alternating between the
/// rows of a chain.
pub(super) const LONGEST_CHAINED_STREAMED: usize = 512;
/// The longest for which the scalars of the next chain are computed before a chain is stored.
pub(super) const LONGEST_CHAIN_AHEAD: usize = 256;
/// Whether rows of as many f32 are prefetched into the second-level cache while their scalars are computed, if the first
/// is small and diff_src is stored non-temporally. From memory on a Zen 4, such rows took 0.72 to 1.0 of the time; rows
/// of 16 and 64 f32, and of 16 bits, up to 1.15 times as long.
pub(super) const fn is_prefetched_in_sums(cols: usize) -> bool {
    matches!(cols, 32 | 48)
}

/// The prefetch distance of backward from memory, in bytes of src and diff_dst together, and its limits in rows, the
/// first for chains of short rows, unless the first-level cache is small. Two chains ahead of the stored one are summed
/// next, which is too late. From memory on a Zen 5, rows of up to 128 bytes took 0.6 to 0.9 of the time that they took
/// with two chains; with more than 16 KiB, rows of 64 f32 took longer.
const GRADIENT_BYTES_AHEAD: usize = 16 * 1024;
const FEWEST_ROWS_AHEAD: usize = 3 * CHAIN_ROWS;
const MOST_ROWS_AHEAD: usize = 8 * CHAIN_ROWS;
/// The same with a small first-level cache. With AVX-512, rows of a cache line are left to the hardware there. With AVX2,
/// prefetching them took 0.77 to 0.97 of the time on a Zen 3.
const ROWS_AHEAD_SMALL_FIRST: usize = 2 * CHAIN_ROWS;
/// The smallest total size of the tensors, in bytes, for which src is prefetched while backward sums other rows, and the
/// other inputs while it stores them. That spreads the reads evenly over both sweeps: from memory on a Zen 5, f32 and f16
/// took 0.75 to 1.0 of the time.
const GRADIENT_BYTES_SPLIT: usize = 24 << 20;
/// The same for RMS, which computes less in the meantime. From a shared cache, it took up to 1.09 times as long.
const RMS_GRADIENT_BYTES_SPLIT: usize = 32 << 20;

/// What kernels of long rows do.
#[derive(Clone, Copy)]
pub(super) struct Work {
    pub(super) rms: bool,
    /// Whether there is a scale.
    pub(super) scale: bool,
    /// Whether the statistics are computed, and over whole rows.
    pub(super) whole: bool,
    /// Whether there are no post-operations.
    pub(super) plain: bool,
}

/// What a forward problem determines about pipelining its rows, at creation.
#[derive(Clone, Copy)]
pub(super) struct LongRows {
    rms: bool,
    /// Whether there are enough registers for two sweeps at once.
    many_registers: bool,
    /// The size of the first-level cache.
    first: usize,
    small_first: bool,
    large_second: bool,
    f32_to_bf16: bool,
    to_bf16: bool,
    /// Whether src and dst have 16 bits.
    halves: bool,
    /// Whether src and dst are f32 and there are no post-operations.
    plain_f32: bool,
    /// Whether an element of dst is larger than one of src.
    widens: bool,
    /// Whether AVX2 kernels round f32 to fewer bits.
    avx2_narrows: bool,
    /// Whether the statistics are computed, over whole rows that are one block.
    one_sweep: bool,
    /// Bytes of a row of the larger of src and dst, and of both.
    longest: usize,
    both: usize,
    /// Bytes of scale; 0 if there is none.
    scale_bytes: usize,
    /// Whether rows of src, or of all inputs of backward, are prefetched into the second-level cache.
    into_second: bool,
    gradient_into_second: bool,
    /// The smallest total size of the tensors for which they are.
    bytes_into_second: usize,
    /// Whether dense RMS rows are prefetched from a shared cache.
    dense_prefetched: bool,
    /// Whether rows of f32 are prefetched while the scalars of backward are computed.
    gradient_prefetched_in_sums: bool,
    /// Whether rows of src from memory are prefetched while backward sums other rows.
    gradient_splits_prefetch: bool,
    /// Whether a row of src, the next one or one of dst, whichever is smaller, and as much again fit the first-level
    /// cache. Non-temporal stores do not keep dst there.
    pair_fits: bool,
    /// Whether rows of dst are long and begin at different offsets in a cache line.
    uneven: bool,
    /// How many of the longer rows fit the first-level cache.
    in_cache: usize,
    /// The prefetch distance of short rows from memory, in rows from the stored one.
    pub(super) short_rows_ahead: usize,
    /// The prefetch distance of long rows into the second-level cache, in rows.
    rows_ahead: usize,
    /// How many rows may be pending if storing does not overlap: they and their dst fill half of the first-level cache.
    pending: usize,
}

impl LongRows {
    /// For rows of `cols` columns of the types of src and dst.
    pub(super) fn new(level: Level, cols: usize, [src, dst]: [DataType; 2], work: Work) -> Self {
        let Work { rms, scale, whole, plain } = work;
        let caches = Caches::get();
        let bytes = |data_type: DataType| cols.saturating_mul(data_type.size());
        let longest = bytes(src).max(bytes(dst));
        let pair = bytes(src).saturating_add(bytes(src).min(bytes(dst)));
        let shortest = match src {
            _ if cols > GROUP => SHORTEST_NEXT_INTO_SECOND,
            _ if src.is_half() => SHORTEST_HALF_INTO_SECOND,
            _ => SHORTEST_INTO_SECOND,
        };
        let halves = src.is_half() && dst.is_half();
        let scale_bytes = if scale { bytes(DataType::F32) } else { 0 };
        let off_pages = !bytes(src).is_multiple_of(PAGE) && pair <= LONGEST_PAIR_OFF_PAGES;
        Self {
            rms,
            many_registers: level.has_many_registers(),
            large_second: caches.has_large_second(),
            f32_to_bf16: (src, dst) == (DataType::F32, DataType::Bf16),
            to_bf16: dst == DataType::Bf16,
            halves,
            plain_f32: plain && (src, dst) == (DataType::F32, DataType::F32),
            widens: dst.size() > src.size(),
            avx2_narrows: level == Level::Avx2 && src == DataType::F32 && dst.size() < src.size(),
            one_sweep: whole && cols <= BLOCK,
            longest,
            both: bytes(src).saturating_add(bytes(dst)),
            scale_bytes,
            first: caches.first,
            small_first: caches.has_small_first(),
            into_second: caches.has_small_first()
                && (if rms {
                    halves || !stays_in_first(bytes(src), scale_bytes, src.size().min(dst.size()))
                } else {
                    bytes(src) >= shortest
                }),
            gradient_into_second: caches.has_small_first()
                && level.has_many_registers()
                && bytes(src) >= SHORTEST_INTO_SECOND,
            bytes_into_second: if rms && cols > GROUP { RMS_BYTES_INTO_SECOND } else { 0 },
            dense_prefetched: !caches.has_small_first() && bytes(src) <= LONGEST_DENSE_PREFETCHED,
            gradient_prefetched_in_sums: caches.has_small_first()
                && level.has_many_registers()
                && is_prefetched_in_sums(cols),
            gradient_splits_prefetch: level.has_many_registers()
                && !caches.has_small_first()
                && !caches.has_large_second(),
            pair_fits: off_pages || pair <= caches.row_pair(),
            uneven: bytes(dst) >= SHORTEST_UNEVEN && !bytes(dst).is_multiple_of(LINE),
            in_cache: caches.working_set() / longest.max(1),
            short_rows_ahead: if caches.has_small_first() {
                FEWEST_SHORT_ROWS_AHEAD
            } else {
                let rows = SHORT_BYTES_AHEAD / bytes(src).max(1);
                rows.clamp(FEWEST_SHORT_ROWS_AHEAD, MOST_SHORT_ROWS_AHEAD)
            },
            rows_ahead: BYTES_AHEAD.div_ceil(bytes(src).max(1)),
            pending: (caches.first / 4 / longest.max(1)).clamp(1, DEPTH),
        }
    }

    /// Whether the next row is prefetched: if it comes from memory, and in LayerNorm from a shared cache, too. There AVX2
    /// kernels, with twice as many instructions, have no time for it: on a Zen 3 it cost them 3 to 6 per cent. Those that
    /// round f32 to fewer bits gained 3 to 9 per cent by it.
    #[inline]
    pub(super) fn prefetches(&self, schedule: Schedule) -> bool {
        schedule.streams
            || (self.many_registers || self.avx2_narrows) && !self.rms && !schedule.resident
    }

    /// Whether dense RMS rows are prefetched even if dst is not streamed: from a shared cache.
    #[inline]
    pub(super) fn dense_prefetches(&self, schedule: Schedule) -> bool {
        self.dense_prefetched && !schedule.resident
    }

    /// Whether RMS rows from memory are prefetched, into the second-level cache, if dst is staged.
    #[inline]
    pub(super) fn prefetches_beside_stage(&self) -> bool {
        self.rms && !self.large_second && self.longest <= LONGEST_RMS_BESIDE_STAGE
    }

    /// Whether RMS rows are stored one after another, and the next one is prefetched meanwhile.
    #[inline]
    pub(super) fn is_stored_one_by_one(&self, schedule: Schedule) -> bool {
        let shared = self.rms && self.scale_bytes > 0 && !self.small_first && !self.large_second;
        schedule.streams || shared && schedule.bytes >= SHARED_BYTES_PREFETCHED
    }

    /// The cache that rows of src are prefetched into.
    #[inline]
    pub(super) fn prefetched_into(&self, schedule: Schedule) -> Cache {
        self.cache(self.into_second, schedule.bytes)
    }

    /// The cache that rows of the inputs of backward are prefetched into, if all tensors together have `bytes` bytes.
    #[inline]
    pub(super) fn gradient_prefetched_into(&self, bytes: usize) -> Cache {
        self.cache(self.gradient_into_second, bytes)
    }

    /// Whether rows of src are prefetched while backward sums other rows, and the other inputs while it stores them, if
    /// all tensors together have `bytes` bytes.
    pub(super) fn gradient_splits_prefetch(&self, bytes: usize) -> bool {
        let fewest = if self.rms { RMS_GRADIENT_BYTES_SPLIT } else { GRADIENT_BYTES_SPLIT };
        self.gradient_splits_prefetch && bytes >= fewest
    }

    /// The prefetch distance of the inputs of backward from memory, in rows of `cols` columns, and the distance of rows of a
    /// chain that are stored; 0 if none is prefetched then.
    pub(super) fn gradient_rows_ahead(&self, cols: usize, inputs: [DataType; 2]) -> (usize, usize) {
        if self.small_first {
            let by_others =
                self.many_registers && (cols <= LANES || self.prefetches_in_sums(inputs));
            return (TILE, if by_others { 0 } else { ROWS_AHEAD_SMALL_FIRST });
        }
        let row = cols.max(1) * (inputs[0].size() + inputs[1].size());
        let rows = (GRADIENT_BYTES_AHEAD / row).clamp(TILE, MOST_ROWS_AHEAD);
        (rows, rows.max(FEWEST_ROWS_AHEAD))
    }

    /// Whether backward prefetches short rows of inputs of these types while it sums others, rather than while it stores.
    pub(super) fn prefetches_in_sums(&self, inputs: [DataType; 2]) -> bool {
        self.gradient_prefetched_in_sums && inputs == [DataType::F32; 2]
    }

    fn cache(&self, into_second: bool, bytes: usize) -> Cache {
        if into_second && bytes >= self.bytes_into_second { Cache::Second } else { Cache::First }
    }

    /// Whether backward stores non-temporally. It also loads src, diff_dst, perhaps a gradient to add, and scale, so
    /// the limit is that of one thread, whatever their number. Loads must not wait for the stores. On a Zen 3 without
    /// AVX-512, backward then took up to six times as long. On a Zen 4 with AVX-512, it took up to 1.4 times as long,
    /// for loads of src and diff_dst from less than 128 bytes behind; if only loads of scale waited, ordinary stores
    /// were slower still. `scale` is null if no kernel reads it as fast as diff_src is stored.
    pub(super) fn streams_gradient(
        &self,
        bytes: usize,
        stores: *mut u8,
        [src, diff_dst, added, scale]: [*mut u8; 4],
    ) -> bool {
        let is_apart = |loads: *mut u8| {
            let near = if self.many_registers { 128 } else { ALIASED };
            !Schedule::is_aliased(stores, loads, near)
        };
        Schedule::streams_bytes(bytes, 1)
            && (diff_dst != stores && added != stores)
            && [src, diff_dst, added].into_iter().all(is_apart)
            && (self.many_registers || is_apart(scale))
    }

    /// Whether the next row is prefetched while one is stored non-temporally, rather than while one is summed. The sums of
    /// RMS leave no bandwidth for it, and stores that are wider than the loads do not either.
    fn fetches_late(&self, schedule: Schedule) -> bool {
        self.rms || (schedule.fetches_late && !self.pair_fits && !self.widens)
    }

    /// Whether dst is stored non-temporally. With AVX2 and a small first-level cache, LayerNorm streams from the same size on
    /// for any number of threads: on a Zen 3, f32 of 16 MiB with two threads took 0.7 to 0.9 of the time.
    #[inline]
    pub(super) fn streams(&self, schedule: Schedule, threads: usize) -> bool {
        let early = !self.rms
            && self.small_first
            && !self.many_registers
            && Schedule::streams_bytes(schedule.bytes, 1);
        (schedule.streams || early) && !self.stays_shared(schedule, threads)
    }

    /// Whether dst stays in a cache that several threads share, although it is large enough to be streamed. With AVX-512 and
    /// a small first-level cache, RMS rows of a cache line or two, and rows of 16 bits without scale, keep little else there.
    /// On a Zen 4 with 32 MiB of shared cache and as much of src and dst, streaming took 0.8 to 1.2 times as long while memory
    /// was fast, 1.0 to 1.4 times while it was slow. With AVX2, only rows of a cache line stay, in LayerNorm, too: streaming
    /// them took up to 1.08 times as long on a Zen 3, and other RMS rows 0.65 to 1.0 times.
    fn stays_shared(&self, schedule: Schedule, threads: usize) -> bool {
        let rows_stay = if self.many_registers {
            self.rms && (self.both <= 4 * LINE || self.halves && self.scale_bytes == 0)
        } else {
            self.both <= 2 * LINE
        };
        rows_stay && self.small_first && threads > 1 && schedule.bytes < STREAMED_BYTES_OF_SEVERAL
    }

    /// Whether rows are long, and src and dst large, if dst is streamed.
    fn is_long_stream(&self, schedule: Schedule) -> bool {
        let large = schedule.bytes >= RMS_BYTES_STREAMED;
        self.longest >= SHORTEST_RMS_STREAMED && large && !self.f32_to_bf16
    }

    /// Whether storing a row overlaps with summing a later one, given enough registers.
    fn overlap(&self, schedule: Schedule) -> bool {
        let longest = self.longest;
        let fits = match (self.rms, schedule.resident, schedule.streams) {
            (true, true, _) => {
                let converted = self.widens || self.f32_to_bf16;
                let fits =
                    self.both.saturating_add(self.scale_bytes) <= LONGEST_RMS_OVERLAPPED_CONVERTED;
                longest <= LONGEST_RMS_OVERLAPPED
                    || self.small_first && (self.halves || converted && fits)
            }
            (true, false, true) => {
                self.small_first && (self.halves || self.is_long_stream(schedule))
            }
            (true, false, false) if self.large_second => {
                longest <= LONGEST_RMS_OVERLAPPED_LARGE_SECOND
            }
            (true, false, false) => longest <= LONGEST_RMS_OVERLAPPED_NOT_RESIDENT,
            (false, _, false) if self.f32_to_bf16 => longest <= LONGEST_F32_TO_BF16_OVERLAPPED,
            (false, true, _) => true,
            (false, false, true) => self.pair_fits,
            (false, false, false) => longest <= LONGEST_OVERLAPPED_NOT_RESIDENT,
        };
        self.one_sweep && fits
    }
}

/// Whether RMS rows of src and the next ones, prefetched, stay in the first-level cache together with scale.
fn stays_in_first(src: usize, scale: usize, element: usize) -> bool {
    let element = element.max(DataType::Bf16.size());
    let together = src.saturating_mul(2).saturating_add(scale);
    src >= element * SHORTEST_RMS_INTO_FIRST && together <= element * LONGEST_RMS_INTO_FIRST
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
    /// The distance in rows from the one that is summed, while storing overlaps, to the next or a prefetched one.
    pub(super) rows_ahead: usize,
    /// Whether the next row is prefetched while one is stored non-temporally, rather than while one is summed.
    pub(super) fetches_late: bool,
}

impl Pipelining {
    #[inline]
    pub(super) fn new(rows: &LongRows, schedule: Schedule) -> Self {
        let resident = schedule.resident;
        let overlapped = rows.many_registers && rows.overlap(schedule);
        // Stores of bf16 are batched, and with two rows at once there are fewer vectors to batch.
        let batched = rows.to_bf16 && overlapped;
        // From a slow shared cache, pairs of f32 rows took 0.87 to 0.96 of the time; of bf16, up to 1.05.
        let near = resident || rows.large_second && rows.plain_f32 && !schedule.streams;
        let pairs = rows.many_registers && !(rows.rms || batched || rows.uneven) && near;
        let rows_at_once = if pairs { 2 } else { 1 };
        let rms_f32 = rows.rms && rows.plain_f32 && rows.small_first;
        let near_first = schedule.bytes <= rows.first + rows.first / 4;
        let fewest = if rms_f32 && !near_first { FEWEST_RMS_IN_CACHE } else { FEWEST_IN_CACHE };
        let depth = if overlapped && rows.in_cache < fewest * rows_at_once {
            rows_at_once
        } else if overlapped {
            2 * rows_at_once
        } else if rows.rms && !resident {
            // Both sweeps are memory-bound, so a row is stored while it is still in the cache.
            1
        } else {
            rows.pending
        };
        let rows_ahead = match rows.prefetched_into(schedule) {
            Cache::Second if !pairs => rows.rows_ahead,
            _ => 1,
        };
        Self { overlapped, pairs, depth, rows_ahead, fetches_late: rows.fetches_late(schedule) }
    }
}
