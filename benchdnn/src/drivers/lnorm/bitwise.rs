//! Mode B: the same bits, whatever the machine and the surroundings.
//!
//! One run of the problem on random data is the baseline: first implementation, one thread. Every
//! other way of running it must give the same bits in the same rows:
//!
//! - each instruction-set level that the machine has, and each implementation of the list;
//! - 2 and 3 threads, repeated until all of them took part;
//! - each row alone, and the rows rotated; sums over the rows are not compared here, since they
//!   depend on the rows and their order;
//! - rows that lie further apart, tensors one element off their alignment, in place and not;
//! - a caller that has set another floating-point mode; and plain repeats.
//!
//! Any NaN equals any NaN.

use super::arguments::{Extent, Spec, arguments};
use super::case::{Case, End};
use super::data;
use super::executor::{Request, Wanted};
use super::problem::Problem;
use crate::execution::{Fault, Output, Placed, Placement, Role, Tensor, run_once};
use crate::executor::{CpuIsa, Prepared};
use crate::fill::{DataType, Fill};
use crate::float_mode::FloatMode;
use crate::outcome::{Outcome, Status};
use crate::report::Reporter;
use crate::run::Run;
use crate::tensor::Layout;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Numbers of threads beside the baseline's one.
const THREADS: [u64; 2] = [2, 3];
/// Executions before giving up on seeing all threads take part, and how many of them follow each
/// other without a check. A thread that sleeps comes too late to a short problem; one that has just
/// worked is still awake when the next execution begins.
const BURSTS: usize = 8;
const BURST: usize = 32;
/// When to give up on a problem whose single execution takes long.
const PATIENCE: Duration = Duration::from_secs(3);
/// Executions of the same primitive on the same data.
const REPEATS: usize = 3;
/// Elements up to which every row is run alone; of larger problems, this many rows spread evenly.
const EVERY_ROW: usize = 1 << 20;
const SOME_ROWS: usize = 64;
/// Unused elements between rows: fewer than a vector and odd, so every row is aligned differently.
const PADDING: usize = 3;

/// Runs the problem in every way and compares.
pub(super) fn check(case: &Case, run: &Run, reporter: &mut Reporter<'_>) -> Result<Outcome, End> {
    let mut comparison = Comparison::baseline(case, run, reporter)?;
    let result = comparison.all(run);
    // Later problems and modes find the machine as their run wants it.
    case.set_machine(run)?;
    result?;
    let Comparison { summary, differences, shared, runs, .. } = comparison;
    reporter.detail(0, &format!("  bits of {runs} runs: {}", summary.join("; ")));
    for difference in &differences {
        reporter.detail(0, &format!("  {difference}"));
    }
    let mut outcome = match differences.len() {
        0 => Outcome::new(Status::Passed),
        count => Outcome::because(Status::Failed, format!("{count} comparisons of bits failed")),
    };
    outcome.shared = shared;
    Ok(outcome)
}

struct Comparison<'c> {
    case: &'c Case,
    request: Request,
    specs: Vec<Spec>,
    prepared: Box<dyn Prepared>,
    tensors: Vec<Tensor>,
    baseline: Vec<Output>,
    /// What was compared, for people.
    summary: Vec<String>,
    /// What differed.
    differences: Vec<String>,
    runs: usize,
    shared: bool,
}

