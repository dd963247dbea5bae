//! Matrices of f32 rearranged into panels: vectors of 16 neighbours along one dimension, one for each index of the
//! other.

use crate::heap::LINE;
use crate::simd::lanes::Lanes;
use crate::simd::{LANES, Level, Simd, entry_points, unroll};

/// Rows of f32, and the panels that they become.
pub(super) struct Panels {
    pub(super) rows: *const f32,
    /// The row stride.
    pub(super) step: usize,
    pub(super) count: usize,
    pub(super) cols: usize,
    /// Whether a vector holds 16 rows of a column; otherwise, 16 columns of a row.
    pub(super) of_rows: bool,
    pub(super) panels: *mut f32,
    /// The stride of panels.
    pub(super) panel: usize,
    /// The rows to prefetch meanwhile.
    pub(super) later: Option<[Later; 2]>,
}

/// Rows of a tensor or of results that are read later. As many rows are fetched as are rearranged.
#[derive(Clone, Copy)]
pub(super) struct Later {
    pub(super) start: *const u8,
    /// The row stride and the size of a row, in bytes.
    pub(super) step: usize,
    pub(super) size: usize,
}

impl Later {
    pub(super) const NONE: Self = Self { start: std::ptr::null(), step: 0, size: 0 };

    /// The rows from `row` on.
    #[inline(always)]
    fn from(self, row: usize) -> Self {
        Self { start: self.start.wrapping_add(row * self.step), ..self }
    }

    /// Prefetches a part of 16 rows, in the order of their addresses.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn fetch<S: Simd>(self, part: usize, parts: usize) {
        let lines = self.size.div_ceil(LINE);
        let each = (LANES * lines).div_ceil(parts);
        for line in part * each..(part + 1) * each {
            let place = line / lines * self.step + line % lines * LINE;
            // SAFETY: guaranteed by the caller.
            unsafe { S::prefetch(self.start.wrapping_add(place)) };
        }
    }
}

const HALF: usize = LANES / 2;

/// The first row of a pair of rows that are `distance` apart.
const fn first_of(pair: usize, distance: usize) -> usize {
    pair / distance * 2 * distance + pair % distance
}

/// A step of a transposition: rows this far apart exchange lanes this far apart.
macro_rules! exchange {
    ($tile:ident, $S:ident, $rows:expr, $distance:literal) => {
        unroll!(to 8: pair in $rows / 2, {
            const A: usize = first_of(pair, $distance);
            const B: usize = A + $distance;
            // SAFETY: guaranteed by the caller.
            [$tile[A], $tile[B]] = unsafe { $S::exchange::<$distance>($tile[A], $tile[B]) };
        });
    };
}

/// Transposes 16 rows of 16.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn transpose<S: Simd>(tile: &mut [S::F32x16; LANES]) {
    exchange!(tile, S, LANES, 8);
    exchange!(tile, S, LANES, 4);
    exchange!(tile, S, LANES, 2);
    exchange!(tile, S, LANES, 1);
}

/// Transposes 8 rows of 8, in the first halves of vectors.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn transpose_half<S: Simd>(tile: &mut [S::F32x16; HALF]) {
    exchange!(tile, S, HALF, 4);
    exchange!(tile, S, HALF, 2);
    exchange!(tile, S, HALF, 1);
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
            if rows == LANES && cols == LANES && S::UNROLLS && !S::MANY_REGISTERS {
                // A quarter at a time fits the registers.
                unroll!(quarter in 4, {
                    const ROW: usize = quarter / 2 * HALF;
                    const COL: usize = quarter % 2 * HALF;
                    let mut tile = S::zeros::<HALF>();
                    let from = from.wrapping_add(ROW * self.step + COL);
                    unroll!(to 8: i in HALF, {
                        let from = from.wrapping_add(i * self.step);
                        tile[i] = Lanes::<S>::load(from, HALF).vector();
                    });
                    transpose_half::<S>(&mut tile);
                    unroll!(to 8: i in HALF, {
                        let to = to.wrapping_add((COL + i) * LANES + ROW);
                        Lanes::<S>::new(tile[i]).store(to, HALF);
                    });
                });
                return;
            }
            let mut tile = S::zeros::<LANES>();
            if rows == LANES && cols == LANES && S::UNROLLS {
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
            for row in 0..job.count {
                let (from, to) =
                    (job.rows.wrapping_add(row * job.step), job.panels.wrapping_add(row * LANES));
                let mut col = 0;
                while col < job.cols {
                    let v = Lanes::<S>::load(from.wrapping_add(col), LANES.min(job.cols - col));
                    v.store(to.wrapping_add(col / LANES * job.panel), LANES);
                    col += LANES;
                }
            }
            return;
        }
        let mut row = 0;
        while row < job.count {
            let rows = LANES.min(job.count - row);
            let mut col = 0;
            while col < job.cols {
                for later in job.later.iter().flatten() {
                    later.from(row).fetch::<S>(col / LANES, job.cols.div_ceil(LANES));
                }
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
