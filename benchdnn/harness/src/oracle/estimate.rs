//! Post-op chains in f64, with a bound on the error of f32 arithmetic.
//!
//! A chain transforms a value with an error bound ([`Estimate`]): each step turns the error `e` of
//! its input into
//!
//! ```text
//! max |f(x - e) - f(x)|, |f(x + e) - f(x)|   what the input's error becomes: the slope, or a jump
//!   + the rounding of the step itself         ulps of f32, see each step
//! ```
//!
//! (Nothing is rounded if the input is exact and the step's result is an f32.)
//!
//! The errors of elementary functions are those that the library states: 1 ulp of f32 for exp, log
//! and pow, 3 for tanh, the logistic function and elu, 4 for `log(1 + exp(x))`, 6 for mish, and
//! `2^-22*|x|` for both kinds of gelu. If a step is a formula that uses one, each operation rounds.
//! If the interval crosses the edge of a function's domain, or a NaN was compared, the error is
//! infinite: any result is right and proves nothing.

use super::post_ops::{BinaryAlgorithm, EltwiseAlgorithm, ulp};

/// A value and the possible error of a result in f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The exact value.
    pub value: f64,
    /// The largest possible error; infinite if unknown.
    pub error: f64,
}

/// One step of a chain for one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Multiplied by this.
    Times(f64),
    /// Divided by this, or multiplied by its reciprocal.
    Over(f64),
    /// Plus `scale*(before - zero_point)`.
    Sum {
        /// The previous value of the output.
        before: f64,
        /// The factor.
        scale: f64,
        /// Subtracted first.
        zero_point: f64,
    },
    /// A function of the value.
    Eltwise {
        /// Which one.
        algorithm: EltwiseAlgorithm,
        /// Its first parameter.
        alpha: f64,
        /// Its second parameter.
        beta: f64,
    },
    /// A function of the value and another tensor's element.
    Binary {
        /// Which one.
        algorithm: BinaryAlgorithm,
        /// The other element.
        other: f64,
        /// For `select`: whether the value is kept.
        condition: bool,
    },
}

impl Step {
    #[inline(always)]
    fn of(self, x: f64) -> f64 {
        match self {
            Step::Times(factor) => x * factor,
            Step::Over(divisor) => x / divisor,
            Step::Sum { before, scale, zero_point } => x + scale * (before - zero_point),
            Step::Eltwise { algorithm, alpha, beta } => algorithm.of(x, alpha, beta),
            Step::Binary { algorithm, other, condition } => algorithm.of(x, other, condition),
        }
    }

    #[inline(always)]
    fn rounding(self, x: f64, y: f64) -> f64 {
        use BinaryAlgorithm::{Add, Div, Mul, Sub};
        match self {
            Step::Times(1.0) | Step::Over(1.0) => 0.0,
            Step::Times(_) => ulp(y),
            Step::Over(_) => 2.0 * ulp(y),
            Step::Sum { before, scale, zero_point } => {
                ulp(y) + ulp(scale * (before - zero_point)) + ulp(before - zero_point) * scale.abs()
            }
            Step::Eltwise { algorithm, alpha, beta } => algorithm.rounding(x, y, alpha, beta),
            Step::Binary { algorithm: Add | Div | Mul | Sub, .. } => ulp(y),
            Step::Binary { .. } => 0.0,
        }
    }

    /// Whether f32 arithmetic gives exactly `y` from an exact `x`, because no operation has to round.
    #[inline(always)]
    fn is_exact(self, x: f64, y: f64) -> bool {
        use BinaryAlgorithm::{Add, Div, Mul, Sub};
        use EltwiseAlgorithm::{Linear, Relu, ReluDst, Square};
        let fits = |value: f64| f64::from(value as f32) == value;
        let between = match self {
            Step::Over(divisor) => 1.0 / divisor,
            Step::Sum { before, scale, zero_point } => scale * (before - zero_point),
            Step::Eltwise { algorithm: Linear, alpha, .. } => alpha * x,
            Step::Times(_)
            | Step::Eltwise { algorithm: Relu | ReluDst | Square, .. }
            | Step::Binary { algorithm: Add | Sub | Mul | Div, .. } => y,
            Step::Eltwise { .. } | Step::Binary { .. } => return false,
        };
        fits(x) && fits(y) && fits(between)
    }

