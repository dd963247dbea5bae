//! Mode B: the same bits, whatever the machine and the circumstances.
//!
//! One run of the problem on random data is the baseline: first implementation, one thread. Every
//! other run must give the same bits:
//!
//! - on each instruction-set level of the machine, with its first implementation and with those in its list that no
//!   earlier level had;
//! - on 2 and 3 threads, repeated until all of them took part, and on 7, as many of which take part as the scheduler
//!   allows;
//! - with each slice (such as a row) alone, and with the slices rotated. Outputs that sum over the
//!   slices are not compared here, since they depend on all of them and their order;
//! - with the problem's excerpts, such as a query alone, or with other keys around those that it sees;
//! - with padded rows, tensors one element off their alignment, in place and not;
//! - for a caller that has set another floating-point mode; and repeated.
//!
//! Any NaN equals any NaN.

mod excerpts;

use super::case::Case;
use super::end::End;
use super::inputs;
use crate::data_type::DataType;
use crate::execution::{Fault, Output, Pairs, Placed, Placement, Tensor, run_once};
use crate::executor::{CpuIsa, Prepared};
use crate::fill::Fill;
use crate::float_mode::FloatMode;
use crate::outcome::{Outcome, Status};
use crate::problem::{Part, Problem, Slices, Spec};
use crate::report::Reporter;
use crate::tensor::Layout;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Numbers of threads besides the baseline's one, which all have to take part.
const THREADS: [u64; 2] = [2, 3];
/// More threads, for which the work is split differently. On machines with fewer cores, waiting for all would be long.
const MANY_THREADS: u64 = 7;
/// The number of executions after which to stop waiting for all threads to take part, and how many of them follow each
/// other without a check. A sleeping thread comes too late for a short problem; one that has just worked is still awake
/// when the next execution begins.
const BURSTS: usize = 8;
const BURST: usize = 32;
/// The number of bursts after which a problem on which only one thread has worked counts as too small to split.
const BURSTS_ALONE: usize = 2;
/// When to give up on a problem whose single execution takes long.
const PATIENCE: Duration = Duration::from_secs(3);
/// Executions of the same primitive on the same data, and on [`MANY_THREADS`].
const REPEATS: usize = 3;
/// Problems with up to this many elements run every slice alone. Larger ones run the number below, spread evenly.
const EVERY_SLICE: usize = 1 << 20;
const SOME_SLICES: usize = 64;
/// Unused elements between rows: fewer than a vector and odd, so every row is aligned differently.
const PADDING: usize = 3;

/// Runs the problem in every way and compares the results.
pub(super) fn check(case: &Case<'_>, reporter: &mut Reporter<'_>) -> Result<Outcome, End> {
    let mut comparison = Comparison::baseline(case, reporter)?;
    let result = comparison.all();
    // Restores the settings for later problems and modes.
    case.set_machine()?;
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
    case: &'c Case<'c>,
    specs: Vec<Spec>,
    /// None if the problem has no slices.
    slices: Option<Slices>,
    prepared: Box<dyn Prepared>,
    tensors: Vec<Tensor>,
    baseline: Vec<Output>,
    /// A readable list of what was compared.
    summary: Vec<String>,
    /// What differed.
    differences: Vec<String>,
    runs: usize,
    shared: bool,
}

