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
//! and adds the tile's column terms, so that the f64 column sums are touched once per tile. A row that
//! f32 does not carry is computed in f64, and then its tile row by row.

use super::columns::TILE;
use super::row::{Statistics, mean_in_range, reciprocal, variance_tells, wide_statistics};
use crate::simd::{
    Bf16, Element, F16, F32, Fold, LANES, Level, Map, Runtime, Simd, WideFold, entry_points, fold,
    fold_wide, map,
};
use crate::tensor::{DataType, RowMap};

/// One backward execution.
#[derive(Clone, Copy)]
pub(super) struct Backward {
    pub(super) cols: usize,
    pub(super) epsilon: f64,
    pub(super) src_type: DataType,
    pub(super) diff_dst_type: DataType,
    pub(super) diff_src_type: DataType,
    pub(super) src: *const u8,
    pub(super) diff_dst: *const u8,
    pub(super) diff_src: *mut u8,
    /// Null with RMS.
    pub(super) mean: *const f32,
    pub(super) variance: *const f32,
    /// f32, or null.
    pub(super) scale: *const f32,
    pub(super) src_rows: RowMap,
    pub(super) diff_dst_rows: RowMap,
    pub(super) diff_src_rows: RowMap,
    pub(super) stat_rows: RowMap,
    pub(super) global_stats: bool,
}

// SAFETY: threads write different rows through these addresses; everything else is read.
unsafe impl Sync for Backward {}

/// What a row's statistics are, and whether they are to be trusted in f32.
pub(super) enum Given {
    /// In f32.
    Narrow(Statistics),
    /// In f64.
    Wide(Statistics),
    /// In f64, taken anew from src.
    Anew,
}

