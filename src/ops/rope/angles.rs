//! The cosines and sines of tokens, in the layout that the rotation reads.
//!
//! ```text
//! from frequencies   cos(p * f), sin(p * f)      products, their reduction and polynomials in f64
//! from tables        row p
//! ```
//!
//! Both are multiplied by the magnitude and rounded to f32 once. Distant pairs have one cosine and one sine each:
//! `width` cosines, then `width` sines. Neighbours have two of each, with the first sine negated, so that the rotation
//! is `x*cos + swap(x)*sin`. Backward negates all sines.

use super::problem::{AngleSource, MOST_SECTIONS, Rope};
use crate::simd::lanes::{Lanes, Wide};
use crate::simd::{Element, LANES, Level, Runtime, Simd, UpTo, Width, entry_points, math};
use crate::tensor::DataType;
use norm_sys as sys;

/// The source of a problem's angles.
pub(super) struct Angles<'a> {
    problem: &'a Rope,
    pub(super) pairs: usize,
    /// Whether each pair has two cosines and two sines.
    pub(super) doubled: bool,
    /// Whether whole vectors are in the order of [`Simd::in_turn`].
    in_turn: bool,
    /// The number of cosines of a token, in whole vectors; also that of sines.
    pub(super) width: usize,
    frequencies: *const f64,
    /// The tables of cosines and sines, their type, and their row stride.
    tables: [*const u8; 2],
    table_type: DataType,
    table_step: usize,
}

// SAFETY: it only reads inputs, which nothing writes during the execution.
unsafe impl Sync for Angles<'_> {}

/// The signs of the sines of neighbours.
static ALTERNATE: [f32; LANES] = {
    let mut signs = [0.0; LANES];
    let mut i = 0;
    while i < LANES {
        signs[i] = -0.0;
        i += 2;
    }
    signs
};

/// The number of floats for a token's cosines, the same as for its sines.
pub(super) fn width(problem: &Rope) -> usize {
    let places = if problem.distance() == 1 && is_doubled(problem) {
        problem.rotary_dims
    } else {
        problem.rotary_dims / 2
    };
    places.next_multiple_of(LANES)
}

fn is_doubled(problem: &Rope) -> bool {
    problem.pairing == super::problem::Pairing::Interleaved
}

impl<'a> Angles<'a> {
    /// From the addresses of the frequencies, or of the tables of cosines and sines.
    pub(super) fn new(
        problem: &'a Rope,
        in_turn: bool,
        frequencies: *const u8,
        tables: [*const u8; 2],
    ) -> Self {
        let table = problem.desc(sys::NORM_ARG_ROPE_COS);
        Self {
            problem,
            pairs: problem.rotary_dims / 2,
            doubled: is_doubled(problem),
            in_turn,
            width: width(problem),
            frequencies: frequencies.cast(),
            tables,
            table_type: table.data_type().unwrap_or(DataType::F32),
            table_step: table.strides().first().map_or(0, |step| *step as usize),
        }
    }

    /// The sines and cosines of pairs `i` to `i + n - 1`.
    ///
    /// # Safety
    /// The arguments exist, `positions` has a position for each part, and the instruction set of `S` is there.
    #[inline(always)]
    unsafe fn get<S: Simd>(&self, positions: *const i64, i: usize, n: usize) -> [Lanes<S>; 2] {
        let problem = self.problem;
        // SAFETY: guaranteed by the caller. Missing lanes are 0.
        unsafe {
            if problem.angles == AngleSource::Tables {
                return [self.row::<S>(1, positions, i, n), self.row::<S>(0, positions, i, n)];
            }
            let at = self.frequencies.add(i);
            let frequency = UpTo(n).load_wide::<S>(at);
            let position = if problem.sections.is_empty() {
                S::wide_splat(*positions as f64)
            } else {
                let mut each = [0.0; LANES];
                for lane in 0..n {
                    each[lane] = *positions.add(problem.section_of(i + lane)) as f64;
                }
                S::wide_load(each.as_ptr())
            };
            let angle = Wide::<S>::new(position) * Wide::<S>::new(frequency);
            math::scaled_sin_cos(angle, f64::from(problem.magnitude))
        }
    }

