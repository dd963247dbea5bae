//! Tiles of bf16, on processors with AMX: 16 rows of pairs of terms, and the products of two of them.
//!
//! For each 32 terms the processor adds up a chain of the even and one of the odd ones, each from +0, adds both to each
//! other and then to the sum. Its chains are fused multiply-adds that take subnormals for zeros.

use super::LANES;
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU8, Ordering};

/// Rows of a tile.
const ROWS: usize = LANES;
/// The terms of a tile, and the numbers of one.
const TERMS: usize = 32;
const NUMBERS: usize = ROWS * TERMS;

/// Whether the processor has tiles of bf16, and the system saves them.
#[cfg(target_os = "linux")]
pub(super) fn are_present() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    const BF16_AND_TILES: u32 = 1 << 22 | 1 << 24;
    const CONFIGURATION_AND_DATA: u64 = 3 << 17;

    #[target_feature(enable = "xsave")]
    fn saved() -> u64 {
        // SAFETY: the caller has found the instruction.
        unsafe { _xgetbv(0) }
    }

    if __cpuid(0).eax < 7 || __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let found = __cpuid_count(7, 0).edx & BF16_AND_TILES == BF16_AND_TILES;
    // SAFETY: the system uses the instruction.
    found && unsafe { saved() } & CONFIGURATION_AND_DATA == CONFIGURATION_AND_DATA
}

#[cfg(not(target_os = "linux"))]
pub(super) fn are_present() -> bool {
    false
}

/// Whether the process may use tiles, which are present, and they compute what their manual says. The system is asked
/// once.
pub(crate) fn are_granted() -> bool {
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;
    // Not a `OnceLock`: after fork() the thread that holds it may not exist.
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    match ANSWER.load(Ordering::Relaxed) {
        UNKNOWN => {
            // SAFETY: checked last, when they may be used.
            let granted = are_present() && permitted() && unsafe { compute_as_documented() };
            ANSWER.store(if granted { YES } else { NO }, Ordering::Relaxed);
            granted
        }
        answer => answer == YES,
    }
}

#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: i32 = 0x1023;
    const XFEATURE_XTILEDATA: i32 = 18;
    // SAFETY: the call reads two numbers.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

/// The shapes of all tiles, for LDTILECFG.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// Makes the registers of this thread eight tiles of 16 rows of 64 bytes. Whatever configuration another library left is
/// replaced.
///
/// # Safety
/// Tiles are granted.
#[inline(always)]
pub(crate) unsafe fn configure() {
    static SHAPES: Shapes = {
        let (mut row_bytes, mut rows) = ([0; 16], [0; 16]);
        let mut tile = 0;
        while tile < 8 {
            (row_bytes[tile], rows[tile]) = (64, ROWS as u8);
            tile += 1;
        }
        Shapes { palette: 1, start_row: 0, reserved: [0; 14], row_bytes, rows }
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        std::arch::asm!("ldtilecfg [{}]", in(reg) &raw const SHAPES, options(nostack, readonly));
    }
}

/// Ends what [`configure`] began: a thread without tiles has less to save.
///
/// # Safety
/// Tiles are granted.
#[inline(always)]
pub(crate) unsafe fn release() {
    // SAFETY: guaranteed by the caller.
    unsafe { std::arch::asm!("tilerelease", options(nostack, nomem)) };
}

/// Two tiles of rows times two of results.
pub(crate) struct Product {
    /// 32 rows of numbers, and their distance in bytes.
    pub(crate) left: *const u16,
    pub(crate) left_step: usize,
    /// Tiles of pairs of terms, one after another.
    pub(crate) right: [*const u16; 2],
    /// The tiles of terms, 1 or more.
    pub(crate) count: usize,
    /// 32 rows of 32 results, and their distance in bytes.
    pub(crate) to: *mut f32,
    pub(crate) step: usize,
}

