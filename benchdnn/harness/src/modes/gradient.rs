//! `--check=grad`: the library's backward compared with differences of its own forward.
//!
//! `L = sum(w*dst)` with `w = diff_dst` has the gradients that backward computes. The parts of a
//! problem (such as rows) are independent, so each has its own sum, and one direction is tried in all
//! of them at once; if several rows share a part of an input, its sum is over them. Along a direction
//! `u` the derivative is computed from four points,
//!
//! ```text
//! D = (8*(L(x + hu) - L(x - hu)) - (L(x + 2hu) - L(x - 2hu))) / 12h
//! ```
//!
//! with sums in f64 over results in f32 (f64 for f64), whatever dst's type is. The step is 1/32 of
//! a part's [`Unit`], rounded to a power of two for which all points are values of the type. `D`
//! and backward's `sum(u*diff_src)` may differ by
//!
//! - truncation: less than a quarter of the difference between four points and the inner two;
//! - rounding: each dst may be off by its bound ([`Kind::bound`]), times the weights above;
//! - backward's own bound, times `|u|`, including the effect of rounding saved values to their types.
//!
//! If dst is linear in an input (scale, shift), two points suffice and there is no truncation error.

use super::case::Case;
use super::end::End;
use super::inputs;
use crate::check::Kind;
use crate::data_type::DataType;
use crate::execution::{Output, Placement, run_once};
use crate::executor::Prepared;
use crate::fill::Fill;
use crate::outcome::{Outcome, Status};
use crate::problem::{Data, Dependence, Expected, Gradients, Problem, Spec, Unit};
use crate::report::Reporter;

/// Single elements of a part that are tried, including the first and the last.
const ELEMENTS: usize = 6;
/// Directions of random signs that are tried.
const RANDOM: u64 = 3;
/// The step in units of the part.
const STEP: f64 = 1.0 / 32.0;

/// The problem as it is checked.
struct Check<'c> {
    case: &'c Case<'c>,
    gradients: &'c Gradients,
    data: Data,
    findings: Findings,
}

/// The parts of a result that depend on the same part of an input.
#[derive(Clone, Copy)]
struct Parts {
    count: usize,
    inner: usize,
    unit: Unit,
    noun: &'static str,
    /// The dimensions of the input's parts and of a result, if the parts are broadcast to it.
    broadcast: Option<([usize; 3], [usize; 4])>,
}

impl Parts {
    /// The index of an element in a part of the input, with `size` elements.
    fn at(&self, part: usize, size: usize, element: usize) -> usize {
        (part / self.inner * size + element) * self.inner + part % self.inner
    }

    /// The part that an element of a result with `count` elements depends on.
    fn owner(&self, element: usize, count: usize) -> usize {
        let Some((dims, result)) = self.broadcast else {
            let size = count / self.count * self.inner;
            return element / size * self.inner + element % self.inner;
        };
        let (mut part, mut step, mut row) = (0, 1, element / result[3]);
        for (dim, size) in dims.iter().zip(&result[..3]).rev() {
            part += row % size % dim * step;
            (step, row) = (step * dim, row / size);
        }
        part
    }
}

/// An output of backward: its name, its values and their error bounds.
struct Claim {
    name: &'static str,
    values: Vec<f64>,
    bounds: Vec<f64>,
}

/// A result of forward, the input of backward that weights it, and its error bounds.
struct Measured {
    weights: i32,
    values: Vec<f64>,
    bounds: Vec<f64>,
}

/// The findings so far.
#[derive(Default)]
struct Findings {
    checked: usize,
    failed: usize,
    /// The number of derivatives that exceed the tolerance.
    telling: usize,
    /// The largest error, relative to the tolerance, and the line about it.
    worst: Option<(f64, String)>,
}

impl Findings {
    fn add(&mut self, got: f64, want: f64, allowed: f64, place: impl FnOnce() -> String) {
        let error = (got - want).abs();
        self.checked += 1;
        self.telling += usize::from(want.abs() > allowed);
        let right = error <= allowed;
        self.failed += usize::from(!right);
        let share = match error {
            0.0 => 0.0,
            error if error.is_nan() => f64::INFINITY,
            error => error / allowed,
        };
        if self.worst.as_ref().is_none_or(|(worst, _)| share > *worst) {
            let text = format!(
                "{}: backward says {got:?}, differences {want:?}, error {error:.3e}, allowed \
                 {allowed:.3e}",
                place()
            );
            self.worst = Some((share, text));
        }
    }
}

