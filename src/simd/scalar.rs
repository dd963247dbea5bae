//! Single elements of any type: load, round and store, with the bits of the vector operations.

use super::codes;
use crate::tensor::DataType;

/// One element as f32. Exact, except that s32, s64 and f64 are rounded.
///
/// # Safety
/// Element `i`, of this type and counted from `p`, exists.
#[inline(always)]
pub(crate) unsafe fn read_scalar(data_type: DataType, p: *const u8, i: usize) -> f32 {
    // SAFETY: guaranteed by the caller; no alignment is needed.
    unsafe {
        match data_type {
            DataType::F32 => p.cast::<f32>().add(i).read_unaligned(),
            DataType::F64 => p.cast::<f64>().add(i).read_unaligned() as f32,
            DataType::S32 => p.cast::<i32>().add(i).read_unaligned() as f32,
            DataType::S64 => p.cast::<i64>().add(i).read_unaligned() as f32,
            DataType::S8 => codes::s8_value(p.add(i).read()),
            DataType::U8 => codes::u8_value(p.add(i).read()),
            DataType::F8E4m3 => codes::e4m3_value(p.add(i).read()),
            DataType::F8E5m2 => codes::e5m2_value(p.add(i).read()),
            DataType::E8m0 => codes::e8m0_value(p.add(i).read()),
            DataType::Bf16 => {
                f32::from_bits(u32::from(p.cast::<u16>().add(i).read_unaligned()) << 16)
            }
            DataType::F16 => f16_value(p.cast::<u16>().add(i).read_unaligned()),
        }
    }
}

/// One element as f64, exactly.
///
/// # Safety
/// As [`read_scalar`].
#[inline(always)]
pub(crate) unsafe fn read_wide(data_type: DataType, p: *const u8, i: usize) -> f64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match data_type {
            DataType::F64 => p.cast::<f64>().add(i).read_unaligned(),
            DataType::S32 => f64::from(p.cast::<i32>().add(i).read_unaligned()),
            DataType::S64 => p.cast::<i64>().add(i).read_unaligned() as f64,
            _ => f64::from(read_scalar(data_type, p, i)),
        }
    }
}

/// Writes one element, rounded to nearest even: the same bits as a vector store. Integers saturate.
///
/// # Safety
/// Element `i`, of this type and counted from `p`, exists and is writable.
#[inline(always)]
pub(crate) unsafe fn write_scalar(data_type: DataType, p: *mut u8, i: usize, x: f32) {
    // SAFETY: guaranteed by the caller; no alignment is needed.
    unsafe {
        match data_type {
            DataType::F32 => p.cast::<f32>().add(i).write_unaligned(x),
            DataType::F64 => p.cast::<f64>().add(i).write_unaligned(f64::from(x)),
            // Rust's conversion saturates.
            DataType::S32 => p.cast::<i32>().add(i).write_unaligned(x.round_ties_even() as i32),
            DataType::S64 => p.cast::<i64>().add(i).write_unaligned(x.round_ties_even() as i64),
            DataType::S8 => p.add(i).write(codes::s8_code(x)),
            DataType::U8 => p.add(i).write(codes::u8_code(x)),
            DataType::F8E4m3 => p.add(i).write(codes::e4m3_code(x)),
            DataType::E8m0 => p.add(i).write(codes::e8m0_code(x)),
            DataType::F8E5m2 => p.add(i).write(codes::e5m2_code(x)),
            DataType::Bf16 => p.cast::<u16>().add(i).write_unaligned(bf16_bits(x)),
            DataType::F16 => p.cast::<u16>().add(i).write_unaligned(f16_bits(x)),
        }
    }
}

/// Writes one element from f64, rounded once.
///
/// # Safety
/// As [`write_scalar`].
#[inline(always)]
pub(crate) unsafe fn write_wide(data_type: DataType, p: *mut u8, i: usize, x: f64) {
    // SAFETY: guaranteed by the caller; no alignment is needed.
    unsafe {
        match data_type {
            DataType::F64 => p.cast::<f64>().add(i).write_unaligned(x),
            DataType::S32 => p.cast::<i32>().add(i).write_unaligned(s32_value(x)),
            DataType::S64 => p.cast::<i64>().add(i).write_unaligned(s64_value(x)),
            DataType::F32 => p.cast::<f32>().add(i).write_unaligned(x as f32),
            _ => write_scalar(data_type, p, i, rounded_to_odd(x)),
        }
    }
}

