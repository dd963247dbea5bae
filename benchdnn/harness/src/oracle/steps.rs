//! The steps around a normalization, element by element: the residual before it, the gate before or
//! after it, the rounding before the scale.
//!
//! ```text
//! sum = src + residual    in f32, and rounded to the type that it is stored in
//! x   = sum * f(gate)     with an input gate
//! n   = x normalized; rounded to a type, with `round_before_scale`; * scale + shift
//! y   = n * f(gate)       with an output gate
//! f(g) = g * s(alpha*g)   swish      f'(g) = s(alpha*g) * (1 + alpha*g * (1 - s(alpha*g)))
//! f(g) = s(g)             logistic   f'(g) = s(g) * (1 - s(g))        s(z) = 1/(1 + exp(-z))
//! ```
//!
//! Each value has a bound on the error of f32 arithmetic, as in [`estimate`](super::estimate).

use super::estimate::{Estimate, Step};
use super::post_ops::{EltwiseAlgorithm, logistic, ulp};
use crate::data_type::DataType;

/// The function of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateFunction {
    /// `g / (1 + exp(-alpha*g))`
    Swish {
        /// The factor of the exponent.
        alpha: f32,
    },
    /// `1 / (1 + exp(-g))`
    Logistic,
}

impl GateFunction {
    /// The function of an exact element of a gate.
    pub fn of(self, gate: f64) -> Estimate {
        let (algorithm, alpha) = match self {
            GateFunction::Swish { alpha } => (EltwiseAlgorithm::Swish, f64::from(alpha)),
            GateFunction::Logistic => (EltwiseAlgorithm::Logistic, 0.0),
        };
        Estimate::exact(gate).after(Step::Eltwise { algorithm, alpha, beta: 0.0 })
    }

    /// The derivative at a gate's element.
    pub fn derivative(self, gate: f64) -> Estimate {
        match self {
            GateFunction::Swish { alpha } => swish_derivative(f64::from(alpha) * gate),
            GateFunction::Logistic => {
                let s = logistic(gate);
                let (value, off) = (s * (1.0 - s), 3.0 * ulp(s));
                let error = off * (1.0 - 2.0 * s).abs() + s * ulp(1.0 - s) + ulp(value);
                Estimate { value, error }
            }
        }
    }
}

/// `s*(1 + z*(1 - s))`, with an error of 3 ulp in `s` besides that of rounding `z`.
fn swish_derivative(z: f64) -> Estimate {
    let s = logistic(z);
    // 1 - s without cancellation; f32 arithmetic may cancel, which costs an ulp of 1.
    let rest = logistic(-z);
    let value = s * (1.0 + z * rest);
    let off = s * rest * ulp(z) + 3.0 * ulp(s);
    let last = z * s * rest;
    let rounding = ulp(z) * s * rest + z.abs() * s * ulp(1.0) + 2.0 * ulp(last) + 2.0 * ulp(value);
    Estimate { value, error: off * (1.0 + z.abs() * (1.0 - 2.0 * s).abs()) + rounding }
}

/// The sum of src and residual in f32. The sum of two f32 in f64, rounded to f32, is that of f32
/// arithmetic.
pub fn sum(src: f64, residual: f64) -> f64 {
    DataType::F32.round(src + residual)
}

/// A normalized value rounded to a type. Near a boundary it may be rounded either way.
pub fn rounded(value: Estimate, dt: DataType) -> Estimate {
    let Estimate { value: x, error } = value;
    if dt == DataType::F32 || !error.is_finite() {
        return value;
    }
    let (low, high) = (dt.round(x - error), dt.round(x + error));
    if low == high || low.is_nan() || high.is_nan() {
        return Estimate { value: dt.round(x), error: 0.0 };
    }
    Estimate { value: (low + high) / 2.0, error: (high - low) / 2.0 }
}

impl Estimate {
    /// A value without an error.
    pub const fn exact(value: f64) -> Estimate {
        Estimate { value, error: 0.0 }
    }

    /// The product in f32.
    #[must_use]
    pub fn times(self, other: Estimate) -> Estimate {
        let value = self.value * other.value;
        let inherited = self.value.abs() * other.error
            + other.value.abs() * self.error
            + self.error * other.error;
        Estimate { value, error: inherited + ulp(value) }
    }

    /// The sum in f32.
    #[must_use]
    pub fn plus(self, other: Estimate) -> Estimate {
        let value = self.value + other.value;
        Estimate { value, error: self.error + other.error + ulp(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: [GateFunction; 3] = [
        GateFunction::Swish { alpha: 1.0 },
        GateFunction::Swish { alpha: 1.75 },
        GateFunction::Logistic,
    ];

    #[test]
    fn derivatives_are_those_of_the_functions() {
        for function in FUNCTIONS {
            for i in -200..=200 {
                let (gate, h) = (f64::from(i) / 16.0, 1.0 / 1024.0);
                let f = |x: f64| function.of(x).value;
                let inner = (f(gate + h) - f(gate - h)) / (2.0 * h);
                let outer = (f(gate + 2.0 * h) - f(gate - 2.0 * h)) / (4.0 * h);
                let want = (4.0 * inner - outer) / 3.0;
                let got = function.derivative(gate);
                assert!((got.value - want).abs() < 1e-9, "{function:?} at {gate}: {got:?}, {want}");
                assert!(got.error > 0.0 && got.error < 1e-5, "{function:?} at {gate}: {got:?}");
            }
        }
    }

    /// The formula in f32, with a logistic function that is off by 3 ulp and then rounded, stays within the error.
    #[test]
    fn errors_cover_f32_arithmetic() {
        for i in -4000..4000_i32 {
            let z = i as f32 * 0.0051;
            for off in [-2.5, 0.0, 2.5] {
                let s = logistic(f64::from(z));
                let s = ((s + off * ulp(s)) as f32).min(1.0);
                let got = f64::from(s * (1.0 + z * (1.0 - s)));
                let want = GateFunction::Swish { alpha: 1.0 }.derivative(f64::from(z));
                assert!((got - want.value).abs() <= want.error, "{z}: {got} is not {want:?}");
                let got = f64::from(s * (1.0 - s));
                let want = GateFunction::Logistic.derivative(f64::from(z));
                assert!((got - want.value).abs() <= want.error, "{z}: {got} is not {want:?}");
            }
        }
    }

    #[test]
    fn near_a_boundary_both_neighbours_are_right() {
        let bf16 = DataType::Bf16;
        let tie = 1.0 + 1.0 / 256.0;
        let near = rounded(Estimate { value: tie, error: 1e-7 }, bf16);
        assert_eq!((near.value - near.error, near.value + near.error), (1.0, 1.0 + 1.0 / 128.0));
        let clear = rounded(Estimate { value: 1.001, error: 1e-7 }, bf16);
        assert_eq!(clear, Estimate::exact(1.0));
        let same = Estimate { value: tie, error: 1e-7 };
        assert_eq!(rounded(same, DataType::F32), same);
    }

    #[test]
    fn sums_are_those_of_f32() {
        assert_eq!(sum(1.0, f64::from(f32::EPSILON) / 2.0), 1.0);
        assert_eq!(sum(1.0, 1.5 * f64::from(f32::EPSILON) / 2.0), 1.0 + f64::from(f32::EPSILON));
    }
}
