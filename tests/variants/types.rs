//! Element types.

use crate::harness::*;
use norm_sys as sys;

const FORWARD: [u32; 8] = [
    sys::norm_f32,
    sys::norm_bf16,
    sys::norm_f16,
    sys::norm_f64,
    sys::norm_s8,
    sys::norm_u8,
    sys::norm_f8_e4m3,
    sys::norm_f8_e5m2,
];
const BACKWARD: [u32; 4] = [sys::norm_f32, sys::norm_bf16, sys::norm_f16, sys::norm_f64];

#[test]
fn forward_with_every_type_pair() {
    let library = Library::new();
    let flags = [0, CH, sys::norm_use_scale | sys::norm_rms_norm, CH | sys::norm_use_global_stats];
    for src in FORWARD {
        for dst in FORWARD {
            for (i, cols) in [1, 7, 16, 31, 64, 100, 300].into_iter().enumerate() {
                let flags = flags[i % flags.len()];
                let types = [src, dst, sys::norm_f32];
                let kind = sys::norm_forward_training;
                let mut problem = Problem::dense(kind, &[19, cols], types, flags);
                problem.scale_shift = BACKWARD[i % 3];
                assert_same(&problem, &run(&library, &problem));
            }
        }
    }
}

#[test]
fn lengths_around_every_tail() {
    let library = Library::new();
    for (src, dst) in [
        (sys::norm_f32, sys::norm_s8),
        (sys::norm_s8, sys::norm_f32),
        (sys::norm_u8, sys::norm_u8),
        (sys::norm_bf16, sys::norm_u8),
        (sys::norm_f16, sys::norm_f8_e4m3),
        (sys::norm_f8_e5m2, sys::norm_bf16),
        (sys::norm_f64, sys::norm_f64),
    ] {
        for cols in (1..=70).chain([127, 128, 129, 255, 256, 257, 511, 513, 1025, 33000]) {
            let rows = if cols > 2000 { 2 } else { 17 };
            let types = [src, dst, sys::norm_f32];
            let problem = Problem::dense(sys::norm_forward_training, &[rows, cols], types, CH);
            assert_same(&problem, &run(&library, &problem));
        }
    }
}

#[test]
fn backward_with_every_type_triple() {
    let library = Library::new();
    let flags = [CH, CH | sys::norm_rms_norm, 0, CH | sys::norm_use_global_stats];
    for src in BACKWARD {
        for diff_dst in BACKWARD {
            for diff_src in BACKWARD {
                for (i, cols) in [1, 17, 64, 300].into_iter().enumerate() {
                    let types = [src, diff_dst, diff_src];
                    let kind = sys::norm_backward;
                    let problem = Problem::dense(kind, &[37, cols], types, flags[i]);
                    assert_same(&problem, &run(&library, &problem));
                }
            }
        }
    }
}

#[test]
fn rows_outside_the_range_of_f32() {
    let library = Library::new();
    for dst in FORWARD {
        let types = [sys::norm_f32, dst, sys::norm_f32];
        let mut problem = Problem::dense(sys::norm_forward_training, &[33, 90], types, CH);
        problem.scaled_rows = vec![(1, 2f32.powi(100))];
        assert_same(&problem, &run(&library, &problem));
    }
}

/// Row counts around the loop's block size and its lookahead.
#[test]
fn short_dense_rows() {
    let library = Library::new();
    let rms = sys::norm_rms_norm;
    for (src, dst) in [
        (sys::norm_f32, sys::norm_f32),
        (sys::norm_bf16, sys::norm_bf16),
        (sys::norm_f16, sys::norm_f16),
        (sys::norm_f32, sys::norm_bf16),
        (sys::norm_bf16, sys::norm_f32),
    ] {
        for flags in [0, CH, rms, sys::norm_use_scale | rms] {
            for cols in [16, 32, 64, 96, 128] {
                let rows = [3, 4, 7, 8, 12, 17, 20, 24, 28, 33, 36, 47, 131];
                for (i, rows) in rows.into_iter().enumerate() {
                    let kind = [sys::norm_forward_training, sys::norm_forward_inference][i % 2];
                    let types = [src, dst, sys::norm_f32];
                    let problem = Problem::dense(kind, &[rows, cols], types, flags);
                    assert_same(&problem, &run(&library, &problem));
                }
            }
        }
    }
}

/// The loop over dense rows stops at rows outside the range of f32 and resumes after them.
#[test]
fn dense_rows_with_some_outside_the_range_of_f32() {
    let library = Library::new();
    let huge = 2f32.powi(100);
    for flags in [CH, sys::norm_use_scale | sys::norm_rms_norm] {
        for cols in [16, 32, 64, 128] {
            for scaled_rows in [
                vec![(0, huge)],
                vec![(29, 0.0)],
                vec![(5, huge), (6, 0.0), (40, huge), (63, huge)],
                (20..60).map(|row| (row, 0.0)).collect(),
                vec![(116, huge), (119, 0.0)],
            ] {
                let kind = sys::norm_forward_training;
                let types = [sys::norm_f32; 3];
                let mut problem = Problem::dense(kind, &[120, cols], types, flags);
                problem.scaled_rows = scaled_rows;
                assert_same(&problem, &run(&library, &problem));
            }
        }
    }
}

/// With mean 0, variance 1 and a negligible epsilon, dst is src in another type.
fn converted(values: &[f32], data_type: u32) -> Vec<Vec<u8>> {
    let library = Library::new();
    let dims = [1, values.len() as i64];
    let types = [sys::norm_f32, data_type, sys::norm_f32];
    let flags = sys::norm_use_global_stats;
    let problem = Problem::dense(sys::norm_forward_inference, &dims, types, flags);
    let bytes = |x: &f32| x.to_le_bytes();
    let src = values.iter().flat_map(bytes).collect();
    convert_with(&library, &problem, src)
}

#[test]
fn integers_saturate_and_round_to_even() {
    let values = [
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        126.5,
        127.4,
        127.5,
        128.0,
        1e9,
        -128.5,
        -129.0,
        -1e9,
        254.5,
        255.5,
        256.0,
        -0.4,
        0.4,
        3.7,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    let s8 = [
        0, 2, 2, 0, -2, -2, 126, 127, 127, 127, 127, -128, -128, -128, 127, 127, 127, 0, 0, 4, 127,
        -128i8,
    ];
    let u8 = [0, 2, 2, 0, 0, 0, 126, 127, 128, 128, 255, 0, 0, 0, 254, 255, 255, 0, 0, 4, 255, 0u8];
    for dst in converted(&values, sys::norm_s8) {
        assert_eq!(dst.iter().map(|b| *b as i8).collect::<Vec<_>>(), s8);
    }
    for dst in converted(&values, sys::norm_u8) {
        assert_eq!(dst, u8);
    }
}

#[test]
fn eight_bit_floats_round_to_even() {
    // 1, 1.0625 and 1.1875 (ties), 464 and 57344 (the largest that round down), and overflow.
    let values =
        [1.0, 1.0625, 1.1875, 464.0, 465.0, 57344.0, 61439.0, 61440.0, -1.0, 2f32.powi(-9)];
    let e4m3 = [0x38, 0x38, 0x3a, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0xb8, 0x01];
    let e5m2 = [0x3c, 0x3c, 0x3d, 0x5f, 0x5f, 0x7b, 0x7b, 0x7c, 0xbc, 0x18];
    for dst in converted(&values, sys::norm_f8_e4m3) {
        assert_eq!(dst, e4m3);
    }
    for dst in converted(&values, sys::norm_f8_e5m2) {
        assert_eq!(dst, e5m2);
    }
}
