//! The vectors of `tests/data/golden_elementwise.txt`: PyTorch's eltwise functions, softmax and functions of two tensors
//! in f64, with their gradients, on every implementation. Inputs are exact in f32, so the bounds only cover the
//! library's own rounding.

use super::groups::{Setting, check};
use norm as _;
use norm_sys::*;
use std::collections::HashMap;
use std::ptr::{null, null_mut};

type Tensors = HashMap<&'static str, Vec<f64>>;

const DIMS: [i64; 3] = [2, 4, 5];

/// A line that begins a case, and its results.
struct Case {
    words: Vec<&'static str>,
    results: Tensors,
}

/// The shared inputs, and the cases.
fn read() -> (Tensors, Vec<Case>) {
    let (mut shared, mut cases) = (Tensors::new(), Vec::<Case>::new());
    for line in include_str!("../data/golden_elementwise.txt").lines().skip(1) {
        let words: Vec<&str> = line.split(' ').collect();
        if ["eltwise", "from_dst", "softmax", "binary"].contains(&words[0]) {
            cases.push(Case { words, results: Tensors::new() });
        } else {
            let values = words[1..].iter().map(|text| text.parse().unwrap()).collect();
            cases.last_mut().map_or(&mut shared, |case| &mut case.results).insert(words[0], values);
        }
    }
    (shared, cases)
}

fn eltwise(name: &str) -> norm_alg_kind_t {
    match name {
        "relu" => norm_eltwise_relu,
        "elu" => norm_eltwise_elu,
        "tanh" => norm_eltwise_tanh,
        "logistic" => norm_eltwise_logistic,
        "exp" => norm_eltwise_exp,
        "sqrt" => norm_eltwise_sqrt,
        "clip" => norm_eltwise_clip,
        "clip_v2" => norm_eltwise_clip_v2,
        "abs" => norm_eltwise_abs,
        "square" => norm_eltwise_square,
        "linear" => norm_eltwise_linear,
        "log" => norm_eltwise_log,
        "pow" => norm_eltwise_pow,
        "round" => norm_eltwise_round,
        "soft_relu" => norm_eltwise_soft_relu,
        "swish" => norm_eltwise_swish,
        "gelu_erf" => norm_eltwise_gelu_erf,
        "gelu_tanh" => norm_eltwise_gelu_tanh,
        "mish" => norm_eltwise_mish,
        "hardsigmoid" => norm_eltwise_hardsigmoid,
        "hardswish" => norm_eltwise_hardswish,
        _ => panic!("{name}"),
    }
}

fn binary(name: &str) -> norm_alg_kind_t {
    match name {
        "add" => norm_binary_add,
        "sub" => norm_binary_sub,
        "mul" => norm_binary_mul,
        "div" => norm_binary_div,
        "max" => norm_binary_max,
        "min" => norm_binary_min,
        "ge" => norm_binary_ge,
        "gt" => norm_binary_gt,
        "le" => norm_binary_le,
        "lt" => norm_binary_lt,
        "eq" => norm_binary_eq,
        "ne" => norm_binary_ne,
        "select" => norm_binary_select,
        _ => panic!("{name}"),
    }
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

/// A dense descriptor.
fn desc(dims: [i64; 3], data_type: norm_data_type_t) -> norm_memory_desc_t {
    let mut desc = null_mut();
    // SAFETY: three dimensions.
    check(unsafe {
        norm_memory_desc_create_with_tag(&raw mut desc, 3, dims.as_ptr(), data_type, norm_abc)
    });
    desc
}

/// Compares an output with the expected values; `bound` is the error allowed for an element.
#[track_caller]
fn close(context: &str, actual: &[f32], expected: &[f64], bound: impl Fn(usize) -> f64) {
    assert_eq!(actual.len(), expected.len(), "{context}");
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        let error = (f64::from(*a) - e).abs();
        assert!(error <= bound(i), "{context}: element {i} is {a:e} instead of {e:e}");
    }
}

