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
//! Two sweeps: one over each row for its sums; one over a tile of rows at once, which writes diff_src
//! and adds the tile's column terms, so that the f64 column sums are touched once per tile. Rows are
//! taken greedily: four if there are as many that f32 carries, else one. Others are left to `wide`.

use super::columns::TILE;
use super::job::{Backward, Given};
use super::row::{Statistics, reciprocal};
use crate::simd::{
    Bf16, Element, F16, F32, Fold, LANES, Level, Map, Runtime, Simd, Terms, add_wide, entry_points,
    fold, map,
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

/// A row, ready for its sweeps.
#[derive(Clone, Copy)]
struct Row<S: Simd> {
    src: *const u8,
    diff_dst: *const u8,
    diff_src: *mut u8,
    mean: S::F,
    r: S::F,
    /// `-r*sum(d)/C`.
    shift: S::F,
    /// `r*sum(d*xhat)/C`.
    slope: S::F,
}

impl<S: Simd> Row<S> {
    /// What a row is before it is prepared; one loop that prepares is one copy of the sweep.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn nothing() -> Self {
        // SAFETY: the caller's.
        let zero = unsafe { S::splat(0.0) };
        let null = std::ptr::null_mut();
        Self {
            src: null,
            diff_dst: null,
            diff_src: null,
            mean: zero,
            r: zero,
            shift: zero,
            slope: zero,
        }
    }
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
struct TileMap<'a, S: Simd, Src, Dd, Ds, const MODE: u8, const PARAMS: u8, const R: usize> {
    types: Types<Src, Dd, Ds>,
    rows: &'a [Row<S>; R],
    scale: *const f32,
    /// The block's sums, f64; null if PARAMS asks for none.
    diff_scale: *mut f64,
    diff_shift: *mut f64,
}

impl<
    S: Simd,
    Src: Element,
    Dd: Element,
    Ds: Element,
    const MODE: u8,
    const PARAMS: u8,
    const R: usize,
