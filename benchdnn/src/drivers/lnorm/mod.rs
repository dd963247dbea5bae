//! The driver of layer normalization and RMS normalization.
//!
//! `settings` holds its options, `problem` one problem and its line, `arguments` the tensors that it
//! has, `executor` what it needs from a library, `library` the real one, `data` what the tensors
//! hold. `case` runs a problem; `correctness`, `bitwise`, `performance` and `creation` are the modes,
//! `comparison` is the same problem on another library.

mod arguments;
mod bitwise;
mod case;
mod chain;
mod comparison;
mod correctness;
mod creation;
mod data;
mod executor;
mod gradient;
mod library;
mod performance;
mod problem;
mod settings;

pub use arguments::{Extent, Spec, arguments};
pub use executor::{Executor, Request, TensorRequest, Wanted};
pub use library::LibraryExecutor;
pub use problem::{Direction, Problem};

use crate::attributes::ATTRIBUTES;
use crate::drivers::Driver;
use crate::language::options::{Info, defaults, set};
use crate::language::value::BadValue;
use crate::tensor::Tag;
use case::Case;
use data::Cache;
use settings::{OPTIONS, Settings};
use std::cell::RefCell;
use std::rc::Rc;

/// The driver and the state of its options.
pub struct Lnorm {
    executor: Rc<dyn Executor>,
    cache: Rc<RefCell<Cache>>,
    settings: Settings,
}

impl Lnorm {
    /// The driver on an executor, at its default options.
    pub fn new(executor: Rc<dyn Executor>) -> Lnorm {
        Lnorm { executor, cache: Rc::default(), settings: initial() }
    }

    /// The problems that a descriptor makes, as values.
    pub fn parse(&self, descriptor: &str) -> Result<Vec<Problem>, BadValue> {
        self.settings.problems(descriptor)
    }
}

/// All options at their defaults.
fn initial() -> Settings {
    let mut settings: Settings = defaults(OPTIONS);
    settings.attributes = defaults(ATTRIBUTES);
    settings
}

impl Driver for Lnorm {
    fn name(&self) -> &'static str {
        "lnorm"
    }

    fn about(&self) -> &'static str {
        "Layer normalization and RMS normalization over the last dimension"
    }

    fn manual(&self) -> &'static str {
        "A problem of lnorm is its 2 to 5 dimensions, NxNxN, the last one normalized; a name may\n\
         follow: 8x128x1024_n\"some name\". In file names of --buffer-prefix the argument ids are\n\
         SRC 1, DST 17, MEAN 49, VARIANCE 50, SCALE 51, SHIFT 52, DIFF_DST 145.\n\
         \n\
         Examples:\n  \
         benchdnn --flags=CM 4096x4096\n  \
         benchdnn --dir=FWD_D,BWD_DW --dt=f32,bf16:f32 --flags=CH,CM 8x128x1024 30x301\n  \
         benchdnn --mode=P --max-ms-per-prb=500 --cpu-isa=avx2,avx512 --flags=CM 32x4096\n  \
         benchdnn --mode=B --batch=test_lnorm_smoke\n  \
         benchdnn --mode=F --roofline --compare=libdnnl.so.3 --threads=1 --batch=perf_odd"
    }

    fn options(&self) -> Vec<Info> {
        let own = OPTIONS.iter().map(|option| option.info);
        own.chain(ATTRIBUTES.iter().map(|option| option.info)).collect()
    }

    fn implementations(&self) -> Vec<String> {
        // A problem that every implementation offers to run.
        let src_tag = Tag::parse("abx").expect("a tag");
        let problem = Problem { dims: vec![16, 64], src_tag, ..Problem::default() };
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
        self.settings = initial();
    }

    fn problems(&self, descriptor: &str) -> Result<Vec<Rc<dyn super::Problem>>, BadValue> {
        let case = |problem| {
            let (executor, cache) = (self.executor.clone(), self.cache.clone());
            Rc::new(Case::new(problem, executor, cache)) as Rc<dyn super::Problem>
        };
        Ok(self.parse(descriptor)?.into_iter().map(case).collect())
    }
}
