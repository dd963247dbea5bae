//! The normalization of heads, `x / sqrt(mean(x^2) + epsilon)`, with the bits of a layer normalization.
//!
//! The reciprocal RMS of up to 16 heads is computed together, one per lane. If squares overflow or vanish in f32, the
//! heads are normalized here, element by element in f64, and the rotation reads the results.

use super::problem::Norm;
use crate::rows::statistics::{LARGEST_MEAN_SQUARE, SMALLEST_MEAN_SQUARE, in_range, reciprocal};
use crate::rows::{halve, plain_fold};
use crate::simd::{
    BLOCK, Bf16, Element, F16, F32, Fold, GROUP, LANES, LaneSums, Level, Runtime, Simd, Terms,
    Width, entry_points, fold, lane_sums, read_scalar, read_wide, write_scalar, write_wide,
};
use crate::tensor::DataType;

/// Equally spaced heads whose statistics are computed.
pub(super) struct Heads {
    pub(super) data_type: DataType,
    pub(super) cols: usize,
    pub(super) epsilon: f64,
    pub(super) src: *const u8,
    /// The stride in bytes.
    pub(super) step: usize,
    /// At most 16.
    pub(super) count: usize,
}

/// The squares of a head.
struct Squares<E> {
    element: E,
    src: *const u8,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, E: Element> Fold<S, 1> for Squares<E> {
    #[inline(always)]
    unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, 1> {
        unsafe {
            let x = width.load_as::<S, _>(self.element, self.src, i);
            Terms::products([(x, x)])
        }
    }
}

impl Heads {
    #[inline(always)]
    fn squares<E: Element>(&self, head: usize) -> Squares<E> {
        Squares { element: E::of(self.data_type), src: self.src.wrapping_add(head * self.step) }
    }
}

/// Stores the reciprocal RMS of each head at `r`, which has room for 16. Returns whether all are accurate; otherwise
/// the heads need f64.
///
/// # Safety
/// The heads exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn reciprocals<S: Simd, E: Element>(heads: &Heads, r: *mut f32) -> bool {
    let per_col = 1.0 / heads.cols as f64;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let sums = if heads.cols <= GROUP {
            // Missing heads get a mean square of 1.
            let one = S::wide_splat(heads.cols as f64 / LANES as f64);
            let mut lanes = LaneSums::NONE;
            for head in 0..heads.count {
                let sums = lane_sums::<S, 1, _>(heads.cols, &heads.squares::<E>(head));
                lanes.set::<S>(head, sums.products[0]);
            }
            for head in heads.count..LANES {
                lanes.set::<S>(head, one);
            }
            lanes.totals::<S>()
        } else {
            let mut sums = [heads.cols as f64; LANES];
            for head in 0..heads.count {
                sums[head] = fold::<S, 1, _>(heads.cols, &heads.squares::<E>(head)).products[0];
            }
            S::wide_load(sums.as_ptr())
        };
        let mean_squares = S::wide_mul(sums, S::wide_splat(per_col));
        if !S::wide_all_between(mean_squares, SMALLEST_MEAN_SQUARE, LARGEST_MEAN_SQUARE) {
            return false;
        }
        let root = S::wide_sqrt(S::wide_add(mean_squares, S::wide_splat(heads.epsilon)));
        S::store(r, S::narrow(S::wide_div(S::wide_splat(1.0), root)));
        true
    }
}

entry_points! {
    /// Reciprocal RMS, per level.
    mod entries: reciprocals<E: Element>(heads: &Heads, r: *mut f32) -> bool;
}

pub(super) type Entry = unsafe fn(&Heads, *mut f32) -> bool;

/// The kernel for a type.
pub(super) fn entry(level: Level, data_type: DataType) -> Entry {
    let found = match data_type {
        DataType::F32 => entries::at::<F32>(level),
        DataType::Bf16 => entries::at::<Bf16>(level),
        DataType::F16 => entries::at::<F16>(level),
        _ => entries::at::<Runtime>(level),
    };
    found.unwrap_or(entries::portable::entry_portable::<Runtime>)
}

/// A head of any layout, its scale, and the type to which normalized values are rounded.
pub(super) struct PlainHead<'a> {
    pub(super) get: &'a dyn Fn(usize) -> f32,
    pub(super) scale: *const f32,
    pub(super) rounded: Option<DataType>,
}

/// Normalizes a head element by element.
///
/// # Safety
/// The scale has as many elements as the head.
pub(super) unsafe fn normalize(head: &PlainHead<'_>, norm: &Norm, values: &mut [f32]) {
    let (cols, x) = (values.len(), head.get);
    // SAFETY: guaranteed by the caller.
    let scale = |col: usize| unsafe { head.scale.add(col).read_unaligned() };
    let mean_square = plain_fold(cols, |col| (x(col), x(col))) * (1.0 / cols as f64);
    let zeros = || mean_square == 0.0 && (0..cols).all(|col| x(col) == 0.0);
    let single = in_range(mean_square) || zeros();
    let square = if single { mean_square } else { f64_squares(x, cols) / cols as f64 };
    let r = reciprocal(square, norm.epsilon);
    for (col, value) in values.iter_mut().enumerate() {
        if single {
            *value = x(col) * r as f32 * scale(col);
            if let Some(data_type) = head.rounded {
                *value = stored(data_type, |place| {
                    // SAFETY: there is room for an element.
                    unsafe { write_scalar(data_type, place, 0, *value) }
                }) as f32;
            }
        } else {
            let exact = f64::from(x(col)) * r * f64::from(scale(col));
            let data_type = head.rounded.unwrap_or(DataType::F32);
            *value = stored(data_type, |place| {
                // SAFETY: as above.
                unsafe { write_wide(data_type, place, 0, exact) }
            }) as f32;
        }
    }
}

/// The value of an element after it is stored.
fn stored(data_type: DataType, write: impl FnOnce(*mut u8)) -> f64 {
    let mut place = [0u8; size_of::<f64>()];
    write(place.as_mut_ptr());
    // SAFETY: an element was written.
    unsafe { read_wide(data_type, place.as_ptr(), 0) }
}

/// The sum of the squares of a head, in f64 throughout.
fn f64_squares(x: &dyn Fn(usize) -> f32, cols: usize) -> f64 {
    let mut total = 0.0;
    for block in (0..cols).step_by(BLOCK) {
        let mut lanes = [0.0f64; LANES];
        for col in block..cols.min(block + BLOCK) {
            let value = f64::from(x(col));
            lanes[(col - block) % LANES] += value * value;
        }
        total += halve(lanes);
    }
    total
}

/// An element of a dense head.
///
/// # Safety
/// It exists.
pub(super) unsafe fn element(data_type: DataType, src: *const u8, col: usize) -> f32 {
    // SAFETY: guaranteed by the caller.
    unsafe { read_scalar(data_type, src, col) }
}
