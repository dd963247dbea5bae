//! The tolerance of each kind of value, and the comparison of errors with it.

use crate::data_type::DataType;

/// What a compared value is, which decides its tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `dst` or `diff_src`: 1 ulp of f32 at the result, plus 2^-22 of the terms, plus the smallest
    /// f32, since a subnormal product cannot be more accurate.
    Result,
    /// The same for a problem that is entirely f64: 1 ulp of f64 and 2^-49 of the terms, which covers the oracle's own
    /// rounding.
    Double,
    /// The result of a chain of operations: the terms are the bound.
    Chain,
    /// A value that is rounded once to its type, even f32. The terms bound its error before that.
    Rounded,
    /// A row's variance: 4 ulp of f32; +Inf where f32 overflows.
    Variance,
    /// A row's mean: 4 ulp of f32 at the terms, the mean of `|x|`.
    Mean,
    /// `diff_scale` or `diff_shift`: 4 ulp of f32 at the terms, the sum of absolute values.
    ColumnSum,
}

impl Kind {
    /// How far an f32 result may be from `want`, before it is rounded to its type.
    pub fn bound(self, want: f64, terms: f64) -> f64 {
        const TERMS_OF_DOUBLE: f64 = 1.0 / 562_949_953_421_312.0; // 2^-49
        const TERMS: f64 = 1.0 / 4_194_304.0; // 2^-22
        const SMALLEST: f64 = f32::from_bits(1) as f64;
        match self {
            Kind::Result => DataType::F32.ulp(want) + TERMS * terms + SMALLEST,
            Kind::Double => DataType::F64.ulp(want) + TERMS_OF_DOUBLE * terms,
            Kind::Chain | Kind::Rounded => terms,
            Kind::Variance => 4.0 * DataType::F32.ulp(want),
            Kind::Mean | Kind::ColumnSum => 4.0 * DataType::F32.ulp(terms),
        }
    }

    /// [`bound`](Kind::bound) of each element. Only a kind whose bound does not depend on terms may have none.
    pub(super) fn bounds(self, want: &[f64], terms: &[f64], bounds: &mut [f64]) {
        match (self, terms) {
            (Kind::Chain | Kind::Rounded, terms) => bounds.copy_from_slice(terms),
            (_, []) => {
                bounds.iter_mut().zip(want).for_each(|(b, want)| *b = self.bound(*want, 0.0));
            }
            _ => {
                for ((bound, want), terms) in bounds.iter_mut().zip(want).zip(terms) {
                    *bound = self.bound(*want, *terms);
                }
            }
        }
    }
}

/// The element with the largest error relative to its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// Its index in the compared slices.
    pub index: usize,
    /// The library's result.
    pub got: f64,
    /// The oracle's result, not rounded to the type.
    pub want: f64,
    /// `|got - want|`; infinite for a wrong infinity or NaN.
    pub error: f64,
    /// The tolerance on that side of `want`.
    pub allowed: f64,
}

impl Worst {
    /// The error relative to the tolerance: wrong if above 1.
    pub fn in_allowed(&self) -> f64 {
        match (self.error, self.allowed) {
            (0.0, _) => 0.0,
            (error, allowed) => error / allowed,
        }
    }

    /// Compares errors relative to their tolerances, by cross-multiplication: this runs for each
    /// element.
    pub(super) fn is_worse_than(&self, other: &Worst) -> bool {
        if self.error.is_infinite() || other.error.is_infinite() {
            return self.error > other.error;
        }
        // With tolerances of 0 both products are 0, so the errors themselves are compared.
        if self.allowed == 0.0 && other.allowed == 0.0 {
            return self.error > other.error;
        }
        self.error * other.allowed > other.error * self.allowed
    }
}
