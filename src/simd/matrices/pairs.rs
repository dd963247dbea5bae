//! AVX512-BF16: vectors of pairs of terms.

use super::{Granted, LANES, Matrices, Product};
use crate::simd::unroll;
use std::arch::x86_64::*;

/// Rows processed at once. Their sums and the chains of even and odd terms fit the registers.
const ROWS: usize = 4;

fn is_from_intel() -> bool {
    let found = __cpuid(0);
    let name = [*b"Genu", *b"ineI", *b"ntel"].map(u32::from_le_bytes);
    [found.ebx, found.edx, found.ecx] == name
}

/// VDPBF16PS. It adds the upper term of a word before the lower one, so a word has two even or two odd terms.
pub(crate) struct Pairs;

impl Matrices for Pairs {
    const ORDER: [usize; 4] = [2, 0, 3, 1];

    fn granted() -> &'static Granted {
        static GRANTED: Granted = Granted::new();
        &GRANTED
    }

    /// Not on Intel's processors. They begin an instruction every other cycle, against two fused multiply-adds of f32 in
    /// each, and took 1.25 times as long with it (Sapphire Rapids).
    fn are_usable() -> bool {
        std::arch::is_x86_feature_detected!("avx512bf16") && !is_from_intel()
    }

    #[inline(always)]
    unsafe fn begin() {}

    #[inline(always)]
    unsafe fn end() {}

    /// Whole sets of [`ROWS`] rows.
    #[inline(always)]
    unsafe fn multiply(product: &Product) {
        let mut row = 0;
        while row < product.rows {
            // SAFETY: guaranteed by the caller; rows come in a multiple of `ROWS`.
            unsafe { multiply_rows(product, row) };
            row += ROWS;
        }
    }
}

/// # Safety
/// As [`Matrices::multiply`], for [`ROWS`] rows from `row` on.
#[inline(always)]
unsafe fn multiply_rows(product: &Product, row: usize) {
    const WORDS: usize = LANES;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let zero = _mm512_setzero_ps();
        let mut sums = [[zero; 2]; ROWS];
        let mut left = product.left.wrapping_byte_add(row * product.left_step).cast::<i32>();
        let [first, second] = product.right;
        let (mut first, mut second) = (first.cast::<__m512i>(), second.cast::<__m512i>());
        for _ in 0..product.count {
            // The chains of even and of odd terms.
            let mut chains = [[[zero; 2]; ROWS]; 2];
            for _ in 0..WORDS / 2 {
                unroll!(parity in 2, {
                    let vectors = [
                        as_bf16(_mm512_loadu_si512(first.wrapping_add(parity))),
                        as_bf16(_mm512_loadu_si512(second.wrapping_add(parity))),
                    ];
                    unroll!(r in ROWS, {
                        let word = left.wrapping_byte_add(r * product.left_step);
                        let word = as_bf16(_mm512_set1_epi32(word.wrapping_add(parity).read_unaligned()));
                        unroll!(c in 2, {
                            let sum = chains[parity][r][c];
                            chains[parity][r][c] = _mm512_dpbf16_ps(sum, word, vectors[c]);
                        });
                    });
                });
                left = left.wrapping_add(2);
                (first, second) = (first.wrapping_add(2), second.wrapping_add(2));
            }
            unroll!(r in ROWS, {
                unroll!(c in 2, {
                    let added = _mm512_add_ps(chains[0][r][c], chains[1][r][c]);
                    sums[r][c] = _mm512_add_ps(sums[r][c], added);
                });
            });
        }
        unroll!(r in ROWS, {
            unroll!(c in 2, {
                let to = product.to.wrapping_byte_add((row + r) * product.step);
                _mm512_storeu_ps(to.wrapping_add(c * LANES), sums[r][c]);
            });
        });
    }
}

/// The bits as pairs of bf16.
#[inline(always)]
fn as_bf16(words: __m512i) -> __m512bh {
    // SAFETY: both are 64 bytes, and every value is valid.
    unsafe { std::mem::transmute(words) }
}
