//! Conversion of runs of elements: load as f32 or f64, compute, round and store.
//!
//! Each loop handles one type without branches, so the compiler vectorizes it for each instruction set.

use crate::simd::{LANES, Simd, entry_points, read_scalar, read_wide, write_scalar, write_wide};
use crate::tensor::{DataType, Support, for_type};

/// Elements converted at once; they stay in the first-level cache.
pub(super) const CHUNK: usize = 256;

/// `x = src_scale*(src - src_zero) + sum*old; dst = x/dst_scale + dst_zero`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arithmetic {
    /// There is no arithmetic.
    pub(super) is_identity: bool,
    pub(super) src_scale: f64,
    pub(super) src_zero: f64,
    pub(super) sum: f64,
    pub(super) dst_scale: f64,
    pub(super) dst_zero: f64,
}

/// The arithmetic in one type, step by step.
macro_rules! apply {
    ($arithmetic:expr, $x:expr, $old:expr, $type:ty) => {{
        let a = $arithmetic;
        let x = ($x - a.src_zero as $type) * a.src_scale as $type;
        let x = if a.sum == 0.0 { x } else { x + a.sum as $type * $old };
        x / a.dst_scale as $type + a.dst_zero as $type
    }};
}

/// The types of a conversion and its arithmetic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conversion {
    pub(super) src_type: DataType,
    pub(super) dst_type: DataType,
    pub(super) arithmetic: Arithmetic,
}

impl Conversion {
    /// Whether the arithmetic is f64.
    #[inline(always)]
    fn is_wide(&self) -> bool {
        let wide = |t: DataType| t.support() == Support::Wide;
        wide(self.src_type) || wide(self.dst_type)
    }

    /// Whether the bytes are copied.
    pub(super) fn is_copy(&self) -> bool {
        self.arithmetic.is_identity && self.src_type == self.dst_type
    }

    /// Converts one element.
    ///
    /// # Safety
    /// Element `i` of src is readable, and element `o` of dst is readable and writable.
    pub(super) unsafe fn convert_element(&self, src: *const u8, i: usize, dst: *mut u8, o: usize) {
        let a = &self.arithmetic;
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.is_copy() {
                let size = self.src_type.size();
                std::ptr::copy(src.add(i * size), dst.add(o * size), size);
            } else if self.is_wide() {
                let x = read_wide(self.src_type, src, i);
                let old = if a.sum == 0.0 { 0.0 } else { read_wide(self.dst_type, dst, o) };
                let x = if a.is_identity { x } else { apply!(a, x, old, f64) };
                write_wide(self.dst_type, dst, o, x);
            } else {
                let x = read_scalar(self.src_type, src, i);
                let old = if a.sum == 0.0 { 0.0 } else { read_scalar(self.dst_type, dst, o) };
                let x = if a.is_identity { x } else { apply!(a, x, old, f32) };
                write_scalar(self.dst_type, dst, o, x);
            }
        }
    }
}

entry_points! {
    /// Conversion of runs, compiled for each level.
    mod entries: convert<>(
        conversion: &Conversion, src: *const u8, dst: *mut u8, n: usize
    ) -> ();
}

/// The conversion of runs at a level.
pub(super) type Entry = unsafe fn(&Conversion, *const u8, *mut u8, usize);

pub(super) fn entry(level: crate::simd::Level) -> Entry {
    entries::at(level).unwrap_or(entries::portable::entry_portable)
}

/// Converts `n` elements that are dense in both tensors, at most [`CHUNK`] at a time.
///
/// # Safety
/// `src` has `n` readable elements, and `dst` has `n` writable ones.
#[inline(always)]
unsafe fn convert<S: Simd>(c: &Conversion, src: *const u8, dst: *mut u8, n: usize) {
    let (from, to) = (c.src_type.size(), c.dst_type.size());
    let mut at = 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        while at < n {
            let count = (n - at).min(CHUNK);
            let (src, dst) = (src.add(at * from), dst.add(at * to));
            if c.is_wide() {
                convert_wide(c, src, dst, count);
            } else {
                convert_narrow::<S>(c, src, dst, count);
            }
            at += count;
        }
    }
}

/// # Safety
/// As [`convert`]; `n` is at most [`CHUNK`].
#[inline(always)]
unsafe fn convert_narrow<S: Simd>(c: &Conversion, src: *const u8, dst: *mut u8, n: usize) {
    let mut values = [0.0f32; CHUNK];
    let a = &c.arithmetic;
    // SAFETY: guaranteed by the caller.
    unsafe {
        load::<S>(c.src_type, src, &mut values, n);
        if !a.is_identity {
            let mut old = [0.0f32; CHUNK];
            if a.sum != 0.0 {
                load::<S>(c.dst_type, dst, &mut old, n);
            }
            for i in 0..CHUNK {
                values[i] = apply!(a, values[i], old[i], f32);
            }
        }
        store::<S>(c.dst_type, dst, &values, n);
    }
}

