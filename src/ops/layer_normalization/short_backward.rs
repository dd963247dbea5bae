//! Backward over rows so short that joining lanes, a root and a quotient per row would be most of the work: a
//! chain of them at once, whose scalars are the lanes of a vector and whose column terms stay in registers. The
//! bits are those of row after row.

use super::backward::Kernel;
use super::gradient::{
    Kind, LAYER, READ_SCALE, RMS, RowSums, SUM_SCALE, SUM_SHIFT, Vectors, load_if,
};
use super::job::Backward;
use super::row::LARGEST_MEAN;
use super::types::KernelTypes;
use crate::rows::CHAIN_ROWS;
use crate::simd::{
    Bf16, Element, F16, F32, GROUP, LANES, LanesOfRows, Level, Simd, add_wide, entry_points,
    lane_sums, unroll,
};
use crate::tensor::DataType;
use std::mem::MaybeUninit;

/// The longest row of src or diff_dst that is taken so, in bytes: a chain of them stays in a first-level cache.
const LONGEST: usize = 1024;
/// The longest where diff_src is stored past the caches: longer ones reach memory in pieces.
const LONGEST_STREAMED: usize = 512;
/// The longest of which the next chain's scalars are computed before a chain is written.
const LONGEST_AHEAD: usize = 256;

/// What writing the rows of a chain takes.
pub(super) struct Scalars {
    mean: [f32; CHAIN_ROWS],
    r: [f32; CHAIN_ROWS],
    /// `-r*sum(d)/C`.
    shift: [f32; CHAIN_ROWS],
    /// `r*sum(d*xhat)/C`.
    slope: [f32; CHAIN_ROWS],
}

impl Scalars {
    const NONE: Self = {
        let none = [0.0; CHAIN_ROWS];
        Self { mean: none, r: none, shift: none, slope: none }
    };
}

/// The rows of a chain, to be summed.
struct Rows<'a, Src, Dd> {
    src_type: Src,
    dd_type: Dd,
    src: *const u8,
    diff_dst: *const u8,
    /// Between rows, in bytes.
    src_step: usize,
    dd_step: usize,
    scale: *const f32,
    mean: &'a [f32; CHAIN_ROWS],
    r: &'a [f32; CHAIN_ROWS],
}

impl<Src: Element, Dd: Element> Rows<'_, Src, Dd> {
    /// # Safety
    /// The row is one of the chain; the instruction set of `S` is there.
    #[inline(always)]
    unsafe fn row<S: Simd, const MODE: u8>(
        &self,
        row: usize,
    ) -> RowSums<S, Src, Dd, MODE, READ_SCALE> {
        // SAFETY: the caller's.
        unsafe {
            RowSums {
                src_type: self.src_type,
                dd_type: self.dd_type,
                src: self.src.wrapping_add(row * self.src_step),
                diff_dst: self.diff_dst.wrapping_add(row * self.dd_step),
                scale: self.scale,
                mean: S::splat(self.mean[row]),
                r: S::splat(self.r[row]),
            }
        }
    }
}

/// `sum(d)`, or with `XHAT` `sum(d*xhat)`, of rows of `NV` whole vectors: one chain, as the others of its group are
/// zero.
struct SumsOf<'a, Src, Dd, const MODE: u8, const NV: usize, const XHAT: bool>(
    &'a Rows<'a, Src, Dd>,
);

impl<S: Simd, Src: Element, Dd: Element, const MODE: u8, const NV: usize, const XHAT: bool>
    LanesOfRows<S> for SumsOf<'_, Src, Dd, MODE, NV, XHAT>
{
    #[inline(always)]
    unsafe fn lanes(&self, row: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe {
            let row = self.0.row::<S, MODE>(row);
            let mut chain = S::splat(0.0);
            for v in 0..NV {
                let (d, xhat) = row.at(v * LANES, LANES);
                chain = if XHAT { S::fma(d, xhat, chain) } else { S::add(d, chain) };
            }
            S::widen(chain)
        }
    }
}

