//! The two sweeps of backward: one sums a row, the other stores diff_src and adds column terms.

use super::problem::LayerNormalization;
use super::row::{load_if, store_if};
use super::schedule::TILE;
use super::types::KernelTypes;
use crate::rows::ColumnSums;
use crate::simd::{
    Cache, Element, Fold, Full, LANES, Level, Map, Simd, Terms, Width, unroll, zeroed,
};

/// The modes of a gradient.
pub(super) const LAYER: u8 = 0;
pub(super) const RMS: u8 = 1;
/// Added to one of the above: the statistics are constants.
pub(super) const GLOBAL: u8 = 2;

/// What else a kernel does: the column sums that it adds to, whether it reads scale, and whether it adds a gradient.
pub(super) const SUM_SCALE: u8 = 1;
pub(super) const SUM_SHIFT: u8 = 2;
pub(super) const SUM_BOTH: u8 = SUM_SCALE | SUM_SHIFT;
pub(super) const READ_SCALE: u8 = 4;
/// Adds the gradient of a stored sum, in f32 before rounding.
pub(super) const ADD: u8 = 8;

/// What a kernel computes: the mode and the column sums. Some kernels sum more than the problem has; those sums are not
/// joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) mode: u8,
    pub(super) sums: u8,
    /// Whether the problem has a scale. Kernels with column sums read one anyway.
    pub(super) scaled: bool,
}

impl Kind {
    pub(super) fn new(p: &LayerNormalization, level: Level, types: &KernelTypes) -> Self {
        let global = if p.flags.global_stats() { GLOBAL } else { 0 };
        let mode = global | if p.flags.rms() { RMS } else { LAYER };
        let wanted = if p.writes_scale() { SUM_SCALE } else { 0 }
            | if p.writes_shift() { SUM_SHIFT } else { 0 };
        let sums = match (mode, wanted) {
            _ if types.double() => wanted,
            // Kernels that add a gradient have all column sums of their mode.
            (RMS, _) if types.adds => SUM_SCALE,
            _ if types.adds => SUM_BOTH,
            _ if level == Level::Portable || global != 0 || p.around.partial.is_some() => SUM_BOTH,
            (_, 0) | (RMS, SUM_SCALE) => wanted,
            _ => SUM_BOTH,
        };
        Self { mode, sums, scaled: p.flags.scale() }
    }

    /// Whether the f32 kernel of a level reads scale. Those with column sums do.
    pub(super) fn reads_scale(self, level: Level) -> bool {
        self.scaled || self.sums != 0 || self.mode & GLOBAL != 0 || level == Level::Portable
    }
}

/// A row with its statistics and sums.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) src: *const u8,
    pub(super) diff_dst: *const u8,
    pub(super) diff_src: *mut u8,
    /// The gradient of the stored sum, of src's type, if the kernel adds it.
    pub(super) added: *const u8,
    pub(super) mean: f32,
    pub(super) r: f32,
    /// `-r*sum(d)/C`.
    pub(super) shift: f32,
    /// `r*sum(d*xhat)/C`.
    pub(super) slope: f32,
}

/// The element types of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Types<Src, Dd, Ds> {
    pub(super) src: Src,
    pub(super) diff_dst: Dd,
    pub(super) diff_src: Ds,
}

/// `sum(d)` and `sum(d*xhat)` of a row; only the latter with RMS.
pub(super) struct RowSums<S: Simd, Src, Dd, const MODE: u8, const PARAMS: u8> {
    pub(super) src_type: Src,
    pub(super) dd_type: Dd,
    pub(super) src: *const u8,
    pub(super) diff_dst: *const u8,
    pub(super) scale: *const f32,
    pub(super) mean: S::F32x16,
    pub(super) r: S::F32x16,
}

impl<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8>
    RowSums<S, Src, Dd, MODE, PARAMS>
{
    /// `d` and `xhat` of a vector.
    ///
    /// # Safety
    /// As [`Fold`], and scale is as long as a row.
    #[inline(always)]
    pub(super) unsafe fn at<W: Width>(&self, i: usize, width: W) -> (S::F32x16, S::F32x16) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let x = width.load_as::<S, _>(self.src_type, self.src, i);
            let mut d = width.load_as::<S, _>(self.dd_type, self.diff_dst, i);
            if const { PARAMS & READ_SCALE != 0 } {
                d = S::mul(width.load::<S>(self.scale.add(i)), d);
            }
            (d, xhat::<S, MODE>(x, self.mean, self.r))
        }
    }
}

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn xhat<S: Simd, const MODE: u8>(x: S::F32x16, mean: S::F32x16, r: S::F32x16) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe { if const { MODE & RMS != 0 } { S::mul(x, r) } else { S::mul(S::sub(x, mean), r) } }
}

