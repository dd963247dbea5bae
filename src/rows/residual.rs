//! The sum of src and a residual over dense rows, in one sweep. The sum is computed in f32, rounded and stored. If the
//! kernel cannot read the stored sum, it is also staged as f32. In backward, the sum of two gradients is diff_src.

use crate::simd::{
    Bf16, Element, F16, F32, Full, LANES, Level, Map, Runtime, Simd, Width, entry_points, map,
    rounded, unroll,
};
use crate::tensor::{DataType, RowMap};

/// A tensor: the address of its first row, its rows, and its type.
pub(super) type Tensor<P> = (P, RowMap, DataType);

/// Sums of rows.
pub(super) struct Addition {
    pub(super) cols: usize,
    pub(super) src: Tensor<*mut u8>,
    pub(super) residual: Tensor<*mut u8>,
    /// The stored sum.
    pub(super) sum: Option<Tensor<*mut u8>>,
    pub(super) sum_type: DataType,
    /// Whether to stage the f32 sum instead of the rounded one.
    pub(super) exact: bool,
    /// The stage of row 0, which need not exist, and the row stride in elements.
    pub(super) stage: Option<(*mut f32, usize)>,
    /// Whether sums are stored non-temporally.
    pub(super) streams: bool,
}

/// A row of sums.
struct Row<A, B, C> {
    types: (A, B, C),
    src: *const u8,
    residual: *const u8,
    /// Null if it is not stored.
    sum: *mut u8,
    /// Null if it is not staged.
    stage: *mut u8,
    exact: bool,
    /// Whether the sum is stored non-temporally; its alignment must allow that.
    streams: bool,
}

/// Vectors per iteration.
const TURN: usize = 4;

impl<A: Element, B: Element, C: Element> Row<A, B, C> {
    /// # Safety
    /// As [`Map::apply`], for `N` vectors.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const N: usize>(&self, i: usize) {
        let (src, residual, sum) = self.types;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sums = S::zeros::<N>();
            unroll!(v in N, {
                let at = i + v * LANES;
                sums[v] =
                    S::add(src.load::<S>(self.src, at), residual.load::<S>(self.residual, at));
            });
            if self.streams {
                sum.stream_all::<S, N>(self.sum, i, &sums);
            } else if !self.sum.is_null() {
                sum.store_all::<S, N>(self.sum, i, &sums);
            }
            if !self.stage.is_null() {
                unroll!(v in N, {
                    let at = i + v * LANES;
                    let value =
                        if self.exact { sums[v] } else { rounded::<S, C>(sum, sums[v], Full) };
                    F32.store::<S>(self.stage, at, value);
                });
            }
        }
    }
}

impl<S: Simd, A: Element, B: Element, C: Element> Map<S> for Row<A, B, C> {
    const UNROLL: usize = TURN;

    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors::<S, TURN>(i) }
    }
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        let (src, residual, sum) = self.types;
        // SAFETY: guaranteed by the caller.
        unsafe {
            if W::FULL {
                return self.vectors::<S, 1>(i);
            }
            let x = width.load_as::<S, _>(src, self.src, i);
            let value = S::add(x, width.load_as::<S, _>(residual, self.residual, i));
            if !self.sum.is_null() {
                width.store_as::<S, _>(sum, self.sum, i, value);
            }
            if !self.stage.is_null() {
                let value = if self.exact { value } else { rounded::<S, C>(sum, value, width) };
                width.store_as::<S, _>(F32, self.stage, i, value);
            }
        }
    }
}

/// Adds rows `first` to `last - 1`.
///
/// # Safety
/// The rows exist and belong to this thread, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn add_rows<S: Simd, A: Element, B: Element, C: Element>(
    sums: &Addition,
    first: usize,
    last: usize,
) {
    let types = (A::of(sums.src.2), B::of(sums.residual.2), C::of(sums.sum_type));
    for row in first..last {
        let sum = sums.sum.map_or(std::ptr::null_mut(), |(start, rows, _)| {
            start.wrapping_add(rows.offset(row) * types.2.size())
        });
        let stage = sums.stage.map_or(std::ptr::null_mut(), |(start, step)| {
            start.wrapping_add(row * step).cast::<u8>()
        });
        let op = Row {
            types,
            src: sums.src.0.wrapping_add(sums.src.1.offset(row) * types.0.size()),
            residual: sums.residual.0.wrapping_add(sums.residual.1.offset(row) * types.1.size()),
            sum,
            stage,
            exact: sums.exact,
            streams: sums.streams && types.2.streams(sum),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { map::<S, _>(sums.cols, &op) };
    }
    if sums.streams {
        // SAFETY: guaranteed by the caller.
        unsafe { S::stream_fence() };
    }
}

entry_points! {
    /// The sums, per level.
    mod entries: add_rows<A: Element, B: Element, C: Element>(
        sums: &Addition, first: usize, last: usize
    ) -> ();
}

/// Adds rows from the first index to before the second.
pub(super) type AddEntry = unsafe fn(&Addition, usize, usize);

/// The function for types of src, residual and sum: f32, bf16 or f16.
pub(super) fn add_entry(level: Level, types: [DataType; 3]) -> AddEntry {
    use DataType::{Bf16 as B, F16 as H, F32 as F};
    let entry = match types {
        [F, F, F] => entries::at::<F32, F32, F32>(level),
        [B, B, B] => entries::at::<Bf16, Bf16, Bf16>(level),
        [H, H, H] => entries::at::<F16, F16, F16>(level),
        [B, F, F] => entries::at::<Bf16, F32, F32>(level),
        [H, F, F] => entries::at::<F16, F32, F32>(level),
        [B, F, B] => entries::at::<Bf16, F32, Bf16>(level),
        [H, F, H] => entries::at::<F16, F32, F16>(level),
        _ => entries::at::<Runtime, Runtime, Runtime>(level),
    };
    entry.unwrap_or(entries::portable::entry_portable::<Runtime, Runtime, Runtime>)
}