/// `sum(d)`, which RMS leaves alone, and `sum(d*xhat)` of each row.
///
/// # Safety
/// The rows are there; the instruction set of `S` is too.
#[inline(always)]
unsafe fn sums<S: Simd, Src: Element, Dd: Element, const MODE: u8>(
    rows: &Rows<'_, Src, Dd>,
    cols: usize,
) -> [S::D; 2] {
    // SAFETY: the caller's.
    unsafe {
        match (cols / LANES, cols % LANES) {
            (1, 0) => sums_of::<S, Src, Dd, MODE, 1>(rows),
            (2, 0) => sums_of::<S, Src, Dd, MODE, 2>(rows),
            (3, 0) => sums_of::<S, Src, Dd, MODE, 3>(rows),
            (4, 0) => sums_of::<S, Src, Dd, MODE, 4>(rows),
            _ => sums_of_any::<S, Src, Dd, MODE>(rows, cols),
        }
    }
}

/// # Safety
/// As [`sums`].
#[inline(always)]
unsafe fn sums_of<S: Simd, Src: Element, Dd: Element, const MODE: u8, const NV: usize>(
    rows: &Rows<'_, Src, Dd>,
) -> [S::D; 2] {
    // SAFETY: the caller's.
    unsafe {
        let d = match MODE {
            LAYER => S::wide_sums(&SumsOf::<Src, Dd, MODE, NV, false>(rows)),
            _ => S::wide_splat(0.0),
        };
        [d, S::wide_sums(&SumsOf::<Src, Dd, MODE, NV, true>(rows))]
    }
}

/// # Safety
/// As [`sums`].
#[inline(always)]
unsafe fn sums_of_any<S: Simd, Src: Element, Dd: Element, const MODE: u8>(
    rows: &Rows<'_, Src, Dd>,
    cols: usize,
) -> [S::D; 2] {
    let mut sums_d = [const { MaybeUninit::uninit() }; CHAIN_ROWS];
    let mut sums_d_xhat = [const { MaybeUninit::uninit() }; CHAIN_ROWS];
    // SAFETY: the caller's.
    unsafe {
        for i in 0..CHAIN_ROWS {
            let row = rows.row::<S, MODE>(i);
            if MODE == LAYER {
                let [d, d_xhat] = lane_sums::<S, 2, _>(cols, &row).products;
                sums_d[i].write(d);
                sums_d_xhat[i].write(d_xhat);
            } else {
                let [d_xhat] = lane_sums::<S, 1, _>(cols, &row).products;
                sums_d_xhat[i].write(d_xhat);
            }
        }
        let d = if MODE == LAYER { S::wide_sums(&sums_d) } else { S::wide_splat(0.0) };
        [d, S::wide_sums(&sums_d_xhat)]
    }
}

/// Means or variances of a chain's rows.
///
/// # Safety
/// They are there; the instruction set of `S` is too.
#[inline(always)]
unsafe fn statistics<S: Simd>(job: &Backward, given: *const f32, first: usize) -> S::F {
    // SAFETY: the caller's.
    unsafe {
        if job.stat_rows.step() == Some(1) {
            return S::load(given.add(job.stat_rows.offset(first)));
        }
        let mut values = [0.0; CHAIN_ROWS];
        for i in 0..CHAIN_ROWS {
            values[i] = given.add(job.stat_rows.offset(first + i)).read_unaligned();
        }
        S::load(values.as_ptr())
    }
}