/// Sums `d*xhat`.
impl<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8> Fold<S, 1>
    for RowSums<S, Src, Dd, MODE, PARAMS>
{
    // Without the loop, the compiler loads 16-bit rows of all chains at once and runs out of registers.
    const LONG: bool = Src::HALF && Dd::HALF;
    const IN_ORDER: bool = !Src::HALF && !Dd::HALF;

    #[inline(always)]
    unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, 1> {
        // SAFETY: guaranteed by the caller.
        unsafe { Terms::products([self.at(i, width)]) }
    }
}

/// Sums `d` and `d*xhat`.
impl<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8> Fold<S, 2>
    for RowSums<S, Src, Dd, MODE, PARAMS>
{
    const IN_ORDER: bool = S::MANY_REGISTERS;

    #[inline(always)]
    unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, 2> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (d, xhat) = self.at(i, width);
            Terms::products([(d, S::splat(1.0)), (d, xhat)])
        }
    }
}

/// A row's scalars, broadcast to all lanes.
pub(super) struct Vectors<S: Simd> {
    pub(super) mean: S::F32x16,
    pub(super) r: S::F32x16,
    pub(super) shift: S::F32x16,
    pub(super) slope: S::F32x16,
}

impl<S: Simd> Vectors<S> {
    /// A vector of diff_src. Adds its column terms to the chains of diff_scale and diff_shift.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn gradient<const MODE: u8, const PARAMS: u8>(
        &self,
        x: S::F32x16,
        dd: S::F32x16,
        scale: S::F32x16,
        (scale_chain, shift_chain): &mut (S::F32x16, S::F32x16),
    ) -> S::F32x16 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let xhat = xhat::<S, MODE>(x, self.mean, self.r);
            if const { PARAMS & SUM_SCALE != 0 } {
                *scale_chain = S::fma(dd, xhat, *scale_chain);
            }
            if const { PARAMS & SUM_SHIFT != 0 } {
                *shift_chain = S::add(*shift_chain, dd);
            }
            let d = if const { PARAMS & READ_SCALE == 0 } { dd } else { S::mul(scale, dd) };
            match MODE {
                LAYER => S::fnma(xhat, self.slope, S::fma(d, self.r, self.shift)),
                RMS => S::fnma(xhat, self.slope, S::mul(d, self.r)),
                _ => S::mul(d, self.r),
            }
        }
    }
}

/// Stores diff_src of `R` rows and adds their column terms.
pub(super) struct Gradient<'a, Src, Dd, Ds, const MODE: u8, const PARAMS: u8, const R: usize> {
    pub(super) types: Types<Src, Dd, Ds>,
    pub(super) rows: [Row; R],
    pub(super) scale: *const f32,
    pub(super) sums: &'a ColumnSums,
}

impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8, const R: usize>
    Gradient<'_, Src, Dd, Ds, MODE, PARAMS, R>
{
    /// Adds the column terms at element `i` and returns the vectors of diff_src.
    ///
    /// All rows are loaded before any is stored: a load after a store to an address that differs by a multiple of 4 KiB
    /// waits for the store (4K aliasing).
    ///
    /// # Safety
    /// As [`Map`], and scale and the sums in PARAMS are as long as a row.
    #[inline(always)]
    unsafe fn at<S: Simd, W: Width>(&self, i: usize, width: W) -> [S::F32x16; R] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let scale = load_if::<S>(PARAMS & READ_SCALE != 0, self.scale, i, width);
            let mut scale_chain =
                load_if::<S>(PARAMS & SUM_SCALE != 0, self.sums.scale_chain, i, width);
            let mut shift_chain =
                load_if::<S>(PARAMS & SUM_SHIFT != 0, self.sums.shift_chain, i, width);
            let mut outs = S::zeros::<R>();
            unroll!(r in R, {
                let row = &self.rows[r];
                let x = width.load_as::<S, _>(self.types.src, row.src, i);
                let dd = width.load_as::<S, _>(self.types.diff_dst, row.diff_dst, i);
                let vectors = Vectors::<S> {
                    mean: S::splat(row.mean),
                    r: S::splat(row.r),
                    shift: S::splat(row.shift),
                    slope: S::splat(row.slope),
                };
                let mut chains = (scale_chain, shift_chain);
                outs[r] = vectors.gradient::<MODE, PARAMS>(x, dd, scale, &mut chains);
                if const { PARAMS & ADD != 0 } {
                    let added = width.load_as::<S, _>(self.types.src, row.added, i);
                    outs[r] = S::add(added, outs[r]);
                }
                (scale_chain, shift_chain) = chains;
            });
            store_if::<S>(PARAMS & SUM_SCALE != 0, self.sums.scale_chain, i, scale_chain, width);
            store_if::<S>(PARAMS & SUM_SHIFT != 0, self.sums.shift_chain, i, shift_chain, width);
            outs
        }
    }

    /// As [`at`](Self::at), for `N` vectors from element `i` on.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const N: usize>(&self, i: usize) -> [[S::F32x16; N]; R] {
        // SAFETY: guaranteed by the caller; vectors are numbers.
        unsafe {
            let mut outs: [[S::F32x16; N]; R] = zeroed();
            unroll!(k in N, {
                let vectors = self.at::<S, Full>(i + k * LANES, Full);
                unroll!(r in R, {
                    outs[r][k] = vectors[r];
                });
            });
            outs
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
    const UNROLL: usize = if S::MANY_REGISTERS && Ds::PAIRED { 2 } else { 1 };

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let outs = self.at::<S, W>(i, width);
            unroll!(r in R, {
                width.store_as::<S, _>(self.types.diff_src, self.rows[r].diff_src, i, outs[r]);
            });
        }
    }

    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let outs = self.vectors::<S, 2>(i);
            unroll!(r in R, {
                self.types.diff_src.store_all::<S, 2>(self.rows[r].diff_src, i, &outs[r]);
            });
        }
    }
}