    /// The row of a table.
    #[inline(always)]
    fn start(&self, table: usize, position: i64) -> *const u8 {
        let row = position as usize * self.table_step * self.table_type.size();
        self.tables[table].wrapping_add(row)
    }

    /// The values of a table times the magnitude.
    ///
    /// # Safety
    /// As [`get`](Self::get).
    #[inline(always)]
    unsafe fn row<S: Simd>(
        &self,
        table: usize,
        positions: *const i64,
        i: usize,
        n: usize,
    ) -> Lanes<S> {
        let (problem, element) = (self.problem, <Runtime as Element>::of(self.table_type));
        // SAFETY: guaranteed by the caller; positions were checked to be rows of the table.
        unsafe {
            let values = if !problem.sections.is_empty() {
                let mut each = [0.0; LANES];
                for lane in 0..n {
                    let one = element.load_n::<S>(
                        self.start(table, *positions.add(problem.section_of(i + lane))),
                        i + lane,
                        1,
                    );
                    S::store_n(each.as_mut_ptr().add(lane), one, 1);
                }
                S::load(each.as_ptr())
            } else {
                UpTo(n).load_as::<S, _>(element, self.start(table, *positions), i)
            };
            Lanes::<S>::new(values) * problem.magnitude
        }
    }

    /// Stores a vector of cosines and one of sines.
    ///
    /// # Safety
    /// As [`put`](Self::put).
    #[inline(always)]
    unsafe fn place<S: Simd>(&self, [sine, cosine]: [S::F32x16; 2], out: *mut f32, whole: bool) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let [sine, cosine] = match self.in_turn && whole {
                true => [S::in_turn(sine), S::in_turn(cosine)],
                false => [sine, cosine],
            };
            S::store(out, cosine);
            S::store(out.add(self.width), sine);
        }
    }

    /// Stores the sines and cosines of the pairs from `i`.
    ///
    /// # Safety
    /// There is room for a token at `out`, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn put<S: Simd>(&self, [sine, cosine]: [Lanes<S>; 2], out: *mut f32, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let turn = if self.problem.prop_kind.is_forward() { 0.0 } else { -0.0 };
            let sine = sine.bits_xor(turn);
            if !self.doubled {
                let whole = i + LANES <= self.pairs;
                self.place::<S>([sine.vector(), cosine.vector()], out.add(i), whole);
                return;
            }
            let (cosines, sines) = (S::doubled(cosine.vector()), S::doubled(sine.vector()));
            let signs = S::load(ALTERNATE.as_ptr());
            for half in 0..2 {
                let at = 2 * i + half * LANES;
                if at < self.width {
                    let values = [S::bits_xor(sines[half], signs), cosines[half]];
                    self.place::<S>(values, out.add(at), at + LANES <= 2 * self.pairs);
                }
            }
        }
    }
}

/// Computes the angles of `count` tokens. `positions` has a number for each part of each token's position.
///
/// # Safety
/// The arguments exist, positions were checked, there is room for the tokens at `out`, and the CPU supports the
/// instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn fill<S: Simd>(
    angles: &Angles<'_>,
    positions: *const i64,
    count: usize,
    out: *mut f32,
) {
    let parts = angles.problem.parts();
    for token in 0..count {
        let mut i = 0;
        while i < angles.pairs {
            let n = LANES.min(angles.pairs - i);
            // SAFETY: guaranteed by the caller.
            unsafe {
                let values = angles.get::<S>(positions.add(token * parts), i, n);
                angles.put::<S>(values, out.add(token * 2 * angles.width), i);
            }
            i += LANES;
        }
    }
}

const _: () = assert!(MOST_SECTIONS <= LANES);

entry_points! {
    /// Angles, per level.
    mod entries: fill<>(
        angles: &Angles<'_>, positions: *const i64, count: usize, out: *mut f32
    ) -> ();
}

pub(super) type Entry = unsafe fn(&Angles<'_>, *const i64, usize, *mut f32);

pub(super) fn entry(level: Level) -> Entry {
    entries::at(level).unwrap_or(entries::portable::entry_portable)
}
