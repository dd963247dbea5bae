//! The functions on slices.

use std::cell::RefCell;

use norm_rs::layer_normalization::Flags;
use norm_rs::{
    DataType, ErrorKind, Gradients, Parameter, Result, Statistics, bf16, f16, layer_norm,
    layer_norm_backward, layer_norm_backward_in_place, layer_norm_in_place, layer_norm_training,
    rms_norm, rms_norm_backward, rms_norm_backward_in_place, rms_norm_in_place, rms_norm_training,
};

use crate::data::*;
use crate::oracle::{Expected, Problem};

const EPSILON: f32 = 1e-3;

/// An absent parameter.
const NONE: Option<&[f32]> = None;

/// The functions of one normalization, for rows of `S`, parameters of `P` and results of `D`.
#[expect(clippy::type_complexity, reason = "each signature appears once, here")]
struct Norm<S, P, D> {
    flags: Flags,
    to: fn(&[S], usize, Option<&[P]>, Option<&[P]>, f32, &mut [D]) -> Result<()>,
    in_place: fn(&mut [S], usize, Option<&[P]>, Option<&[P]>, f32) -> Result<()>,
    training: fn(&[S], usize, Option<&[P]>, Option<&[P]>, f32, &mut [D]) -> Result<Statistics>,
    backward: fn(&[S], &Statistics, Option<&[P]>, &[D], &mut [S], Gradients<'_, P>) -> Result<()>,
    backward_in_place:
        fn(&[S], &Statistics, Option<&[P]>, &mut [D], Gradients<'_, P>) -> Result<()>,
}

fn norms<S: Number, P: Parameter, D: Number>() -> [Norm<S, P, D>; 2] {
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

fn check<S: Number, P: Number + Parameter, D: Number>(
    norm: &Norm<S, P, D>,
    rows: usize,
    cols: usize,
    with_scale: bool,
    with_shift: bool,
) {
    let src: Vec<S> = numbers(1, rows * cols, -1.0, 4.0);
    let diff_dst: Vec<D> = numbers(2, rows * cols, -1.0, 2.0);
    let (scale, shift): (Vec<P>, Vec<P>) =
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
    let types = format!("{}:{}:{}", S::DATA_TYPE, P::DATA_TYPE, D::DATA_TYPE);
    let name = |what| format!("{what} {flags:?} {types} {rows}x{cols}");

    let mut dst = vec![D::default(); src.len()];
    (norm.to)(&src, cols, scale, shift, EPSILON, &mut dst).unwrap();
    assert_close(&name("dst"), &dst, &expected.dst);
    let mut src_dst = src.clone();
    (norm.in_place)(&mut src_dst, cols, scale, shift, EPSILON).unwrap();
    if S::DATA_TYPE == D::DATA_TYPE {
        assert_eq!(bits(&src_dst), bits(&dst), "{}", name("in place"));
    }
    assert_close(&name("in place"), &src_dst, &expected.dst);

    let mut trained = vec![D::default(); src.len()];
    let statistics = (norm.training)(&src, cols, scale, shift, EPSILON, &mut trained).unwrap();
    assert_eq!(bits(&trained), bits(&dst), "{}", name("training"));
    assert_close(&name("variance"), statistics.variance(), &expected.variance);
    if norm.flags == Flags::NONE {
        assert_close(&name("mean"), statistics.mean(), &expected.mean);
    } else {
        assert_eq!(statistics.mean(), [0f32; 0]);
    }
    let made_of = (statistics.rows(), statistics.cols(), statistics.epsilon());
    assert_eq!(made_of, (rows, cols, EPSILON));

    let (mut mean, mut variance) = (f64s(statistics.mean()), f64s(statistics.variance()));
    if S::DATA_TYPE == DataType::F64 {
        // Statistics are f32, so rows of f64 compute them again from src.
        let exact = |statistics: &[Expected]| statistics.iter().map(|(value, _)| *value).collect();
        (mean, variance) = (exact(&expected.mean), exact(&expected.variance));
    }
    let expected =
        Problem { mean: &mean, variance: &variance, ..problem }.backward(&f64s(&diff_dst));
    // With and without each parameter gradient.
    for (want_scale, want_shift) in [(false, false), (false, true), (true, false), (true, true)] {
        if want_scale && !with_scale {
            continue;
        }
        let mut diff_src = vec![S::default(); src.len()];
        let mut diff = diff_dst.clone();
        let mut sums = [(); 4].map(|()| vec![P::of(99.0); cols]);
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
        if S::DATA_TYPE == D::DATA_TYPE {
            assert_eq!(bits(&diff), bits(&diff_src), "{}", name("backward in place"));
        }
        assert_close(&name("backward in place"), &diff, &expected.diff_src);
        assert_eq!(bits(diff_scale_too), bits(diff_scale), "{}", name("backward in place"));
        assert_eq!(bits(diff_shift_too), bits(diff_shift), "{}", name("backward in place"));
    }
}

fn check_all<S: Number, P: Number + Parameter, D: Number>() {
    for norm in norms::<S, P, D>() {
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
fn one_type_for_all() {
    check_all::<f32, f32, f32>();
    check_all::<bf16, bf16, bf16>();
    check_all::<f16, f16, f16>();
}

#[test]
fn half_rows_with_f32_parameters() {
    check_all::<bf16, f32, bf16>();
    check_all::<f16, f32, f16>();
    check_all::<bf16, f32, f32>();
}

#[test]
fn other_mixes() {
    check_all::<f32, bf16, f16>();
    check_all::<f32, f16, bf16>();
    check_all::<f64, f32, f64>();
    check_all::<f64, bf16, f32>();
}

#[test]
fn epsilon_is_part_of_the_problem() {
    let src = [1f32, -1.0];
    let mut dst = [0f32; 2];
    for epsilon in [0.0, 3.0, 0.0, 8.0] {
        rms_norm(&src, 2, NONE, None, epsilon, &mut dst).unwrap();
        let expected = 1.0 / (1.0 + f64::from(epsilon)).sqrt();
        assert_close("dst", &dst, &[(expected, 0.0), (-expected, 0.0)]);
    }
}

#[test]
fn no_rows() {
    let (src, mut dst): ([f32; 0], [f32; 0]) = ([], []);
    layer_norm(&src, 4, Some(&[1f32; 4]), None, 1e-5, &mut dst).unwrap();
    let statistics = rms_norm_training(&src, 4, NONE, None, 1e-5, &mut dst).unwrap();
    assert_eq!(statistics.rows(), 0);
    let (mut diff_src, mut diff_scale): ([f32; 0], _) = ([], [7f32; 4]);
    let gradients = Gradients { diff_scale: Some(&mut diff_scale), diff_shift: None };
    rms_norm_backward(&src, &statistics, Some(&[1f32; 4]), &dst, &mut diff_src, gradients).unwrap();
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
    for norm in norms::<f32, f32, f32>() {
        refused((norm.to)(&src, 0, None, None, 1e-5, &mut dst), "cols");
        refused((norm.to)(&src, 4, None, None, 1e-5, &mut dst), "src");
        refused((norm.to)(&src, 3, None, None, 1e-5, &mut dst[..5]), "dst");
        refused((norm.to)(&src, 3, Some(&[1.0; 2]), None, 1e-5, &mut dst), "scale");
        refused((norm.to)(&src, 3, None, Some(&[1.0; 4]), 1e-5, &mut dst), "shift");
        refused((norm.in_place)(&mut dst, 4, None, None, 1e-5), "src_dst");
        refused((norm.training)(&src, 3, Some(&[1.0; 4]), None, 1e-5, &mut dst), "scale");
        for epsilon in [-1.0, f32::NAN] {
            let error = (norm.to)(&src, 3, None, None, epsilon, &mut dst).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArguments);
            assert_eq!(error.argument(), Some("epsilon"), "{error}");
            let message = format!("epsilon: {epsilon} is not a finite number of 0 or more");
            assert_eq!(error.to_string(), message);
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
    let layer = layer_norm_training(&src, 3, NONE, None, 1e-5, &mut dst).unwrap();
    let rms = rms_norm_training(&src, 3, NONE, None, 1e-5, &mut dst).unwrap();
    let mut diff = [9f32; 3];
    let none = Gradients::none;
    refused(rms_norm_backward(&src, &layer, NONE, &src, &mut diff, none()), "statistics");
    refused(layer_norm_backward(&src, &rms, NONE, &src, &mut diff, none()), "statistics");
    assert_eq!(diff, [9.0; 3]);
}

#[test]
fn statistics_saved_elsewhere() {
    let src: Vec<bf16> = numbers(5, 4 * 24, -1.0, 4.0);
    let diff_dst: Vec<f32> = numbers(6, 4 * 24, -1.0, 2.0);
    let scale: Vec<f32> = numbers(7, 24, 0.5, 2.5);
    let mut dst = vec![0f32; src.len()];
    for norm in norms::<bf16, f32, f32>() {
        let own = (norm.training)(&src, 24, Some(&scale), None, EPSILON, &mut dst).unwrap();
        // As stored in a checkpoint or by another library.
        let (mean, variance) = own.clone().into_mean_and_variance();
        let saved = match norm.flags {
            Flags::NONE => Statistics::of_layer_norm(24, EPSILON, &mean[..], &variance[..]),
            _ => Statistics::of_rms_norm(24, EPSILON, variance),
        };
        let saved = saved.unwrap();
        assert_eq!(saved, own);
        let gradient = |statistics| {
            let mut diff_src = vec![bf16::ZERO; src.len()];
            let none = Gradients::none();
            (norm.backward)(&src, statistics, Some(&scale), &diff_dst, &mut diff_src, none)
                .unwrap();
            bits(&diff_src)
        };
        assert_eq!(gradient(&saved), gradient(&own));
    }
    // PyTorch keeps 1/sqrt(variance + epsilon).
    let rstd = 0.25f32;
    let statistics = Statistics::of_rms_norm(2, 0.5, vec![1.0 / (rstd * rstd) - 0.5]).unwrap();
    let (src, mut diff_src) = ([0f32, 0.0], [0f32; 2]);
    rms_norm_backward(&src, &statistics, NONE, &[1f32, -2.0], &mut diff_src, Gradients::none())
        .unwrap();
    assert_eq!(diff_src, [0.25, -0.5]);
}

#[test]
fn statistics_that_do_not_fit_are_refused() {
    refused(Statistics::of_layer_norm(3, 1e-5, vec![1.0], vec![]), "mean");
    refused(Statistics::of_layer_norm(0, 1e-5, vec![], vec![]), "cols");
    refused(Statistics::of_rms_norm(0, 1e-5, vec![1.0]), "cols");
    let two_rows = Statistics::of_rms_norm(3, 1e-5, vec![1.0, 1.0]).unwrap();
    let (src, mut diff_src) = ([1f32; 3], [9f32; 3]);
    let none = Gradients::none();
    refused(rms_norm_backward(&src, &two_rows, NONE, &src, &mut diff_src, none), "src");
    let endless = Statistics::of_rms_norm(usize::MAX, 1e-5, vec![1.0, 1.0]).unwrap();
    let none = Gradients::none();
    refused(rms_norm_backward(&src, &endless, NONE, &src, &mut diff_src, none), "src");
    assert_eq!(diff_src, [9.0; 3]);
}

/// Each message says what is wrong and what to pass instead.
#[test]
fn messages_say_what_to_change() {
    fn message<T>(result: Result<T>) -> String {
        result.err().expect("a mistake").to_string()
    }
    let (src, mut dst) = ([1f32; 6], [9f32; 6]);
    for (result, expected) in [
        (
            rms_norm(&src, 0, NONE, None, 1e-5, &mut dst),
            "cols is 0; pass the number of elements of a row",
        ),
        (rms_norm(&src, 4, NONE, None, 1e-5, &mut dst), "src has 6 elements; pass rows x 4 (cols)"),
        (
            rms_norm(&src, 3, NONE, None, 1e-5, &mut dst[..5]),
            "dst has 5 elements; pass 2 rows of 3, 6 elements",
        ),
        (
            rms_norm(&src, 3, Some(&src[..2]), None, 1e-5, &mut dst),
            "scale has 2 elements; pass one for each of the 3 columns",
        ),
        (
            rms_norm(&src, 3, NONE, Some(&src[..4]), 1e-5, &mut dst),
            "shift has 4 elements; pass one for each of the 3 columns",
        ),
    ] {
        assert_eq!(message(result), expected);
    }
    let rms = Statistics::of_rms_norm(3, 1e-5, vec![1.0; 2]).unwrap();
    let none = Gradients::none;
    assert_eq!(
        message(layer_norm_backward(&src, &rms, NONE, &src, &mut dst, none())),
        "statistics belong to RMS normalization; pass those of layer normalization, as its training \
         returns"
    );
    assert_eq!(
        message(rms_norm_backward(&src[..3], &rms, NONE, &src, &mut dst, none())),
        "src has 3 elements; pass 2 rows of 3, 6 elements"
    );
    let mut sum = [9f32; 3];
    let gradients = Gradients { diff_scale: Some(&mut sum[..]), diff_shift: None };
    assert_eq!(
        message(rms_norm_backward(&src, &rms, NONE, &src, &mut dst, gradients)),
        "diff_scale needs a scale; pass the forward pass's scale, or None for diff_scale"
    );
    assert_eq!((dst, sum), ([9.0; 6], [9.0; 3]));
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
                    rms_norm(&src, cols, NONE, None, EPSILON, &mut dst).unwrap();
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
            rms_norm(&[1f32, 7.0], 2, NONE, None, 0.0, &mut dst).unwrap();
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
        rms_norm(&[3f32, 4.0], 2, NONE, None, 0.0, &mut dst).unwrap();
    })
    .join()
    .unwrap();
    assert_eq!(receiver.recv().unwrap(), 1.4);
}
