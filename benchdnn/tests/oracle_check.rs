//! The tolerances: right values pass, and values just outside fail.

use benchdnn::check::{Check, Kind, Worst, check, mistrusted};
use benchdnn::data_type::DataType;

const INF: f64 = f64::INFINITY;

fn one(kind: Kind, dt: DataType, got: f64, want: f64, terms: f64) -> Check {
    check("dst", kind, dt, &[got], &[want], &[terms])
}

#[track_caller]
fn accepts(kind: Kind, dt: DataType, got: f64, want: f64, terms: f64) {
    let check = one(kind, dt, got, want, terms);
    assert!(check.passed(), "{kind:?} of {}: {check:?}", dt.name());
}

#[track_caller]
fn refuses(kind: Kind, dt: DataType, got: f64, want: f64, terms: f64) {
    let check = one(kind, dt, got, want, terms);
    assert_eq!(check.failed, 1, "{kind:?} of {}: {check:?}", dt.name());
}

const KINDS: [Kind; 4] = [Kind::Result, Kind::Variance, Kind::Mean, Kind::ColumnSum];

/// Magnitudes over the types' normal and subnormal ranges.
fn values(dt: DataType) -> Vec<f64> {
    let smallest = dt.ulp(0.0);
    let mut values = vec![1.0, 1.5, 1.999, 0.731, 3.3333, 1000.3, 2.0, 1023.0 / 512.0];
    values.extend([smallest * 3.0, smallest * 200.0, smallest * 5000.0, dt.largest() * 0.6]);
    values.extend(values.clone().iter().map(|value| -value));
    values
}

/// The tolerances as the contract states them.
fn bound(kind: Kind, want: f64, terms: f64) -> f64 {
    let ulp = |value: f64| {
        let exponent = (value.abs().log2().floor()).max(-126.0);
        (exponent - 23.0).exp2()
    };
    match kind {
        Kind::Result => ulp(want) + terms * 2f64.powi(-22) + 2f64.powi(-149),
        Kind::Variance => 4.0 * ulp(want),
        Kind::Mean | Kind::ColumnSum => 4.0 * ulp(terms),
        Kind::Chain | Kind::Rounded => terms,
        Kind::Double => f64::EPSILON * want.abs() + terms * 2f64.powi(-49),
    }
}

#[test]
fn accepts_the_exact_value_rounded_to_the_type() {
    for dt in DataType::ROUNDED_FLOATS {
        for want in values(dt) {
            for kind in KINDS {
                accepts(kind, dt, dt.round(want), want, want.abs());
            }
        }
    }
}

#[test]
fn the_bound_of_f32_is_the_contract() {
    let dt = DataType::F32;
    for want in values(dt) {
        for terms in [want.abs(), want.abs() * 37.3] {
            for kind in KINDS {
                let bound = bound(kind, want, terms);
                for side in [1.0, -1.0] {
                    accepts(kind, dt, want + side * bound * (1.0 - 1e-6), want, terms);
                    refuses(kind, dt, want + side * bound * (1.0 + 1e-6), want, terms);
                }
            }
        }
    }
}

#[test]
fn the_bound_of_half_types_is_one_rounding_of_a_right_f32() {
    for dt in [DataType::Bf16, DataType::F16] {
        for want in values(dt) {
            for terms in [want.abs(), want.abs() * 37.3] {
                for kind in [Kind::Result, Kind::ColumnSum] {
                    let bound = bound(kind, want, terms);
                    for side in [1.0, -1.0] {
                        // The outermost right value, and its neighbour outside.
                        let last = dt.round(want + side * bound);
                        accepts(kind, dt, last, want, terms);
                        let ulp = dt.ulp(last + side * 0.6 * dt.ulp(last));
                        refuses(kind, dt, dt.round(last + side * ulp), want, terms);
                        // The contract's own bound, an ulp of the result and its terms, is wider.
                        let terms_bound = terms * 2f64.powi(-22);
                        if kind == Kind::Result {
                            let contract = dt.ulp(want) + terms_bound + dt.ulp(0.0);
                            assert!((last - want).abs() <= contract, "{dt:?} {want:e}");
                        }
                    }
                }
            }
        }
    }
    // For example, 1 + 0.6 ulp has one right value, 1 + 0.5 ulp has two.
    for (dt, ulp) in [(DataType::Bf16, 2f64.powi(-7)), (DataType::F16, 2f64.powi(-10))] {
        accepts(Kind::Result, dt, 1.0 + ulp, 1.0 + 0.6 * ulp, 1.0);
        refuses(Kind::Result, dt, 1.0, 1.0 + 0.6 * ulp, 1.0);
        accepts(Kind::Result, dt, 1.0, 1.0 + 0.5 * ulp, 1.0);
        accepts(Kind::Result, dt, 1.0 + ulp, 1.0 + 0.5 * ulp, 1.0);
        // Below 1 the spacing is half of that.
        refuses(Kind::Result, dt, 1.0 - 0.5 * ulp, 1.0 - 0.2 * ulp, 1.0);
        accepts(Kind::Result, dt, 1.0, 1.0 - 0.2 * ulp, 1.0);
    }
}