impl Product {
    /// # Safety
    /// Operands and results are there, between [`configure`] and [`release`].
    #[inline(always)]
    pub(crate) unsafe fn compute(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            std::arch::asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "2:",
                "tileloadd tmm4, [{upper} + {left_step}]",
                "tileloadd tmm6, [{first} + {line}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{second} + {line}]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{lower} + {left_step}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {upper}, 64",
                "add {lower}, 64",
                "add {first}, 1024",
                "add {second}, 1024",
                "dec {count}",
                "jnz 2b",
                "tilestored [{to} + {step}], tmm0",
                "tilestored [{to} + {step} + 64], tmm1",
                "tilestored [{below} + {step}], tmm2",
                "tilestored [{below} + {step} + 64], tmm3",
                upper = inout(reg) self.left => _,
                lower = inout(reg) self.left.wrapping_byte_add(ROWS * self.left_step) => _,
                left_step = in(reg) self.left_step,
                first = inout(reg) self.right[0] => _,
                second = inout(reg) self.right[1] => _,
                line = in(reg) 64usize,
                count = inout(reg) self.count => _,
                to = in(reg) self.to,
                below = in(reg) self.to.wrapping_byte_add(ROWS * self.step),
                step = in(reg) self.step,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}

/// Looks for numbers with which a product may differ from that of fused multiply-adds: NaN, infinities, and numbers so
/// small that a partial sum may be subnormal.
#[derive(Clone, Copy)]
pub(crate) struct Inspector {
    least: __m512i,
    found: u32,
}

/// The bits of infinity, and of all but the sign.
const INFINITY: u16 = 0x7f80;
const MAGNITUDE: i16 = 0x7fff;

impl Inspector {
    /// Numbers are 0, or at least `least`, in the bits of bf16.
    ///
    /// # Safety
    /// The CPU supports AVX-512 F and BW, here and below.
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

/// Copies rows of f32 with the values of bf16 into rows of bf16, in whole tiles: what is missing is 0.
///
/// # Safety
/// The rows are there, and the CPU supports AVX-512 F, BW and VL.
#[inline(always)]
pub(crate) unsafe fn narrow(
    (from, step): (*const f32, usize),
    (rows, cols): (usize, usize),
    (to, to_step): (*mut u16, usize),
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
                _mm512_storeu_si512(to.wrapping_add(col).cast(), numbers);
                col += TERMS;
            }
        }
    }
}

/// Up to 16 pairs of bf16 that follow each other, as the bits of f32 lanes. Missing ones are zeros.
///
/// # Safety
/// They are there, and the CPU supports AVX-512 F and BW.
#[inline(always)]
pub(crate) unsafe fn pairs(from: *const u16, count: usize, inspector: &mut Inspector) -> __m512 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let numbers = _mm512_maskz_loadu_epi32(first(count), from.cast());
        inspector.see(numbers);
        _mm512_castsi512_ps(numbers)
    }
}

/// Writes pairs of up to 16 neighbours of two rows. Missing ones are zeros.
///
/// # Safety
/// They are there, and the CPU supports AVX-512 F, BW and VL.
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

/// Whether some thousand dot products have the bits of the documented order.
///
/// # Safety
/// The process may use tiles.
#[cold]
unsafe fn compute_as_documented() -> bool {
    const GROUPS: usize = 2;
    const COUNT: usize = GROUPS * TERMS;
    let mut state = 1u32;
    // From 2^-32 to 2^32, of both signs, and some zeros.
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let exponent = 95 + (state >> 26) as u16;
        let (sign, fraction) = ((state >> 10) as u16 & 0x8000, (state >> 9) as u16 & 0x7f);
        if state >> 28 == 5 { 0 } else { sign | exponent << 7 | fraction }
    };
    let left: [[u16; COUNT]; 2 * ROWS] = std::array::from_fn(|_| std::array::from_fn(|_| number()));
    let right: [[u16; COUNT]; 2 * ROWS] =
        std::array::from_fn(|_| std::array::from_fn(|_| number()));
    let mut tiles = [[0u16; GROUPS * NUMBERS]; 2];
    for (result, terms) in right.iter().enumerate() {
        for (at, term) in terms.iter().enumerate() {
            let place = at / 2 * TERMS + result % ROWS * 2 + at % 2;
            tiles[result / ROWS][place] = *term;
        }
    }
    let mut results = [[0f32; 2 * ROWS]; 2 * ROWS];
    // SAFETY: the operands have these sizes; the caller guarantees the rest.
    unsafe {
        configure();
        Product {
            left: left.as_ptr().cast(),
            left_step: COUNT * size_of::<u16>(),
            right: [tiles[0].as_ptr(), tiles[1].as_ptr()],
            count: GROUPS,
            to: results.as_mut_ptr().cast(),
            step: size_of_val(&results[0]),
        }
        .compute();
        release();
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
