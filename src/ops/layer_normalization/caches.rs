//! In which caches the rows of a problem stay, and so how they are read and written. No choice made here changes a bit.

use crate::tensor::DataType;

/// Bytes of src and dst, or of a backward problem's tensors, from which what is written is stored past the caches: what
/// comes next will not find it in a cache of its own anyway, and its lines are not read before they are written.
pub(super) const STREAMED_BYTES: usize = 16 << 20;
/// The same of src alone where the rows in work stay in the first-level cache: a load then never waits for a line that
/// a store pushed out, so dst may fill a cache as long as src stays there, too.
const STREAMED_SRC_BYTES: usize = 10 << 20;
/// The same of both where rows are short, and how short: one store after another costs more there.
const STREAMED_BYTES_OF_SHORT: usize = 24 << 20;
const SHORT_COLS: usize = 256;
/// The same of both for several threads, whatever the rows: what they write to a cache that they share goes faster with
/// each, what goes to memory does not.
const STREAMED_BYTES_OF_SEVERAL: usize = 48 << 20;
/// Bytes of a problem's tensors that stay in a core's second-level cache.
const RESIDENT_BYTES: usize = 1 << 20;
/// Bytes of a row of src and one of dst that stay, with the next ones of each, in a first-level cache of 48 KiB.
const ROW_BYTES: usize = 20 * 1024;

/// Whether rows in work that have so many bytes of src and dst stay in the first-level cache.
#[inline(always)]
pub(super) fn rows_stay(row_bytes: usize) -> bool {
    row_bytes <= ROW_BYTES
}

/// What is known of the tensors of a forward problem.
pub(super) struct Caches {
    /// Whether src and dst stay in the caches of the cores that work on them.
    pub(super) resident: bool,
    /// Whether dst is too large to stay in a cache.
    pub(super) streams: bool,
}

impl Caches {
    /// Of rows of src and dst, for a number of threads.
    pub(super) fn new(
        rows: usize,
        cols: usize,
        types: (DataType, DataType),
        threads: usize,
    ) -> Self {
        let [src, dst] = [types.0, types.1].map(|data_type| cols.saturating_mul(data_type.size()));
        let row = src.saturating_add(dst);
        let both = rows.saturating_mul(row);
        let streams = if threads > 1 {
            both >= STREAMED_BYTES_OF_SEVERAL
        } else if cols <= SHORT_COLS {
            both >= STREAMED_BYTES_OF_SHORT
        } else if rows_stay(row) {
            rows.saturating_mul(src) >= STREAMED_SRC_BYTES
        } else {
            both >= STREAMED_BYTES
        };
        Self { resident: both <= threads * RESIDENT_BYTES, streams }
    }
}
