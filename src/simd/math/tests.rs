//! Errors against f64, equal bits on every level, and the bits of earlier versions.

use super::*;
use crate::simd::{LANES, Level, Simd, entry_points};

/// A function of one number.
pub(super) trait Function: Copy + 'static {
    fn of<S: Simd>(self, x: Lanes<S>) -> Lanes<S>;
}

macro_rules! functions {
    ($($name:ident = $function:ident;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        impl Function for $name {
            #[inline(always)]
            fn of<S: Simd>(self, x: Lanes<S>) -> Lanes<S> {
                $function(x)
            }
        }
    )*};
}

functions! {
    Exp = exp;
    Exp2 = exp2;
    ExpM1 = exp_m1;
    Weight = weight;
    Log = log;
    Tanh = tanh;
    Logistic = logistic;
    Softplus = softplus;
    Erf = erf;
    Sin = sin;
    Cos = cos;
    GeluErf = gelu_erf;
    GeluTanh = gelu_tanh;
    Mish = mish;
    Round = round;
}

#[derive(Clone, Copy)]
struct Elu(f32);
impl Function for Elu {
    #[inline(always)]
    fn of<S: Simd>(self, x: Lanes<S>) -> Lanes<S> {
        elu(x, self.0)
    }
}

#[derive(Clone, Copy)]
struct Pow(Exponent);
impl Function for Pow {
    #[inline(always)]
    fn of<S: Simd>(self, x: Lanes<S>) -> Lanes<S> {
        pow(x, self.0)
    }
}

/// # Safety
/// The instruction set of `S` is available.
#[inline(always)]
unsafe fn apply<S: Simd, F: Function>(f: F, values: &mut [f32]) {
    for chunk in values.chunks_mut(LANES) {
        // SAFETY: the elements of the chunk, 1 to 16.
        unsafe {
            let x = Lanes::<S>::load(chunk.as_ptr(), chunk.len());
            f.of(x).store(chunk.as_mut_ptr(), chunk.len());
        }
    }
}

entry_points! {
    /// Applies a function to every value, per level.
    mod entries: apply<F: Function>(f: F, values: &mut [f32]) -> ();
}

/// A function's values, which must have the same bits on every level that the machine supports. Portable code is slow
/// and computes only some of them.
pub(super) fn values<F: Function>(f: F, of: &[f32]) -> Vec<f32> {
    const EVERY: usize = 8;
    let run = |level, of: &[f32]| {
        let mut values = of.to_vec();
        let entry = entries::at::<F>(level).unwrap_or(entries::portable::entry_portable::<F>);
        // SAFETY: the machine has the level.
        unsafe { entry(f, &mut values) };
        values
    };
    let levels = Level::available();
    let expected = run(levels[0], of);
    for level in &levels[1..] {
        let stride = if *level == Level::Portable { EVERY } else { 1 };
        let some = |values: &[f32]| -> Vec<f32> {
            values.chunks(LANES).step_by(stride).flatten().copied().collect()
        };
        let of = some(of);
        for ((x, got), expected) in of.iter().zip(run(*level, &of)).zip(some(&expected)) {
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{} of {x:e}: {got:e}, not {expected:e}", level.name());
        }
    }
    expected
}

pub(super) fn value<F: Function>(f: F, of: f32) -> f32 {
    values(f, &[of])[0]
}

/// Every `step`th f32 of both signs, including infinities.
pub(super) fn spread(step: usize) -> Vec<f32> {
    let bits = (0..=0x7f80_0000u32).step_by(step).chain([0x7f80_0000]);
    bits.flat_map(|bits| [bits, bits | 0x8000_0000]).map(f32::from_bits).collect()
}

/// The distance from the exact result, in units in its last place.
pub(super) fn ulps(got: f32, right: f64) -> f64 {
    let nearest = right as f32;
    if got == nearest || got.is_nan() && nearest.is_nan() {
        return 0.0;
    }
    let spacing = f64::from(nearest.abs().max(f32::MIN_POSITIVE).next_up())
        - f64::from(nearest.abs().max(f32::MIN_POSITIVE));
    (f64::from(got) - right).abs() / spacing
}

/// The largest error of a function over some values.
pub(super) fn largest<F: Function>(
    f: F,
    of: &[f32],
    right: impl Fn(f64) -> f64,
    error: impl Fn(f32, f32, f64) -> f64,
) -> f64 {
    let mut largest = 0.0;
    for (x, got) in of.iter().zip(values(f, of)) {
        let e = error(*x, got, right(f64::from(*x)));
        assert!(!e.is_nan(), "{x:e}: {got}");
        if e > largest {
            largest = e;
        }
    }
    largest
}

fn in_ulps<F: Function>(f: F, right: impl Fn(f64) -> f64) -> f64 {
    largest(f, &spread(997), right, |_, got, right| ulps(got, right))
}

/// The page that quotes errors.
const PAGE: &str = include_str!("../../../docs/primitives/eltwise.md");

