//! Elementary functions of one f32, free of branches, from additions, multiplications, fused multiply-adds,
//! quotients, roots and integer operations alone. So they have the same bits wherever they are compiled, and a loop
//! over a row becomes vectors in an entry that is compiled for an instruction set.
//!
//! Each says its largest error, in units of the last place of the result (ulp), which the tests measure. The
//! polynomials are minimax fits over the ranges named, made for this library.

/// Adding this to a number below 2^22 rounds it to an integer, to nearest even, in the lowest bits.
const TO_INTEGER: f32 = 12_582_912.0;
const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// `ln 2`, the first part with zeros at its end, so that its multiples by an exponent are exact.
const LN2_HIGH: f32 = 0.693_145_75;
const LN2_LOW: f32 = 1.428_606_8e-6;

/// A polynomial, coefficients from the lowest power on: the even powers and the odd ones side by side, as what
/// limits these functions is that each instruction waits for the one before.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let square = x * x;
    let mut sums = [0.0; 2];
    let mut i = N;
    while i > 0 {
        i -= 1;
        let sum = &mut sums[i % 2];
        *sum = if i + 2 >= N { coefficients[i] } else { sum.mul_add(square, coefficients[i]) };
    }
    sums[1].mul_add(x, sums[0])
}

/// `x`, not below `low` and not above `high`; NaN stays.
#[inline(always)]
fn within(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `2^n`, for n from -126 to 127.
#[inline(always)]
fn power_of_2(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `n` and `e^r - 1` with `x = n ln 2 + r`, for |x| below 2^21.
#[inline(always)]
fn reduced_exp(x: f32) -> (i32, f32) {
    let shifted = x.mul_add(LOG2_E, TO_INTEGER);
    let n = shifted - TO_INTEGER;
    let r = (-n).mul_add(LN2_HIGH, x);
    let r = (-n).mul_add(LN2_LOW, r);
    // (e^r - 1 - r)/r^2 for |r| to ln 2/2.
    const C: [f32; 6] =
        [0.5, 0.166_666_67, 0.041_666_463, 0.008_333_286, 0.001_393_368_8, 0.000_199_076_4];
    let q = polynomial(r, C);
    (shifted.to_bits().wrapping_sub(TO_INTEGER.to_bits()).cast_signed(), (r * r).mul_add(q, r))
}

/// `e^x`, 1 ulp.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let (n, q) = reduced_exp(within(x, -110.0, 100.0));
    // In two steps: the result may be subnormal, and 2^n no f32.
    let half = n >> 1;
    (1.0 + q) * power_of_2(half) * power_of_2(n - half)
}

/// `e^x - 1` for x up to 40, beyond which it stays as it is; 2 ulp.
#[inline(always)]
fn exp_m1(x: f32) -> f32 {
    let (n, q) = reduced_exp(within(x, -40.0, 40.0));
    let power = power_of_2(n);
    q.mul_add(power, power - 1.0)
}

/// `ln x`, 1 ulp.
#[inline(always)]
pub(crate) fn log(x: f32) -> f32 {
    let subnormal = x < f32::MIN_POSITIVE;
    let bits = if subnormal { x * 33_554_432.0 } else { x }.to_bits();
    // The fraction from sqrt(1/2) to sqrt(2).
    let exponent = (bits.wrapping_sub(0x3f35_04f3)).cast_signed() >> 23;
    let f = f32::from_bits(bits.wrapping_sub((exponent as u32) << 23)) - 1.0;
    let n = exponent as f32 - if subnormal { 25.0 } else { 0.0 };
    // (ln(1 + f) - f + f^2/2)/f^3.
    const C: [f32; 9] = [
        0.333_333_3,
        -0.249_999_8,
        0.200_006_93,
        -0.166_691_68,
        0.142_509_88,
        -0.123_962_26,
        0.116_360_64,
        -0.116_638_31,
        0.073_330_04,
    ];
    let square = f * f;
    let rest = (square * f).mul_add(polynomial(f, C), -0.5 * square);
    let value = n.mul_add(LN2_HIGH, n.mul_add(LN2_LOW, rest) + f);
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x < 0.0 || x.is_nan() { f32::NAN } else { value }
}

/// `tanh x`, 3 ulp.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let t = exp_m1(2.0 * within(x.abs(), 0.0, 20.0));
    (t / (t + 2.0)).copysign(x)
}

/// `1/(1 + e^-x)`, 3 ulp.
#[inline(always)]
pub(crate) fn logistic(x: f32) -> f32 {
    let e = exp(-x.abs());
    let top = if x < 0.0 { e } else { 1.0 };
    top / (1.0 + e)
}

