//! Rows against a block of keys on bf16 tiles, with the bits of [`kernel`](super::kernel). The products have the order
//! of bf16; rounding and joining are the same.

use super::kernel::STEP;
use super::panels::transpose;
use super::score::{Sink, seen};
use super::tiles::{AT_ONCE, Entries, NUMBERS, Packing, TERMS, TileBlock, WEIGHT_STEP};
use crate::simd::avx512::Avx512;
use crate::simd::lanes::Lanes;
use crate::simd::matrices::{
    Inspector, Matrices, Pairs, Product, Tiles, are_granted, interleave, narrow, round, words,
};
use crate::simd::{LANES, Level, unroll};
use std::marker::PhantomData;
use std::ops::Range;

/// Adds a block to all rows.
///
/// # Safety
/// The block is packed as tiles, its numbers are suitable, no other thread writes it, and the process may use tiles.
#[inline(always)]
unsafe fn attend<M: Matrices>(job: &TileBlock<'_>) {
    let block = job.block;
    // SAFETY: guaranteed by the caller.
    unsafe {
        M::begin();
        let mut row = 0;
        while row < block.rows.len() {
            let end = block.rows.len().min(row + AT_ONCE);
            let seen = seen(block.rows.get_unchecked(row..end), block.first, block.count);
            if !seen.is_empty() {
                job.rows::<M>(row..end, &seen);
            }
            row = end;
        }
        M::end();
    }
}

/// A row of weights in bf16. It is padded with zeros to a whole tile, and has room for half a tile more.
struct Packed<M>(*mut u16, PhantomData<M>);

impl<M: Matrices> Sink<Avx512> for Packed<M> {
    #[inline(always)]
    unsafe fn store<const N: usize>(&self, at: usize, weights: [Lanes<Avx512>; N]) {
        let zero = weights[0].all(0.0);
        let mut v = 0;
        // A weight is 0, at least 2^-40, or NaN.
        while v < N {
            let next = if v + 1 < N { weights[v + 1] } else { zero };
            let to = self.0.wrapping_add(at + v * LANES);
            // SAFETY: guaranteed by the caller.
            unsafe { round::<M>([weights[v].vector(), next.vector()], to) };
            v += 2;
        }
    }
}

impl TileBlock<'_> {
    /// # Safety
    /// As [`attend`].
    #[inline(always)]
    unsafe fn rows<M: Matrices>(&self, of: Range<usize>, seen: &Range<usize>) {
        let block = self.block;
        let size = size_of::<u16>();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut at = seen.start / LANES;
            while at < seen.end / LANES {
                let keys = self.keys.wrapping_add(at * self.key_panel);
                M::multiply(&Product {
                    left: self.queries.wrapping_add(of.start * self.query_step),
                    left_step: self.query_step * size,
                    rows: of.len(),
                    right: [keys, keys.wrapping_add(self.key_panel)],
                    count: block.key_size.div_ceil(TERMS),
                    to: block.weights.wrapping_add(at * LANES),
                    step: STEP * size_of::<f32>(),
                });
                at += 2;
            }
            let rows = block.rows.get_unchecked(of.clone());
            let weights = self.weights.wrapping_sub(seen.start);
            let sink =
                |row: usize, _| Packed::<M>(weights.wrapping_add(row * WEIGHT_STEP), PhantomData);
            let (before, after) =
                block.join_states::<Avx512, Packed<M>>(of.start, rows, seen, sink);
            let mut at = 0;
            while at < block.value_panels {
                let values = self.values.wrapping_add(at * self.value_panel);
                let values = values.wrapping_add(seen.start / TERMS * NUMBERS);
                M::multiply(&Product {
                    left: self.weights,
                    left_step: WEIGHT_STEP * size,
                    rows: rows.len(),
                    right: [values, values.wrapping_add(self.value_panel)],
                    count: seen.len().div_ceil(TERMS),
                    to: self.products,
                    step: AT_ONCE * size_of::<f32>(),
                });
                let panels = (block.value_panels - at).min(2);
                for r in 0..rows.len() {
                    let sums = block.sums.add((of.start + r) * block.sum_step + at * LANES);
                    let products = self.products.add(r * AT_ONCE);
                    let (before, after) = (*before.get_unchecked(r), *after.get_unchecked(r));
                    for c in 0..panels {
                        let (sums, products) = (sums.add(c * LANES), products.add(c * LANES));
                        let joined = Lanes::<Avx512>::load(sums, LANES) * before;
                        let added = Lanes::<Avx512>::load(products, LANES);
                        added.mul_add(after, joined).store(sums, LANES);
                    }
                }
                at += 2;
            }
        }
    }
}

