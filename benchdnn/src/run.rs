//! What is done with a problem: mode, limits, machine settings, choice of implementation.
//!
//! [`RunSettings`] is the part of the command line's state that every driver shares and `--reset`
//! leaves alone; [`Selection`] is the shared part that `--reset` resets. A problem is run under a
//! [`Run`], which holds one value of each.

use crate::executor::CpuIsa;
use crate::language::options::{Info, Opt, unless_default};
use crate::language::value::{BadValue, boolean, exactly_one_of, integer, list};
use regex::Regex;

/// What happens to each problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is printed.
    List,
    /// It is executed once, unchecked.
    Execute,
    /// It is checked or timed, or several of these.
    Check(Checks),
}

/// The kinds of checks of [`Mode::Check`]; at least one is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Results against the oracle.
    pub correctness: bool,
    /// Bits over levels, threads, placements and repeats.
    pub bitwise: bool,
    /// Time.
    pub performance: bool,
}

impl Default for Mode {
    fn default() -> Mode {
        Mode::Check(Checks { correctness: true, ..Checks::default() })
    }
}

impl Mode {
    fn parse(text: &str) -> Result<Mode, BadValue> {
        let bad = || {
            BadValue::new(format!("'{text}' is none of L, R, C, B, P, or several of C, B and P"))
        };
        let mut checks = Checks::default();
        for letter in text.chars() {
            match letter.to_ascii_uppercase() {
                'L' if text.len() == 1 => return Ok(Mode::List),
                'R' if text.len() == 1 => return Ok(Mode::Execute),
                'C' => checks.correctness = true,
                'B' => checks.bitwise = true,
                'P' => checks.performance = true,
                _ => return Err(bad()),
            }
        }
        if checks == Checks::default() { Err(bad()) } else { Ok(Mode::Check(checks)) }
    }

    /// Whether bits are compared.
    pub fn is_bitwise(self) -> bool {
        matches!(self, Mode::Check(Checks { bitwise: true, .. }))
    }

    fn letters(self) -> String {
        match self {
            Mode::List => "L".to_owned(),
            Mode::Execute => "R".to_owned(),
            Mode::Check(checks) => {
                [(checks.correctness, "C"), (checks.bitwise, "B"), (checks.performance, "P")]
                    .iter()
                    .filter_map(|&(set, letter)| set.then_some(letter))
                    .collect()
            }
        }
    }
}

/// Which implementations of the library's list may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ImplFilter {
    /// All of them.
    #[default]
    All,
    /// Those whose name contains one of the texts.
    Only(Vec<String>),
    /// Those whose name contains none of the texts.
    Without(Vec<String>),
}

impl ImplFilter {
    /// Whether the implementation of this name may run.
    pub fn admits(&self, implementation: &str) -> bool {
        match self {
            ImplFilter::All => true,
            ImplFilter::Only(names) => names.iter().any(|name| implementation.contains(name)),
            ImplFilter::Without(names) => !names.iter().any(|name| implementation.contains(name)),
        }
    }

    /// The texts.
    pub fn texts(&self) -> &[String] {
        match self {
            ImplFilter::All => &[],
            ImplFilter::Only(names) | ImplFilter::Without(names) => names,
        }
    }

    fn parse(text: &str, filter: fn(Vec<String>) -> ImplFilter) -> Result<ImplFilter, BadValue> {
        if text.is_empty() {
            return Ok(ImplFilter::All);
        }
        let names = list(text, ',', |name| match name {
            // Every name contains the empty text, so it could only be a slip.
            "" => Err(BadValue::new("an empty implementation name")),
            name => Ok(name.to_owned()),
        })?;
        Ok(filter(names))
    }

    /// The option that sets this filter.
    pub fn word(&self) -> Option<String> {
        match self {
            ImplFilter::All => None,
            ImplFilter::Only(names) => unless_default(SELECTION, "impl", &names.join(",")),
            ImplFilter::Without(names) => unless_default(SELECTION, "skip-impl", &names.join(",")),
        }
    }
}

/// How one problem is run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What happens to the problem.
    pub mode: Mode,
    /// How much is printed.
    pub verbosity: u32,
    /// How often the whole problem is run.
    pub repeats: u64,
    /// When measuring stops, in milliseconds.
    pub max_ms: u64,
    /// How many executions are measured; 0 lets time decide.
    pub fix_times: u64,
    /// Whether a reference implementation counts as a failure.
    pub check_ref_impl: bool,
    /// The start of the names of files with input data.
    pub buffer_prefix: String,
    /// The highest instruction set that the library may use.
    pub cpu_isa: CpuIsa,
    /// How many threads the library may use; 0 is the library's default.
    pub threads: u64,
    /// Which implementations may run.
    pub filter: ImplFilter,
}

