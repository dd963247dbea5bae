//! Matrices of f32 rearranged into panels: 16 neighbours of one dimension as a vector, for each index of the other.

use crate::simd::lanes::Lanes;
use crate::simd::{LANES, Level, Simd, entry_points, unroll};

/// Rows of f32, and the panels that they become.
pub(super) struct Panels {
    pub(super) rows: *const f32,
    /// The distance of rows.
    pub(super) step: usize,
    pub(super) count: usize,
    pub(super) cols: usize,
    /// Whether the vectors are of 16 rows, one for each column; else of 16 columns, one for each row.
    pub(super) of_rows: bool,
    pub(super) panels: *mut f32,
    /// The distance of panels.
    pub(super) panel: usize,
}

/// The first row of a pair of rows at a distance.
const fn first_of(pair: usize, distance: usize) -> usize {
    pair / distance * 2 * distance + pair % distance
}

/// A step of a transposition: rows at this distance exchange the lanes at this distance.
macro_rules! exchange {
    ($tile:ident, $S:ident, $distance:literal, $low:ident) => {
        unroll!(to 8: pair in 8, {
            const A: usize = first_of(pair, $distance);
            const B: usize = A + $distance;
            // SAFETY: guaranteed by the caller.
            unsafe {
                let (x, y) = ($tile[A], $tile[B]);
                $tile[A] = $S::select($low, x, $S::swap::<$distance>(y));
                $tile[B] = $S::select($low, $S::swap::<$distance>(x), y);
            }
        });
    };
}

/// The lanes whose number lacks a bit.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn without<S: Simd>(bit: usize) -> S::M {
    let mut lanes = [0.0f32; LANES];
    let mut lane = 0;
    while lane < LANES {
        lanes[lane] = if lane & bit == 0 { 0.0 } else { 1.0 };
        lane += 1;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { S::eq(S::load(lanes.as_ptr()), S::splat(0.0)) }
}

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn transpose<S: Simd>(tile: &mut [S::F32x16; LANES]) {
    // SAFETY: guaranteed by the caller.
    let [ones, twos, fours, eights] =
        unsafe { [without::<S>(1), without::<S>(2), without::<S>(4), without::<S>(8)] };
    exchange!(tile, S, 8, eights);
    exchange!(tile, S, 4, fours);
    exchange!(tile, S, 2, twos);
    exchange!(tile, S, 1, ones);
}

impl Panels {
    /// The vectors of rows `row` to `row + rows - 1` and columns `col` to `col + cols - 1`.
    ///
    /// # Safety
    /// As [`rearrange`].
    #[inline(always)]
    unsafe fn tile_of_rows<S: Simd>(
        &self,
        (row, rows): (usize, usize),
        (col, cols): (usize, usize),
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let from = self.rows.wrapping_add(row * self.step + col);
            let to = self.panels.wrapping_add(row / LANES * self.panel + col * LANES);
            let mut tile = [S::splat(0.0); LANES];
            if rows == LANES && cols == LANES {
                unroll!(to 16: i in LANES, {
                    tile[i] = S::load(from.wrapping_add(i * self.step));
                });
                transpose::<S>(&mut tile);
                unroll!(to 16: i in LANES, {
                    S::store(to.wrapping_add(i * LANES), tile[i]);
                });
                return;
            }
            for i in 0..rows {
                tile[i] = Lanes::<S>::load(from.wrapping_add(i * self.step), cols).vector();
            }
            let mut lanes = [[0.0f32; LANES]; LANES];
            for i in 0..rows {
                S::store(lanes[i].as_mut_ptr(), tile[i]);
            }
            for i in 0..cols {
                for j in 0..LANES {
                    to.wrapping_add(i * LANES + j).write(lanes[j][i]);
                }
            }
        }
    }
}

/// Writes the panels. Missing lanes of the last one are zeros.
///
/// # Safety
/// The matrices exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn rearrange<S: Simd>(job: &Panels) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !job.of_rows {
            let mut col = 0;
            while col < job.cols {
                let n = LANES.min(job.cols - col);
                let to = job.panels.wrapping_add(col / LANES * job.panel);
                for row in 0..job.count {
                    let v = Lanes::<S>::load(job.rows.wrapping_add(row * job.step + col), n);
                    v.store(to.wrapping_add(row * LANES), LANES);
                }
                col += LANES;
            }
            return;
        }
        let mut row = 0;
        while row < job.count {
            let rows = LANES.min(job.count - row);
            let mut col = 0;
            while col < job.cols {
                let cols = LANES.min(job.cols - col);
                job.tile_of_rows::<S>((row, rows), (col, cols));
                col += LANES;
            }
            row += LANES;
        }
    }
}

entry_points! {
    /// Panels, per level.
    mod entries: rearrange<>(job: &Panels) -> ();
}

pub(super) type Entry = unsafe fn(&Panels);

pub(super) fn entry(level: Level) -> Entry {
    entries::at(level).unwrap_or(entries::portable::entry_portable)
}
