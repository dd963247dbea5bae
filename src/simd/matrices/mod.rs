//! Products of bf16 matrices with the processor's matrix instructions.
//!
//! Each 32 terms are summed in two chains, one of the even and one of the odd terms, each starting from +0. The two are
//! added, and then added to the sum: the order that x86 documents for tiles. The chains are fused multiply-adds
//! that treat subnormals as zeros.
//!
//! Operands are tiles of 32 terms by 16 results, in words of two terms that one instruction adds to the same sum.

mod pairs;
#[cfg(test)]
mod tests;
mod tiles;

pub(crate) use pairs::Pairs;
pub(crate) use tiles::Tiles;
pub(super) use tiles::are_present as tiles_are_present;

use super::LANES;
use super::bf16_pair::two_to_bf16;
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU8, Ordering};

/// The terms of a tile, and the number of its elements.
const TERMS: usize = 32;
const NUMBERS: usize = LANES * TERMS;

/// A set of instructions that multiply matrices.
pub(crate) trait Matrices {
    /// Which of four terms is at each position of two words.
    const ORDER: [usize; 4];

    /// Caches whether the process may use the instructions.
    fn granted() -> &'static Granted;

    /// Whether the processor and the system support them.
    fn are_usable() -> bool;

    /// Called before products.
    ///
    /// # Safety
    /// The instructions are granted; so for the functions below.
    unsafe fn begin();

    /// Called after products.
    ///
    /// # Safety
    /// As [`begin`](Self::begin).
    unsafe fn end();

    /// # Safety
    /// Operands and results exist; called between [`begin`](Self::begin) and [`end`](Self::end).
    unsafe fn multiply(product: &Product);

    /// The terms of a word, by their index among all terms.
    #[inline(always)]
    fn terms_of(word: usize) -> [usize; 2] {
        let first = word / 2 * 4;
        let of = |half: usize| first + Self::ORDER[word % 2 * 2 + half];
        [of(0), of(1)]
    }

    /// Puts 32 terms in the order of words.
    ///
    /// # Safety
    /// The CPU supports AVX-512 F and BW.
    #[inline(always)]
    unsafe fn ordered(terms: __m512i) -> __m512i {
        if const { matches!(Self::ORDER, [0, 1, 2, 3]) } {
            return terms;
        }
        let bytes = const {
            let mut bytes = [0; LANES];
            let mut at = 0;
            while at < LANES {
                bytes[at] = (at / 8 * 8 + Self::ORDER[at % 8 / 2] * 2 + at % 2) as u8;
                at += 1;
            }
            bytes
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            let bytes = _mm512_broadcast_i32x4(_mm_loadu_si128(bytes.as_ptr().cast()));
            _mm512_shuffle_epi8(terms, bytes)
        }
    }
}

/// The cached result of [`are_granted`].
pub(crate) struct Granted(AtomicU8);

impl Granted {
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;

    const fn new() -> Self {
        Self(AtomicU8::new(Self::UNKNOWN))
    }
}

/// Whether the process may use the instructions, and they compute what the manual says. Determined once. Not a
/// `OnceLock`, because after fork() the thread that holds it may not exist.
pub(crate) fn are_granted<M: Matrices>() -> bool {
    let answer = &M::granted().0;
    match answer.load(Ordering::Relaxed) {
        Granted::UNKNOWN => {
            // SAFETY: checked only if they may be used.
            let granted = M::are_usable() && unsafe { compute_as_documented::<M>() };
            answer.store(if granted { Granted::YES } else { Granted::NO }, Ordering::Relaxed);
            granted
        }
        answer => answer == Granted::YES,
    }
}

/// A product of 32 rows and 32 results.
pub(crate) struct Product {
    /// 32 rows of numbers, and their stride in bytes. The results of rows from `rows` on may be left unwritten.
    pub(crate) left: *const u16,
    pub(crate) left_step: usize,
    pub(crate) rows: usize,
    /// Tiles of 16 words by 16 results, contiguous. A word has two terms.
    pub(crate) right: [*const u16; 2],
    /// The number of tiles, at least 1.
    pub(crate) count: usize,
    /// 32 rows of 32 results, and their stride in bytes.
    pub(crate) to: *mut f32,
    pub(crate) step: usize,
}

