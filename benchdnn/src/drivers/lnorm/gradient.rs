//! `--check=grad`: the library's backward against differences of its own forward.
//!
//! `L = sum(w*dst)` with `w = diff_dst` has the gradients that backward gives. The rows are
//! independent, so each has a sum of its own, and one direction is tried in all of them at once.
//! Along a direction `u` the derivative is taken from four points,
//!
//! ```text
//! D = (8*(L(x + hu) - L(x - hu)) - (L(x + 2hu) - L(x - 2hu))) / 12h
//! ```
//!
//! with the sums in f64 over results in f32 (f64 for f64), whatever dst's type is. The step is 1/32
//! of a row's deviation, as a power of two of which all points are values of the type. What may be
//! between `D` and backward's `sum(u*diff_src)`:
//!
//! - truncation: less than a quarter of what the four points change of the two inner ones' answer;
//! - rounding: each dst may be off by its bound ([`Kind::Result`]), times the weights above;
//! - backward's own bound, times `|u|`.
//!
//! dst is linear in scale and shift, so two points and no truncation do for their gradients.

use super::case::{Case, End};
use super::data::{self, Inputs};
use super::problem::{Direction, Problem};
use crate::check::Kind;
use crate::execution::{Output, Placement, run_once};
use crate::executor::Prepared;
use crate::fill::{DataType, Fill, LnormData};
use crate::oracle::lnorm::{BackwardInput, BackwardOutput, ForwardInput, backward, forward};
use crate::outcome::{Outcome, Status};
use crate::report::Reporter;
use crate::run::Run;
use norm_sys::{
    NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_MEAN,
    NORM_ARG_VARIANCE,
};
use std::rc::Rc;

/// Single elements of a row that are tried, the first and the last among them.
const ELEMENTS: usize = 6;
/// Directions of random signs that are tried.
const RANDOM: u64 = 3;
/// The step in deviations of the row.
const STEP: f64 = 1.0 / 32.0;

/// The problem as it is checked.
struct Gradient<'c> {
    case: &'c Case,
    /// Forward, with results in f32 or f64.
    forward: Problem,
    /// Backward, as it was asked for.
    backward: Problem,
    data: LnormData,
    run: &'c Run,
    findings: Findings,
}

