//! A block of queries against a block of keys on bf16 tiles, backward, with the bits of [`gradient`](super::gradient).

use super::diff_tiles::{
    COLUMN_STEP, Entry, KEY_PANEL, LEAST_OF_GRADIENTS, LEAST_OF_INPUTS, QUERY_PANEL, TilePairs,
};
use super::gradient::Matrix;
use super::panels::transpose;
use super::score::seen;
use super::tile_kernel::entry_points;
use super::tiles::{APART, AT_ONCE, NUMBERS, TERMS, WEIGHT_STEP};
use crate::simd::avx512::Avx512;
use crate::simd::lanes::Lanes;
use crate::simd::matrices::{
    Inspector, Matrices, Pairs, Product, Tiles, are_granted, narrow, words_of_rows,
};
use crate::simd::{LANES, Level, Simd, unroll};
use std::ops::Range;

const SIZE: usize = size_of::<u16>();

/// A product of up to 32 rows and all columns of a right operand, to add to sums.
struct Products {
    left: *const u16,
    left_step: usize,
    rows: usize,
    right: *const u16,
    /// The stride of tiles of 16 columns, and the number of columns.
    panel: usize,
    size: usize,
    /// The number of terms.
    terms: usize,
    to: Matrix,
}

impl TilePairs<'_> {
    /// The dot products of up to 32 queries with keys, and of their rows of diff_dst with values.
    ///
    /// # Safety
    /// As [`differentiate`].
    #[inline(always)]
    unsafe fn dots<M: Matrices>(&self, of: Range<usize>) {
        let (pairs, places) = (self.pairs, &self.places);
        let operands = [
            (places.queries, self.key_size, places.keys, pairs.key_size, pairs.weights),
            (places.diff_dst, self.value_size, places.values, pairs.value_size, pairs.diff_scores),
        ];
        // SAFETY: guaranteed by the caller.
        unsafe {
            let rows = pairs.rows.get_unchecked(of.clone());
            let seen = seen(rows, pairs.first, pairs.count);
            for (left, padded, right, size, to) in operands {
                let (step, panel) = (padded + APART, LANES * padded);
                let mut at = seen.start / LANES;
                while at < seen.end / LANES {
                    let right = right.wrapping_add(at * panel);
                    M::multiply(&Product {
                        left: left.wrapping_add(of.start * step),
                        left_step: step * SIZE,
                        rows: of.len(),
                        right: [right, right.wrapping_add(panel)],
                        count: size.div_ceil(TERMS),
                        to: to.at(of.start, at * LANES),
                        step: to.step * size_of::<f32>(),
                    });
                    at += 2;
                }
            }
        }
    }

    /// # Safety
    /// As [`differentiate`].
    #[inline(always)]
    unsafe fn add<M: Matrices>(&self, of: &Products) {
        let room = self.places.products;
        let mut at = 0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            while at < of.size.div_ceil(LANES) {
                let right = of.right.wrapping_add(at * of.panel);
                M::multiply(&Product {
                    left: of.left,
                    left_step: of.left_step * SIZE,
                    rows: of.rows,
                    right: [right, right.wrapping_add(of.panel)],
                    count: of.terms.div_ceil(TERMS),
                    to: room,
                    step: AT_ONCE * size_of::<f32>(),
                });
                let panels = (of.size.div_ceil(LANES) - at).min(2);
                for row in 0..of.rows {
                    for c in 0..panels {
                        let sum = of.to.at(row, (at + c) * LANES);
                        let product = Avx512::load(room.add(row * AT_ONCE + c * LANES));
                        Avx512::store(sum, Avx512::add(Avx512::load(sum), product));
                    }
                }
                at += 2;
            }
        }
    }

    /// Adds the gradients of queries, then those of keys and values.
    ///
    /// # Safety
    /// As [`differentiate`].
    #[inline(always)]
    unsafe fn products<M: Matrices>(&self, all: &Range<usize>) {
        let (pairs, places) = (self.pairs, &self.places);
        let rows = pairs.rows.len();
        // A single loop, so the products are compiled only once.
        let (mut row, mut key, mut is_second) = (0, all.start, false);
        let end = all.end.min(pairs.count);
        loop {
            let products = if row < rows {
                let of = row..rows.min(row + AT_ONCE);
                row = of.end;
                // SAFETY: the rows exist.
                let of_rows = unsafe { pairs.rows.get_unchecked(of.clone()) };
                let seen = seen(of_rows, pairs.first, pairs.count);
                if seen.is_empty() {
                    continue;
                }
                Products {
                    left: places.diff_scores.wrapping_add(of.start * WEIGHT_STEP + seen.start),
                    left_step: WEIGHT_STEP,
                    rows: of.len(),
                    right: places.key_terms.wrapping_add(seen.start / TERMS * NUMBERS),
                    panel: KEY_PANEL,
                    size: pairs.key_size,
                    terms: seen.len(),
                    to: pairs.diff_queries.from(of.start),
                }
            } else if key < end {
                let (left, right, size, to) = if is_second {
                    (places.diff_score_columns, places.query_terms, pairs.key_size, pairs.diff_keys)
                } else {
                    let of = pairs.value_size;
                    (places.weight_columns, places.diff_dst_terms, of, pairs.diff_values)
                };
                let first = key;
                if is_second {
                    key += AT_ONCE;
                }
                is_second = !is_second;
                Products {
                    left: left.wrapping_add(first * COLUMN_STEP),
                    left_step: COLUMN_STEP,
                    rows: AT_ONCE.min(end - first),
                    right,
                    panel: QUERY_PANEL,
                    size,
                    terms: rows,
                    to: to.from(first),
                }
            } else {
                return;
            };
            // SAFETY: guaranteed by the caller.
            unsafe { self.add::<M>(&products) };
        }
    }
}