/// Finds numbers for which a product may differ from that of fused multiply-adds: NaN, infinities, and numbers so small
/// that a partial sum may be subnormal.
#[derive(Clone, Copy)]
pub(crate) struct Inspector {
    least: __m512i,
    found: u32,
}

/// The bits of infinity, and of all but the sign.
const INFINITY: u16 = 0x7f80;
const MAGNITUDE: i16 = 0x7fff;

impl Inspector {
    /// Accepts 0 and finite magnitudes of at least `least`, given as bf16 bits.
    ///
    /// # Safety
    /// The CPU supports AVX-512 F and BW; so for the functions below.
    #[inline(always)]
    pub(crate) unsafe fn new(least: u16) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { least: unsafe { _mm512_set1_epi16(least.cast_signed()) }, found: 0 }
    }

    #[inline(always)]
    unsafe fn see(&mut self, numbers: __m512i) {
        // SAFETY: guaranteed by the caller of `new`.
        unsafe {
            let magnitude = _mm512_and_si512(numbers, _mm512_set1_epi16(MAGNITUDE));
            let span = _mm512_sub_epi16(_mm512_set1_epi16(INFINITY.cast_signed()), self.least);
            let outside = _mm512_cmpge_epu16_mask(_mm512_sub_epi16(magnitude, self.least), span);
            self.found |= outside & _mm512_test_epi16_mask(magnitude, magnitude);
        }
    }

    #[inline(always)]
    pub(crate) fn found_none(self) -> bool {
        self.found == 0
    }
}

/// The mask of the first `n` of 16 lanes.
#[inline(always)]
fn first(n: usize) -> u16 {
    ((1u32 << n.min(LANES)) - 1) as u16
}

/// Copies rows of f32 that are bf16 values to rows of bf16, padded with zeros to whole tiles. The terms of left
/// operands get the order of words.
///
/// # Safety
/// The rows exist, and the CPU supports AVX-512 F, BW and VL.
#[inline(always)]
pub(crate) unsafe fn narrow<M: Matrices>(
    (from, step): (*const f32, usize),
    (rows, cols): (usize, usize),
    (to, to_step, is_left): (*mut u16, usize, bool),
    inspector: &mut Inspector,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for row in 0..rows {
            let (from, to) = (from.wrapping_add(row * step), to.wrapping_add(row * to_step));
            let mut col = 0;
            while col < cols {
                let half = |at: usize| {
                    let lanes = first(cols.saturating_sub(at));
                    let bits = _mm512_maskz_loadu_epi32(lanes, from.wrapping_add(at).cast());
                    _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(bits))
                };
                let low = _mm512_castsi256_si512(half(col));
                let numbers = _mm512_inserti64x4::<1>(low, half(col + LANES));
                inspector.see(numbers);
                let numbers = if is_left { M::ordered(numbers) } else { numbers };
                _mm512_storeu_si512(to.wrapping_add(col).cast(), numbers);
                col += TERMS;
            }
        }
    }
}

/// Rounds two vectors to 32 terms of a left operand. Subnormals become zeros.
///
/// # Safety
/// There is room for the terms, and the CPU supports AVX-512 F, BW and BF16.
#[inline(always)]
pub(crate) unsafe fn round<M: Matrices>([low, high]: [__m512; 2], to: *mut u16) {
    // SAFETY: guaranteed by the caller.
    unsafe { _mm512_storeu_si512(to.cast(), M::ordered(two_to_bf16(low, high))) };
}

/// Words of 16 neighbours of two rows of f32 that are bf16 values.
///
/// # Safety
/// They exist, and the CPU supports AVX-512 F.
#[inline(always)]
pub(crate) unsafe fn words_of_rows(low: *const f32, high: *const f32) -> __m512 {
    const UPPER: i32 = 0xffff << 16;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (low, high) = (_mm512_loadu_si512(low.cast()), _mm512_loadu_si512(high.cast()));
        let high = _mm512_and_si512(high, _mm512_set1_epi32(UPPER));
        _mm512_castsi512_ps(_mm512_or_si512(_mm512_srli_epi32::<16>(low), high))
    }
}

