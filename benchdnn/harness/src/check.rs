//! Compares a library's results with those of the oracle.
//!
//! The bounds are the library's numerics contract. An f32 result `y` may miss the exact value
//! `want` by `bound` (see [`Kind`]); a result in bf16 or f16 is such a `y` rounded once to nearest,
//! so it must lie between `want - bound` and `want + bound`, both rounded to the type. That is
//! about half an ulp of the type, holds across binades, subnormals and the overflow threshold, and
//! is tighter than any symmetric interval that admits every right answer.
//!
//! Any NaN equals any NaN; an infinity equals itself. An infinity or NaN of the type is right for a
//! finite `want` if `want` plus the bound rounds to it. Integers saturate and have no NaN, so any
//! integer is right where `want` is NaN.

mod plain;
mod tolerance;

pub use tolerance::{Kind, Worst};

use crate::data_type::DataType;
use crate::parallel;

/// The outcome of comparing one output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// The output's name: `dst`, `diff_scale`, ...
    pub name: &'static str,
    /// Compared elements.
    pub total: usize,
    /// Elements outside their bound.
    pub failed: usize,
    /// The largest error relative to its tolerance, whether failed or not; `None` without elements.
    pub worst: Option<Worst>,
    /// Elements that can distinguish right from wrong: those for which a zero would fail. An
    /// expected zero does not show whether anything was computed, and an expected NaN not even
    /// whether anything was written.
    pub telling: usize,
}

impl Check {
    /// Whether no element failed.
    pub fn passed(&self) -> bool {
        self.failed == 0
    }
}

/// Whether the outputs of a problem prove nothing: less than a tenth of all their elements can
/// distinguish right from wrong. This does not apply to a problem without input elements, whose
/// outputs are zeros or nothing by definition.
///
/// Some zeros are inevitable: layer normalization over a single column gives `dst = shift` and
/// `variance = 0` for any data. So the outputs are judged together.
pub fn mistrusted(checks: &[Check]) -> bool {
    let total: usize = checks.iter().map(|check| check.total).sum();
    let telling: usize = checks.iter().map(|check| check.telling).sum();
    telling * 10 < total || total == 0
}

/// Elements that a thread compares at a time.
const CHUNK: usize = 32 * 1024;

/// Compares the values `got`, of type `dt`, with `want`. `terms` are the sums of absolute values
/// that the errors are proportional to; [`Kind::Variance`] needs none.
///
/// # Panics
/// If the lengths differ.
pub fn check(
    name: &'static str,
    kind: Kind,
    dt: DataType,
    got: &[f64],
    want: &[f64],
    terms: &[f64],
) -> Check {
    assert_eq!(got.len(), want.len(), "{name}: as many values as expected");
    if !(kind == Kind::Variance && terms.is_empty()) {
        assert_eq!(terms.len(), want.len(), "{name}: terms for every value");
    }
    let empty = Check { name, total: 0, failed: 0, worst: None, telling: 0 };
    let one = |chunk: usize, (got, want): (&[f64], &[f64])| {
        let first = chunk * CHUNK;
        let mut check = Check { total: got.len(), ..empty };
        let blocks = got.chunks(plain::BLOCK).zip(want.chunks(plain::BLOCK));
        for (i, (got, want)) in blocks.enumerate() {
            let first = first + i * plain::BLOCK;
            let terms = terms.get(first..first + got.len()).unwrap_or_default();
            check.block(first, (got, want, terms), (kind, dt));
        }
        check
    };
    // In order, so that the same element is reported regardless of thread scheduling.
    let chunks = got.chunks(CHUNK).zip(want.chunks(CHUNK));
    parallel::map(chunks, 1, &one).into_iter().fold(empty, Check::join)
}

impl Check {
    /// Adds a block of at most [`plain::BLOCK`] elements that starts at index `first`.
    fn block(
        &mut self,
        first: usize,
        (got, want, terms): (&[f64], &[f64], &[f64]),
        (kind, dt): (Kind, DataType),
    ) {
        let mut bounds = [0.0; plain::BLOCK];
        let bounds = &mut bounds[..got.len()];
        kind.bounds(want, terms, bounds);
        let plainly = |worst: Worst| plain::telling((kind, dt), got, want, bounds, &worst);
        match self.worst.and_then(plainly) {
            Some(telling) => self.telling += telling,
            None => {
                for (i, ((got, want), bound)) in got.iter().zip(want).zip(&*bounds).enumerate() {
                    self.element(first + i, *got, *want, *bound, (kind, dt));
                }
            }
        }
    }

    fn element(
        &mut self,
        index: usize,
        got: f64,
        want: f64,
        bound: f64,
        (kind, dt): (Kind, DataType),
    ) {
        // Any result is right here, so it proves nothing.
        if bound == f64::INFINITY || (want.is_nan() && dt.is_integer()) {
            let place = Worst { index, got, want, error: 0.0, allowed: 0.0 };
            self.worst.get_or_insert(place);
            return;
        }
        // Integers saturate: an extreme value does not show how far beyond it `want` is.
        let beyond = dt.is_integer()
            && (want - bound > dt.largest() + 0.5 || want + bound < dt.lowest() - 0.5);
        let want = if dt.is_integer() && want.is_infinite() { dt.round(want) } else { want };
        // The lowest and the highest right value.
        let (low, high) = match dt {
            DataType::F32 | DataType::F64 if kind != Kind::Rounded => (want - bound, want + bound),
            _ => (dt.round(want - bound), dt.round(want + bound)),
        };
        // In a type without infinities, values that are too large become NaN.
        let overflows = want.is_finite() && (low.is_nan() || high.is_nan());
        let end = |end: f64, unrounded: f64, ends: [f64; 2]| match end.is_nan() && !want.is_nan() {
            true => ends[usize::from(unrounded > 0.0)],
            false => end,
        };
        let low = end(low, want - bound, [-dt.largest(), f64::INFINITY]);
        let high = end(high, want + bound, [f64::NEG_INFINITY, dt.largest()]);
        self.telling += usize::from((low > 0.0 || high < 0.0 || want.is_infinite()) && !beyond);
        let (right, error, allowed) = if got.is_finite() && want.is_finite() {
            let allowed = if got > want { high - want } else { want - low };
            (low <= got && got <= high, (got - want).abs(), allowed.max(0.0))
        } else if got == want
            || (got.is_nan() && (want.is_nan() || overflows || dt.round(want).is_nan()))
        {
            (true, 0.0, 0.0)
        } else if want.is_finite()
            && (got == f64::INFINITY && dt.round(high) == got
                || got == f64::NEG_INFINITY && dt.round(low) == got)
        {
            (true, bound, bound)
        } else {
            (false, f64::INFINITY, if want.is_finite() { bound } else { 0.0 })
        };
        self.failed += usize::from(!right);
        let place = Worst { index, got, want, error, allowed };
        if self.worst.is_none_or(|worst| place.is_worse_than(&worst)) {
            self.worst = Some(place);
        }
    }

    fn join(mut self, later: Check) -> Check {
        self.total += later.total;
        self.failed += later.failed;
        self.telling += later.telling;
        self.worst = match (self.worst, later.worst) {
            (Some(mine), Some(other)) if !other.is_worse_than(&mine) => Some(mine),
            (mine, other) => other.or(mine),
        };
        self
    }
}
