//! The data of a problem, and what the oracle expects of it.

use crate::check::Kind;
use crate::data_type::DataType;
use crate::fill::Fill;
use crate::fill::lnorm::{self, LnormData, LnormShape};
use crate::oracle::estimate::Estimate;
use crate::oracle::lnorm::{
    Around, BackwardInput, Flags, ForwardInput, backward_with, forward_with, is_out_of_range,
};
use crate::problem::{Data, Expected};
use crate::step_chain::{self, Before};
use norm_sys::*;

/// The seed of all data: a line that reproduces a case makes the same data again.
const SEED: u64 = 1;

/// Makes the data of a shape.
pub(super) fn make(shape: &LnormShape, fill: Fill) -> Data {
    let LnormData { src, scale, shift, mean, variance, diff_dst, residual, gate, diff_sum } =
        lnorm::lnorm(shape, fill, SEED);
    Data::from([
        (NORM_ARG_SRC, src),
        (NORM_ARG_SCALE, scale),
        (NORM_ARG_SHIFT, shift),
        (NORM_ARG_MEAN, mean),
        (NORM_ARG_VARIANCE, variance),
        (NORM_ARG_DIFF_DST, diff_dst),
        (NORM_ARG_RESIDUAL, residual),
        (NORM_ARG_GATE, gate),
        (NORM_ARG_DIFF_RESIDUAL_DST, diff_sum),
    ])
}

/// What the oracle expects, without attributes.
pub(super) fn expected(shape: &LnormShape, data: &Data) -> Vec<Expected> {
    if shape.forward { expected_forward(shape, data) } else { expected_backward(shape, data) }
}

/// The kind of dst and diff_src.
fn result(shape: &LnormShape) -> Kind {
    let double = [shape.src_dt, shape.dst_dt].iter().all(|&dt| dt == DataType::F64);
    if double { Kind::Double } else { Kind::Result }
}

/// What is normalized.
fn before<'a>(shape: &LnormShape, data: &'a Data) -> Before<'a> {
    let get = |id| data.get(id);
    let (src, residual, gate) = (get(NORM_ARG_SRC), get(NORM_ARG_RESIDUAL), get(NORM_ARG_GATE));
    step_chain::before(&shape.steps, shape.flags, src, residual, gate)
}

/// The factors of the columns; `None` without a scale.
fn factors(shape: &LnormShape, data: &Data) -> Option<Vec<f64>> {
    let factor = |&scale: &f64| shape.factor(scale);
    shape.flags.scale.then(|| data.get(NORM_ARG_SCALE).iter().map(factor).collect())
}

