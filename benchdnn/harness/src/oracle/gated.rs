//! Gated activation in f64.
//!
//! ```text
//! g = min(gate, limit)        u = max(-limit, min(up, limit)) + shift
//! forward   dst       = f(g)*u
//! backward  diff_gate = diff_dst*u*f'(g), 0 where gate > limit
//!           diff_up   = diff_dst*f(g),    0 where up > limit or up < -limit
//!
//! f   swish      g/(1 + exp(-alpha*g))
//!     gelu_erf   g*(1 + erf(g/sqrt(2)))/2
//!     gelu_tanh  g*(1 + tanh(sqrt(2/pi)*(g + 0.044715*g^3)))/2
//!     relu       g if g > 0, else alpha*g
//!     logistic   1/(1 + exp(-g))
//!     linear     alpha*g
//! ```

/// The function of the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Function {
    /// `g/(1 + exp(-alpha*g))`.
    #[default]
    Swish,
    /// `g*(1 + erf(g/sqrt(2)))/2`.
    GeluErf,
    /// `g*(1 + tanh(sqrt(2/pi)*(g + 0.044715*g^3)))/2`.
    GeluTanh,
    /// `g`, or `alpha*g` below 0.
    Relu,
    /// `1/(1 + exp(-g))`.
    Logistic,
    /// `alpha*g`.
    Linear,
}

/// The numbers of a problem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbers {
    /// A factor of the function.
    pub alpha: f64,
    /// The largest gate and the largest magnitude of up; infinite for none.
    pub limit: f64,
    /// Added to up.
    pub shift: f64,
}

/// The values of an output, and how far an f32 result may be off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The values.
    pub values: Vec<f64>,
    /// The bounds of the errors.
    pub bounds: Vec<f64>,
}

impl Output {
    fn push(&mut self, (value, bound): (f64, f64)) {
        self.values.push(value);
        self.bounds.push(bound);
    }
}

/// The results of backward.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gradients {
    /// The gradient of the gate.
    pub gate: Output,
    /// The gradient of up.
    pub up: Output,
    /// dst again.
    pub dst: Output,
}

