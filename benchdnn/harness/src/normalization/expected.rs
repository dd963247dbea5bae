//! The expected results of a normalization with the steps around it.

use crate::check::Kind;
use crate::data_type::DataType;
use crate::fill::lnorm::LnormShape;
use crate::oracle::estimate::Estimate;
use crate::oracle::lnorm::{Around, BackwardOutput, Flags, ForwardOutput, is_out_of_range};
use crate::problem::{Data, Expected};
use crate::step_chain::{self, Before};
use norm_sys::*;

/// The inputs of an oracle. It does not read those that the flags do not need.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// What is normalized.
    pub src: &'a [f64],
    /// Backward.
    pub diff_dst: &'a [f64],
    /// Factors.
    pub scale: Option<&'a [f64]>,
    /// Summands.
    pub shift: Option<&'a [f64]>,
    /// Given means.
    pub mean: Option<&'a [f64]>,
    /// Given variances; without them, or where one is unusable, backward computes the statistics.
    pub variance: Option<&'a [f64]>,
    /// The kind of normalization.
    pub flags: Flags,
}

/// A normalization without the steps around it.
pub trait Oracle: Sync {
    /// Forward.
    fn forward(&self, inputs: &Inputs<'_>, around: Around<'_>) -> ForwardOutput;
    /// Backward.
    fn backward(&self, inputs: &Inputs<'_>, around: Around<'_>) -> BackwardOutput;
    /// The index of an element's scale and shift.
    fn channel(&self, element: usize) -> usize;
}

/// A problem with its data.
pub struct Case<'a, O> {
    /// The normalization.
    pub oracle: &'a O,
    /// The steps around it; the rows are those of the statistics.
    pub shape: &'a LnormShape,
    /// The inputs.
    pub data: &'a Data,
}

