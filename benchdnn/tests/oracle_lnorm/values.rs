//! Known values: properties of the definitions, worked examples, and rows on which careless
//! arithmetic cancels or overflows.

use benchdnn::oracle::lnorm::{
    BackwardInput, Flags, ForwardInput, ForwardOutput, backward, forward,
};

const LAYER: Flags = Flags {
    global_stats: false,
    scale: false,
    shift: false,
    rms_norm: false,
    plus_one: false,
    round_first: false,
    gate_output: false,
    gate_input: false,
};
const RMS: Flags = Flags { rms_norm: true, ..LAYER };

fn run(flags: Flags, cols: usize, src: &[f64], epsilon: f64) -> ForwardOutput {
    forward(&ForwardInput {
        rows: src.len() / cols,
        cols,
        src,
        scale: None,
        shift: None,
        mean: None,
        variance: None,
        epsilon,
        flags,
    })
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

#[track_caller]
fn assert_near(got: &[f64], expected: &[f64], relative: f64) {
    assert_eq!(got.len(), expected.len());
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let error = (got - expected).abs();
        assert!(error <= relative * expected.abs(), "element {i}: {got:e}, expected {expected:e}");
    }
}

/// A row of f32 values whose mean is exactly 0.
fn zero_mean_row() -> Vec<f64> {
    (1..=40).flat_map(|i| [f64::from(i) * 0.25, f64::from(i) * -0.25]).collect()
}

#[test]
fn rms_norm_of_a_row_without_mean_is_layer_norm() {
    let row = zero_mean_row();
    let (layer, rms) = (run(LAYER, row.len(), &row, 1e-5), run(RMS, row.len(), &row, 1e-5));
    assert_eq!(layer.dst, rms.dst);
    assert_eq!(layer.variance, rms.variance);
    assert_eq!(layer.mean, [0.0]);
    assert!(rms.mean.is_empty());
    // Conversely, with a mean they differ.
    let shifted: Vec<f64> = row.iter().map(|x| x + 1.0).collect();
    let difference =
        run(LAYER, row.len(), &shifted, 1e-5).dst[0] - run(RMS, row.len(), &shifted, 1e-5).dst[0];
    assert!(difference.abs() > 0.1);
}

#[test]
fn global_statistics_of_mean_zero_are_rms_norm_forward_but_not_backward() {
    let row = [1.0, -2.0, 3.5, 0.25, 6.0];
    let direct = run(RMS, 5, &row, 1e-5);
    let global = Flags { global_stats: true, ..LAYER };
    let input = ForwardInput {
        rows: 1,
        cols: 5,
        src: &row,
        scale: None,
        shift: None,
        mean: Some(&[0.0]),
        variance: Some(&direct.variance),
        epsilon: 1e-5,
        flags: global,
    };
    assert_eq!(forward(&input).dst, direct.dst);
    // With the flag, the mean is not read at all.
    let flags = Flags { global_stats: true, ..RMS };
    assert_eq!(forward(&ForwardInput { mean: None, flags, ..input }).dst, direct.dst);

    let gradient = |flags| {
        backward(&BackwardInput {
            rows: 1,
            cols: 5,
            src: &row,
            diff_dst: &[1.0; 5],
            scale: None,
            mean: Some(&[0.0]),
            variance: &direct.variance,
            epsilon: 1e-5,
            flags,
        })
    };
    let r = 1.0 / (direct.variance[0] + 1e-5).sqrt();
    assert_near(&gradient(global).diff_src, &[r; 5], 1e-15);
    assert!((gradient(RMS).diff_src[4] - r).abs() > 0.1 * r);
}

#[test]
fn one_three_five_seven() {
    let row = [1.0, 3.0, 5.0, 7.0];
    let out = run(RMS, 4, &row, 0.0);
    assert_eq!(out.variance, [21.0]);
    assert_near(&out.dst, &[0.218_217_89, 0.654_653_67, 1.091_089_45, 1.527_525_23], 1e-8);
    // With the population's deviation, sqrt(5). The sample's, 2.58, would give 1.16 at the ends.
    let out = run(LAYER, 4, &row, 0.0);
    assert_eq!((out.mean[0], out.variance[0], out.mean_terms[0]), (4.0, 5.0, 4.0));
    assert_near(&out.dst, &[-1.341_640_79, -0.447_213_595, 0.447_213_595, 1.341_640_79], 1e-8);
}