#[test]
fn cancelled_results_are_measured_in_their_terms() {
    // The terms are 100 and the result 1e-9, so the error may be 100 * 2^-22 = 2.4e-5.
    accepts(Kind::Result, DataType::F32, 2.3e-5, 1e-9, 100.0);
    refuses(Kind::Result, DataType::F32, 2.5e-5, 1e-9, 100.0);
    // Without terms the result must be exact.
    refuses(Kind::Result, DataType::F32, 1.001e-9, 1e-9, 1e-9);
    // A mean near 0 of elements near 8: 4 ulp at 8 is 3.8e-6.
    accepts(Kind::Mean, DataType::F32, 3.7e-6, 0.0, 8.0);
    refuses(Kind::Mean, DataType::F32, 3.9e-6, 0.0, 8.0);
}

#[test]
fn a_nan_equals_a_nan_and_nothing_else() {
    let other_nan = f64::from_bits(0xfff8_0000_0000_0123);
    for dt in DataType::ROUNDED_FLOATS {
        for kind in KINDS {
            accepts(kind, dt, f64::NAN, other_nan, f64::NAN);
            for value in [0.0, 1.0, INF] {
                refuses(kind, dt, f64::NAN, value, 1.0);
                refuses(kind, dt, value, f64::NAN, f64::NAN);
            }
        }
    }
}

#[test]
fn infinities_equal_themselves_and_what_overflows() {
    for dt in DataType::ROUNDED_FLOATS {
        for kind in KINDS {
            accepts(kind, dt, INF, INF, INF);
            accepts(kind, dt, -INF, -INF, INF);
            refuses(kind, dt, INF, -INF, INF);
            refuses(kind, dt, dt.largest(), INF, INF);
            refuses(kind, dt, INF, 1.0, 1.0);
            // Far beyond the type, only the infinity is right.
            accepts(kind, dt, INF, dt.largest() * 4.0, 1.0);
            refuses(kind, dt, -INF, dt.largest() * 4.0, 1.0);
            refuses(kind, dt, dt.largest(), dt.largest() * 4.0, 1.0);
        }
        // At the threshold, half an ulp above the largest, both neighbours are right.
        let half = dt.ulp(dt.largest()) / 2.0;
        accepts(Kind::Result, dt, INF, dt.largest() + half, 0.0);
        accepts(Kind::Result, dt, dt.largest(), dt.largest() + half, 0.0);
        accepts(Kind::Result, dt, -INF, -dt.largest() - half, 0.0);
        // Two ulp of f32 below it, an infinity is no longer right, except for the terms.
        let below = dt.largest() + half - 2.1 * DataType::F32.ulp(dt.largest());
        refuses(Kind::Result, dt, INF, below, 0.0);
        accepts(Kind::Result, dt, INF, below, below);
    }
    // The variance of a row of 1e20 saturates.
    let saturated = check("variance", Kind::Variance, DataType::F32, &[INF], &[1e40], &[]);
    assert!(saturated.passed());
    let wrong = check("variance", Kind::Variance, DataType::F32, &[INF], &[1e38], &[]);
    assert!(!wrong.passed());
}

#[test]
fn the_sign_of_a_zero_does_not_matter() {
    for dt in DataType::ROUNDED_FLOATS {
        accepts(Kind::Result, dt, -0.0, 0.0, 0.0);
        accepts(Kind::Result, dt, 0.0, -0.0, 0.0);
    }
}

