//! Remedies that would change the size of an output, with their effect on the data.

use super::subject::{Change, Explanation, Subject, explain};
use crate::primitive::enumerators;
use norm_sys as sys;

enumerators! {
    /// See `norm_remedy_kind_t`.
    RemedyKind: norm_remedy_kind_t {
        SmallerEpsilon = norm_remedy_smaller_epsilon, "smaller_epsilon";
        LargerEpsilon = norm_remedy_larger_epsilon, "larger_epsilon";
        ClipSrc = norm_remedy_clip_src, "clip_src";
        ScalePlusOne = norm_remedy_scale_plus_one, "scale_plus_one";
        Temperature = norm_remedy_temperature, "temperature";
        FoldRatio = norm_remedy_fold_ratio, "fold_ratio";
    }
}

/// The number of remedies.
pub(crate) const REMEDIES: usize = sys::NORM_REMEDIES as usize;

/// The target ratio of a smaller epsilon.
const RATIO: f64 = 0.99;
/// Elements beyond this many times the RMS are clipped.
const CLIPPED: f64 = 3.0;

/// See `norm_remedy_t`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remedy {
    pub(crate) kind: RemedyKind,
    pub(crate) value: f64,
    pub(crate) ratio: f64,
    pub(crate) rms_out: f64,
    pub(crate) amplification: f64,
    pub(crate) scores: f64,
}

impl Remedy {
    /// A placeholder.
    pub(crate) const NONE: Self = Self {
        kind: RemedyKind::SmallerEpsilon,
        value: 0.0,
        ratio: 0.0,
        rms_out: 0.0,
        amplification: 0.0,
        scores: 0.0,
    };
}

/// The remedies, each with its effect on the rows.
pub(crate) fn remedies(subject: &Subject) -> [Remedy; REMEDIES] {
    let now = explain(subject);
    let as_is = subject.unchanged();
    let square = now.rms_in * now.rms_in;
    // 1 if the rows tell nothing.
    let inverse = if now.ratio > 0.0 { 1.0 / now.ratio } else { 1.0 };
    let smaller = (square * (1.0 / (RATIO * RATIO) - 1.0)).min(subject.epsilon);
    // Twice the divisor halves the output.
    let larger = 4.0 * (square + subject.epsilon) - square;
    let bound = CLIPPED * now.rms_in;
    let added = if subject.plus_one { 0.0 } else { 1.0 };
    let changed = |kind, value, change: Change| effect(subject, &now, (kind, value), change);
    [
        changed(RemedyKind::SmallerEpsilon, smaller, Change { epsilon: smaller, ..as_is }),
        changed(RemedyKind::LargerEpsilon, larger, Change { epsilon: larger, ..as_is }),
        changed(RemedyKind::ClipSrc, bound, Change { bound, ..as_is }),
        changed(RemedyKind::ScalePlusOne, added, Change { added: 1.0, ..as_is }),
        // The output does not change, because attention multiplies its scores.
        Remedy { scores: inverse, ..changed(RemedyKind::Temperature, inverse, as_is) },
        changed(RemedyKind::FoldRatio, inverse, Change { factor: inverse, ..as_is }),
    ]
}

/// A remedy and its effect.
fn effect(
    subject: &Subject,
    now: &Explanation,
    (kind, value): (RemedyKind, f64),
    change: Change,
) -> Remedy {
    let then = subject.measure(&change);
    let over = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    Remedy {
        kind,
        value,
        ratio: then.ratio,
        rms_out: then.rms_out,
        // Relative to the original input, even if a remedy clips it.
        amplification: over(then.rms_out, now.rms_in),
        scores: over(then.rms_out, now.rms_out),
    }
}
