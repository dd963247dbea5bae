//! Column sums: the sums over rows of diff_scale and diff_shift.
//!
//! Rows are split into blocks whose size depends only on the shape. In a block, each column has a chain: the f32 sum,
//! in order, of up to [`CHAIN_ROWS`] consecutive rows that are computed in f32. A chain ends after that many rows,
//! before a row that is computed in f64, and at the end of the block; it is then added to an f64 sum. The sums of
//! blocks are added in a fixed binary tree. So the bits do not depend on the threads, the instruction set or the number
//! of rows that a kernel processes at once. If every block has at most one chain, the chains
//! themselves are added: adding them to 0 first would not change them.

use crate::simd::{Bf16, Element, F16, F32, Level, Map, Simd, Width, add_wide, entry_points, map};
use crate::tensor::DataType;

/// The most rows in a chain.
pub(crate) const CHAIN_ROWS: usize = 16;

/// The room, in f64, for the number of rows in open chains and whether there are sums: a cache line, so that sums are
/// aligned.
const STATE: usize = 8;

/// The addresses of a block's sums and chains; null if not needed.
pub(crate) struct ColumnSums {
    pub(crate) diff_scale: *mut f64,
    pub(crate) diff_shift: *mut f64,
    /// The number of rows in open chains, and whether the sums have been stored; null without sums.
    state: *mut [u64; 2],
    /// The chains.
    pub(crate) scale_chain: *mut f32,
    pub(crate) shift_chain: *mut f32,
}

impl ColumnSums {
    /// The size in f64 of a block with `count` of diff_scale and diff_shift.
    #[inline]
    pub(crate) fn size(count: usize, cols: usize) -> usize {
        if count == 0 {
            return 0;
        }
        let sums = count.saturating_mul(cols);
        let all = sums.saturating_add(sums.div_ceil(2)).saturating_add(STATE);
        all.checked_next_multiple_of(8).unwrap_or(usize::MAX)
    }

    /// The sums of `cols` columns of the block whose scratchpad begins at `block`: diff_scale, diff_shift or both.
    #[inline(always)]
    pub(crate) fn new(cols: usize, [scale, shift]: [bool; 2], block: *mut f64) -> Self {
        let state = block.cast();
        let block = block.wrapping_add(STATE);
        let at = |index: bool, wanted: bool| {
            let sums = block.wrapping_add(usize::from(index) * cols);
            if wanted { sums } else { std::ptr::null_mut() }
        };
        let chains = block.wrapping_add((usize::from(scale) + usize::from(shift)) * cols);
        let chain = |index: bool, wanted: bool| {
            let chain = chains.cast::<f32>().wrapping_add(usize::from(index) * cols);
            if wanted { chain } else { std::ptr::null_mut() }
        };
        Self {
            diff_scale: at(false, scale),
            diff_shift: at(scale, shift),
            scale_chain: chain(false, scale),
            shift_chain: chain(scale, shift),
            state: if scale || shift { state } else { std::ptr::null_mut() },
        }
    }

    /// The sums from a column on.
    #[inline(always)]
    pub(crate) fn from(&self, col: usize) -> Self {
        fn after<T>(start: *mut T, col: usize) -> *mut T {
            if start.is_null() { start } else { start.wrapping_add(col) }
        }
        Self {
            diff_scale: after(self.diff_scale, col),
            diff_shift: after(self.diff_shift, col),
            scale_chain: after(self.scale_chain, col),
            shift_chain: after(self.shift_chain, col),
            state: self.state,
        }
    }

    /// The number of rows in open chains.
    ///
    /// # Safety
    /// The sums, if any, belong to this thread.
    #[inline(always)]
    pub(crate) unsafe fn open_rows(&self) -> usize {
        // SAFETY: guaranteed by the caller.
        if self.state.is_null() { 0 } else { unsafe { (*self.state)[0] as usize } }
    }

    /// Records that chains with `rows` rows stay open.
    ///
    /// # Safety
    /// As [`open_rows`](Self::open_rows).
    #[inline(always)]
    pub(crate) unsafe fn leave_open(&self, rows: usize) {
        if !self.state.is_null() {
            // SAFETY: guaranteed by the caller.
            unsafe { (*self.state)[0] = rows as u64 }
        }
    }

    /// Whether nothing has been added to the sums, so that a chain that ends here may stand for them: see
    /// [`settle`](Self::settle).
    ///
    /// # Safety
    /// As [`open_rows`](Self::open_rows).
    #[inline(always)]
    pub(crate) unsafe fn are_empty(&self) -> bool {
        // SAFETY: guaranteed by the caller.
        !self.state.is_null() && unsafe { (*self.state)[1] == 0 }
    }

