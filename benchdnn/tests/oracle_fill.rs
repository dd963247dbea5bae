//! The data are values of their types, their statistics are exact in f32 in any order of summation,
//! and they hide no mistake.

use benchdnn::data_type::DataType;
use benchdnn::fill::Fill;
use benchdnn::fill::lnorm::{LnormData, LnormShape, lnorm};
use benchdnn::oracle::lnorm::Flags;

fn all_flags() -> impl Iterator<Item = Flags> {
    (0..16).map(|bits| Flags {
        global_stats: bits & 1 != 0,
        scale: bits & 2 != 0,
        shift: bits & 4 != 0,
        rms_norm: bits & 8 != 0,
    })
}

fn shape(rows: usize, cols: usize, dt: DataType, forward: bool, flags: Flags) -> LnormShape {
    let epsilon = 1.0 / 16.0;
    LnormShape { rows, cols, src_dt: dt, dst_dt: dt, ss_dt: dt, forward, flags, epsilon, gain: 1.0 }
}

fn lengths() -> Vec<usize> {
    (1..=130).chain([257, 301, 768, 1024, 5120, 65_537]).collect()
}

/// The sum in f32, from either end and in 16 lanes: `[forward, backward, lanes]`.
fn sums(terms: &[f32]) -> [f32; 3] {
    let mut lanes = [0.0f32; 16];
    for (i, term) in terms.iter().enumerate() {
        lanes[i % 16] += term;
    }
    [terms.iter().sum(), terms.iter().rev().sum(), lanes.iter().sum()]
}

#[track_caller]
fn assert_exact(terms: impl Iterator<Item = f64>, what: &str) {
    let exact: Vec<f64> = terms.collect();
    let terms: Vec<f32> = exact.iter().map(|&term| term as f32).collect();
    assert!(
        terms.iter().zip(&exact).all(|(&term, &exact)| f64::from(term) == exact),
        "{what}: terms"
    );
    let total: f64 = exact.iter().sum();
    for sum in sums(&terms) {
        assert_eq!(f64::from(sum), total, "{what}: the sum in f32");
    }
}