/// Packs queries as rows of bf16. Like the functions below, returns whether their numbers are suitable for tiles.
///
/// # Safety
/// The rows and the room exist, and the CPU supports AVX-512.
#[inline(always)]
unsafe fn queries<M: Matrices>(job: &Packing<'_>) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut inspector = Inspector::new(job.least);
        let from = (job.floats, job.float_step);
        let to = (job.to, job.panel, job.is_left);
        narrow::<M>(from, (job.count, job.cols), to, &mut inspector);
        inspector.found_none()
    }
}

/// Packs 16 keys as tiles of elements.
///
/// # Safety
/// As [`queries`].
#[inline(always)]
unsafe fn keys<M: Matrices>(job: &Packing<'_>) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut inspector = Inspector::new(job.least);
        let mut col = 0;
        while col < job.cols {
            let count = (job.cols - col).min(TERMS) / 2;
            let mut tile = [words::<M>(job.to, 0, &mut inspector); LANES];
            unroll!(to 16: i in LANES, {
                let row = job.rows[i];
                let count = if row.is_null() { 0 } else { count };
                tile[i] = words::<M>(row.wrapping_add(col), count, &mut inspector);
            });
            transpose::<Avx512>(&mut tile);
            let to = job.to.wrapping_add(col / TERMS * NUMBERS);
            unroll!(to 16: i in LANES, {
                let to = to.wrapping_add(i * TERMS).cast();
                Lanes::<Avx512>::new(tile[i]).store(to, LANES);
            });
            col += TERMS;
        }
        inspector.found_none()
    }
}

/// Packs 16 values as halves of tiles of keys.
///
/// # Safety
/// As [`queries`].
#[inline(always)]
unsafe fn values<M: Matrices>(job: &Packing<'_>) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut inspector = Inspector::new(job.least);
        let mut col = 0;
        while col < job.cols {
            let to = job.to.wrapping_add(col / LANES * job.panel);
            let of = |row: *const u16| {
                let count = if row.is_null() { 0 } else { job.cols - col };
                (row.wrapping_add(col), count)
            };
            unroll!(to 8: word in LANES / 2, {
                let [low, high] = M::terms_of(word);
                let rows = [of(job.rows[low]), of(job.rows[high])];
                interleave(rows, to.wrapping_add(word * TERMS), &mut inspector);
            });
            col += LANES;
        }
        inspector.found_none()
    }
}

/// The entries of a kernel, like those that `simd::entry_points!` makes for each level.
macro_rules! entry_points {
    ($(#[$doc:meta])* mod $name:ident: $kernel:ident($arg:ident: $argty:ty) -> $ret:ty;) => {
        $(#[$doc])*
        mod $name {
            use super::*;

            mod avx512_amx {
                use super::*;
                /// # Safety
                /// As for the kernel, and the CPU supports AVX-512 F, BW, DQ and VL.
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                #[inline(never)]
                pub(super) unsafe fn entry_avx512_amx($arg: $argty) -> $ret {
                    // SAFETY: guaranteed by the caller.
                    unsafe { $kernel::<Tiles>($arg) }
                }
            }
            mod avx512_bf16 {
                use super::*;
                /// # Safety
                /// As for the kernel, and the CPU supports AVX-512 F, BW, DQ, VL and BF16.
                #[target_feature(enable = "avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                #[inline(never)]
                pub(super) unsafe fn entry_avx512_bf16($arg: $argty) -> $ret {
                    // SAFETY: guaranteed by the caller.
                    unsafe { $kernel::<Pairs>($arg) }
                }
            }

            /// The entry of a level, if the process may use its instructions.
            pub(super) fn at(level: Level) -> Option<unsafe fn($argty) -> $ret> {
                match level {
                    Level::Avx512Amx => {
                        are_granted::<Tiles>().then_some(avx512_amx::entry_avx512_amx)
                    }
                    Level::Avx512Bf16 => {
                        are_granted::<Pairs>().then_some(avx512_bf16::entry_avx512_bf16)
                    }
                    _ => None,
                }
            }
        }
    };
}
pub(super) use entry_points;

entry_points! {
    /// Attention to a block.
    mod entries: attend(block: &TileBlock<'_>) -> ();
}

entry_points! {
    /// Queries.
    mod query_entries: queries(job: &Packing<'_>) -> bool;
}

entry_points! {
    /// Keys.
    mod key_entries: keys(job: &Packing<'_>) -> bool;
}

entry_points! {
    /// Values.
    mod value_entries: values(job: &Packing<'_>) -> bool;
}

/// The functions of a level, if the process may use its instructions.
pub(super) fn entries(level: Level) -> Option<Entries> {
    Some(Entries {
        attend: entries::at(level)?,
        queries: query_entries::at(level)?,
        keys: key_entries::at(level)?,
        values: value_entries::at(level)?,
    })
}
