//! Environment variables with meaningless values: one warning each, and no other effect.

use crate::toolchain::{Language, build, command, text};

/// Runs the program and returns the lines that it wrote to standard error.
fn warnings(variables: &[(&str, &str)], arguments: &[&str]) -> Vec<String> {
    let mut program = command(build("tests/c/environment.c", Language::C99));
    let output = program.envs(variables.iter().copied()).args(arguments).output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{variables:?}: {}", text(&output));
    let said = String::from_utf8(output.stderr).expect("warnings are text");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn values_that_mean_nothing_are_warned_about_once() {
    let [threads, isa, verbose] = ["NORM_NUM_THREADS", "NORM_MAX_CPU_ISA", "NORM_VERBOSE"];
    for (variable, value, reason) in [
        (threads, "abc", "it is not a number of threads, 1 to 255"),
        (threads, "-2", "it is not a number of threads, 1 to 255"),
        (
            isa,
            "avx5",
            "it is not an instruction set; try portable, avx2, avx512, avx512_bf16, avx512_amx or neon",
        ),
        (verbose, "loud", "it is not 0, 1 or 2"),
    ] {
        let want = format!("libnorm: warning: {variable}={value} is ignored: {reason}");
        assert_eq!(warnings(&[(variable, value)], &[]), [want]);
    }
    let foreign = if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" };
    let want =
        format!("libnorm: warning: {isa}={foreign} is ignored: it belongs to another architecture");
    assert_eq!(warnings(&[(isa, foreign)], &[]), [want]);
    assert_eq!(warnings(&[(isa, "avx5"), (threads, "many"), (verbose, "x")], &[]).len(), 3);
}

#[test]
fn values_with_a_meaning_are_applied_in_silence() {
    let none: [String; 0] = [];
    let [threads, isa] = ["NORM_NUM_THREADS", "NORM_MAX_CPU_ISA"];
    assert_eq!(warnings(&[(threads, " 3 ")], &["3"]), none);
    assert_eq!(warnings(&[(threads, "1000")], &["255"]), none);
    assert_eq!(warnings(&[(threads, ""), (isa, "")], &[]), none);
    assert_eq!(warnings(&[(threads, "0")], &[]), none);
    assert_eq!(warnings(&[(isa, "Portable")], &["0", "portable"]), none);
    assert_eq!(warnings(&[(isa, "all")], &[]), none);
}
