//! The sweep that stores rows: `(x - mean) * r`, then scale and shift.

use super::job::ShortScalars;
use super::row::load_if;
use crate::simd::{Cache, Element, Full, LANES, Map, Simd, Width, unroll, zeroed};

/// Vectors stored per iteration.
const TURN: usize = 4;

/// Which of scale and shift a kernel reads.
pub(super) const SCALE: u8 = 1;
const SHIFT: u8 = 2;
pub(super) const BOTH: u8 = SCALE | SHIFT;

/// A row with its statistics.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) src: *const u8,
    pub(super) dst: *mut u8,
    /// The mean rounded to f32.
    pub(super) high: f32,
    /// `(high - mean) * r`; see [`mean_residual`](crate::rows::statistics::mean_residual).
    pub(super) low: f32,
    pub(super) r: f32,
}

/// A row with its scalars broadcast to all lanes.
#[derive(Clone, Copy)]
pub(super) struct RowParams<S: Simd> {
    src: *const u8,
    dst: *mut u8,
    high: S::F32x16,
    low: S::F32x16,
    r: S::F32x16,
}

impl<S: Simd> RowParams<S> {
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn new(row: &Row) -> Self {
        let &Row { src, dst, high, low, r } = row;
        // SAFETY: guaranteed by the caller.
        unsafe { Self { src, dst, high: S::splat(high), low: S::splat(low), r: S::splat(r) } }
    }

    /// The row with the scalars of lane `i`.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn from_lane(
        scalars: &ShortScalars,
        i: usize,
        src: *const u8,
        dst: *mut u8,
    ) -> Self {
        let ShortScalars { high, low, r } = scalars;
        // SAFETY: guaranteed by the caller.
        unsafe {
            Self { src, dst, high: S::splat(high[i]), low: S::splat(low[i]), r: S::splat(r[i]) }
        }
    }
}

/// Stores `R` rows together, so scale and shift are loaded once for all of them.
pub(super) struct Normalize<S: Simd, Src, Dst, const RMS: bool, const AFFINE: u8, const R: usize> {
    pub(super) src_type: Src,
    pub(super) dst_type: Dst,
    pub(super) rows: [RowParams<S>; R],
    pub(super) scale: *const f32,
    pub(super) shift: *const f32,
}

impl<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8, const R: usize>
    Normalize<S, Src, Dst, RMS, AFFINE, R>
{
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn value(
        row: &RowParams<S>,
        x: S::F32x16,
        scale: S::F32x16,
        shift: S::F32x16,
    ) -> S::F32x16 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let xhat =
                if RMS { S::mul(x, row.r) } else { S::fma(S::sub(x, row.high), row.r, row.low) };
            match AFFINE {
                0 => xhat,
                SCALE => S::mul(xhat, scale),
                _ => S::fma(xhat, scale, shift),
            }
        }
    }

    /// The results of all rows for the vector at element `i`.
    ///
    /// # Safety
    /// As [`Map::apply`], and scale and shift are as long as a row.
    #[inline(always)]
    unsafe fn values<W: Width>(&self, i: usize, width: W) -> [S::F32x16; R] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let scale = load_if::<S>(const { AFFINE & SCALE != 0 }, self.scale, i, width);
            let shift = load_if::<S>(const { AFFINE & SHIFT != 0 }, self.shift, i, width);
            let mut values = S::zeros::<R>();
            unroll!(r in R, {
                let row = &self.rows[r];
                let x = width.load_as::<S, _>(self.src_type, row.src, i);
                values[r] = Self::value(row, x, scale, shift);
            });
            values
        }
    }
}

impl<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8, const R: usize> Map<S>
    for Normalize<S, Src, Dst, RMS, AFFINE, R>
{
    const UNROLL: usize = TURN / R;

    // All rows are loaded before any is stored: a load after a store to an address that differs by a multiple of 4 KiB
    // waits for the store (4K aliasing). What a vector needs is loaded together: from the second-level cache of a Zen 5,
    // LayerNorm of 8192 f16 took 1.08 times as long with four loads of src before four of scale.
    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        const { assert!(R == 1 || R == 2) };
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut values: [[S::F32x16; R]; TURN] = zeroed();
            unroll!(v in TURN / R, {
                values[v] = self.values(i + v * LANES, Full);
                S::loads_in_order();
            });
            unroll!(r in R, {
                let row = &self.rows[r];
                let [a, b, c, d] = [values[0][r], values[1][r], values[2][r], values[3][r]];
                if const { R == 1 } {
                    self.dst_type.store_all::<S, 4>(row.dst, i, &[a, b, c, d]);
                } else {
                    self.dst_type.store_all::<S, 2>(row.dst, i, &[a, b]);
                }
            });
        }
    }
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let values = self.values(i, width);
            unroll!(r in R, {
                width.store_as::<S, _>(self.dst_type, self.rows[r].dst, i, values[r]);
            });
        }
    }
}

/// Prefetches one row while another is read.
pub(super) struct Prefetch {
    pub(super) row: *const u8,
    /// Bytes of an element.
    pub(super) size: usize,
    pub(super) cache: Cache,
}