impl<'c> Comparison<'c> {
    fn baseline(
        case: &'c Case,
        run: &Run,
        reporter: &mut Reporter<'_>,
    ) -> Result<Comparison<'c>, End> {
        case.executor.set_threads(1)?;
        let request = case.problem.request();
        let prepared = case.prepare(&request, run)?;
        let tensors = case.tensors(&*prepared, Fill::Random, run, reporter)?;
        let baseline = run_once(&*prepared, &tensors, case.placement(), None)?;
        Ok(Comparison {
            case,
            specs: arguments(&case.problem),
            request,
            prepared,
            tensors,
            baseline,
            summary: Vec::new(),
            differences: Vec::new(),
            runs: 1,
            shared: false,
        })
    }

    fn all(&mut self, run: &Run) -> Result<(), End> {
        self.levels()?;
        self.case.set_machine(run)?;
        self.threads(run)?;
        self.case.executor.set_threads(1)?;
        if !self.rows_are_bound() {
            self.rows_alone(run)?;
            self.rotated()?;
        }
        self.placements(run)?;
        self.float_modes()?;
        self.repeats()
    }

    /// Compares a run's outputs with the baseline. `row_of` tells which row of the baseline a row
    /// of the run is; `None` if they are the same rows in the same order, which sums over the rows
    /// need.
    fn compare(
        &mut self,
        what: &str,
        result: Result<Vec<Output>, Fault>,
        row_of: Option<&dyn Fn(usize) -> usize>,
    ) -> Result<(), End> {
        self.runs += 1;
        let outputs = match result {
            Ok(outputs) => outputs,
            Err(Fault::Damaged(damage)) => {
                self.differences.push(format!("{what}: {damage}"));
                return Ok(());
            }
            Err(fault) => return Err(fault.into()),
        };
        for (output, expected) in outputs.iter().zip(&self.baseline) {
            let spec = self.spec(output.id);
            if spec.extent == Extent::Columns && row_of.is_some() {
                continue;
            }
            let per_row = match spec.extent {
                Extent::Elements => self.case.problem.cols(),
                Extent::Rows | Extent::Columns | Extent::Attribute(_) => 1,
            };
            let bytes = (per_row * spec.data_type.size()).max(1);
            for (row, got) in output.elements.chunks(bytes).enumerate() {
                let place = row_of.map_or(row, |row_of| row_of(row));
                let want = &expected.elements[place * bytes..][..got.len()];
                if let Some((at, difference)) = difference(spec.data_type, got, want) {
                    let at = expected.layout.coordinates(place * per_row + at);
                    self.differences.push(format!("{what}: {}{at} {difference}", spec.name));
                    break;
                }
            }
        }
        Ok(())
    }

    fn spec(&self, id: i32) -> Spec {
        *self.specs.iter().find(|spec| spec.id == id).expect("an argument of the problem")
    }

    fn levels(&mut self) -> Result<(), End> {
        let mut levels = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for level in CpuIsa::LEVELS {
            if !self.case.executor.set_cpu_isa(level)? {
                continue;
            }
            levels.push(level.name());
            let mut prepared = self.case.executor.prepare(&self.request)?;
            loop {
                let name = prepared.implementation();
                let result = run_once(&*prepared, &self.tensors, self.case.placement(), None);
                self.compare(&format!("{} {name}", level.name()), result, None)?;
                if !names.contains(&name) {
                    names.push(name);
                }
                if !prepared.next_implementation()? {
                    break;
                }
            }
        }
        self.summary.push(format!("levels {}", levels.join(", ")));
        self.summary.push(format!("implementations {}", names.join(", ")));
        Ok(())
    }

    fn threads(&mut self, run: &Run) -> Result<(), End> {
        let mut most_seen = Vec::new();
        for threads in THREADS {
            self.case.executor.set_threads(threads)?;
            let prepared = self.case.prepare(&self.request, run)?;
            let tensors = self.tensors.clone();
            let placed = Placed::new(&tensors, self.case.placement());
            let bound = prepared.bind(&placed.arguments(true))?;
            let (start, most) = (Instant::now(), Cell::new(0));
            let executor = self.case.executor.clone();
            for _ in 0..BURSTS {
                let enough = || {
                    most.set(most.get().max(executor.last_threads()));
                    most.get() >= threads
                };
                let result = placed.run_until(&*bound, BURST, enough);
                self.compare(&format!("{threads} threads"), result, None)?;
                let out_of_time = start.elapsed() > PATIENCE;
                if most.get() >= threads || out_of_time || !self.differences.is_empty() {
                    break;
                }
            }
            most_seen.push(most.get());
        }
        self.shared = most_seen.iter().zip(THREADS).all(|(&most, threads)| most >= threads);
        self.summary.push(if self.shared {
            "threads 1, 2 and 3, each at work".to_owned()
        } else if most_seen.iter().all(|&most| most <= 1) {
            "threads: one does all the work, too small to split".to_owned()
        } else {
            let [two, three] = [most_seen[0], most_seen[1]];
            format!("threads at work: {two} of 2, {three} of 3")
        });
        Ok(())
    }

    fn rows_alone(&mut self, run: &Run) -> Result<(), End> {
        let rows = self.case.problem.rows();
        let mut dims = vec![1; self.case.problem.dims.len()];
        dims[self.case.problem.dims.len() - 1] = self.case.problem.cols();
        let problem = Problem { dims, ..self.case.problem.clone() };
        let prepared = self.case.prepare(&problem.request(), run)?;
        let layouts = data::layouts(&problem, &*prepared)?;
        let few = rows * problem.cols() <= EVERY_ROW;
        let count = if few { rows } else { rows.min(SOME_ROWS) };
        for i in 0..count {
            // First and last are among them.
            let row = if count > 1 { i * (rows - 1) / (count - 1) } else { 0 };
            let tensors = self.with_rows(&layouts, &[row]);
            let result = run_once(&*prepared, &tensors, self.case.placement(), None);
            self.compare("a row alone", result, Some(&|_| row))?;
        }
        self.summary.push(format!("{count} of {rows} rows alone"));
        Ok(())
    }

    fn rotated(&mut self) -> Result<(), End> {
        let rows = self.case.problem.rows();
        let layouts = self.layouts();
        let mut rotations = vec![1, rows / 2];
        rotations.retain(|&by| by > 0 && by < rows);
        rotations.dedup();
        for &by in &rotations {
            let order: Vec<usize> = (0..rows).map(|row| (row + by) % rows).collect();
            let tensors = self.with_rows(&layouts, &order);
            let result = run_once(&*self.prepared, &tensors, self.case.placement(), None);
            self.compare(&format!("rows rotated by {by}"), result, Some(&|row| order[row]))?;
        }
        if !rotations.is_empty() {
            self.summary.push("rows rotated".to_owned());
        }
        Ok(())
    }

    fn placements(&mut self, run: &Run) -> Result<(), End> {
        let placement = self.case.placement();
        let misaligned = Placement { misaligned: true, ..placement };
        let result = run_once(&*self.prepared, &self.tensors, misaligned, None);
        self.compare("misaligned", result, None)?;
        self.summary.push("misaligned".to_owned());

        let problem = &self.case.problem;
        // A sum with what dst held is another one in place.
        let alike = problem.src_dt == problem.dst_dt && !problem.attributes.reads_dst();
        if alike && self.case.can_work_in_place(&*self.prepared)? {
            let (other, what) = match placement.inplace {
                Some(_) => (None, "out of place"),
                None => (Some(problem.inplace_pair()), "in place"),
            };
            let other = Placement { inplace: other, ..placement };
            let result = run_once(&*self.prepared, &self.tensors, other, None);
            self.compare(what, result, None)?;
            self.summary.push(what.to_owned());
        }

        let mut request = self.request.clone();
        let src = self.tensors.iter().find(|tensor| tensor.name == "src").expect("an argument");
        let order = src.layout.order();
        for tensor in [&mut request.src, &mut request.dst] {
            let padded = Layout::ordered(&problem.dims, &order, PADDING, tensor.data_type);
            tensor.wanted = Wanted::Strided(padded);
        }
        let prepared = self.case.prepare(&request, run)?;
        let layouts = data::layouts(problem, &*prepared)?;
        let tensors = self.with_layouts(&layouts);
        let result = run_once(&*prepared, &tensors, placement, None);
        self.compare("rows further apart", result, None)?;
        self.summary.push("rows further apart".to_owned());
        Ok(())
    }

    fn float_modes(&mut self) -> Result<(), End> {
        for &mode in FloatMode::OTHERS {
            for threads in [1, THREADS[1]] {
                self.case.executor.set_threads(threads)?;
                let result =
                    run_once(&*self.prepared, &self.tensors, self.case.placement(), Some(mode));
                let what = format!("caller's {} with {threads} threads", mode.name());
                self.compare(&what, result, None)?;
            }
        }
        self.case.executor.set_threads(1)?;
        self.summary.push(format!("{} floating-point modes", FloatMode::OTHERS.len()));
        Ok(())
    }

    fn repeats(&mut self) -> Result<(), End> {
        let tensors = self.tensors.clone();
        let placed = Placed::new(&tensors, self.case.placement());
        let bound = self.prepared.bind(&placed.arguments(true))?;
        for _ in 0..REPEATS {
            let result = placed.run(&*bound, None);
            self.compare("repeated", result, None)?;
        }
        self.summary.push("repeats".to_owned());
        Ok(())
    }

    fn layouts(&self) -> Vec<(Spec, Layout)> {
        self.specs
            .iter()
            .zip(&self.tensors)
            .map(|(&spec, tensor)| (spec, tensor.layout.clone()))
            .collect()
    }

    /// The tensors in other layouts.
    fn with_layouts(&self, layouts: &[(Spec, Layout)]) -> Vec<Tensor> {
        let place = |(tensor, (_, layout)): (&Tensor, &(Spec, Layout))| Tensor {
            layout: layout.clone(),
            ..tensor.clone()
        };
        self.tensors.iter().zip(layouts).map(place).collect()
    }

    /// The elements that a tensor of the attributes has for each row; `None` if it is the same for
    /// all of them.
    fn operand_row(&self, tensor: &Tensor) -> Option<usize> {
        let dims = &self.case.problem.dims;
        let own = self.tensors.iter().find(|own| own.id == tensor.id)?;
        let last = dims.len() - 1;
        (own.layout.dims.len() == dims.len() && own.layout.dims[..last] == dims[..last])
            .then(|| own.layout.dims[last])
    }

    /// Whether a tensor of the attributes differs along some of the rows' dimensions alone, so
    /// that rows cannot be taken out or moved.
    fn rows_are_bound(&self) -> bool {
        let last = self.case.problem.dims.len() - 1;
        self.specs.iter().zip(&self.tensors).any(|(spec, tensor)| {
            matches!(spec.extent, Extent::Attribute(_))
                && self.operand_row(tensor).is_none()
                && tensor.layout.dims.len() > last
                && tensor.layout.dims[..last].iter().any(|&dim| dim > 1)
        })
    }

    /// The tensors with these rows of the problem, in this order.
    fn with_rows(&self, layouts: &[(Spec, Layout)], rows: &[usize]) -> Vec<Tensor> {
        let mut tensors = self.with_layouts(layouts);
        for (tensor, spec) in tensors.iter_mut().zip(&self.specs) {
            let size = spec.data_type.size();
            let bytes = match (spec.role, spec.extent) {
                (Role::Output | Role::Unused, _) | (_, Extent::Columns) => continue,
                // What is updated in place has no elements of its own.
                _ if tensor.elements.is_empty() => continue,
                (_, Extent::Elements) => self.case.problem.cols() * size,
                (_, Extent::Rows) => size,
                (_, Extent::Attribute(_)) => match self.operand_row(tensor) {
                    Some(columns) => columns * size,
                    None => continue,
                },
            };
            let row = |&row: &usize| &tensor.elements[row * bytes..][..bytes];
            let elements = rows.iter().flat_map(row).copied().collect();
            tensor.elements = Rc::new(elements);
        }
        tensors
    }
}

/// The first element whose bits differ, and how.
fn difference(dt: DataType, got: &[u8], want: &[u8]) -> Option<(usize, String)> {
    if got == want {
        return None;
    }
    let size = dt.size();
    let pairs = got.chunks_exact(size).zip(want.chunks_exact(size)).enumerate();
    for (at, (got, want)) in pairs.filter(|(_, (got, want))| got != want) {
        let (got_value, want_value) = (dt.decode(got)[0], dt.decode(want)[0]);
        if !(got_value.is_nan() && want_value.is_nan()) {
            let hex = |bytes: &[u8]| match *bytes {
                [a, b] => format!("{:04x}", u16::from_ne_bytes([a, b])),
                [a, b, c, d] => format!("{:08x}", u32::from_ne_bytes([a, b, c, d])),
                _ => format!("{bytes:02x?}"),
            };
            let (got, want) = (hex(got), hex(want));
            return Some((
                at,
                format!("has bits {got} ({got_value:?}), the baseline {want} ({want_value:?})"),
            ));
        }
    }
    None
}
