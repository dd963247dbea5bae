//! How a problem is run: mode, limits, machine settings, choice of implementation.
//!
//! [`RunSettings`] is the part of the command line's state that all drivers share and `--reset`
//! keeps; [`Selection`] is the shared part that `--reset` resets. A [`Run`] has one value of each
//! list.

mod cold_cache;
mod filter;
mod mode;
mod options;
mod settings;

pub use cold_cache::ColdCache;
pub use filter::ImplFilter;
pub use mode::{Checks, Mode};
pub use options::{RUN, SELECTION};
pub use settings::{Run, RunSettings, Selection};

use crate::language::options::word;

impl Run {
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

impl ImplFilter {
    /// The option that sets this filter; `None` for no filter, unless `canonical`.
    pub fn word(&self, canonical: bool) -> Option<String> {
        let name = match self {
            ImplFilter::All | ImplFilter::Only(_) => "impl",
            ImplFilter::Without(_) => "skip-impl",
        };
        word(SELECTION, name, &self.texts().join(","), canonical)
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