impl<O: Oracle> Case<'_, O> {
    /// The expected results, without attributes.
    pub fn expected(&self) -> Vec<Expected> {
        if self.shape.forward { self.forward() } else { self.backward() }
    }

    /// The kind of dst and diff_src.
    fn result(&self) -> Kind {
        let double = [self.shape.src_dt, self.shape.dst_dt].iter().all(|&dt| dt == DataType::F64);
        if double { Kind::Double } else { Kind::Result }
    }

    /// What is normalized.
    fn before(&self) -> Before<'_> {
        let get = |id| self.data.get(id);
        let (src, residual, gate) = (get(NORM_ARG_SRC), get(NORM_ARG_RESIDUAL), get(NORM_ARG_GATE));
        step_chain::before(&self.shape.steps, self.shape.flags, src, residual, gate)
    }

    /// The factors of the channels; `None` without a scale.
    fn factors(&self) -> Option<Vec<f64>> {
        let factor = |&scale: &f64| self.shape.factor(scale);
        self.shape.flags.scale.then(|| self.data.get(NORM_ARG_SCALE).iter().map(factor).collect())
    }

    fn around<'a>(&self, src_errors: &'a [f64], diff_dst_errors: &'a [f64]) -> Around<'a> {
        Around { partial: self.shape.steps.partial, src_errors, diff_dst_errors }
    }

    fn forward(&self) -> Vec<Expected> {
        let &LnormShape { flags, steps, .. } = self.shape;
        let Flags { global_stats, scale, shift, rms_norm, round_first, .. } = flags;
        let data = self.data;
        let (before, factors) = (self.before(), self.factors());
        let (scale, shift) = (scale && !round_first, shift && !round_first);
        let inputs = Inputs {
            src: &before.x,
            diff_dst: &[],
            scale: factors.as_deref().filter(|_| scale),
            shift: shift.then(|| data.get(NORM_ARG_SHIFT)),
            // Even without rows, a problem has given statistics, which are then empty.
            mean: (global_stats && !rms_norm).then(|| data.get(NORM_ARG_MEAN)),
            variance: global_stats.then(|| data.get(NORM_ARG_VARIANCE)),
            flags: Flags { scale, shift, ..flags },
        };
        let output = self.oracle.forward(&inputs, self.around(&before.errors, &[]));
        let dst = if round_first || flags.gate() {
            let (values, terms, moved) = (&output.dst, &output.dst_terms, &output.dst_moved);
            let mut dst = step_chain::estimates(Kind::Result, values, terms, moved);
            if round_first {
                let channel = |i: usize| self.oracle.channel(i);
                let scale = factors.as_ref().map(|factors| move |i: usize| factors[channel(i)]);
                let shift = data.get(NORM_ARG_SHIFT);
                let shift = flags.shift.then_some(|i: usize| shift[channel(i)]);
                step_chain::rounded_first(&mut dst, self.shape.rounded_to(), scale, shift);
            }
            if let Some(gate) = steps.gate.filter(|_| flags.gate_output) {
                step_chain::gated(&mut dst, data.get(NORM_ARG_GATE), gate.function);
            }
            step_chain::expected(NORM_ARG_DST, Kind::Chain, &dst)
        } else {
            Expected::new(NORM_ARG_DST, self.result(), output.dst, output.dst_terms)
        };
        let ForwardOutput { mean, mean_terms, mean_moved, variance, variance_moved, .. } = output;
        let (mean_id, variance_id) = (NORM_ARG_MEAN, NORM_ARG_VARIANCE);
        let mut expected = vec![
            dst,
            statistic(mean_id, Kind::Mean, mean, mean_terms, mean_moved),
            statistic(variance_id, Kind::Variance, variance, Vec::new(), variance_moved),
        ];
        if !before.unrounded.is_empty() {
            let none = vec![0.0; before.unrounded.len()];
            let sum = Expected::new(NORM_ARG_RESIDUAL_DST, Kind::Rounded, before.unrounded, none);
            expected.push(sum);
        }
        expected
    }

    fn backward(&self) -> Vec<Expected> {
        let &LnormShape { flags, steps, .. } = self.shape;
        let data = self.data;
        // For f64 the library computes the statistics from src, because the given ones are f32.
        let double = [self.shape.src_dt, self.shape.dst_dt].contains(&DataType::F64);
        let given = flags.global_stats || !double;
        let (before, factors) = (self.before(), self.factors());
        let (gate, function) = (data.get(NORM_ARG_GATE), steps.gate.map(|gate| gate.function));
        let mut diff_dst = step_chain::exact(data.get(NORM_ARG_DIFF_DST));
        if let Some(function) = function.filter(|_| flags.gate_output) {
            step_chain::gated(&mut diff_dst, gate, function);
        }
        let (diff_dst, errors): (Vec<f64>, Vec<f64>) =
            diff_dst.into_iter().map(|d| (d.value, d.error)).unzip();
        let inputs = Inputs {
            src: &before.x,
            diff_dst: &diff_dst,
            scale: factors.as_deref(),
            shift: None,
            mean: (!flags.rms_norm && given).then(|| data.get(NORM_ARG_MEAN)),
            variance: given.then(|| data.get(NORM_ARG_VARIANCE)),
            flags,
        };
        let around = self.around(&before.errors, if flags.gate_output { &errors } else { &[] });
        let output = self.oracle.backward(&inputs, around);
        let (scale, shift) = (NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT);
        let mut expected = vec![
            column_sum(scale, output.diff_scale, output.diff_scale_terms, output.diff_scale_moved),
            column_sum(shift, output.diff_shift, output.diff_shift_terms, output.diff_shift_moved),
        ];
        let (values, terms) = (output.diff_src, output.diff_src_terms);
        let Some(function) = function else {
            expected.push(self.without_gate(values, terms));
            return expected;
        };
        let moved = &output.diff_src_moved;
        let mut diff_src = step_chain::estimates(Kind::Result, &values, &terms, moved);
        let diff_gate = match flags.gate_output {
            true => {
                let n = self.normalized_again(&inputs, around);
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

    /// diff_src of a problem without a gate, including the gradient of the stored sum.
    fn without_gate(&self, mut values: Vec<f64>, mut terms: Vec<f64>) -> Expected {
        let diff_sum = self.data.get(NORM_ARG_DIFF_RESIDUAL_DST);
        for ((value, terms), diff_sum) in values.iter_mut().zip(&mut terms).zip(diff_sum) {
            *value += diff_sum;
            *terms += diff_sum.abs();
        }
        Expected::new(NORM_ARG_DIFF_SRC, self.result(), values, terms)
    }

    /// The unrounded result of forward, as backward computes it from the given statistics.
    fn normalized_again(&self, inputs: &Inputs<'_>, around: Around<'_>) -> Vec<Estimate> {
        let unusable = |variance: &[f64]| variance.iter().any(|&v| is_out_of_range(v));
        let flags = inputs.flags;
        let given = inputs.variance.is_some_and(|variance| !unusable(variance));
        let shift = flags.shift.then(|| self.data.get(NORM_ARG_SHIFT));
        let flags = Flags { global_stats: given || flags.global_stats, ..flags };
        let output = self.oracle.forward(&Inputs { shift, flags, ..*inputs }, around);
        step_chain::estimates(Kind::Result, &output.dst, &output.dst_terms, &output.dst_moved)
    }

    /// The statistics that were not imported, from an imported src.
    pub fn adjusted(&self, imported: &[i32]) -> Vec<(i32, Vec<f64>)> {
        if !imported.contains(&NORM_ARG_SRC) {
            return Vec::new();
        }
        let rms_norm = self.shape.flags.rms_norm;
        let before = self.before();
        let inputs = Inputs {
            src: &before.x,
            diff_dst: &[],
            scale: None,
            shift: None,
            mean: None,
            variance: None,
            flags: Flags { rms_norm, ..Flags::default() },
        };
        let output = self.oracle.forward(&inputs, self.around(&[], &[]));
        [(NORM_ARG_MEAN, output.mean), (NORM_ARG_VARIANCE, output.variance)]
            .into_iter()
            .filter(|(id, _)| !imported.contains(id) && !self.data.get(*id).is_empty())
            .map(|(id, values)| (id, values.iter().map(|&v| DataType::F32.round(v)).collect()))
            .collect()
    }
}

/// A statistic of the rows, which errors of the normalized values may move.
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