#[test]
fn exact_statistics_are_exact_in_every_order() {
    for cols in lengths() {
        for dt in DataType::ROUNDED_FLOATS {
            for rms_norm in [false, true] {
                for forward in [true, false] {
                    let flags = Flags { rms_norm, ..Flags::default() };
                    let shape = shape(4, cols, dt, forward, flags);
                    let data = lnorm(&shape, Fill::Exact, 7);
                    for row in data.src.chunks(cols) {
                        let what = format!("{cols} columns of {}", dt.name());
                        assert_exact(row.iter().copied(), &what);
                        assert_exact(row.iter().map(|x| x * x), &what);
                        let mean = row.iter().sum::<f64>() / cols as f64;
                        assert_eq!(f64::from(mean as f32), mean, "{what}: the mean is an f32");
                        assert_exact(row.iter().map(|x| (x - mean) * (x - mean)), &what);
                        assert!(row.iter().all(|x| *x != 0.0), "{what}");
                        assert!(cols == 1 || row.iter().all(|x| *x != mean), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_value_is_one_of_its_type_and_nothing_else_is_made() {
    let [f32, bf16, f16] = DataType::ROUNDED_FLOATS;
    let types = [[f32, bf16, f16], [bf16, f16, f32], [f16, f32, bf16], [f16, bf16, bf16]];
    for fill in [Fill::Exact, Fill::Random, Fill::Perf] {
        for [src_dt, dst_dt, ss_dt] in types {
            for (flags, forward) in all_flags().flat_map(|flags| [(flags, true), (flags, false)]) {
                let (rows, cols) = (70, 37);
                let shape =
                    LnormShape { src_dt, dst_dt, ss_dt, ..shape(rows, cols, f32, forward, flags) };
                let data = lnorm(&shape, fill, 3);
                let LnormData { src, scale, shift, mean, variance, diff_dst } = &data;
                let statistics = flags.global_stats || !forward;
                for (values, dt, expected) in [
                    (src, src_dt, rows * cols),
                    (scale, ss_dt, if flags.scale { cols } else { 0 }),
                    (shift, ss_dt, if flags.shift && forward { cols } else { 0 }),
                    (mean, f32, if statistics && !flags.rms_norm { rows } else { 0 }),
                    (variance, f32, if statistics { rows } else { 0 }),
                    (diff_dst, dst_dt, if forward { 0 } else { rows * cols }),
                ] {
                    assert_eq!(values.len(), expected, "{fill:?} {shape:?}");
                    for &value in values {
                        assert_eq!(dt.round(value), value, "{fill:?} {shape:?}");
                    }
                }
                assert!(variance.iter().all(|variance| *variance >= 0.0));
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_data_and_another_does_not() {
    let shape = shape(40, 700, DataType::Bf16, false, Flags { scale: true, ..Flags::default() });
    for fill in [Fill::Exact, Fill::Random, Fill::Perf] {
        let data = lnorm(&shape, fill, 5);
        let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(single.install(|| lnorm(&shape, fill, 5)), data, "{fill:?}");
        let other = lnorm(&shape, fill, 6);
        assert_ne!(other.src, data.src, "{fill:?}");
        assert_ne!(other.diff_dst, data.diff_dst, "{fill:?}");
        // Rows differ, and a row does not depend on the number of rows.
        assert_ne!(data.src[..700], data.src[700..1400], "{fill:?}");
        let fewer = lnorm(&LnormShape { rows: 3, ..shape }, fill, 5);
        assert_eq!(fewer.src, data.src[..3 * 700], "{fill:?}");
    }
}

#[test]
fn the_given_variance_makes_powers_of_four() {
    let flags = Flags::default();
    let data = lnorm(&shape(6, 40, DataType::F32, false, flags), Fill::Exact, 1);
    let squares: Vec<f64> = data.variance.iter().map(|variance| variance + 1.0 / 16.0).collect();
    assert_eq!(squares, [4.0, 0.25, 1.0, 4.0, 0.25, 1.0]);
}

/// If the variance were far above epsilon, it would not matter on which side of the root epsilon is
/// added.
#[test]
fn the_variance_of_exact_rows_is_near_epsilon() {
    for epsilon in [1e-5, 1.0 / 16.0, 1.0] {
        for (cols, rms_norm) in [(2, false), (3, false), (300, false), (1, true), (300, true)] {
            let flags = Flags { rms_norm, ..Flags::default() };
            let shape = LnormShape { epsilon, ..shape(30, cols, DataType::Bf16, true, flags) };
            for row in lnorm(&shape, Fill::Exact, 7).src.chunks(cols) {
                let mean = if rms_norm { 0.0 } else { row.iter().sum::<f64>() / cols as f64 };
                let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / cols as f64;
                let ratio = variance / f64::from(epsilon);
                assert!((0.29..1.21).contains(&ratio), "{shape:?}: {ratio}");
            }
        }
    }
}

/// These would hide the known mistakes: rms 1, scale 1, and a gradient that cancels.
#[test]
fn exact_data_has_no_blind_spot() {
    for cols in lengths() {
        for dt in DataType::ROUNDED_FLOATS {
            for flags in all_flags() {
                let shape = shape(4, cols, dt, false, flags);
                let data = lnorm(&shape, Fill::Exact, 7);
                assert!(data.scale.iter().all(|scale| scale.abs() != 1.0 && *scale != 0.0));
                let rows = data.src.chunks(cols).zip(data.diff_dst.chunks(cols)).enumerate();
                for (row, (src, diff_dst)) in rows {
                    let what = format!("{shape:?}, row {row}");
                    let mean = if flags.rms_norm { 0.0 } else { data.mean[row] };
                    let r = 1.0 / (data.variance[row] + 1.0 / 16.0).sqrt();
                    let xhat: Vec<f64> = src.iter().map(|x| (x - mean) * r).collect();
                    let scale = |c: usize| data.scale.get(c).copied().unwrap_or(1.0);
                    let d: Vec<f64> =
                        diff_dst.iter().enumerate().map(|(c, d)| d * scale(c)).collect();
                    let average = |values: Vec<f64>| values.iter().sum::<f64>() / cols as f64;
                    let size = average(d.iter().map(|d| d.abs()).collect());
                    let level = average(xhat.iter().map(|x| x * x).collect()).sqrt();

                    assert!(average(d.clone()).abs() > 0.2 * size, "{what}: mean(d)");
                    let dx = average(d.iter().zip(&xhat).map(|(d, x)| d * x).collect());
                    // (With global statistics the gradient has no such term.)
                    let counts = !flags.global_stats;
                    assert!(!counts || dx.abs() > 0.02 * size * level, "{what}: mean(d*xhat)");
                    let rms = average(src.iter().map(|x| x * x).collect()).sqrt();
                    assert!((rms - 1.0).abs() > 1e-4, "{what}: rms {rms}");
                    // The last element has more than its share of the weight.
                    assert!(cols < 3 || d[cols - 1] >= 1.2 * size, "{what}: d at the end");
                }
            }
        }
    }
}

/// The magnitude follows any epsilon; nothing overflows or underflows a type.
#[test]
fn exact_data_for_any_epsilon() {
    for epsilon in [0.0, 1e-12, 1e-5, 1e-3, 0.25, 1.0, 100.0, 1e10] {
        for dt in DataType::ROUNDED_FLOATS {
            for (flags, forward) in all_flags().flat_map(|flags| [(flags, true), (flags, false)]) {
                let shape = LnormShape { epsilon, ..shape(9, 45, dt, forward, flags) };
                let data = lnorm(&shape, Fill::Exact, 7);
                for &x in &data.src {
                    assert!(x != 0.0 && x.is_finite() && dt.round(x) == x, "{shape:?}: {x:e}");
                }
                for &variance in &data.variance {
                    assert!(variance > 0.0 && variance.is_finite(), "{shape:?}: {variance:e}");
                }
            }
        }
    }
}

#[test]
fn random_rows_vary_and_some_are_extreme() {
    let flags = Flags::default();
    for dt in DataType::ROUNDED_FLOATS {
        let cols = 200;
        let shape = shape(600, cols, dt, false, flags);
        let data = lnorm(&shape, Fill::Random, 11);
        let rms = |row: &[f64]| (row.iter().map(|x| x * x).sum::<f64>() / cols as f64).sqrt();
        let levels: Vec<f64> = data.src.chunks(cols).map(rms).collect();
        let within =
            |low: f64, high: f64| levels.iter().filter(|x| (low..high).contains(*x)).count();
        assert!(within(0.3, 30.0) > 500, "most rows are ordinary");
        assert!(within(1e-4, 0.1) > 0 && within(30.0, 1e4) > 0);
        // Some rows have squares beyond the range of f32, if the type has that range.
        let wide = usize::from(dt != DataType::F16);
        assert!(within(1e18, 1e23) >= wide && within(0.0, 1e-27) >= wide, "{}", dt.name());
        for (row, src) in data.src.chunks(cols).enumerate() {
            let mean = src.iter().sum::<f64>() / cols as f64;
            assert_eq!(data.mean[row], f64::from(mean as f32), "row {row}");
        }
        let saturated = data.variance.iter().filter(|variance| variance.is_infinite()).count();
        assert_eq!(saturated > 0, dt != DataType::F16);
        // Normally distributed: mean 0 and deviation 1 within the error of 120000 samples.
        let size = rms(&data.diff_dst[..cols * 600 / 600]);
        assert!((0.2..0.3).contains(&size), "diff_dst {size}");
    }
}

#[test]
fn plain_values_are_moderate_and_plentiful() {
    let data = lnorm(
        &shape(100, 1000, DataType::F16, false, Flags { scale: true, ..Flags::default() }),
        Fill::Perf,
        2,
    );
    for tensor in [&data.src, &data.diff_dst] {
        let zeros = tensor.iter().filter(|x| **x == 0.0).count();
        assert!(zeros < tensor.len() / 100, "{zeros} zeros");
        assert!(tensor.iter().all(|x| x.abs() <= 2.0));
        let mean = tensor.iter().sum::<f64>() / tensor.len() as f64;
        assert!(mean.abs() < 0.05, "{mean}");
    }
    assert!(data.variance.iter().all(|variance| *variance == 1.0));
}

#[test]
fn empty_shapes() {
    for fill in [Fill::Exact, Fill::Random, Fill::Perf] {
        for (flags, forward) in all_flags().flat_map(|flags| [(flags, true), (flags, false)]) {
            let data = lnorm(&shape(0, 5, DataType::F32, forward, flags), fill, 1);
            assert_eq!((data.src.len(), data.scale.len()), (0, if flags.scale { 5 } else { 0 }));
            let data = lnorm(&shape(5, 0, DataType::F32, forward, flags), fill, 1);
            assert_eq!((data.src.len(), data.scale.len()), (0, 0));
        }
    }
}

mod types {
    use super::DataType;
    use half::{bf16, f16};

    /// Every half value, its neighbours, and values between them.
    fn probes() -> Vec<f64> {
        let mut probes = vec![0.0, -0.0, 1e-60, -1e-60, 1e60, -1e60, f64::MAX, 0.1, 1.0 / 3.0];
        for bits in 0..=u16::MAX {
            for value in [f64::from(f16::from_bits(bits)), f64::from(bf16::from_bits(bits))] {
                probes.extend([
                    value,
                    value * (1.0 + 2f64.powi(-12)),
                    value * (1.0 - 2f64.powi(-9)),
                ]);
                // Ties, and values next to them.
                let tie = value * (1.0 + 2f64.powi(-8));
                probes.extend([
                    tie,
                    tie.next_up(),
                    tie.next_down(),
                    value * (1.0 + 2f64.powi(-11)),
                ]);
            }
        }
        probes
    }

    /// By definition: the nearer of two neighbours, ties to even. `values` are those of the type
    /// from 0 up to the place of the first infinity.
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
            ("s32", 4, 4),
            ("s8", 1, 1),
            ("u8", 1, 1),
        ];
        assert_eq!(rows, expected);
    }

    /// All bit patterns, against the definition: sign, exponent with its bias, fraction.
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
}

/// Rows of the types that are only inputs of forward: the statistics are exact, the values are of
/// the type, and epsilon matters.
#[test]
fn small_and_large_types_have_exact_statistics_too() {
    let types = [DataType::S8, DataType::U8, DataType::F8E4m3, DataType::F8E5m2, DataType::F64];
    for cols in lengths().into_iter().filter(|&cols| cols < 10_000) {
        for dt in types {
            for rms_norm in [false, true] {
                let flags = Flags { rms_norm, ..Flags::default() };
                let shape = shape(6, cols, dt, true, flags);
                let data = lnorm(&shape, Fill::Exact, 7);
                for row in data.src.chunks(cols) {
                    let what = format!("{cols} columns of {}", dt.name());
                    assert!(row.iter().all(|&x| dt.round(x) == x), "{what}: {row:?}");
                    if dt != DataType::F64 {
                        assert_exact(row.iter().copied(), &what);
                        assert_exact(row.iter().map(|x| x * x), &what);
                    }
                    let mean = row.iter().sum::<f64>() / cols as f64;
                    assert!(cols == 1 || row.iter().all(|x| *x != mean), "{what}");
                    let squares = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
                    let variance = squares / cols as f64;
                    assert!(cols == 1 || variance < 160.0, "{what}: epsilon counts, {variance}");
                }
            }
        }
    }
    // f64 data expose a library that computes in f32.
    let data = lnorm(&shape(4, 64, DataType::F64, true, Flags::default()), Fill::Exact, 7);
    assert!(data.src.iter().any(|&x| f64::from(x as f32) != x));
}
