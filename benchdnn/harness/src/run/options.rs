//! The options that every driver has.

use super::cold_cache::ColdCache;
use super::filter::ImplFilter;
use super::mode::Mode;
use super::settings::{RunSettings, Selection};
use crate::executor::CpuIsa;
use crate::language::options::{Info, Opt};
use crate::language::value::{BadValue, boolean, exactly_one_of, integer, list};
use crate::peer::Peer;
use crate::template::Template;
use regex_lite::Regex;
use std::rc::Rc;

const WHAT: &str = "Modes";
const LIBRARY: &str = "Library";
const TIMING: &str = "Timing (modes P and F)";
const PRINTED: &str = "Output";
const WHICH: &str = "Problems";

const fn row(
    name: &'static str,
    value: &'static str,
    topic: &'static str,
    default: &'static str,
    help: &'static str,
) -> Info {
    Info { name, short: None, value, topic, default, help }
}

/// Accepts one of these values, which all mean the same here.
fn only(text: &str, values: &[&str]) -> Result<(), BadValue> {
    if values.contains(&text) {
        return Ok(());
    }
    let message = match values {
        [""] => format!("'{text}' is not implemented"),
        _ => format!("'{text}' is none of {}", values.join(", ")),
    };
    Err(BadValue::new(message))
}

