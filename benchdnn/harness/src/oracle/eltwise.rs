//! Elementwise functions and their derivatives in f64, with the error that f32 arithmetic may have.
//!
//! Forward is a step of [`estimate`](super::estimate). Backward is `diff_dst * f'(src)`, or a formula of
//! dst; the derivatives are written out here, each with its error:
//!
//! ```text
//! f'   the errors that the library states: 3 ulp for tanh and the logistic function, 2^-22 for swish,
//!      2^-21 for both kinds of gelu and mish, 1 ulp for exp and pow; an ulp for each other operation
//! diff_src   |diff_dst| times that, and an ulp for the product
//! ```

use super::estimate::{Estimate, Step};
use super::post_ops::{EltwiseAlgorithm, logistic, ulp};

/// A function with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Function {
    /// Which one.
    pub algorithm: EltwiseAlgorithm,
    /// Its first parameter.
    pub alpha: f64,
    /// Its second parameter.
    pub beta: f64,
}

/// Values and bounds of their errors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The values.
    pub values: Vec<f64>,
    /// How far an f32 result may be off.
    pub bounds: Vec<f64>,
}

impl FromIterator<Estimate> for Output {
    fn from_iter<I: IntoIterator<Item = Estimate>>(estimates: I) -> Output {
        let (values, bounds) =
            estimates.into_iter().map(|estimate| (estimate.value, estimate.error)).unzip();
        Output { values, bounds }
    }
}

/// The expected dst.
pub fn forward(function: Function, src: &[f64]) -> Output {
    let Function { algorithm, alpha, beta } = function;
    let step = Step::Eltwise { algorithm, alpha, beta };
    src.iter().map(|&value| Estimate { value, error: 0.0 }.after(step)).collect()
}

/// The expected diff_src, from src or, for an algorithm that reads it, from dst.
pub fn backward(function: Function, data: &[f64], diff_dst: &[f64]) -> Output {
    let gradient = |(&x, &g): (&f64, &f64)| product(slope(function, x), g);
    data.iter().zip(diff_dst).map(gradient).collect()
}

/// The bounds for a library that computes in f64, as a fraction of those for f32. Ulps are 2^29 times finer, and a
/// factor of 4 covers this oracle, which is no more accurate than the library.
const IN_F64: f64 = 4.0 / 536_870_912.0;

/// The expected dst, in f64 arithmetic.
pub fn wide_forward(function: Function, src: &[f64]) -> Output {
    let Function { algorithm, alpha, beta } = function;
    let of = |&x: &f64| {
        let value = algorithm.of(x, alpha, beta);
        let error = algorithm.rounding(x, value, alpha, beta) + rounding(value);
        in_f64(value, error)
    };
    src.iter().map(of).collect()
}

/// The expected diff_src, in f64 arithmetic.
pub fn wide_backward(function: Function, data: &[f64], diff_dst: &[f64]) -> Output {
    let gradient = |(&x, &g): (&f64, &f64)| {
        let slope = slope(function, x);
        let value = g * slope.value;
        in_f64(value, g.abs() * (slope.error + rounding(slope.value)) + rounding(value))
    };
    data.iter().zip(diff_dst).map(gradient).collect()
}

/// An f64 value, given its error in f32; infinite values have none.
fn in_f64(value: f64, error: f64) -> Estimate {
    let error = if value.is_finite() && error.is_finite() { error * IN_F64 } else { 0.0 };
    Estimate { value, error }
}

/// The slope times diff_dst.
fn product(slope: Estimate, g: f64) -> Estimate {
    // In f32, a slope may overflow even though the product would not.
    let most = f64::from(f32::MAX);
    let (near, far) = (slope.value.abs() - slope.error, slope.value.abs() + slope.error);
    let overflows = slope.value.is_finite() && far > most;
    let value = match overflows {
        true => g * f64::INFINITY.copysign(slope.value),
        false => g * slope.value,
    };
    let uncertain = overflows && near < most;
    let error = if uncertain { f64::INFINITY } else { g.abs() * slope.error + rounding(value) };
    // A product with an infinite slope has only its own error.
    Estimate { value, error: if error.is_nan() { 0.0 } else { error } }
}

/// An ulp, and the spacing of subnormals.
fn rounding(value: f64) -> f64 {
    const SMALLEST: f64 = f32::from_bits(1) as f64;
    ulp(value) + 2.0 * SMALLEST
}

