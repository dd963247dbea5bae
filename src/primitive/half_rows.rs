//! Binary functions of rows of a 16-bit type, without buffers of f32.

use super::BinaryAlgorithm;
use super::chunk::binary_function;
use crate::simd::lanes::Lanes;
use crate::simd::{Bf16, Element, F16, LANES, Level, Simd, UpTo, Width, entry_points, unroll};
use crate::tensor::DataType;

/// Dense rows of two inputs and an output, which may be one of the inputs. All have one type.
pub(crate) struct HalfRows {
    pub(crate) algorithm: BinaryAlgorithm,
    pub(crate) data_type: DataType,
    /// The first rows, and the distance between rows in elements.
    pub(crate) inputs: [(*mut u8, usize); 2],
    pub(crate) output: (*mut u8, usize),
    pub(crate) cols: usize,
    /// Whether rows are written with non-temporal stores, if their alignment allows. A fence must follow.
    pub(crate) streams: bool,
    /// Whether inputs are prefetched.
    pub(crate) prefetches: bool,
}

/// Vectors that are rounded at once.
const BLOCK: usize = 4;
/// How far ahead inputs are prefetched, in bytes.
const AHEAD: usize = 2048;

/// # Safety
/// The rows exist, are aligned, and are not used by another thread. The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn combine<S: Simd, E: Element>(rows: &HalfRows, count: usize) {
    // Sums and comparisons are often 0, and a branch for each block would be mispredicted.
    let element = E::of(rows.data_type).with_zeros(true);
    let size = element.size();
    let [(x_rows, x_step), (y_rows, y_step)] = rows.inputs;
    let (to_rows, to_step) = rows.output;
    for row in 0..count {
        let xs = x_rows.wrapping_add(row * x_step * size);
        let ys = y_rows.wrapping_add(row * y_step * size);
        let to = to_rows.wrapping_add(row * to_step * size);
        let streams = rows.streams && element.streams(to);
        let cols = rows.cols;
        macro_rules! each_row {
            (by $vectors:tt, |$x:ident, $y:ident| $value:expr) => {{
                let end = cols - cols % (BLOCK * LANES);
                let mut i = 0;
                while i < end {
                    if rows.prefetches {
                        unroll!(line in 2, {
                            let at = i * size + 64 * line + AHEAD;
                            S::prefetch(xs.wrapping_add(at));
                            S::prefetch(ys.wrapping_add(at));
                        });
                    }
                    let mut values = S::zeros::<BLOCK>();
                    unroll!(v in BLOCK, {
                        let $x = Lanes::<S>::new(element.load::<S>(xs, i + v * LANES));
                        let $y = Lanes::<S>::new(element.load::<S>(ys, i + v * LANES));
                        values[v] = ($value).vector();
                    });
                    if streams {
                        element.stream_all::<S, BLOCK>(to, i, &values);
                    } else {
                        element.store_all::<S, BLOCK>(to, i, &values);
                    }
                    i += BLOCK * LANES;
                }
                while i < cols {
                    let width = UpTo(LANES.min(cols - i));
                    let $x = Lanes::<S>::new(width.load_as::<S, E>(element, xs, i));
                    let $y = Lanes::<S>::new(width.load_as::<S, E>(element, ys, i));
                    width.store_as::<S, E>(element, to, i, ($value).vector());
                    i += LANES;
                }
            }};
        }
        // SAFETY: guaranteed by the caller; the loops stay within the rows.
        unsafe { binary_function!(rows.algorithm, each_row) };
    }
}

entry_points! {
    /// Rows, per level.
    mod entries: combine<E: Element>(rows: &HalfRows, count: usize) -> ();
}

pub(crate) type HalfEntry = unsafe fn(&HalfRows, usize);

/// The function for a type; `None` if rows must be converted to f32.
pub(crate) fn half_entry(level: Level, data_type: DataType) -> Option<HalfEntry> {
    match data_type {
        DataType::Bf16 => entries::at::<Bf16>(level),
        DataType::F16 => entries::at::<F16>(level),
        _ => None,
    }
}