fn expected_forward(shape: &LnormShape, data: &Data) -> Vec<Expected> {
    let &LnormShape { rows, cols, epsilon, flags, steps, .. } = shape;
    let Flags { global_stats, scale, shift, rms_norm, round_first, .. } = flags;
    let before = before(shape, data);
    let factors = factors(shape, data);
    let (scale, shift) = (scale && !round_first, shift && !round_first);
    let input = ForwardInput {
        rows,
        cols,
        src: &before.x,
        scale: factors.as_deref().filter(|_| scale),
        shift: shift.then(|| data.get(NORM_ARG_SHIFT)),
        // A problem without rows has given statistics, too: none.
        mean: (global_stats && !rms_norm).then(|| data.get(NORM_ARG_MEAN)),
        variance: global_stats.then(|| data.get(NORM_ARG_VARIANCE)),
        epsilon: f64::from(epsilon),
        flags: Flags { scale, shift, ..flags },
    };
    let around = Around { partial: steps.partial, src_errors: &before.errors, ..Around::default() };
    let output = forward_with(&input, around);
    let dst = if round_first || flags.gate() {
        let (values, terms, moved) = (&output.dst, &output.dst_terms, &output.dst_moved);
        let mut dst = step_chain::estimates(Kind::Result, values, terms, moved);
        if round_first {
            let scale = factors.as_ref().map(|factors| |i: usize| factors[i % cols]);
            let shift = data.get(NORM_ARG_SHIFT);
            let shift = flags.shift.then_some(|i: usize| shift[i % cols]);
            step_chain::rounded_first(&mut dst, shape.rounded_to(), scale, shift);
        }
        if let Some(gate) = steps.gate.filter(|_| flags.gate_output) {
            step_chain::gated(&mut dst, data.get(NORM_ARG_GATE), gate.function);
        }
        step_chain::expected(NORM_ARG_DST, Kind::Chain, &dst)
    } else {
        Expected::new(NORM_ARG_DST, result(shape), output.dst, output.dst_terms)
    };
    let mean = (output.mean, output.mean_terms, output.mean_moved);
    let mut expected = vec![
        dst,
        statistic(NORM_ARG_MEAN, Kind::Mean, mean.0, mean.1, mean.2),
        statistic(
            NORM_ARG_VARIANCE,
            Kind::Variance,
            output.variance,
            Vec::new(),
            output.variance_moved,
        ),
    ];
    if !before.unrounded.is_empty() {
        let none = vec![0.0; before.unrounded.len()];
        let sum = Expected::new(NORM_ARG_RESIDUAL_DST, Kind::Rounded, before.unrounded, none);
        expected.push(sum);
    }
    expected
}

/// A statistic of the rows, which errors of what is normalized may move.
fn statistic(id: i32, kind: Kind, values: Vec<f64>, terms: Vec<f64>, moved: Vec<f64>) -> Expected {
    if moved.is_empty() || values.is_empty() {
        return Expected::new(id, kind, values, terms);
    }
    let terms = if terms.is_empty() { vec![0.0; values.len()] } else { terms };
    let estimates = step_chain::estimates(kind, &values, &terms, &moved);
    step_chain::expected(id, Kind::Rounded, &estimates)
}

/// A gradient that is summed over the rows.
fn column_sum(id: i32, values: Vec<f64>, terms: Vec<f64>, moved: Vec<f64>) -> Expected {
    if moved.is_empty() {
        return Expected::new(id, Kind::ColumnSum, values, terms);
    }
    let estimates = step_chain::estimates(Kind::ColumnSum, &values, &terms, &moved);
    step_chain::expected(id, Kind::Chain, &estimates)
}

fn expected_backward(shape: &LnormShape, data: &Data) -> Vec<Expected> {
    let &LnormShape { rows, cols, epsilon, flags, steps, .. } = shape;
    // For f64 the library computes the statistics from src: the given ones are f32.
    let double = [shape.src_dt, shape.dst_dt].contains(&DataType::F64);
    let none = vec![0.0; if double && !flags.global_stats { rows } else { 0 }];
    let variance = if none.is_empty() { data.get(NORM_ARG_VARIANCE) } else { &none };
    let (before, factors) = (before(shape, data), factors(shape, data));
    let (gate, function) = (data.get(NORM_ARG_GATE), steps.gate.map(|gate| gate.function));
    let mut diff_dst = step_chain::exact(data.get(NORM_ARG_DIFF_DST));
    if let Some(function) = function.filter(|_| flags.gate_output) {
        step_chain::gated(&mut diff_dst, gate, function);
    }
    let (diff_dst, errors): (Vec<f64>, Vec<f64>) =
        diff_dst.into_iter().map(|d| (d.value, d.error)).unzip();
    let input = BackwardInput {
        rows,
        cols,
        src: &before.x,
        diff_dst: &diff_dst,
        scale: factors.as_deref(),
        mean: (!flags.rms_norm).then(|| data.get(NORM_ARG_MEAN)),
        variance,
        epsilon: f64::from(epsilon),
        flags,
    };
    let around = Around {
        partial: steps.partial,
        src_errors: &before.errors,
        diff_dst_errors: if flags.gate_output { &errors } else { &[] },
    };
    let output = backward_with(&input, around);
    let (scale, shift) = (NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT);
    let mut expected = vec![
        column_sum(scale, output.diff_scale, output.diff_scale_terms, output.diff_scale_moved),
        column_sum(shift, output.diff_shift, output.diff_shift_terms, output.diff_shift_moved),
    ];
    let (values, terms) = (output.diff_src, output.diff_src_terms);
    let Some(function) = function else {
        expected.push(without_gate(shape, data, values, terms));
        return expected;
    };
    let mut diff_src = step_chain::estimates(Kind::Result, &values, &terms, &output.diff_src_moved);
    let diff_gate = match flags.gate_output {
        true => {
            let n = normalized_again(&input, around, data);
            step_chain::diff_gate(data.get(NORM_ARG_DIFF_DST), &n, gate, function)
        }
        false => {
            let diff_gate = step_chain::diff_gate(&before.sum, &diff_src, gate, function);
            step_chain::gated(&mut diff_src, gate, function);
            diff_gate
        }
    };
    step_chain::plus(&mut diff_src, data.get(NORM_ARG_DIFF_RESIDUAL_DST));
    expected.push(step_chain::expected(NORM_ARG_DIFF_SRC, Kind::Chain, &diff_src));
    expected.push(step_chain::expected(NORM_ARG_DIFF_GATE, Kind::Chain, &diff_gate));
    expected
}

