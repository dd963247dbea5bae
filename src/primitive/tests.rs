//! The largest errors of every elementwise function and gradient in a chain, over every 997th f32, against f64. The
//! documentation quotes the table that this prints.

use super::EltwiseAlgorithm as E;
use super::{
    Arguments, Attr, BeforePostOps, Gradient, INPUTS, InputRows, Inputs, PostOpChain, Rows, Start,
    chain_entry,
};
use crate::simd::Level;
use crate::tensor::{DataType, MemoryDesc};

/// The unit of an error.
#[derive(Clone, Copy)]
enum Unit {
    /// Units in the last place of the result.
    Ulp,
    /// The same, where the number is above this.
    UlpAbove(f64),
    /// 2^-23.
    Absolute,
    /// 2^-23 times the number.
    OfX,
}

/// A function, or its gradient from src or from dst, for some alpha and beta.
struct Row {
    name: &'static str,
    algorithm: E,
    parameters: (f32, f32),
    /// `None` for the function itself; otherwise whether the gradient is computed from dst.
    gradient: Option<bool>,
    right: fn(f64) -> f64,
    unit: Unit,
    stated: f64,
}

/// The results of a function of every number, on a level; for a gradient, of a diff_dst of ones.
fn results(row: &Row, level: Level, of: &[f32]) -> Vec<f32> {
    let Row { algorithm, parameters: (alpha, beta), .. } = *row;
    let start = match row.gradient {
        None => Start::Eltwise { algorithm, alpha, beta },
        Some(dst) => Start::Gradient(Gradient::new(algorithm, dst, (alpha, beta))),
    };
    let before = BeforePostOps { start: Some(start), ..BeforePostOps::default() };
    let desc = MemoryDesc::dense(&[of.len() as i64], DataType::F32).unwrap();
    let chain = PostOpChain::after(&before, &Attr::default(), &desc, Some(&[])).unwrap().unwrap();
    let (mut xs, mut ones) = (of.to_vec(), vec![1.0f32; of.len()]);
    let mut results = vec![0.0f32; of.len()];
    let mut inputs =
        [InputRows { start: xs.as_mut_ptr(), step: 0, ahead: std::ptr::null() }; INPUTS];
    inputs[1].start = ones.as_mut_ptr();
    let start = results.as_mut_ptr();
    let inputs = Some(Inputs { rows: &inputs, streams: false, prefetches: false });
    let rows = Rows { start, step: 0, cols: of.len(), first_col: 0, inputs };
    // SAFETY: all have as many elements, and the machine has the level.
    unsafe {
        let bound = chain.bind(&Arguments::new());
        chain_entry(level)(&bound, &rows, 0, 1);
    }
    results
}