/// What was found so far.
#[derive(Default)]
struct Findings {
    checked: usize,
    failed: usize,
    /// Derivatives that are larger than what is allowed.
    telling: usize,
    /// The largest error, measured in what is allowed, and what there is to say about it.
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

/// Checks the gradients of the problem; of a forward one, those of its backward.
pub(super) fn check(case: &Case, run: &Run, reporter: &mut Reporter<'_>) -> Result<Outcome, End> {
    let problem = &case.problem;
    if problem.rows() * problem.cols() == 0 {
        return Ok(Outcome::new(Status::Passed));
    }
    let parameters = problem.flags.scale || problem.flags.shift;
    let direction = match problem.direction {
        direction if !direction.is_forward() => direction,
        _ if parameters => Direction::Backward,
        _ => Direction::BackwardData,
    };
    let backward = Problem { direction, inplace: false, ..problem.clone() };
    let dst_dt = if problem.src_dt == DataType::F64 { DataType::F64 } else { DataType::F32 };
    let forward = Problem {
        direction: Direction::ForwardTraining,
        dst_dt,
        inplace: false,
        ..problem.clone()
    };
    let shift = data::make(&forward.shape(), Fill::Exact).shift;
    let data = LnormData { shift, ..data::make(&backward.shape(), Fill::Exact) };
    let mut gradient =
        Gradient { case, forward, backward, data, run, findings: Findings::default() };
    gradient.all(reporter)?;
    let Findings { checked, failed, telling, worst } = gradient.findings;
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

impl Gradient<'_> {
    fn all(&mut self, reporter: &mut Reporter<'_>) -> Result<(), End> {
        let forward = self.case.prepare(&self.forward.request(), self.run)?;
        let backward = self.case.prepare(&self.backward.request(), self.run)?;
        reporter.detail(5, &format!("implementation: {}", backward.implementation()));

        // Backward at the point itself, with the statistics that forward gives there.
        let outputs = self.execute(&*forward, &self.forward, self.data.clone())?;
        let statistics = |id, given: &[f64]| match find(&outputs, id) {
            Some(output) => output.layout.data_type.decode(&output.elements),
            None => given.to_vec(),
        };
        self.data.mean = statistics(NORM_ARG_MEAN, &self.data.mean);
        self.data.variance = statistics(NORM_ARG_VARIANCE, &self.data.variance);
        let gradients = self.execute(&*backward, &self.backward, self.data.clone())?;
        let decode = |id| {
            find(&gradients, id).map(|output| output.layout.data_type.decode(&output.elements))
        };
        let terms = self.terms();

        let diff_src = decode(NORM_ARG_DIFF_SRC).expect("every backward gives it");
        let dt = self.backward.src_dt;
        let bounds: Vec<f64> = diff_src
            .iter()
            .zip(&terms.diff_src_terms)
            .map(|(&value, &terms)| Kind::Result.bound(value, terms) + dt.ulp(value))
            .collect();
        for direction in directions(self.forward.cols()) {
            self.along(&*forward, &direction, &diff_src, &bounds)?;
        }
        let dt = self.backward.ss_dt;
        let sums = [
            (NORM_ARG_DIFF_SCALE, "diff_scale", &terms.diff_scale_terms),
            (NORM_ARG_DIFF_SHIFT, "diff_shift", &terms.diff_shift_terms),
        ];
        for (id, name, terms) in sums {
            let Some(sums) = decode(id) else { continue };
            let bounds: Vec<f64> = sums
                .iter()
                .zip(terms)
                .map(|(&value, &terms)| Kind::ColumnSum.bound(value, terms) + dt.ulp(value))
                .collect();
            self.parameter(&*forward, id, name, &sums, &bounds)?;
        }
        Ok(())
    }

    /// The sizes that backward's rounding is proportional to.
    fn terms(&self) -> BackwardOutput {
        let (shape, data) = (self.backward.shape(), &self.data);
        backward(&BackwardInput {
            rows: shape.rows,
            cols: shape.cols,
            src: &data.src,
            diff_dst: &data.diff_dst,
            scale: shape.flags.scale.then_some(data.scale.as_slice()),
            mean: (!shape.flags.rms_norm).then_some(data.mean.as_slice()),
            variance: &data.variance,
            epsilon: f64::from(shape.epsilon),
            flags: shape.flags,
        })
    }

    fn execute(
        &self,
        prepared: &dyn Prepared,
        problem: &Problem,
        data: LnormData,
    ) -> Result<Vec<Output>, End> {
        let layouts = data::layouts(problem, prepared)?;
        let inputs = Inputs::new(problem, Rc::new(data));
        let tensors = data::tensors(&layouts, &inputs);
        Ok(run_once(prepared, &tensors, Placement::default(), None)?)
    }

    /// dst and how far each element may be off.
    fn dst(&self, prepared: &dyn Prepared, data: LnormData) -> Result<(Vec<f64>, Vec<f64>), End> {
        let shape = self.forward.shape();
        let given = shape.flags.global_stats;
        let terms = forward(&ForwardInput {
            rows: shape.rows,
            cols: shape.cols,
            src: &data.src,
            scale: shape.flags.scale.then_some(data.scale.as_slice()),
            shift: shape.flags.shift.then_some(data.shift.as_slice()),
            mean: (given && !shape.flags.rms_norm).then_some(data.mean.as_slice()),
            variance: given.then_some(data.variance.as_slice()),
            epsilon: f64::from(shape.epsilon),
            flags: shape.flags,
        })
        .dst_terms;
        let outputs = self.execute(prepared, &self.forward, data)?;
        let output = find(&outputs, NORM_ARG_DST).expect("every forward gives it");
        let kind = match self.forward.dst_dt {
            DataType::F64 => Kind::Double,
            _ => Kind::Result,
        };
        let dst = output.layout.data_type.decode(&output.elements);
        let bounds = dst.iter().zip(&terms).map(|(&dst, &terms)| kind.bound(dst, terms)).collect();
        Ok((dst, bounds))
    }

    /// Compares the derivatives of all rows along a direction.
    fn along(
        &mut self,
        prepared: &dyn Prepared,
        direction: &Along,
        diff_src: &[f64],
        bounds: &[f64],
    ) -> Result<(), End> {
        let cols = self.forward.cols();
        let steps: Vec<f64> = self.data.src.chunks(cols).map(|row| self.step(row)).collect();
        // L of each row and the rounding that it may carry, at -2, -1, 1 and 2 steps.
        let mut sums = Vec::new();
        for factor in [-2.0, -1.0, 1.0, 2.0] {
            let mut data = self.data.clone();
            for (row, step) in data.src.chunks_mut(cols).zip(&steps) {
                let moved = row.iter_mut().enumerate();
                moved.for_each(|(c, x)| *x += factor * step * direction.at(c));
            }
            let (dst, bounds) = self.dst(prepared, data)?;
            sums.push(self.weighted(&dst, &bounds));
        }
        for (row, &step) in steps.iter().enumerate() {
            let [(a, ea), (b, eb), (c, ec), (d, ed)] = [0, 1, 2, 3].map(|i| sums[i][row]);
            let inner = (c - b) / (2.0 * step);
            let want = (8.0 * (c - b) - (d - a)) / (12.0 * step);
            let rounding = (8.0 * (eb + ec) + ea + ed) / (12.0 * step);
            let (mut got, mut own) = (0.0, 0.0);
            for c in 0..cols {
                let u = direction.at(c);
                got += u * diff_src[row * cols + c];
                own += u.abs() * bounds[row * cols + c];
            }
            let allowed = (want - inner).abs() / 4.0 + rounding + own;
            self.findings.add(got, want, allowed, || {
                format!("diff_src of row {row} along {}", direction.name(cols))
            });
        }
        Ok(())
    }

    /// Compares a gradient that is a sum over the rows.
    fn parameter(
        &mut self,
        prepared: &dyn Prepared,
        id: i32,
        name: &str,
        sums: &[f64],
        bounds: &[f64],
    ) -> Result<(), End> {
        const FAR: f64 = 1.0; // Every type of the parameters has them one further on.
        let cols = self.forward.cols();
        let at = |factor: f64| {
            let mut data = self.data.clone();
            let values = match id {
                NORM_ARG_DIFF_SCALE => &mut data.scale,
                _ => &mut data.shift,
            };
            values.iter_mut().for_each(|value| *value += factor * FAR);
            self.dst(prepared, data)
        };
        let ((low, low_bounds), (high, high_bounds)) = (at(-1.0)?, at(1.0)?);
        let (mut want, mut rounding) = (vec![0.0; cols], vec![0.0; cols]);
        for (i, w) in self.data.diff_dst.iter().enumerate() {
            want[i % cols] += w * (high[i] - low[i]) / (2.0 * FAR);
            rounding[i % cols] += w.abs() * (high_bounds[i] + low_bounds[i]) / (2.0 * FAR);
        }
        for c in 0..cols {
            let allowed = rounding[c] + bounds[c];
            self.findings.add(sums[c], want[c], allowed, || format!("{name} of column {c}"));
        }
        Ok(())
    }

    /// `sum(w*dst)` of each row and what it may be off by.
    fn weighted(&self, dst: &[f64], bounds: &[f64]) -> Vec<(f64, f64)> {
        let cols = self.forward.cols();
        let weights = self.data.diff_dst.chunks(cols);
        let rows = weights.zip(dst.chunks(cols).zip(bounds.chunks(cols)));
        rows.map(|(weights, (dst, bounds))| {
            let elements = weights.iter().zip(dst.iter().zip(bounds));
            elements.fold((0.0, 0.0), |(sum, error), (w, (dst, bound))| {
                (sum + w * dst, error + w.abs() * bound)
            })
        })
        .collect()
    }

    /// The step of a row: a power of two by which its elements can be moved twice either way and
    /// stay values of the type.
    fn step(&self, row: &[f64]) -> f64 {
        let count = row.len() as f64;
        let mean = match self.forward.flags.rms_norm {
            true => 0.0,
            false => row.iter().sum::<f64>() / count,
        };
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let size = row.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
        let deviation = if variance > 0.0 { variance.sqrt() } else { size };
        let least = self.forward.src_dt.ulp(size * 2.0);
        (deviation * STEP).log2().floor().exp2().max(least)
    }
}

fn find(outputs: &[Output], id: i32) -> Option<&Output> {
    outputs.iter().find(|output| output.id == id)
}

/// A direction, the same in every row.
enum Along {
    /// All elements alike: where the derivative of a mean is.
    Ones,
    /// Random signs.
    Signs(u64),
    /// One element.
    Element(usize),
}

impl Along {
    fn at(&self, column: usize) -> f64 {
        match *self {
            Along::Ones => 1.0,
            Along::Element(element) => f64::from(u8::from(element == column)),
            Along::Signs(seed) => {
                let mixed = (column as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed;
                let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                if mixed >> 63 == 0 { 1.0 } else { -1.0 }
            }
        }
    }

    fn name(&self, cols: usize) -> String {
        match self {
            Along::Ones => "(1, ..., 1)".to_owned(),
            Along::Signs(seed) => format!("random signs {seed}"),
            Along::Element(element) => format!("element {element} of {cols}"),
        }
    }
}

fn directions(cols: usize) -> Vec<Along> {
    let mut all = vec![Along::Ones];
    all.extend((1..=RANDOM).map(Along::Signs));
    let count = cols.min(ELEMENTS);
    let mut elements: Vec<usize> =
        (0..count).map(|i| if count > 1 { i * (cols - 1) / (count - 1) } else { 0 }).collect();
    elements.dedup();
    all.extend(elements.into_iter().map(Along::Element));
    all
}