/// diff_src of a problem without a gate, the gradient of the stored sum added.
fn without_gate(
    shape: &LnormShape,
    data: &Data,
    mut values: Vec<f64>,
    mut terms: Vec<f64>,
) -> Expected {
    let diff_sum = data.get(NORM_ARG_DIFF_RESIDUAL_DST);
    for ((value, terms), diff_sum) in values.iter_mut().zip(&mut terms).zip(diff_sum) {
        *value += diff_sum;
        *terms += diff_sum.abs();
    }
    Expected::new(NORM_ARG_DIFF_SRC, result(shape), values, terms)
}

/// The result of forward, as backward computes it from the given statistics: unrounded.
fn normalized_again(input: &BackwardInput<'_>, around: Around<'_>, data: &Data) -> Vec<Estimate> {
    let &BackwardInput { rows, cols, src, scale, mean, variance, epsilon, flags, .. } = input;
    let global_stats = !variance.iter().any(|&variance| is_out_of_range(variance));
    let output = forward_with(
        &ForwardInput {
            rows,
            cols,
            src,
            scale,
            shift: flags.shift.then(|| data.get(NORM_ARG_SHIFT)),
            mean,
            variance: Some(variance),
            epsilon,
            flags: Flags { global_stats: global_stats || flags.global_stats, ..flags },
        },
        around,
    );
    step_chain::estimates(Kind::Result, &output.dst, &output.dst_terms, &output.dst_moved)
}

/// Computes statistics that no file gave from a src that one did.
pub(super) fn adjust(shape: &LnormShape, data: &mut Data, imported: &[i32]) {
    if !imported.contains(&NORM_ARG_SRC) {
        return;
    }
    let rms_norm = shape.flags.rms_norm;
    let input = ForwardInput {
        rows: shape.rows,
        cols: shape.cols,
        src: &before(shape, data).x,
        scale: None,
        shift: None,
        mean: None,
        variance: None,
        epsilon: f64::from(shape.epsilon),
        flags: Flags { rms_norm, ..Flags::default() },
    };
    let output = forward_with(&input, Around { partial: shape.steps.partial, ..Around::default() });
    for (id, computed) in [(NORM_ARG_MEAN, output.mean), (NORM_ARG_VARIANCE, output.variance)] {
        if !imported.contains(&id) && !data.get(id).is_empty() {
            data.set(id, computed.iter().map(|&value| DataType::F32.round(value)).collect());
        }
    }
}
