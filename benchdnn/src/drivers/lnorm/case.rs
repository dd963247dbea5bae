//! Running one problem: choosing the implementation, what keeps it from running, and the modes.

use super::arguments::Spec;
use super::bitwise;
use super::correctness;
use super::creation;
use super::data::{self, Cache, Inputs, Prediction};
use super::executor::{Executor, Request, Wanted};
use super::gradient;
use super::performance;
use super::problem::Problem;
use crate::attributes::{Attributes, PostOp};
pub(super) use crate::drivers::end::End;
use crate::drivers::end::{outcome, skipped};
use crate::execution::{Fault, Placement, Tensor, run_once};
use crate::executor::{Prepared, Refusal, RefusalKind};
use crate::fill::Fill;
use crate::library::has_tag;
use crate::outcome::{Halt, Outcome, Status};
use crate::report::Reporter;
use crate::run::{Mode, Run};
use crate::tensor::{Layout, Tag};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// A problem and the executor to run it on.
pub(super) struct Case {
    pub(super) problem: Problem,
    pub(super) executor: Rc<dyn Executor>,
    cache: Rc<RefCell<Cache>>,
}

impl Case {
    pub(super) fn new(
        problem: Problem,
        executor: Rc<dyn Executor>,
        cache: Rc<RefCell<Cache>>,
    ) -> Case {
        Case { problem, executor, cache }
    }

    /// Sets the machine up as the run wants it.
    pub(super) fn set_machine(&self, run: &Run) -> Result<(), End> {
        self.executor.set_threads(self.problem.contexts[1].0.unwrap_or(run.threads))?;
        if !self.executor.set_cpu_isa(run.cpu_isa)? {
            let isa = run.cpu_isa.name();
            return Err(skipped(format!("this machine has no {isa}")));
        }
        Ok(())
    }