/// Activations far smaller than sqrt(epsilon), as in the first block of a small language model.
#[test]
fn epsilon_damps_a_quiet_row() {
    let row: Vec<f64> = (0..2048).map(|i| 0.007 * (f64::from(i) / 100.0).sin()).collect();
    let scale = vec![0.046; 2048];
    let input = ForwardInput {
        rows: 1,
        cols: 2048,
        src: &row,
        scale: Some(&scale),
        shift: None,
        mean: None,
        variance: None,
        epsilon: 1e-5,
        flags: Flags { scale: true, ..RMS },
    };
    let out = forward(&input);
    assert_near(&out.variance, &[2.455_926_4e-5], 1e-7);
    assert_near(&[rms(&row)], &[0.004_955_730_4], 1e-8);
    let divisor = (out.variance[0] + 1e-5).sqrt();
    assert_near(&[divisor, rms(&row) / divisor], &[0.005_878_712_8, 0.842_995_8], 1e-7);
    assert_near(&[rms(&out.dst)], &[0.038_777_808_6], 1e-8);
    // Without epsilon, the output would have the scale's 0.046.
    assert!((rms(&out.dst) - 0.046).abs() > 0.005);
    assert_near(&[rms(&forward(&ForwardInput { epsilon: 0.0, ..input }).dst)], &[0.046], 1e-12);
}

#[test]
fn the_output_has_the_rms_of_the_ratio_law() {
    for level in [1.0, 0.1, 0.01, 0.005, 1e-3, 1e-4] {
        let row: Vec<f64> =
            zero_mean_row().iter().map(|x| x * level / rms(&zero_mean_row())).collect();
        for epsilon in [1e-8, 1e-6, 1e-5, 1e-3] {
            let expected = level / (level * level + epsilon).sqrt();
            assert_near(&[rms(&run(RMS, row.len(), &row, epsilon).dst)], &[expected], 1e-12);
        }
    }
    // Two of them, with their digits.
    for (level, expected) in [(0.1, 0.999_500_4), (0.005, 0.845_154_3)] {
        assert_near(
            &[rms(&run(RMS, 4, &[level, -level, level, level], 1e-5).dst)],
            &[expected],
            1e-7,
        );
    }
}

/// With a scale that follows the row's magnitude, the output is larger than the ratio times the scale's RMS. With a
/// uniform one it is equal.
#[test]
fn the_output_rms_follows_the_scale_where_the_row_is_large() {
    let row = [0.01, 0.02, 0.03, 0.1];
    let output = |scale: &[f64]| {
        let flags = Flags { scale: true, ..RMS };
        let out = forward(&ForwardInput {
            rows: 1,
            cols: 4,
            src: &row,
            scale: Some(scale),
            shift: None,
            mean: None,
            variance: None,
            epsilon: 1e-5,
            flags,
        });
        let weighted: Vec<f64> = row.iter().zip(scale).map(|(x, scale)| x * scale).collect();
        let divisor = (out.variance[0] + 1e-5).sqrt();
        assert_near(&[rms(&out.dst)], &[rms(&weighted) / divisor], 1e-12);
        rms(&out.dst) / (rms(&row) / divisor * rms(scale))
    };
    assert_near(&[output(&[0.3; 4])], &[1.0], 1e-12);
    assert!(output(&[0.1, 0.1, 0.1, 0.9]) > 1.5);
}

#[test]
fn rows_do_not_depend_on_their_batch() {
    let rows = [[1.0, 2.0, 3.0, 4.0], [-1.0, -2.0, -3.0, -4.0], [5.0, 6.0, 7.0, 8.0]];
    for flags in [LAYER, RMS] {
        let batch = run(flags, 4, rows.as_flattened(), 1e-6);
        for (i, row) in rows.iter().enumerate() {
            let alone = run(flags, 4, row, 1e-6);
            assert_eq!(alone.dst, batch.dst[4 * i..][..4], "{flags:?}, row {i}");
            assert_eq!(alone.variance, batch.variance[i..=i]);
        }
        // The normalization is odd in its row.
        let (first, second) = (&batch.dst[..4], &batch.dst[4..8]);
        assert_eq!(first, second.iter().map(|x| -x).collect::<Vec<_>>());
        assert_near(&[rms(first)], &[1.0], 1e-6);
    }
    // RMS normalization does not centre: sqrt(7.5) = 2.7386.
    let out = run(RMS, 4, rows.as_flattened(), 0.0);
    assert_near(&out.variance, &[7.5, 7.5, 43.5], 1e-15);
    assert_near(&out.dst[..4], &[0.365_148_37, 0.730_296_74, 1.095_445_12, 1.460_593_49], 1e-8);
}