/// Checks the gradients of a backward problem.
pub(super) fn check(case: &Case<'_>, reporter: &mut Reporter<'_>) -> Result<Outcome, End> {
    let gradients = match case.problem.gradients() {
        Ok(gradients) => gradients,
        Err(reason) => return Ok(Outcome::because(Status::Skipped, reason)),
    };
    if case.problem.own_tensors()[0].count() == 0 {
        return Ok(Outcome::new(Status::Passed));
    }
    // If backward reads a result of forward in place of an input, the input is forward's own.
    let replaces = gradients.saved.iter().any(|(output, input)| output != input);
    let mut ways = [&gradients.backward, &gradients.forward];
    if replaces {
        ways.reverse();
    }
    let mut data = ways[0].fill(Fill::Exact);
    data.complete(&ways[1].fill(Fill::Exact));
    let findings = Findings::default();
    let mut check = Check { case, gradients: &gradients, data, findings };
    check.all(reporter)?;
    let Findings { checked, failed, telling, worst } = check.findings;
    let level = if failed > 0 { 0 } else { 6 };
    if let Some((_, worst)) = worst {
        reporter.detail(level, &format!("  gradient: {failed} wrong of {checked}, worst:"));
        reporter.detail(level, &format!("  {worst}"));
    }
    Ok(if failed > 0 {
        Outcome::because(Status::Failed, format!("gradient has {failed} wrong of {checked}"))
    } else if telling * 10 < checked {
        Outcome::because(Status::Mistrusted, "too few derivatives that differ from 0")
    } else {
        Outcome::new(Status::Passed)
    })
}