/// Runs a primitive descriptor on every implementation, and compares one output.
#[track_caller]
fn compare(
    setting: &Setting,
    pd: norm_primitive_desc_t,
    case: &Case,
    (arguments, output): (&[(i32, &[f64])], i32),
    (expected, bound): (&[f64], &dyn Fn(usize) -> f64),
) {
    let mut buffers: Vec<_> = arguments.iter().map(|(id, values)| (*id, single(values))).collect();
    buffers.push((output, vec![f32::NAN; expected.len()]));
    setting.each(pd, &buffers, |name, results| {
        let context = format!("{} {output} of {name}", case.words.join(" "));
        close(&context, &results.last().unwrap().1, expected, bound);
    });
}

/// 5 ulp.
const RELATIVE: f64 = 6e-7;
/// Errors that functions between two straight lines have, and their gradients.
const ABSOLUTE: f64 = 3e-7;

fn run_eltwise(setting: &Setting, shared: &Tensors, case: &Case) {
    let (name, source) = (case.words[1], &shared[case.words[4]]);
    let [alpha, beta] = [2, 3].map(|i| case.words[i].parse::<f32>().unwrap());
    let (mut pd, alg, desc) = (null_mut(), eltwise(name), setting.desc);
    let dst = &case.results["dst"];
    // SAFETY: all handles are live.
    check(unsafe {
        let kind = norm_forward_training;
        norm_eltwise_forward_primitive_desc_create(
            &raw mut pd,
            setting.engine,
            kind,
            alg,
            desc,
            desc,
            alpha,
            beta,
            null(),
        )
    });
    let curved = ["swish", "gelu_erf", "gelu_tanh", "mish"].contains(&name);
    let of_dst = |i: usize| {
        let absolute = if curved { ABSOLUTE * source[i].abs() } else { 0.0 };
        RELATIVE * dst[i].abs() + absolute
    };
    compare(setting, pd, case, (&[(NORM_ARG_SRC, source)], NORM_ARG_DST), (dst, &of_dst));
    let Some(diff_src) = case.results.get("diff_src") else { return };
    // SAFETY: all handles are live.
    check(unsafe {
        norm_eltwise_backward_primitive_desc_create(
            &raw mut pd,
            setting.engine,
            alg,
            desc,
            desc,
            desc,
            alpha,
            beta,
            null(),
            null(),
        )
    });
    let diff = &shared["diff"];
    let of_gradient = |i: usize| {
        let absolute = if curved { ABSOLUTE * diff[i].abs() } else { 0.0 };
        RELATIVE * diff_src[i].abs() + absolute
    };
    let arguments = [(NORM_ARG_SRC, &source[..]), (NORM_ARG_DIFF_DST, diff)];
    compare(setting, pd, case, (&arguments, NORM_ARG_DIFF_SRC), (diff_src, &of_gradient));
}

fn run_from_dst(setting: &Setting, shared: &Tensors, case: &Case) {
    let alg = match case.words[1] {
        "tanh" => norm_eltwise_tanh_use_dst_for_bwd,
        "logistic" => norm_eltwise_logistic_use_dst_for_bwd,
        _ => norm_eltwise_elu_use_dst_for_bwd,
    };
    let (mut pd, desc, alpha) = (null_mut(), setting.desc, case.words[2].parse().unwrap());
    // SAFETY: all handles are live.
    check(unsafe {
        norm_eltwise_backward_primitive_desc_create(
            &raw mut pd,
            setting.engine,
            alg,
            desc,
            desc,
            desc,
            alpha,
            0.0,
            null(),
            null(),
        )
    });
    let (dst, diff_src) = (&case.results["dst"], &case.results["diff_src"]);
    let arguments = [(NORM_ARG_DST, &dst[..]), (NORM_ARG_DIFF_DST, &shared["diff"])];
    let bound = |i: usize| RELATIVE * diff_src[i].abs();
    compare(setting, pd, case, (&arguments, NORM_ARG_DIFF_SRC), (diff_src, &bound));
}