/// The options of [`RunSettings`].
pub const RUN: &[Opt<RunSettings>] = &[
    Opt {
        info: row(
            "mode",
            "MODE",
            WHAT,
            "C",
            "C: check against the oracle; B: compare bits across instruction sets, threads,\n\
             batches, positions and alignments; P: time; F: time briefly; R: run once without\n\
             checking; I: only create the primitive; L: list the problems; C, B and P combine\n\
             (CP)",
        ),
        set: |state, text| Mode::parse(text).map(|mode| state.run.mode = mode),
    },
    Opt {
        info: row(
            "check",
            "HOW",
            WHAT,
            "oracle",
            "What mode C checks. oracle: all results against the f64 oracle; grad: backward against\n\
             finite differences of the library's own forward (with --dir=BWD_D or BWD_DW)",
        ),
        set: |state, text| {
            let how = [("oracle", false), ("grad", true)];
            exactly_one_of(text, &how).map(|gradient| state.run.gradient = gradient)
        },
    },
    Opt {
        info: row(
            "explain",
            "[BOOL]",
            WHAT,
            "false",
            "Print why outputs are as large as they are: RMS of src, divisor, effect of epsilon,\n\
             scale and its correlation with src, RMS of dst, and remedies. The data is the\n\
             problem's or that of --buffer-prefix",
        ),
        set: |state, text| boolean(text).map(|value| state.run.explain = value),
    },
    Opt {
        info: row(
            "buffer-prefix",
            "PREFIX",
            WHAT,
            "",
            "Read input tensors from PREFIX.<argument id>.bin if that file exists",
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
                "1: wrong elements; 2: data files; 3: cold caches; 5: implementations;\n\
                 6: data; 99: all elements",
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
            "Highest instruction sets: portable, avx2, avx512, avx512_bf16, avx512_amx, neon or default",
        ),
        set: |state, text| {
            let isa = |item: &str| exactly_one_of(item, &CpuIsa::NAMES);
            list(text, ',', isa).map(|isas| state.cpu_isas = isas)
        },
    },
    Opt {
        info: row(
            "threads",
            "LIST",
            LIBRARY,
            "0",
            "Numbers of threads; 0 is the library's default",
        ),
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
            "Fail problems that run on a reference implementation",
        ),
        set: |state, text| boolean(text).map(|value| state.run.check_ref_impl = value),
    },
    Opt {
        info: row(
            "attr-same-pd-check",
            "BOOL",
            LIBRARY,
            "false",
            "Fail problems that run on another implementation because of their attributes",
        ),
        set: |state, text| boolean(text).map(|value| state.run.same_pd = value),
    },
    Opt {
        info: row(
            "allow-enum-tags-only",
            "BOOL",
            LIBRARY,
            "false",
            "Refuse dimension orders that have no norm_format_tag_t; otherwise pass them as\n\
             strides",
        ),
        set: |state, text| boolean(text).map(|value| state.run.enum_tags_only = value),
    },
    Opt {
        info: row("start", "N", WHICH, "0", "Skip the problems before number N"),
        set: |state, text| integer(text, 0..=u64::MAX).map(|n| state.run.start = n),
    },
    Opt {
        info: row("engine", "KIND[:INDEX]", LIBRARY, "cpu", "Engine: cpu"),
        set: |_, text| only(text, &["cpu", "cpu:0"]),
    },
    Opt {
        info: row("execution-mode", "MODE", LIBRARY, "direct", "Execution mode: direct"),
        set: |_, text| only(text, &["direct"]),
    },
    Opt {
        info: row("memory-kind", "KIND", LIBRARY, "usm", "No effect: usm, buffer"),
        set: |_, text| only(text, &["usm", "buffer"]),
    },
    Opt {
        info: row("stream-kind", "KIND", LIBRARY, "def", "No effect: def, in_order, out_of_order"),
        set: |_, text| only(text, &["def", "in_order", "out_of_order"]),
    },
    Opt {
        info: row("num-streams", "N", LIBRARY, "1", "Number of streams: 1"),
        set: |_, text| only(text, &["1"]),
    },
    Opt {
        info: row(
            "cpu-isa-hints",
            "HINTS",
            LIBRARY,
            "none",
            "No effect: none, no_hints, prefer_ymm",
        ),
        set: |_, text| only(text, &["none", "no_hints", "prefer_ymm"]),
    },
    Opt {
        info: row("mem-check", "BOOL", LIBRARY, "true", "No effect"),
        set: |_, text| boolean(text).map(drop),
    },
    Opt {
        info: row("fast-ref", "BOOL", LIBRARY, "true", "No effect"),
        set: |_, text| boolean(text).map(drop),
    },
    Opt {
        info: row(
            "mode-modifier",
            "LETTERS",
            WHAT,
            "",
            "Must be empty: P (parallel creation) and M (no reference memory) are not implemented",
        ),
        set: |_, text| only(text, &[""]),
    },
    Opt {
        info: row(
            "max-ms-per-prb",
            "N",
            TIMING,
            "",
            "Time each problem for about N milliseconds (10 to 60000) [3000; in mode F 10]",
        ),
        set: |state, text| {
            state.run.max_ms = match text {
                "" => None,
                text => Some(integer(text, 0..=u64::MAX)?.clamp(10, 60_000)),
            };
            Ok(())
        },
    },
    Opt {
        info: row(
            "fix-times-per-prb",
            "N",
            TIMING,
            "0",
            "Time exactly N executions, or N rounds with --compare and --roofline; 0: as many as\n\
             fit into the time",
        ),
        set: |state, text| integer(text, 0..=1_000_000_000).map(|n| state.run.fix_times = n),
    },
    Opt {
        info: row(
            "cold-cache",
            "WHAT",
            TIMING,
            "none",
            "Give each execution buffers that no recent one used: none, wei (scale and shift)\n\
             or all",
        ),
        set: |state, text| {
            exactly_one_of(text, &ColdCache::NAMES).map(|cold| state.run.cold_cache = cold)
        },
    },
    Opt {
        info: row(
            "roofline",
            "[BOOL]",
            TIMING,
            "false",
            "Also time the best plain copy of the problem's bytes, in the same rounds, and print\n\
             the problem's share of its speed",
        ),
        set: |state, text| boolean(text).map(|value| state.run.roofline = value),
    },
    Opt {
        info: row(
            "compare",
            "LIB[,NAME=VALUE...]",
            WHAT,
            "",
            "Open the shared library LIB, which has oneDNN's C API, with these environment\n\
             variables, and run every problem on both libraries: mode C prints where they differ\n\
             and which is nearer to the oracle; modes P and F alternate and print the ratio of\n\
             times (libnorm is faster if above 1); mode I times the creation",
        ),
        set: |state, text| Peer::parse(text).map(|peer| state.run.peer = peer.map(Rc::new)),
    },
    Opt {
        info: row(
            "perf-template",
            "TEMPLATE",
            PRINTED,
            "def",
            "How times are printed: def, csv, json, or text with entries such as %prb%,\n\
             %-time%, %0time%, %-Gbw%, %ratio%, %roof%",
        ),
        set: |state, text| {
            Template::parse(text).map(|template| state.run.template = Rc::new(template))
        },
    },
    Opt {
        info: row(
            "output",
            "FILE",
            PRINTED,
            "",
            "Write the lines of --perf-template to FILE, which is overwritten, and leave status\n\
             lines and the summary on standard output; -: all on standard output",
        ),
        set: |state, text| {
            state.run.output = (!matches!(text, "" | "-")).then(|| text.into());
            Ok(())
        },
    },
    Opt {
        info: row(
            "summary",
            "[no-]WHAT[+...]",
            PRINTED,
            "failures+impl+no-impl-csv",
            "What to print before the counts in the summary: failures (the first ten), impl,\n\
             impl-csv (the implementations and how many problems each ran)",
        ),
        set: |state, text| state.run.sections.set(text),
    },
    Opt {
        info: row(
            "canonical",
            "BOOL",
            PRINTED,
            "false",
            "Also print options that have their default values",
        ),
        set: |state, text| boolean(text).map(|value| state.run.canonical = value),
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
            "Run only problems whose line matches the regular expression",
        ),
        set: |state, text| {
            let regex = Regex::new(text).map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default().trim();
                BadValue::new(format!("'{text}' is not a regular expression: {reason}"))
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
            "Only implementations whose name contains one of NAMES; a name that matches no\n\
             implementation on this machine is an error",
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
