//! Backward, per row with `r = 1/sqrt(variance + epsilon)`, `xhat = (src - mean)*r` and
//! `d = scale*diff_dst`:
//!
//! ```text
//! layer norm        diff_src = r*d - r*sum(d)/C - xhat*(r*sum(d*xhat)/C)
//! rms_norm          diff_src = r*d - xhat*(r*sum(d*xhat)/C)
//! use_global_stats  diff_src = r*d
//! diff_scale += diff_dst*xhat, diff_shift += diff_dst
//! ```
//!
//! Two sweeps: one over each row for its sums; one over two rows at once, which writes diff_src and adds
//! column terms to chains in f32. Rows that f32 does not carry are left to `wide`.

use super::columns::{CHAIN_ROWS, ColumnSums};
use super::job::{Backward, Given};
use super::row::{Statistics, per_col, reciprocal};
use crate::simd::{
    Bf16, Element, F16, F32, Fold, LANES, Level, Map, Runtime, Simd, Terms, entry_points, fold, map,
};
use crate::tensor::DataType;

/// How the statistics enter the gradient.
pub(super) const LAYER: u8 = 0;
pub(super) const RMS: u8 = 1;
/// Added to one of the above: the statistics are constants.
pub(super) const GLOBAL: u8 = 2;

/// What is done with the parameters: bit 0 scale is read, bit 1 diff_scale is summed, bit 2 diff_shift.
pub(super) const READ_SCALE: u8 = 1;
pub(super) const SUM_SCALE: u8 = 2;
pub(super) const SUM_SHIFT: u8 = 4;

/// Rows written at once: scale and the column chains are loaded once for all.
const TILE: usize = 2;

/// A row, ready to be written.
#[derive(Clone, Copy)]
struct Row {
    src: *const u8,
    diff_dst: *const u8,
    diff_src: *mut u8,
    mean: f32,
    r: f32,
    /// `-r*sum(d)/C`.
    shift: f32,
    /// `r*sum(d*xhat)/C`.
    slope: f32,
}

/// The element types of a kernel.
#[derive(Clone, Copy)]
struct Types<Src, Dd, Ds> {
    src: Src,
    diff_dst: Dd,
    diff_src: Ds,
}

/// `sum(d)` and `sum(d*xhat)`; the first is left out with RMS.
struct RowSums<S: Simd, Src, Dd, const MODE: u8, const PARAMS: u8> {
    src_type: Src,
    dd_type: Dd,
    src: *const u8,
    diff_dst: *const u8,
    scale: *const f32,
    mean: S::F,
    r: S::F,
}

impl<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8>
    RowSums<S, Src, Dd, MODE, PARAMS>
{
    /// `d` and `xhat` of a vector; `n` is 16 for a whole one.
    ///
    /// # Safety
    /// As [`Fold`]; scale is as long as a row, and there if PARAMS says so.
    #[inline(always)]
    unsafe fn at(&self, i: usize, n: usize) -> (S::F, S::F) {
        // SAFETY: the caller's.
        unsafe {
            let (x, dd) = if n == LANES {
                (self.src_type.load::<S>(self.src, i), self.dd_type.load::<S>(self.diff_dst, i))
            } else {
                let x = self.src_type.load_n::<S>(self.src, i, n);
                (x, self.dd_type.load_n::<S>(self.diff_dst, i, n))
            };
            let d = match (PARAMS & READ_SCALE != 0, n == LANES) {
                (false, _) => dd,
                (true, true) => S::mul(S::load(self.scale.add(i)), dd),
                (true, false) => S::mul(S::load_n(self.scale.add(i), n), dd),
            };
            (d, xhat::<S, MODE>(x, self.mean, self.r))
        }
    }
}

/// # Safety
/// The instruction set of `S` is there.
#[inline(always)]
unsafe fn xhat<S: Simd, const MODE: u8>(x: S::F, mean: S::F, r: S::F) -> S::F {
    // SAFETY: the caller's.
    unsafe { if MODE & RMS != 0 { S::mul(x, r) } else { S::mul(S::sub(x, mean), r) } }
}