#[test]
fn reports_what_failed_and_by_how_much() {
    let mut got = vec![1.0; 100_000];
    let want = got.clone();
    let terms = got.clone();
    got[70_001] = 1.1;
    got[40_000] = 1.0 + 1e-5;
    got[90_000] = 1.1;
    got[3] = 1.0 + 2f64.powi(-23);
    let check = check("dst", Kind::Result, DataType::F32, &got, &want, &terms);
    assert_eq!((check.name, check.total, check.failed), ("dst", 100_000, 3));
    assert_eq!(check.telling, 100_000);
    let allowed = bound(Kind::Result, 1.0, 1.0);
    let Worst { index, got, want, error, allowed: stated } = check.worst.unwrap();
    assert_eq!((index, got, want, error), (70_001, 1.1, 1.0, 1.1 - 1.0));
    assert!((stated - allowed).abs() < 1e-6 * allowed);
}

#[test]
fn every_element_has_its_own_terms() {
    let want = vec![1.0; 100_000];
    let mut terms = want.clone();
    let mut got = want.clone();
    got[90_000] = 1.001;
    let of = |terms: &[f64]| check("dst", Kind::Result, DataType::F32, &got, &want, terms).failed;
    assert_eq!(of(&terms), 1);
    terms[90_000] = 1e5;
    assert_eq!(of(&terms), 0);
    terms.rotate_left(1);
    assert_eq!(of(&terms), 1);
}

#[test]
fn reports_the_nearest_to_failing_when_none_failed() {
    let got = [1.0, 1.0 + 2f64.powi(-23), 1.0];
    let passed = check("dst", Kind::Result, DataType::F32, &got, &[1.0; 3], &[1.0; 3]);
    assert_eq!((passed.failed, passed.worst.unwrap().index), (0, 1));
    let nan = [1.1, f64::NAN, 2.0];
    let failed = check("dst", Kind::Result, DataType::F32, &nan, &[1.0; 3], &[1.0; 3]);
    assert_eq!((failed.failed, failed.worst.unwrap().index), (3, 1));
    let empty = check("dst", Kind::Result, DataType::F32, &[], &[], &[]);
    assert_eq!((empty.total, empty.worst), (0, None));
}

#[test]
fn zeros_and_nans_tell_nothing() {
    let tells = |want: f64, terms: f64| one(Kind::Result, DataType::F32, want, want, terms).telling;
    assert_eq!(tells(1.0, 1.0), 1);
    assert_eq!(tells(-1e-3, 1.0), 1);
    assert_eq!(tells(INF, INF), 1);
    assert_eq!(tells(0.0, 0.0), 0);
    assert_eq!(tells(f64::NAN, f64::NAN), 0);
    assert_eq!(tells(1e-9, 1.0), 0, "a zero would pass as well");
    for dt in DataType::ROUNDED_FLOATS {
        let flushed = one(Kind::Result, dt, 0.0, dt.ulp(0.0) / 4.0, 0.0);
        assert_eq!((flushed.telling, flushed.failed), (0, 0), "{}", dt.name());
    }

    let of = |want: &[f64]| check("dst", Kind::Result, DataType::F32, want, want, want);
    assert!(mistrusted(&[of(&[0.0; 50])]));
    assert!(mistrusted(&[of(&[f64::NAN; 50])]));
    assert!(!mistrusted(&[of(&[1.0; 50])]));
    let mut mostly_zeros = [0.0; 50];
    mostly_zeros[..4].fill(1.0);
    assert!(mistrusted(&[of(&mostly_zeros)]));
    mostly_zeros[..5].fill(1.0);
    assert!(!mistrusted(&[of(&mostly_zeros)]));
    // A single column: dst and variance are zeros, but the mean shows mistakes.
    assert!(!mistrusted(&[of(&[0.0; 8]), of(&[3.0; 8]), of(&[0.0; 8])]));
}