/// The normal distribution function at x.
fn below(x: f64) -> f64 {
    unsafe extern "C" {
        #[link_name = "erfc"]
        safe fn c_erfc(x: f64) -> f64;
    }
    0.5 * c_erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn logistic_slope(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    e / (1.0 + e).powi(2)
}

/// `2 sqrt(2/pi) (x + 0.044715 x^3)` and its derivative. gelu_tanh is x times the logistic function of it.
fn inner(x: f64) -> (f64, f64) {
    const CUBIC: f64 = 0.044_715;
    let factor = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
    (factor * (x + CUBIC * x.powi(3)), factor * (1.0 + 3.0 * CUBIC * x * x))
}

/// Half an ulp of f32, relative to the value.
const HALF_ULP: f64 = 1.0 / 16_777_216.0;
/// The smallest f32; products below the normal numbers have its spacing.
const SMALLEST: f64 = f32::from_bits(1) as f64;

impl Function {
    /// f and its error bound in f32: 3 ulp for the logistic function, after an argument that is rounded, and 2^-22 of x
    /// for both kinds of gelu.
    fn value(self, g: f64, alpha: f64) -> (f64, f64) {
        match self {
            Function::Swish => {
                let value = g * logistic(alpha * g);
                let ulps = 8.0 + (alpha * g).abs();
                (value, ulps * HALF_ULP * value.abs() + 2.0 * SMALLEST * g.abs())
            }
            Function::GeluErf => (g * below(g), 4.0 * HALF_ULP * g.abs()),
            Function::GeluTanh => (g * logistic(inner(g).0), 4.0 * HALF_ULP * g.abs()),
            Function::Relu => {
                let value = if g < 0.0 { alpha * g } else { g };
                (value, HALF_ULP * value.abs())
            }
            Function::Logistic => (logistic(g), 6.0 * HALF_ULP * logistic(g) + 2.0 * SMALLEST),
            Function::Linear => (alpha * g, HALF_ULP * (alpha * g).abs()),
        }
    }

    /// The derivative and its error bound in f32: 2^-21, or 3 ulp of the logistic function's.
    fn slope(self, g: f64, alpha: f64) -> (f64, f64) {
        const OFF: f64 = 8.0 * HALF_ULP;
        match self {
            Function::Swish => {
                let x = alpha * g;
                (logistic(x) + x * logistic_slope(x), OFF)
            }
            Function::GeluErf => {
                let density = (-g * g / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
                (below(g) + g * density, OFF)
            }
            Function::GeluTanh => {
                let (x, slope) = inner(g);
                (logistic(x) + g * slope * logistic_slope(x), OFF)
            }
            Function::Relu => (if g > 0.0 { 1.0 } else { alpha }, 0.0),
            Function::Logistic => {
                (logistic_slope(g), 6.0 * HALF_ULP * logistic_slope(g) + 2.0 * SMALLEST)
            }
            Function::Linear => (alpha, 0.0),
        }
    }
}

/// A product of a value with an error and an f32, rounded.
fn times((value, error): (f64, f64), factor: f64) -> (f64, f64) {
    let product = value * factor;
    (product, error * factor.abs() + HALF_ULP * product.abs() + SMALLEST * (2.0 + factor.abs()))
}

/// The clamped gate and up, and the error bound of up.
fn limited(numbers: Numbers, gate: f64, up: f64) -> (f64, (f64, f64)) {
    let Numbers { limit, shift, .. } = numbers;
    // Keeps NaN, which min and max would drop.
    let g = if gate > limit { limit } else { gate };
    let u = if up > limit { limit } else { up };
    let u = if u < -limit { -limit } else { u } + shift;
    (g, (u, if shift == 0.0 { 0.0 } else { HALF_ULP * u.abs() }))
}

/// The product of two values with errors, in f32.
fn product(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let (value, error) = times(a, b.0);
    (value, error + b.1 * (a.0.abs() + a.1))
}

/// The expected dst.
pub fn forward(function: Function, numbers: Numbers, gate: &[f64], up: &[f64]) -> Output {
    let mut output = Output::default();
    for (gate, up) in gate.iter().zip(up) {
        let (g, u) = limited(numbers, *gate, *up);
        output.push(product(function.value(g, numbers.alpha), u));
    }
    output
}

/// The expected gradients.
pub fn backward(
    function: Function,
    numbers: Numbers,
    [gate, up, diff_dst]: [&[f64]; 3],
) -> Gradients {
    let mut gradients =
        Gradients { dst: forward(function, numbers, gate, up), ..Gradients::default() };
    for ((gate, up), diff_dst) in gate.iter().zip(up).zip(diff_dst) {
        let (g, u) = limited(numbers, *gate, *up);
        let of_gate = times(product(function.slope(g, numbers.alpha), u), *diff_dst);
        let of_up = times(function.value(g, numbers.alpha), *diff_dst);
        let none = (0.0, 0.0);
        gradients.gate.push(if *gate > numbers.limit { none } else { of_gate });
        gradients.up.push(if up.abs() > numbers.limit { none } else { of_up });
    }
    gradients
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Function; 6] = [
        Function::Swish,
        Function::GeluErf,
        Function::GeluTanh,
        Function::Relu,
        Function::Logistic,
        Function::Linear,
    ];
    const PLAIN: Numbers = Numbers { alpha: 1.0, limit: f64::INFINITY, shift: 0.0 };
    /// The numbers of GPT-OSS.
    const LIMITED: Numbers = Numbers { alpha: 1.702, limit: 7.0, shift: 1.0 };

    fn close(got: f64, want: f64) -> bool {
        (got - want).abs() < 1e-9
    }

    #[test]
    fn functions_have_known_values() {
        let of = |function| forward(function, PLAIN, &[1.0], &[2.0]).values[0];
        assert!(close(of(Function::Swish), 2.0 * 0.731_058_578_630_004_9));
        assert!(close(of(Function::GeluErf), 2.0 * 0.841_344_746_068_542_9));
        assert!(close(of(Function::GeluTanh), 2.0 * 0.841_191_990_608_276_9));
        assert!(close(of(Function::Relu), 2.0));
        assert!(close(of(Function::Logistic), 2.0 * 0.731_058_578_630_004_9));
        assert!(close(of(Function::Linear), 2.0));
        let leaky = Numbers { alpha: 0.25, ..PLAIN };
        assert!(close(forward(Function::Relu, leaky, &[-4.0], &[3.0]).values[0], -3.0));
    }

    /// torch.clamp, then `(up + 1)*gate*sigmoid(1.702*gate)`.
    #[test]
    fn limits_bind_gate_above_and_up_on_both_sides() {
        let dst = |gate, up| forward(Function::Swish, LIMITED, &[gate], &[up]).values[0];
        let at_limit = 7.0 * logistic(1.702 * 7.0);
        assert!(close(dst(9.0, 2.0), at_limit * 3.0));
        assert!(close(dst(7.0, 20.0), at_limit * 8.0));
        assert!(close(dst(7.0, -20.0), at_limit * -6.0));
        let low = -20.0 * logistic(1.702 * -20.0);
        assert!(close(dst(-20.0, 0.0), low), "a gate has no lower limit");
    }

    #[test]
    fn gradients_are_those_of_forward() {
        for function in ALL {
            for numbers in [PLAIN, LIMITED] {
                for (gate, up) in [(0.7, -1.25), (-2.5, 0.5), (8.0, 1.0), (3.0, 9.0), (1.0, -7.5)] {
                    let loss =
                        |gate, up| 1.5 * forward(function, numbers, &[gate], &[up]).values[0];
                    let step = 1e-5;
                    let by_gate = (loss(gate + step, up) - loss(gate - step, up)) / (2.0 * step);
                    let by_up = (loss(gate, up + step) - loss(gate, up - step)) / (2.0 * step);
                    let claimed = backward(function, numbers, [&[gate], &[up], &[1.5]]);
                    let (of_gate, of_up) = (claimed.gate.values[0], claimed.up.values[0]);
                    assert!(
                        (of_gate - by_gate).abs() < 1e-7,
                        "{function:?} {gate} {up}: {of_gate}"
                    );
                    assert!((of_up - by_up).abs() < 1e-7, "{function:?} {gate} {up}: {of_up}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_a_number_stays() {
        for function in ALL {
            assert!(forward(function, LIMITED, &[f64::NAN], &[1.0]).values[0].is_nan());
            assert!(forward(function, LIMITED, &[1.0], &[f64::NAN]).values[0].is_nan());
        }
    }
}