/// # Safety
/// As [`convert_narrow`].
#[inline(always)]
unsafe fn convert_wide(c: &Conversion, src: *const u8, dst: *mut u8, n: usize) {
    let mut values = [0.0f64; CHUNK];
    let a = &c.arithmetic;
    // SAFETY: guaranteed by the caller.
    unsafe {
        for_type!(c.src_type, |TYPE| for (i, value) in values[..n].iter_mut().enumerate() {
            *value = read_wide(TYPE, src, i);
        });
        if !a.is_identity {
            let mut old = [0.0f64; CHUNK];
            if a.sum != 0.0 {
                for_type!(c.dst_type, |TYPE| for (i, value) in old[..n].iter_mut().enumerate() {
                    *value = read_wide(TYPE, dst, i);
                });
            }
            for i in 0..CHUNK {
                values[i] = apply!(a, values[i], old[i], f64);
            }
        }
        for_type!(c.dst_type, |TYPE| for (i, value) in values[..n].iter().enumerate() {
            write_wide(TYPE, dst, i, *value);
        });
    }
}

/// Loads elements as f32.
///
/// # Safety
/// `p` has `n` elements, at most [`CHUNK`].
#[inline(always)]
unsafe fn load<S: Simd>(data_type: DataType, p: *const u8, values: &mut [f32; CHUNK], n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for_type!(data_type, |TYPE| match TYPE {
            DataType::F32 => {
                std::ptr::copy_nonoverlapping(p, values.as_mut_ptr().cast::<u8>(), n * 4);
            }
            DataType::Bf16 => load_half::<S, true>(p, values, n),
            DataType::F16 => load_half::<S, false>(p, values, n),
            // These are converted in f64.
            DataType::S32 | DataType::S64 | DataType::F64 => (),
            _ => {
                for (i, v) in values[..n].iter_mut().enumerate() {
                    *v = read_scalar(TYPE, p, i);
                }
            }
        });
    }
}

/// # Safety
/// As [`Simd`].
#[inline(always)]
unsafe fn widen<S: Simd, const BF16: bool>(v: S::U16x16) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe { if BF16 { S::from_bf16(v) } else { S::from_f16(v) } }
}

/// # Safety
/// As [`Simd`].
#[inline(always)]
unsafe fn narrow<S: Simd, const BF16: bool>(v: S::F32x16) -> S::U16x16 {
    // SAFETY: guaranteed by the caller.
    unsafe { if BF16 { S::to_bf16(v) } else { S::to_f16(v) } }
}

/// Loads bf16 or f16.
///
/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn load_half<S: Simd, const BF16: bool>(p: *const u8, values: &mut [f32; CHUNK], n: usize) {
    let (p, out) = (p.cast::<u16>(), values.as_mut_ptr());
    let (whole, rest) = (n - n % LANES, n % LANES);
    // SAFETY: guaranteed by the caller; the array has room for whole vectors.
    unsafe {
        for i in (0..whole).step_by(LANES) {
            S::store(out.add(i), widen::<S, BF16>(S::load_half(p.add(i))));
        }
        if rest > 0 {
            S::store(out.add(whole), widen::<S, BF16>(S::load_half_n(p.add(whole), rest)));
        }
    }
}

/// Rounds and stores elements.
///
/// # Safety
/// `p` has room for `n` elements, at most [`CHUNK`].
#[inline(always)]
unsafe fn store<S: Simd>(data_type: DataType, p: *mut u8, values: &[f32; CHUNK], n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for_type!(data_type, |TYPE| match TYPE {
            DataType::F32 => {
                std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), p, n * 4);
            }
            DataType::Bf16 => store_half::<S, true>(p, values, n),
            DataType::F16 => store_half::<S, false>(p, values, n),
            // These are converted in f64.
            DataType::S32 | DataType::S64 | DataType::F64 => (),
            _ => {
                for (i, v) in values[..n].iter().enumerate() {
                    write_scalar(TYPE, p, i, *v);
                }
            }
        });
    }
}

