//! The library's steps around a normalization: residual, gate, rounding, dynamic scales.

use super::fault::Fault;
use super::sham::Calculation;
use benchdnn::attributes::Policy;
use benchdnn::data_type::DataType;
use benchdnn::drivers::lnorm::Request;
use benchdnn::library::Wanted;
use benchdnn::oracle::steps::GateFunction;
use benchdnn::steps::{Gate, Partial, Residual, Steps};
use norm_sys::*;

/// The steps of a request, without their tags.
pub(super) fn steps(request: &Request) -> Steps {
    let steps = &request.steps;
    Steps {
        residual: steps.residual.as_ref().map(|step| Residual {
            data_type: step.residual.data_type,
            sum: step.sum.as_ref().map(|sum| sum.data_type),
            exact: step.exact,
        }),
        gate: (steps.gate.as_ref())
            .map(|(gate, function)| Gate { data_type: gate.data_type, function: *function }),
        partial: match steps.partial {
            0 => Partial::Whole,
            count => Partial::Elements(count),
        },
        ..Steps::default()
    }
}

/// The requested layout of a tensor of the steps.
pub(super) fn wanted(request: &Request, argument: i32) -> Option<&Wanted> {
    let residual = request.steps.residual.as_ref();
    let tensor = match argument {
        NORM_ARG_RESIDUAL => &residual?.residual,
        NORM_ARG_RESIDUAL_DST | NORM_ARG_DIFF_RESIDUAL_DST => residual?.sum.as_ref()?,
        NORM_ARG_GATE | NORM_ARG_DIFF_GATE => &request.steps.gate.as_ref()?.0,
        _ => return None,
    };
    Some(&tensor.wanted)
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn function(function: GateFunction, gate: f64) -> f64 {
    match function {
        GateFunction::Swish { alpha } => gate * sigmoid(f64::from(alpha) * gate),
        GateFunction::Logistic => sigmoid(gate),
    }
}

impl Calculation<'_> {
    /// src plus residual: the input of the normalization, and that of its statistics.
    pub(super) fn sums(&self, src: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
        let Some(step) = self.problem.steps.residual else { return (src.clone(), src) };
        let residual = self.read(NORM_ARG_RESIDUAL);
        if residual.is_empty() {
            return (src.clone(), src);
        }
        let sum = |(x, r): (&f64, &f64)| DataType::F32.round(x + r);
        let exact: Vec<f64> = src.iter().zip(&residual).map(sum).collect();
        let rounded: Vec<f64> = exact.iter().map(|&x| step.stored().round(x)).collect();
        self.write(NORM_ARG_RESIDUAL_DST, &rounded);
        let used = if step.exact { exact.clone() } else { rounded.clone() };
        let counted = match self.fault {
            Fault::StatisticsOfTheOtherSum if step.exact => rounded,
            Fault::StatisticsOfTheOtherSum => exact,
            _ => used.clone(),
        };
        (used, counted)
    }

    /// Values times the gate's function.
    pub(super) fn gated(&self, values: &mut [f64], used: bool) {
        let Some(step) = self.problem.steps.gate.filter(|_| used) else { return };
        let gates = self.read(NORM_ARG_GATE);
        values
            .iter_mut()
            .zip(gates)
            .for_each(|(value, gate)| *value *= function(step.function, gate));
    }

    /// `factor * f'(gate)`, element by element.
    pub(super) fn write_diff_gate(&self, factors: &[f64]) {
        let Some(step) = self.problem.steps.gate else { return };
        let derivative = |gate: f64| match step.function {
            GateFunction::Swish { alpha } => {
                let z = f64::from(alpha) * gate;
                let s = sigmoid(z);
                match self.fault {
                    Fault::SigmoidForSilu => s * (1.0 - s),
                    _ => s * (1.0 + z * (1.0 - s)),
                }
            }
            GateFunction::Logistic => sigmoid(gate) * (1.0 - sigmoid(gate)),
        };
        let gates = self.read(NORM_ARG_GATE);
        let values: Vec<f64> =
            factors.iter().zip(gates).map(|(factor, gate)| factor * derivative(gate)).collect();
        self.write(NORM_ARG_DIFF_GATE, &values);
    }

    /// The factors of the columns.
    pub(super) fn factors(&self) -> Vec<f64> {
        let mut scale = self.read(NORM_ARG_SCALE);
        if self.problem.flags.plus_one {
            let sum = |scale: f64| match self.fault {
                Fault::PlusOneInBf16 => DataType::Bf16.round(1.0 + scale),
                _ => DataType::F32.round(1.0 + scale),
            };
            scale.iter_mut().for_each(|scale| *scale = sum(*scale));
        }
        scale
    }

    /// The elements of a row in the statistics, and the divisor of their sum of squares.
    pub(super) fn counted(&self) -> (usize, f64) {
        let cols = self.problem.cols();
        let count = match self.problem.steps.partial.elements(cols) {
            0 => cols,
            partial => partial,
        };
        let divided_by_all = self.has(Fault::PartialOverAll);
        (count, if divided_by_all { cols as f64 } else { count as f64 })
    }

    /// A normalized value before scale and shift.
    pub(super) fn rounded_first(&self, xhat: f64) -> f64 {
        let rounds = self.problem.flags.round_first && !self.has(Fault::RoundFirstIgnored);
        if rounds { self.problem.shape().rounded_to().round(xhat) } else { xhat }
    }

    /// Replaces dst by elements with dynamic scales, and writes the scales.
    pub(super) fn quantize(&self, dst: &mut [f64]) {
        let problem = &self.problem;
        let group = problem.group();
        if group == 0 {
            return;
        }
        let attribute = problem.attributes.scale(NORM_ARG_DST).expect("a dynamic scale");
        let points = problem.attributes.zero_point(NORM_ARG_DST).is_some();
        let (dt, scale_dt) = (problem.dst_dt, attribute.data_type);
        let most = dt.largest();
        let (mut scales, mut shifts) = (Vec::new(), Vec::new());
        for values in dst.chunks_mut(group) {
            let size = values.iter().fold(0.0_f64, |size, y| size.max(y.abs()));
            let (low, high) =
                values.iter().fold((0.0_f64, 0.0_f64), |(l, h), y| (l.min(*y), h.max(*y)));
            let scale = match attribute.policy {
                Policy::Mx if size > 0.0 => (size.log2().floor() - most.log2().floor()).exp2(),
                _ if points => (high - low) / most,
                _ if self.has(Fault::ScaleOfTheWrongEnd) => high / most,
                _ => size / most,
            };
            let scale = match scale_dt {
                _ if size == 0.0 => 1.0,
                // The smallest and the largest finite number of the type.
                DataType::F8E4m3 if !self.has(Fault::ScaleVanishes) => {
                    scale.clamp(1.0 / 512.0, 448.0)
                }
                _ => scale,
            };
            let scale = scale_dt.round(DataType::F32.round(scale));
            let point = (-low / scale).min(most).round_ties_even();
            let shift = if points { point } else { 0.0 };
            let lost = self.has(Fault::ZeroPointLost);
            for value in values.iter_mut() {
                let element = *value / scale + if lost { 0.0 } else { shift };
                *value = if dt.is_integer() { element } else { element.clamp(-most, most) };
            }
            scales.push(scale);
            shifts.push(shift);
        }
        self.write(NORM_ARG_ATTR_SCALES | NORM_ARG_DST, &scales);
        self.write(NORM_ARG_ATTR_ZERO_POINTS | NORM_ARG_DST, &shifts);
    }
}
