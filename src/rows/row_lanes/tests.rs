//! Each rule gives the same bits for one, four and sixteen rows at once, at every level that the machine supports.

use super::*;
use crate::simd::{LANES, Level, entry_points};
use std::array::from_fn;

/// The results of the rules for 16 rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Results {
    /// The stored means.
    mean: [u32; LANES],
    variance: [u64; LANES],
    high: [u32; LANES],
    low: [u32; LANES],
    r: [u32; LANES],
    shift: [u32; LANES],
    slope: [u32; LANES],
    /// Whether f32 is accurate enough for all rows, with computed and with given statistics.
    trusted: [bool; 2],
}

/// The inputs of 16 rows.
struct Rows {
    mean_square: [f64; LANES],
    mean: [f64; LANES],
    about: [f32; LANES],
    sums: [[f64; LANES]; 2],
}

const EPSILON: f64 = 1e-5;
const COLS: usize = 77;

/// Applies the rules to the rows that `load` reads; `store` and `store_rounded` store the results.
///
/// # Safety
/// As [`RowLanes`].
#[inline(always)]
unsafe fn results<L: RowLanes, const RMS: bool>(
    [mean_square, mean, about, d, d_xhat]: [L; 5],
) -> (L, [L::Rounded; 5], [bool; 2]) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (variance, trusted) = variance_about::<L, RMS>(mean_square, mean, about);
        let given = given_in_range::<L, RMS>(mean, variance);
        let Normalizers { high, low, r } = Normalizers::<L>::new::<RMS>(mean, variance, EPSILON);
        let [shift, slope] = slopes::<L>(r, COLS, [d, d_xhat]);
        (variance, [high, low, r, shift, slope], [trusted, given])
    }
}

/// Applies the rules to sixteen rows at once, four at a time, and one at a time.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn compute<S: Simd, const RMS: bool>(rows: &Rows, out: &mut [Results; 3]) {
    let about = rows.about.map(f64::from);
    let numbers = [&rows.mean_square, &rows.mean, &about, &rows.sums[0], &rows.sums[1]];
    *out = [Results { trusted: [true; 2], ..Results::default() }; 3];
    // SAFETY: guaranteed by the caller; arrays have 16 numbers.
    unsafe {
        let mut store = |which: usize, first: usize, variance: &[f64], rounded: [&[f32]; 5]| {
            let out = &mut out[which];
            for (i, variance) in variance.iter().enumerate() {
                let to = [&mut out.high, &mut out.low, &mut out.r, &mut out.shift, &mut out.slope];
                for (to, from) in to.into_iter().zip(rounded) {
                    to[first + i] = from[i].to_bits();
                }
                out.variance[first + i] = variance.to_bits();
            }
        };
        let load = |i: usize| Sixteen::<S>(S::wide_load(numbers[i].as_ptr()));
        let (variance, rounded, trusted) = results::<Sixteen<S>, RMS>(from_fn(load));
        let mut wide = [0.0; LANES];
        S::wide_store(wide.as_mut_ptr(), variance.0);
        let rounded = rounded.map(|v| {
            let mut lanes = [0.0; LANES];
            S::store(lanes.as_mut_ptr(), v);
            lanes
        });
        store(0, 0, &wide, rounded.each_ref().map(|lanes| &lanes[..]));
        let mut all_trusted = [trusted, [true; 2], [true; 2]];
        for first in (0..LANES).step_by(FOUR) {
            let load = |i: usize| Four::<S>(S::F64x4::load(numbers[i].as_ptr().add(first)));
            let (variance, rounded, trusted) = results::<Four<S>, RMS>(from_fn(load));
            let mut wide = [0.0; FOUR];
            S::F64x4::store(wide.as_mut_ptr(), variance.0);
            store(1, first, &wide, rounded.each_ref().map(|lanes| &lanes[..]));
            all_trusted[1] = from_fn(|k| all_trusted[1][k] && trusted[k]);
        }
        for row in 0..LANES {
            let (variance, rounded, trusted) = results::<f64, RMS>(from_fn(|i| numbers[i][row]));
            store(2, row, &[variance], rounded.each_ref().map(std::slice::from_ref));
            all_trusted[2] = from_fn(|k| all_trusted[2][k] && trusted[k]);
        }
        let mut means = [[0.0_f32; LANES]; 3];
        Sixteen::<S>::store_rounded(means[0].as_mut_ptr(), load(1));
        for first in (0..LANES).step_by(FOUR) {
            let mean = Four::<S>(S::F64x4::load(rows.mean.as_ptr().add(first)));
            Four::<S>::store_rounded(means[1].as_mut_ptr().add(first), mean);
        }
        for (mean, stored) in rows.mean.into_iter().zip(&mut means[2]) {
            f64::store_rounded(stored, mean);
        }
        for ((out, trusted), means) in out.iter_mut().zip(all_trusted).zip(means) {
            out.trusted = trusted;
            out.mean = means.map(f32::to_bits);
        }
    }
}

entry_points! {
    /// The rules, per level.
    mod entries: compute<; const RMS: bool>(rows: &Rows, out: &mut [Results; 3]) -> ();
}

/// Rows whose numbers have the exponents `low` to `high`.
fn rows(seed: &mut u64, low: i32, high: i32) -> Rows {
    let mut next = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*seed >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut number =
        || (1.0 + next()) * f64::from(low + (next() * f64::from(high - low)) as i32).exp2();
    let mean_square: [f64; LANES] = from_fn(|_| number());
    let mean: [f64; LANES] = from_fn(|_| number() - number());
    // Near enough for most rows.
    let about = from_fn(|i| (mean[i] + 0.5 * mean_square[i].sqrt()) as f32);
    Rows { mean_square, mean, about, sums: from_fn(|_| from_fn(|_| number() - number())) }
}

#[test]
fn one_four_and_sixteen_rows_have_the_same_bits() {
    let mut seed = 1;
    let mut outcomes = [[0; 2]; 2];
    for case in 0..2000 {
        let (low, high) = [(-10, 10), (-119, -100), (-124, -119), (100, 126), (120, 130)][case % 5];
        let rows = rows(&mut seed, low, high);
        let mut expected: [Option<Results>; 2] = [None; 2];
        for level in Level::available() {
            use entries::{at, portable::entry_portable as portable};
            let kernels = [
                at::<false>(*level).unwrap_or(portable::<false>),
                at::<true>(*level).unwrap_or(portable::<true>),
            ];
            for (rms, kernel) in kernels.into_iter().enumerate() {
                let mut found = [Results::default(); 3];
                // SAFETY: the machine has the level.
                unsafe { kernel(&rows, &mut found) };
                let expected = expected[rms].get_or_insert(found[0]);
                for (found, rows) in found.iter().zip([16, 4, 1]) {
                    assert_eq!(found.trusted, expected.trusted, "case {case}");
                    if found.trusted[0] {
                        assert_eq!(found, expected, "case {case}, {rows} rows, {}", level.name());
                    }
                }
                for k in 0..2 {
                    outcomes[k][usize::from(found[0].trusted[k])] += 1;
                }
            }
        }
    }
    assert!(outcomes.iter().flatten().all(|count| *count > 100), "{outcomes:?}");
}

#[test]
fn a_row_without_variance_and_epsilon_has_no_reciprocal() {
    // SAFETY: scalar code needs no instruction set.
    let found = unsafe { Normalizers::<f64>::new::<false>(3.0, 0.0, 0.0) };
    assert_eq!((found.high, found.low, found.r), (3.0, 0.0, 0.0));
}