/// Prints the largest error of a function. It must be at most what the function states and what the page quotes.
pub(super) fn stated(name: &str, most: f64, found: f64) {
    println!("{name}: {found:.2} ulp");
    assert!(found <= most, "{name}: {found} ulp");
    let quoted = format!("| `{name}` | {found:.2} ulp |");
    assert!(PAGE.contains(&quoted), "docs/primitives/eltwise.md has no {quoted}");
}

#[test]
fn errors_are_as_stated() {
    let softplus_of = |x: f64| if x > 50.0 { x } else { x.exp().ln_1p() };
    let mish_of = |x: f64| x * softplus_of(x).tanh();
    let where_normal = |x, got, right| if x > -87.0 { ulps(got, right) } else { 0.0 };
    let table = [
        ("exp", 1.0, in_ulps(Exp, f64::exp)),
        ("exp2", 1.0, in_ulps(Exp2, f64::exp2)),
        ("exp_m1", 2.0, {
            let to_40: Vec<f32> = spread(997).into_iter().filter(|x| *x <= 40.0).collect();
            largest(ExpM1, &to_40, f64::exp_m1, |_, got, right| ulps(got, right))
        }),
        ("log", 1.0, in_ulps(Log, f64::ln)),
        ("tanh", 3.0, in_ulps(Tanh, f64::tanh)),
        ("erf", 2.0, in_ulps(Erf, erf_of)),
        ("logistic", 3.0, in_ulps(Logistic, |x| 1.0 / (1.0 + (-x).exp()))),
        ("softplus", 4.0, in_ulps(Softplus, softplus_of)),
        ("mish", 6.0, largest(Mish, &spread(997), mish_of, where_normal)),
        ("elu", 3.0, in_ulps(Elu(1.0), |x| if x > 0.0 { x } else { x.exp_m1() })),
    ];
    for (name, most, found) in table {
        stated(name, most, found);
    }
}

/// Weights are 0 or at least 2^-40.
#[test]
fn small_weights_are_zero() {
    let below = |x: &f32| *x <= 0.0;
    let all: Vec<f32> = spread(997).into_iter().filter(below).collect();
    let least = 2f64.powi(-40);
    let exact = |x: f64| if x.exp() < least { 0.0 } else { x.exp() };
    let found = largest(Weight, &all, exact, |_, got, right| ulps(got, right));
    stated("weight", 1.0, found);
    let edge = (-40.0 * std::f64::consts::LN_2) as f32;
    let around: Vec<f32> =
        (-64..64).map(|n| f32::from_bits(edge.to_bits().wrapping_add_signed(n))).collect();
    for (x, got) in around.iter().zip(values(Weight, &around)) {
        assert!(got == 0.0 || f64::from(got) >= least, "{x:e}: {got:e}");
    }
    assert_eq!(values(Weight, &[0.0, -0.0, f32::NEG_INFINITY]), [1.0, 1.0, 0.0]);
    assert!(value(Weight, f32::NAN).is_nan());
}

#[test]
fn angles_may_be_large() {
    let mut angles: Vec<f32> =
        spread(997).into_iter().filter(|x| x.abs() <= 2f32.powi(32)).collect();
    // Near multiples of pi/2, where most digits cancel.
    let multiples = (0..1u32 << 20).chain((1 << 20..1 << 31).step_by(4099));
    angles.extend(multiples.map(|n| (f64::from(n) * std::f64::consts::FRAC_PI_2) as f32));
    for (name, found) in [
        ("sin", largest(Sin, &angles, f64::sin, |_, got, right| ulps(got, right))),
        ("cos", largest(Cos, &angles, f64::cos, |_, got, right| ulps(got, right))),
    ] {
        stated(name, 1.0, found);
    }
    assert_eq!(value(Sin, -0.0).to_bits(), (-0.0f32).to_bits());
    for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        assert!(value(Sin, x).is_nan() && value(Cos, x).is_nan());
    }
}

/// The error function and its complement from C's library.
mod c {
    unsafe extern "C" {
        pub(super) safe fn erf(x: f64) -> f64;
        pub(super) safe fn erfc(x: f64) -> f64;
    }
}

pub(super) fn erfc(x: f64) -> f64 {
    c::erfc(x)
}

