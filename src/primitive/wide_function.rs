//! The functions of eltwise and their gradients for one element in f64.

use super::{EltwiseAlgorithm, Gradient, Start};
use crate::simd::math::{Exponent, wide as math};

/// What to compute for an element.
#[derive(Clone, Copy)]
enum Of {
    Value,
    /// The gradient, from src.
    GradientOfSrc,
    /// The gradient, from dst.
    GradientOfDst,
}

/// A function, or its gradient.
#[derive(Clone, Copy)]
pub(crate) struct WideFunction {
    of: Of,
    algorithm: EltwiseAlgorithm,
    alpha: f64,
    beta: f64,
    /// The exponent of a power, or that of its derivative.
    exponent: Exponent,
}

impl WideFunction {
    /// `None` for a function of two tensors.
    pub(crate) fn new(start: Start) -> Option<Self> {
        let (of, algorithm, alpha, beta) = match start {
            Start::Eltwise { algorithm, alpha, beta } => (Of::Value, algorithm, alpha, beta),
            Start::Gradient(Gradient { algorithm, from_dst, alpha, beta, .. }) => {
                let of = if from_dst { Of::GradientOfDst } else { Of::GradientOfSrc };
                (of, algorithm, alpha, beta)
            }
            Start::Binary { .. } => return None,
        };
        let (alpha, beta) = (f64::from(alpha), f64::from(beta));
        let exponent = Exponent::wide(if matches!(of, Of::Value) { beta } else { beta - 1.0 });
        Some(Self { of, algorithm, alpha, beta, exponent })
    }

    /// The function of `x`, or the gradient at `x`, an element of src or dst, for a diff_dst of `y`.
    pub(crate) fn of(&self, x: f64, y: f64) -> f64 {
        match self.of {
            Of::Value => self.value(x),
            Of::GradientOfSrc => self.gradient_of_src(x, y),
            Of::GradientOfDst => self.gradient_of_dst(x, y),
        }
    }

    fn value(&self, x: f64) -> f64 {
        use EltwiseAlgorithm as E;
        let &Self { alpha: a, beta: b, .. } = self;
        match self.algorithm {
            E::Relu if a == 0.0 => choose(x < 0.0, 0.0, x),
            E::Relu => choose(x > 0.0, x, x * a),
            E::Tanh => math::tanh(x),
            E::Elu => math::elu(x, a),
            E::Square => x * x,
            E::Abs => x.abs(),
            E::Sqrt => x.sqrt(),
            E::Linear => x.mul_add(a, b),
            E::SoftRelu => math::softplus(x * a) / a,
            E::Hardsigmoid => math::within(x.mul_add(a, b), 0.0, 1.0),
            E::Logistic => math::logistic(x),
            E::Exp => math::exp(x),
            E::GeluTanh => math::gelu_tanh(x),
            E::Swish => math::swish(x, a),
            E::Log => math::log(x),
            E::Clip | E::ClipV2 => math::within(x, a, b),
            E::Pow => math::pow(x, self.exponent) * a,
            E::GeluErf => math::gelu_erf(x),
            E::Round => x.round_ties_even(),
            E::Mish => math::mish(x),
            E::Hardswish => x * math::within(x.mul_add(a, b), 0.0, 1.0),
        }
    }

    fn gradient_of_src(&self, x: f64, y: f64) -> f64 {
        use EltwiseAlgorithm as E;
        let &Self { alpha: a, beta: b, .. } = self;
        match self.algorithm {
            E::Relu => scaled_unless(x > 0.0, y, a),
            E::Tanh => y * math::tanh_slope(x),
            E::Elu => choose(x > 0.0, y, y * (math::exp(x) * a)),
            E::Square => y * 2.0 * x,
            E::Abs => choose(x == 0.0, 0.0, y * 1f64.copysign(x)),
            E::Sqrt => y / (x.sqrt() * 2.0),
            E::Linear => y * a,
            E::SoftRelu => y * math::logistic(x * a),
            E::Hardsigmoid => {
                let line = x.mul_add(a, b);
                choose(line <= 0.0 || line >= 1.0, 0.0, y * a)
            }
            E::Logistic => y * math::logistic_slope(x),
            E::Exp => y * math::exp(x),
            E::GeluTanh => y * math::gelu_tanh_slope(x),
            E::Swish => y * math::swish_slope(x, a),
            E::Log => y / x,
            E::Clip => choose(a < x && x <= b, y, 0.0),
            E::ClipV2 => choose(a < x && x < b, y, 0.0),
            E::Pow if b == 0.0 => 0.0,
            E::Pow => y * (math::pow(x, self.exponent) * (a * b)),
            E::GeluErf => y * math::gelu_erf_slope(x),
            // It has no gradient, and no primitive requests one.
            E::Round => 0.0,
            E::Mish => y * math::mish_slope(x),
            E::Hardswish => {
                let line = x.mul_add(a, b);
                if line <= 0.0 {
                    0.0
                } else if line >= 1.0 {
                    y
                } else {
                    y * x.mul_add(2.0 * a, b)
                }
            }
        }
    }

    fn gradient_of_dst(&self, d: f64, y: f64) -> f64 {
        use EltwiseAlgorithm as E;
        let &Self { alpha: a, beta: b, .. } = self;
        match self.algorithm {
            E::Tanh => y * (-d).mul_add(d, 1.0),
            E::Elu => choose(d > 0.0, y, y * (d + a)),
            E::Sqrt => y * 0.5 / d,
            E::Logistic => y * (-d).mul_add(d, d),
            E::Exp => y * d,
            E::ClipV2 => choose(a < d && d < b, y, 0.0),
            // Relu's sign is that of src; the others have no such gradient.
            _ => scaled_unless(d > 0.0, y, a),
        }
    }
}

fn choose(first: bool, a: f64, b: f64) -> f64 {
    if first { a } else { b }
}

/// `y`, or its product with `a`; 0 if `a` is 0.
fn scaled_unless(above: bool, y: f64, a: f64) -> f64 {
    if above {
        y
    } else if a == 0.0 {
        0.0
    } else {
        y * a
    }
}
