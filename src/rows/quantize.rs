//! Computes scales, and zero points of u8, from the elements of a row, and divides the elements by the scales.
//!
//! [`Quantize`] works on staged rows of dst. [`RowScale`] reads rows in parts, twice, and needs no room for whole rows.
//! Both share the rules for scales and for elements.

use super::rows_of::RowsOf;
use crate::primitive::{Arguments, QuantizationMode};
use crate::simd::{
    Byte, Element, LANES, Level, Map, Simd, Width, entry_points, map, read_scalar, unroll,
    write_scalar,
};
use crate::tensor::DataType;

/// The quantization of dst.
pub(crate) struct Quantize {
    pub(crate) dst: RowsOf,
    /// One scale for each group of a row.
    pub(crate) scales: RowsOf,
    pub(crate) zero_points: Option<RowsOf>,
    /// Elements that share a scale.
    pub(crate) group: usize,
    pub(crate) mode: QuantizationMode,
}

/// A row to be quantized.
struct Row<'a> {
    values: *mut f32,
    cols: usize,
    group: usize,
    /// The largest finite value of dst's type.
    largest: f32,
    /// The largest finite value if the conversion to dst's type does not saturate. A scale that was rounded down, or to
    /// a power of two, leaves larger values.
    limit: f32,
    mode: QuantizationMode,
    scale_type: DataType,
    scales: *mut u8,
    /// Null without zero points.
    zero_points: *mut i32,
    /// The dense row of s8 to store directly; null if the caller stores the values.
    integers: *mut u8,
    memory: &'a Memory,
}

/// What rows in memory need.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Whether dst is stored non-temporally, if its alignment allows that.
    pub(crate) streams: bool,
    /// Whether it is the last row before others may read the results, which non-temporal stores then must have reached.
    pub(crate) fences: bool,
    /// A row of src to prefetch, which need not exist, or null, and the bytes of an element.
    pub(crate) next: (*const u8, usize),
}

impl Memory {
    /// Rows that are in a cache.
    pub(crate) const NONE: Self =
        Self { streams: false, fences: false, next: (std::ptr::null(), 0) };
}

/// The largest finite value of a type.
const fn largest(data_type: DataType) -> f32 {
    match data_type {
        DataType::S8 => 127.0,
        DataType::U8 => 255.0,
        DataType::F8E4m3 => 448.0,
        _ => 57344.0,
    }
}

/// The same for types whose conversion does not saturate; otherwise infinite.
const fn limit(data_type: DataType) -> f32 {
    if data_type.is_integer() { f32::INFINITY } else { largest(data_type) }
}

/// Adding this to a number below 2^22 rounds it to an integer.
const TO_INTEGER: f32 = 12_582_912.0;
/// The bits of a magnitude. Those of NaN compare above all others.
const MAGNITUDE: u32 = !(1 << 31);

/// The unrounded scale of a group whose largest magnitude is `most`.
#[inline(always)]
fn scale_of(mode: QuantizationMode, most: f32, largest: f32) -> f32 {
    if mode != QuantizationMode::DynamicMx {
        return most / largest;
    }
    // Only the exponent: a power of two, at least the smallest of e8m0.
    let exponent = |x: f32| x.to_bits() >> 23;
    if exponent(most) == exponent(f32::INFINITY) {
        return f32::NAN;
    }
    let beyond = exponent(largest) - exponent(1.0);
    let biased = exponent(most).saturating_sub(beyond);
    if biased == 0 { f32::MIN_POSITIVE / 2.0 } else { f32::from_bits(biased << 23) }
}

/// The smallest and the largest scale of f8_e4m3: its smallest subnormal and its largest finite number.
const E4M3_SCALES: (f32, f32) = (1.0 / 512.0, 448.0);

/// Rounds the scale of a group whose largest magnitude is `most` to its type and stores it; 1 for a group of zeros, or
/// if the reciprocal would overflow. Scales of f8_e4m3, which would often be 0 or NaN, stay within its numbers.
///
/// # Safety
/// There is room for it.
#[inline(always)]
unsafe fn store_scale(
    (data_type, scales): (DataType, *mut u8),
    at: usize,
    mut scale: f32,
    most: f32,
) -> f32 {
    macro_rules! stored {
        ($data_type:expr) => {{
            write_scalar($data_type, scales, at, scale);
            let rounded = read_scalar($data_type, scales, at);
            if most == 0.0 || (1.0 / rounded).is_infinite() {
                write_scalar($data_type, scales, at, 1.0);
                return 1.0;
            }
            rounded
        }};
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        match data_type {
            DataType::E8m0 => stored!(DataType::E8m0),
            DataType::F8E4m3 => {
                if most.is_finite() {
                    let (least, greatest) = E4M3_SCALES;
                    scale = if scale > greatest { greatest } else { scale };
                    scale = if scale < least { least } else { scale };
                }
                stored!(DataType::F8E4m3)
            }
            _ => stored!(DataType::F32),
        }
    }
}