/// Stores bf16 or f16.
///
/// # Safety
/// As [`store`].
#[inline(always)]
unsafe fn store_half<S: Simd, const BF16: bool>(p: *mut u8, values: &[f32; CHUNK], n: usize) {
    let (p, from) = (p.cast::<u16>(), values.as_ptr());
    let (whole, rest) = (n - n % LANES, n % LANES);
    // SAFETY: guaranteed by the caller; the array has whole vectors.
    unsafe {
        for i in (0..whole).step_by(LANES) {
            S::store_half(p.add(i), narrow::<S, BF16>(S::load(from.add(i))));
        }
        if rest > 0 {
            S::store_half_n(p.add(whole), narrow::<S, BF16>(S::load(from.add(whole))), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    fn values() -> Vec<f64> {
        let mut values = vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300];
        for power in -160..160 {
            for nudge in [0.0, 1e-3, 0.5, 0.25, 0.125, 0.0625, 0.0625 + 1e-12, -1e-12, 2e-16] {
                let x = 2f64.powi(power) * (1.0 + nudge);
                values.extend([x, -x]);
            }
        }
        values.extend((-1100..1100).map(|i| f64::from(i) / 4.0));
        let edges = [2147483647.5, 2147483646.5, -2147483648.5, 16777217.0, 33554435.0];
        values.extend(edges);
        values
    }

    fn bytes(data_type: DataType, values: &[f64]) -> Vec<u8> {
        let mut bytes = vec![0; values.len() * data_type.size()];
        for (i, x) in values.iter().enumerate() {
            // SAFETY: there is room for every element.
            unsafe { write_wide(data_type, bytes.as_mut_ptr(), i, *x) };
        }
        bytes
    }

    /// Runs at every level have the same bits as single elements.
    #[test]
    fn levels_agree_with_single_elements() {
        let values = values();
        let n = values.len();
        let none = Arithmetic {
            is_identity: true,
            src_scale: 1.0,
            src_zero: 0.0,
            sum: 0.0,
            dst_scale: 1.0,
            dst_zero: 0.0,
        };
        let some = Arithmetic { is_identity: false, src_scale: 0.375, src_zero: 3.0, ..none };
        let all = Arithmetic { sum: -0.5, dst_scale: 1.7, dst_zero: -5.0, ..some };
        let mut compared = 0;
        let types = DataType::ALL;
        for (src_type, dst_type) in types.iter().flat_map(|s| types.map(|d| (*s, d))) {
            let src = bytes(src_type, &values);
            let before = bytes(dst_type, &vec![2.0; n]);
            for arithmetic in [none, some, all] {
                let c = Conversion { src_type, dst_type, arithmetic };
                let mut expected = before.clone();
                for i in 0..n {
                    // SAFETY: the elements are there.
                    unsafe { c.convert_element(src.as_ptr(), i, expected.as_mut_ptr(), i) };
                }
                for level in Level::available() {
                    for first in [0, 3] {
                        let mut got = before.clone();
                        let (from, to) = (first * src_type.size(), first * dst_type.size());
                        // SAFETY: the elements are there, and the machine has the level.
                        unsafe {
                            let dst = got.as_mut_ptr().add(to);
                            entry(*level)(&c, src.as_ptr().add(from), dst, n - first);
                        }
                        for (i, value) in values.iter().enumerate().skip(first) {
                            let at = i * dst_type.size()..(i + 1) * dst_type.size();
                            // SAFETY: the elements are there.
                            let (a, b) = unsafe {
                                let at = |bytes: &Vec<u8>| read_wide(dst_type, bytes.as_ptr(), i);
                                (at(&got), at(&expected))
                            };
                            let same = got[at.clone()] == expected[at] || a.is_nan() && b.is_nan();
                            assert!(same, "{c:?} {level:?} {value}: {a} {b}");
                            compared += 1;
                        }
                    }
                }
            }
        }
        assert!(compared > 1_000_000);
    }

    /// Conversion from f64 rounds to nearest even; checked against the neighbouring codes.
    #[test]
    fn every_type_rounds_to_nearest() {
        // e8m0 rounds down.
        for data_type in DataType::ALL.into_iter().filter(|t| *t != DataType::E8m0) {
            for x in values().into_iter().filter(|x| x.abs() < 1e15) {
                let mut code = [0u8; 8];
                // SAFETY: there is room for every type.
                let got = unsafe {
                    write_wide(data_type, code.as_mut_ptr(), 0, x);
                    read_wide(data_type, code.as_ptr(), 0)
                };
                if !got.is_finite() {
                    assert!(x.abs() > 440.0, "{data_type:?} {x}");
                    continue;
                }
                let size = data_type.size();
                let bits = u64::from_le_bytes(code);
                for step in [1u64, u64::MAX] {
                    let mut near = bits.wrapping_add(step).to_le_bytes();
                    near[size..].fill(0);
                    // SAFETY: as above.
                    let other = unsafe { read_wide(data_type, near.as_ptr(), 0) };
                    let (ours, theirs) = ((got - x).abs(), (other - x).abs());
                    if other.is_finite() && data_type != DataType::F64 {
                        assert!(ours <= theirs, "{data_type:?} {x}: {got} and not {other}");
                        let tie = ours == theirs && got != other;
                        assert!(!tie || bits & 1 == 0, "{data_type:?} {x}: a tie to odd");
                    }
                }
            }
        }
    }
}