#[test]
fn constant_rows_of_any_size() {
    for value in [1e-8, 1e8, 1e20, 1e-30].map(|value: f64| f64::from(value as f32)) {
        for cols in [1, 7, 64, 1000] {
            let row = vec![value; cols];
            let out = run(LAYER, cols, &row, 1e-5);
            assert_eq!((out.mean[0], out.variance[0]), (value, 0.0), "{value:e} x {cols}");
            assert!(out.dst.iter().all(|dst| *dst == 0.0));

            let out = run(RMS, cols, &row, 1e-5);
            assert_near(&out.variance, &[value * value], 1e-14);
            let expected = value / (value * value + 1e-5).sqrt();
            assert_near(&out.dst, &vec![expected; cols], 1e-14);
        }
    }
}

/// E[x^2] - mean^2 fails for each of these in f32, and for some in f64.
#[test]
fn rows_that_cancel() {
    let out = run(LAYER, 4, &[40000.0, 40001.0, 40002.0, 40003.0], 0.0);
    assert_eq!((out.mean[0], out.variance[0]), (40001.5, 1.25));
    assert_near(&out.dst, &[-1.341_640_79, -0.447_213_595, 0.447_213_595, 1.341_640_79], 1e-8);

    let out = run(LAYER, 4, &[1e6 - 1.0, 1e6, 1e6 + 1.0, 1e6 + 1.25], 0.0);
    assert_eq!((out.mean[0], out.variance[0]), (1e6 + 0.3125, 0.792_968_75));

    // 24 significant bits, and a mean with an infinite binary expansion: not exact in f64 either.
    let top = 16_777_216.0;
    let out = run(LAYER, 3, &[top - 1.0, top - 1.0, top - 2.0], 0.0);
    assert_near(&out.variance, &[2.0 / 9.0], 1e-8);

    let out = run(LAYER, 50, &[1234.0; 50], 1e-5);
    assert_eq!((out.mean[0], out.variance[0]), (1234.0, 0.0));

    // The squares overflow f32 (and the variance its type), but not the row's result.
    let out = run(LAYER, 2, &[1e30, -1e30], 1e-5);
    assert_near(&out.variance, &[1e60], 1e-15);
    assert_near(&out.dst, &[1.0, -1.0], 1e-15);

    // Neighbours of bf16 and f16 around 1: the deviation is in the last place.
    for ulp in [2f64.powi(-7), 2f64.powi(-10)] {
        let out = run(LAYER, 4, &[1.0, 1.0 + ulp, 1.0 + 2.0 * ulp, 1.0 + 3.0 * ulp], 0.0);
        assert_eq!(out.variance, [1.25 * ulp * ulp]);
    }
}

#[test]
fn a_long_row_is_summed_well() {
    // 2^22 elements near 1, whose mean and variance are known: k/2^22 for k below 2^22.
    let cols = 1 << 22;
    let n = f64::from(cols);
    let row: Vec<f64> = (0..cols).map(|k| 1.0 + f64::from(k) / n).collect();
    let out = run(LAYER, cols as usize, &row, 0.0);
    assert_near(&out.mean, &[1.0 + (n - 1.0) / (2.0 * n)], 1e-15);
    assert_near(&out.variance, &[(n * n - 1.0) / (12.0 * n * n)], 1e-13);
}