impl Run {
    /// The options, of those every driver has, that are not at their defaults.
    pub fn words(&self) -> Vec<String> {
        let word = |name, text: String| unless_default(RUN, name, &text);
        [
            word("mode", self.mode.letters()),
            word("max-ms-per-prb", self.max_ms.to_string()),
            word("fix-times-per-prb", self.fix_times.to_string()),
            word("repeats-per-prb", self.repeats.to_string()),
            word("check-ref-impl", self.check_ref_impl.to_string()),
            word("cpu-isa", self.cpu_isa.name().to_owned()),
            word("threads", self.threads.to_string()),
            word("buffer-prefix", self.buffer_prefix.clone()),
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

    /// How much is printed from here on.
    pub fn verbosity(&self) -> u32 {
        self.run.verbosity
    }
}

const WHAT: &str = "What to do";
const LIBRARY: &str = "How the library runs";
const TIMING: &str = "Timing (mode P)";
const WHICH: &str = "Which problems";

const fn row(
    name: &'static str,
    value: &'static str,
    topic: &'static str,
    default: &'static str,
    help: &'static str,
) -> Info {
    Info { name, short: None, value, topic, default, help }
}

/// The options of [`RunSettings`].
pub const RUN: &[Opt<RunSettings>] = &[
    Opt {
        info: row(
            "mode",
            "MODE",
            WHAT,
            "C",
            "C: check against the oracle; B: compare bits over levels, threads\n\
             and placements; P: measure time; R: run only; L: list only.\n\
             C, B and P combine (CP)",
        ),
        set: |state, text| Mode::parse(text).map(|mode| state.run.mode = mode),
    },
    Opt {
        info: row(
            "buffer-prefix",
            "PREFIX",
            WHAT,
            "",
            "Take input data from PREFIX.<argument id>.bin where such a file is",
        ),
        set: |state, text| {
            state.run.buffer_prefix = text.to_owned();
            Ok(())
        },
    },
    Opt {
        info: row("repeats-per-prb", "N", WHAT, "1", "Run each problem N times"),
        set: |state, text| integer(text, 1..=1_000_000).map(|n| state.run.repeats = n),
    },
    Opt {
        info: Info {
            short: Some('v'),
            ..row(
                "verbose",
                "N",
                WHAT,
                "0",
                "1: wrong elements; 2: data files; 5: implementations; 6: data;\n\
                 99: all elements",
            )
        },
        set: |state, text| integer(text, 0..=99).map(|n| state.run.verbosity = n as u32),
    },
    Opt {
        info: row(
            "cpu-isa",
            "LIST",
            LIBRARY,
            "default",
            "Highest instruction sets: portable, avx2, avx512, neon or default",
        ),
        set: |state, text| {
            let isa = |item: &str| exactly_one_of(item, &CpuIsa::NAMES);
            list(text, ',', isa).map(|isas| state.cpu_isas = isas)
        },
    },
    Opt {
        info: row("threads", "LIST", LIBRARY, "0", "Numbers of threads; 0: the library's default"),
        set: |state, text| {
            list(text, ',', |item| integer(item, 0..=255)).map(|list| state.threads = list)
        },
    },
    Opt {
        info: row(
            "check-ref-impl",
            "BOOL",
            LIBRARY,
            "false",
            "Fail problems that a reference implementation runs",
        ),
        set: |state, text| boolean(text).map(|value| state.run.check_ref_impl = value),
    },
    Opt {
        info: row(
            "max-ms-per-prb",
            "N",
            TIMING,
            "3000",
            "Measure a problem for about N milliseconds (10 to 60000)",
        ),
        set: |state, text| {
            integer(text, 0..=u64::MAX).map(|n| state.run.max_ms = n.clamp(10, 60_000))
        },
    },
    Opt {
        info: row(
            "fix-times-per-prb",
            "N",
            TIMING,
            "0",
            "Measure exactly N executions; 0: as many as the time allows",
        ),
        set: |state, text| integer(text, 0..=1_000_000_000).map(|n| state.run.fix_times = n),
    },
];

/// The options of [`Selection`].
pub const SELECTION: &[Opt<Selection>] = &[
    Opt {
        info: row(
            "match",
            "REGEX",
            WHICH,
            "",
            "Leave out problems whose line the regular expression does not match",
        ),
        set: |state, text| {
            let regex = Regex::new(text).map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default().trim();
                BadValue::new(format!("'{text}' is no regular expression: {reason}"))
            })?;
            state.pattern = (!text.is_empty()).then_some(regex);
            Ok(())
        },
    },
    Opt {
        info: row(
            "impl",
            "NAMES",
            LIBRARY,
            "",
            "Only implementations whose name contains one of NAMES; a name that no\n\
             implementation of this machine contains is refused",
        ),
        set: |state, text| {
            ImplFilter::parse(text, ImplFilter::Only).map(|filter| state.filter = filter)
        },
    },
    Opt {
        info: row(
            "skip-impl",
            "NAMES",
            LIBRARY,
            "",
            "Only implementations whose name contains none of NAMES",
        ),
        set: |state, text| {
            ImplFilter::parse(text, ImplFilter::Without).map(|filter| state.filter = filter)
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::options::{defaults, set};

    #[test]
    fn modes_are_one_letter_or_several_checks_in_any_case() {
        let both = Checks { correctness: true, performance: true, bitwise: false };
        assert_eq!(Mode::parse("cP"), Ok(Mode::Check(both)));
        assert_eq!(Mode::parse("l"), Ok(Mode::List));
        assert_eq!(Mode::parse("R"), Ok(Mode::Execute));
        for text in ["", "LC", "X", "CR"] {
            assert!(Mode::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn filters_match_parts_of_names() {
        let only = ImplFilter::parse("ref,avx2", ImplFilter::Only).expect("two names");
        assert!(only.admits("simd:avx2") && only.admits("ref:any") && !only.admits("simd:avx512"));
        let without = ImplFilter::parse("ref", ImplFilter::Without).expect("a name");
        assert!(without.admits("simd:avx2") && !without.admits("ref:any"));
        assert!(ImplFilter::parse("a,,b", ImplFilter::Only).is_err());
    }

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
        set(RUN, &mut settings, "mode", "").expect("a known option").expect("the default");
        assert_eq!(settings.runs(&selection)[0].words()[0], "--cpu-isa=avx2");
    }
}
