//! Rows against a block of keys on tiles of bf16, with the bits of [`kernel`](super::kernel): its products have the order
//! of bf16, and what it rounds and joins is the same.

use super::kernel::STEP;
use super::panels::transpose;
use super::score::seen;
use super::tiles::{AT_ONCE, Entries, NUMBERS, Packing, TERMS, TileBlock, WEIGHT_STEP};
use crate::simd::avx512::Avx512;
use crate::simd::lanes::Lanes;
use crate::simd::tiles::{
    Inspector, Product, are_granted, configure, interleave, narrow, pairs, release,
};
use crate::simd::{LANES, unroll};
use std::ops::Range;

/// Adds a block to all rows.
///
/// # Safety
/// The block is there as tiles, its numbers are fit for them, no other thread writes it, and tiles are granted.
#[inline(always)]
unsafe fn attend(job: &TileBlock<'_>) {
    let block = job.block;
    // SAFETY: guaranteed by the caller.
    unsafe {
        configure();
        let mut row = 0;
        while row < block.rows.len() {
            let end = block.rows.len().min(row + AT_ONCE);
            let seen = seen(block.rows.get_unchecked(row..end), block.first, block.count);
            if !seen.is_empty() {
                job.rows(row..end, &seen);
            }
            row = end;
        }
        release();
    }
}

impl TileBlock<'_> {
    /// # Safety
    /// As [`attend`].
    #[inline(always)]
    unsafe fn rows(&self, of: Range<usize>, seen: &Range<usize>) {
        let block = self.block;
        let size = size_of::<u16>();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut at = seen.start / LANES;
            while at < seen.end / LANES {
                let keys = self.keys.wrapping_add(at * self.key_panel);
                Product {
                    left: self.queries.wrapping_add(of.start * self.query_step),
                    left_step: self.query_step * size,
                    right: [keys, keys.wrapping_add(self.key_panel)],
                    count: block.key_size.div_ceil(TERMS),
                    to: block.weights.wrapping_add(at * LANES),
                    step: STEP * size_of::<f32>(),
                }
                .compute();
                at += 2;
            }
            let rows = block.rows.get_unchecked(of.clone());
            let (before, after) = block.join_states::<Avx512, true>(of.start, rows, seen);
            let weights = (block.weights.wrapping_add(seen.start).cast_const(), STEP);
            let to = (self.weights, WEIGHT_STEP);
            narrow(weights, (rows.len(), seen.len()), to, &mut Inspector::new(0));
            let mut at = 0;
            while at < block.value_panels {
                let values = self.values.wrapping_add(at * self.value_panel);
                let values = values.wrapping_add(seen.start / TERMS * NUMBERS);
                Product {
                    left: self.weights,
                    left_step: WEIGHT_STEP * size,
                    right: [values, values.wrapping_add(self.value_panel)],
                    count: seen.len().div_ceil(TERMS),
                    to: self.products,
                    step: AT_ONCE * size_of::<f32>(),
                }
                .compute();
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

/// Queries as rows of bf16. Returns whether they are fit for tiles, here and below.
///
/// # Safety
/// The rows are there and so is the room, and the CPU supports AVX-512.
#[inline(always)]
unsafe fn queries(job: &Packing<'_>) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut inspector = Inspector::new(job.least);
        let from = (job.floats, job.float_step);
        narrow(from, (job.count, job.cols), (job.to, job.panel), &mut inspector);
        inspector.found_none()
    }
}

/// 16 keys as tiles of pairs of elements.
///
/// # Safety
/// As [`queries`].
#[inline(always)]
unsafe fn keys(job: &Packing<'_>) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut inspector = Inspector::new(job.least);
        let mut col = 0;
        while col < job.cols {
            let count = (job.cols - col).min(TERMS) / 2;
            let mut tile = [pairs(job.to, 0, &mut inspector); LANES];
            unroll!(to 16: i in LANES, {
                let row = job.rows[i];
                let count = if row.is_null() { 0 } else { count };
                tile[i] = pairs(row.wrapping_add(col), count, &mut inspector);
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

/// 16 values as halves of tiles of pairs of keys.
///
/// # Safety
/// As [`queries`].
#[inline(always)]
unsafe fn values(job: &Packing<'_>) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut inspector = Inspector::new(job.least);
        let mut col = 0;
        while col < job.cols {
            let to = job.to.wrapping_add(col / LANES * job.panel);
            unroll!(to 8: pair in LANES / 2, {
                let of = |row: *const u16| {
                    let count = if row.is_null() { 0 } else { job.cols - col };
                    (row.wrapping_add(col), count)
                };
                let rows = [of(job.rows[2 * pair]), of(job.rows[2 * pair + 1])];
                interleave(rows, to.wrapping_add(pair * TERMS), &mut inspector);
            });
            col += LANES;
        }
        inspector.found_none()
    }
}

/// The entry of a kernel, as `entry_points!` makes it for each level.
macro_rules! entry_point {
    ($(#[$doc:meta])* mod $name:ident: $kernel:ident($arg:ident: $argty:ty) -> $ret:ty;) => {
        $(#[$doc])*
        mod $name {
            pub(super) mod avx512 {
                use super::super::*;
                /// # Safety
                /// As for the kernel, and the CPU supports AVX-512 F, BW, DQ and VL.
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                #[inline(never)]
                pub(in super::super) unsafe fn entry_avx512($arg: $argty) -> $ret {
                    // SAFETY: guaranteed by the caller.
                    unsafe { $kernel($arg) }
                }
            }
        }
    };
}

entry_point! {
    /// Attention to a block.
    mod entries: attend(block: &TileBlock<'_>) -> ();
}

entry_point! {
    /// Queries.
    mod query_entries: queries(job: &Packing<'_>) -> bool;
}

entry_point! {
    /// Keys.
    mod key_entries: keys(job: &Packing<'_>) -> bool;
}

entry_point! {
    /// Values.
    mod value_entries: values(job: &Packing<'_>) -> bool;
}

/// The functions, if the process may use tiles.
pub(super) fn entries() -> Option<Entries> {
    are_granted().then_some(Entries {
        attend: entries::avx512::entry_avx512,
        queries: query_entries::avx512::entry_avx512,
        keys: key_entries::avx512::entry_avx512,
        values: value_entries::avx512::entry_avx512,
    })
}
