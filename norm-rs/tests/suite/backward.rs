//! Backward passes with objects, dense.

use norm_rs::layer_normalization::{Backward, BackwardArgs, Flags};
use norm_rs::{Engine, Memory, Stream, bf16, f16};

use crate::data::*;
use crate::oracle::Problem;

const ROWS: usize = 5;
const EPSILON: f32 = 1e-3;
const COLS: [usize; 8] = [1, 2, 7, 16, 17, 33, 64, 130];

/// One backward pass: `S` is src, `D` diff_dst, `R` diff_src, `P` scale, `G` diff_scale and
/// diff_shift.
fn check<S: Number, D: Number, R: Number, P: Number, G: Number>(
    cols: usize,
    flags: Flags,
    data_alone: bool,
    in_place: bool,
) {
    // Neither centred nor of unit variance, with scale not 1 and the mean of scale*diff_dst not 0, so that every term
    // of the formula matters.
    let src: Vec<S> = numbers(1, ROWS * cols, -1.0, 4.0);
    let diff_dst: Vec<D> = numbers(2, ROWS * cols, -1.0, 2.0);
    let scale: Vec<P> = numbers(3, cols, 0.5, 2.5);
    let has_mean = !flags.contains(Flags::RMS_NORM);

    let problem = Problem {
        flags,
        epsilon: EPSILON.into(),
        cols,
        src: &f64s(&src),
        scale: &f64s(&scale),
        shift: &vec![0.0; cols],
        mean: &f64s(&numbers::<f32>(4, ROWS, 0.5, 2.0)),
        variance: &f64s(&numbers::<f32>(5, ROWS, 0.5, 3.0)),
    };
    // As from a forward pass (the global statistics with that flag), in f32.
    let forward = problem.forward();
    let f32s = |values: &[(f64, f64)]| values.iter().map(|v| v.0 as f32).collect::<Vec<_>>();
    let (mean, variance) = (f32s(&forward.mean), f32s(&forward.variance));
    let problem = Problem { mean: &f64s(&mean), variance: &f64s(&variance), ..problem };
    let expected = problem.backward(&f64s(&diff_dst));

    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let dims = [ROWS, cols];
    let (src_desc, diff_dst_desc, diff_src_desc) =
        (dense::<S>(&dims), dense::<D>(&dims), dense::<R>(&dims));
    let builder = if data_alone {
        Backward::data(&engine, &src_desc)
    } else {
        Backward::new(&engine, &src_desc)
    };
    let backward = builder
        .diff_dst(&diff_dst_desc)
        .diff_src(&diff_src_desc)
        .scale_shift_type(P::DATA_TYPE)
        .diff_scale_shift_type(G::DATA_TYPE)
        .epsilon(EPSILON)
        .flags(flags)
        .build()
        .unwrap();

    let src = memory(&engine, &dims, &src);
    let diff_dst_memory = memory(&engine, &dims, &diff_dst);
    let mut diff_src = if in_place {
        memory(&engine, &dims, &diff_dst)
    } else {
        Memory::new(&engine, &diff_src_desc).unwrap()
    };
    let (mean, variance) = (memory(&engine, &[ROWS], &mean), memory(&engine, &[ROWS], &variance));
    let scale = memory(&engine, &[cols], &scale);
    let untouched = vec![G::of(99.0); cols];
    let mut diff_scale = memory(&engine, &[cols], &untouched);
    let mut diff_shift = memory(&engine, &[cols], &untouched);

    let mut args = if in_place {
        BackwardArgs::in_place(&src, &mut diff_src)
    } else {
        BackwardArgs::new(&src, &diff_dst_memory, &mut diff_src)
    };
    args = args.variance(&variance);
    if has_mean {
        args = args.mean(&mean);
    }
    let scale_out = flags.contains(Flags::SCALE) && !data_alone;
    let shift_out = flags.contains(Flags::SHIFT) && !data_alone;
    if flags.contains(Flags::SCALE) {
        args = args.scale(&scale);
    }
    if scale_out {
        args = args.diff_scale(&mut diff_scale);
    }
    if shift_out {
        args = args.diff_shift(&mut diff_shift);
    }
    backward.execute(&stream, args).unwrap();

    let name = |what: &str| {
        let types = [S::DATA_TYPE, D::DATA_TYPE, R::DATA_TYPE, P::DATA_TYPE, G::DATA_TYPE]
            .map(|t| t.to_string());
        format!(
            "{what}, src diff_dst diff_src scale diff_scale {types:?}, {flags:?}, {cols} columns"
        )
    };
    assert_close(&name("diff_src"), &elements::<R>(&diff_src), &expected.diff_src);
    let (diff_scale, diff_shift) = (elements::<G>(&diff_scale), elements::<G>(&diff_shift));
    if scale_out {
        assert_close(&name("diff_scale"), &diff_scale, &expected.diff_scale);
    } else {
        assert_eq!(bits(&diff_scale), bits(&untouched), "not an output");
    }
    if shift_out {
        assert_close(&name("diff_shift"), &diff_shift, &expected.diff_shift);
    } else {
        assert_eq!(bits(&diff_shift), bits(&untouched), "not an output");
    }
}

fn check_all<S: Number, D: Number, R: Number, P: Number, G: Number>() {
    for flags in flag_sets() {
        for cols in COLS {
            for data_alone in [false, true] {
                check::<S, D, R, P, G>(cols, flags, data_alone, false);
                if D::DATA_TYPE == R::DATA_TYPE {
                    check::<S, D, R, P, G>(cols, flags, data_alone, true);
                }
            }
        }
    }
}

#[test]
fn f32_throughout() {
    check_all::<f32, f32, f32, f32, f32>();
}

#[test]
fn bf16_throughout() {
    check_all::<bf16, bf16, bf16, bf16, bf16>();
}

#[test]
fn f16_throughout() {
    check_all::<f16, f16, f16, f16, f16>();
}

#[test]
fn mixed_types() {
    check_all::<bf16, bf16, bf16, f32, f32>();
    check_all::<f32, bf16, f16, f16, f32>();
    check_all::<f16, f32, bf16, bf16, f16>();
    check_all::<bf16, f16, f32, f32, bf16>();
}

#[test]
fn without_rows_the_parameter_gradients_are_zeros() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let desc = dense::<f32>(&[0, 4]);
    let flags = Flags::SCALE | Flags::SHIFT | Flags::RMS_NORM;
    let backward = Backward::new(&engine, &desc).flags(flags).build().unwrap();
    let (src, diff_dst) =
        (Memory::new(&engine, &desc).unwrap(), Memory::new(&engine, &desc).unwrap());
    let mut diff_src = Memory::new(&engine, &desc).unwrap();
    let variance = Memory::new(&engine, &stats_desc(&[0])).unwrap();
    let scale = memory(&engine, &[4], &[1f32; 4]);
    let mut diff_scale = memory(&engine, &[4], &[7f32; 4]);
    let mut diff_shift = memory(&engine, &[4], &[7f32; 4]);
    let args = BackwardArgs::new(&src, &diff_dst, &mut diff_src).variance(&variance).scale(&scale);
    let args = args.diff_scale(&mut diff_scale).diff_shift(&mut diff_shift);
    backward.execute(&stream, args).unwrap();
    assert_eq!(elements::<f32>(&diff_scale), [0.0; 4]);
    assert_eq!(elements::<f32>(&diff_shift), [0.0; 4]);
}
