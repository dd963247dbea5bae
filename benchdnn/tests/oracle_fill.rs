//! The data: its values are of their types, its statistics are exact in f32 in any order of summation, and it hides no
//! mistake.

use benchdnn::data_type::DataType;
use benchdnn::fill::Fill;
use benchdnn::fill::lnorm::{LnormData, LnormShape, lnorm};
use benchdnn::oracle::lnorm::Flags;
use benchdnn::steps::StepShape;

fn all_flags() -> impl Iterator<Item = Flags> {
    (0..16).map(|bits| Flags {
        global_stats: bits & 1 != 0,
        scale: bits & 2 != 0,
        shift: bits & 4 != 0,
        rms_norm: bits & 8 != 0,
        ..Flags::default()
    })
}

fn shape(rows: usize, cols: usize, dt: DataType, forward: bool, flags: Flags) -> LnormShape {
    let epsilon = 1.0 / 16.0;
    let steps = StepShape::default();
    let (src_dt, dst_dt, ss_dt, gain) = (dt, dt, dt, 1.0);
    LnormShape { rows, cols, src_dt, dst_dt, ss_dt, forward, flags, epsilon, gain, steps }
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
                let LnormData { src, scale, shift, mean, variance, diff_dst, .. } = &data;
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

/// These would hide the known mistakes: an RMS of 1, a scale of 1, and a gradient that cancels.
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
                    // (With global statistics, the gradient has no such term.)
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

/// The magnitude follows any epsilon, and nothing overflows or underflows a type.
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

/// Rows of types that are only inputs of forward: the statistics are exact, the values are of the type, and epsilon
/// matters.
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
