//! Functions and their derivatives in f64, and the errors of f32 results, as the documentation quotes them.

/// The unit of an error.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Units in the last place of the result.
    Ulp,
    /// The same, where the number is above this.
    UlpAbove(f64),
    /// 2^-23.
    Absolute,
    /// 2^-23 times the number.
    OfX,
}

impl Unit {
    /// An error, as a table quotes it.
    pub(crate) fn quoted(self, error: f64) -> String {
        match self {
            Self::Ulp => format!("{error:.2} ulp"),
            Self::UlpAbove(low) => format!("{error:.2} ulp above {low}"),
            Self::Absolute => format!("{error:.2} * 2^-23"),
            Self::OfX => format!("{error:.2} * 2^-23 of \\|x\\|"),
        }
    }
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

pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub(crate) fn softplus(x: f64) -> f64 {
    if x > 40.0 { x } else { x.exp().ln_1p() }
}

/// The cumulative normal distribution at x, by a series or a continued fraction.
pub(crate) fn below(x: f64) -> f64 {
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

pub(crate) fn gelu_erf_slope(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x.abs() > 1e3 { below(x) } else { below(x) + x * density }
}

/// The argument of gelu_tanh's logistic, and its derivative times x.
pub(crate) fn tanh_argument(x: f64) -> (f64, f64) {
    let x = x.clamp(-1e3, 1e3);
    let c = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
    (c * (x + 0.044_715 * x.powi(3)), c * (x + 0.134_145 * x.powi(3)))
}

pub(crate) fn gelu_tanh_slope(x: f64) -> f64 {
    let (g, slope) = tanh_argument(x);
    sigmoid(g) + slope * sigmoid(g) * sigmoid(-g)
}

pub(crate) fn swish_slope(x: f64) -> f64 {
    let bounded = x.clamp(-1e3, 1e3);
    sigmoid(bounded) + bounded * sigmoid(bounded) * sigmoid(-bounded)
}

pub(crate) fn mish_slope(x: f64) -> f64 {
    let x = x.clamp(-700.0, 300.0);
    let w = softplus(x).tanh();
    // 1 - w^2 without cancellation.
    let t = x.exp() * (x.exp() + 2.0);
    w + x * sigmoid(x) * (4.0 * (t + 1.0) / (t + 2.0).powi(2))
}

/// Every 997th finite f32 of both signs.
pub(crate) fn numbers() -> Vec<f32> {
    let bits = (0..0x7f80_0000u32).step_by(997);
    bits.flat_map(|bits| [bits, bits | 0x8000_0000]).map(f32::from_bits).collect()
}

/// The largest error of the results of a function of some numbers.
pub(crate) fn largest(unit: Unit, of: &[f32], got: &[f32], right: fn(f64) -> f64) -> f64 {
    let errors = of.iter().zip(got).map(|(x, got)| {
        let error = error(unit, *x, *got, right(f64::from(*x)));
        assert!(!error.is_nan(), "{x:e}: {got:e}");
        error
    });
    errors.fold(0.0, f64::max)
}

/// Prints the rows of a table, which must be on a page.
pub(crate) fn quote(page: &str, table: &[String]) {
    let (mut printed, mut missing) = (String::new(), 0);
    for row in table {
        printed += row;
        printed.push('\n');
        missing += usize::from(!page.lines().any(|line| line == row));
    }
    println!("{printed}");
    assert_eq!(missing, 0, "the page has other rows than\n{printed}");
}