impl Prefetch {
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const N: usize>(&self, i: usize) {
        let Self { row, size, cache } = *self;
        // SAFETY: guaranteed by the caller.
        unsafe { S::prefetch_into::<N>(cache, row.wrapping_add(i * size), LANES * size) }
    }
}

impl<S: Simd> Map<S> for Prefetch {
    const UNROLL: usize = TURN;

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, _width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors::<S, 1>(i) }
    }
    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors::<S, TURN>(i) }
    }
}

/// [`Normalize`] of one row, with non-temporal stores or prefetching.
pub(super) struct Stream<S: Simd, Src, Dst, const RMS: bool, const AFFINE: u8> {
    pub(super) normalize: Normalize<S, Src, Dst, RMS, AFFINE, 1>,
    /// Whether dst is stored non-temporally; its alignment must allow that.
    pub(super) non_temporal: bool,
    /// A row to prefetch, or null.
    pub(super) next: *const u8,
    /// The cache to prefetch it into.
    pub(super) cache: Cache,
}

impl<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8>
    Stream<S, Src, Dst, RMS, AFFINE>
{
    /// Without prefetching.
    #[inline(always)]
    pub(super) fn alone(
        normalize: Normalize<S, Src, Dst, RMS, AFFINE, 1>,
        non_temporal: bool,
    ) -> Self {
        Self { normalize, non_temporal, next: std::ptr::null(), cache: Cache::First }
    }

    /// Stores `N` vectors at element `i`.
    ///
    /// # Safety
    /// As [`Map::apply`].
    #[inline(always)]
    pub(super) unsafe fn vectors<const N: usize>(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut values = S::zeros::<N>();
            if !self.next.is_null() {
                let size = self.normalize.src_type.size();
                let next = self.next.wrapping_add(i * size);
                S::prefetch_into::<N>(self.cache, next, LANES * size);
            }
            unroll!(v in N, {
                [values[v]] = self.normalize.values(i + v * LANES, Full);
                S::loads_in_order();
            });
            self.store(i, &values);
        }
    }

    /// Stores a row of `N` vectors, with scale and shift in registers.
    ///
    /// # Safety
    /// As [`Map::apply`].
    #[inline(always)]
    pub(super) unsafe fn store_with<const N: usize>(
        &self,
        scale: &[S::F32x16; 4],
        shift: &[S::F32x16; 4],
    ) {
        let Normalize { src_type, rows: [row], .. } = &self.normalize;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut values = S::zeros::<N>();
            unroll!(v in N, {
                let x = src_type.load::<S>(row.src, v * LANES);
                values[v] = Normalize::<S, Src, Dst, RMS, AFFINE, 1>::value(row, x, scale[v], shift[v]);
            });
            self.store(0, &values);
        }
    }

    /// # Safety
    /// As [`Map::apply`].
    #[inline(always)]
    unsafe fn store<const N: usize>(&self, i: usize, values: &[S::F32x16; N]) {
        let Normalize { dst_type, rows: [row], .. } = &self.normalize;
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.non_temporal {
                dst_type.stream_all::<S, N>(row.dst, i, values);
            } else {
                dst_type.store_all::<S, N>(row.dst, i, values);
            }
        }
    }
}

impl<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8> Map<S>
    for Stream<S, Src, Dst, RMS, AFFINE>
{
    const UNROLL: usize = TURN;
    // bf16 fills a cache line and is rounded once: on a Zen 5, RMS over rows of 96 took 0.9 of the time.
    const PAIRS: bool = S::MANY_REGISTERS && Dst::PAIRED;

    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors::<TURN>(i) }
    }
    #[inline(always)]
    unsafe fn pair(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors::<2>(i) }
    }
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if W::FULL {
                self.vectors::<1>(i);
            } else {
                self.normalize.apply(i, width);
            }
        }
    }
}

/// A [`Stream`] that prefetches into the first-level cache and does not overlap with sums. On a Zen 4, storing pairs of f32
/// vectors with the prefetches between the loads took 0.92 to 0.99 of the time of storing four after four prefetches.
/// With AVX2 it took up to 1.05 times as long on a Zen 3, so it needs many registers.
pub(super) struct InPairs<S: Simd, Src, Dst, const RMS: bool, const AFFINE: u8>(
    pub(super) Stream<S, Src, Dst, RMS, AFFINE>,
);

impl<S: Simd, Src: Element, Dst: Element, const RMS: bool, const AFFINE: u8> Map<S>
    for InPairs<S, Src, Dst, RMS, AFFINE>
{
    const UNROLL: usize = 2;

    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        let Stream { normalize, next, .. } = &self.0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut values = S::zeros::<2>();
            unroll!(v in 2, {
                let i = i + v * LANES;
                S::prefetch(next.wrapping_add(i * normalize.src_type.size()));
                [values[v]] = normalize.values(i, Full);
            });
            self.0.store(i, &values);
        }
    }
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.apply(i, width) }
    }
}
