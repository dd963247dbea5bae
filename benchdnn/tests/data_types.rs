//! Rounding and names of the harness's data types.

use benchdnn::data_type::DataType;
use half::{bf16, f16};

/// Every half value, its neighbours, and values between them.
fn probes() -> Vec<f64> {
    let mut probes = vec![0.0, -0.0, 1e-60, -1e-60, 1e60, -1e60, f64::MAX, 0.1, 1.0 / 3.0];
    for bits in 0..=u16::MAX {
        for value in [f64::from(f16::from_bits(bits)), f64::from(bf16::from_bits(bits))] {
            probes.extend([value, value * (1.0 + 2f64.powi(-12)), value * (1.0 - 2f64.powi(-9))]);
            // Ties, and values next to them.
            let tie = value * (1.0 + 2f64.powi(-8));
            probes.extend([tie, tie.next_up(), tie.next_down(), value * (1.0 + 2f64.powi(-11))]);
        }
    }
    probes
}

/// By definition: the nearer of two neighbours, ties to even. `values` are those of the type, from 0 up to the position
/// of the first infinity.
fn nearest(values: &[f64], value: f64) -> f64 {
    let size = value.abs();
    let above = values.partition_point(|x| *x < size);
    let rounded = if above == values.len() {
        f64::INFINITY
    } else if above == 0 {
        0.0
    } else {
        let (low, high) = (values[above - 1], values[above]);
        let tie_is_low = (above - 1) % 2 == 0;
        let is_low = size - low < high - size || (size - low == high - size && tie_is_low);
        let rounded = if is_low { low } else { high };
        if rounded == values[values.len() - 1] { f64::INFINITY } else { rounded }
    };
    rounded.copysign(value)
}

#[test]
fn round_to_nearest_even_once() {
    let mut of_f16: Vec<f64> = (0..=0x7bff).map(|bits| f16::from_bits(bits).into()).collect();
    of_f16.push(65536.0);
    let mut of_bf16: Vec<f64> = (0..=0x7f7f).map(|bits| bf16::from_bits(bits).into()).collect();
    of_bf16.push(2f64.powi(128));
    for value in probes() {
        let same = |ours: f64, expected: f64| {
            assert!(
                ours.to_bits() == expected.to_bits() || (ours.is_nan() && value.is_nan()),
                "{value:e}: {ours:e}, expected {expected:e}"
            );
        };
        same(DataType::F32.round(value), f64::from(value as f32));
        same(DataType::Bf16.round(value), nearest(&of_bf16, value));
        same(DataType::F16.round(value), nearest(&of_f16, value));
    }
}

#[test]
fn encode_and_decode_every_half_value() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(|bits| bits.to_ne_bytes()).collect();
    for dt in [DataType::Bf16, DataType::F16] {
        let values = dt.decode(&all);
        let again = dt.encode(&values);
        for (i, value) in values.iter().enumerate() {
            let bits = i as u16;
            let expected = match dt {
                DataType::Bf16 => f64::from(f32::from_bits(u32::from(bits) << 16)),
                _ => by_definition(bits),
            };
            if expected.is_nan() {
                let back = dt.decode(&again[2 * i..][..2])[0];
                assert!(value.is_nan() && back.is_nan());
            } else {
                assert_eq!(value.to_bits(), expected.to_bits(), "{bits:#06x}");
                assert_eq!(again[2 * i..][..2], bits.to_ne_bytes(), "{bits:#06x}");
            }
        }
    }
    let values = [1.5, -0.0, 3.4e38, 1e-45, f64::INFINITY];
    let bytes = DataType::F32.encode(&values);
    assert_eq!(bytes[..4], 1.5f32.to_ne_bytes());
    assert_eq!(DataType::F32.decode(&bytes), values.map(|value| f64::from(value as f32)));
    // Values between those of the type are rounded.
    assert_eq!(
        DataType::Bf16.decode(&DataType::Bf16.encode(&[1.0 + 0.6 / 128.0])),
        [1.0 + 1.0 / 128.0]
    );
}