fn run_softmax(setting: &Setting, shared: &Tensors, case: &Case) {
    let log = case.words[1] == "log";
    let alg = if log { norm_softmax_log } else { norm_softmax_accurate };
    let axis: i32 = case.words[2].parse().unwrap();
    let factor: f64 = case.words[3].parse().unwrap();
    let src: Vec<f64> = shared["x"].iter().map(|x| x * factor).collect();
    let (mut pd, desc, diff) = (null_mut(), setting.desc, &shared["diff"]);
    let (dst, diff_src) = (&case.results["dst"], &case.results["diff_src"]);
    // Where subnormal numbers begin.
    let smallest = f64::from(f32::MIN_POSITIVE);
    // The largest distance from a row's maximum.
    let range = 16.0 * factor;
    let of_dst = |i: usize| match log {
        true => RELATIVE * dst[i].abs() + ABSOLUTE,
        false => (RELATIVE + range * 1.2e-7) * dst[i].abs() + smallest,
    };
    let terms: f64 = 5.0 * diff.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
    let of_gradient =
        |i: usize| ABSOLUTE * if log { terms } else { dst[i].abs() * terms } + smallest;
    // SAFETY: all handles are live.
    unsafe {
        check(norm_softmax_forward_primitive_desc_create(
            &raw mut pd,
            setting.engine,
            norm_forward_training,
            alg,
            desc,
            desc,
            axis,
            null(),
        ));
        compare(setting, pd, case, (&[(NORM_ARG_SRC, &src)], NORM_ARG_DST), (dst, &of_dst));
        check(norm_softmax_backward_primitive_desc_create(
            &raw mut pd,
            setting.engine,
            alg,
            desc,
            desc,
            desc,
            axis,
            null(),
            null(),
        ));
    }
    let arguments = [(NORM_ARG_DST, &dst[..]), (NORM_ARG_DIFF_DST, diff)];
    compare(setting, pd, case, (&arguments, NORM_ARG_DIFF_SRC), (diff_src, &of_gradient));
}

fn run_binary(setting: &Setting, shared: &Tensors, case: &Case) {
    let (name, row) = (case.words[1], case.words[2] == "row");
    let dims = if row { [1, 1, DIMS[2]] } else { DIMS };
    let (mut pd, src0) = (null_mut(), setting.desc);
    let (src1, condition) = (desc(dims, norm_f32), desc(DIMS, norm_s8));
    let src2 = if name == "select" { condition } else { null_mut() };
    // SAFETY: all handles are live.
    check(unsafe {
        norm_binary_primitive_desc_create_v2(
            &raw mut pd,
            setting.engine,
            binary(name),
            src0,
            src1,
            src2,
            src0,
            null(),
        )
    });
    let y = &shared["y"][..dims.iter().product::<i64>() as usize];
    let mut buffers = vec![(NORM_ARG_SRC_0, single(&shared["x"])), (NORM_ARG_SRC_1, single(y))];
    if name == "select" {
        let four = |bytes: &[f64]| f32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[i] as i8 as u8));
        buffers.push((NORM_ARG_SRC_2, shared["condition"].chunks(4).map(four).collect()));
    }
    let expected = single(&case.results["dst"]);
    buffers.push((NORM_ARG_DST, vec![f32::NAN; expected.len()]));
    setting.each(pd, &buffers, |implementation, results| {
        let got = &results.last().unwrap().1;
        assert_eq!(*got, expected, "{implementation}, {}", case.words.join(" "));
    });
    // SAFETY: nothing uses them again.
    unsafe {
        check(norm_memory_desc_destroy(src1));
        check(norm_memory_desc_destroy(condition));
    }
}

#[test]
fn functions_match_pytorch() {
    let (shared, cases) = read();
    let mut setting =
        Setting { engine: null_mut(), stream: null_mut(), desc: desc(DIMS, norm_f32) };
    // SAFETY: the handles are destroyed below.
    unsafe {
        check(norm_engine_create(&raw mut setting.engine, norm_cpu, 0));
        let flags = norm_stream_default_flags;
        check(norm_stream_create(&raw mut setting.stream, setting.engine, flags));
    }
    let mut counts = [0; 4];
    for case in &cases {
        let (kind, run): (_, fn(&Setting, &Tensors, &Case)) = match case.words[0] {
            "eltwise" => (0, run_eltwise),
            "from_dst" => (1, run_from_dst),
            "softmax" => (2, run_softmax),
            _ => (3, run_binary),
        };
        run(&setting, &shared, case);
        counts[kind] += 1;
    }
    assert_eq!(counts, [25, 3, 12, 26]);
    // SAFETY: nothing uses them again.
    unsafe {
        check(norm_memory_desc_destroy(setting.desc));
        check(norm_stream_destroy(setting.stream));
        check(norm_engine_destroy(setting.engine));
    }
}