#[test]
fn single_columns_and_empty_shapes() {
    let out = run(LAYER, 1, &[3.0, -7.0], 1e-5);
    assert_eq!((out.dst, out.mean, out.variance), (vec![0.0; 2], vec![3.0, -7.0], vec![0.0; 2]));
    let out = run(RMS, 1, &[3.0, -7.0], 0.0);
    assert_eq!((out.dst, out.variance), (vec![1.0, -1.0], vec![9.0, 49.0]));

    let scale = [2.0; 3];
    let input = |rows, cols| ForwardInput {
        rows,
        cols,
        src: &[],
        scale: Some(&scale[..cols]),
        shift: None,
        mean: None,
        variance: None,
        epsilon: 1e-5,
        flags: Flags { scale: true, ..LAYER },
    };
    let out = forward(&input(0, 3));
    assert!(out.dst.is_empty() && out.mean.is_empty() && out.variance.is_empty());
    let out = forward(&input(2, 0));
    assert_eq!((out.dst.len(), out.mean, out.variance), (0, vec![0.0; 2], vec![0.0; 2]));

    let empty = BackwardInput {
        rows: 0,
        cols: 3,
        src: &[],
        diff_dst: &[],
        scale: Some(&scale),
        mean: Some(&[]),
        variance: &[],
        epsilon: 1e-5,
        flags: Flags { scale: true, shift: true, ..LAYER },
    };
    let out = backward(&empty);
    assert_eq!((out.diff_scale, out.diff_shift), (vec![0.0; 3], vec![0.0; 3]));
    assert!(out.diff_src.is_empty());
}

#[test]
fn without_anything_to_divide_by_the_factor_is_zero() {
    let flags = Flags { shift: true, ..RMS };
    let shift = [0.5, -2.0];
    let input = ForwardInput {
        rows: 1,
        cols: 2,
        src: &[0.0; 2],
        scale: None,
        shift: Some(&shift),
        mean: None,
        variance: None,
        epsilon: 0.0,
        flags,
    };
    assert_eq!(forward(&input).dst, shift);

    let gradient = |epsilon| {
        backward(&BackwardInput {
            rows: 1,
            cols: 2,
            src: &[0.0; 2],
            diff_dst: &[3.0, -1.0],
            scale: None,
            mean: None,
            variance: &[0.0],
            epsilon,
            flags,
        })
    };
    assert_eq!(gradient(0.0).diff_src, [0.0, 0.0]);
    // A zero row with an epsilon: diff_src = d*r.
    assert_eq!(gradient(1.0 / 16.0).diff_src, [12.0, -4.0]);
}

/// A variance outside f32's range is unusable; the gradient uses the row's own.
#[test]
fn statistics_out_of_range_are_taken_anew() {
    let row = [1.0, 2.0, 4.0, -1.0];
    let own = run(LAYER, 4, &row, 0.0);
    let diff_dst = [1.0, 0.5, -1.0, 2.0];
    let gradient = |flags, mean: f64, variance: f64| {
        backward(&BackwardInput {
            rows: 1,
            cols: 4,
            src: &row,
            diff_dst: &diff_dst,
            scale: None,
            mean: Some(&[mean]),
            variance: &[variance],
            epsilon: 1e-3,
            flags,
        })
        .diff_src
    };
    let expected = gradient(LAYER, own.mean[0], own.variance[0]);
    for variance in [f64::INFINITY, 0.0, 1e-40, f64::from(f32::from_bits(1))] {
        assert_eq!(gradient(LAYER, 77.0, variance), expected, "variance {variance:e}");
        // Global statistics are constants, even if unusual.
        let global = gradient(Flags { global_stats: true, ..LAYER }, 77.0, variance);
        let r = 1.0 / (variance + 1e-3).sqrt();
        assert_eq!(global, diff_dst.map(|d| d * r), "variance {variance:e}");
    }
    // The smallest normal f32 and any larger variance are used.
    for variance in [f64::from(f32::MIN_POSITIVE), 1e-3, f64::from(f32::MAX)] {
        assert_ne!(gradient(LAYER, own.mean[0], variance), expected, "variance {variance:e}");
    }
}

#[test]
fn a_nan_or_an_infinity_stays_in_its_row() {
    for flags in [LAYER, RMS] {
        for bad in [f64::NAN, f64::INFINITY] {
            let rows = [1.0, 2.0, 4.0, 1.0, bad, 4.0, 1.0, 2.0, 4.0];
            let out = run(flags, 3, &rows, 1e-5);
            let clean = run(flags, 3, &rows[..3], 1e-5);
            assert_eq!((&out.dst[..3], &out.dst[6..]), (&clean.dst[..], &clean.dst[..]));
            assert!(out.dst[4].is_nan());
            assert!(out.variance[1].is_nan() || (flags.rms_norm && out.variance[1] == bad));
        }
    }
    // With RMS normalization, an infinity turns the other elements into zeros: r = 1/sqrt(inf).
    let out = run(RMS, 3, &[1.0, f64::INFINITY, -4.0], 1e-5);
    assert_eq!((out.dst[0], out.dst[2]), (0.0, 0.0));
}