/// Whether backward reads dst.
pub fn reads_dst(algorithm: EltwiseAlgorithm) -> bool {
    use EltwiseAlgorithm::*;
    matches!(algorithm, ClipV2Dst | EluDst | ExpDst | LogisticDst | ReluDst | SqrtDst | TanhDst)
}

/// The points where the function has a kink, so that differences do not give a derivative.
pub fn kinks(function: Function) -> Vec<f64> {
    use EltwiseAlgorithm::*;
    let Function { algorithm, alpha, beta } = function;
    match algorithm {
        Abs | Elu | EluDst | Relu | ReluDst => vec![0.0],
        Clip | ClipV2 | ClipV2Dst => vec![alpha, beta],
        Hardsigmoid | Hardswish if alpha != 0.0 => vec![-beta / alpha, (1.0 - beta) / alpha],
        _ => Vec::new(),
    }
}

/// Whether the function or its derivatives are infinite or undefined at 0 and below.
pub fn is_for_positive(algorithm: EltwiseAlgorithm) -> bool {
    use EltwiseAlgorithm::*;
    matches!(algorithm, Log | Pow | Sqrt | SqrtDst)
}

fn slope(function: Function, x: f64) -> Estimate {
    use EltwiseAlgorithm::*;
    let Function { algorithm, alpha, beta } = function;
    let exact = |value: f64| Estimate { value, error: 0.0 };
    let ulps = |count: f64, value: f64| Estimate { value, error: count * rounding(value) };
    let within = |error: f64, value: f64| Estimate { value, error };
    let if_above = |value: f64| exact(if x > 0.0 { 1.0 } else { value });
    match algorithm {
        Abs => exact(if x == 0.0 { 0.0 } else { x.signum() }),
        Relu | ReluDst => if_above(alpha),
        Linear => exact(alpha),
        Clip => exact(f64::from(u8::from(alpha < x && x <= beta))),
        ClipV2 | ClipV2Dst => exact(f64::from(u8::from(alpha < x && x < beta))),
        Elu | EluDst if x > 0.0 => exact(1.0),
        Elu => ulps(2.0, alpha * x.exp()),
        EluDst => ulps(1.0, alpha + x),
        Exp => ulps(1.0, x.exp()),
        ExpDst => exact(x),
        Square => exact(2.0 * x),
        Sqrt => ulps(2.0, 0.5 / x.sqrt()),
        SqrtDst => ulps(1.0, 0.5 / x),
        Log => ulps(1.0, 1.0 / x),
        Pow if beta == 0.0 => exact(0.0),
        Pow => {
            let power = x.powf(beta - 1.0);
            let factor = alpha * beta;
            within(factor.abs() * rounding(power) + 2.0 * rounding(power * factor), power * factor)
        }
        Logistic => ulps(3.0, logistic(x) * logistic(-x)),
        LogisticDst => ulps(2.0, x * (1.0 - x)),
        Tanh => ulps(3.0, 4.0 * logistic(2.0 * x) * logistic(-2.0 * x)),
        TanhDst => ulps(1.0, (1.0 - x) * (1.0 + x)),
        SoftRelu => {
            let z = alpha * x;
            let moved = (logistic(z + ulp(z)) - logistic(z)).abs();
            within(moved + 3.0 * rounding(logistic(z)), logistic(z))
        }
        Hardsigmoid => line(function, x, |_| (0.0, alpha, 0.0)),
        Hardswish => line(function, x, |x| (0.0, 2.0 * alpha * x + beta, 1.0)),
        Swish => {
            let z = alpha * x;
            let moved = (swish_slope(z + ulp(z)) - swish_slope(z)).abs();
            within(QUARTER_MILLIONTH + moved, swish_slope(z))
        }
        GeluErf => within(2.0 * QUARTER_MILLIONTH, gelu_erf_slope(x)),
        GeluTanh => within(2.0 * QUARTER_MILLIONTH, gelu_tanh_slope(x)),
        Mish => within(2.0 * QUARTER_MILLIONTH, mish_slope(x)),
        // Its gradient is 0.
        Round => exact(0.0),
    }
}

/// 2^-22.
const QUARTER_MILLIONTH: f64 = 1.0 / 4_194_304.0;