impl Backward {
    /// The statistics given for a row.
    ///
    /// # Safety
    /// The row exists.
    pub(super) unsafe fn given(&self, row: usize) -> Given {
        // SAFETY: the caller's.
        let (mean, variance) = unsafe {
            let at = self.stat_rows.offset(row);
            let rms = self.mean.is_null();
            let mean = if rms { 0.0 } else { self.mean.add(at).read_unaligned() };
            (mean, self.variance.add(at).read_unaligned())
        };
        let wide = !mean_in_range(mean);
        let found = Statistics { mean: f64::from(mean), variance: f64::from(variance), wide };
        if !self.global_stats && !variance_tells(variance) {
            Given::Anew
        } else if wide {
            Given::Wide(found)
        } else {
            Given::Narrow(found)
        }
    }
}

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
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn pair(&self, x: S::F, dd: S::F, scale: S::F) -> (S::F, S::F) {
        // SAFETY: the caller's.
        unsafe {
            let d = if PARAMS & READ_SCALE != 0 { S::mul(scale, dd) } else { dd };
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

/// `(d, xhat)` alone.
impl<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8> Fold<S, 1>
    for RowSums<S, Src, Dd, MODE, PARAMS>
{
    #[inline(always)]
    unsafe fn terms(&self, i: usize) -> [(S::F, S::F); 1] {
        // SAFETY: the caller's; scale is as long as a row, and there if PARAMS says so.
        unsafe {
            let x = self.src_type.load::<S>(self.src, i);
            let dd = self.dd_type.load::<S>(self.diff_dst, i);
            let scale = if PARAMS & READ_SCALE != 0 { S::load(self.scale.add(i)) } else { x };
            [self.pair(x, dd, scale)]
        }
    }
    #[inline(always)]
    unsafe fn terms_n(&self, i: usize, n: usize) -> [(S::F, S::F); 1] {
        // SAFETY: as above.
        unsafe {
            let x = self.src_type.load_n::<S>(self.src, i, n);
            let dd = self.dd_type.load_n::<S>(self.diff_dst, i, n);
            let scale = if PARAMS & READ_SCALE != 0 { S::load_n(self.scale.add(i), n) } else { x };
            [self.pair(x, dd, scale)]
        }
    }
}

/// `(d, 1)` and `(d, xhat)`.
impl<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8> Fold<S, 2>
    for RowSums<S, Src, Dd, MODE, PARAMS>
{
    #[inline(always)]
    unsafe fn terms(&self, i: usize) -> [(S::F, S::F); 2] {
        // SAFETY: the caller's.
        unsafe {
            let [(d, xhat)] = <Self as Fold<S, 1>>::terms(self, i);
            [(d, S::splat(1.0)), (d, xhat)]
        }
    }
    #[inline(always)]
    unsafe fn terms_n(&self, i: usize, n: usize) -> [(S::F, S::F); 2] {
        // SAFETY: the caller's.
        unsafe {
            let [(d, xhat)] = <Self as Fold<S, 1>>::terms_n(self, i, n);
            [(d, S::splat(1.0)), (d, xhat)]
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
            for row in self.rows {
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
                let out = match MODE {
                    LAYER => S::fnma(xhat, row.slope, S::fma(d, row.r, row.shift)),
                    RMS => S::fnma(xhat, row.slope, S::mul(d, row.r)),
                    _ => S::mul(d, row.r),
                };
                if n == LANES {
                    self.types.diff_src.store::<S>(row.diff_src, i, out);
                } else {
                    self.types.diff_src.store_n::<S>(row.diff_src, i, out, n);
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

/// Adds the first `n` lanes to sums in memory.
///
/// # Safety
/// `n` sums are there; the instruction set of `S` is too.
#[inline(always)]
unsafe fn add_wide<S: Simd>(sums: *mut f64, terms: S::D, n: usize) {
    // SAFETY: the caller's.
    unsafe {
        if n == LANES {
            S::wide_store(sums, S::wide_add(S::wide_load(sums), terms));
        } else {
            S::wide_store_n(sums, S::wide_add(S::wide_load_n(sums, n), terms), n);
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

/// A row in f64, for rows that f32 does not carry. As a fold it sums `d` or `d*xhat`.
#[derive(Clone, Copy)]
struct WideRow<S: Simd, Src, Dd, Ds, const MODE: u8, const PARAMS: u8> {
    types: Types<Src, Dd, Ds>,
    src: *const u8,
    diff_dst: *const u8,
    diff_src: *mut u8,
    scale: *const f32,
    mean: S::D,
    r: S::D,
    shift: S::D,
    slope: S::D,
    diff_scale: *mut f64,
    diff_shift: *mut f64,
    with_xhat: bool,
}

impl<S: Simd, Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8>
    WideRow<S, Src, Dd, Ds, MODE, PARAMS>
{
    /// `diff_dst`, `d` and `xhat` of a vector.
    ///
    /// # Safety
    /// As [`Map`].
    #[inline(always)]
    unsafe fn load(&self, i: usize, n: usize) -> (S::D, S::D, S::D) {
        // SAFETY: the caller's; scale is as long as a row, and there if PARAMS says so.
        unsafe {
            let whole = n == LANES;
            let (x, dd) = if whole {
                let x = self.types.src.load::<S>(self.src, i);
                (x, self.types.diff_dst.load::<S>(self.diff_dst, i))
            } else {
                let x = self.types.src.load_n::<S>(self.src, i, n);
                (x, self.types.diff_dst.load_n::<S>(self.diff_dst, i, n))
            };
            let dd = S::widen(dd);
            let xhat = S::wide_mul(S::wide_sub(S::widen(x), self.mean), self.r);
            if PARAMS & READ_SCALE == 0 {
                return (dd, dd, xhat);
            }
            let scale =
                if whole { S::load(self.scale.add(i)) } else { S::load_n(self.scale.add(i), n) };
            (dd, S::wide_mul(S::widen(scale), dd), xhat)
        }
    }

    /// # Safety
    /// As [`Map`].
    #[inline(always)]
    unsafe fn at(&self, i: usize, n: usize) {
        // SAFETY: the caller's; what PARAMS asks for is there and as long as a row.
        unsafe {
            let (dd, d, xhat) = self.load(i, n);
            let scaled = S::wide_mul(d, self.r);
            let bend = S::wide_mul(xhat, self.slope);
            let out = S::narrow(match MODE {
                LAYER => S::wide_sub(S::wide_sub(scaled, self.shift), bend),
                RMS => S::wide_sub(scaled, bend),
                _ => scaled,
            });
            if n == LANES {
                self.types.diff_src.store::<S>(self.diff_src, i, out);
            } else {
                self.types.diff_src.store_n::<S>(self.diff_src, i, out, n);
            }
            if PARAMS & SUM_SCALE != 0 {
                add_wide::<S>(self.diff_scale.add(i), S::wide_mul(dd, xhat), n);
            }
            if PARAMS & SUM_SHIFT != 0 {
                add_wide::<S>(self.diff_shift.add(i), dd, n);
            }
        }
    }
}

impl<S: Simd, Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8> WideFold<S>
    for WideRow<S, Src, Dd, Ds, MODE, PARAMS>
{
    #[inline(always)]
    unsafe fn term(&self, i: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe { self.term_n(i, LANES) }
    }
    #[inline(always)]
    unsafe fn term_n(&self, i: usize, n: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe {
            let (_, d, xhat) = self.load(i, n);
            if self.with_xhat { S::wide_mul(d, xhat) } else { d }
        }
    }
}

impl<S: Simd, Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8> Map<S>
    for WideRow<S, Src, Dd, Ds, MODE, PARAMS>
{
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

/// Rows `first` to `last - 1`; adds to the block's `2 * cols` column sums at `sums`, first those of
/// diff_scale, then those of diff_shift, which are set to zero before.
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
) {
    // SAFETY: the caller's.
    unsafe {
        let kernel = Kernel::<Src, Dd, Ds, MODE, PARAMS> {
            job,
            types: Types {
                src: Src::of(job.src_type),
                diff_dst: Dd::of(job.diff_dst_type),
                diff_src: Ds::of(job.diff_src_type),
            },
            diff_scale: sums,
            diff_shift: sums.wrapping_add(if PARAMS & SUM_SCALE != 0 { job.cols } else { 0 }),
        };
        let count = (PARAMS & (SUM_SCALE | SUM_SHIFT)).count_ones() as usize;
        if count > 0 {
            sums.write_bytes(0, count * job.cols);
        }
        let mut row = first;
        while row + TILE <= last {
            kernel.tile::<S>(row);
            row += TILE;
        }
        while row < last {
            kernel.single::<S>(row);
            row += 1;
        }
    }
}

/// A job with the types of its kernel.
struct Kernel<'a, Src, Dd, Ds, const MODE: u8, const PARAMS: u8> {
    job: &'a Backward,
    types: Types<Src, Dd, Ds>,
    diff_scale: *mut f64,
    diff_shift: *mut f64,
}

impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8>
    Kernel<'_, Src, Dd, Ds, MODE, PARAMS>
{
    /// [`TILE`] rows at once.
    ///
    /// # Safety
    /// As [`backward_rows`].
    #[inline(always)]
    unsafe fn tile<S: Simd>(&self, first: usize) {
        // SAFETY: the caller's.
        unsafe {
            let given: [Given; TILE] = std::array::from_fn(|i| self.job.given(first + i));
            if let [Given::Narrow(a), Given::Narrow(b), Given::Narrow(c), Given::Narrow(d)] = &given
            {
                let rows = [
                    self.narrow::<S>(first, a),
                    self.narrow::<S>(first + 1, b),
                    self.narrow::<S>(first + 2, c),
                    self.narrow::<S>(first + 3, d),
                ];
                self.write::<S, TILE>(&rows);
            } else {
                for i in 0..TILE {
                    self.single::<S>(first + i);
                }
            }
        }
    }

    /// One row.
    ///
    /// # Safety
    /// As [`backward_rows`].
    #[inline(always)]
    unsafe fn single<S: Simd>(&self, row: usize) {
        // SAFETY: the caller's.
        unsafe {
            match self.job.given(row) {
                Given::Narrow(found) => self.write::<S, 1>(&[self.narrow::<S>(row, &found)]),
                Given::Wide(found) => self.wide::<S>(row, Some(found)),
                Given::Anew => self.wide::<S>(row, None),
            }
        }
    }

    /// # Safety
    /// As [`backward_rows`].
    #[inline(always)]
    unsafe fn addresses(&self, row: usize) -> (*const u8, *const u8, *mut u8) {
        let job = self.job;
        // SAFETY: the caller's.
        unsafe {
            (
                job.src.add(job.src_rows.offset(row) * self.types.src.size()),
                job.diff_dst.add(job.diff_dst_rows.offset(row) * self.types.diff_dst.size()),
                job.diff_src.add(job.diff_src_rows.offset(row) * self.types.diff_src.size()),
            )
        }
    }

    /// The first sweep of a row.
    ///
    /// # Safety
    /// As [`backward_rows`].
    #[inline(always)]
    unsafe fn narrow<S: Simd>(&self, row: usize, found: &Statistics) -> Row<S> {
        let cols = self.job.cols;
        let r = reciprocal(found.variance, self.job.epsilon) as f32;
        // SAFETY: the caller's.
        unsafe {
            let (src, diff_dst, diff_src) = self.addresses(row);
            let (mean, r_lanes) = (S::splat(found.mean as f32), S::splat(r));
            let sums = RowSums::<S, Src, Dd, MODE, PARAMS> {
                src_type: self.types.src,
                dd_type: self.types.diff_dst,
                src,
                diff_dst,
                scale: self.job.scale,
                mean,
                r: r_lanes,
            };
            let [sum_d, sum_d_xhat] = match MODE {
                LAYER => fold::<S, 2, _>(cols, &sums),
                RMS => [0.0, fold::<S, 1, _>(cols, &sums)[0]],
                _ => [0.0, 0.0],
            };
            let per_col = f64::from(r) / cols as f64;
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
                    diff_scale: self.diff_scale,
                    diff_shift: self.diff_shift,
                },
            );
        }
    }

    /// One row in f64.
    ///
    /// # Safety
    /// As [`backward_rows`].
    #[inline(always)]
    unsafe fn wide<S: Simd>(&self, row: usize, found: Option<Statistics>) {
        let cols = self.job.cols;
        // SAFETY: the caller's.
        unsafe {
            let (src, diff_dst, diff_src) = self.addresses(row);
            let found = match found {
                Some(found) => found,
                None if MODE & RMS != 0 => {
                    wide_statistics::<S, Src, true>(self.types.src, src, cols)
                }
                None => wide_statistics::<S, Src, false>(self.types.src, src, cols),
            };
            let r = reciprocal(found.variance, self.job.epsilon);
            let zero = S::wide_splat(0.0);
            let mut wide = WideRow::<S, Src, Dd, Ds, MODE, PARAMS> {
                types: self.types,
                src,
                diff_dst,
                diff_src,
                scale: self.job.scale,
                mean: S::wide_splat(found.mean),
                r: S::wide_splat(r),
                shift: zero,
                slope: zero,
                diff_scale: self.diff_scale,
                diff_shift: self.diff_shift,
                with_xhat: false,
            };
            let per_col = r / cols as f64;
            if MODE == LAYER {
                wide.shift = S::wide_splat(per_col * fold_wide::<S, _>(cols, &wide));
            }
            if MODE & GLOBAL == 0 {
                wide.with_xhat = true;
                wide.slope = S::wide_splat(per_col * fold_wide::<S, _>(cols, &wide));
            }
            map(cols, &wide);
        }
    }
}

entry_points! {
    /// Rows backward, per level.
    mod entries: backward_rows<Src: Element, Dd: Element, Ds: Element;
        const MODE: u8, const PARAMS: u8>(
        job: &Backward, first: usize, last: usize, sums: *mut f64
    );
}

/// Runs rows `first` to `last - 1` of a job into a block's column sums.
pub(super) type Entry = unsafe fn(&Backward, usize, usize, *mut f64);

/// The kernel for a problem's types and flags. Types have kernels of their own where diff_src is of
/// src's type and the statistics are not constants; the rest look their types up as they go.
pub(super) fn entry(
    level: Level,
    (src, diff_dst, diff_src): (DataType, DataType, DataType),
    mode: u8,
    params: u8,
) -> Entry {
    if mode & GLOBAL != 0 {
        return if mode & RMS != 0 {
            by_params::<Runtime, Runtime, Runtime, { GLOBAL | RMS }>(level, params)
        } else {
            by_params::<Runtime, Runtime, Runtime, GLOBAL>(level, params)
        };
    }
    if src != diff_src {
        return by_mode::<Runtime, Runtime, Runtime>(level, mode, params);
    }
    match src {
        DataType::Bf16 => by_diff_dst::<Bf16>(level, diff_dst, mode, params),
        DataType::F16 => by_diff_dst::<F16>(level, diff_dst, mode, params),
        _ => by_diff_dst::<F32>(level, diff_dst, mode, params),
    }
}

fn by_diff_dst<E: Element>(level: Level, diff_dst: DataType, mode: u8, params: u8) -> Entry {
    match diff_dst {
        DataType::Bf16 => by_mode::<E, Bf16, E>(level, mode, params),
        DataType::F16 => by_mode::<E, F16, E>(level, mode, params),
        _ => by_mode::<E, F32, E>(level, mode, params),
    }
}

fn by_mode<Src: Element, Dd: Element, Ds: Element>(level: Level, mode: u8, params: u8) -> Entry {
    if mode & RMS != 0 {
        by_params::<Src, Dd, Ds, RMS>(level, params)
    } else {
        by_params::<Src, Dd, Ds, LAYER>(level, params)
    }
}

/// The combinations that directions and flags make; diff_scale is never summed without scale read.
fn by_params<Src: Element, Dd: Element, Ds: Element, const MODE: u8>(
    level: Level,
    params: u8,
) -> Entry {
    match params {
        READ_SCALE => entries::at::<Src, Dd, Ds, MODE, READ_SCALE>(level),
        SUM_SHIFT => entries::at::<Src, Dd, Ds, MODE, SUM_SHIFT>(level),
        3 => entries::at::<Src, Dd, Ds, MODE, { READ_SCALE | SUM_SCALE }>(level),
        7 => entries::at::<Src, Dd, Ds, MODE, { READ_SCALE | SUM_SCALE | SUM_SHIFT }>(level),
        _ => entries::at::<Src, Dd, Ds, MODE, 0>(level),
    }
}