/// The bits of the largest magnitude of some elements.
///
/// # Safety
/// The elements exist.
#[inline(always)]
unsafe fn measure(values: *const f32, len: usize) -> u32 {
    let mut most = 0u32;
    for i in 0..len {
        // SAFETY: guaranteed by the caller.
        most = most.max(unsafe { *values.add(i) }.to_bits() & MAGNITUDE);
    }
    most
}

/// Multiplies elements by the reciprocal of their scale, within `-limit` to `limit`.
///
/// # Safety
/// The elements exist.
#[inline(always)]
unsafe fn divide(values: *mut f32, len: usize, factor: f32, limit: f32) {
    for i in 0..len {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let x = *values.add(i) * factor;
            let x = if x > limit { limit } else { x };
            *values.add(i) = if x < -limit { -limit } else { x };
        }
    }
}

/// Multiplies elements by the reciprocal of their scale and stores them as s8.
struct Integers {
    values: *const f32,
    factor: f32,
    to: *mut u8,
    element: Byte,
    /// Whether the products are numbers that round to at most 127.
    fits: bool,
    streams: bool,
    next: (*const u8, usize),
}

impl<S: Simd> Map<S> for Integers {
    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let factor = S::splat(self.factor);
            let mut v = S::zeros::<4>();
            unroll!(k in 4, {
                v[k] = S::mul(S::load(self.values.add(i + k * LANES)), factor);
            });
            let (next, size) = self.next;
            for line in 0..size {
                S::prefetch(next.wrapping_add(i * size + line * 4 * LANES));
            }
            if !self.fits {
                v = self.element.codes::<S, 4>(&v);
            }
            unroll!(k in 4, {
                let to = self.to.add(i + k * LANES);
                if self.streams {
                    S::stream_bytes(to, v[k]);
                } else {
                    S::store_bytes(to, v[k]);
                }
            });
        }
    }
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let v = S::mul(width.load::<S>(self.values.add(i)), S::splat(self.factor));
            width.store_as::<S, _>(self.element, self.to, i, v);
        }
    }
}

/// Quantizes a row. Stores its scales and zero points, and turns its values into those of dst before rounding, or
/// stores them as integers.
///
/// # Safety
/// The row exists, its groups divide it, there is room for the scales, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn quantize_row<S: Simd>(row: &Row<'_>) {
    let mut start = 0;
    let mut at = 0;
    while start < row.cols {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let values = row.values.add(start);
            let most = f32::from_bits(measure(values, row.group));
            let scales = (row.scale_type, row.scales);
            if row.zero_points.is_null() {
                let scale = scale_of(row.mode, most, row.largest);
                let factor = 1.0 / store_scale(scales, at, scale, most);
                if row.integers.is_null() {
                    divide(values, row.group, factor, row.limit);
                } else {
                    let (to, element) = (row.integers.add(start), Byte::of(DataType::S8));
                    let streams = row.memory.streams && element.streams(to);
                    let (next, size) = row.memory.next;
                    let next = (next.wrapping_add(start * size), size);
                    let fits = row.scale_type == DataType::F32 && most.is_finite();
                    let op = Integers { values, factor, to, element, fits, streams, next };
                    map::<S, _>(row.group, &op);
                }
            } else {
                let (mut low, mut high) = (0.0f32, 0.0f32);
                for i in 0..row.group {
                    let x = *values.add(i);
                    low = if x < low { x } else { low };
                    high = if x > high { x } else { high };
                }
                let range = if most.is_nan() { most } else { high - low };
                let factor = 1.0 / store_scale(scales, at, range / row.largest, most);
                // The quotient is at most 255 unless the scale was rounded down or is the largest of its type.
                let zero = -low * factor;
                let zero = if zero > row.largest { row.largest } else { zero };
                // Rounds to nearest even.
                let zero = (zero + TO_INTEGER) - TO_INTEGER;
                // NaN converts to 0.
                row.zero_points.add(at).write_unaligned(zero as i32);
                let zero = if zero.is_nan() { 0.0 } else { zero };
                for i in 0..row.group {
                    *values.add(i) = *values.add(i) * factor + zero;
                }
            }
        }
        start += row.group;
        at += 1;
    }
    if row.memory.fences {
        // SAFETY: guaranteed by the caller.
        unsafe { S::stream_fence() };
    }
}

/// A part of a row with one scale.
struct Part {
    values: *mut f32,
    len: usize,
    /// The reciprocal of the scale, and the limit; `None` until it is known.
    known: Option<(f32, f32)>,
}

