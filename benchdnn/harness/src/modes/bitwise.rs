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

mod baseline;
mod excerpts;

use super::case::Case;
use super::end::End;
use super::inputs;
use crate::execution::{Pairs, Placed, Placement, run_once};
use crate::executor::CpuIsa;
use crate::float_mode::FloatMode;
use crate::outcome::{Outcome, Status};
use crate::problem::{Part, Slices, Spec};
use crate::report::Reporter;
use crate::tensor::Layout;
use baseline::Comparison;
use std::cell::Cell;
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

impl Comparison<'_> {
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
        let tensors = self.tensors.clone();
        let placed = Placed::new(&tensors, self.case.placement());
        let bound = self.prepared.bind(&placed.arguments(true))?;
        for &mode in FloatMode::OTHERS {
            for threads in [1, THREADS[1]] {
                self.case.library().set_threads(threads)?;
                let result = placed.run(&*bound, Some(mode));
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
}