/// `d*xhat` alone.
impl<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8> Fold<S, 1>
    for RowSums<S, Src, Dd, MODE, PARAMS>
{
    #[inline(always)]
    unsafe fn terms(&self, i: usize) -> Terms<S, 1> {
        // SAFETY: the caller's.
        unsafe { Terms::products([self.at(i, LANES)]) }
    }
    #[inline(always)]
    unsafe fn terms_n(&self, i: usize, n: usize) -> Terms<S, 1> {
        // SAFETY: the caller's.
        unsafe { Terms::products([self.at(i, n)]) }
    }
}

/// `d` and `d*xhat`.
impl<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8> Fold<S, 2>
    for RowSums<S, Src, Dd, MODE, PARAMS>
{
    #[inline(always)]
    unsafe fn terms(&self, i: usize) -> Terms<S, 2> {
        // SAFETY: the caller's.
        unsafe {
            let (d, xhat) = self.at(i, LANES);
            Terms::products([(d, S::splat(1.0)), (d, xhat)])
        }
    }
    #[inline(always)]
    unsafe fn terms_n(&self, i: usize, n: usize) -> Terms<S, 2> {
        // SAFETY: the caller's.
        unsafe {
            let (d, xhat) = self.at(i, n);
            Terms::products([(d, S::splat(1.0)), (d, xhat)])
        }
    }
}

/// Writes diff_src of `R` rows and adds their column terms.
struct Gradient<'a, Src, Dd, Ds, const MODE: u8, const PARAMS: u8, const R: usize> {
    types: Types<Src, Dd, Ds>,
    rows: [Row; R],
    scale: *const f32,
    sums: &'a ColumnSums,
}

impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8, const R: usize>
    Gradient<'_, Src, Dd, Ds, MODE, PARAMS, R>
{
    /// The vectors of diff_src at element `i`, whose column terms are added; `n` is 16 for a whole
    /// vector.
    ///
    /// All rows are loaded before one is stored: a load that follows a store to an address a multiple of
    /// 4 KiB away waits for it.
    ///
    /// # Safety
    /// As [`Map`]; what PARAMS asks for is there and as long as a row.
    #[inline(always)]
    unsafe fn at<S: Simd>(&self, i: usize, n: usize) -> [S::F; R] {
        // SAFETY: the caller's.
        unsafe {
            let zero = S::splat(0.0);
            let scale = load_if::<S>(PARAMS & READ_SCALE != 0, self.scale, i, n);
            let mut scale_chain =
                load_if::<S>(PARAMS & SUM_SCALE != 0, self.sums.scale_chain, i, n);
            let mut shift_chain =
                load_if::<S>(PARAMS & SUM_SHIFT != 0, self.sums.shift_chain, i, n);
            let mut outs = [zero; R];
            for (out, row) in outs.iter_mut().zip(&self.rows) {
                let (x, dd) = if n == LANES {
                    let x = self.types.src.load::<S>(row.src, i);
                    (x, self.types.diff_dst.load::<S>(row.diff_dst, i))
                } else {
                    let x = self.types.src.load_n::<S>(row.src, i, n);
                    (x, self.types.diff_dst.load_n::<S>(row.diff_dst, i, n))
                };
                let r = S::splat(row.r);
                let xhat = xhat::<S, MODE>(x, S::splat(row.mean), r);
                if PARAMS & SUM_SCALE != 0 {
                    scale_chain = S::fma(dd, xhat, scale_chain);
                }
                if PARAMS & SUM_SHIFT != 0 {
                    shift_chain = S::add(shift_chain, dd);
                }
                let d = if PARAMS & READ_SCALE != 0 { S::mul(scale, dd) } else { dd };
                let slope = S::splat(row.slope);
                *out = match MODE {
                    LAYER => S::fnma(xhat, slope, S::fma(d, r, S::splat(row.shift))),
                    RMS => S::fnma(xhat, slope, S::mul(d, r)),
                    _ => S::mul(d, r),
                };
            }
            for (wanted, p, chain) in [
                (PARAMS & SUM_SCALE != 0, self.sums.scale_chain, scale_chain),
                (PARAMS & SUM_SHIFT != 0, self.sums.shift_chain, shift_chain),
            ] {
                if wanted && n == LANES {
                    S::store(p.add(i), chain);
                } else if wanted {
                    S::store_n(p.add(i), chain, n);
                }
            }
            outs
        }
    }
}

