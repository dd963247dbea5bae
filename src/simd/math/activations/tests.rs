//! Errors against f64, and equal bits with and without derivatives.

use super::super::tests::{Function, erfc, largest, spread, stated, ulps, value, values};
use super::super::*;

macro_rules! functions {
    ($($name:ident = |$x:ident| $value:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        impl Function for $name {
            #[inline(always)]
            fn of<S: Simd>(self, $x: Lanes<S>) -> Lanes<S> {
                $value
            }
        }
    )*};
}

functions! {
    ExpBelow = |x| exp_below(-x.abs());
    Exp = |x| exp(-x.abs());
    Logistic = |x| logistic(x);
    LogisticBeside = |x| logistic_and_slope(x).0;
    LogisticSlope = |x| logistic_and_slope(x).1;
    TanhSlope = |x| tanh_slope(x);
    Swish = |x| swish(x, 1.702);
    SwishBeside = |x| swish_and_slope(x, 1.702).0;
    SwishSlope = |x| swish_and_slope(x, 1.0).1;
    GeluTanh = |x| gelu_tanh(x);
    GeluTanhBeside = |x| gelu_tanh_and_slope(x).0;
    GeluTanhSlope = |x| gelu_tanh_and_slope(x).1;
    GeluErf = |x| gelu_erf(x);
    GeluErfBeside = |x| gelu_erf_and_slope(x).0;
    GeluErfSlope = |x| gelu_erf_and_slope(x).1;
}

fn logistic_of(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn logistic_slope_of(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    e / (1.0 + e).powi(2)
}

#[test]
fn derivatives_err_by_few_ulp() {
    let spread = spread(997);
    let in_ulps = |_, got, right| ulps(got, right);
    let normal = |_, got: f32, right: f64| {
        if right < f64::from(f32::MIN_POSITIVE) { 0.0 } else { ulps(got, right) }
    };
    let tanh = |x: f64| 4.0 * logistic_slope_of(2.0 * x);
    let table = [
        ("logistic'", largest(LogisticSlope, &spread, logistic_slope_of, in_ulps)),
        ("tanh'", largest(TanhSlope, &spread, tanh, normal)),
    ];
    for (name, found) in table {
        stated(name, 3.0, found);
    }
}

#[test]
fn derivatives_err_as_stated() {
    let finite: Vec<f32> = spread(997).into_iter().filter(|x| x.is_finite()).collect();
    let off = |_: f32, got: f32, right: f64| (f64::from(got) - right).abs() * 2f64.powi(21);
    let swish = |x: f64| logistic_of(x) + x.clamp(-700.0, 700.0) * logistic_slope_of(x);
    let gelu_tanh = |x: f64| {
        let x = x.clamp(-30.0, 30.0);
        let (linear, cubic) = (2.0 * (2.0 / std::f64::consts::PI).sqrt(), 0.044_715);
        let inner = linear * (x + cubic * x.powi(3));
        logistic_of(inner) + x * linear * (1.0 + 3.0 * cubic * x * x) * logistic_slope_of(inner)
    };
    let gelu_erf = |x: f64| {
        let x = x.clamp(-30.0, 30.0);
        let tail = 0.5 * erfc(x.abs() / 2f64.sqrt());
        let below = if x < 0.0 { tail } else { 1.0 - tail };
        below + x * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    };
    for (name, found) in [
        ("swish'", largest(SwishSlope, &finite, swish, off)),
        ("gelu_tanh'", largest(GeluTanhSlope, &finite, gelu_tanh, off)),
        ("gelu_erf'", largest(GeluErfSlope, &finite, gelu_erf, off)),
    ] {
        println!("{name}: {found:.2} of 2^-21");
        assert!(found <= 1.0, "{name}: {found}");
    }
}

#[test]
fn values_beside_derivatives_have_the_same_bits() {
    fn check<A: Function, B: Function>(a: A, b: B) {
        let of = spread(9973);
        for ((x, a), b) in of.iter().zip(values(a, &of)).zip(values(b, &of)) {
            assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{x:e}: {a:e}, {b:e}");
        }
    }
    check(Exp, ExpBelow);
    check(Logistic, LogisticBeside);
    check(Swish, SwishBeside);
    check(GeluTanh, GeluTanhBeside);
    check(GeluErf, GeluErfBeside);
}

#[test]
fn activations_of_extreme_numbers() {
    for x in [-110.0, -1e4, -1e30, f32::MIN] {
        assert_eq!(value(Logistic, x), 0.0);
        assert_eq!(value(Swish, x), 0.0);
        assert_eq!(value(SwishSlope, x), 0.0);
    }
    for x in [100.0, 1e30, f32::MAX] {
        assert_eq!(value(Logistic, x), 1.0);
        assert_eq!(value(Swish, x), x);
        assert_eq!(value(SwishSlope, x), 1.0);
    }
    assert_eq!(value(Swish, f32::INFINITY), f32::INFINITY);
    assert_eq!(value(SwishSlope, f32::INFINITY), 1.0);
    assert_eq!(value(SwishSlope, f32::NEG_INFINITY), 0.0);
    assert!(value(Logistic, f32::NAN).is_nan() && value(SwishSlope, f32::NAN).is_nan());
}