    /// Whether the function is discontinuous at `x` in a way that does not show at the ends of the interval.
    #[inline(always)]
    fn jumps_at(self, x: f64, error: f64) -> bool {
        use BinaryAlgorithm::{Eq, Ne};
        match self {
            Step::Binary { algorithm: Eq | Ne, other, .. } => (x - other).abs() <= error,
            _ => false,
        }
    }
}

impl Estimate {
    /// The values after a step.
    pub fn all_after(estimates: &mut [Estimate], step: Step) {
        use EltwiseAlgorithm::{Linear, Relu};
        // With a constant kind of step, the compiler removes the other cases from the loop.
        match step {
            Step::Times(factor) => Self::each(estimates, |_| Step::Times(factor)),
            Step::Over(divisor) => Self::each(estimates, |_| Step::Over(divisor)),
            Step::Eltwise { algorithm: Linear, alpha, beta } => {
                Self::each(estimates, |_| Step::Eltwise { algorithm: Linear, alpha, beta });
            }
            Step::Eltwise { algorithm: Relu, alpha, beta } => {
                Self::each(estimates, |_| Step::Eltwise { algorithm: Relu, alpha, beta });
            }
            step => Self::each(estimates, |_| step),
        }
    }

    /// The values after a step with another tensor's elements.
    pub fn all_after_binary(
        estimates: &mut [Estimate],
        algorithm: BinaryAlgorithm,
        other: impl Fn(usize) -> f64,
        condition: impl Fn(usize) -> bool,
    ) {
        use BinaryAlgorithm::{Add, Mul};
        let binary =
            |algorithm, i| Step::Binary { algorithm, other: other(i), condition: condition(i) };
        match algorithm {
            Add => Self::each(estimates, |i| binary(Add, i)),
            Mul => Self::each(estimates, |i| binary(Mul, i)),
            _ => Self::each(estimates, |i| binary(algorithm, i)),
        }
    }

    /// The values, each after its own step.
    #[inline(always)]
    pub fn each(estimates: &mut [Estimate], step: impl Fn(usize) -> Step) {
        for (i, estimate) in estimates.iter_mut().enumerate() {
            *estimate = estimate.after(step(i));
        }
    }

    /// The value after a step.
    #[inline(always)]
    pub fn after(self, step: Step) -> Estimate {
        let Estimate { value: x, error } = self;
        if x.is_nan() || error.is_infinite() {
            // The result of comparing with NaN is unspecified.
            return Estimate { value: step.of(x), error: f64::INFINITY };
        }
        let y = in_range(step.of(x));
        let moved = |x: f64| match (in_range(step.of(x)), y) {
            (moved, y) if moved == y || (moved.is_nan() && y.is_nan()) => 0.0,
            (moved, y) if moved.is_nan() || y.is_nan() => f64::INFINITY,
            (moved, y) => (moved - y).abs(),
        };
        let mut inherited = moved(x - error).max(moved(x + error));
        if step.jumps_at(x, error) && error > 0.0 {
            inherited = inherited.max(1.0);
        }
        let exact = !y.is_finite() || (error == 0.0 && step.is_exact(x, y));
        let own = if exact { 0.0 } else { step.rounding(x, y) };
        Estimate { value: y, error: inherited + own }
    }
}

