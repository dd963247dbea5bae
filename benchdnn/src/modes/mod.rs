//! The modes of a problem: one file for each, the same for every driver.
//!
//! [`run`] decides whether a problem runs at all, chooses the implementation and runs the modes. A
//! mode sees a problem as [`Problem`], the library as [`Executor`], and names no driver. `inputs`
//! makes the tensors and their data, `cache` keeps the oracle's results, and `memory` skips problems
//! that do not fit.

mod bitwise;
mod cache;
mod comparison;
mod correctness;
mod creation;
mod end;
mod explain;
mod gradient;
mod inputs;
mod memory;
mod performance;

pub use cache::Cache;

use crate::execution::{Fault, Pairs, Placement, run_once};
use crate::executor::{Prepared, Refusal, RefusalKind};
use crate::fill::Fill;
use crate::library::{Executor, Request};
use crate::outcome::{Halt, Outcome, Status};
use crate::problem::{Problem, Spec};
use crate::report::Reporter;
use crate::run::{Mode, Run};
use crate::tensor::Layout;
use end::{End, outcome, skipped};
use std::cell::RefCell;

/// What problems share: the library, and recent results of the oracle.
pub struct Bench<'b> {
    /// The library under test.
    pub library: &'b dyn Executor,
    /// The oracle's results.
    pub cache: RefCell<Cache>,
}

/// Runs the problem and returns its outcome. An error ends the whole run.
pub fn run(
    problem: &dyn Problem,
    bench: &Bench<'_>,
    run: &Run,
    reporter: &mut Reporter<'_>,
) -> Result<Outcome, Halt> {
    outcome(Case { problem, bench, run }.attempt(reporter))
}

/// A problem, the library to run it on, and how.
#[derive(Clone, Copy)]
struct Case<'c> {
    problem: &'c dyn Problem,
    bench: &'c Bench<'c>,
    run: &'c Run,
}

impl<'c> Case<'c> {
    /// The same with another problem.
    fn with(&self, problem: &'c dyn Problem) -> Case<'c> {
        Case { problem, ..*self }
    }

    fn library(&self) -> &'c dyn Executor {
        self.bench.library
    }

    /// How many threads the problem or the run requires; 0 is the library's default.
    fn wanted_threads(&self) -> u64 {
        self.problem.contexts()[1].0.unwrap_or(self.run.threads)
    }

    /// Sets threads and instruction set as the run requires.
    fn set_machine(&self) -> Result<(), End> {
        self.library().set_threads(self.wanted_threads())?;
        if !self.library().set_cpu_isa(self.run.cpu_isa)? {
            let isa = self.run.cpu_isa.name();
            return Err(skipped(format!("this machine has no {isa}")));
        }
        Ok(())
    }

    /// Prepares the problem with the first implementation that the run admits.
    fn prepare(&self) -> Result<Box<dyn Prepared>, End> {
        self.prepare_as(&*self.problem.request())
    }

    /// The same with another request for the problem.
    fn prepare_as(&self, request: &dyn Request) -> Result<Box<dyn Prepared>, End> {
        let mut prepared = match self.library().prepare(request) {
            Ok(prepared) => prepared,
            Err(refusal @ Refusal { kind: RefusalKind::Unimplemented, .. }) => {
                return Err(match self.problem.unimplemented_reason() {
                    Some(reason) => skipped(reason),
                    None => refusal.into(),
                });
            }
            Err(refusal) => return Err(refusal.into()),
        };
        while !self.run.filter.admits(&prepared.implementation()) {
            if !prepared.next_implementation()? {
                return Err(skipped("no implementation is allowed".to_owned()));
            }
        }
        Ok(prepared)
    }

    /// The placement of the buffers, in place if the problem is.
    fn placement(&self) -> Placement {
        let inplace = Pairs::new(&self.problem.shared_buffers());
        Placement { inplace, ..Placement::default() }
    }

    /// Whether the tensors of these pairs have the same layout.
    fn can_share(&self, pairs: &[(i32, i32)], specs: &[Spec], layouts: &[Layout]) -> bool {
        let layout = |id| specs.iter().position(|spec| spec.id == id).map(|at| &layouts[at]);
        pairs.iter().all(|&(input, output)| match (layout(input), layout(output)) {
            (Some(input), Some(output)) => input.same_places(output),
            _ => false,
        })
    }

    /// The same for the layouts of a prepared problem.
    fn can_work_in_place(
        &self,
        pairs: &[(i32, i32)],
        prepared: &dyn Prepared,
    ) -> Result<bool, Fault> {
        let specs = self.problem.tensors();
        let layouts = inputs::layouts(&specs, prepared)?;
        Ok(self.can_share(pairs, &specs, &layouts))
    }

    fn attempt(&self, reporter: &mut Reporter<'_>) -> Result<Outcome, End> {
        let (problem, run) = (self.problem, self.run);
        if let Some(reason) = problem.too_large() {
            return Err(skipped(reason));
        }
        let absent = problem.attributes().absent_type();
        let absent = absent.map(|name| format!("the library has no {name}"));
        if let Some(reason) = problem.skip_reason().or(absent) {
            return Err(skipped(reason));
        }
        self.set_machine()?;
        let prepared = self.prepare()?;
        let implementation = prepared.implementation();
        reporter.detail(5, &format!("implementation: {implementation}"));
        if run.check_ref_impl && implementation.contains("ref") {
            let reason = format!("{implementation} is a reference implementation");
            return Ok(Outcome::because(Status::Failed, reason));
        }
        if run.same_pd && !problem.attributes().is_default() {
            let plain = problem.without_attributes();
            let other = self.prepare_as(&*plain.request())?.implementation();
            if other != implementation {
                let reason = format!("attributes lead from {other} to {implementation}");
                return Ok(Outcome::because(Status::Failed, reason));
            }
        }
        if !self.can_work_in_place(&problem.shared_buffers(), &*prepared)? {
            return Err(skipped("in place needs src and dst with the same layout".to_owned()));
        }
        let outcome = self.execute(&*prepared, reporter)?;
        Ok(Outcome { implementation: Some(implementation), ..outcome })
    }

    fn execute(
        &self,
        prepared: &dyn Prepared,
        reporter: &mut Reporter<'_>,
    ) -> Result<Outcome, End> {
        if self.run.mode == Mode::Initialize {
            let (creation, compared) = creation::measure(self, prepared)?;
            return Ok(Outcome { creation, compared, ..Outcome::new(Status::Initialized) });
        }
        memory::check(self, prepared)?;
        if self.run.explain {
            explain::explain(self, prepared, reporter)?;
        }
        let Mode::Check(checks) = self.run.mode else {
            let tensors = self.tensors(prepared, Fill::Exact, reporter)?;
            run_once(prepared, &tensors, self.placement(), None)?;
            return Ok(Outcome::new(Status::Executed));
        };
        let mut outcome = Outcome::new(Status::Executed);
        if checks.correctness {
            outcome = match self.run.gradient {
                true => gradient::check(self, reporter)?,
                false => correctness::check(self, prepared, reporter)?,
            };
        }
        if checks.bitwise && !outcome.status.is_failure() {
            let correctness = outcome;
            outcome = bitwise::check(self, reporter)?;
            if correctness.status == Status::Mistrusted && outcome.status == Status::Passed {
                outcome.status = correctness.status;
            }
            outcome.compared = correctness.compared;
        }
        if checks.performance && !outcome.status.is_failure() {
            let (performance, compared) = performance::measure(self, prepared, reporter)?;
            outcome.performance = Some(Box::new(performance));
            outcome.compared = outcome.compared.or(compared);
        }
        Ok(outcome)
    }
}
