//! The vectors of `tests/data/golden.txt`: PyTorch's autograd in f64 for every combination of
//! flags. Inputs and statistics are exact in f32, bf16 and f16 (statistics in f32), so the bounds
//! only cover the library's own rounding.

use crate::formula::{self, Expected, Gradient};
use crate::library::{Inputs, Problem};
use norm_sys::*;
use std::collections::HashMap;

const TYPES: [norm_data_type_t; 3] = [norm_f32, norm_bf16, norm_f16];

type Tensors = HashMap<String, Vec<f64>>;

/// The shared inputs, and the results for each combination of flags.
fn read() -> (Tensors, Vec<(norm_normalization_flags_t, Tensors)>) {
    let mut shared = Tensors::new();
    let mut sets = Vec::new();
    for line in include_str!("../data/golden.txt").lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        if name == "flags" {
            let bit = |letter| match letter {
                'G' => norm_use_global_stats,
                'C' => norm_use_scale,
                'H' => norm_use_shift,
                'M' => norm_rms_norm,
                _ => 0,
            };
            sets.push((rest.chars().map(bit).sum(), Tensors::new()));
        } else if name != "#" {
            let values = rest.split(' ').map(|text| text.parse().unwrap()).collect();
            let tensors = sets.last_mut().map_or(&mut shared, |(_, tensors)| tensors);
            tensors.insert(name.to_owned(), values);
        }
    }
    (shared, sets)
}

fn problem(shared: &Tensors, flags: norm_normalization_flags_t) -> Problem {
    Problem {
        rows: shared["rows"][0] as usize,
        cols: shared["cols"][0] as usize,
        data: norm_f32,
        parameters: norm_f32,
        flags,
        epsilon: shared["epsilon"][0] as f32,
    }
}

fn inputs(problem: &Problem, shared: &Tensors, results: &Tensors) -> Inputs {
    let global = problem.has(norm_use_global_stats);
    let statistic = |name: &str| {
        let own = if global { shared.get(&format!("global_{name}")) } else { results.get(name) };
        own.cloned().unwrap_or_default()
    };
    Inputs {
        src: shared["src"].clone(),
        diff_dst: shared["diff_dst"].clone(),
        scale: shared["scale"].clone(),
        shift: shared["shift"].clone(),
        mean: statistic("mean"),
        variance: statistic("variance"),
    }
}

#[track_caller]
fn close(what: &str, context: &str, actual: &[f64], expected: &[f64], bounds: &[f64]) {
    let worst = formula::worst(actual, expected, bounds);
    assert!(worst <= 1.0, "{what} is off by {worst:.3} times the bound: {context}");
}

/// The vectors and these formulas were written independently and must agree in f64.
#[test]
fn formulas_match_pytorch() {
    let (shared, sets) = read();
    assert_eq!(sets.len(), 16);
    for (flags, results) in &sets {
        let problem = problem(&shared, *flags);
        let inputs = inputs(&problem, &shared, results);
        let same = |name: &str, expected: &Expected| {
            let bounds: Vec<_> = expected.terms.iter().map(|t| 1e-14 * t + 1e-300).collect();
            close(name, &format!("{problem:?}"), &results[name], &expected.value, &bounds);
        };
        same("dst", &formula::forward(&problem, &inputs));
        same("diff_src", &formula::diff_src(&problem, &inputs, Gradient::True));
        let (diff_scale, diff_shift) = formula::columns(&problem, &inputs);
        if problem.has(norm_use_scale) {
            same("diff_scale", &diff_scale);
        }
        if problem.has(norm_use_shift) {
            same("diff_shift", &diff_shift);
        }
    }
}

