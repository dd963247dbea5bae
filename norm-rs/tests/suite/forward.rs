//! Forward passes with objects, dense.

use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
use norm_rs::{DataType, Engine, Memory, Stream, bf16, f16};

use crate::data::*;
use crate::oracle::Problem;

const ROWS: usize = 3;
const EPSILON: f32 = 1e-3;
const COLS: [usize; 9] = [1, 2, 7, 15, 16, 17, 33, 64, 130];

struct Case<S, P> {
    cols: usize,
    flags: Flags,
    src: Vec<S>,
    scale: Vec<P>,
    shift: Vec<P>,
    /// Global statistics.
    mean: Vec<f32>,
    variance: Vec<f32>,
}

impl<S: Number, P: Number> Case<S, P> {
    fn new(cols: usize, flags: Flags) -> Self {
        Self {
            cols,
            flags,
            // Neither centred nor of unit variance, so that every term of the formula matters.
            src: numbers(1, ROWS * cols, -1.0, 4.0),
            scale: numbers(2, cols, 0.5, 2.5),
            shift: numbers(3, cols, -3.0, 1.0),
            mean: numbers(4, ROWS, 0.5, 2.0),
            variance: numbers(5, ROWS, 0.5, 3.0),
        }
    }

    fn name<D: Number>(&self, what: &str) -> String {
        let (s, d, p) = (S::DATA_TYPE, D::DATA_TYPE, P::DATA_TYPE);
        format!("{what} of {s} to {d}, parameters {p}, {:?}, {} columns", self.flags, self.cols)
    }

    fn check<D: Number>(&self, training: bool, in_place: bool) {
        let &Self { cols, flags, .. } = self;
        let engine = Engine::cpu().unwrap();
        let stream = Stream::new(&engine).unwrap();
        let (src_desc, dst_desc) = (dense::<S>(&[ROWS, cols]), dense::<D>(&[ROWS, cols]));
        let builder = if training {
            Forward::training(&engine, &src_desc)
        } else {
            Forward::inference(&engine, &src_desc)
        };
        let forward = builder
            .dst(&dst_desc)
            .scale_shift_type(P::DATA_TYPE)
            .epsilon(EPSILON)
            .flags(flags)
            .build()
            .unwrap();

        let global = flags.contains(Flags::GLOBAL_STATS);
        let has_mean = !flags.contains(Flags::RMS_NORM);
        let stats_out = training && !global;
        let src = memory(&engine, &[ROWS, cols], &self.src);
        let mut dst = if in_place {
            memory(&engine, &[ROWS, cols], &self.src)
        } else {
            Memory::new(&engine, &dst_desc).unwrap()
        };
        let scale = memory(&engine, &[cols], &self.scale);
        let shift = memory(&engine, &[cols], &self.shift);
        let (mut mean, mut variance) =
            (memory(&engine, &[ROWS], &self.mean), memory(&engine, &[ROWS], &self.variance));

        let mut args = if in_place {
            ForwardArgs::in_place(&mut dst)
        } else {
            ForwardArgs::new(&src, &mut dst)
        };
        if flags.contains(Flags::SCALE) {
            args = args.scale(&scale);
        }
        if flags.contains(Flags::SHIFT) {
            args = args.shift(&shift);
        }
        if stats_out {
            args = args.variance_out(&mut variance);
            if has_mean {
                args = args.mean_out(&mut mean);
            }
        } else if global {
            args = args.variance(&variance);
            if has_mean {
                args = args.mean(&mean);
            }
        }
        forward.execute(&stream, args).unwrap();

        let expected = Problem {
            flags,
            epsilon: EPSILON.into(),
            cols,
            src: &f64s(&self.src),
            scale: &f64s(&self.scale),
            shift: &f64s(&self.shift),
            mean: &f64s(&self.mean),
            variance: &f64s(&self.variance),
        }
        .forward();
        assert_close(&self.name::<D>("dst"), &elements::<D>(&dst), &expected.dst);
        let (mean, variance) = (elements::<f32>(&mean), elements::<f32>(&variance));
        if stats_out {
            assert_close(&self.name::<D>("variance"), &variance, &expected.variance);
        } else {
            assert_eq!(variance, self.variance, "not an output");
        }
        if stats_out && has_mean {
            assert_close(&self.name::<D>("mean"), &mean, &expected.mean);
        } else {
            assert_eq!(mean, self.mean, "not an output");
        }
    }
}