> TileMap<'_, S, Src, Dd, Ds, MODE, PARAMS, R>
{
    /// `n` is 16 for a whole vector.
    ///
    /// # Safety
    /// As [`Map`].
    #[inline(always)]
    unsafe fn at(&self, i: usize, n: usize) {
        // SAFETY: the caller's; what PARAMS asks for is there and as long as a row.
        unsafe {
            let zero = S::splat(0.0);
            let scale = match (PARAMS & READ_SCALE != 0, n == LANES) {
                (false, _) => zero,
                (true, true) => S::load(self.scale.add(i)),
                (true, false) => S::load_n(self.scale.add(i), n),
            };
            let (mut scale_terms, mut shift_terms) = (zero, zero);
            // All rows are loaded before one is stored: a load that follows a store to an address a
            // multiple of 4 KiB away waits for it.
            let mut outs = [zero; R];
            for (out, row) in outs.iter_mut().zip(self.rows) {
                let (x, dd) = if n == LANES {
                    let x = self.types.src.load::<S>(row.src, i);
                    (x, self.types.diff_dst.load::<S>(row.diff_dst, i))
                } else {
                    let x = self.types.src.load_n::<S>(row.src, i, n);
                    (x, self.types.diff_dst.load_n::<S>(row.diff_dst, i, n))
                };
                let xhat = xhat::<S, MODE>(x, row.mean, row.r);
                if PARAMS & SUM_SCALE != 0 {
                    scale_terms = S::fma(dd, xhat, scale_terms);
                }
                if PARAMS & SUM_SHIFT != 0 {
                    shift_terms = S::add(shift_terms, dd);
                }
                let d = if PARAMS & READ_SCALE != 0 { S::mul(scale, dd) } else { dd };
                *out = match MODE {
                    LAYER => S::fnma(xhat, row.slope, S::fma(d, row.r, row.shift)),
                    RMS => S::fnma(xhat, row.slope, S::mul(d, row.r)),
                    _ => S::mul(d, row.r),
                };
            }
            for (out, row) in outs.iter().zip(self.rows) {
                if n == LANES {
                    self.types.diff_src.store::<S>(row.diff_src, i, *out);
                } else {
                    self.types.diff_src.store_n::<S>(row.diff_src, i, *out, n);
                }
            }
            if PARAMS & SUM_SCALE != 0 {
                add_wide::<S>(self.diff_scale.add(i), S::widen(scale_terms), n);
            }
            if PARAMS & SUM_SHIFT != 0 {
                add_wide::<S>(self.diff_shift.add(i), S::widen(shift_terms), n);
            }
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
> Map<S> for TileMap<'_, S, Src, Dd, Ds, MODE, PARAMS, R>
{
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { self.at(i, LANES) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        // SAFETY: the caller's.
        unsafe { self.at(i, n) }
    }
}

/// Rows from `first` on, up to `last - 1` or to one that f32 does not carry; gives the row it stopped
/// at. Adds to the block's column sums at `sums`, those of diff_scale first.
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
    while row < last {
        // SAFETY: the caller's.
        unsafe {
            let ready = kernel.narrow_rows(row, last);
            if ready == 0 {
                return row;
            }
            let rows = if ready < TILE { 1 } else { TILE };
            let mut ready = [Row::<S>::nothing(); TILE];
            for (i, slot) in ready[..rows].iter_mut().enumerate() {
                *slot = kernel.prepare::<S>(row + i);
            }
            if rows == TILE {
                kernel.write::<S, TILE>(&ready);
            } else {
                kernel.write::<S, 1>(&[ready[0]]);
            }
            row += rows;
        }
    }
    last
}

/// A job with the types of its kernel.
struct Kernel<'a, Src, Dd, Ds, const MODE: u8, const PARAMS: u8> {
    job: &'a Backward,
    types: Types<Src, Dd, Ds>,
    /// The block's sums of diff_scale and diff_shift.
    sums: (*mut f64, *mut f64),
}

impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8>
    Kernel<'_, Src, Dd, Ds, MODE, PARAMS>
{
    /// How many rows from `first` on f32 carries, up to a tile.
    ///
    /// # Safety
    /// Rows `first` to `last - 1` exist.
    #[inline(always)]
    unsafe fn narrow_rows(&self, first: usize, last: usize) -> usize {
        let end = last.min(first + TILE);
        let mut row = first;
        // SAFETY: the caller's.
        while row < end && matches!(unsafe { self.job.given(row) }, Given::Narrow(_)) {
            row += 1;
        }
        row - first
    }

    /// The first sweep of a row.
    ///
    /// # Safety
    /// As [`backward_rows`].
    #[inline(always)]
    unsafe fn prepare<S: Simd>(&self, row: usize) -> Row<S> {
        let job = self.job;
        // SAFETY: the caller's.
        unsafe {
            let found = match job.given(row) {
                Given::Narrow(found) | Given::Wide(found) => found,
                // Not among the rows that are taken here.
                Given::Anew => Statistics { mean: 0.0, variance: 0.0 },
            };
            let r = reciprocal(found.variance, job.epsilon) as f32;
            let src = job.src.add(job.src_rows.offset(row) * self.types.src.size());
            let diff_dst =
                job.diff_dst.add(job.diff_dst_rows.offset(row) * self.types.diff_dst.size());
            let diff_src =
                job.diff_src.add(job.diff_src_rows.offset(row) * self.types.diff_src.size());
            let (mean, r_lanes) = (S::splat(found.mean as f32), S::splat(r));
            let sums = RowSums::<S, Src, Dd, MODE, PARAMS> {
                src_type: self.types.src,
                dd_type: self.types.diff_dst,
                src,
                diff_dst,
                scale: job.scale,
                mean,
                r: r_lanes,
            };
            let [sum_d, sum_d_xhat] = match MODE {
                LAYER => fold::<S, 2, _>(job.cols, &sums).products,
                RMS => [0.0, fold::<S, 1, _>(job.cols, &sums).products[0]],
                _ => [0.0, 0.0],
            };
            let per_col = f64::from(r) / job.cols as f64;
            Row {
                src,
                diff_dst,
                diff_src,
                mean,
                r: r_lanes,
                shift: S::splat(-(per_col * sum_d) as f32),
                slope: S::splat((per_col * sum_d_xhat) as f32),
            }
        }
    }

    /// The second sweep of `R` rows.
    ///
    /// # Safety
    /// As [`backward_rows`].
    #[inline(always)]
    unsafe fn write<S: Simd, const R: usize>(&self, rows: &[Row<S>; R]) {
        // SAFETY: the caller's.
        unsafe {
            map(
                self.job.cols,
                &TileMap::<S, Src, Dd, Ds, MODE, PARAMS, R> {
                    types: self.types,
                    rows,
                    scale: self.job.scale,
                    diff_scale: self.sums.0,
                    diff_shift: self.sums.1,
                },
            );
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
