//! The steps around a normalization: their tensors, and their effect on data and results.
//!
//! A driver normalizes the result of [`before`], and passes the result through [`rounded_first`] and
//! [`gated`]. Everything is element by element, so it does not matter what is normalized.

use crate::check::Kind;
use crate::data_type::DataType;
use crate::execution::Role;
use crate::oracle::estimate::Estimate;
use crate::oracle::lnorm::Flags;
use crate::oracle::steps::{self, GateFunction};
use crate::parallel;
use crate::problem::{Expected, Part, Spec};
use crate::steps::StepShape;
use norm_sys::{
    NORM_ARG_DIFF_GATE, NORM_ARG_DIFF_RESIDUAL_DST, NORM_ARG_GATE, NORM_ARG_RESIDUAL,
    NORM_ARG_RESIDUAL_DST,
};
use std::borrow::Cow;

/// The tensors of the steps of a problem whose src has these dimensions.
pub fn specs(shape: &StepShape, forward: bool, dims: &[usize]) -> Vec<Spec> {
    let spec = |id, name, role, data_type| Spec {
        part: Part::Main,
        sliced: true,
        ..Spec::new(id, name, role, dims.to_vec(), data_type)
    };
    let mut specs = Vec::new();
    if let Some(residual) = &shape.residual {
        match forward {
            true => {
                specs.push(spec(NORM_ARG_RESIDUAL, "residual", Role::Input, residual.data_type));
                specs.extend(
                    residual
                        .sum
                        .map(|sum| spec(NORM_ARG_RESIDUAL_DST, "residual_dst", Role::Output, sum)),
                );
            }
            false => {
                let (id, name) = (NORM_ARG_DIFF_RESIDUAL_DST, "diff_residual_dst");
                specs.push(spec(id, name, Role::Input, residual.stored()));
            }
        }
    }
    if let Some(gate) = &shape.gate {
        specs.push(spec(NORM_ARG_GATE, "gate", Role::Input, gate.data_type));
        if !forward {
            specs.push(spec(NORM_ARG_DIFF_GATE, "diff_gate", Role::Output, gate.data_type));
        }
    }
    specs
}

/// The input of the normalization.
#[derive(Clone, Debug)]
pub struct Before<'a> {
    /// Its values.
    pub x: Cow<'a, [f64]>,
    /// Their possible errors; empty if they are exact.
    pub errors: Vec<f64>,
    /// src plus residual: the values before the gate.
    pub sum: Cow<'a, [f64]>,
    /// The same in f32, before it is rounded; empty without a residual.
    pub unrounded: Vec<f64>,
}

/// The input of the normalization. In backward, src is the sum, and `residual` is empty.
pub fn before<'a>(
    shape: &StepShape,
    flags: Flags,
    src: &'a [f64],
    residual: &[f64],
    gate: &[f64],
) -> Before<'a> {
    let unrounded =
        parallel::map_elements(src.len().min(residual.len()), &|i| steps::sum(src[i], residual[i]));
    let sum: Cow<'a, [f64]> = match shape.residual {
        Some(_) if residual.is_empty() => Cow::Borrowed(src),
        None => Cow::Borrowed(src),
        Some(step) if step.exact => Cow::Owned(unrounded.clone()),
        Some(step) => Cow::Owned(parallel::map_elements(unrounded.len(), &|i| {
            step.stored().round(unrounded[i])
        })),
    };
    let Some(function) = gate_function(shape, flags.gate_input) else {
        return Before { x: sum.clone(), errors: Vec::new(), sum, unrounded };
    };
    let estimates = parallel::map_elements(sum.len().min(gate.len()), &|i| {
        Estimate::exact(sum[i]).times(function.of(gate[i]))
    });
    let (x, errors) = estimates.iter().map(|one| (one.value, one.error)).unzip();
    Before { x: Cow::Owned(x), errors, sum, unrounded }
}

fn gate_function(shape: &StepShape, used: bool) -> Option<GateFunction> {
    shape.gate.filter(|_| used).map(|gate| gate.function)
}

/// Results with the bounds of their errors: those of `kind` for `terms`, plus the effect of the inputs' errors.
pub fn estimates(kind: Kind, values: &[f64], terms: &[f64], moved: &[f64]) -> Vec<Estimate> {
    let estimate = |i: usize| {
        let error = kind.bound(values[i], terms[i]) + moved.get(i).copied().unwrap_or(0.0);
        Estimate { value: values[i], error }
    };
    parallel::map_elements(values.len(), &estimate)
}

/// Rounds normalized values, then scales and shifts them.
pub fn rounded_first(
    values: &mut [Estimate],
    dt: DataType,
    scale: Option<impl Fn(usize) -> f64 + Sync>,
    shift: Option<impl Fn(usize) -> f64 + Sync>,
) {
    parallel::change(values, &|i, value| {
        *value = steps::rounded(*value, dt);
        if let Some(scale) = &scale {
            *value = value.times(Estimate::exact(scale(i)));
        }
        if let Some(shift) = &shift {
            *value = value.plus(Estimate::exact(shift(i)));
        }
    });
}

/// Multiplies by the function of a gate, forward and backward.
pub fn gated(values: &mut [Estimate], gate: &[f64], function: GateFunction) {
    parallel::change(values, &|i, value| *value = value.times(function.of(gate[i])));
}

/// `factor * other * f'(gate)`: the gradient of a gate.
pub fn diff_gate(
    factor: &[f64],
    other: &[Estimate],
    gate: &[f64],
    function: GateFunction,
) -> Vec<Estimate> {
    parallel::map_elements(factor.len(), &|i| {
        other[i].times(Estimate::exact(factor[i])).times(function.derivative(gate[i]))
    })
}

/// Adds the gradient of the stored sum, which is empty without one.
pub fn plus(values: &mut [Estimate], other: &[f64]) {
    if !other.is_empty() {
        parallel::change(values, &|i, value| *value = value.plus(Estimate::exact(other[i])));
    }
}

/// Exact values without errors.
pub fn exact(values: &[f64]) -> Vec<Estimate> {
    values.iter().copied().map(Estimate::exact).collect()
}

/// An output with these values and bounds.
pub fn expected(id: i32, kind: Kind, values: &[Estimate]) -> Expected {
    let (values, errors) = values.iter().map(|value| (value.value, value.error)).unzip();
    Expected::new(id, kind, values, errors)
}