/// What the rows of the chain that begins at `first` take to be written; false if f32 does not carry one of them.
///
/// # Safety
/// The rows are there, `src_step` and `dd_step` bytes from each other, and `cols` is not 0; the instruction set of `S`
/// is there.
#[inline(always)]
unsafe fn chain_scalars<S: Simd, Src: Element, Dd: Element, const MODE: u8>(
    job: &Backward,
    first: usize,
    (src_step, dd_step): (usize, usize),
    scalars: &mut Scalars,
) -> bool {
    const { assert!(CHAIN_ROWS == LANES) };
    let (src_type, dd_type) = (Src::of(job.src_type), Dd::of(job.diff_dst_type));
    let Scalars { mean, r, shift, slope } = scalars;
    // SAFETY: the caller's.
    unsafe {
        let variance = S::widen(statistics::<S>(job, job.variance, first));
        if MODE == LAYER {
            S::store(mean.as_mut_ptr(), statistics::<S>(job, job.mean, first));
        }
        // What `Backward::given` takes for narrow.
        let normal = (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX));
        let largest = f64::from(LARGEST_MEAN.next_down());
        let mut carried = S::wide_all_between(variance, normal.0, normal.1);
        if MODE == LAYER {
            let mean = S::widen(S::load(mean.as_ptr()));
            carried &= S::wide_all_between(mean, -largest, largest);
        }
        if !carried {
            return false;
        }
        let root = S::wide_sqrt(S::wide_add(variance, S::wide_splat(job.epsilon)));
        let r_lanes = S::narrow(S::wide_div(S::wide_splat(1.0), root));
        S::store(r.as_mut_ptr(), r_lanes);
        let rows = Rows {
            src_type,
            dd_type,
            src: job.src.wrapping_add(job.src_rows.offset(first) * src_type.size()),
            diff_dst: job.diff_dst.wrapping_add(job.diff_dst_rows.offset(first) * dd_type.size()),
            src_step,
            dd_step,
            scale: job.scale,
            mean,
            r,
        };
        let [d, d_xhat] = sums::<S, Src, Dd, MODE>(&rows, job.cols);
        let per_col = S::wide_mul(S::widen(r_lanes), S::wide_splat(1.0 / job.cols as f64));
        S::store(slope.as_mut_ptr(), S::narrow(S::wide_mul(per_col, d_xhat)));
        if MODE == LAYER {
            let of = S::narrow(S::wide_mul(per_col, d));
            S::store(shift.as_mut_ptr(), S::mul(of, S::splat(-1.0)));
        }
    }
    true
}

entry_points! {
    /// The scalars of a chain, per level.
    mod entries: chain_scalars<Src: Element, Dd: Element; const MODE: u8>(
        job: &Backward, first: usize, steps: (usize, usize), scalars: &mut Scalars
    ) -> bool;
}

/// See [`chain_scalars`].
pub(super) type Entry = unsafe fn(&Backward, usize, (usize, usize), &mut Scalars) -> bool;

/// The scalars of a problem's chains, if rows are short and the level has vectors.
pub(super) fn entry(level: Level, types: &KernelTypes, kind: Kind, cols: usize) -> Option<Entry> {
    use DataType::{Bf16 as B, F16 as H, F32 as F};
    let [src, diff_dst, _] = types.all();
    if cols > GROUP || cols * src.size().max(diff_dst.size()) > LONGEST {
        return None;
    }
    fn typed<Src: Element, Dd: Element>(level: Level, kind: Kind) -> Option<Entry> {
        match kind.mode {
            LAYER => entries::at::<Src, Dd, LAYER>(level),
            RMS => entries::at::<Src, Dd, RMS>(level),
            _ => None,
        }
    }
    match (src, diff_dst) {
        (F, F) => typed::<F32, F32>(level, kind),
        (B, B) => typed::<Bf16, Bf16>(level, kind),
        (H, H) => typed::<F16, F16>(level, kind),
        (F, B) => typed::<F32, Bf16>(level, kind),
        (B, F) => typed::<Bf16, F32>(level, kind),
        _ => None,
    }
}

