//! Scale and shift as the kernels read them: f32, and neutral values for one that the problem does not have.
//!
//! So one kernel serves all combinations, with the bits of each: `fma(x, 1, b) = x + b` and `fma(x, a, -0) = a*x`,
//! both rounded once.

/// Columns for which neutral values need no room in the scratchpad.
const COLS: usize = 8192;

/// As many as a row has.
#[repr(align(64))]
struct Values([f32; COLS]);

static ONES: Values = Values([1.0; COLS]);
static MINUS_ZEROS: Values = Values([-0.0; COLS]);

/// What a parameter is where it changes nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Neutral {
    /// Of a scale.
    One,
    /// Of a shift.
    MinusZero,
}

impl Neutral {
    /// Whether the values of a row of `cols` columns have to be written to a scratchpad.
    pub(super) fn needs_room(cols: usize) -> bool {
        cols > COLS
    }

    /// The values of a row, which are written to `room` where they need some.
    ///
    /// # Safety
    /// There is room for `cols` values where they need it.
    pub(super) unsafe fn values(self, cols: usize, room: *mut f32) -> *const f32 {
        let (values, value) = match self {
            Self::One => (&ONES, 1.0),
            Self::MinusZero => (&MINUS_ZEROS, -0.0),
        };
        if !Self::needs_room(cols) {
            return values.0.as_ptr();
        }
        for i in 0..cols {
            // SAFETY: the caller's.
            unsafe { room.add(i).write(value) };
        }
        room
    }
}