    /// Starts a block: no rows, chains of zeros. The sums are stored later, when the first chains end or by
    /// [`begin`](Self::begin), because for few rows storing zeros first would take a seventh of the time.
    ///
    /// # Safety
    /// As [`end_chains`](Self::end_chains).
    #[inline]
    pub(crate) unsafe fn start(&self, cols: usize) {
        let (count, _, chains) = self.adjacent();
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.state.write([0; 2]);
            chains.write_bytes(0, count * cols);
        }
    }

    /// Sets the sums to 0, unless they have been stored.
    ///
    /// # Safety
    /// As [`end_chains`](Self::end_chains).
    #[inline(always)]
    pub(crate) unsafe fn begin(&self, cols: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if !self.state.is_null() && (*self.state)[1] == 0 {
                let (count, sums, _) = self.adjacent();
                sums.write_bytes(0, count * cols);
                (*self.state)[1] = 1;
            }
        }
    }

    /// Stores the sums for which chains stand.
    ///
    /// # Safety
    /// As [`end_chains`](Self::end_chains).
    #[cold]
    pub(crate) unsafe fn settle(&self, cols: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.are_empty() {
                let (count, sums, chains) = self.adjacent();
                (0..count * cols).for_each(|i| sums.add(i).write(f64::from(chains.add(i).read())));
                (*self.state)[1] = 1;
            }
        }
    }

    /// Adds the chains to the sums and starts new ones.
    ///
    /// # Safety
    /// The sums are those of [`new`](Self::new), have `cols` columns and belong to this thread, and the CPU supports the
    /// instruction set of `S`.
    #[inline(always)]
    pub(crate) unsafe fn end_chains<S: Simd>(&self, cols: usize) {
        let entry = end_entries::at(S::LEVEL).unwrap_or(end_entries::portable::entry_portable);
        // SAFETY: guaranteed by the caller.
        unsafe { entry(self, cols) }
    }

    /// How many of diff_scale and diff_shift are summed, and the first sum and chain. Those of diff_shift follow those
    /// of diff_scale.
    #[inline(always)]
    fn adjacent(&self) -> (usize, *mut f64, *mut f32) {
        match (self.diff_scale.is_null(), self.diff_shift.is_null()) {
            (false, shift) => (if shift { 1 } else { 2 }, self.diff_scale, self.scale_chain),
            (true, false) => (1, self.diff_shift, self.shift_chain),
            (true, true) => (0, self.diff_scale, self.scale_chain),
        }
    }
}

/// See [`ColumnSums::end_chains`].
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn end_chains<S: Simd>(of: &ColumnSums, cols: usize) {
    if of.state.is_null() {
        return;
    }
    let (count, sums, chain) = of.adjacent();
    // SAFETY: guaranteed by the caller.
    unsafe {
        if (*of.state)[1] == 0 {
            map::<S, _>(count * cols, &EndChain::<true> { sums, chain });
            (*of.state)[1] = 1;
        } else {
            map::<S, _>(count * cols, &EndChain::<false> { sums, chain });
        }
    }
}

entry_points! {
    /// [`end_chains`], compiled separately from the many kernels that call it, per level.
    mod end_entries: end_chains<>(of: &ColumnSums, cols: usize) -> ();
}

/// Adds a chain to its sum, or to 0 if it is the `FIRST`, and starts a new one.
struct EndChain<const FIRST: bool> {
    sums: *mut f64,
    chain: *mut f32,
}

impl<S: Simd, const FIRST: bool> Map<S> for EndChain<FIRST> {
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (sums, chain) = (self.sums.add(i), self.chain.add(i));
            let sum = if FIRST { S::wide_zero() } else { width.load_wide::<S>(sums) };
            let terms = S::widen(width.load::<S>(chain));
            width.store_wide::<S>(sums, S::wide_add(sum, terms));
            width.store::<S>(chain, S::zero());
        }
    }
}

/// The sums of one output in all blocks, `stride` f64 apart.
#[derive(Clone, Copy)]
pub(crate) struct Partial {
    pub(crate) first: *mut f64,
    /// The chain of the first block, if chains stand for the sums of all blocks; else null. They are twice as many f32
    /// apart.
    pub(crate) chains: *const f32,
    pub(crate) blocks: usize,
    pub(crate) stride: usize,
}

/// Adds partial sums and stores the total. It adds blocks `i` and `i + 1`, then `i` and `i + 2`, and so on.
struct Join<E> {
    partial: Partial,
    out_type: E,
    out: *mut u8,
}

