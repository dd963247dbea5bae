//! One test per program.

use std::os::unix::process::ExitStatusExt;

use crate::toolchain::{Language, build, build_unlinked, command, library_dir, root, run, text};

/// The pages that have tables which programs print.
const PAGES: [&str; 2] = [
    include_str!("../../docs/primitives/eltwise.md"),
    include_str!("../../docs/primitives/softmax.md"),
];

/// Runs a C program; its summary must report checks, and the rows of its tables must be in the documentation.
fn check(source: &str) {
    let printed = run(&mut command(build(source, Language::C99)));
    let quoted = |row: &&str| PAGES.iter().flat_map(|page| page.lines()).any(|line| line == *row);
    let missing: Vec<_> =
        printed.lines().filter(|line| line.starts_with("| ") && !quoted(line)).collect();
    assert!(missing.is_empty(), "not in the documentation:\n{}", missing.join("\n"));
    let summary = printed.lines().last().unwrap_or_default();
    assert!(summary.ends_with(" 0 failed"), "{source} ended with {summary:?}");
}

macro_rules! c_programs {
    ($($name:ident)*) => {
        /// The C programs of `tests/c`.
        pub(crate) const C_PROGRAMS: &[&str] =
            &[$(concat!("tests/c/", stringify!($name), ".c")),*];

        $(#[test]
        fn $name() {
            check(concat!("tests/c/", stringify!($name), ".c"));
        })*
    };
}

c_programs! {
    allocations around around_errors attributes bad_descriptors bad_executions bad_objects
    caller_threads dropout edge_rows elementwise environment execute_many explain f64_errors
    float_environment fork fork_first_use gated group_normalization guard_pages guard_pages_sdpa
    hints host_scalars kv_cache kv_cache_quantized layer_normalization layouts names objects
    out_of_memory refused_threads reorder residual_bits residual_exact rope rope_frequencies
    rope_norm rope_positions rope_tables rope_through_norm sdpa sdpa_gradients sdpa_packed sentences
    shared_buffers softmax softmax_errors stale_handles threads tiles
}

/// The program whose verbose lines are compared.
pub(crate) const VERBOSE: &str = "tests/c/verbose.c";

/// The C++ programs of `tests/c`.
pub(crate) const CPP_PROGRAMS: &[&str] = &["tests/c/wrapper.cpp"];

fn wrapper(language: Language) {
    let printed = run(&mut command(build(CPP_PROGRAMS[0], language)));
    let summary = printed.lines().last().unwrap_or_default();
    assert!(summary.ends_with(" 0 failed"), "{language:?} ended with {summary:?}");
}

#[test]
fn wrapper_as_cpp17() {
    wrapper(Language::Cpp17);
}

#[test]
fn wrapper_as_cpp20() {
    wrapper(Language::Cpp20);
}

/// Compiled without exceptions, unlike the other programs.
const NO_EXCEPTIONS: &str = "tests/c/no_exceptions.cpp";

#[test]
fn norm_hpp_without_exceptions() {
    let program = build(NO_EXCEPTIONS, Language::Cpp17NoExceptions);
    let printed = run(&mut command(&program));
    let summary = printed.lines().last().unwrap_or_default();
    assert!(summary.ends_with(" 0 failed"), "it ended with {summary:?}");

    // The default handler.
    let output = command(program).arg("abort").output().expect("the program runs");
    let said = text(&output);
    assert_eq!(output.status.signal(), Some(6), "{}: {said}", output.status);
    assert_eq!(said, "invalid_arguments: norm_set_verbose: level: 7 is not 0, 1 or 2\n");
}

#[test]
fn guard_pages_detect_an_overrun() {
    let program = build("tests/c/guard_pages.c", Language::C99);
    let output = command(program).arg("overrun").output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(100 + 11), "{said}");
    assert!(said.contains("access outside a tensor"), "{said}");
}

#[test]
fn a_thread_without_memory_calls_an_opened_library() {
    let program = build_unlinked("tests/consumers/opened.c");
    let printed = run(command(program).arg(library_dir().join("libnorm.so")));
    assert_eq!(printed, "opened: 0 failed\n");
}

#[test]
fn every_program_has_a_test() {
    let mut found: Vec<_> = std::fs::read_dir(root().join("tests/c"))
        .expect("tests/c can be read")
        .map(|file| file.expect("tests/c can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".c") || name.ends_with(".cpp"))
        .map(|name| format!("tests/c/{name}"))
        .collect();
    found.sort();
    let mut listed = [C_PROGRAMS, CPP_PROGRAMS, &[NO_EXCEPTIONS, VERBOSE]].concat();
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn the_examples_print_the_documented_output() {
    let printed = run(&mut command(build("examples/c/rms_norm.c", Language::C99)));
    // 1 2 3 4 divided by sqrt(7.5), and the input doubled and negated, which gives the negative.
    let lines: Vec<_> = printed.lines().take(2).collect();
    assert_eq!(lines, ["0.3651 0.7303 1.0954 1.4606", "-0.3651 -0.7303 -1.0954 -1.4606"]);
    let printed = run(&mut command(build("examples/c/layer_norm_training.cpp", Language::Cpp17)));
    let last = printed.lines().last().unwrap_or_default();
    let loss = |line: &str| line.rsplit(' ').next().and_then(|word| word.parse::<f64>().ok());
    let first = printed.lines().next().and_then(loss).expect("the first line ends with a loss");
    let last = loss(last).expect("the last line ends with a loss");
    assert!(first > 0.1 && last < first / 100.0, "the loss went from {first} to {last}");
}