fn erf_of(x: f64) -> f64 {
    c::erf(x)
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
    let spread = spread(4999);
    let erf = largest(GeluErf, &spread, gelu, of_x) * 2f64.powi(23);
    let tanh = |x: f64| {
        x / (1.0 + (-2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).exp())
    };
    let tanh = largest(GeluTanh, &spread, tanh, of_x) * 2f64.powi(23);
    println!("gelu_erf: {erf:.2}, gelu_tanh: {tanh:.2} of 2^-23 |x|");
    assert!(erf <= 2.0 && tanh <= 2.0, "{erf} {tanh}");
    let far = |x: f32, got: f32, right: f64| {
        if (-5.0..1e30).contains(&x) { ulps(got, right) } else { 0.0 }
    };
    let erf = largest(GeluErf, &spread, gelu, far);
    println!("gelu_erf: {erf:.2} ulp");
    assert!(erf <= 64.0, "{erf}");
    let share = |x: f32, got: f32, right: f64| {
        if (-12.0..-6.0).contains(&x) { (f64::from(got) / right - 1.0).abs() } else { 0.0 }
    };
    let share = largest(GeluErf, &spread, gelu, share);
    println!("gelu_erf below -6: {share:.3}");
    assert!(share <= 0.01, "{share}");
    assert_eq!(value(GeluErf, f32::INFINITY), f32::INFINITY);
    assert_eq!(value(GeluTanh, f32::INFINITY), f32::INFINITY);
    assert!(value(GeluErf, f32::NAN).is_nan() && value(GeluTanh, f32::NAN).is_nan());
}

const EXPONENTS: [f32; 16] = [
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

fn largest_error_of_powers(exponents: &[f32]) -> f64 {
    let errors = exponents.iter().map(|b| {
        let power = Pow(Exponent::new(*b));
        let found = in_ulps(power, |x| x.powf(f64::from(*b)));
        println!("pow {b}: {found:.2} ulp");
        assert_eq!(value(power, f32::NAN).is_nan(), *b != 0.0);
        found
    });
    errors.fold(0.0, f64::max)
}

#[test]
fn powers_are_those_of_c() {
    let (half, other) = EXPONENTS.split_at(EXPONENTS.len() / 2);
    let other = std::thread::spawn(|| largest_error_of_powers(other));
    let half = largest_error_of_powers(half);
    stated("pow", 1.0, half.max(other.join().expect("a thread that does not fail")));
}

#[test]
fn powers_of_no_finite_number_are_those_of_c() {
    let exponents = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0, -0.0];
    let bases = [0.0, 1e-45, 0.5, 0.999_999_9, 1.0, 1.000_000_1, 2.0, f32::MAX, f32::INFINITY];
    for b in exponents {
        for x in bases.into_iter().flat_map(|x| [x, -x]).chain([f32::NAN]) {
            let (got, right) = (value(Pow(Exponent::new(b)), x), std::hint::black_box(x).powf(b));
            let same = got.to_bits() == right.to_bits() || (got.is_nan() && right.is_nan());
            assert!(same, "{x:e}^{b}: {got}, not {right}");
        }
    }
}

#[test]
fn what_is_not_a_number_stays_so() {
    fn check<F: Function>(f: F) {
        assert!(value(f, f32::NAN).is_nan());
    }
    check(Exp);
    check(Exp2);
    check(Log);
    check(Tanh);
    check(Erf);
    check(Logistic);
    check(Softplus);
    check(Mish);
    check(Round);
    check(Elu(1.0));
    for x in [0.5, 1.5, -2.5, 8_388_607.5, 4_194_304.5, 1e30, -0.2, f32::INFINITY] {
        assert_eq!(value(Round, x), x.round_ties_even(), "{x}");
    }
}

/// A hash of all bits of a function's values for every `step`th number.
fn digest<F: Function>(f: F, step: usize) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for value in values(f, &spread(step)) {
        let bits = if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() };
        hash = (hash ^ u64::from(bits)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// The bits of post-operations are part of the contract.
#[test]
fn bits_are_those_of_earlier_versions() {
    let power = |b: &f32| digest(Pow(Exponent::new(*b)), 15_991);
    let powers = EXPONENTS.iter().fold(0, |sum: u64, b| sum.rotate_left(1).wrapping_add(power(b)));
    let table: [(&str, u64, u64); 12] = [
        ("exp", 0x06bf_e717_fb40_3fd4, digest(Exp, 997)),
        ("log", 0xf9e8_7878_7498_af6b, digest(Log, 997)),
        ("tanh", 0x6818_ede2_651c_fce7, digest(Tanh, 997)),
        ("logistic", 0x2176_e8c3_6d35_99df, digest(Logistic, 997)),
        ("softplus", 0x731f_ba79_c85b_ce29, digest(Softplus, 997)),
        ("gelu_erf", 0xce63_f7f2_61ed_c876, digest(GeluErf, 997)),
        ("gelu_tanh", 0x15f2_a6b1_5865_7bb7, digest(GeluTanh, 997)),
        ("mish", 0xf68f_86cd_17cf_eede, digest(Mish, 997)),
        ("round", 0x5447_eb5a_52fb_df4b, digest(Round, 997)),
        ("elu", 0x845e_4c75_0c40_49f5, digest(Elu(1.0), 997)),
        ("elu of 0.3", 0x43aa_8fcc_a7e1_af43, digest(Elu(0.3), 997)),
        ("pow", 0x3013_cbae_ee4f_5e84, powers),
    ];
    for (name, recorded, found) in table {
        assert_eq!(found, recorded, "{name}: {found:#x}");
    }
}