/// [`Gradient`] with non-temporal stores. Prefetches other rows.
pub(super) struct Stream<'a, Src, Dd, Ds, const MODE: u8, const PARAMS: u8> {
    pub(super) gradient: Gradient<'a, Src, Dd, Ds, MODE, PARAMS, TILE>,
    /// Rows of src, diff_dst and the added gradient to prefetch, which need not exist.
    pub(super) next: [[*const u8; 3]; TILE],
    /// The cache to prefetch them into.
    pub(super) cache: Cache,
}

impl<S: Simd, Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8> Map<S>
    for Stream<'_, Src, Dd, Ds, MODE, PARAMS>
{
    // With AVX2, two vectors of 16 bits, so that the stores fill a cache line of one row before those of the other begin:
    // one by one, rows of whole pages took up to 2 times as long from memory on a Zen 3. With AVX-512, stores of two vectors
    // of bf16 and prefetches would alternate less often: from memory on a Zen 5, one by one took 0.8 to 0.95 of the time.
    const UNROLL: usize = if matches!(S::LEVEL, Level::Avx2) && Ds::HALF { 2 } else { 1 };

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if const { W::FULL } {
                self.vectors::<S, 1>(i);
            } else {
                Map::<S>::apply(&self.gradient, i, width);
            }
        }
    }

    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors::<S, 2>(i) }
    }
}

impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8>
    Stream<'_, Src, Dd, Ds, MODE, PARAMS>
{
    /// Stores `N` whole vectors of each row from element `i` on: one or two. One vector has prefetches of its own even if the
    /// next shares its cache line: with one prefetch per line, bf16 took 1.15 times as long from memory on a Zen 4. Two
    /// vectors of 16 bits are prefetched as one line.
    ///
    /// # Safety
    /// They exist, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const N: usize>(&self, i: usize) {
        let Gradient { types, rows, .. } = &self.gradient;
        // SAFETY: guaranteed by the caller; vectors are numbers.
        unsafe {
            match self.cache {
                Cache::Second if const { S::MANY_REGISTERS } => self.prefetch::<S, true>(i),
                _ => self.prefetch::<S, false>(i),
            }
            if const { N == 2 && !(Src::HALF && Dd::HALF) } {
                self.prefetch::<S, false>(i + LANES);
            }
            let mut outs: [[S::F32x16; N]; TILE] = zeroed();
            unroll!(k in N, {
                let vectors = self.gradient.at::<S, Full>(i + k * LANES, Full);
                unroll!(r in TILE, {
                    // With both column sums, there are too few registers for two vectors of each row, so the first one is
                    // finished before the second begins.
                    let any_order = const { N == 1 || PARAMS & SUM_SHIFT == 0 } || k != 0;
                    outs[r][k] = if any_order { vectors[r] } else { S::in_order(vectors[r]) };
                });
            });
            unroll!(r in TILE, {
                types.diff_src.stream_all::<S, N>(rows[r].diff_src, i, &outs[r]);
            });
        }
    }

    /// Prefetches a vector of the other rows, if `SECOND` into the second-level cache.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn prefetch<S: Simd, const SECOND: bool>(&self, i: usize) {
        let types = &self.gradient.types;
        unroll!(r in TILE, {
            let [src, diff_dst, added] = self.next[r];
            let lines = [
                src.wrapping_add(i * types.src.size()),
                diff_dst.wrapping_add(i * types.diff_dst.size()),
                added.wrapping_add(i * types.src.size()),
            ];
            unroll!(t in 3, {
                if const { t < 2 || PARAMS & ADD != 0 } {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        if SECOND {
                            S::prefetch_second(lines[t]);
                        } else {
                            S::prefetch(lines[t]);
                        }
                    }
                }
            });
        });
    }
}