/// As in f32 arithmetic, values that are too large become infinite.
fn in_range(value: f64) -> f64 {
    // Half an ulp above the largest f32; values from there on round to infinity.
    const OVERFLOW: f64 = f32::MAX as f64 * (1.0 + 1.0 / 33_554_432.0);
    if value.abs() >= OVERFLOW { f64::INFINITY.copysign(value) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same chain in f32, with added errors of elementary functions. The estimate must cover them, but not exceed
    /// them by so much that it hides mistakes.
    #[test]
    fn estimates_cover_f32_and_are_tight() {
        for algorithm in EltwiseAlgorithm::all() {
            let mut widest = 0.0_f64;
            for i in -400..400 {
                let x = f64::from(i as f32 * 0.0137 + 0.001);
                let (alpha, beta) = (0.75_f32, 0.5_f32);
                let (alpha, beta) = (f64::from(alpha), f64::from(beta));
                let step = Step::Eltwise { algorithm, alpha, beta };
                let error = ulp(x);
                let estimate = Estimate { value: x, error }.after(step);
                // The exact function of an input with the largest error, rounded once.
                for moved in [x - error, x, x + error] {
                    let got = f64::from(algorithm.of(moved, alpha, beta) as f32);
                    let right = (got - estimate.value).abs() <= estimate.error + ulp(got) / 2.0
                        || (got.is_nan() && estimate.value.is_nan());
                    assert!(right, "{algorithm:?}({x}): {got} is not {estimate:?}");
                }
                if estimate.value.is_finite() && algorithm != EltwiseAlgorithm::Round {
                    widest = widest.max(estimate.error / (1.0 + estimate.value.abs()));
                }
            }
            assert!(widest < 1e-5, "{algorithm:?}: {widest:e}");
        }
    }

    #[test]
    fn errors_grow_by_the_slope_and_jump_at_jumps() {
        let start = Estimate { value: 3.0, error: 1e-6 };
        let square = start.after(eltwise(EltwiseAlgorithm::Square));
        assert!((square.error - 6e-6).abs() < 1e-6, "{square:?}");
        let quarter = start.after(Step::Over(4.0));
        assert!((0.25e-6..0.75e-6).contains(&quarter.error), "{quarter:?}");
        let binary = |algorithm, other| Step::Binary { algorithm, other, condition: false };
        assert_eq!(start.after(binary(BinaryAlgorithm::Gt, 2.9)).error, 0.0);
        assert_eq!(start.after(binary(BinaryAlgorithm::Gt, 3.0)).error, 1.0);
        assert_eq!(start.after(binary(BinaryAlgorithm::Eq, 3.0 + 5e-7)).error, 1.0);
        assert_eq!(start.after(binary(BinaryAlgorithm::Eq, 3.1)).error, 0.0);
        let half = Estimate { value: 2.5, error: 1e-6 };
        assert_eq!(half.after(eltwise(EltwiseAlgorithm::Round)).error, 1.0);
        assert_eq!(start.after(eltwise(EltwiseAlgorithm::Round)).error, 0.0);
        // After rounding to a whole number, halves are exact.
        let whole = start.after(eltwise(EltwiseAlgorithm::Round));
        let halves = Step::Eltwise { algorithm: EltwiseAlgorithm::Linear, alpha: 0.5, beta: 0.0 };
        assert_eq!(whole.after(halves), Estimate { value: 1.5, error: 0.0 });
        assert!(whole.after(Step::Over(3.3)).error > 0.0);
        // Near the edge of the domain anything is right; elsewhere NaN must be NaN.
        let edge = Estimate { value: -1e-9, error: 1e-6 };
        assert_eq!(edge.after(eltwise(EltwiseAlgorithm::Sqrt)).error, f64::INFINITY);
        let outside = Estimate { value: -1.0, error: 1e-6 }.after(eltwise(EltwiseAlgorithm::Log));
        assert!(outside.value.is_nan() && outside.error == 0.0);
        // Values beyond f32 are infinite.
        let huge = Estimate { value: 100.0, error: 1e-6 }.after(eltwise(EltwiseAlgorithm::Exp));
        assert_eq!((huge.value, huge.error), (f64::INFINITY, 0.0));
    }

    fn eltwise(algorithm: EltwiseAlgorithm) -> Step {
        Step::Eltwise { algorithm, alpha: 0.0, beta: 0.0 }
    }
}