/// `ln(1 + e^x)`, 4 ulp.
#[inline(always)]
pub(crate) fn softplus(x: f32) -> f32 {
    let e = exp(-x.abs());
    // ln(1 + e): what 1 + e rounds off is put right.
    let sum = 1.0 + e;
    let correction = (e - (sum - 1.0)) / sum;
    let above = if x > 0.0 { x } else { 0.0 };
    let value = above + (log(sum) + correction);
    if x.is_nan() { x } else { value }
}

/// The part of a normal distribution that lies below x: 2^-23 times 1 in all, 64 ulp down to x = -5, and below
/// x = -6 a hundredth.
#[inline(always)]
fn normal_below(x: f32) -> f32 {
    // -log2 of the part below -t, to 6; beyond, a parabola.
    const NEAR: [f32; 11] = [
        1.0,
        1.151_106_5,
        0.459_196_27,
        0.052_527_092,
        -0.007_085_743,
        0.000_120_455_54,
        0.000_219_405_18,
        -0.000_058_571_193,
        0.000_007_862_698,
        -5.680_754e-7,
        1.749_629_2e-8,
    ];
    const FAR: [f32; 2] = [8.866, 0.713_7];
    // 2^r for |r| to 1/2.
    const POWER: [f32; 7] = [
        1.0,
        std::f32::consts::LN_2,
        0.240_226_46,
        0.055_503_286,
        0.009_618_489,
        0.001_339_993_1,
        0.000_153_458_12,
    ];
    let t = within(x.abs(), 0.0, 14.5);
    let near = within(t, 0.0, 6.0);
    let far = t - near;
    let log = far.mul_add(polynomial(far, FAR), polynomial(near, NEAR));
    let shifted = log + TO_INTEGER;
    let power = polynomial((shifted - TO_INTEGER) - log, POWER);
    // The lowest bits are the integer; 0 where the result is below all exponents.
    let bits = power.to_bits().wrapping_sub(shifted.to_bits() << 23).cast_signed();
    let tail = f32::from_bits(bits.max(0).cast_unsigned());
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// `x (1 + erf(x/sqrt(2)))/2`, 2^-22 times |x|.
#[inline(always)]
pub(crate) fn gelu_erf(x: f32) -> f32 {
    x * normal_below(x)
}

/// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))/2`, 2^-22 times |x|.
#[inline(always)]
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    // 2 sqrt(2/pi), and that times 0.044715.
    const LINEAR: f32 = 1.595_769_2;
    const CUBIC: f32 = 0.071_354_814;
    let bounded = within(x, -20.0, 20.0);
    let g = bounded * CUBIC.mul_add(bounded * bounded, LINEAR);
    x * logistic(g)
}

/// `x tanh(ln(1 + e^x))`, 6 ulp where e^x is not subnormal.
#[inline(always)]
pub(crate) fn mish(x: f32) -> f32 {
    let e = exp(within(x, -110.0, 20.0));
    let t = e * (e + 2.0);
    x * (t / (t + 2.0))
}

/// `x`, or `a (e^x - 1)` below 0; 3 ulp.
#[inline(always)]
pub(crate) fn elu(x: f32, a: f32) -> f32 {
    if x > 0.0 { x } else { a * exp_m1(x) }
}

/// The nearest integer, ties to even; exact.
#[inline(always)]
pub(crate) fn round(x: f32) -> f32 {
    const INTEGERS: f32 = 8_388_608.0;
    let t = x.abs();
    let rounded = ((t + INTEGERS) - INTEGERS).copysign(x);
    if t < INTEGERS { rounded } else { x }
}

/// The larger one, as `x > y ? x : y`.
#[inline(always)]
pub(crate) fn most(x: f32, y: f32) -> f32 {
    if x > y { x } else { y }
}

/// The smaller one, as `x < y ? x : y`.
#[inline(always)]
pub(crate) fn least(x: f32, y: f32) -> f32 {
    if x < y { x } else { y }
}

/// The power to which numbers are raised.
#[derive(Clone, Copy)]
pub(crate) struct Exponent {
    value: f64,
    integer: bool,
    odd: bool,
}

impl Exponent {
    pub(crate) fn new(value: f32) -> Self {
        let value = f64::from(value);
        // Large ones are even integers, the infinite ones as well.
        let integer = value.is_infinite() || value.fract() == 0.0;
        let odd = integer && value.abs() < 9e15 && (value as i64) & 1 == 1;
        Self { value, integer, odd }
    }
}

