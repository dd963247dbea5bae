//! AMX: registers with 16 rows of pairs of terms, and products of two of them.

use super::{Granted, LANES, Matrices, Product};
#[cfg(target_os = "linux")]
use std::arch::x86_64::*;

/// Rows of a tile.
const ROWS: usize = LANES;

/// TDPBF16PS. For each 32 terms, the instruction itself adds the even and the odd ones separately.
pub(crate) struct Tiles;

/// Whether the processor has bf16 tiles and the system saves them.
#[cfg(target_os = "linux")]
pub(in crate::simd) fn are_present() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    const BF16_AND_TILES: u32 = 1 << 22 | 1 << 24;
    const CONFIGURATION_AND_DATA: u64 = 3 << 17;

    #[target_feature(enable = "xsave")]
    fn saved() -> u64 {
        // SAFETY: the caller checked that the processor has the instruction.
        unsafe { _xgetbv(0) }
    }

    if __cpuid(0).eax < 7 || __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let found = __cpuid_count(7, 0).edx & BF16_AND_TILES == BF16_AND_TILES;
    // SAFETY: the system enables the instruction.
    found && unsafe { saved() } & CONFIGURATION_AND_DATA == CONFIGURATION_AND_DATA
}

#[cfg(not(target_os = "linux"))]
pub(in crate::simd) fn are_present() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: i32 = 0x1023;
    const XFEATURE_XTILEDATA: i32 = 18;
    // SAFETY: the call only reads two numbers.
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

impl Matrices for Tiles {
    const ORDER: [usize; 4] = [0, 1, 2, 3];

    fn granted() -> &'static Granted {
        static GRANTED: Granted = Granted::new();
        &GRANTED
    }

    fn are_usable() -> bool {
        are_present() && permitted()
    }

    /// Configures this thread's tile registers as eight tiles of 16 rows of 64 bytes, replacing any configuration that
    /// another library left.
    #[inline(always)]
    unsafe fn begin() {
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

    /// Releases the tile state, so a context switch has less to save.
    #[inline(always)]
    unsafe fn end() {
        // SAFETY: guaranteed by the caller.
        unsafe { std::arch::asm!("tilerelease", options(nostack, nomem)) };
    }

    /// All 32 rows.
    #[inline(always)]
    unsafe fn multiply(product: &Product) {
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
                upper = inout(reg) product.left => _,
                lower = inout(reg) product.left.wrapping_byte_add(ROWS * product.left_step) => _,
                left_step = in(reg) product.left_step,
                first = inout(reg) product.right[0] => _,
                second = inout(reg) product.right[1] => _,
                line = in(reg) 64usize,
                count = inout(reg) product.count => _,
                to = in(reg) product.to,
                below = in(reg) product.to.wrapping_byte_add(ROWS * product.step),
                step = in(reg) product.step,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}