/// An f32 that rounds to fewer bits as `x` does: `x` truncated, with the last bit set if that lost something.
#[inline(always)]
pub(super) fn rounded_to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    // If rounding moved away from zero, step back. The last bit records a loss.
    let truncated = if back.abs() > x.abs() { bits - 1 } else { bits };
    let odd = truncated | u32::from(back != x);
    f32::from_bits(if x.is_nan() { bits } else { odd })
}

/// The s64 nearest to `x`, ties to even; saturates, and NaN gives 0.
#[inline(always)]
fn s64_value(x: f64) -> i64 {
    // 2^52. Larger numbers are integers; adding and subtracting it, with the sign of `x`, rounds smaller ones.
    const INTEGERS: f64 = 4_503_599_627_370_496.0;
    let signed = INTEGERS.copysign(x);
    let rounded = if x.abs() < INTEGERS { (x + signed) - signed } else { x };
    rounded as i64
}

/// The s32 nearest to `x`, ties to even; saturates, and NaN gives 0.
#[inline(always)]
fn s32_value(x: f64) -> i32 {
    // Adding this to a number below 2^51 rounds it to an integer in the lowest bits.
    const TO_INTEGER: f64 = 6_755_399_441_055_744.0;
    let x = if x.is_nan() { 0.0 } else { x };
    let x = if x < f64::from(i32::MIN) { f64::from(i32::MIN) } else { x };
    let x = if x > f64::from(i32::MAX) { f64::from(i32::MAX) } else { x };
    (x + TO_INTEGER).to_bits() as i32
}

/// The bf16 bits of an f32, rounded to nearest even in integer arithmetic. NaN keeps its upper half and becomes quiet.
#[inline(always)]
pub(crate) fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return (bits >> 16) as u16 | 0x40;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The binary16 bits of an f32, rounded to nearest even, including subnormals; NaN becomes quiet.
#[inline(always)]
pub(crate) fn f16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00 | (magnitude >> 13 & 0x3ff) as u16;
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00; // 65536 and above; 65520 to 65535 round up below
    }
    if magnitude < 0x3880_0000 {
        // Below 2^-14: adding 0.5 aligns the last place with 2^-24, the unit of binary16's subnormals, and rounds.
        let aligned = f32::from_bits(magnitude) + 0.5;
        return sign | (aligned.to_bits() - 0x3f00_0000) as u16;
    }
    let rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    sign | ((rounded - 0x3800_0000) >> 13) as u16
}

/// The f32 value of binary16 bits, exactly.
#[inline(always)]
pub(crate) fn f16_value(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let value = if magnitude < 0x400 {
        // Subnormal: a multiple of 2^-24, exact.
        (magnitude as f32 * f32::from_bits(0x3380_0000)).to_bits()
    } else if magnitude >= 0x7c00 {
        0x7f80_0000 | magnitude << 13 & 0x007f_ffff | u32::from(magnitude > 0x7c00) << 22
    } else {
        (magnitude << 13) + 0x3800_0000
    };
    f32::from_bits(sign | value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 16-bit pattern, and the f32 values around each rounding boundary, against `half`.
    #[test]
    fn conversions_agree_with_the_half_crate() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_value(bits), half::f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan());
            for value in [ours, f32::from_bits(u32::from(bits) << 16)] {
                for nudge in [0u32, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001] {
                    let x = f32::from_bits(value.to_bits().wrapping_add(nudge));
                    let (f, b) = (half::f16::from_f32(x), half::bf16::from_f32(x));
                    if x.is_nan() {
                        assert!(half::f16::from_bits(f16_bits(x)).is_nan());
                        assert!(half::bf16::from_bits(bf16_bits(x)).is_nan());
                    } else {
                        assert_eq!(f16_bits(x), f.to_bits(), "{x:e}");
                        assert_eq!(bf16_bits(x), b.to_bits(), "{x:e}");
                    }
                }
            }
        }
    }
}