#[test]
fn forward_with_every_flag_combination() {
    let (shared, sets) = read();
    let mut executed = 0;
    for (flags, results) in &sets {
        for (data, parameters) in TYPES.iter().flat_map(|d| TYPES.map(|p| (*d, p))) {
            let problem = Problem { data, parameters, ..problem(&shared, *flags) };
            let inputs = inputs(&problem, &shared, results);
            let dst = formula::forward(&problem, &inputs).with(&results["dst"]);
            let implementations = (0..).map_while(|number| problem.forward(&inputs, number));
            for actual in implementations {
                executed += 1;
                let context = format!("{} {problem:?}", actual.implementation);
                let bounds = formula::element_bounds(&problem, &dst);
                close("dst", &context, &actual.dst, &dst.value, &bounds);
                let empty = vec![];
                let mean = results.get("mean").unwrap_or(&empty);
                let sizes = mean_sizes(&problem, &inputs.src, mean.len());
                let bounds = formula::statistic_bounds(&sizes);
                close("mean", &context, &actual.mean, mean, &bounds);
                let variance = results.get("variance").unwrap_or(&empty);
                let bounds = formula::statistic_bounds(variance);
                close("variance", &context, &actual.variance, variance, &bounds);
            }
        }
    }
    assert!(executed >= 16 * 9 * 2, "only {executed} executions: implementations are missing");
}

/// mean|x| of the first `count` rows.
pub(crate) fn mean_sizes(problem: &Problem, src: &[f64], count: usize) -> Vec<f64> {
    let rows = src.chunks_exact(problem.cols).take(count);
    rows.map(|row| row.iter().map(|x| x.abs()).sum::<f64>() / problem.cols as f64).collect()
}

#[test]
fn backward_with_every_flag_combination() {
    let (shared, sets) = read();
    let mut executed = 0;
    for (flags, results) in &sets {
        for (data, parameters) in TYPES.iter().flat_map(|d| TYPES.map(|p| (*d, p))) {
            let problem = Problem { data, parameters, ..problem(&shared, *flags) };
            let inputs = inputs(&problem, &shared, results);
            let diff_src = formula::diff_src(&problem, &inputs, Gradient::True);
            let diff_src = diff_src.with(&results["diff_src"]);
            let columns = formula::columns(&problem, &inputs);
            let implementations = (0..).map_while(|number| problem.backward(&inputs, number));
            for actual in implementations {
                executed += 1;
                let context = format!("{} {problem:?}", actual.implementation);
                let bounds = formula::element_bounds(&problem, &diff_src);
                close("diff_src", &context, &actual.diff_src, &diff_src.value, &bounds);
                for (name, actual, expected) in [
                    ("diff_scale", &actual.diff_scale, &columns.0),
                    ("diff_shift", &actual.diff_shift, &columns.1),
                ] {
                    let Some(values) = results.get(name) else { continue };
                    let expected = expected.with(values);
                    let bounds = formula::column_bounds(&problem, &expected);
                    close(name, &context, actual, &expected.value, &bounds);
                }
            }
        }
    }
    assert!(executed >= 16 * 9 * 2, "only {executed} executions: implementations are missing");
}

/// The data must detect wrong gradients: both well-known ones are far off in every row.
#[test]
fn wrong_rms_gradients_are_detected() {
    let (shared, sets) = read();
    let mut shown = 0;
    for (flags, results) in &sets {
        let problem = problem(&shared, *flags);
        if !problem.has(norm_rms_norm) || problem.has(norm_use_global_stats) {
            continue;
        }
        let inputs = inputs(&problem, &shared, results);
        for wrong in [Gradient::KeepsMean, Gradient::MissesDivision] {
            misses(&problem, &inputs, &results["diff_src"], wrong);
            shown += 1;
        }
    }
    assert_eq!(shown, 4 * 2);
}

/// Asserts that a wrong gradient differs from the right one by 100 times the bound in every row.
#[track_caller]
pub(crate) fn misses(problem: &Problem, inputs: &Inputs, right: &[f64], wrong: Gradient) {
    let expected = formula::diff_src(problem, inputs, Gradient::True).with(right);
    let bounds = formula::element_bounds(problem, &expected);
    let wrong = formula::diff_src(problem, inputs, wrong).value;
    for row in 0..problem.rows {
        let cols = row * problem.cols..(row + 1) * problem.cols;
        let worst = formula::worst(&wrong[cols.clone()], &right[cols.clone()], &bounds[cols]);
        assert!(worst >= 100.0, "row {row}: off by only {worst} times the bound");
    }
}