/// The error of a result in a unit.
fn error(unit: Unit, x: f32, got: f32, right: f64) -> f64 {
    let nearest = right as f32;
    if got == nearest || got.is_nan() && nearest.is_nan() {
        return 0.0;
    }
    let (x, distance) = (f64::from(x), (f64::from(got) - right).abs());
    let magnitude = nearest.abs().max(f32::MIN_POSITIVE);
    let ulp = f64::from(magnitude.next_up()) - f64::from(magnitude);
    let bit = 2f64.powi(-23);
    match unit {
        Unit::Ulp => distance / ulp,
        Unit::UlpAbove(low) => {
            if x > low {
                distance / ulp
            } else {
                0.0
            }
        }
        Unit::Absolute => distance / bit,
        Unit::OfX => distance / bit / x.abs().max(1e-30),
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    if x > 40.0 { x } else { x.exp().ln_1p() }
}

/// The cumulative normal distribution at x, by a series or a continued fraction.
fn below(x: f64) -> f64 {
    let t = x.abs() / 2f64.sqrt();
    let tail = if t < 2.5 {
        let (mut term, mut sum) = (t, t);
        for n in 1..100 {
            if term.abs() < 1e-20 * sum.abs() {
                break;
            }
            term *= -t * t / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        0.5 - sum / std::f64::consts::PI.sqrt()
    } else if t > 30.0 {
        0.0
    } else {
        let mut fraction = t;
        for n in (1..200).rev() {
            fraction = t + f64::from(n) / 2.0 / fraction;
        }
        0.5 * (-t * t).exp() / fraction / std::f64::consts::PI.sqrt()
    };
    if x < 0.0 { tail } else { 1.0 - tail }
}

fn gelu_erf_slope(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x.abs() > 1e3 { below(x) } else { below(x) + x * density }
}

/// The argument of gelu_tanh's logistic, and its derivative times x.
fn tanh_argument(x: f64) -> (f64, f64) {
    let x = x.clamp(-1e3, 1e3);
    let c = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
    (c * (x + 0.044_715 * x.powi(3)), c * (x + 0.134_145 * x.powi(3)))
}

fn gelu_tanh_slope(x: f64) -> f64 {
    let (g, slope) = tanh_argument(x);
    sigmoid(g) + slope * sigmoid(g) * sigmoid(-g)
}

fn swish_slope(x: f64) -> f64 {
    let bounded = x.clamp(-1e3, 1e3);
    sigmoid(bounded) + bounded * sigmoid(bounded) * sigmoid(-bounded)
}

fn mish_slope(x: f64) -> f64 {
    let x = x.clamp(-700.0, 300.0);
    let w = softplus(x).tanh();
    // 1 - w^2 without cancellation.
    let t = x.exp() * (x.exp() + 2.0);
    w + x * sigmoid(x) * (4.0 * (t + 1.0) / (t + 2.0).powi(2))
}

macro_rules! rows {
    ($($name:literal $algorithm:ident($alpha:literal, $beta:literal) $gradient:expr, $unit:expr, $stated:literal, $right:expr;)*) => {
        [$(Row {
            name: $name,
            algorithm: E::$algorithm,
            parameters: ($alpha, $beta),
            gradient: $gradient,
            right: $right,
            unit: $unit,
            stated: $stated,
        },)*]
    };
}

/// The functions whose errors are not obvious; the others are one or two operations.
fn functions() -> [Row; 22] {
    const F: Option<bool> = None;
    use Unit::{OfX, Ulp, UlpAbove};
    rows! {
        "relu(0.25)" Relu(0.25, 0.0) F, Ulp, 0.5, |x| if x > 0.0 { x } else { 0.25 * x };
        "tanh" Tanh(0.0, 0.0) F, Ulp, 3.0, f64::tanh;
        "elu(1)" Elu(1.0, 0.0) F, Ulp, 3.0, |x| if x > 0.0 { x } else { x.exp_m1() };
        "square" Square(0.0, 0.0) F, Ulp, 0.5, |x| x * x;
        "abs" Abs(0.0, 0.0) F, Ulp, 0.0, f64::abs;
        "sqrt" Sqrt(0.0, 0.0) F, Ulp, 0.5, f64::sqrt;
        "linear(3, 0.5)" Linear(3.0, 0.5) F, Ulp, 0.5, |x| 3.0 * x + 0.5;
        "soft_relu(1)" SoftRelu(1.0, 0.0) F, Ulp, 4.0, softplus;
        "soft_relu(-1)" SoftRelu(-1.0, 0.0) F, Ulp, 4.0, |x| -softplus(-x);
        "hardsigmoid(0.25, 0.5)" Hardsigmoid(0.25, 0.5) F, Ulp, 0.5, |x| (0.25 * x + 0.5).clamp(0.0, 1.0);
        "logistic" Logistic(0.0, 0.0) F, Ulp, 3.0, sigmoid;
        "exp" Exp(0.0, 0.0) F, Ulp, 1.0, f64::exp;
        "gelu_tanh" GeluTanh(0.0, 0.0) F, OfX, 2.0, |x| x * sigmoid(tanh_argument(x).0);
        "swish(1)" Swish(1.0, 0.0) F, UlpAbove(-87.0), 4.0, |x| x * sigmoid(x);
        "swish(1.702)" Swish(1.702, 0.0) F, OfX, 2.0, |x| x * sigmoid(f64::from(1.702f32) * x);
        "log" Log(0.0, 0.0) F, Ulp, 1.0, f64::ln;
        "clip(-2, 3)" Clip(-2.0, 3.0) F, Ulp, 0.0, |x| x.clamp(-2.0, 3.0);
        "pow(2, 1.5)" Pow(2.0, 1.5) F, Ulp, 1.5, |x| 2.0 * x.powf(1.5);
        "gelu_erf" GeluErf(0.0, 0.0) F, OfX, 2.0, |x| x * below(x);
        "round" Round(0.0, 0.0) F, Ulp, 0.0, f64::round_ties_even;
        "mish" Mish(0.0, 0.0) F, UlpAbove(-87.0), 6.0, |x| x * softplus(x).tanh();
        "hardswish(0.25, 0.5)" Hardswish(0.25, 0.5) F, Ulp, 1.5, |x| x * (0.25 * x + 0.5).clamp(0.0, 1.0);
    }
}

fn gradients() -> [Row; 23] {
    const F: Option<bool> = Some(false);
    const D: Option<bool> = Some(true);
    use Unit::{Absolute, Ulp, UlpAbove};
    rows! {
        "tanh" Tanh(0.0, 0.0) F, Ulp, 3.0, |x| sigmoid(2.0 * x) * sigmoid(-2.0 * x) * 4.0;
        "elu(1)" Elu(1.0, 0.0) F, Ulp, 1.0, |x| if x > 0.0 { 1.0 } else { x.exp() };
        "square" Square(0.0, 0.0) F, Ulp, 0.5, |x| 2.0 * x;
        "abs" Abs(0.0, 0.0) F, Ulp, 0.0, |x| if x == 0.0 { 0.0 } else { x.signum() };
        "sqrt" Sqrt(0.0, 0.0) F, Ulp, 1.5, |x| 0.5 / x.sqrt();
        "linear(3, 0.5)" Linear(3.0, 0.5) F, Ulp, 0.5, |_| 3.0;
        "soft_relu(1)" SoftRelu(1.0, 0.0) F, Ulp, 3.0, sigmoid;
        "hardsigmoid(0.25, 0.5)" Hardsigmoid(0.25, 0.5) F, Ulp, 0.0, |x| if x > -2.0 && x < 2.0 { 0.25 } else { 0.0 };
        "logistic" Logistic(0.0, 0.0) F, Ulp, 3.0, |x| sigmoid(x) * sigmoid(-x);
        "exp" Exp(0.0, 0.0) F, Ulp, 1.0, f64::exp;
        "gelu_tanh" GeluTanh(0.0, 0.0) F, Absolute, 4.0, gelu_tanh_slope;
        "swish(1)" Swish(1.0, 0.0) F, Absolute, 4.0, swish_slope;
        "log" Log(0.0, 0.0) F, Ulp, 0.5, |x| 1.0 / x;
        "pow(2, 1.5)" Pow(2.0, 1.5) F, Ulp, 1.5, |x| 3.0 * x.sqrt();
        "gelu_erf" GeluErf(0.0, 0.0) F, Absolute, 4.0, gelu_erf_slope;
        "mish" Mish(0.0, 0.0) F, Absolute, 4.0, mish_slope;
        "hardswish(0.25, 0.5)" Hardswish(0.25, 0.5) F, Ulp, 1.0, |x| if x <= -2.0 { 0.0 } else if x >= 2.0 { 1.0 } else { 0.5 * x + 0.5 };
        "mish, in ulp" Mish(0.0, 0.0) F, UlpAbove(-0.5), 8.0, mish_slope;
        "tanh, of dst" Tanh(0.0, 0.0) D, Ulp, 0.5, |d| 1.0 - d * d;
        "elu(1), of dst" Elu(1.0, 0.0) D, Ulp, 0.5, |d| if d > 0.0 { 1.0 } else { d + 1.0 };
        "sqrt, of dst" Sqrt(0.0, 0.0) D, Ulp, 0.5, |d| 0.5 / d;
        "logistic, of dst" Logistic(0.0, 0.0) D, Ulp, 0.5, |d| d - d * d;
        "exp, of dst" Exp(0.0, 0.0) D, Ulp, 0.0, |d| d;
    }
}

/// Every 997th finite f32 of both signs.
fn numbers() -> Vec<f32> {
    let bits = (0..0x7f80_0000u32).step_by(997);
    bits.flat_map(|bits| [bits, bits | 0x8000_0000]).map(f32::from_bits).collect()
}

#[test]
fn errors_of_functions_and_gradients_are_as_stated() {
    let numbers = numbers();
    let mut exceeds = false;
    for row in functions().iter().chain(&gradients()) {
        let best = results(row, Level::available()[0], &numbers);
        let (mut largest, mut at) = (0.0, 0.0);
        for (x, got) in numbers.iter().zip(&best) {
            let found = error(row.unit, *x, *got, (row.right)(f64::from(*x)));
            assert!(!found.is_nan(), "{} of {x:e}: {got:e}", row.name);
            if found > largest {
                (largest, at) = (found, *x);
            }
        }
        let (what, unit) = match (row.gradient, row.unit) {
            (None, Unit::OfX) => ("f ", "of 2^-23 |x|"),
            (None, _) => ("f ", "ulp"),
            (_, Unit::Absolute) => ("f'", "of 2^-23"),
            (_, _) => ("f'", "ulp"),
        };
        println!("{what} {:24} {largest:6.2} {unit}, at {at:e}", row.name);
        exceeds |= largest > row.stated;
        // The other levels have the same bits, as some of the numbers show.
        let some: Vec<f32> = numbers.iter().copied().step_by(61).collect();
        let expected: Vec<f32> = best.iter().copied().step_by(61).collect();
        for level in Level::available() {
            for ((x, got), expected) in some.iter().zip(results(row, *level, &some)).zip(&expected)
            {
                let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
                assert!(same, "{} {} of {x:e}: {got:e}, not {expected:e}", level.name(), row.name);
            }
        }
    }
    assert!(!exceeds, "an error is larger than stated");
}

/// Where functions are flat, their gradients are finite; NaN stays NaN.
#[test]
fn gradients_of_no_finite_numbers() {
    let infinite = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    for (algorithm, up, down) in [
        (E::Tanh, 0.0, 0.0),
        (E::Logistic, 0.0, 0.0),
        (E::Swish, 1.0, 0.0),
        (E::GeluErf, 1.0, 0.0),
        (E::GeluTanh, 1.0, 0.0),
        (E::Mish, 1.0, 0.0),
        (E::Elu, 1.0, 0.0),
        (E::SoftRelu, 1.0, 0.0),
        (E::Exp, f32::INFINITY, 0.0),
    ] {
        let row = Row {
            name: "",
            algorithm,
            parameters: (1.0, 0.0),
            gradient: Some(false),
            right: |x| x,
            unit: Unit::Ulp,
            stated: 0.0,
        };
        let got = results(&row, Level::Portable, &infinite);
        assert_eq!((got[0], got[1].abs()), (up, down), "{algorithm:?}");
        assert!(got[2].is_nan(), "{algorithm:?}");
    }
}