// SAFETY of every block below: rows exist and are this thread's, `cols` is not 0 and the instruction set
// of `S` is there, by the contract of `backward_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8>
    Kernel<'_, Src, Dd, Ds, MODE, PARAMS>
{
    /// Chains of short rows and their ends, as many as there are; gives the row it stopped at.
    ///
    /// A chain's scalars are computed before the one before is written: each root and quotient waits for the one
    /// before, and the writes do not.
    #[inline(always)]
    pub(super) unsafe fn short_chains<S: Simd>(&self, first: usize, last: usize) -> usize {
        let job = self.job;
        let mut row = first;
        let (Some(compute), Some(src_step), Some(dd_step), Some(ds_step)) =
            (job.short, job.src_rows.step(), job.diff_dst_rows.step(), job.diff_src_rows.step())
        else {
            return row;
        };
        if !S::UNROLLS {
            return row;
        }
        let types = &self.types;
        let steps = (src_step * types.src.size(), dd_step * types.diff_dst.size());
        let ds_step = ds_step * types.diff_src.size();
        let longest = types.src.size().max(types.diff_dst.size()) * job.cols;
        if job.streams && longest > LONGEST_STREAMED {
            return row;
        }
        let ahead = longest <= LONGEST_AHEAD;
        let streams = job.streams
            && types.diff_src.streams(unsafe { self.diff_src(row) })
            && ds_step == job.cols * types.diff_src.size()
            && ds_step.is_multiple_of(64);
        let mut scalars = [Scalars::NONE; 2];
        let [mut written, mut next] = scalars.each_mut();
        unsafe {
            let known = |row: usize, scalars: &mut Scalars| {
                row + CHAIN_ROWS <= last && compute(job, row, steps, scalars)
            };
            let mut ready = known(row, written);
            while ready {
                if ahead {
                    ready = known(row + CHAIN_ROWS, next);
                }
                let rows = Written {
                    src: self.src(row),
                    diff_dst: self.diff_dst(row),
                    diff_src: self.diff_src(row),
                    steps: (steps.0, steps.1, ds_step),
                    scalars: written,
                    streams,
                    fetches: streams && ahead,
                };
                self.write_short::<S>(&rows);
                if !ahead {
                    ready = known(row + CHAIN_ROWS, next);
                }
                std::mem::swap(&mut written, &mut next);
                row += CHAIN_ROWS;
            }
        }
        row
    }

    /// A chain of rows, and their column terms.
    #[inline(always)]
    unsafe fn write_short<S: Simd>(&self, rows: &Written<'_>) {
        let cols = self.job.cols;
        let mut i = 0;
        unsafe {
            if S::MANY_REGISTERS {
                while i + 4 * LANES <= cols {
                    self.write_columns::<S, 4>(rows, i);
                    i += 4 * LANES;
                }
                if i + 2 * LANES <= cols {
                    self.write_columns::<S, 2>(rows, i);
                    i += 2 * LANES;
                }
            }
            while i + LANES <= cols {
                self.write_columns::<S, 1>(rows, i);
                i += LANES;
            }
            if i < cols {
                self.write_last::<S>(rows, i, cols - i);
            }
        }
    }

    /// `N` vectors of all rows from element `i` on, and their column terms.
    #[inline(always)]
    unsafe fn write_columns<S: Simd, const N: usize>(&self, rows: &Written<'_>, i: usize) {
        let types = &self.types;
        unsafe {
            let zero = S::splat(0.0);
            let mut scale = [zero; N];
            unroll!(v in N, {
                scale[v] = load_if::<S>(
                    PARAMS & READ_SCALE != 0,
                    self.job.scale,
                    i + v * LANES,
                    LANES,
                );
            });
            let mut chains = [(zero, zero); N];
            for row in 0..CHAIN_ROWS {
                let (vectors, src, diff_dst, diff_src) = rows.row::<S>(row);
                let mut outs = [zero; N];
                unroll!(v in N, {
                    let x = types.src.load::<S>(src, i + v * LANES);
                    let dd = types.diff_dst.load::<S>(diff_dst, i + v * LANES);
                    outs[v] = vectors.gradient::<MODE, PARAMS>(x, dd, scale[v], &mut chains[v]);
                });
                if rows.fetches {
                    rows.fetch::<S, _>(types.src, (src, rows.steps.0), i, N * LANES);
                    rows.fetch::<S, _>(types.diff_dst, (diff_dst, rows.steps.1), i, N * LANES);
                }
                if rows.streams {
                    types.diff_src.stream_all::<S, N>(diff_src, i, &outs);
                } else {
                    types.diff_src.store_all::<S, N>(diff_src, i, &outs);
                }
            }
            unroll!(v in N, {
                self.add_columns::<S>(i + v * LANES, LANES, chains[v]);
            });
        }
    }

    /// The last `n` elements of all rows, fewer than a vector, and their column terms.
    #[inline(always)]
    unsafe fn write_last<S: Simd>(&self, rows: &Written<'_>, i: usize, n: usize) {
        let types = &self.types;
        unsafe {
            let scale = load_if::<S>(PARAMS & READ_SCALE != 0, self.job.scale, i, n);
            let mut chains = (S::splat(0.0), S::splat(0.0));
            for row in 0..CHAIN_ROWS {
                let (vectors, src, diff_dst, diff_src) = rows.row::<S>(row);
                let x = types.src.load_n::<S>(src, i, n);
                let dd = types.diff_dst.load_n::<S>(diff_dst, i, n);
                let out = vectors.gradient::<MODE, PARAMS>(x, dd, scale, &mut chains);
                types.diff_src.store_n::<S>(diff_src, i, out, n);
            }
            self.add_columns::<S>(i, n, chains);
        }
    }

    /// Ends the chains of `n` columns.
    #[inline(always)]
    unsafe fn add_columns<S: Simd>(&self, i: usize, n: usize, chains: (S::F, S::F)) {
        unsafe {
            if PARAMS & SUM_SCALE != 0 {
                add_wide::<S, 1>(self.sums.diff_scale.add(i), [S::widen(chains.0)], n);
            }
            if PARAMS & SUM_SHIFT != 0 {
                add_wide::<S, 1>(self.sums.diff_shift.add(i), [S::widen(chains.1)], n);
            }
        }
    }
}

