//! The vectors of `tests/data/golden_gated.txt`: PyTorch's autograd in f64 of gated activations, in every packing, on
//! every implementation. Inputs are exact in f32, so the bounds only cover the library's own rounding.

use super::groups::{Setting, check};
use norm as _;
use norm_sys::*;
use std::collections::HashMap;
use std::ptr::{null, null_mut};

type Tensors = HashMap<String, Vec<f64>>;

/// A function, its numbers and its results.
struct Case {
    function: norm_alg_kind_t,
    /// alpha, limit and shift.
    numbers: [f32; 3],
    results: Tensors,
}

/// The shared inputs, and the results of each case.
fn read() -> (Tensors, Vec<Case>) {
    let mut shared = Tensors::new();
    let mut cases: Vec<Case> = Vec::new();
    for line in include_str!("../data/golden_gated.txt").lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        if name == "case" {
            let words: Vec<&str> = rest.split(' ').collect();
            let function = match words[0] {
                "swish" => norm_eltwise_swish,
                "gelu_erf" => norm_eltwise_gelu_erf,
                "gelu_tanh" => norm_eltwise_gelu_tanh,
                "relu" => norm_eltwise_relu,
                "logistic" => norm_eltwise_logistic,
                _ => norm_eltwise_linear,
            };
            let [alpha, limit, shift] = [1, 2, 3].map(|i| words[i].parse::<f32>().unwrap());
            let limit = if limit == 0.0 { f32::INFINITY } else { limit };
            let numbers = [alpha, limit, shift];
            cases.push(Case { function, numbers, results: Tensors::new() });
        } else if name != "#" {
            let values = rest.split(' ').map(|text| text.parse().unwrap()).collect();
            let tensors = cases.last_mut().map_or(&mut shared, |case| &mut case.results);
            tensors.insert(name.to_owned(), values);
        }
    }
    (shared, cases)
}

const PACKINGS: [norm_gate_packing_t; 4] =
    [norm_gate_first, norm_up_first, norm_gate_interleaved, norm_gate_separate];

/// gate and up as one tensor of rows.
fn packed(gate: &[f64], up: &[f64], cols: usize, packing: norm_gate_packing_t) -> Vec<f64> {
    let mut all = Vec::new();
    for (gate, up) in gate.chunks(cols).zip(up.chunks(cols)) {
        match packing {
            norm_gate_first => all.extend(gate.iter().chain(up)),
            norm_up_first => all.extend(up.iter().chain(gate)),
            _ => all.extend(gate.iter().zip(up).flat_map(|(gate, up)| [gate, up])),
        }
    }
    all
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

/// Compares an output of the library with the expected values.
#[track_caller]
fn close(context: &str, actual: &[f32], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len(), "{context}");
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        let error = (f64::from(*a) - e).abs();
        assert!(error <= 1e-5 + 2e-6 * e.abs(), "{context}: element {i} is {a:e} instead of {e:e}");
    }
}

fn run(engine: norm_engine_t, stream: norm_stream_t, shared: &Tensors, case: &Case) {
    const COLS: usize = 20;
    let count = shared["gate"].len();
    let rows = (count / COLS) as i64;
    for packing in PACKINGS {
        let separate = packing == norm_gate_separate;
        let desc = |cols: i64| {
            let mut desc = null_mut();
            // SAFETY: two dimensions.
            check(unsafe {
                let dims = [rows, cols];
                norm_memory_desc_create_with_tag(&raw mut desc, 2, dims.as_ptr(), norm_f32, norm_ab)
            });
            desc
        };
        let one = desc(COLS as i64);
        let src = if separate { desc(COLS as i64) } else { desc(2 * COLS as i64) };
        let up = if separate { one } else { null_mut() };
        let both = |gate: &[f64], up: &[f64]| match separate {
            true => gate.to_vec(),
            false => packed(gate, up, COLS, packing),
        };
        let inputs = both(&shared["gate"], &shared["up"]);
        let mut arguments = vec![(NORM_ARG_SRC, single(&inputs))];
        if separate {
            arguments.push((NORM_ARG_SRC_1, single(&shared["up"])));
        }
        let mut backward = arguments.clone();
        arguments.push((NORM_ARG_DST, vec![f32::NAN; count]));
        backward.push((NORM_ARG_DIFF_DST, single(&shared["diff_dst"])));
        backward.push((NORM_ARG_DIFF_SRC, vec![f32::NAN; inputs.len()]));
        if separate {
            backward.push((NORM_ARG_DIFF_SRC_1, vec![f32::NAN; count]));
        }
        backward.push((NORM_ARG_DST, vec![f32::NAN; count]));
        let results = &case.results;
        let compare = |name: &str, buffers: &[(i32, Vec<f32>)]| {
            for (id, values) in buffers {
                let expected = match *id {
                    NORM_ARG_DST => results["dst"].clone(),
                    NORM_ARG_DIFF_SRC => both(&results["diff_gate"], &results["diff_up"]),
                    NORM_ARG_DIFF_SRC_1 => results["diff_up"].clone(),
                    _ => continue,
                };
                let (function, numbers) = (case.function, case.numbers);
                let context = format!("{id}, {name}, {function:#x} {numbers:?} {packing:#x}");
                close(&context, values, &expected);
            }
        };
        let setting = Setting { engine, stream, desc: null_mut() };
        let (mut pd, [alpha, limit, shift], function) = (null_mut(), case.numbers, case.function);
        // SAFETY: all handles are live.
        unsafe {
            check(norm_gated_forward_primitive_desc_create(
                &raw mut pd,
                engine,
                norm_forward_training,
                function,
                packing,
                src,
                up,
                one,
                alpha,
                limit,
                shift,
                null(),
            ));
            setting.each(pd, &arguments, compare);
            check(norm_gated_backward_primitive_desc_create(
                &raw mut pd,
                engine,
                function,
                packing,
                src,
                up,
                one,
                src,
                up,
                one,
                alpha,
                limit,
                shift,
                null(),
                null(),
            ));
            setting.each(pd, &backward, compare);
            check(norm_memory_desc_destroy(one));
            check(norm_memory_desc_destroy(src));
        }
    }
}

#[test]
fn gated_activations_match_pytorch() {
    let (shared, cases) = read();
    assert_eq!(cases.len(), 18);
    let (mut engine, mut stream) = (null_mut(), null_mut());
    // SAFETY: the handles are destroyed below.
    unsafe {
        check(norm_engine_create(&raw mut engine, norm_cpu, 0));
        check(norm_stream_create(&raw mut stream, engine, norm_stream_default_flags));
    }
    for case in &cases {
        run(engine, stream, &shared, case);
    }
    // SAFETY: nothing uses them again.
    unsafe {
        check(norm_stream_destroy(stream));
        check(norm_engine_destroy(engine));
    }
}
