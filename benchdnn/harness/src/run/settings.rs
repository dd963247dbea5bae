//! The state behind the options that every driver has, and what it says for one problem.

use super::cold_cache::ColdCache;
use super::filter::ImplFilter;
use super::mode::Mode;
use crate::executor::CpuIsa;
use crate::peer::Peer;
use crate::summary::Sections;
use crate::template::Template;
use regex_lite::Regex;
use std::rc::Rc;

/// How one problem is run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The mode.
    pub mode: Mode,
    /// How much is printed.
    pub verbosity: u32,
    /// How often the whole problem is run.
    pub repeats: u64,
    /// When measuring stops, in milliseconds; `None` for the mode's default.
    pub max_ms: Option<u64>,
    /// How many executions are measured; 0 lets the time decide.
    pub fix_times: u64,
    /// Whether a problem fails if a reference implementation runs it.
    pub check_ref_impl: bool,
    /// Whether mode C compares gradients with differences of the library's own forward instead of with the oracle.
    pub gradient: bool,
    /// Whether to explain the size of outputs.
    pub explain: bool,
    /// Whether a problem fails if its attributes change the implementation.
    pub same_pd: bool,
    /// Whether layouts without a tag in the C interface are refused.
    pub enum_tags_only: bool,
    /// Problems with a lower number are skipped.
    pub start: u64,
    /// The prefix of the names of files with input data.
    pub buffer_prefix: String,
    /// The highest instruction set that the library may use.
    pub cpu_isa: CpuIsa,
    /// How many threads the library may use; 0 is the library's default.
    pub threads: u64,
    /// Which implementations may run.
    pub filter: ImplFilter,
    /// The library that this one is compared with.
    pub peer: Option<Rc<Peer>>,
    /// Whether plain copies of the problem's bytes are timed as well.
    pub roofline: bool,
    /// Which tensors are not in the cache when an execution is timed.
    pub cold_cache: ColdCache,
    /// How times are printed.
    pub template: Rc<Template>,
    /// The file for the lines of the template; `None` for standard output.
    pub output: Option<Rc<str>>,
    /// What the summary shows.
    pub sections: Sections,
    /// Whether lines of problems include options at their defaults.
    pub canonical: bool,
}

impl Run {
    /// When measuring stops, in milliseconds.
    pub fn max_ms(&self) -> u64 {
        self.max_ms.unwrap_or(self.mode.default_ms())
    }

    /// Whether the problem's creation is timed, beside another library's.
    pub fn times_creation(&self) -> bool {
        self.mode == Mode::Initialize && self.peer.is_some()
    }
}

/// The state behind the options in [`RUN`](super::RUN).
#[derive(Clone, Debug, Default)]
pub struct RunSettings {
    pub(super) run: Run,
    pub(super) cpu_isas: Vec<CpuIsa>,
    pub(super) threads: Vec<u64>,
}

/// The state behind the options in [`SELECTION`](super::SELECTION).
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Which problems are run at all.
    pub pattern: Option<Regex>,
    /// Which implementations may run.
    pub filter: ImplFilter,
}

impl RunSettings {
    /// Every combination of the lists.
    pub fn runs(&self, selection: &Selection) -> Vec<Run> {
        let mut runs = Vec::new();
        for &cpu_isa in &self.cpu_isas {
            for &threads in &self.threads {
                let filter = selection.filter.clone();
                runs.push(Run { cpu_isa, threads, filter, ..self.run.clone() });
            }
        }
        runs
    }

    /// The verbosity from now on.
    pub fn verbosity(&self) -> u32 {
        self.run.verbosity
    }
}
