//! Running one problem.

use super::data::Inputs;
use super::library::{Executor, Request};
use super::problem::Problem;
use crate::check;
use crate::drivers::end::{End, outcome, skipped};
use crate::execution::{Output, Placed, Placement, Role, Tensor, run_once};
use crate::executor::{CpuIsa, Prepared};
use crate::library::has_tag;
use crate::outcome::{Halt, Outcome, Performance, Status};
use crate::report::Reporter;
use crate::run::{Mode, Run};
use crate::tensor::Tag;
use crate::timing::{self, Timing};
use crate::verdict;
use norm_sys::{NORM_ARG_DST, NORM_ARG_SRC};
use std::fmt;
use std::rc::Rc;
use std::time::Instant;

/// A problem and the executor to run it on.
pub(super) struct Case {
    problem: Problem,
    executor: Rc<dyn Executor>,
}

/// Numbers of threads beside one in mode B.
const THREADS: [u64; 2] = [2, 3];

impl Case {
    pub(super) fn new(problem: Problem, executor: Rc<dyn Executor>) -> Case {
        Case { problem, executor }
    }

    fn set_machine(&self, run: &Run) -> Result<(), End> {
        self.executor.set_threads(self.problem.contexts[1].0.unwrap_or(run.threads))?;
        if !self.executor.set_cpu_isa(run.cpu_isa)? {
            let isa = run.cpu_isa.name();
            return Err(skipped(format!("this machine has no {isa}")));
        }
        Ok(())
    }

    fn prepare(&self, run: &Run) -> Result<Box<dyn Prepared>, End> {
        let mut prepared = self.executor.prepare(&self.problem.request())?;
        while !run.filter.admits(&prepared.implementation()) {
            if !prepared.next_implementation()? {
                return Err(skipped("no implementation is admitted".to_owned()));
            }
        }
        Ok(prepared)
    }

    fn attempt(&self, run: &Run, reporter: &mut Reporter<'_>) -> Result<Outcome, End> {
        if !self.problem.extra.is_empty() {
            return Err(skipped("compensation for convolutions is not built".to_owned()));
        }
        if self.problem.runtime_dims != 0 {
            return Err(skipped("dimensions known at execution alone are not built".to_owned()));
        }
        if run.peer.is_some() || run.gradient {
            return Err(skipped("reorder has neither --compare nor --check=grad".to_owned()));
        }
        let sides = [(NORM_ARG_SRC, self.problem.src_dt), (NORM_ARG_DST, self.problem.dst_dt)];
        for (argument, data_type) in sides {
            if self.problem.attributes.zero_point(argument).is_some() && !data_type.is_integer() {
                let name = data_type.name();
                return Err(skipped(format!("zero points are for whole numbers, not {name}")));
            }
        }
        self.set_machine(run)?;
        let prepared = self.prepare(run)?;
        let implementation = prepared.implementation();
        reporter.detail(5, &format!("implementation: {implementation}"));
        if run.check_ref_impl && implementation.contains("ref") {
            let reason = format!("{implementation} is a reference implementation");
            return Ok(Outcome::because(Status::Failed, reason));
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
            prepared.bind(&[])?;
            return Ok(Outcome::new(Status::Initialized));
        }
        let inputs = Inputs::new(&self.problem);
        let tensors = inputs.tensors(&self.problem);
        let Mode::Check(checks) = run.mode else {
            run_once(prepared, &tensors, Placement::default(), None)?;
            return Ok(Outcome::new(Status::Executed));
        };
        let mut outcome = Outcome::new(Status::Executed);
        if checks.correctness {
            outcome = self.correctness(prepared, &inputs, &tensors, reporter)?;
        }
        if checks.bitwise && !outcome.status.is_failure() {
            let bits = self.bitwise(run, &tensors, reporter);
            self.set_machine(run)?;
            outcome = bits?;
        }
        if checks.performance && !outcome.status.is_failure() {
            outcome.performance = Some(Box::new(self.performance(prepared, &tensors, run)?));
        }
        Ok(outcome)
    }

