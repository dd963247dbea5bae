//! Normalization layers of a real transformer (`benchdnn/inputs/real`), compared with PyTorch's
//! autograd in f64.
//!
//! Autograd has f64 statistics, but the library's backward reads f32 statistics. So backward is
//! compared with the f64 formula on the f32 statistics, within the bound. That formula is compared
//! with autograd, within the first-order effect of the difference in statistics.

use crate::formula::{self, Gradient};
use crate::library::{Inputs, Problem, round_to};
use crate::vectors;
use norm_sys::*;
use std::path::Path;

/// File prefix, flags and epsilon, as listed in the README of that folder.
const PROBLEMS: [(&str, norm_normalization_flags_t, f32); 3] = [
    ("minilm_embeddings", norm_use_scale | norm_use_shift, 1e-12),
    ("minilm_attention2", norm_use_scale | norm_use_shift, 1e-12),
    ("minilm_output5_rms", norm_use_scale | norm_rms_norm, 1e-6),
];
const ROWS: usize = 15;
const COLS: usize = 384;

fn bytes(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benchdnn/inputs/real");
    let path = folder.join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn input(prefix: &str, argument: i32) -> Vec<f64> {
    let bytes = bytes(&format!("{prefix}.{argument}.bin"));
    bytes.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect()
}

fn expected(prefix: &str, argument: i32) -> Vec<f64> {
    let bytes = bytes(&format!("{prefix}.expected.{argument}.f64.bin"));
    bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
}

/// A problem with its committed statistics: f64 statistics rounded to f32.
fn load(number: usize) -> (&'static str, Problem, Inputs) {
    let (prefix, flags, epsilon) = PROBLEMS[number];
    let (data, parameters) = (norm_f32, norm_f32);
    let problem = Problem { rows: ROWS, cols: COLS, data, parameters, flags, epsilon };
    let layer_norm = !problem.has(norm_rms_norm);
    let if_layer_norm = |id| if layer_norm { input(prefix, id) } else { vec![] };
    let inputs = Inputs {
        src: input(prefix, NORM_ARG_SRC),
        diff_dst: input(prefix, NORM_ARG_DIFF_DST),
        scale: input(prefix, NORM_ARG_SCALE),
        shift: if_layer_norm(NORM_ARG_SHIFT),
        mean: if_layer_norm(NORM_ARG_MEAN),
        variance: input(prefix, NORM_ARG_VARIANCE),
    };
    assert_eq!(inputs.src.len(), ROWS * COLS);
    (prefix, problem, inputs)
}

fn with_exact_statistics(problem: &Problem, inputs: &Inputs) -> Inputs {
    let (mean, variance) = formula::statistics(problem, &inputs.src);
    Inputs { mean, variance, ..inputs.clone() }
}

#[track_caller]
fn close(what: &str, context: &str, actual: &[f64], expected: &[f64], bounds: &[f64]) {
    let worst = formula::worst(actual, expected, bounds);
    println!("{what}: {worst:.3} of the bound: {context}");
    assert!(worst <= 1.0, "{what} is off by {worst:.3} times the bound: {context}");
}

fn tiny(terms: &[f64]) -> Vec<f64> {
    terms.iter().map(|term| 1e-12 * term).collect()
}

/// The formulas that replace PyTorch below, for inputs that PyTorch did not see, agree with it.
#[test]
fn formulas_match_pytorch() {
    for number in 0..PROBLEMS.len() {
        let (prefix, problem, inputs) = load(number);
        let exact = with_exact_statistics(&problem, &inputs);
        let variance = expected(prefix, NORM_ARG_VARIANCE);
        close("variance", prefix, &exact.variance, &variance, &tiny(&variance));
        let rounded: Vec<_> = variance.iter().map(|v| round_to(norm_f32, *v)).collect();
        assert_eq!(inputs.variance, rounded, "{prefix}");
        let (diff_scale, diff_shift) = formula::columns(&problem, &exact);
        let mut pairs = vec![
            (NORM_ARG_DST, formula::forward(&problem, &exact)),
            (NORM_ARG_DIFF_SRC, formula::diff_src(&problem, &exact, Gradient::True)),
            (NORM_ARG_DIFF_SCALE, diff_scale),
        ];
        if problem.has(norm_use_shift) {
            pairs.push((NORM_ARG_DIFF_SHIFT, diff_shift));
        }
        for (id, ours) in pairs {
            let theirs = expected(prefix, id);
            close(&format!("argument {id}"), prefix, &ours.value, &theirs, &tiny(&ours.terms));
        }
    }
}

#[test]
fn forward_matches_pytorch() {
    for number in 0..PROBLEMS.len() {
        let (prefix, problem, inputs) = load(number);
        let exact = with_exact_statistics(&problem, &inputs);
        let dst = formula::forward(&problem, &exact).with(&expected(prefix, NORM_ARG_DST));
        let mut executed = 0;
        for actual in (0..).map_while(|number| problem.forward(&inputs, number)) {
            executed += 1;
            let context = format!("{prefix} {}", actual.implementation);
            let bounds = formula::element_bounds(&problem, &dst);
            close("dst", &context, &actual.dst, &dst.value, &bounds);
            let variance = expected(prefix, NORM_ARG_VARIANCE);
            let bounds = formula::statistic_bounds(&variance);
            close("variance", &context, &actual.variance, &variance, &bounds);
            if problem.has(norm_rms_norm) {
                assert!(actual.mean.is_empty());
                continue;
            }
            let sizes = vectors::mean_sizes(&problem, &inputs.src, ROWS);
            let bounds = formula::statistic_bounds(&sizes);
            let mean = expected(prefix, NORM_ARG_MEAN);
            close("mean", &context, &actual.mean, &mean, &bounds);
        }
        assert!(executed >= 2, "implementations are missing");
    }
}

/// Backward after forward training, as in a program, and with the committed statistics.
#[test]
fn backward_matches_pytorch() {
    for number in 0..PROBLEMS.len() {
        let (prefix, problem, committed) = load(number);
        let exact = with_exact_statistics(&problem, &committed);
        let forward = problem.forward(&committed, 0).unwrap();
        let own = Inputs { mean: forward.mean, variance: forward.variance, ..committed.clone() };
        for (inputs, whose) in [(&committed, "committed"), (&own, "forward's")] {
            let (mut allowed, allowed_scale) = formula::sensitivity(&problem, &exact, inputs);
            let diff_src = formula::diff_src(&problem, inputs, Gradient::True);
            for (allowed, term) in allowed.iter_mut().zip(&diff_src.terms) {
                *allowed += 1e-12 * term;
            }
            let pytorch = expected(prefix, NORM_ARG_DIFF_SRC);
            let context = format!("{prefix}, {whose} statistics");
            close("statistics", &context, &diff_src.value, &pytorch, &allowed);
            let (diff_scale, diff_shift) = formula::columns(&problem, inputs);
            let mut executed = 0;
            for actual in (0..).map_while(|number| problem.backward(inputs, number)) {
                executed += 1;
                let context = format!("{context}, {}", actual.implementation);
                let bounds = formula::element_bounds(&problem, &diff_src);
                close("diff_src", &context, &actual.diff_src, &diff_src.value, &bounds);
                let sum: Vec<_> = bounds.iter().zip(&allowed).map(|(a, b)| a + b).collect();
                close("diff_src to autograd", &context, &actual.diff_src, &pytorch, &sum);

                let bounds = formula::column_bounds(&problem, &diff_scale);
                close("diff_scale", &context, &actual.diff_scale, &diff_scale.value, &bounds);
                let sum: Vec<_> = bounds.iter().zip(&allowed_scale).map(|(a, b)| a + b).collect();
                let pytorch = expected(prefix, NORM_ARG_DIFF_SCALE);
                close("diff_scale to autograd", &context, &actual.diff_scale, &pytorch, &sum);
                if problem.has(norm_use_shift) {
                    let pytorch = expected(prefix, NORM_ARG_DIFF_SHIFT);
                    let bounds = formula::column_bounds(&problem, &diff_shift);
                    close("diff_shift", &context, &actual.diff_shift, &pytorch, &bounds);
                }
            }
            assert!(executed >= 2, "implementations are missing");
        }
    }
}

/// The same layers with inputs rounded to bf16 and f16, compared with the formulas that agreed with
/// PyTorch above.
#[test]
fn half_types_match_the_formulas() {
    let mut executed = 0;
    for number in 0..PROBLEMS.len() {
        for (data, parameters) in
            [norm_bf16, norm_f16].into_iter().flat_map(|d| [(d, norm_f32), (d, d)])
        {
            let (prefix, problem, inputs) = load(number);
            let problem = Problem { data, parameters, ..problem };
            let round = |to, values: &[f64]| values.iter().map(|v| round_to(to, *v)).collect();
            let inputs = Inputs {
                src: round(data, &inputs.src),
                diff_dst: round(data, &inputs.diff_dst),
                scale: round(parameters, &inputs.scale),
                shift: round(parameters, &inputs.shift),
                ..Inputs::default()
            };
            let exact = with_exact_statistics(&problem, &inputs);
            let dst = formula::forward(&problem, &exact);
            for actual in (0..).map_while(|number| problem.forward(&inputs, number)) {
                let context = format!("{prefix} {} {problem:?}", actual.implementation);
                let bounds = formula::element_bounds(&problem, &dst);
                close("dst", &context, &actual.dst, &dst.value, &bounds);
                let bounds = formula::statistic_bounds(&exact.variance);
                close("variance", &context, &actual.variance, &exact.variance, &bounds);
            }
            let forward = problem.forward(&inputs, 0).unwrap();
            let inputs = Inputs { mean: forward.mean, variance: forward.variance, ..inputs };
            let diff_src = formula::diff_src(&problem, &inputs, Gradient::True);
            let (diff_scale, diff_shift) = formula::columns(&problem, &inputs);
            for actual in (0..).map_while(|number| problem.backward(&inputs, number)) {
                executed += 1;
                let context = format!("{prefix} {} {problem:?}", actual.implementation);
                let bounds = formula::element_bounds(&problem, &diff_src);
                close("diff_src", &context, &actual.diff_src, &diff_src.value, &bounds);
                let bounds = formula::column_bounds(&problem, &diff_scale);
                close("diff_scale", &context, &actual.diff_scale, &diff_scale.value, &bounds);
                if problem.has(norm_use_shift) {
                    let bounds = formula::column_bounds(&problem, &diff_shift);
                    close("diff_shift", &context, &actual.diff_shift, &diff_shift.value, &bounds);
                }
            }
        }
    }
    assert!(executed >= PROBLEMS.len() * 4 * 2, "implementations are missing");
}

/// Real data also distinguishes the wrong RMS gradients from the right one.
#[test]
fn wrong_rms_gradients_are_detected() {
    let (prefix, problem, inputs) = load(2);
    let exact = with_exact_statistics(&problem, &inputs);
    let right = expected(prefix, NORM_ARG_DIFF_SRC);
    for wrong in [Gradient::KeepsMean, Gradient::MissesDivision] {
        vectors::misses(&problem, &exact, &right, wrong);
    }
}
