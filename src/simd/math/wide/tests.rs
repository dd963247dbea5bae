//! The bits, and values at the edges. `tests/c/f64_errors.c` measures the errors in a format wider than f64.

use super::*;
use crate::simd::math::Exponent;

/// Numbers of every exponent, with more of those near 1.
fn spread() -> Vec<f64> {
    let mut numbers = Vec::new();
    for exponent in 0..2047u64 {
        let count = if (953..1035).contains(&exponent) { 211 } else { 3 };
        for i in 0..count {
            let mantissa = (exponent * 977 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
            let x = f64::from_bits(exponent << 52 | mantissa);
            numbers.extend([x, -x]);
        }
    }
    numbers
}

/// A hash of all bits of a function's values.
fn digest(f: impl Fn(f64) -> f64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for x in spread() {
        let value = f(x);
        let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
        hash = (hash ^ bits).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

const EXPONENTS: [f64; 12] =
    [0.5, -0.5, 1.0, 2.0, -3.0, 1.5, 0.1, 300.0, -1e-3, 1e10, f64::INFINITY, f64::NEG_INFINITY];

#[test]
fn bits_are_those_of_earlier_versions() {
    let powers = EXPONENTS.iter().fold(0u64, |sum, b| {
        sum.rotate_left(1).wrapping_add(digest(|x| pow(x, Exponent::wide(*b))))
    });
    let table = [
        ("exp", 0x563d_d373_d101_e399, digest(exp)),
        ("log", 0x766a_eab4_a96d_e9b2, digest(log)),
        ("tanh", 0x1772_7108_a4d5_d1cf, digest(tanh)),
        ("tanh'", 0x3e79_f822_7046_79b5, digest(tanh_slope)),
        ("softplus", 0x43d9_1c0d_5468_0d32, digest(softplus)),
        ("logistic", 0x533c_6912_96c2_bacf, digest(logistic)),
        ("logistic'", 0xf215_395a_0c4f_d4c3, digest(logistic_slope)),
        ("swish", 0xfe9f_32b2_8de8_3cab, digest(|x| swish(x, 1.702))),
        ("swish'", 0x5db5_552d_77bc_7145, digest(|x| swish_slope(x, 1.702))),
        ("gelu_tanh", 0xd3d2_41b4_004c_d894, digest(gelu_tanh)),
        ("gelu_tanh'", 0xd714_c2d8_a2b8_f4f2, digest(gelu_tanh_slope)),
        ("gelu_erf", 0x2373_edb1_ab49_220e, digest(gelu_erf)),
        ("gelu_erf'", 0xd892_f14b_75d1_a65c, digest(gelu_erf_slope)),
        ("mish", 0xf430_52b2_038b_e6aa, digest(mish)),
        ("mish'", 0x6b64_fb44_ce9c_b6e9, digest(mish_slope)),
        ("elu", 0xc953_ee2b_dbfb_97fa, digest(|x| elu(x, 0.3))),
        ("pow", 0xa44d_9587_c248_7741, powers),
    ];
    let differs = |row: &(&str, u64, u64)| row.1 != row.2;
    for (name, _, found) in table.into_iter().filter(differs) {
        println!("        (\"{name}\", {found:#x}");
    }
    assert!(!table.iter().any(differs), "bits differ");
}

#[test]
fn powers_at_the_edges_are_those_of_c() {
    let numbers = [0.0, 5e-324, 0.5, 1.0, 2.0, 1.797e308, f64::INFINITY];
    let exponents = [0.0, 1.0, 2.0, 3.0, 0.3, 1e15, 1e300, f64::INFINITY];
    let signed = |x: f64| [x, -x];
    for b in exponents.into_iter().flat_map(signed).chain([f64::NAN]) {
        for x in numbers.into_iter().flat_map(signed).chain([f64::NAN]) {
            let (got, right) = (pow(x, Exponent::wide(b)), std::hint::black_box(x).powf(b));
            let near = (got - right).abs() <= right.abs() * f64::EPSILON + f64::from_bits(1);
            let same = got.to_bits() == right.to_bits() || (got.is_nan() && right.is_nan());
            assert!(near || same, "{x:e}^{b}: {got}, not {right}");
        }
    }
}

#[test]
fn functions_have_their_limits() {
    let up = f64::INFINITY;
    type Row = (&'static str, fn(f64) -> f64, f64, f64);
    let rows: [Row; 13] = [
        ("exp", exp, 0.0, up),
        ("tanh", tanh, -1.0, 1.0),
        ("tanh'", tanh_slope, 0.0, 0.0),
        ("softplus", softplus, 0.0, up),
        ("logistic", logistic, 0.0, 1.0),
        ("logistic'", logistic_slope, 0.0, 0.0),
        ("swish'", |x| swish_slope(x, 1.0), 0.0, 1.0),
        ("gelu_tanh'", gelu_tanh_slope, 0.0, 1.0),
        ("gelu_erf'", gelu_erf_slope, 0.0, 1.0),
        ("mish'", mish_slope, 0.0, 1.0),
        ("elu", |x| elu(x, 1.0), -1.0, up),
        ("gelu_erf", gelu_erf, f64::NAN, up),
        ("mish", mish, f64::NAN, up),
    ];
    for (name, f, low, high) in rows {
        assert_eq!(f(f64::INFINITY), high, "{name}");
        assert!(f(f64::NEG_INFINITY) == low || low.is_nan(), "{name}");
        assert!(f(f64::NAN).is_nan(), "{name}");
        // e^x vanishes below about -746.
        assert!(f(-800.0) == low || low.is_nan() && f(-800.0) == 0.0, "{name}: {}", f(-800.0));
    }
    assert_eq!(log(0.0), f64::NEG_INFINITY);
    assert_eq!(log(f64::INFINITY), f64::INFINITY);
    assert!(log(-1.0).is_nan() && log(f64::NAN).is_nan());
    assert_eq!(tanh(-0.0).to_bits(), (-0.0f64).to_bits());
}