/// Packs rows of f32 that are bf16 values as a right operand whose terms are rows.
///
/// # Safety
/// The rows exist, padded to whole tiles, and the CPU supports AVX-512.
#[inline(always)]
unsafe fn terms<M: Matrices>(rows: Matrix, (count, cols): (usize, usize), to: *mut u16) {
    for group in 0..count.div_ceil(TERMS) {
        let mut col = 0;
        while col < cols {
            let to = to.wrapping_add(col / LANES * QUERY_PANEL + group * NUMBERS);
            unroll!(to 16: word in LANES, {
                let [low, high] = M::terms_of(word);
                let from = rows.from(group * TERMS);
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let words = words_of_rows(from.at(low, col), from.at(high, col));
                    Lanes::<Avx512>::new(words).store(to.wrapping_add(word * TERMS).cast(), LANES);
                }
            });
            col += LANES;
        }
    }
}

/// Packs rows of f32 that are bf16 values as a left operand whose terms are rows.
///
/// # Safety
/// As [`terms`].
#[inline(always)]
unsafe fn columns<M: Matrices>(rows: Matrix, (count, cols): (usize, &Range<usize>), to: *mut u16) {
    for group in 0..count.div_ceil(TERMS) {
        let mut col = cols.start;
        while col < cols.end {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let (mut tile, from) = (Avx512::zeros(), rows.from(group * TERMS));
                unroll!(to 16: word in LANES, {
                    let [low, high] = M::terms_of(word);
                    tile[word] = words_of_rows(from.at(low, col), from.at(high, col));
                });
                transpose::<Avx512>(&mut tile);
                let to = to.wrapping_add(col * COLUMN_STEP + group * TERMS);
                unroll!(to 16: i in LANES, {
                    let to = to.wrapping_add(i * COLUMN_STEP).cast();
                    Lanes::<Avx512>::new(tile[i]).store(to, LANES);
                });
            }
            col += LANES;
        }
    }
}

/// Adds the gradients of a block of queries and a block of keys. Returns false, with nothing added, if numbers are
/// unsuitable for tiles.
///
/// # Safety
/// The keys and values are packed, and their numbers are suitable. Rows of matrices are padded with zeros to a multiple
/// of 32. No other thread writes them, and the process may use tiles.
#[inline(always)]
unsafe fn differentiate<M: Matrices>(job: &TilePairs<'_>) -> bool {
    let (pairs, places) = (job.pairs, &job.places);
    let all = seen(pairs.rows, pairs.first, pairs.count);
    if all.is_empty() {
        return true;
    }
    let rows = pairs.rows.len();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut inspector = Inspector::new(LEAST_OF_INPUTS);
        let padded = rows.next_multiple_of(AT_ONCE);
        let to = (places.queries, job.key_size + APART, true);
        let Matrix { start, step } = pairs.queries;
        narrow::<M>((start, step), (padded, pairs.key_size), to, &mut inspector);
        let mut of_gradients = Inspector::new(LEAST_OF_GRADIENTS);
        let to = (places.diff_dst, job.value_size + APART, true);
        let Matrix { start, step } = pairs.diff_dst;
        narrow::<M>((start, step), (padded, pairs.value_size), to, &mut of_gradients);
        if !inspector.found_none() || !of_gradients.found_none() {
            return false;
        }
        M::begin();
        let mut row = 0;
        while row < rows {
            job.dots::<M>(row..rows.min(row + AT_ONCE));
            row += AT_ONCE;
        }
        for row in 0..rows {
            pairs.weigh::<Avx512, true>(row);
        }
        let to = (places.diff_scores.wrapping_add(all.start), WEIGHT_STEP, true);
        let Matrix { start, step } = pairs.diff_scores;
        let from = (start.wrapping_add(all.start).cast_const(), step);
        narrow::<M>(from, (padded, all.len()), to, &mut of_gradients);
        let fit = of_gradients.found_none();
        if fit {
            terms::<M>(pairs.queries, (padded, pairs.key_size), places.query_terms);
            terms::<M>(pairs.diff_dst, (padded, pairs.value_size), places.diff_dst_terms);
            columns::<M>(pairs.weights, (padded, &all), places.weight_columns);
            columns::<M>(pairs.diff_scores, (padded, &all), places.diff_score_columns);
            job.products::<M>(&all);
        }
        M::end();
        fit
    }
}

entry_points! {
    /// Gradients of a block.
    mod entries: differentiate(job: &TilePairs<'_>) -> bool;
}

/// The function of a level, if the process may use its instructions.
pub(super) fn entry(level: Level) -> Option<Entry> {
    entries::at(level)
}