/// Up to 32 terms of a right operand as 16 words, in the bits of f32 lanes. Missing pairs of terms are zeros.
///
/// # Safety
/// They exist, and the CPU supports AVX-512 F and BW.
#[inline(always)]
pub(crate) unsafe fn words<M: Matrices>(
    from: *const u16,
    count: usize,
    inspector: &mut Inspector,
) -> __m512 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let numbers = _mm512_maskz_loadu_epi32(first(count), from.cast());
        inspector.see(numbers);
        _mm512_castsi512_ps(M::ordered(numbers))
    }
}

/// Writes words of up to 16 neighbours of two rows. Missing ones are zeros.
///
/// # Safety
/// They exist, and the CPU supports AVX-512 F, BW and VL.
#[inline(always)]
pub(crate) unsafe fn interleave(
    rows: [(*const u16, usize); 2],
    to: *mut u16,
    inspector: &mut Inspector,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let widened = |(from, count): (*const u16, usize)| {
            _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(count), from.cast()))
        };
        let (low, high) = (widened(rows[0]), widened(rows[1]));
        let numbers = _mm512_or_si512(low, _mm512_slli_epi32::<16>(high));
        inspector.see(numbers);
        _mm512_storeu_si512(to.cast(), numbers);
    }
}

/// Whether 1024 dot products have the bits of the documented order.
///
/// # Safety
/// The process may use tiles.
#[cold]
unsafe fn compute_as_documented<M: Matrices>() -> bool {
    const GROUPS: usize = 2;
    const COUNT: usize = GROUPS * TERMS;
    let mut state = 1u32;
    // From 2^-32 to 2^32, with both signs, and some zeros.
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let exponent = 95 + (state >> 26) as u16;
        let (sign, fraction) = ((state >> 10) as u16 & 0x8000, (state >> 9) as u16 & 0x7f);
        if state >> 28 == 5 { 0 } else { sign | exponent << 7 | fraction }
    };
    let mut numbers = || -> [[u16; COUNT]; 2 * LANES] {
        std::array::from_fn(|_| std::array::from_fn(|_| number()))
    };
    let (left, right) = (numbers(), numbers());
    let mut rows = [[0u16; COUNT]; 2 * LANES];
    let mut tiles = [[0u16; GROUPS * NUMBERS]; 2];
    for word in 0..COUNT / 2 {
        for (half, term) in M::terms_of(word).into_iter().enumerate() {
            for at in 0..2 * LANES {
                rows[at][2 * word + half] = left[at][term];
                tiles[at / LANES][word * TERMS + at % LANES * 2 + half] = right[at][term];
            }
        }
    }
    let mut results = [[0f32; 2 * LANES]; 2 * LANES];
    // SAFETY: the operands have these sizes; the caller guarantees the rest.
    unsafe {
        M::begin();
        M::multiply(&Product {
            left: rows.as_ptr().cast(),
            left_step: COUNT * size_of::<u16>(),
            rows: rows.len(),
            right: [tiles[0].as_ptr(), tiles[1].as_ptr()],
            count: GROUPS,
            to: results.as_mut_ptr().cast(),
            step: size_of_val(&results[0]),
        });
        M::end();
    }
    let f32_of = |bits: u16| f32::from_bits(u32::from(bits) << 16);
    results.iter().zip(&left).all(|(results, a)| {
        results.iter().zip(&right).all(|(result, b)| {
            let mut sum = 0.0f32;
            for (a, b) in a.chunks(TERMS).zip(b.chunks(TERMS)) {
                let terms = || a.iter().zip(b);
                let chain = |sum: f32, (a, b): (&u16, &u16)| f32_of(*a).mul_add(f32_of(*b), sum);
                let even = terms().step_by(2).fold(0.0, chain);
                sum += even + terms().skip(1).step_by(2).fold(0.0, chain);
            }
            sum.to_bits() == result.to_bits()
        })
    })
}