/// `x^b`, 1 ulp, as C's powf; computed in f64.
#[inline(always)]
pub(crate) fn pow(x: f32, b: Exponent) -> f32 {
    let t = f64::from(x.abs());
    let bits = t.to_bits();
    // The fraction from about sqrt(1/2) to sqrt(2).
    let exponent = ((bits >> 32) as u32).wrapping_sub(0x3fe6_a09e).cast_signed() >> 20;
    let m = f64::from_bits(bits.wrapping_sub((exponent as i64 as u64) << 52));
    // ln m = 2 artanh s.
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut sum = 1.0 / 19.0;
    for divisor in [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        sum = sum * z + 1.0 / divisor;
    }
    let log = f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * s * sum;
    let y = b.value * log;
    let y = if y < -200.0 { -200.0 } else { y };
    let y = if y > 200.0 { 200.0 } else { y };
    const TO_INTEGER: f64 = 6_755_399_441_055_744.0;
    let shifted = y * std::f64::consts::LOG2_E + TO_INTEGER;
    let r = y - (shifted - TO_INTEGER) * std::f64::consts::LN_2;
    let mut power = 1.0;
    for divisor in [11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0] {
        power = power * r / divisor + 1.0;
    }
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let mut value = (power * scale) as f32;
    let (up, down) = (b.value > 0.0, b.value < 0.0);
    let grows = if up { f32::INFINITY } else { 0.0 };
    let shrinks = if down { f32::INFINITY } else { 0.0 };
    value = if t == f64::INFINITY { grows } else { value };
    value = if t == 0.0 { shrinks } else { value };
    // Where `b` is infinite, the product with the logarithm is nothing.
    value = if t == 1.0 { 1.0 } else { value };
    value = if b.odd && x.is_sign_negative() { -value } else { value };
    value = if x < 0.0 && t != f64::INFINITY && !b.integer { f32::NAN } else { value };
    value = if x.is_nan() || b.value.is_nan() { f32::NAN } else { value };
    if b.value == 0.0 || x == 1.0 { 1.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance from what is right, in units of the last place of that.
    fn ulps(got: f32, right: f64) -> f64 {
        let nearest = right as f32;
        if got == nearest || got.is_nan() && nearest.is_nan() {
            return 0.0;
        }
        let spacing = f64::from(nearest.abs().max(f32::MIN_POSITIVE).next_up())
            - f64::from(nearest.abs().max(f32::MIN_POSITIVE));
        (f64::from(got) - right).abs() / spacing
    }

    /// The largest error of a function over every `step`th f32 of both signs.
    fn largest(
        step: u32,
        f: impl Fn(f32) -> f32,
        right: impl Fn(f64) -> f64,
        error: impl Fn(f32, f32, f64) -> f64,
    ) -> f64 {
        let mut largest = 0.0;
        for bits in (0..=0x7f80_0000u32).step_by(step as usize) {
            for x in [f32::from_bits(bits), f32::from_bits(bits | 0x8000_0000)] {
                let e = error(x, f(x), right(f64::from(x)));
                assert!(!e.is_nan(), "{x:e}: {}", f(x));
                if e > largest {
                    largest = e;
                }
            }
        }
        largest
    }

    fn in_ulps(f: impl Fn(f32) -> f32, right: impl Fn(f64) -> f64) -> f64 {
        largest(997, f, right, |_, got, right| ulps(got, right))
    }

    #[test]
    fn errors_are_as_stated() {
        let softplus_of = |x: f64| if x > 50.0 { x } else { x.exp().ln_1p() };
        let mish_of = |x: f64| x * softplus_of(x).tanh();
        let where_normal = |x, got, right| if x > -87.0 { ulps(got, right) } else { 0.0 };
        let table: [(&str, f64, f64); 7] = [
            ("exp", 1.0, in_ulps(exp, f64::exp)),
            ("log", 1.0, in_ulps(log, f64::ln)),
            ("tanh", 3.0, in_ulps(tanh, f64::tanh)),
            ("logistic", 3.0, in_ulps(logistic, |x| 1.0 / (1.0 + (-x).exp()))),
            ("softplus", 4.0, in_ulps(softplus, softplus_of)),
            ("mish", 6.0, largest(997, mish, mish_of, where_normal)),
            ("elu", 3.0, in_ulps(|x| elu(x, 1.0), |x| if x > 0.0 { x } else { x.exp_m1() })),
        ];
        for (name, stated, found) in table {
            println!("{name}: {found:.2} ulp");
            assert!(found <= stated, "{name}: {found} ulp");
        }
    }

    /// The error function, by its series and its continued fraction.
    fn erfc(t: f64) -> f64 {
        if t < 2.5 {
            let (mut term, mut sum) = (t, t);
            for n in 1..200 {
                term *= -t * t / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            return 1.0 - sum * 2.0 / std::f64::consts::PI.sqrt();
        }
        let mut fraction = t;
        for n in (1..200).rev() {
            fraction = t + f64::from(n) / 2.0 / fraction;
        }
        (-t * t).exp() / fraction / std::f64::consts::PI.sqrt()
    }

    #[test]
    fn gelus_err_by_little_of_x() {
        let below = |x: f64| {
            let tail = 0.5 * erfc(x.abs() / 2f64.sqrt());
            if x < 0.0 { tail } else { 1.0 - tail }
        };
        let gelu = |x: f64| x * below(x);
        let of_x = |x: f32, got: f32, right: f64| {
            if x.is_infinite() {
                0.0
            } else {
                (f64::from(got) - right).abs() / f64::from(x.abs()).max(1e-30)
            }
        };
        let erf = largest(4999, gelu_erf, gelu, of_x) * 2f64.powi(23);
        let tanh = |x: f64| {
            x / (1.0
                + (-2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).exp())
        };
        let tanh = largest(4999, gelu_tanh, tanh, of_x) * 2f64.powi(23);
        println!("gelu_erf: {erf:.2}, gelu_tanh: {tanh:.2} of 2^-23 |x|");
        assert!(erf <= 2.0 && tanh <= 2.0, "{erf} {tanh}");
        let far = |x: f32, got: f32, right: f64| {
            if (-5.0..1e30).contains(&x) { ulps(got, right) } else { 0.0 }
        };
        let erf = largest(4999, gelu_erf, gelu, far);
        println!("gelu_erf: {erf:.2} ulp");
        assert!(erf <= 64.0, "{erf}");
        let share = |x: f32, got: f32, right: f64| {
            if (-12.0..-6.0).contains(&x) { (f64::from(got) / right - 1.0).abs() } else { 0.0 }
        };
        let share = largest(4999, gelu_erf, gelu, share);
        println!("gelu_erf below -6: {share:.3}");
        assert!(share <= 0.01, "{share}");
        assert_eq!(gelu_erf(f32::INFINITY), f32::INFINITY);
        assert_eq!(gelu_tanh(f32::INFINITY), f32::INFINITY);
        assert!(gelu_erf(f32::NAN).is_nan() && gelu_tanh(f32::NAN).is_nan());
    }

    #[test]
    fn powers_are_those_of_c() {
        let exponents = [
            2.0,
            3.0,
            0.5,
            -1.0,
            -2.0,
            -0.5,
            1.0,
            0.0,
            0.3,
            1.7,
            -3.3,
            10.0,
            1e-3,
            -1e-3,
            33.0,
            16_777_216.0,
        ];
        for b in exponents {
            let exponent = Exponent::new(b);
            let found = in_ulps(|x| pow(x, exponent), |x| x.powf(f64::from(b)));
            println!("pow {b}: {found:.2} ulp");
            assert!(found <= 1.0, "{b}: {found} ulp");
            assert_eq!(pow(f32::NAN, exponent).is_nan(), b != 0.0);
        }
    }

    #[test]
    fn powers_of_no_finite_number_are_those_of_c() {
        let exponents = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0, -0.0];
        let bases = [0.0, 1e-45, 0.5, 0.999_999_9, 1.0, 1.000_000_1, 2.0, f32::MAX, f32::INFINITY];
        for b in exponents {
            for x in bases.into_iter().flat_map(|x| [x, -x]).chain([f32::NAN]) {
                let (got, right) = (pow(x, Exponent::new(b)), std::hint::black_box(x).powf(b));
                let same = got.to_bits() == right.to_bits() || (got.is_nan() && right.is_nan());
                assert!(same, "{x:e}^{b}: {got}, not {right}");
            }
        }
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        for f in [exp, log, tanh, logistic, softplus, mish, round] {
            assert!(f(f32::NAN).is_nan());
        }
        assert!(elu(f32::NAN, 1.0).is_nan());
        for x in [0.5, 1.5, -2.5, 8_388_607.5, 4_194_304.5, 1e30, -0.2, f32::INFINITY] {
            assert_eq!(round(x), x.round_ties_even(), "{x}");
        }
    }
}