impl Check<'_> {
    fn all(&mut self, reporter: &mut Reporter<'_>) -> Result<(), End> {
        let gradients = self.gradients;
        let (forward, backward) = (&*gradients.forward, &*gradients.backward);
        let prepared = self.case.with(forward).prepare()?;
        let prepared_backward = self.case.with(backward).prepare()?;
        reporter.detail(5, &format!("implementation: {}", prepared_backward.implementation()));

        // Backward at the point itself, with the values that forward saves for it there.
        let outputs = execute(&*prepared, forward, &self.data)?;
        let (mut rounded, mut unrounded) = (self.data.clone(), self.data.clone());
        for &(id, input) in &gradients.saved {
            if let Some(output) = find(&outputs, id) {
                let (values, dt) = (
                    output.layout.data_type.decode(&output.elements),
                    spec(backward, input).data_type,
                );
                rounded.set(input, values.iter().map(|&value| dt.round(value)).collect());
                unrounded.set(input, values);
            }
        }
        let outputs = execute(&*prepared_backward, backward, &rounded)?;
        let expected = backward.expected(&rounded);
        let exact = backward.expected(&unrounded);
        let forward_inputs = forward.own_tensors();
        for gradient in &gradients.of {
            if !forward_inputs.iter().any(|spec| spec.id == gradient.input) {
                continue;
            }
            let Some(output) = find(&outputs, gradient.output) else { continue };
            let claim = claim(output, &expected, &exact);
            match gradient.dependence {
                Dependence::Parts { count, inner, unit, noun } => {
                    let parts = Parts { count, inner, unit, noun, broadcast: None };
                    self.all_along(&*prepared, gradient.input, parts, &claim)?;
                }
                Dependence::Broadcast { dims, result, noun } => {
                    let (count, broadcast) = (dims.iter().product(), Some((dims, result)));
                    let parts = Parts { count, inner: 1, unit: Unit::One, noun, broadcast };
                    self.all_along(&*prepared, gradient.input, parts, &claim)?;
                }
                Dependence::Linear { inner, count, noun } => {
                    let owner = |element: usize| element / inner % count;
                    self.linear(&*prepared, gradient.input, noun, owner, &claim)?;
                }
            }
        }
        Ok(())
    }

    /// Each result of forward and the error bounds of its elements.
    fn results(&self, prepared: &dyn Prepared, data: &Data) -> Result<Vec<Measured>, End> {
        let forward = &*self.gradients.forward;
        let (expected, outputs) = (forward.expected(data), execute(prepared, forward, data)?);
        let measured = |&(id, weights): &(i32, i32)| {
            let expected = expected.iter().find(|expected| expected.id == id);
            let Expected { kind, terms, .. } = expected.expect("the oracle gives every output");
            let output = find(&outputs, id).expect("forward gives its result");
            let dt = output.layout.data_type;
            let values = dt.decode(&output.elements);
            // The function that is differentiated does not round.
            let rounding = |x: f64| if *kind == Kind::Rounded { dt.ulp(x) } else { 0.0 };
            let bound = |(&x, &terms): (&f64, &f64)| kind.bound(x, terms) + rounding(x);
            let bounds = values.iter().zip(&**terms).map(bound).collect();
            Measured { weights, values, bounds }
        };
        Ok(self.gradients.results.iter().map(measured).collect())
    }

    /// Compares the derivatives of all parts along every direction.
    fn all_along(
        &mut self,
        prepared: &dyn Prepared,
        input: i32,
        parts: Parts,
        claim: &Claim,
    ) -> Result<(), End> {
        let all = directions(claim.values.len() / parts.count);
        all.iter().try_for_each(|direction| self.along(prepared, input, parts, direction, claim))
    }

    /// Compares the derivatives of all parts along a direction.
    fn along(
        &mut self,
        prepared: &dyn Prepared,
        input: i32,
        parts: Parts,
        direction: &Along,
        claim: &Claim,
    ) -> Result<(), End> {
        let values = self.data.get(input);
        let size = values.len() / parts.count;
        let dt = spec(&*self.gradients.forward, input).data_type;
        let steps: Vec<f64> = (0..parts.count)
            .map(|part| {
                let part: Vec<f64> = (0..size).map(|i| values[parts.at(part, size, i)]).collect();
                step(&part, parts.unit, dt)
            })
            .collect();
        // L of each part and its possible rounding error, at -2, -1, 1 and 2 steps.
        let mut sums = Vec::new();
        for factor in [-2.0, -1.0, 1.0, 2.0] {
            let mut data = self.data.clone();
            data.change(input, |values| {
                for (part, step) in steps.iter().enumerate() {
                    for i in 0..size {
                        values[parts.at(part, size, i)] += factor * step * direction.at(i);
                    }
                }
            });
            sums.push(self.weighted(&self.results(prepared, &data)?, parts));
        }
        for (part, &step) in steps.iter().enumerate() {
            let [(a, ea), (b, eb), (c, ec), (d, ed)] = [0, 1, 2, 3].map(|i| sums[i][part]);
            let inner = (c - b) / (2.0 * step);
            let want = (8.0 * (c - b) - (d - a)) / (12.0 * step);
            let rounding = (8.0 * (eb + ec) + ea + ed) / (12.0 * step);
            let (mut got, mut own) = (0.0, 0.0);
            for i in 0..size {
                let u = direction.at(i);
                let at = parts.at(part, size, i);
                got += u * claim.values[at];
                own += u.abs() * claim.bounds[at];
            }
            let allowed = (want - inner).abs() / 4.0 + rounding + own;
            self.findings.add(got, want, allowed, || {
                format!("{} of {} {part} along {}", claim.name, parts.noun, direction.name(size))
            });
        }
        Ok(())
    }

    /// Compares a gradient with respect to an input in which the result is linear. `owner` gives the element of the
    /// input that an element of the result depends on.
    fn linear(
        &mut self,
        prepared: &dyn Prepared,
        input: i32,
        noun: &str,
        owner: impl Fn(usize) -> usize,
        claim: &Claim,
    ) -> Result<(), End> {
        const STEP: f64 = 1.0; // Most neighbours 1 away are values of the type; the others round.
        let dt = spec(&*self.gradients.forward, input).data_type;
        let at = |factor: f64| {
            let mut data = self.data.clone();
            data.change(input, |values| {
                values.iter_mut().for_each(|x| *x = dt.round(*x + factor * STEP));
            });
            let points = data.get(input).to_vec();
            self.results(prepared, &data).map(|results| (points, results))
        };
        let ((low, of_low), (high, of_high)) = (at(-1.0)?, at(1.0)?);
        let count = claim.values.len();
        let (mut want, mut rounding) = (vec![0.0; count], vec![0.0; count]);
        for (below, above) in of_low.iter().zip(&of_high) {
            for (i, w) in self.data.get(below.weights).iter().enumerate() {
                let own = owner(i);
                let span = high[own] - low[own];
                want[own] += w * (above.values[i] - below.values[i]) / span;
                rounding[own] += w.abs() * (above.bounds[i] + below.bounds[i]) / span;
            }
        }
        for i in 0..count {
            let allowed = rounding[i] + claim.bounds[i];
            let place = || format!("{} of {noun} {i}", claim.name);
            self.findings.add(claim.values[i], want[i], allowed, place);
        }
        Ok(())
    }

    /// `sum(w*dst)` of each part, over all results, and its error bound.
    fn weighted(&self, results: &[Measured], parts: Parts) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); parts.count];
        for Measured { weights, values, bounds } in results {
            // A result with weight NaN is one that backward must not read.
            let weights = self.data.get(*weights).iter().enumerate();
            for (at, weight) in weights.filter(|(_, weight)| !weight.is_nan()) {
                let (sum, error) = &mut sums[parts.owner(at, values.len())];
                *sum += weight * values[at];
                *error += weight.abs() * bounds[at];
            }
        }
        sums
    }
}