/// IEEE 754 binary16.
fn by_definition(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        31 if fraction > 0.0 => f64::NAN,
        31 => f64::INFINITY,
        0 => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[test]
fn an_ulp_is_the_distance_to_the_next_value() {
    for bits in (0..0x7f7f_ffffu32).step_by(997) {
        let value = f32::from_bits(bits);
        let next = f64::from(value.next_up()) - f64::from(value);
        assert_eq!(DataType::F32.ulp(f64::from(value)), next, "{value:e}");
        assert_eq!(DataType::F32.ulp(f64::from(-value)), next);
    }
    for bits in 0..0x7f7f {
        let of = |bits| f64::from(bf16::from_bits(bits));
        assert_eq!(DataType::Bf16.ulp(of(bits)), of(bits + 1) - of(bits), "{bits:#06x}");
    }
    for bits in 0..0x7bff {
        let of = |bits| f64::from(f16::from_bits(bits));
        assert_eq!(DataType::F16.ulp(of(bits)), of(bits + 1) - of(bits), "{bits:#06x}");
    }
    assert_eq!(DataType::F16.largest(), f64::from(f16::MAX));
    assert_eq!(DataType::Bf16.largest(), f64::from(bf16::MAX));
    assert_eq!(DataType::F32.largest(), f64::from(f32::MAX));
}

#[test]
fn sizes_and_names() {
    let rows = DataType::ALL.map(|dt| (dt.name(), dt.size(), dt.encode(&[1.0]).len()));
    let expected = [
        ("f32", 4, 4),
        ("bf16", 2, 2),
        ("f16", 2, 2),
        ("f64", 8, 8),
        ("f8_e5m2", 1, 1),
        ("f8_e4m3", 1, 1),
        ("e8m0", 1, 1),
        ("s32", 4, 4),
        ("s8", 1, 1),
        ("u8", 1, 1),
        ("s64", 8, 8),
    ];
    assert_eq!(rows, expected);
}

/// All bit patterns against the definition: sign, exponent with its bias, fraction.
#[test]
fn floats_of_eight_bits() {
    for (dt, exponents, fractions, bias) in
        [(DataType::F8E4m3, 4, 3, 7), (DataType::F8E5m2, 5, 2, 15)]
    {
        let mut last = f64::NEG_INFINITY;
        for bits in 0..=127_u8 {
            let exponent = i32::from(bits >> fractions);
            let fraction = f64::from(bits & ((1 << fractions) - 1)) / f64::from(1 << fractions);
            let top = exponent == (1 << exponents) - 1;
            let want = match exponent {
                0 => fraction * 2f64.powi(1 - bias),
                _ if top && dt == DataType::F8E5m2 && fraction == 0.0 => f64::INFINITY,
                _ if top && (dt == DataType::F8E5m2 || bits == 0x7f) => f64::NAN,
                exponent => (1.0 + fraction) * 2f64.powi(exponent - bias),
            };
            let got = dt.decode(&[bits, bits | 0x80]);
            assert!(got[0] == want || (got[0].is_nan() && want.is_nan()), "{bits:#04x}");
            assert!(got[1] == -want || want.is_nan(), "{bits:#04x}");
            if want.is_nan() {
                assert!(dt.decode(&dt.encode(&[want]))[0].is_nan());
                continue;
            }
            assert_eq!(dt.encode(&[want, -want]), [bits, bits | 0x80], "{want}");
            if want.is_finite() {
                assert!(want > last);
                // Halfway between neighbours, the even one is nearest.
                let middle = f64::midpoint(last, want);
                if last.is_finite() {
                    let even = if bits & 1 == 0 { want } else { last };
                    assert_eq!(dt.round(middle), even, "between {last} and {want}");
                    assert_eq!(dt.ulp(last), want - last, "at {last}");
                }
                last = want;
            }
        }
        assert_eq!(dt.largest(), last);
    }
    assert!(DataType::F8E4m3.round(465.0).is_nan());
    assert_eq!(DataType::F8E4m3.round(464.0), 448.0);
    assert_eq!(DataType::F8E5m2.round(61440.0), f64::INFINITY);
    assert_eq!(DataType::F8E5m2.round(61439.0), 57344.0);
}

#[test]
fn whole_numbers_saturate_and_round_to_even() {
    let values = [0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, 300.0, -128.5, -1e30, 1e30];
    let of = |dt: DataType| dt.decode(&dt.encode(&values));
    let want = [0.0, 2.0, 2.0, 0.0, -2.0, 126.0, 127.0, 127.0, -128.0, -128.0, 127.0];
    assert_eq!(of(DataType::S8), want);
    let want = [0.0, 2.0, 2.0, 0.0, 0.0, 126.0, 128.0, 255.0, 0.0, 0.0, 255.0];
    assert_eq!(of(DataType::U8), want);
    assert_eq!(of(DataType::S32)[7..9], [300.0, -128.0]);
    assert_eq!(of(DataType::S32)[9..], [-2_147_483_648.0, 2_147_483_647.0]);
}