    /// Prepares the request with the first implementation that the run admits.
    pub(super) fn prepare(&self, request: &Request, run: &Run) -> Result<Box<dyn Prepared>, End> {
        let mut prepared = match self.executor.prepare(request) {
            Ok(prepared) => prepared,
            // As a refusal it would fail a batch that asks for it in passing.
            Err(Refusal { kind: RefusalKind::Unimplemented, .. }) if foreign(request).is_some() => {
                let post_op = foreign(request).unwrap_or_default();
                return Err(skipped(format!("layer normalization has no post-op {post_op}")));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        while !run.filter.admits(&prepared.implementation()) {
            if !prepared.next_implementation()? {
                return Err(skipped("no implementation is admitted".to_owned()));
            }
        }
        Ok(prepared)
    }

    /// Where the tensors lie, in place or not as the problem says.
    pub(super) fn placement(&self) -> Placement {
        let inplace = self.problem.inplace.then(|| self.problem.inplace_pair());
        Placement { inplace, ..Placement::default() }
    }

    fn attempt(&self, run: &Run, reporter: &mut Reporter<'_>) -> Result<Outcome, End> {
        let problem = &self.problem;
        if problem.inplace && problem.src_dt != problem.dst_dt {
            return Err(skipped("in place needs src and dst of one type".to_owned()));
        }
        self.set_machine(run)?;
        let prepared = self.prepare(&problem.request(), run)?;
        let implementation = prepared.implementation();
        reporter.detail(5, &format!("implementation: {implementation}"));
        if run.check_ref_impl && implementation.contains("ref") {
            let reason = format!("{implementation} is a reference implementation");
            return Ok(Outcome::because(Status::Failed, reason));
        }
        if run.same_pd && !problem.attributes.is_default() {
            let plain = Request { attributes: Attributes::default(), ..problem.request() };
            let other = self.prepare(&plain, run)?.implementation();
            if other != implementation {
                let reason = format!("attributes lead from {other} to {implementation}");
                return Ok(Outcome::because(Status::Failed, reason));
            }
        }
        if problem.inplace && !self.can_work_in_place(&*prepared)? {
            return Err(skipped("in place needs src and dst of one layout".to_owned()));
        }
        let outcome = self.execute(&*prepared, run, reporter)?;
        Ok(Outcome { implementation: Some(implementation), ..outcome })
    }

    fn execute(
        &self,
        prepared: &dyn Prepared,
        run: &Run,
        reporter: &mut Reporter<'_>,
    ) -> Result<Outcome, End> {
        if run.mode == Mode::Initialize {
            let (creation, compared) = creation::measure(self, prepared, run)?;
            return Ok(Outcome { creation, compared, ..Outcome::new(Status::Initialized) });
        }
        let Mode::Check(checks) = run.mode else {
            let tensors = self.tensors(prepared, Fill::Exact, run, reporter)?;
            run_once(prepared, &tensors, self.placement(), None)?;
            return Ok(Outcome::new(Status::Executed));
        };
        let mut outcome = Outcome::new(Status::Executed);
        if checks.correctness {
            outcome = match run.gradient {
                true => gradient::check(self, run, reporter)?,
                false => correctness::check(self, prepared, run, reporter)?,
            };
        }
        if checks.bitwise && !outcome.status.is_failure() {
            let correctness = outcome;
            outcome = bitwise::check(self, run, reporter)?;
            if correctness.status == Status::Mistrusted && outcome.status == Status::Passed {
                outcome.status = correctness.status;
            }
            outcome.compared = correctness.compared;
        }
        if checks.performance && !outcome.status.is_failure() {
            let (performance, compared) = performance::measure(self, prepared, run, reporter)?;
            outcome.performance = Some(Box::new(performance));
            outcome.compared = outcome.compared.or(compared);
        }
        Ok(outcome)
    }

    /// Whether the two tensors of the pair lie alike.
    pub(super) fn can_work_in_place(&self, prepared: &dyn Prepared) -> Result<bool, Fault> {
        Ok(self.lie_alike(&data::layouts(&self.problem, prepared)?))
    }

    /// Whether these layouts are alike where the problem works in place.
    pub(super) fn lie_alike(&self, layouts: &[(Spec, Layout)]) -> bool {
        let (input, output) = self.problem.inplace_pair();
        let layout = |id| layouts.iter().find(|(spec, _)| spec.id == id).map(|(_, layout)| layout);
        match (layout(input), layout(output)) {
            (Some(input), Some(output)) => input.same_places(output),
            _ => false,
        }
    }

    /// The problem's tensors with data of this kind, or that of the run's files.
    pub(super) fn tensors(
        &self,
        prepared: &dyn Prepared,
        fill: Fill,
        run: &Run,
        reporter: &mut Reporter<'_>,
    ) -> Result<Vec<Tensor>, End> {
        let layouts = data::layouts(&self.problem, prepared)?;
        let own = Rc::new(data::make(&self.problem.shape(), fill));
        let mut values = Inputs::new(&self.problem, own);
        if !run.buffer_prefix.is_empty() {
            data::import(&run.buffer_prefix, &self.problem, &layouts, &mut values, reporter)?;
        }
        Ok(data::tensors(&layouts, &values))
    }

    /// The problem's tensors with exact data (or that of the run's files) and what comes of them.
    pub(super) fn prediction(
        &self,
        prepared: &dyn Prepared,
        run: &Run,
        reporter: &mut Reporter<'_>,
    ) -> Result<(Vec<Tensor>, Rc<Prediction>), End> {
        let layouts = data::layouts(&self.problem, prepared)?;
        let prediction = if run.buffer_prefix.is_empty() {
            self.cache.borrow_mut().prediction(&self.problem)
        } else {
            let own = Rc::new(data::make(&self.problem.shape(), Fill::Exact));
            let mut values = Inputs::new(&self.problem, own);
            data::import(&run.buffer_prefix, &self.problem, &layouts, &mut values, reporter)?;
            Rc::new(data::predict(&self.problem, values))
        };
        Ok((data::tensors(&layouts, &prediction.data), prediction))
    }
}

/// A post-op among the request's that belongs to other primitives.
fn foreign(request: &Request) -> Option<&'static str> {
    request.attributes.post_ops.value.iter().find_map(|post_op| match post_op {
        PostOp::Sum { .. } => Some("sum"),
        PostOp::Depthwise { .. } => Some("dw"),
        PostOp::Prelu(_) => Some("prelu"),
        PostOp::Eltwise { .. } | PostOp::Binary(_) => None,
    })
}

impl fmt::Debug for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(out)
    }
}

impl crate::drivers::Problem for Case {
    fn line(&self, canonical: bool) -> String {
        self.problem.line(canonical)
    }

    fn entry(&self, name: &str) -> Option<String> {
        self.problem.entry(name)
    }

    fn unlisted_tag(&self) -> Option<String> {
        let Request { dims, src, dst, stat, .. } = self.problem.request();
        [(src, "tag"), (dst, "tag"), (stat, "stat_tag")].into_iter().find_map(|(tensor, option)| {
            match tensor.wanted {
                Wanted::Ordered(order) if !has_tag(&order) => {
                    let letters = Tag::letters(&order);
                    let count = dims.len();
                    Some(format!("no tag {letters}, for --{option} with {count} dimensions"))
                }
                _ => None,
            }
        })
    }

    fn name(&self) -> &str {
        &self.problem.name
    }

    fn run(&self, run: &Run, reporter: &mut Reporter<'_>) -> Result<Outcome, Halt> {
        outcome(self.attempt(run, reporter))
    }
}