/// An output of backward with the bound of its own rounding: to its type, in the arithmetic, and the effect of rounding
/// saved values to their types, which is the difference from `exact`.
fn claim(output: &Output, expected: &[Expected], exact: &[Expected]) -> Claim {
    let of_output = |all: &[Expected]| {
        let found = all.iter().find(|expected| expected.id == output.id).cloned();
        found.expect("the oracle gives every output")
    };
    let (Expected { kind, terms, values: rounded, .. }, exact) =
        (of_output(expected), of_output(exact));
    // Statistics that forward saves are f32 even for f64.
    let kind = if kind == Kind::Double { Kind::Result } else { kind };
    let dt = output.layout.data_type;
    let values = dt.decode(&output.elements);
    let moved = rounded.iter().zip(&*exact.values).map(|(rounded, exact)| (rounded - exact).abs());
    let bounds = values.iter().zip(&*terms).zip(moved);
    let bounds = bounds.map(|((&x, &terms), moved)| kind.bound(x, terms) + dt.ulp(x) + moved);
    let bounds = bounds.collect();
    Claim { name: output.name, values, bounds }
}

fn execute(prepared: &dyn Prepared, problem: &dyn Problem, own: &Data) -> Result<Vec<Output>, End> {
    let specs = problem.tensors();
    let layouts = inputs::layouts(&specs, prepared)?;
    let tensors = inputs::tensors(&specs, layouts, &inputs::with_attributes(problem, own));
    Ok(run_once(prepared, &tensors, Placement::default(), None)?)
}

/// The step of a part: a power of two by which its elements can be moved twice in either direction and stay values of
/// the type.
fn step(part: &[f64], unit: Unit, dt: DataType) -> f64 {
    let size = part.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    let count = part.len() as f64;
    let mean = if unit == Unit::Deviation { part.iter().sum::<f64>() / count } else { 0.0 };
    let variance = part.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    let unit = match unit {
        Unit::One => 1.0,
        _ if variance > 0.0 => variance.sqrt(),
        _ => size,
    };
    let least = dt.ulp(size * 2.0);
    (unit * STEP).log2().floor().exp2().max(least)
}

fn spec(problem: &dyn Problem, id: i32) -> Spec {
    let mut specs = problem.own_tensors().into_iter();
    specs.find(|spec| spec.id == id).expect("an input of the problem")
}

fn find(outputs: &[Output], id: i32) -> Option<&Output> {
    outputs.iter().find(|output| output.id == id)
}

/// A direction, the same in every part.
enum Along {
    /// All ones: the direction of a mean.
    Ones,
    /// Random signs.
    Signs(u64),
    /// One element.
    Element(usize),
}

impl Along {
    fn at(&self, index: usize) -> f64 {
        match *self {
            Along::Ones => 1.0,
            Along::Element(element) => f64::from(u8::from(element == index)),
            Along::Signs(seed) => {
                let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed;
                let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                if mixed >> 63 == 0 { 1.0 } else { -1.0 }
            }
        }
    }

    fn name(&self, size: usize) -> String {
        match self {
            Along::Ones => "(1, ..., 1)".to_owned(),
            Along::Signs(seed) => format!("random signs {seed}"),
            Along::Element(element) => format!("element {element} of {size}"),
        }
    }
}

fn directions(size: usize) -> Vec<Along> {
    let mut all = vec![Along::Ones];
    all.extend((1..=RANDOM).map(Along::Signs));
    let count = size.min(ELEMENTS);
    let mut elements: Vec<usize> =
        (0..count).map(|i| if count > 1 { i * (size - 1) / (count - 1) } else { 0 }).collect();
    elements.dedup();
    all.extend(elements.into_iter().map(Along::Element));
    all
}