/// `n` elements, 16 for a whole vector, or zeros.
///
/// # Safety
/// Elements `i` to `i + n - 1` are there if they are wanted; the instruction set of `S` is too.
#[inline(always)]
unsafe fn load_if<S: Simd>(wanted: bool, p: *const f32, i: usize, n: usize) -> S::F {
    // SAFETY: the caller's.
    unsafe {
        match (wanted, n == LANES) {
            (false, _) => S::splat(0.0),
            (true, true) => S::load(p.add(i)),
            (true, false) => S::load_n(p.add(i), n),
        }
    }
}

impl<
    S: Simd,
    Src: Element,
    Dd: Element,
    Ds: Element,
    const MODE: u8,
    const PARAMS: u8,
    const R: usize,
> Map<S> for Gradient<'_, Src, Dd, Ds, MODE, PARAMS, R>
{
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe {
            let outs = self.at::<S>(i, LANES);
            for (out, row) in outs.into_iter().zip(&self.rows) {
                self.types.diff_src.store_all::<S, 1>(row.diff_src, i, &[out]);
            }
        }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        // SAFETY: the caller's.
        unsafe {
            let outs = self.at::<S>(i, n);
            for (out, row) in outs.iter().zip(&self.rows) {
                self.types.diff_src.store_n::<S>(row.diff_src, i, *out, n);
            }
        }
    }
}

/// [`Gradient`] of rows whose diff_src is stored past the caches, while the rows that come next are fetched.
struct Stream<'a, Src, Dd, Ds, const MODE: u8, const PARAMS: u8> {
    gradient: Gradient<'a, Src, Dd, Ds, MODE, PARAMS, TILE>,
    /// Where the next rows of src and diff_dst begin, if there are any.
    next: [(*const u8, *const u8); TILE],
}

impl<S: Simd, Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8> Map<S>
    for Stream<'_, Src, Dd, Ds, MODE, PARAMS>
{
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        let Gradient { types, rows, .. } = &self.gradient;
        // SAFETY: the caller's.
        unsafe {
            for (src, diff_dst) in &self.next {
                S::prefetch(src.wrapping_add(i * types.src.size()));
                S::prefetch(diff_dst.wrapping_add(i * types.diff_dst.size()));
            }
            let outs = self.gradient.at::<S>(i, LANES);
            for (out, row) in outs.into_iter().zip(rows) {
                types.diff_src.stream_all::<S, 1>(row.diff_src, i, &[out]);
            }
        }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        // SAFETY: the caller's.
        unsafe { Map::<S>::apply_n(&self.gradient, i, n) }
    }
}

/// Rows from `first` on, up to `last - 1` or to one that f32 does not carry; gives the row it stopped
/// at. Adds to the block's column sums at `sums`.
///
/// # Safety
/// The rows and sums are there and this thread's; `cols` is not 0; the instruction set of `S` is there.
#[inline(always)]
unsafe fn backward_rows<
    S: Simd,
    Src: Element,
    Dd: Element,
    Ds: Element,
    const MODE: u8,
    const PARAMS: u8,
>(
    job: &Backward,
    first: usize,
    last: usize,
    sums: *mut f64,
) -> usize {
    let kernel = Kernel::<Src, Dd, Ds, MODE, PARAMS> {
        job,
        types: Types {
            src: Src::of(job.src_type),
            diff_dst: Dd::of(job.diff_dst_type),
            diff_src: Ds::of(job.diff_src_type),
        },
        sums: job.sums(sums),
    };
    let mut row = first;
    // SAFETY: the caller's.
    unsafe {
        loop {
            let chain_end = last.min(row + CHAIN_ROWS);
            let chain_first = row;
            while row < chain_end {
                let ready = kernel.narrow_rows(row, chain_end);
                let mut rows = [Row::NOTHING; TILE];
                for (i, slot) in rows[..ready].iter_mut().enumerate() {
                    *slot = kernel.prepare::<S>(row + i);
                }
                match ready {
                    0 => break,
                    TILE if job.streams => kernel.write_past_caches::<S>(rows, row + TILE),
                    TILE => map::<S, _>(job.cols, &kernel.gradient(rows)),
                    _ => map::<S, _>(job.cols, &kernel.gradient([rows[0]])),
                }
                row += ready;
            }
            if row > chain_first {
                kernel.sums.end_chains::<S>(job.cols);
            }
            if row < chain_end || row == last {
                break;
            }
        }
        if job.streams {
            S::stream_fence();
        }
    }
    row
}