    fn correctness(
        &self,
        prepared: &dyn Prepared,
        inputs: &Inputs,
        tensors: &[Tensor],
        reporter: &mut Reporter<'_>,
    ) -> Result<Outcome, End> {
        let outputs = run_once(prepared, tensors, Placement::default(), None)?;
        let dst = outputs.iter().find(|output| output.id == NORM_ARG_DST).expect("it is an output");
        let check = verdict::compare(dst, &inputs.expected(&self.problem), reporter);
        if !check.passed() {
            let reason = format!("dst has {} wrong of {}", check.failed, check.total);
            return Ok(Outcome::because(Status::Failed, reason));
        }
        if self.problem.count() > 0 && check::mistrusted(&[check]) {
            let reason = "too few results that could not be right by chance";
            return Ok(Outcome::because(Status::Mistrusted, reason));
        }
        Ok(Outcome::new(Status::Passed))
    }

    /// The same bits on every level, by every implementation, with 1 to 3 threads, and one element
    /// off the alignment.
    fn bitwise(
        &self,
        run: &Run,
        tensors: &[Tensor],
        reporter: &mut Reporter<'_>,
    ) -> Result<Outcome, End> {
        self.executor.set_threads(1)?;
        let request = self.problem.request();
        let baseline = run_once(&*self.prepare(run)?, tensors, Placement::default(), None)?;
        let mut differences = Vec::new();
        let mut compare = |what: String, outputs: Vec<Output>| {
            let pairs = outputs.iter().zip(&baseline);
            if pairs.into_iter().any(|(output, other)| output.elements != other.elements) {
                differences.push(what);
            }
        };
        for level in CpuIsa::LEVELS {
            if !self.executor.set_cpu_isa(level)? {
                continue;
            }
            let mut prepared = self.executor.prepare(&request)?;
            loop {
                let outputs = run_once(&*prepared, tensors, Placement::default(), None)?;
                compare(format!("{} {}", level.name(), prepared.implementation()), outputs);
                if !prepared.next_implementation()? {
                    break;
                }
            }
        }
        self.set_machine(run)?;
        for threads in THREADS {
            self.executor.set_threads(threads)?;
            let outputs = run_once(&*self.prepare(run)?, tensors, Placement::default(), None)?;
            compare(format!("{threads} threads"), outputs);
        }
        let misaligned = Placement { misaligned: true, ..Placement::default() };
        compare(
            "misaligned".to_owned(),
            run_once(&*self.prepare(run)?, tensors, misaligned, None)?,
        );
        Ok(match &differences[..] {
            [] => Outcome::new(Status::Passed),
            differences => {
                let list = differences.join(", ");
                reporter.detail(0, &format!("  bits differ from those of one thread: {list}"));
                let reason = format!("{} comparisons of bits failed", differences.len());
                Outcome::because(Status::Failed, reason)
            }
        })
    }

    fn performance(
        &self,
        prepared: &dyn Prepared,
        tensors: &[Tensor],
        run: &Run,
    ) -> Result<Performance, End> {
        let request = self.problem.request();
        let start = Instant::now();
        let created = self.executor.prepare(&request)?;
        let descriptor = start.elapsed().as_secs_f64();
        let start = Instant::now();
        created.bind(&[])?;
        let primitive = start.elapsed().as_secs_f64();
        let placed = Placed::new(tensors, Placement::default());
        let bound = prepared.bind(&placed.arguments(false))?;
        let timing = timing::measure(run.max_ms(), run.fix_times, || bound.execute())?;
        let bytes = |is_counted: fn(Role) -> bool| {
            let of_role = tensors.iter().filter(|tensor| is_counted(tensor.role));
            of_role.map(|tensor| (tensor.layout.count() * tensor.data_type().size()) as u64).sum()
        };
        Ok(Performance {
            input_bytes: bytes(|role| matches!(role, Role::Input | Role::Updated)),
            output_bytes: bytes(Role::is_written),
            descriptor: Timing::of_seconds(&[descriptor]),
            primitive: Timing::of_seconds(&[primitive]),
            ..Performance::of_timing(prepared.implementation(), timing)
        })
    }
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
        let Request { src, dst, strided, .. } = self.problem.request();
        let sides = [(src, strided[0], "stag"), (dst, strided[1], "dtag")];
        sides.into_iter().find_map(|(layout, strided, option)| {
            let order = layout.order();
            let letters = Tag::letters(&order);
            // Which blocks have a tag is not known here.
            let is_plain = !strided && layout.blocks.is_empty();
            (is_plain && !has_tag(&order)).then(|| format!("no tag {letters}, for --{option}"))
        })
    }

    fn name(&self) -> &str {
        &self.problem.name
    }

    fn run(&self, run: &Run, reporter: &mut Reporter<'_>) -> Result<Outcome, Halt> {
        outcome(self.attempt(run, reporter))
    }
}
