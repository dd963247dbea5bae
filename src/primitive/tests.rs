//! The largest errors of every elementwise function and gradient in a chain, over every 997th f32, against f64. The
//! documentation has the table that this prints.

use super::EltwiseAlgorithm as E;
use super::exact_tests::{
    Unit, below, gelu_erf_slope, gelu_tanh_slope, largest, mish_slope, numbers, quote, sigmoid,
    softplus, swish_slope, tanh_argument,
};
use super::{
    Ahead, Arguments, Attr, BeforePostOps, Gradient, INPUTS, InputRows, Inputs, PostOpChain, Rows,
    Start, chain_entry,
};
use crate::simd::Level;
use crate::tensor::{DataType, MemoryDesc};

/// What is measured of an algorithm.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Function,
    Slope,
    SlopeOfDst,
}

impl Part {
    fn start(self, algorithm: E, (alpha, beta): (f32, f32)) -> Start {
        match self {
            Self::Function => Start::Eltwise { algorithm, alpha, beta },
            _ => Start::Gradient(Gradient::new(algorithm, self == Self::SlopeOfDst, (alpha, beta))),
        }
    }
}

/// The results of a function of every number, on a level; for a gradient, of a diff_dst of ones.
fn results(start: Start, level: Level, of: &[f32]) -> Vec<f32> {
    let before = BeforePostOps { start: Some(start), ..BeforePostOps::default() };
    let desc = MemoryDesc::dense(&[of.len() as i64], DataType::F32).unwrap();
    let chain = PostOpChain::after(&before, &Attr::default(), &desc, Some(&[])).unwrap().unwrap();
    let (mut xs, mut ones) = (of.to_vec(), vec![1.0f32; of.len()]);
    let mut results = vec![0.0f32; of.len()];
    let mut inputs = [InputRows { start: xs.as_mut_ptr(), step: 0, ahead: Ahead::NONE }; INPUTS];
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

/// The right results of a part, and the unit of its errors.
type Right = (Part, Unit, fn(f64) -> f64);

/// An algorithm with its parameters, alpha and beta.
struct Row {
    name: &'static str,
    algorithm: E,
    parameters: (f32, f32),
    parts: Vec<Right>,
}

macro_rules! rows {
    ($($name:literal $algorithm:ident($alpha:literal, $beta:literal):
        $($part:ident $unit:expr, $right:expr);+;)*) => {
        vec![$(Row {
            name: $name,
            algorithm: E::$algorithm,
            parameters: ($alpha, $beta),
            parts: vec![$((Part::$part, $unit, $right)),+],
        },)*]
    };
}

/// Functions of one or two operations.
#[rustfmt::skip]
fn short_functions() -> Vec<Row> {
    use Unit::Ulp;
    rows! {
        "relu, alpha 0.25" Relu(0.25, 0.0):
            Function Ulp, |x| if x > 0.0 { x } else { 0.25 * x };
            Slope Ulp, |x| if x > 0.0 { 1.0 } else { 0.25 };
            SlopeOfDst Ulp, |d| if d > 0.0 { 1.0 } else { 0.25 };
        "sqrt" Sqrt(0.0, 0.0):
            Function Ulp, f64::sqrt;
            Slope Ulp, |x| 0.5 / x.sqrt();
            SlopeOfDst Ulp, |d| 0.5 / d;
        "clip_v2, -2 to 3" ClipV2(-2.0, 3.0):
            Function Ulp, |x| x.clamp(-2.0, 3.0);
            Slope Ulp, |x| if x > -2.0 && x < 3.0 { 1.0 } else { 0.0 };
            SlopeOfDst Ulp, |d| if d > -2.0 && d < 3.0 { 1.0 } else { 0.0 };
        "clip, -2 to 3" Clip(-2.0, 3.0):
            Function Ulp, |x| x.clamp(-2.0, 3.0);
            Slope Ulp, |x| if x > -2.0 && x <= 3.0 { 1.0 } else { 0.0 };
        "abs" Abs(0.0, 0.0):
            Function Ulp, f64::abs;
            Slope Ulp, |x| if x == 0.0 { 0.0 } else { x.signum() };
        "square" Square(0.0, 0.0):
            Function Ulp, |x| x * x;
            Slope Ulp, |x| 2.0 * x;
        "linear, alpha 3, beta 0.5" Linear(3.0, 0.5):
            Function Ulp, |x| 3.0 * x + 0.5;
            Slope Ulp, |_| 3.0;
        "round" Round(0.0, 0.0):
            Function Ulp, f64::round_ties_even;
        "hardsigmoid, alpha 0.25, beta 0.5" Hardsigmoid(0.25, 0.5):
            Function Ulp, |x| (0.25 * x + 0.5).clamp(0.0, 1.0);
            Slope Ulp, |x| if x > -2.0 && x < 2.0 { 0.25 } else { 0.0 };
        "hardswish, alpha 0.25, beta 0.5" Hardswish(0.25, 0.5):
            Function Ulp, |x| x * (0.25 * x + 0.5).clamp(0.0, 1.0);
            Slope Ulp, |x| if x <= -2.0 { 0.0 } else if x >= 2.0 { 1.0 } else { 0.5 * x + 0.5 };
    }
}

/// Functions that are computed from elementary functions.
#[rustfmt::skip]
fn long_functions() -> Vec<Row> {
    use Unit::{Absolute, OfX, Ulp, UlpAbove};
    rows! {
        "elu, alpha 1" Elu(1.0, 0.0):
            Function Ulp, |x| if x > 0.0 { x } else { x.exp_m1() };
            Slope Ulp, |x| if x > 0.0 { 1.0 } else { x.exp() };
            SlopeOfDst Ulp, |d| if d > 0.0 { 1.0 } else { d + 1.0 };
        "tanh" Tanh(0.0, 0.0):
            Function Ulp, f64::tanh;
            Slope Ulp, |x| sigmoid(2.0 * x) * sigmoid(-2.0 * x) * 4.0;
            SlopeOfDst Ulp, |d| 1.0 - d * d;
        "logistic" Logistic(0.0, 0.0):
            Function Ulp, sigmoid;
            Slope Ulp, |x| sigmoid(x) * sigmoid(-x);
            SlopeOfDst Ulp, |d| d - d * d;
        "exp" Exp(0.0, 0.0):
            Function Ulp, f64::exp;
            Slope Ulp, f64::exp;
            SlopeOfDst Ulp, |d| d;
        "log" Log(0.0, 0.0):
            Function Ulp, f64::ln;
            Slope Ulp, |x| 1.0 / x;
        "pow, alpha 2, beta 1.5" Pow(2.0, 1.5):
            Function Ulp, |x| 2.0 * x.powf(1.5);
            Slope Ulp, |x| 3.0 * x.sqrt();
        "soft_relu, alpha 1" SoftRelu(1.0, 0.0):
            Function Ulp, softplus;
            Slope Ulp, sigmoid;
        "soft_relu, alpha -1" SoftRelu(-1.0, 0.0):
            Function Ulp, |x| -softplus(-x);
            Slope Ulp, |x| sigmoid(-x);
        "swish, alpha 1" Swish(1.0, 0.0):
            Function UlpAbove(-87.0), |x| x * sigmoid(x);
            Slope Absolute, swish_slope;
        "swish, alpha 1.702" Swish(1.702, 0.0):
            Function OfX, |x| x * sigmoid(f64::from(1.702f32) * x);
            Slope Absolute, |x| swish_slope(f64::from(1.702f32) * x);
        "gelu_erf" GeluErf(0.0, 0.0):
            Function OfX, |x| x * below(x);
            Slope Absolute, gelu_erf_slope;
        "gelu_tanh" GeluTanh(0.0, 0.0):
            Function OfX, |x| x * sigmoid(tanh_argument(x).0);
            Slope Absolute, gelu_tanh_slope;
        "mish" Mish(0.0, 0.0):
            Function UlpAbove(-87.0), |x| x * softplus(x).tanh();
            Slope Absolute, mish_slope;
        "mish, in ulp" Mish(0.0, 0.0):
            Slope UlpAbove(-0.5), mish_slope;
    }
}

/// The other levels have the same bits, as some of the numbers show.
fn same_on_every_level(name: &str, start: Start, of: &[f32], best: &[f32]) {
    let some: Vec<f32> = of.iter().copied().step_by(61).collect();
    let expected: Vec<f32> = best.iter().copied().step_by(61).collect();
    for level in Level::available() {
        for ((x, got), expected) in some.iter().zip(results(start, *level, &some)).zip(&expected) {
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{} {name} of {x:e}: {got:e}, not {expected:e}", level.name());
        }
    }
}

#[test]
fn errors_of_functions_and_gradients_are_as_stated() {
    let numbers = numbers();
    let mut table = Vec::new();
    for row in short_functions().into_iter().chain(long_functions()) {
        let mut cells = ["–", "–", "–"].map(str::to_owned);
        for (part, unit, right) in row.parts {
            let start = part.start(row.algorithm, row.parameters);
            let best = results(start, Level::available()[0], &numbers);
            cells[part as usize] = unit.quoted(largest(unit, &numbers, &best, right));
            same_on_every_level(row.name, start, &numbers, &best);
        }
        table.push(format!("| {} | {} |", row.name, cells.join(" | ")));
    }
    quote(include_str!("../../docs/primitives/eltwise.md"), &table);
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
        let start = Part::Slope.start(algorithm, (1.0, 0.0));
        let got = results(start, Level::Portable, &infinite);
        assert_eq!((got[0], got[1].abs()), (up, down), "{algorithm:?}");
        assert!(got[2].is_nan(), "{algorithm:?}");
    }
}
