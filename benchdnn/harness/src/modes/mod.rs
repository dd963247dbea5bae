//! The modes of a problem: one file for each, the same for every driver.
//!
//! [`run`] decides whether a problem runs at all, chooses the implementation and runs the modes. A
//! mode sees a problem as [`Problem`], the library as [`Executor`](crate::library::Executor), and
//! names no driver. `case` is a problem on a library, `inputs` makes the tensors and their data,
//! `cache` keeps the oracle's results, and `memory` skips problems that do not fit.

mod bitwise;
mod cache;
mod case;
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
pub use case::Bench;

use crate::execution::run_once;
use crate::executor::Prepared;
use crate::fill::Fill;
use crate::outcome::{Halt, Outcome, Status};
use crate::problem::Problem;
use crate::report::Reporter;
use crate::run::{Mode, Run};
use case::Case;
use end::{End, outcome, skipped};

/// Runs the problem and returns its outcome. An error ends the whole run.
pub fn run(
    problem: &dyn Problem,
    bench: &Bench<'_>,
    run: &Run,
    reporter: &mut Reporter<'_>,
) -> Result<Outcome, Halt> {
    outcome(Case { problem, bench, run }.attempt(reporter))
}

impl Case<'_> {
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