impl<'c> Comparison<'c> {
    fn baseline(case: &'c Case<'c>, reporter: &mut Reporter<'_>) -> Result<Comparison<'c>, End> {
        case.library().set_threads(1)?;
        let prepared = case.prepare()?;
        let tensors = case.tensors(&*prepared, Fill::Random, reporter)?;
        let baseline = run_once(&*prepared, &tensors, case.placement(), None)?;
        let specs = case.problem.tensors();
        let problem = case.problem;
        let slices = problem.slices().filter(|slices| !are_bound(slices, problem, &specs));
        Ok(Comparison {
            case,
            specs,
            slices,
            prepared,
            tensors,
            baseline,
            summary: Vec::new(),
            differences: Vec::new(),
            runs: 1,
            shared: false,
        })
    }

    fn all(&mut self) -> Result<(), End> {
        self.levels()?;
        self.case.set_machine()?;
        self.threads()?;
        self.case.library().set_threads(1)?;
        if let Some(slices) = self.slices.take() {
            self.alone(&slices)?;
            self.rotated(&slices)?;
        }
        self.excerpts()?;
        self.placements()?;
        self.float_modes()?;
        self.repeats()
    }

    /// Compares a run's outputs with the baseline.
    fn compare(&mut self, what: &str, result: Result<Vec<Output>, Fault>) -> Result<(), End> {
        let Some(outputs) = self.outputs(what, result)? else { return Ok(()) };
        for (output, expected) in outputs.iter().zip(&self.baseline) {
            let spec = spec(&self.specs, output.id);
            let (got, want) = (&output.elements, &expected.elements);
            if let Some((at, difference)) = difference(spec.data_type, got, want) {
                let at = expected.layout.coordinates(at);
                self.differences.push(format!("{what}: {}{at} {difference}", spec.name));
            }
        }
        Ok(())
    }

    /// Compares the slices of a run with the baseline's slices that they repeat.
    fn compare_slices(
        &mut self,
        what: &str,
        result: Result<Vec<Output>, Fault>,
        slices: &Slices,
        of_baseline: impl Fn(usize) -> usize,
    ) -> Result<(), End> {
        let Some(outputs) = self.outputs(what, result)? else { return Ok(()) };
        for (output, expected) in outputs.iter().zip(&self.baseline) {
            let spec = spec(&self.specs, output.id);
            if !spec.sliced {
                continue;
            }
            let per_slice = per_slice(slices, spec);
            let bytes = (per_slice * spec.data_type.size()).max(1);
            for (slice, got) in output.elements.chunks(bytes).enumerate() {
                let place = of_baseline(slice);
                let want = &expected.elements[place * bytes..][..got.len()];
                if let Some((at, difference)) = difference(spec.data_type, got, want) {
                    let at = expected.layout.coordinates(place * per_slice + at);
                    self.differences.push(format!("{what}: {}{at} {difference}", spec.name));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Counts a run; `None` if it violated the contract.
    fn outputs(
        &mut self,
        what: &str,
        result: Result<Vec<Output>, Fault>,
    ) -> Result<Option<Vec<Output>>, End> {
        self.runs += 1;
        match result {
            Ok(outputs) => Ok(Some(outputs)),
            Err(Fault::Damaged(damage)) => {
                self.differences.push(format!("{what}: {damage}"));
                Ok(None)
            }
            Err(fault) => Err(fault.into()),
        }
    }

    fn levels(&mut self) -> Result<(), End> {
        let request = self.case.problem.request();
        let mut levels = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for level in CpuIsa::LEVELS {
            if !self.case.library().set_cpu_isa(level)? {
                continue;
            }
            levels.push(level.name());
            let mut prepared = self.case.library().prepare(&*request)?;
            let mut first = true;
            loop {
                let name = prepared.implementation();
                let is_new = !names.contains(&name);
                if first || is_new {
                    let result = run_once(&*prepared, &self.tensors, self.case.placement(), None);
                    self.compare(&format!("{} {name}", level.name()), result)?;
                }
                if is_new {
                    names.push(name);
                }
                first = false;
                if !prepared.next_implementation()? {
                    break;
                }
            }
        }
        self.summary.push(format!("levels {}", levels.join(", ")));
        self.summary.push(format!("implementations {}", names.join(", ")));
        Ok(())
    }

    fn threads(&mut self) -> Result<(), End> {
        let mut most_seen = Vec::new();
        for threads in THREADS {
            self.case.library().set_threads(threads)?;
            let prepared = self.case.prepare()?;
            let tensors = self.tensors.clone();
            let placed = Placed::new(&tensors, self.case.placement());
            let bound = prepared.bind(&placed.arguments(true))?;
            let (start, most) = (Instant::now(), Cell::new(0));
            let library = self.case.library();
            for burst in 1..=BURSTS {
                let enough = || {
                    most.set(most.get().max(library.last_threads()));
                    most.get() >= threads
                };
                let result = placed.run_until(&*bound, BURST, enough);
                self.compare(&format!("{threads} threads"), result)?;
                let too_small = burst >= BURSTS_ALONE && most.get() <= 1;
                let out_of_time = start.elapsed() > PATIENCE;
                if most.get() >= threads || too_small || out_of_time || !self.differences.is_empty()
                {
                    break;
                }
            }
            most_seen.push(most.get());
        }
        let many = self.many_threads()?;
        self.shared = most_seen.iter().zip(THREADS).all(|(&most, threads)| most >= threads);
        self.summary.push(if self.shared {
            format!("threads 1, 2 and 3, each at work, and {many} of {MANY_THREADS}")
        } else if most_seen.iter().all(|&most| most <= 1) && many <= 1 {
            "threads: one does all the work, too small to split".to_owned()
        } else {
            let [two, three] = [most_seen[0], most_seen[1]];
            format!("threads at work: {two} of 2, {three} of 3, {many} of {MANY_THREADS}")
        });
        Ok(())
    }

    /// Runs on [`MANY_THREADS`]. Returns how many of them took part at once.
    fn many_threads(&mut self) -> Result<u64, End> {
        let library = self.case.library();
        library.set_threads(MANY_THREADS)?;
        let prepared = self.case.prepare()?;
        let tensors = self.tensors.clone();
        let placed = Placed::new(&tensors, self.case.placement());
        let bound = prepared.bind(&placed.arguments(true))?;
        let most = Cell::new(0);
        let result = placed.run_until(&*bound, REPEATS, || {
            most.set(most.get().max(library.last_threads()));
            false
        });
        self.compare(&format!("{MANY_THREADS} threads"), result)?;
        Ok(most.get())
    }

    fn alone(&mut self, slices: &Slices) -> Result<(), End> {
        let (count, noun) = (slices.count(), slices.noun);
        let one = self.case.with(&*slices.one);
        let prepared = one.prepare()?;
        let layouts = inputs::layouts(&slices.one.tensors(), &*prepared)?;
        let few = self.specs[0].count() <= EVERY_SLICE;
        let tried = if few { count } else { count.min(SOME_SLICES) };
        for i in 0..tried {
            // The first and the last are included.
            let slice = if tried > 1 { i * (count - 1) / (tried - 1) } else { 0 };
            let tensors = self.with_slices(&layouts, slices, &[slice]);
            let result = run_once(&*prepared, &tensors, self.case.placement(), None);
            self.compare_slices(&format!("a {noun} alone"), result, slices, |_| slice)?;
        }
        self.summary.push(format!("{tried} of {count} {noun}s alone"));
        Ok(())
    }

    fn rotated(&mut self, slices: &Slices) -> Result<(), End> {
        let (count, noun) = (slices.count(), slices.noun);
        let layouts: Vec<Layout> = self.tensors.iter().map(|it| it.layout.clone()).collect();
        let mut rotations = vec![1, count / 2];
        rotations.retain(|&by| by > 0 && by < count);
        rotations.dedup();
        for &by in &rotations {
            let order: Vec<usize> = (0..count).map(|slice| (slice + by) % count).collect();
            let tensors = self.with_slices(&layouts, slices, &order);
            let result = run_once(&*self.prepared, &tensors, self.case.placement(), None);
            let what = format!("{noun}s rotated by {by}");
            self.compare_slices(&what, result, slices, |slice| order[slice])?;
        }
        if !rotations.is_empty() {
            self.summary.push(format!("{noun}s rotated"));
        }
        Ok(())
    }

    fn placements(&mut self) -> Result<(), End> {
        let placement = self.case.placement();
        let misaligned = Placement { misaligned: true, ..placement };
        let result = run_once(&*self.prepared, &self.tensors, misaligned, None);
        self.compare("misaligned", result)?;
        self.summary.push("misaligned".to_owned());
        self.other_place(placement)?;
        self.padded(placement)
    }

    /// Runs in place if the problem is not in place, and vice versa.
    fn other_place(&mut self, placement: Placement) -> Result<(), End> {
        let problem = self.case.problem;
        // In place, a sum adds to other values.
        let sums = problem.attributes().reads_dst();
        let Some(pair) = problem.inplace_pair() else { return Ok(()) };
        if sums || !self.case.can_work_in_place(&[pair], &*self.prepared)? {
            return Ok(());
        }
        let (inplace, what) = match placement.inplace.is_empty() {
            false => (Pairs::default(), "out of place"),
            true => (Pairs::new(&[pair]), "in place"),
        };
        let other = Placement { inplace, ..placement };
        let result = run_once(&*self.prepared, &self.tensors, other, None);
        self.compare(what, result)?;
        self.summary.push(what.to_owned());
        Ok(())
    }

    fn padded(&mut self, placement: Placement) -> Result<(), End> {
        let order = self.tensors[0].layout.order();
        let padded = |spec: &Spec| {
            let order = match spec.dims.len() == order.len() {
                true => order.clone(),
                false => (0..spec.dims.len()).collect(),
            };
            (spec.id, Layout::ordered(&spec.dims, &order, PADDING, spec.data_type))
        };
        let main = self.specs.iter().filter(|spec| spec.part == Part::Main);
        let padded: Vec<(i32, Layout)> = main.map(padded).collect();
        let Some(request) = self.case.problem.request_with(&padded) else {
            return Ok(());
        };
        let prepared = self.case.prepare_as(&*request)?;
        let layouts = inputs::layouts(&self.specs, &*prepared)?;
        let tensors = self.with_layouts(&layouts);
        let result = run_once(&*prepared, &tensors, placement, None);
        self.compare("rows further apart", result)?;
        self.summary.push("rows further apart".to_owned());
        Ok(())
    }

    fn float_modes(&mut self) -> Result<(), End> {
        for &mode in FloatMode::OTHERS {
            for threads in [1, THREADS[1]] {
                self.case.library().set_threads(threads)?;
                let result =
                    run_once(&*self.prepared, &self.tensors, self.case.placement(), Some(mode));
                let what = format!("caller's {} with {threads} threads", mode.name());
                self.compare(&what, result)?;
            }
        }
        self.case.library().set_threads(1)?;
        self.summary.push(format!("{} floating-point modes", FloatMode::OTHERS.len()));
        Ok(())
    }

    fn repeats(&mut self) -> Result<(), End> {
        let tensors = self.tensors.clone();
        let placed = Placed::new(&tensors, self.case.placement());
        let bound = self.prepared.bind(&placed.arguments(true))?;
        for _ in 0..REPEATS {
            let result = placed.run(&*bound, None);
            self.compare("repeated", result)?;
        }
        self.summary.push("repeats".to_owned());
        Ok(())
    }

    /// The tensors in other layouts.
    fn with_layouts(&self, layouts: &[Layout]) -> Vec<Tensor> {
        let place = |(tensor, layout): (&Tensor, &Layout)| Tensor {
            layout: layout.clone(),
            ..tensor.clone()
        };
        self.tensors.iter().zip(layouts).map(place).collect()
    }

    /// The tensors with these slices of the problem, in this order.
    fn with_slices(&self, layouts: &[Layout], slices: &Slices, order: &[usize]) -> Vec<Tensor> {
        let mut tensors = self.with_layouts(layouts);
        for (tensor, spec) in tensors.iter_mut().zip(&self.specs) {
            // Outputs, and tensors that are updated in place, have no elements of their own.
            if !spec.sliced || tensor.elements.is_empty() {
                continue;
            }
            let bytes = per_slice(slices, spec) * spec.data_type.size();
            let slice = |&slice: &usize| &tensor.elements[slice * bytes..][..bytes];
            let elements = order.iter().flat_map(slice).copied().collect();
            tensor.elements = Rc::new(elements);
        }
        tensors
    }
}

fn spec(specs: &[Spec], id: i32) -> &Spec {
    specs.iter().find(|spec| spec.id == id).expect("an argument of the problem")
}

/// The number of elements of a tensor in each slice.
fn per_slice(slices: &Slices, spec: &Spec) -> usize {
    spec.dims[slices.dims.len()..].iter().product()
}

/// Whether a tensor of an attribute differs along only some of the slices' dimensions, so that slices cannot be taken
/// out or moved.
fn are_bound(slices: &Slices, problem: &dyn Problem, specs: &[Spec]) -> bool {
    let (ndims, leading) = (specs[0].dims.len(), slices.dims.len());
    specs[problem.own_tensors().len()..].iter().any(|spec| {
        let broadcast = !spec.sliced && spec.dims.len() == ndims;
        broadcast && spec.dims[..leading].iter().any(|&dim| dim > 1)
    })
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
