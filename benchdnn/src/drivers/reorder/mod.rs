//! The driver of reorder: a tensor brought into another layout and element type.
//!
//! `settings` holds its options, `problem` one problem and its line, `data` what the tensors hold
//! and what should come of them, `library` the calls; `case` runs a problem.

mod case;
mod data;
mod library;
mod problem;
mod settings;

pub use library::{Executor, LibraryExecutor, Request};
pub use problem::{Problem, Spec, arguments};

use crate::attributes::ATTRIBUTES;
use crate::drivers::Driver;
use crate::fill::DataType;
use crate::language::options::{Info, set};
use crate::language::value::BadValue;
use case::Case;
use settings::{OPTIONS, Settings};
use std::rc::Rc;

/// The driver and the state of its options.
pub struct Reorder {
    executor: Rc<dyn Executor>,
    settings: Settings,
}

impl Reorder {
    /// The driver on an executor, at its default options.
    pub fn new(executor: Rc<dyn Executor>) -> Reorder {
        Reorder { executor, settings: Settings::initial() }
    }
}

impl Driver for Reorder {
    fn name(&self) -> &'static str {
        "reorder"
    }

    fn about(&self) -> &'static str {
        "Brings a tensor into another layout and element type"
    }

    fn manual(&self) -> &'static str {
        "A problem of reorder is its 1 to 12 dimensions, NxNxN; a name may follow:\n\
         2x16x3x4_n\"some name\". In file names of --buffer-prefix the argument ids are SRC 1, DST 17.\n\
         \n\
         Examples:\n  \
         benchdnn --reorder --stag=abx --dtag=axb 2x16x3x4\n  \
         benchdnn --reorder --sdt=f32,bf16 --ddt=s8,u8 --attr-scales=src:per_dim_1 30x300\n  \
         benchdnn --reorder --sdt=s8 --ddt=f32 --attr-post-ops=sum:0.5 4x128x768"
    }

    fn options(&self) -> Vec<Info> {
        let own = OPTIONS.iter().map(|option| option.info);
        own.chain(ATTRIBUTES.iter().map(|option| option.info)).collect()
    }

    fn implementations(&self) -> Vec<String> {
        let problem = Problem { dims: vec![16, 64], dst_dt: DataType::Bf16, ..Problem::default() };
        let Ok(mut prepared) = self.executor.prepare(&problem.request()) else {
            return Vec::new();
        };
        let mut names = vec![prepared.implementation()];
        while prepared.next_implementation() == Ok(true) {
            names.push(prepared.implementation());
        }
        names
    }

    fn set(&mut self, name: &str, value: &str) -> Option<Result<(), BadValue>> {
        set(OPTIONS, &mut self.settings, name, value)
            .or_else(|| set(ATTRIBUTES, &mut self.settings.attributes, name, value))
    }

    fn reset(&mut self) {
        self.settings = Settings::initial();
    }

    fn problems(&self, descriptor: &str) -> Result<Vec<Rc<dyn super::Problem>>, BadValue> {
        let case =
            |problem| Rc::new(Case::new(problem, self.executor.clone())) as Rc<dyn super::Problem>;
        Ok(self.settings.problems(descriptor)?.into_iter().map(case).collect())
    }
}
