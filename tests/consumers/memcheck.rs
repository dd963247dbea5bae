//! The programs under valgrind's memcheck: no error, no leak of any kind (`memcheck.supp` holds
//! the one exception, which is glibc's; children of fork() are the other).
//!
//! valgrind knows no AVX-512, so this sees the levels below it; `guard_pages` sees all, and memcheck can
//! add nothing to a program that lives from faults. `float_environment` needs rounding modes that
//! valgrind does not emulate. Threads run one at a time under valgrind.

use std::process::Command;

use crate::toolchain::{Language, build, command, has, root, run};

#[derive(Clone, Copy, PartialEq)]
enum Leaks {
    Errors,
    Allowed,
}

fn memcheck(leaks: Leaks, source: &str, arguments: &[&str]) -> Command {
    let language = if source.ends_with(".cpp") { Language::Cpp17 } else { Language::C99 };
    let mut valgrind = command("valgrind");
    valgrind
        .args(["-q", "--error-exitcode=9", "--num-callers=30"])
        .arg(if leaks == Leaks::Errors { "--leak-check=full" } else { "--leak-check=no" })
        .args(["--show-leak-kinds=definite,indirect,possible"])
        .args(["--errors-for-leak-kinds=definite,indirect,possible"])
        // Without it, a thread that looks for work keeps the others waiting for theirs.
        .arg("--fair-sched=yes")
        // A program's own malloc, as that of `allocations`, is not replaced; the next one, glibc's, is.
        .arg("--soname-synonyms=somalloc=nouserintercepts")
        .arg(format!("--suppressions={}", root().join("tests/consumers/memcheck.supp").display()))
        .arg(build(source, language))
        .args(arguments);
    valgrind
}

macro_rules! clean {
    ($($name:ident: $source:literal $($argument:literal)?;)*) => {$(
        #[test]
        fn $name() {
            if has("valgrind") {
                run(&mut memcheck(Leaks::Errors, $source, &[$($argument)?]));
            }
        }
    )*};
}

clean! {
    objects: "tests/c/objects.c";
    names: "tests/c/names.c";
    attributes: "tests/c/attributes.c";
    layouts: "tests/c/layouts.c";
    reorder: "tests/c/reorder.c" "emulated";
    bad_objects: "tests/c/bad_objects.c";
    bad_descriptors: "tests/c/bad_descriptors.c";
    bad_executions: "tests/c/bad_executions.c";
    layer_normalization: "tests/c/layer_normalization.c" "emulated";
    edge_rows: "tests/c/edge_rows.c" "emulated";
    allocations: "tests/c/allocations.c" "emulated";
    caller_threads: "tests/c/caller_threads.c";
    threads: "tests/c/threads.c" "emulated";
    wrapper: "tests/c/wrapper.cpp";
    rms_norm_example: "examples/c/rms_norm.c";
    training_example: "examples/c/layer_norm_training.cpp";
}

/// A child has lost what only the threads that are not in it knew.
#[test]
fn forks() {
    if has("valgrind") {
        run(&mut memcheck(Leaks::Allowed, "tests/c/fork.c", &["emulated"]));
        run(&mut memcheck(Leaks::Allowed, "tests/c/fork_first_use.c", &["0"]));
    }
}

#[test]
fn a_leak_is_seen() {
    if has("valgrind") {
        let output = memcheck(Leaks::Errors, "tests/c/objects.c", &["leak"])
            .output()
            .expect("valgrind runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(9), "{said}");
        assert!(said.contains("norm_primitive_attr_create"), "{said}");
    }
}