/// The slope of a function that changes where `alpha*x + beta` is 0 and 1: below, between and above.
fn line(function: Function, x: f64, slopes: impl Fn(f64) -> (f64, f64, f64)) -> Estimate {
    let Function { alpha, beta, .. } = function;
    let z = alpha * x + beta;
    let (below, between, above) = slopes(x);
    let value = match z {
        z if z <= 0.0 => below,
        z if z >= 1.0 => above,
        _ => between,
    };
    // The product may be rounded before the sum, but need not be.
    let error = ulp(alpha * x) + ulp(z);
    let exact = f64::from((alpha * x) as f32) == alpha * x && f64::from(z as f32) == z;
    let near = |edge: f64| !exact && (z - edge).abs() <= error;
    let jump = match () {
        () if near(0.0) => (between - below).abs(),
        () if near(1.0) => (between - above).abs(),
        () => 0.0,
    };
    Estimate { value, error: jump + 2.0 * (rounding(alpha * x) + rounding(between)) }
}

/// The derivative of `z*logistic(z)`.
fn swish_slope(z: f64) -> f64 {
    // Infinite arguments give the limit.
    let z = z.clamp(-750.0, 750.0);
    logistic(z) + z * logistic(z) * logistic(-z)
}

fn gelu_erf_slope(x: f64) -> f64 {
    let x = x.clamp(-50.0, 50.0);
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    // The function is x*P(x).
    let part = EltwiseAlgorithm::GeluErf.of(x, 0.0, 0.0);
    let probability = if x == 0.0 { 0.5 } else { part / x };
    probability + x * density
}

fn gelu_tanh_slope(x: f64) -> f64 {
    let x = x.clamp(-50.0, 50.0);
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let z = 2.0 * root * (x + 0.044715 * x * x * x);
    let slope = 2.0 * root * (1.0 + 3.0 * 0.044715 * x * x);
    logistic(z) + x * slope * logistic(z) * logistic(-z)
}

fn mish_slope(x: f64) -> f64 {
    let x = x.clamp(-750.0, 50.0);
    // The hyperbolic tangent of ln(1 + e^x), and its derivative.
    let e = x.exp();
    let t = e * (e + 2.0);
    t / (t + 2.0) + x * 4.0 * e * (e + 1.0) / ((t + 2.0) * (t + 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Differences of the forward formulas.
    #[test]
    fn slopes_are_those_of_the_functions() {
        for algorithm in EltwiseAlgorithm::all().filter(|it| *it != EltwiseAlgorithm::Round) {
            for (alpha, beta) in [(0.25, 1.5), (0.75, 2.0)] {
                let function = Function { algorithm, alpha, beta };
                for i in -40..40 {
                    let x = f64::from(i) * 0.11 + 0.013;
                    let is_smooth = kinks(function).iter().all(|kink| (kink - x).abs() > 1e-3);
                    if !is_smooth || (is_for_positive(algorithm) && x < 0.1) {
                        continue;
                    }
                    let of = |x: f64| algorithm.of(x, alpha, beta);
                    let found = (of(x + 1e-5) - of(x - 1e-5)) / 2e-5;
                    let read = if reads_dst(algorithm) { of(x) } else { x };
                    let claimed = backward(function, &[read], &[1.0]);
                    let error = (found - claimed.values[0]).abs();
                    assert!(error < 1e-8 * found.abs().max(1.0), "{function:?} at {x}: {error:e}");
                    assert!(claimed.bounds[0] < 1e-5 * found.abs().max(1.0), "{function:?} at {x}");
                }
            }
        }
    }

    #[test]
    fn edges_belong_to_one_side() {
        use EltwiseAlgorithm::*;
        let of = |algorithm, x| slope(Function { algorithm, alpha: -1.0, beta: 2.0 }, x).value;
        assert_eq!((of(Clip, -1.0), of(Clip, 2.0)), (0.0, 1.0));
        assert_eq!((of(ClipV2, -1.0), of(ClipV2, 2.0)), (0.0, 0.0));
        assert_eq!((of(Relu, 0.0), of(Abs, 0.0), of(Abs, -2.0)), (-1.0, 0.0, -1.0));
        assert_eq!(
            (of(Hardsigmoid, 2.0), of(Hardsigmoid, 1.5), of(Hardsigmoid, 1.0)),
            (0.0, -1.0, 0.0)
        );
        assert_eq!((of(Hardswish, 2.0), of(Hardswish, 1.0)), (0.0, 1.0));
    }

    #[test]
    fn a_slope_that_overflows_is_infinite() {
        let exp = Function { algorithm: EltwiseAlgorithm::Exp, alpha: 0.0, beta: 0.0 };
        let output = backward(exp, &[100.0, 100.0, -100.0], &[0.5, -2.0, 1.0]);
        assert_eq!(output.values[..2], [f64::INFINITY, f64::NEG_INFINITY]);
        assert!(output.values[2] > 0.0 && output.bounds[2] < 1e-44);
    }
}