impl Row {
    /// What a row is before it is prepared; one loop that prepares is one copy of the sweep.
    const NOTHING: Self = Self {
        src: std::ptr::null(),
        diff_dst: std::ptr::null(),
        diff_src: std::ptr::null_mut(),
        mean: 0.0,
        r: 0.0,
        shift: 0.0,
        slope: 0.0,
    };
}

/// A job with the types of its kernel.
struct Kernel<'a, Src, Dd, Ds, const MODE: u8, const PARAMS: u8> {
    job: &'a Backward,
    types: Types<Src, Dd, Ds>,
    /// The block's.
    sums: ColumnSums,
}

// SAFETY of every block below: rows exist and are this thread's, `cols` is not 0 and the instruction set
// of `S` is there, by the contract of `backward_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8>
    Kernel<'_, Src, Dd, Ds, MODE, PARAMS>
{
    /// How many rows from `first` on f32 carries, up to a tile.
    #[inline(always)]
    unsafe fn narrow_rows(&self, first: usize, last: usize) -> usize {
        let end = last.min(first + TILE);
        let mut row = first;
        while row < end && matches!(unsafe { self.job.given(row) }, Given::Narrow(_)) {
            row += 1;
        }
        row - first
    }

    #[inline(always)]
    unsafe fn src(&self, row: usize) -> *const u8 {
        self.job.src.wrapping_add(self.job.src_rows.offset(row) * self.types.src.size())
    }

    #[inline(always)]
    unsafe fn diff_dst(&self, row: usize) -> *const u8 {
        let offset = self.job.diff_dst_rows.offset(row) * self.types.diff_dst.size();
        self.job.diff_dst.wrapping_add(offset)
    }

    /// The first sweep of a row.
    #[inline(always)]
    unsafe fn prepare<S: Simd>(&self, row: usize) -> Row {
        let job = self.job;
        unsafe {
            let found = match job.given(row) {
                Given::Narrow(found) | Given::Wide(found) => found,
                // Not among the rows that are taken here.
                Given::Anew => Statistics { mean: 0.0, variance: 0.0 },
            };
            let (mean, r) = (found.mean as f32, reciprocal(found.variance, job.epsilon) as f32);
            let (src, diff_dst) = (self.src(row), self.diff_dst(row));
            let at = job.diff_src_rows.offset(row) * self.types.diff_src.size();
            let diff_src = job.diff_src.wrapping_add(at);
            let sums = RowSums::<S, Src, Dd, MODE, PARAMS> {
                src_type: self.types.src,
                dd_type: self.types.diff_dst,
                src,
                diff_dst,
                scale: job.scale,
                mean: S::splat(mean),
                r: S::splat(r),
            };
            let [sum_d, sum_d_xhat] = match MODE {
                LAYER => fold::<S, 2, _>(job.cols, &sums).products,
                RMS => [0.0, fold::<S, 1, _>(job.cols, &sums).products[0]],
                _ => [0.0, 0.0],
            };
            let per_col = per_col(f64::from(r), job.cols);
            let (shift, slope) = (-(per_col * sum_d) as f32, (per_col * sum_d_xhat) as f32);
            Row { src, diff_dst, diff_src, mean, r, shift, slope }
        }
    }

    #[inline(always)]
    fn gradient<const R: usize>(
        &self,
        rows: [Row; R],
    ) -> Gradient<'_, Src, Dd, Ds, MODE, PARAMS, R> {
        Gradient { types: self.types, rows, scale: self.job.scale, sums: &self.sums }
    }

    /// The second sweep of a tile, of which `next` comes next.
    #[inline(always)]
    unsafe fn write_past_caches<S: Simd>(&self, rows: [Row; TILE], next: usize) {
        let gradient = self.gradient(rows);
        let mut streams = true;
        for row in &rows {
            streams &= self.types.diff_src.streams(row.diff_src);
        }
        unsafe {
            if streams {
                let mut ahead = [(self.job.src, self.job.diff_dst); TILE];
                for (i, rows) in ahead.iter_mut().enumerate() {
                    *rows = (self.src(next + i), self.diff_dst(next + i));
                }
                map::<S, _>(self.job.cols, &Stream { gradient, next: ahead });
            } else {
                map::<S, _>(self.job.cols, &gradient);
            }
        }
    }
}

