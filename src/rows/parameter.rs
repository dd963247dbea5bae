//! Per-column parameters in f32, as the kernels read them. If a kernel reads an absent parameter, it gets neutral
//! values.
//!
//! So one kernel serves all combinations, with the same bits: `fma(x, 1, b) = x + b` and `fma(x, a, -0) = a*x`, both
//! rounded once.

use super::pack::{Entry, Packing, entries};
use crate::simd::Level;
use crate::tensor::DataType;

/// The maximum number of columns for which neutral values are static instead of in the scratchpad.
pub(crate) const STATIC_COLS: usize = 8192;

/// The values of a row.
#[repr(align(64))]
struct Values([f32; STATIC_COLS]);

static ONES: Values = Values([1.0; STATIC_COLS]);
static MINUS_ZEROS: Values = Values([-0.0; STATIC_COLS]);

/// The value of a parameter that has no effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neutral {
    /// For a scale.
    One,
    /// For a shift.
    MinusZero,
}

/// The conversion of a parameter to f32.
pub(crate) struct Parameter {
    cols: usize,
    data_type: DataType,
    /// The values of an absent parameter; `None` if no kernel reads them.
    neutral: Option<Neutral>,
    /// Whether 1 is added to a given parameter.
    plus_one: bool,
    pack: Entry,
}

impl Parameter {
    pub(crate) fn new(
        level: Level,
        cols: usize,
        data_type: DataType,
        neutral: Option<Neutral>,
    ) -> Self {
        Self { cols, data_type, neutral, plus_one: false, pack: entries(level).0 }
    }

    /// The parameter plus 1, added in f32.
    pub(crate) fn plus_one(self, plus_one: bool) -> Self {
        Self { plus_one, ..self }
    }

    /// Bytes of scratchpad for a parameter, given or absent: a multiple of a cache line.
    pub(crate) fn room(&self, given: bool) -> usize {
        let size = self.cols.saturating_mul(size_of::<f32>()).min(usize::MAX / 4);
        let needed = if given {
            self.data_type != DataType::F32 || self.plus_one
        } else {
            self.neutral.is_some() && self.cols > STATIC_COLS
        };
        if needed { size.next_multiple_of(64) } else { 0 }
    }

    /// The parameter as f32: `given` itself, a copy in `room`, neutral values, or null.
    ///
    /// # Safety
    /// `given` is null or has a value per column, and `room` has the bytes of [`room`](Self::room).
    #[inline]
    pub(crate) unsafe fn get(&self, given: *mut u8, room: *mut u8) -> *const f32 {
        if !given.is_null() && (self.data_type != DataType::F32 || self.plus_one) {
            let elements = (given, self.data_type, 1);
            let packing = Packing::of_row(elements, self.cols, room.cast());
            // SAFETY: guaranteed by the caller.
            unsafe { (self.pack)(&packing, 0, 1) };
            let values = room.cast::<f32>();
            for i in 0..if self.plus_one { self.cols } else { 0 } {
                // SAFETY: they were written above.
                unsafe { *values.add(i) += 1.0 };
            }
            return values;
        }
        let (values, value) = match self.neutral {
            Some(Neutral::One) if given.is_null() => (&ONES, 1.0),
            Some(Neutral::MinusZero) if given.is_null() => (&MINUS_ZEROS, -0.0),
            _ => return given.cast(),
        };
        if self.cols <= STATIC_COLS {
            return values.0.as_ptr();
        }
        let room = room.cast::<f32>();
        for i in 0..self.cols {
            // SAFETY: guaranteed by the caller.
            unsafe { room.add(i).write(value) };
        }
        room
    }
}