/// The rows of a chain, to be written.
struct Written<'a> {
    src: *const u8,
    diff_dst: *const u8,
    diff_src: *mut u8,
    /// Between rows of src, diff_dst and diff_src, in bytes.
    steps: (usize, usize, usize),
    scalars: &'a Scalars,
    /// Whether diff_src is stored past the caches.
    streams: bool,
    /// Whether the chain after the next one is asked for meanwhile.
    fetches: bool,
}

impl Written<'_> {
    /// Asks for `n` elements from `i` on of the row two chains after one, which need not be there.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn fetch<S: Simd, E: Element>(
        &self,
        element: E,
        (row, step): (*const u8, usize),
        i: usize,
        n: usize,
    ) {
        let first = row.wrapping_add(2 * CHAIN_ROWS * step + i * element.size());
        for line in (0..n * element.size()).step_by(64) {
            // SAFETY: the caller's.
            unsafe { S::prefetch(first.wrapping_add(line)) }
        }
    }

    /// A row's scalars and where it begins in src, diff_dst and diff_src.
    ///
    /// # Safety
    /// The row is one of the chain; the instruction set of `S` is there.
    #[inline(always)]
    unsafe fn row<S: Simd>(&self, row: usize) -> (Vectors<S>, *const u8, *const u8, *mut u8) {
        let (src_step, dd_step, ds_step) = self.steps;
        let Scalars { mean, r, shift, slope } = self.scalars;
        // SAFETY: the caller's.
        let vectors = unsafe {
            Vectors {
                mean: S::splat(mean[row]),
                r: S::splat(r[row]),
                shift: S::splat(shift[row]),
                slope: S::splat(slope[row]),
            }
        };
        (
            vectors,
            self.src.wrapping_add(row * src_step),
            self.diff_dst.wrapping_add(row * dd_step),
            self.diff_src.wrapping_add(row * ds_step),
        )
    }
}