/// Divides a part by its scale, or finds its largest magnitude.
///
/// # Safety
/// The elements exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn quantize_part<S: Simd>(part: &Part) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match part.known {
            None => return measure(part.values, part.len),
            Some((factor, limit)) => divide(part.values, part.len, factor, limit),
        }
    }
    0
}

entry_points! {
    /// The quantization of a row, per level.
    mod entries: quantize_row<>(row: &Row<'_>) -> ();
}
entry_points! {
    /// The quantization of a part of a row, per level.
    mod part_entries: quantize_part<>(part: &Part) -> u32;
}

/// The quantization of f32 rows with one f32 scale each.
#[derive(Clone, Copy)]
pub(super) struct RowScale {
    entry: unsafe fn(&Part) -> u32,
    data_type: DataType,
}

impl RowScale {
    /// For elements of s8, f8_e4m3 or f8_e5m2.
    pub(super) fn new(level: Level, data_type: DataType) -> Self {
        let portable = part_entries::portable::entry_portable;
        Self { entry: part_entries::at(level).unwrap_or(portable), data_type }
    }

    /// The bits of the largest magnitude of a part.
    ///
    /// # Safety
    /// The elements exist, and the CPU supports the level.
    pub(super) unsafe fn measure(&self, values: *mut f32, len: usize) -> u32 {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.entry)(&Part { values, len, known: None }) }
    }

    /// Stores the scale of a row with this largest magnitude, and returns the factor for its elements.
    ///
    /// # Safety
    /// There is room for the scale.
    pub(super) unsafe fn factor(&self, most: u32, scale: *mut u8) -> f32 {
        let (most, largest) = (f32::from_bits(most), largest(self.data_type));
        let rough = scale_of(QuantizationMode::DynamicFp, most, largest);
        // SAFETY: guaranteed by the caller.
        1.0 / unsafe { store_scale((DataType::F32, scale), 0, rough, most) }
    }

    /// Turns the elements of a part into values of the quantized type before rounding.
    ///
    /// # Safety
    /// As [`measure`](Self::measure).
    pub(super) unsafe fn divide(&self, values: *mut f32, len: usize, factor: f32) {
        let known = Some((factor, limit(self.data_type)));
        // SAFETY: guaranteed by the caller.
        unsafe { (self.entry)(&Part { values, len, known }) };
    }
}

impl Quantize {
    /// Quantizes `cols` values of a row, from a column. The store then only has to round them to dst's type.
    ///
    /// # Safety
    /// The values are those of whole groups. The execution's buffers were checked, the row belongs to this thread, and
    /// the CPU supports the level.
    pub(crate) unsafe fn row(
        &self,
        level: Level,
        arguments: &Arguments,
        place: (usize, usize),
        values: (*mut f32, usize),
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.quantize(level, arguments, place, values, None) }
    }

    /// Like [`row`](Self::row), but also stores the values if dst is dense s8 without zero points. Returns whether it
    /// did.
    ///
    /// # Safety
    /// As [`row`](Self::row).
    pub(crate) unsafe fn stored_row(
        &self,
        level: Level,
        arguments: &Arguments,
        place: (usize, usize),
        values: (*mut f32, usize),
        memory: &Memory,
    ) -> bool {
        let fits = self.dst.data_type == DataType::S8 && self.dst.step == 1;
        if !fits || self.zero_points.is_some() {
            return false;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.quantize(level, arguments, place, values, Some(memory)) }
        true
    }

    /// Quantizes values, and optionally stores them.
    ///
    /// # Safety
    /// As [`row`](Self::row), and [`stored_row`](Self::stored_row) if they are stored.
    unsafe fn quantize(
        &self,
        level: Level,
        arguments: &Arguments,
        (row, col): (usize, usize),
        (values, cols): (*mut f32, usize),
        stores: Option<&Memory>,
    ) {
        let (points, first) = (self.zero_points.as_ref(), col / self.group.max(1));
        let largest = largest(self.dst.data_type);
        let integers = match stores {
            Some(_) => self.dst.at(arguments, row, col),
            None => std::ptr::null_mut(),
        };
        let row = Row {
            values,
            cols,
            group: self.group,
            largest,
            limit: limit(self.dst.data_type),
            mode: self.mode,
            scale_type: self.scales.data_type,
            scales: self.scales.at(arguments, row, first),
            zero_points: points
                .map_or(std::ptr::null_mut(), |p| p.at(arguments, row, first).cast()),
            integers,
            memory: stores.unwrap_or(&Memory::NONE),
        };
        let entry = entries::at(level).unwrap_or(entries::portable::entry_portable);
        // SAFETY: guaranteed by the caller.
        unsafe { entry(&row) };
    }
}