entry_points! {
    /// Rows backward, per level.
    mod entries: backward_rows<Src: Element, Dd: Element, Ds: Element;
        const MODE: u8, const PARAMS: u8>(
        job: &Backward, first: usize, last: usize, sums: *mut f64
    ) -> usize;
}

/// Runs rows from `first` on into a block's column sums and gives the row it stopped at: `last`, or one
/// for `wide`.
pub(super) type Entry = unsafe fn(&Backward, usize, usize, *mut f64) -> usize;

/// The kernel for a problem's types and flags. The common combinations of types have kernels of their
/// own; the rest, constant statistics and the portable level look types up as they go.
pub(super) fn entry(
    level: Level,
    types: (DataType, DataType, DataType),
    mode: u8,
    params: u8,
) -> Entry {
    use DataType::{Bf16 as B, F16 as H, F32 as F};
    let typed = match types {
        (F, F, F) => by_mode::<F32, F32, F32>(level, mode, params),
        (B, B, B) => by_mode::<Bf16, Bf16, Bf16>(level, mode, params),
        (H, H, H) => by_mode::<F16, F16, F16>(level, mode, params),
        (F, B, F) => by_mode::<F32, Bf16, F32>(level, mode, params),
        (B, F, B) => by_mode::<Bf16, F32, Bf16>(level, mode, params),
        _ => None,
    };
    typed.unwrap_or_else(|| match mode {
        LAYER => runtime_entry::<LAYER>(level, params),
        RMS => runtime_entry::<RMS>(level, params),
        GLOBAL => runtime_entry::<GLOBAL>(level, params),
        _ => runtime_entry::<{ GLOBAL | RMS }>(level, params),
    })
}

fn by_mode<Src: Element, Dd: Element, Ds: Element>(
    level: Level,
    mode: u8,
    params: u8,
) -> Option<Entry> {
    match mode {
        LAYER => by_params::<Src, Dd, Ds, LAYER>(level, params),
        RMS => by_params::<Src, Dd, Ds, RMS>(level, params),
        _ => None,
    }
}

/// Makes a function that picks the entry for what is done with the parameters: the combinations that
/// directions and flags make, as diff_scale is never summed without scale read.
macro_rules! match_params {
    ($params:expr, |$p:ident| $entry:expr) => {
        match $params {
            READ_SCALE => {
                const $p: u8 = READ_SCALE;
                $entry
            }
            SUM_SHIFT => {
                const $p: u8 = SUM_SHIFT;
                $entry
            }
            3 => {
                const $p: u8 = READ_SCALE | SUM_SCALE;
                $entry
            }
            7 => {
                const $p: u8 = READ_SCALE | SUM_SCALE | SUM_SHIFT;
                $entry
            }
            _ => {
                const $p: u8 = 0;
                $entry
            }
        }
    };
}

fn by_params<Src: Element, Dd: Element, Ds: Element, const MODE: u8>(
    level: Level,
    params: u8,
) -> Option<Entry> {
    match_params!(params, |P| entries::at::<Src, Dd, Ds, MODE, P>(level))
}

fn runtime_entry<const MODE: u8>(level: Level, params: u8) -> Entry {
    by_params::<Runtime, Runtime, Runtime, MODE>(level, params).unwrap_or_else(|| {
        match_params!(params, |P| entries::entry_portable::<Runtime, Runtime, Runtime, MODE, P>)
    })
}