#[test]
fn whole_numbers_are_equal_or_one_off_at_a_boundary() {
    for dt in [DataType::S8, DataType::U8, DataType::S32] {
        // Half an f32 ulp from the boundary, only one is right.
        accepts(Kind::Result, dt, 3.0, 2.9, 2.9);
        refuses(Kind::Result, dt, 2.0, 2.9, 2.9);
        refuses(Kind::Result, dt, 2.0, 2.501, 2.5);
        refuses(Kind::Result, dt, 3.0, 2.499, 2.5);
        // On the boundary both are.
        let boundary = 2.5 + 1e-7;
        accepts(Kind::Result, dt, 2.0, boundary, 2.5);
        accepts(Kind::Result, dt, 3.0, boundary, 2.5);
        refuses(Kind::Result, dt, 4.0, boundary, 2.5);
        // An exact half rounds to even.
        accepts(Kind::Chain, dt, 2.0, 2.5, 0.0);
        refuses(Kind::Chain, dt, 3.0, 2.5, 0.0);
        accepts(Kind::Chain, dt, 4.0, 3.5, 0.0);
        // Values that are too large saturate, and prove nothing else.
        for (want, end) in [(1e12, dt.largest()), (-1e12, dt.lowest())] {
            let saturated = one(Kind::Chain, dt, end, want, 1.0);
            assert_eq!((saturated.failed, saturated.telling), (0, 0), "{want:e}");
            refuses(Kind::Chain, dt, end - 1.0, dt.largest() * 4.0, 1.0);
        }
        accepts(Kind::Chain, dt, dt.largest(), INF, 0.0);
        // Integers have no NaN, so anything is right.
        assert_eq!(one(Kind::Chain, dt, 17.0, f64::NAN, 0.0).telling, 0);
        accepts(Kind::Chain, dt, 17.0, f64::NAN, 0.0);
    }
    let all_saturated =
        check("dst", Kind::Chain, DataType::S8, &[127.0; 9], &[900.0; 9], &[0.1; 9]);
    assert!(
        mistrusted(&[all_saturated]),
        "saturated values do not show how far beyond 127 they were"
    );
    refuses(Kind::Chain, DataType::U8, 1.0, -3.0, 0.0);
}

#[test]
fn floats_of_eight_bits_are_rounded_once() {
    let (e4m3, e5m2) = (DataType::F8E4m3, DataType::F8E5m2);
    accepts(Kind::Result, e4m3, 1.125, 1.1, 1.1);
    refuses(Kind::Result, e4m3, 1.0, 1.1, 1.1);
    accepts(Kind::Result, e5m2, 1.0, 1.1, 1.1);
    refuses(Kind::Result, e5m2, 1.25, 1.1, 1.1);
    // Beyond the largest value there is an infinity, or NaN in a type without infinities.
    accepts(Kind::Result, e5m2, INF, 1e6, 1e6);
    refuses(Kind::Result, e5m2, 57344.0, 1e6, 1e6);
    accepts(Kind::Result, e4m3, f64::NAN, 1e6, 1e6);
    refuses(Kind::Result, e4m3, 448.0, 1e6, 1e6);
    accepts(Kind::Result, e4m3, 448.0, 460.0, 460.0);
    refuses(Kind::Result, e4m3, f64::NAN, 460.0, 460.0);
}

#[test]
fn what_is_rounded_once_may_be_no_other_value() {
    let tenth = f64::from(0.1_f32);
    accepts(Kind::Rounded, DataType::F32, tenth, 0.1, 0.0);
    refuses(Kind::Rounded, DataType::F32, f64::from(0.1_f32.next_up()), 0.1, 0.0);
    refuses(Kind::Chain, DataType::F32, tenth, 0.1, 0.0);
    refuses(Kind::Rounded, DataType::F64, tenth, 0.1, 0.0);
}

#[test]
fn where_nothing_is_known_nothing_is_wrong_and_nothing_told() {
    for dt in DataType::ALL {
        for got in [0.0, 1.0, f64::NAN] {
            let check = one(Kind::Chain, dt, got, 5.0, INF);
            assert_eq!((check.failed, check.telling, check.total), (0, 0, 1));
        }
    }
}

#[test]
fn f64_has_bounds_of_its_own() {
    accepts(Kind::Double, DataType::F64, 1.0 + 2f64.powi(-50), 1.0, 1.0);
    refuses(Kind::Double, DataType::F64, 1.0 + 2f64.powi(-47), 1.0, 1.0);
    refuses(Kind::Double, DataType::F64, 1.0f32.next_up().into(), 1.0, 1.0);
}