fn check_all<S: Number, D: Number, P: Number>() {
    for flags in flag_sets() {
        for cols in COLS {
            let case = Case::<S, P>::new(cols, flags);
            for training in [true, false] {
                case.check::<D>(training, false);
                if S::DATA_TYPE == D::DATA_TYPE {
                    case.check::<D>(training, true);
                }
            }
        }
    }
}

macro_rules! every_mix_of_types {
    ($($name:ident: $src:ty => $dst:ty;)*) => {$(
        #[test]
        fn $name() {
            check_all::<$src, $dst, f32>();
            check_all::<$src, $dst, bf16>();
            check_all::<$src, $dst, f16>();
        }
    )*};
}
every_mix_of_types! {
    f32_to_f32: f32 => f32;
    f32_to_bf16: f32 => bf16;
    f32_to_f16: f32 => f16;
    bf16_to_f32: bf16 => f32;
    bf16_to_bf16: bf16 => bf16;
    bf16_to_f16: bf16 => f16;
    f16_to_f32: f16 => f32;
    f16_to_bf16: f16 => bf16;
    f16_to_f16: f16 => f16;
}

#[test]
fn default_epsilon_is_1e_minus_5() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let desc = dense::<f32>(&[1, 2]);
    // A mean square of 1e-5, doubled by epsilon: each element is divided by sqrt(2e-5).
    let x = 1e-5f32.sqrt();
    let src = memory(&engine, &[1, 2], &[x, -x]);
    let mut dst = Memory::new(&engine, &desc).unwrap();
    let forward = Forward::inference(&engine, &desc).flags(Flags::RMS_NORM).build().unwrap();
    forward.execute(&stream, ForwardArgs::new(&src, &mut dst)).unwrap();
    let half = 0.5f64.sqrt();
    assert_close("dst", &elements::<f32>(&dst), &[(half, 1e-6), (-half, 1e-6)]);
    assert_eq!(forward.epsilon(), 1e-5);
}

#[test]
fn dst_has_the_type_and_layout_of_src_by_default() {
    let engine = Engine::cpu().unwrap();
    let src = norm_rs::MemoryDesc::with_tag(&[2, 3, 4], DataType::Bf16, norm_rs::Tag::Bac).unwrap();
    let forward = Forward::inference(&engine, &src).build().unwrap();
    let dst = forward.primitive().arg_desc(norm_rs::primitive::Arg::Dst).unwrap();
    assert_eq!(dst, Some(src));
}

#[test]
fn no_rows_and_no_columns() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    for (rows, cols) in [(0, 4), (3, 0)] {
        let desc = dense::<f32>(&[rows, cols]);
        let forward = Forward::training(&engine, &desc).build().unwrap();
        let (src, mut dst) =
            (Memory::new(&engine, &desc).unwrap(), Memory::new(&engine, &desc).unwrap());
        let (mut mean, mut variance) = (vec![7f32; 3], vec![7f32; 3]);
        let stats = stats_desc(&[rows]);
        let mut mean_memory = Memory::from_mut_slice(&engine, &stats, &mut mean).unwrap();
        let mut variance_memory = Memory::from_mut_slice(&engine, &stats, &mut variance).unwrap();
        let args = ForwardArgs::new(&src, &mut dst);
        let args = args.mean_out(&mut mean_memory).variance_out(&mut variance_memory);
        forward.execute(&stream, args).unwrap();
        // Without rows nothing is written; without columns the statistics are 0.
        let expected = if rows == 0 { vec![7.0; 3] } else { vec![0.0; 3] };
        assert_eq!((&mean, &variance), (&expected, &expected), "{rows} x {cols}");
    }
}

#[test]
fn a_row_of_zeros_without_epsilon_is_the_shift() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let desc = dense::<f32>(&[2, 3]);
    let forward =
        Forward::inference(&engine, &desc).flags(Flags::SHIFT).epsilon(0.0).build().unwrap();
    let src = memory(&engine, &[2, 3], &[0.0f32, 0.0, 0.0, 1.0, 2.0, 3.0]);
    let shift = memory(&engine, &[3], &[4.0f32, -5.0, 6.0]);
    let mut dst = Memory::new(&engine, &desc).unwrap();
    forward.execute(&stream, ForwardArgs::new(&src, &mut dst).shift(&shift)).unwrap();
    let dst = elements::<f32>(&dst);
    assert_eq!(dst[..3], [4.0, -5.0, 6.0]);
    let r = 1.5f64.sqrt();
    assert_close("dst", &dst[3..], &[(4.0 - r, 2e-6), (-5.0, 2e-6), (6.0 + r, 2e-6)]);
}