impl<S: Simd, E: Element> Map<S> for Join<E> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        let Partial { first, chains, blocks, stride } = self.partial;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut step = 1;
            if !chains.is_null() {
                let chain = |block: usize| width.load::<S>(chains.add(block * 2 * stride + i));
                if blocks == 1 {
                    return width.store_as::<S, _>(self.out_type, self.out, i, chain(0));
                }
                for left in (0..blocks).step_by(2) {
                    let mut sum = S::widen(chain(left));
                    if left + 1 < blocks {
                        sum = S::wide_add(sum, S::widen(chain(left + 1)));
                    }
                    width.store_wide::<S>(first.add(left * stride + i), sum);
                }
                step = 2;
            }
            while step < blocks {
                let mut left = 0;
                while left + step < blocks {
                    let terms = width.load_wide::<S>(first.add((left + step) * stride + i));
                    add_wide::<S, 1>(first.add(left * stride + i), [terms], width);
                    left += 2 * step;
                }
                step *= 2;
            }
            let total =
                if blocks == 0 { S::wide_zero() } else { width.load_wide::<S>(first.add(i)) };
            width.store_as::<S, _>(self.out_type, self.out, i, S::narrow(total));
        }
    }
}

/// Joins the partial sums of `cols` columns and stores the totals, which are zeros without blocks.
///
/// # Safety
/// The partial sums exist, no other thread uses them, and `out` has `cols` elements of the type,
/// and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn join_columns<S: Simd>(partial: &Partial, cols: usize, out_type: DataType, out: *mut u8) {
    let partial = *partial;
    // SAFETY: guaranteed by the caller.
    unsafe {
        match out_type {
            DataType::Bf16 => {
                map::<S, _>(cols, &Join { partial, out_type: Bf16::of(out_type), out })
            }
            DataType::F16 => map::<S, _>(cols, &Join { partial, out_type: F16, out }),
            _ => map::<S, _>(cols, &Join { partial, out_type: F32, out }),
        }
    }
}

entry_points! {
    /// The join, per level.
    mod entries: join_columns<>(
        partial: &Partial, cols: usize, out_type: DataType, out: *mut u8
    ) -> ();
}

/// Joins partial sums; see [`join_columns`].
pub(crate) type JoinEntry = unsafe fn(&Partial, usize, DataType, *mut u8);

pub(crate) fn join_entry(level: Level) -> JoinEntry {
    entries::at(level).unwrap_or(entries::portable::entry_portable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_is_the_sum() {
        for (blocks, cols) in (0..20).flat_map(|blocks| [2, 16, 37].map(|cols| (blocks, cols))) {
            let stride = cols + 1;
            let mut sums: Vec<f64> = (0..blocks * stride).map(|i| i as f64).collect();
            let mut out = vec![7.0f32; cols];
            let (first, chains) = (sums.as_mut_ptr(), std::ptr::null());
            let partial = Partial { first, chains, blocks, stride };
            // SAFETY: the blocks have `stride` sums each, and `out` has `cols` elements.
            unsafe {
                join_entry(Level::Portable)(&partial, cols, DataType::F32, out.as_mut_ptr().cast());
            }
            for (col, &total) in out.iter().enumerate() {
                let want: usize = (0..blocks).map(|b| b * stride + col).sum();
                assert_eq!(total, want as f32);
            }
        }
    }

    #[test]
    fn chains_that_stand_for_sums_are_joined_as_the_sums_are() {
        const COLS: usize = 37;
        let stride = ColumnSums::size(2, COLS);
        for blocks in 1..10 {
            let mut sums = vec![f64::NAN; blocks * stride];
            let all = sums.as_mut_ptr();
            let block = |i: usize| ColumnSums::new(COLS, [true; 2], all.wrapping_add(i * stride));
            // Sums that depend on their order: they do not fit f32, and some do not fit f64.
            let value = |i: usize, col: usize| (1.0 + col as f32) * 1e10f32.powi(i as i32 % 4);
            let joined = |chains| {
                let mut out = vec![7.0f32; COLS];
                let partial = Partial { first: block(0).diff_shift, chains, blocks, stride };
                let (join, out_start) = (join_entry(Level::Portable), out.as_mut_ptr());
                // SAFETY: the blocks are there, and `out` has `COLS` elements.
                unsafe { join(&partial, COLS, DataType::F32, out_start.cast()) };
                out
            };
            // SAFETY: each block has room for both sums.
            unsafe {
                for i in 0..blocks {
                    block(i).start(COLS);
                    assert!(block(i).are_empty());
                    (0..COLS).for_each(|col| block(i).shift_chain.add(col).write(value(i, col)));
                }
                let of_chains = joined(block(0).shift_chain);
                (0..blocks).for_each(|i| block(i).settle(COLS));
                assert!((0..blocks).all(|i| !block(i).are_empty()));
                assert_eq!(of_chains, joined(std::ptr::null()));
            }
        }
    }
}
