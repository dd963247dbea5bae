//! A problem on a library: its settings, its primitive, and its tensors with data that is generated or read from files.

use super::cache::{Cache, Prediction};
use super::end::{End, skipped};
use super::inputs;
use crate::execution::{Fault, Pairs, Placement, Role, Tensor};
use crate::executor::{Prepared, Refusal, RefusalKind};
use crate::fill::Fill;
use crate::library::{Executor, Request};
use crate::outcome::Halt;
use crate::problem::{Data, Problem, Spec};
use crate::report::Reporter;
use crate::run::Run;
use crate::tensor::Layout;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// What problems share: the library, and recent results of the oracle.
pub struct Bench<'b> {
    /// The library under test.
    pub library: &'b dyn Executor,
    /// The oracle's results.
    pub cache: RefCell<Cache>,
}

/// A problem, the library to run it on, and how.
#[derive(Clone, Copy)]
pub(super) struct Case<'c> {
    pub(super) problem: &'c dyn Problem,
    pub(super) bench: &'c Bench<'c>,
    pub(super) run: &'c Run,
}

impl<'c> Case<'c> {
    /// The same with another problem.
    pub(super) fn with(&self, problem: &'c dyn Problem) -> Case<'c> {
        Case { problem, ..*self }
    }

    pub(super) fn library(&self) -> &'c dyn Executor {
        self.bench.library
    }

    /// How many threads the problem or the run requires; 0 is the library's default.
    pub(super) fn wanted_threads(&self) -> u64 {
        self.problem.contexts()[1].0.unwrap_or(self.run.threads)
    }

    /// Sets threads and instruction set as the run requires.
    pub(super) fn set_machine(&self) -> Result<(), End> {
        self.library().set_threads(self.wanted_threads())?;
        if !self.library().set_cpu_isa(self.run.cpu_isa)? {
            let isa = self.run.cpu_isa.name();
            return Err(skipped(format!("this machine has no {isa}")));
        }
        Ok(())
    }

    /// Prepares the problem with the first implementation that the run admits.
    pub(super) fn prepare(&self) -> Result<Box<dyn Prepared>, End> {
        self.prepare_as(&*self.problem.request())
    }

    /// The same with another request for the problem.
    pub(super) fn prepare_as(&self, request: &dyn Request) -> Result<Box<dyn Prepared>, End> {
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
    pub(super) fn placement(&self) -> Placement {
        let inplace = Pairs::new(&self.problem.shared_buffers());
        Placement { inplace, ..Placement::default() }
    }

    /// Whether the tensors of these pairs have the same layout.
    pub(super) fn can_share(
        &self,
        pairs: &[(i32, i32)],
        specs: &[Spec],
        layouts: &[Layout],
    ) -> bool {
        let layout = |id| specs.iter().position(|spec| spec.id == id).map(|at| &layouts[at]);
        pairs.iter().all(|&(input, output)| match (layout(input), layout(output)) {
            (Some(input), Some(output)) => input.same_places(output),
            _ => false,
        })
    }

    /// The same for the layouts of a prepared problem.
    pub(super) fn can_work_in_place(
        &self,
        pairs: &[(i32, i32)],
        prepared: &dyn Prepared,
    ) -> Result<bool, Fault> {
        let specs = self.problem.tensors();
        let layouts = inputs::layouts(&specs, prepared)?;
        Ok(self.can_share(pairs, &specs, &layouts))
    }

    /// The problem's tensors with data of this kind, or with that of the run's files.
    pub(super) fn tensors(
        &self,
        prepared: &dyn Prepared,
        fill: Fill,
        reporter: &mut Reporter<'_>,
    ) -> Result<Vec<Tensor>, End> {
        let specs = self.problem.tensors();
        let layouts = inputs::layouts(&specs, prepared)?;
        let mut data = inputs::make(self.problem, fill);
        if !self.run.buffer_prefix.is_empty() {
            self.import(&specs, &layouts, &mut data, reporter)?;
        }
        Ok(inputs::tensors(&specs, layouts, &data))
    }

    /// The problem's tensors with exact data (or with that of the run's files), and the expected results.
    pub(super) fn prediction(
        &self,
        prepared: &dyn Prepared,
        reporter: &mut Reporter<'_>,
    ) -> Result<(Vec<Tensor>, Rc<Prediction>), End> {
        let specs = self.problem.tensors();
        let layouts = inputs::layouts(&specs, prepared)?;
        let prediction = if self.run.buffer_prefix.is_empty() {
            self.bench.cache.borrow_mut().prediction(self.problem)
        } else {
            let mut data = inputs::make(self.problem, Fill::Exact);
            self.import(&specs, &layouts, &mut data, reporter)?;
            Rc::new(Prediction::of(self.problem, data))
        };
        Ok((inputs::tensors(&specs, layouts, &prediction.data), prediction))
    }

    /// Replaces data by the contents of the files `PREFIX.<argument id>.bin`, which have the layout of the library's
    /// buffers.
    fn import(
        &self,
        specs: &[Spec],
        layouts: &[Layout],
        data: &mut Data,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), Halt> {
        let prefix = &self.run.buffer_prefix;
        let mut imported = Vec::new();
        let inputs = specs.iter().zip(layouts).filter(|(spec, _)| spec.role == Role::Input);
        for (&Spec { id, name, data_type, .. }, layout) in inputs {
            let path = PathBuf::from(format!("{prefix}.{id}.bin"));
            let shown = path.display();
            if !path.exists() {
                reporter.detail(2, &format!("{name}: no file {shown}, so the data is generated"));
                continue;
            }
            let bytes = std::fs::read(&path)
                .map_err(|error| Halt(format!("cannot read {shown}: {error}")))?;
            if bytes.len() != layout.span() {
                let (has, needs) = (bytes.len(), layout.span());
                return Err(Halt(format!("{shown} has {has} bytes, {name} needs {needs}")));
            }
            data.set(id, data_type.decode(&layout.gather(&bytes)));
            reporter.detail(2, &format!("{name}: read from {shown}"));
            imported.push(id);
        }
        if imported.is_empty() {
            let line = self.problem.line(false);
            return Err(Halt(format!("no input of {line} is in a file {prefix}.<id>.bin")));
        }
        self.problem.adjust(data, &imported);
        Ok(())
    }
}
