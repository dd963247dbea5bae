//! How a problem is run: mode, limits, machine settings, choice of implementation.
//!
//! [`RunSettings`] is the part of the command line's state that all drivers share and `--reset`
//! keeps; [`Selection`] is the shared part that `--reset` resets. A [`Run`] has one value of each
//! list.

mod cold_cache;
mod filter;
mod mode;
mod options;

pub use cold_cache::ColdCache;
pub use filter::ImplFilter;
pub use mode::{Checks, Mode};
pub use options::{RUN, SELECTION};

use crate::executor::CpuIsa;
use crate::language::options::word;
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

    /// The shared options that are not at their defaults; all that affect what is run, if
    /// `canonical`.
    pub fn words(&self) -> Vec<String> {
        let said = |name, text: &str| word(RUN, name, text, self.canonical);
        let max_ms = match self.max_ms {
            None if !(self.canonical && self.mode.checks().performance) => String::new(),
            _ => self.max_ms().to_string(),
        };
        [
            said("canonical", &self.canonical.to_string()),
            said("mode", &self.mode.letters()),
            said("check", if self.gradient { "grad" } else { "oracle" }),
            said("explain", &self.explain.to_string()),
            said("max-ms-per-prb", &max_ms),
            said("fix-times-per-prb", &self.fix_times.to_string()),
            said("repeats-per-prb", &self.repeats.to_string()),
            said("cold-cache", self.cold_cache.name()),
            said("check-ref-impl", &self.check_ref_impl.to_string()),
            said("attr-same-pd-check", &self.same_pd.to_string()),
            said("cpu-isa", self.cpu_isa.name()),
            said("threads", &self.threads.to_string()),
            said("buffer-prefix", &self.buffer_prefix),
            said("compare", self.peer.as_ref().map_or("", |peer| peer.written())),
            said("roofline", &self.roofline.to_string()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The state behind the options in [`RUN`].
#[derive(Clone, Debug, Default)]
pub struct RunSettings {
    run: Run,
    cpu_isas: Vec<CpuIsa>,
    threads: Vec<u64>,
}

/// The state behind the options in [`SELECTION`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::options::{defaults, set};

    #[test]
    fn words_name_what_is_not_default() {
        let mut settings: RunSettings = defaults(RUN);
        let selection: Selection = defaults(SELECTION);
        assert_eq!(settings.runs(&selection)[0].words(), Vec::<String>::new());
        for (name, value) in [("mode", "pc"), ("cpu-isa", "avx2,portable"), ("threads", "1,2")] {
            set(RUN, &mut settings, name, value).expect("a known option").expect("a good value");
        }
        let words: Vec<_> =
            settings.runs(&selection).iter().map(|run| run.words().join(" ")).collect();
        assert_eq!(words[0], "--mode=CP --cpu-isa=avx2 --threads=1");
        assert_eq!(words[3], "--mode=CP --cpu-isa=portable --threads=2");
        assert_eq!(words.len(), 4);
        let mut limits = |name, value| {
            set(RUN, &mut settings, name, value).expect("a known option").expect("a good value");
            (settings.runs(&selection)[0].max_ms(), settings.runs(&selection)[0].words().join(" "))
        };
        limits("cpu-isa", "default");
        limits("threads", "0");
        assert_eq!(limits("mode", "F"), (10, "--mode=F".to_owned()));
        let (ms, line) = limits("max-ms-per-prb", "500");
        assert_eq!((ms, line.as_str()), (500, "--mode=F --max-ms-per-prb=500"));
        assert_eq!(limits("max-ms-per-prb", ""), (10, "--mode=F".to_owned()));
        assert_eq!(limits("mode", "P"), (3000, "--mode=P".to_owned()));
        let (_, line) = limits("canonical", "true");
        assert_eq!(
            line,
            "--canonical=true --mode=P --check=oracle --explain=false --max-ms-per-prb=3000 --fix-times-per-prb=0 \
             --repeats-per-prb=1 --cold-cache=none --check-ref-impl=false --attr-same-pd-check=false --cpu-isa=default \
             --threads=0 --buffer-prefix= --compare= --roofline=false"
        );
        limits("canonical", "false");
        for (name, _) in [("mode", "C"), ("perf-template", "def"), ("roofline", "false")] {
            let result = set(RUN, &mut settings, name, "").expect("a known option");
            assert!(result.expect_err(name).message.starts_with("a value is missing"), "{name}");
        }
        set(RUN, &mut settings, "mode", "C").expect("a known option").expect("the default");
        assert_eq!(settings.runs(&selection)[0].words(), Vec::<String>::new());
    }
}
