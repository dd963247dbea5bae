//! The functions on slices.

use std::cell::RefCell;

use norm_rs::layer_normalization::Flags;
use norm_rs::{
    ErrorKind, Gradients, Result, Statistics, bf16, f16, layer_norm, layer_norm_backward,
    layer_norm_backward_in_place, layer_norm_in_place, layer_norm_training, rms_norm,
    rms_norm_backward, rms_norm_backward_in_place, rms_norm_in_place, rms_norm_training,
};

use crate::data::*;
use crate::oracle::Problem;

const EPSILON: f32 = 1e-3;

/// The functions of one normalization.
#[expect(clippy::type_complexity, reason = "each signature stands once, here")]
struct Norm<T: Number> {
    flags: Flags,
    to: fn(&[T], usize, Option<&[T]>, Option<&[T]>, f32, &mut [T]) -> Result<()>,
    in_place: fn(&mut [T], usize, Option<&[T]>, Option<&[T]>, f32) -> Result<()>,
    training: fn(&[T], usize, Option<&[T]>, Option<&[T]>, f32, &mut [T]) -> Result<Statistics>,
    backward: fn(&[T], &Statistics, Option<&[T]>, &[T], &mut [T], Gradients<'_, T>) -> Result<()>,
    backward_in_place:
        fn(&[T], &Statistics, Option<&[T]>, &mut [T], Gradients<'_, T>) -> Result<()>,
}

fn norms<T: Number>() -> [Norm<T>; 2] {
    [
        Norm {
            flags: Flags::NONE,
            to: layer_norm,
            in_place: layer_norm_in_place,
            training: layer_norm_training,
            backward: layer_norm_backward,
            backward_in_place: layer_norm_backward_in_place,
        },
        Norm {
            flags: Flags::RMS_NORM,
            to: rms_norm,
            in_place: rms_norm_in_place,
            training: rms_norm_training,
            backward: rms_norm_backward,
            backward_in_place: rms_norm_backward_in_place,
        },
    ]
}

fn check<T: Number>(norm: &Norm<T>, rows: usize, cols: usize, with_scale: bool, with_shift: bool) {
    let src: Vec<T> = numbers(1, rows * cols, -1.0, 4.0);
    let diff_dst: Vec<T> = numbers(2, rows * cols, -1.0, 2.0);
    let (scale, shift): (Vec<T>, Vec<T>) =
        (numbers(3, cols, 0.5, 2.5), numbers(4, cols, -3.0, 1.0));
    let given = |given: bool, flag| if given { flag } else { Flags::NONE };
    let flags = norm.flags | given(with_scale, Flags::SCALE) | given(with_shift, Flags::SHIFT);
    let problem = Problem {
        flags,
        epsilon: EPSILON.into(),
        cols,
        src: &f64s(&src),
        scale: &f64s(&scale),
        shift: &f64s(&shift),
        mean: &[],
        variance: &[],
    };
    let expected = problem.forward();
    let (scale, shift) = (with_scale.then_some(&scale[..]), with_shift.then_some(&shift[..]));
    let name = |what| format!("{what} {flags:?} {} {rows}x{cols}", T::DATA_TYPE);

    let mut dst = vec![T::default(); src.len()];
    (norm.to)(&src, cols, scale, shift, EPSILON, &mut dst).unwrap();
    assert_close(&name("dst"), &dst, &expected.dst);
    let mut src_dst = src.clone();
    (norm.in_place)(&mut src_dst, cols, scale, shift, EPSILON).unwrap();
    assert_eq!(bits(&src_dst), bits(&dst), "{}", name("in place"));

    let mut trained = vec![T::default(); src.len()];
    let statistics = (norm.training)(&src, cols, scale, shift, EPSILON, &mut trained).unwrap();
    assert_eq!(bits(&trained), bits(&dst), "{}", name("training"));
    assert_close(&name("variance"), statistics.variance(), &expected.variance);
    if norm.flags == Flags::NONE {
        assert_close(&name("mean"), statistics.mean(), &expected.mean);
    } else {
        assert_eq!(statistics.mean(), []);
    }
    let made_of = (statistics.rows(), statistics.cols(), statistics.epsilon());
    assert_eq!(made_of, (rows, cols, EPSILON));

    let (mean, variance) = (f64s(statistics.mean()), f64s(statistics.variance()));
    let expected =
        Problem { mean: &mean, variance: &variance, ..problem }.backward(&f64s(&diff_dst));
    // With and without each parameter gradient.
    for (want_scale, want_shift) in [(false, false), (false, true), (true, false), (true, true)] {
        if want_scale && !with_scale {
            continue;
        }
        let mut diff_src = vec![T::default(); src.len()];
        let mut diff = diff_dst.clone();
        let mut sums = [(); 4].map(|()| vec![T::of(99.0); cols]);
        let [diff_scale, diff_shift, diff_scale_too, diff_shift_too] = &mut sums;
        let gradients = Gradients {
            diff_scale: want_scale.then_some(&mut diff_scale[..]),
            diff_shift: want_shift.then_some(&mut diff_shift[..]),
        };
        (norm.backward)(&src, &statistics, scale, &diff_dst, &mut diff_src, gradients).unwrap();
        let gradients = Gradients {
            diff_scale: want_scale.then_some(&mut diff_scale_too[..]),
            diff_shift: want_shift.then_some(&mut diff_shift_too[..]),
        };
        (norm.backward_in_place)(&src, &statistics, scale, &mut diff, gradients).unwrap();

        assert_close(&name("diff_src"), &diff_src, &expected.diff_src);
        if want_scale {
            assert_close(&name("diff_scale"), diff_scale, &expected.diff_scale);
        }
        if want_shift {
            assert_close(&name("diff_shift"), diff_shift, &expected.diff_shift);
        }
        assert_eq!(bits(&diff), bits(&diff_src), "{}", name("backward in place"));
        assert_eq!(bits(diff_scale_too), bits(diff_scale), "{}", name("backward in place"));
        assert_eq!(bits(diff_shift_too), bits(diff_shift), "{}", name("backward in place"));
    }
}

fn check_all<T: Number>() {
    for norm in norms::<T>() {
        for (rows, cols) in [(1, 1), (4, 3), (3, 16), (2, 33), (7, 130)] {
            for (with_scale, with_shift) in
                [(false, false), (false, true), (true, false), (true, true)]
            {
                // Twice: the second run uses cached primitives.
                for _ in 0..2 {
                    check(&norm, rows, cols, with_scale, with_shift);
                }
            }
        }
    }
}

#[test]
fn f32_slices() {
    check_all::<f32>();
}

#[test]
fn bf16_slices() {
    check_all::<bf16>();
}

#[test]
fn f16_slices() {
    check_all::<f16>();
}

#[test]
fn epsilon_is_part_of_the_problem() {
    let src = [1f32, -1.0];
    let mut dst = [0f32; 2];
    for epsilon in [0.0, 3.0, 0.0, 8.0] {
        rms_norm(&src, 2, None, None, epsilon, &mut dst).unwrap();
        let expected = 1.0 / (1.0 + f64::from(epsilon)).sqrt();
        assert_close("dst", &dst, &[(expected, 0.0), (-expected, 0.0)]);
    }
}

#[test]
fn no_rows() {
    let (src, mut dst): ([f32; 0], [f32; 0]) = ([], []);
    layer_norm(&src, 4, Some(&[1.0; 4]), None, 1e-5, &mut dst).unwrap();
    let statistics = rms_norm_training(&src, 4, None, None, 1e-5, &mut dst).unwrap();
    assert_eq!(statistics.rows(), 0);
    let (mut diff_src, mut diff_scale): ([f32; 0], _) = ([], [7f32; 4]);
    let gradients = Gradients { diff_scale: Some(&mut diff_scale), diff_shift: None };
    rms_norm_backward(&src, &statistics, Some(&[1.0; 4]), &dst, &mut diff_src, gradients).unwrap();
    assert_eq!(diff_scale, [0.0; 4], "the sum over no rows");
}

#[track_caller]
fn refused<T>(result: Result<T>, argument: &str) {
    let Err(error) = result else { panic!("{argument} was accepted") };
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    assert_eq!(error.argument(), Some(argument), "{error}");
    assert!(error.to_string().starts_with(argument), "{error}");
}

#[test]
fn wrong_lengths_are_named_and_nothing_is_written() {
    let src = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut dst = [9f32; 6];
    for norm in norms::<f32>() {
        refused((norm.to)(&src, 0, None, None, 1e-5, &mut dst), "cols");
        refused((norm.to)(&src, 4, None, None, 1e-5, &mut dst), "src");
        refused((norm.to)(&src, 3, None, None, 1e-5, &mut dst[..5]), "dst");
        refused((norm.to)(&src, 3, Some(&[1.0; 2]), None, 1e-5, &mut dst), "scale");
        refused((norm.to)(&src, 3, None, Some(&[1.0; 4]), 1e-5, &mut dst), "shift");
        refused((norm.in_place)(&mut dst, 4, None, None, 1e-5), "src");
        refused((norm.training)(&src, 3, Some(&[1.0; 4]), None, 1e-5, &mut dst), "scale");
        for epsilon in [-1.0, f32::NAN] {
            let error = (norm.to)(&src, 3, None, None, epsilon, &mut dst).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArguments);
            assert!(error.to_string().contains("epsilon"), "{error}");
        }
        assert_eq!(dst, [9.0; 6]);

        let mut scratch = [0f32; 6];
        let statistics = (norm.training)(&src, 3, None, None, 1e-5, &mut scratch).unwrap();
        fn none<'a>() -> Gradients<'a, f32> {
            Gradients::none()
        }
        refused((norm.backward)(&src[..3], &statistics, None, &src, &mut dst, none()), "src");
        refused((norm.backward)(&src, &statistics, None, &src[..3], &mut dst, none()), "diff_dst");
        refused((norm.backward)(&src, &statistics, None, &src, &mut dst[..3], none()), "diff_src");
        refused(
            (norm.backward)(&src, &statistics, Some(&src[..2]), &src, &mut dst, none()),
            "scale",
        );
        let in_place = (norm.backward_in_place)(&src, &statistics, None, &mut dst[..3], none());
        refused(in_place, "diff");
        let (mut two, mut three) = ([9f32; 2], [9f32; 3]);
        let gradients = Gradients { diff_scale: Some(&mut two[..]), diff_shift: None };
        refused(
            (norm.backward)(&src, &statistics, Some(&src[..3]), &src, &mut dst, gradients),
            "diff_scale",
        );
        let gradients = Gradients { diff_scale: None, diff_shift: Some(&mut two[..]) };
        refused((norm.backward)(&src, &statistics, None, &src, &mut dst, gradients), "diff_shift");
        let gradients = Gradients { diff_scale: Some(&mut three[..]), diff_shift: None };
        refused((norm.backward)(&src, &statistics, None, &src, &mut dst, gradients), "diff_scale");
        assert_eq!((dst, two, three), ([9.0; 6], [9.0; 2], [9.0; 3]));
    }
}

#[test]
fn statistics_of_the_other_normalization_are_rejected() {
    let src = [1f32, 2.0, 3.0];
    let mut dst = [9f32; 3];
    let layer = layer_norm_training(&src, 3, None, None, 1e-5, &mut dst).unwrap();
    let rms = rms_norm_training(&src, 3, None, None, 1e-5, &mut dst).unwrap();
    let mut diff = [9f32; 3];
    let none = Gradients::none;
    refused(rms_norm_backward(&src, &layer, None, &src, &mut diff, none()), "statistics");
    refused(layer_norm_backward(&src, &rms, None, &src, &mut diff, none()), "statistics");
    assert_eq!(diff, [9.0; 3]);
}

#[test]
fn threads_do_not_interfere() {
    std::thread::scope(|s| {
        for seed in 0..8 {
            s.spawn(move || {
                for round in 0..40 {
                    let (rows, cols) = (1 + (seed + round) as usize % 5, 1 + round as usize);
                    let src: Vec<f32> = numbers(seed * 100 + round, rows * cols, -1.0, 4.0);
                    let expected = Problem {
                        flags: Flags::RMS_NORM,
                        epsilon: EPSILON.into(),
                        cols,
                        src: &f64s(&src),
                        scale: &[],
                        shift: &[],
                        mean: &[],
                        variance: &[],
                    }
                    .forward();
                    let mut dst = vec![0f32; src.len()];
                    rms_norm(&src, cols, None, None, EPSILON, &mut dst).unwrap();
                    assert_close("dst", &dst, &expected.dst);
                }
            });
        }
    });
}

#[test]
fn usable_while_a_thread_ends() {
    struct AtTheEnd(std::sync::mpsc::Sender<f32>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            let mut dst = [0f32; 2];
            rms_norm(&[1.0, 7.0], 2, None, None, 0.0, &mut dst).unwrap();
            self.0.send(dst[1]).unwrap();
        }
    }
    thread_local! {
        static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // Created before the cache, so it is destroyed after it.
        AT_THE_END.with_borrow_mut(|slot| *slot = Some(AtTheEnd(sender)));
        let mut dst = [0f32; 2];
        rms_norm(&[3.0, 4.0], 2, None, None, 0.0, &mut dst).unwrap();
    })
    .join()
    .unwrap();
    assert_eq!(receiver.recv().unwrap(), 1.4);
}
