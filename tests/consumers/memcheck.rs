//! The programs under valgrind's memcheck: no errors and no leaks of any kind. `memcheck.supp` has
//! the one exception, which is glibc's; children of fork() are the other.
//!
//! valgrind does not support AVX-512, so this covers the levels below it. `guard_pages` and
//! `guard_pages_sdpa` cover all levels, and memcheck cannot run them because they rely on faults.
//! `float_environment` needs rounding modes that valgrind does not emulate. valgrind runs one
//! thread at a time.

use std::process::Command;

use crate::toolchain::{Language, build, command, has, root, run};

#[derive(Clone, Copy, PartialEq)]
enum Leaks {
    Errors,
    Allowed,
}

fn memcheck(leaks: Leaks, source: &str, arguments: &[&str]) -> Command {
    let language = match source.ends_with(".cpp") {
        true => Language::Cpp17,
        // The others finish before optimization pays.
        false if arguments.is_empty() => Language::C99,
        false => Language::C99Optimized,
    };
    let mut valgrind = command("valgrind");
    valgrind
        .args(["-q", "--error-exitcode=9", "--num-callers=30"])
        .arg(if leaks == Leaks::Errors { "--leak-check=full" } else { "--leak-check=no" })
        .args(["--show-leak-kinds=definite,indirect,possible"])
        .args(["--errors-for-leak-kinds=definite,indirect,possible"])
        // Otherwise a spinning thread keeps the others from running.
        .arg("--fair-sched=yes")
        // Does not replace a program's own malloc, as in `allocations`, only glibc's.
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
    stale_handles: "tests/c/stale_handles.c";
    names: "tests/c/names.c";
    attributes: "tests/c/attributes.c";
    layouts: "tests/c/layouts.c";
    reorder: "tests/c/reorder.c" "emulated";
    bad_objects: "tests/c/bad_objects.c";
    bad_descriptors: "tests/c/bad_descriptors.c";
    bad_executions: "tests/c/bad_executions.c";
    around_errors: "tests/c/around_errors.c";
    residual_exact: "tests/c/residual_exact.c";
    explain: "tests/c/explain.c";
    kv_cache: "tests/c/kv_cache.c" "emulated";
    kv_cache_quantized: "tests/c/kv_cache_quantized.c" "emulated";
    execute_many: "tests/c/execute_many.c" "emulated";
    host_scalars: "tests/c/host_scalars.c";
    layer_normalization: "tests/c/layer_normalization.c" "emulated";
    edge_rows: "tests/c/edge_rows.c" "emulated";
    allocations: "tests/c/allocations.c" "emulated";
    caller_threads: "tests/c/caller_threads.c" "emulated";
    threads: "tests/c/threads.c" "emulated";
    wrapper: "tests/c/wrapper.cpp";
    rms_norm_example: "examples/c/rms_norm.c";
    training_example: "examples/c/layer_norm_training.cpp";
}

/// A forked child loses the memory that only the parent's other threads pointed to.
#[test]
fn children_of_fork() {
    if has("valgrind") {
        run(&mut memcheck(Leaks::Allowed, "tests/c/fork.c", &["emulated"]));
        run(&mut memcheck(Leaks::Allowed, "tests/c/fork_first_use.c", &["0"]));
    }
}

#[test]
fn a_leak_is_detected() {
    if has("valgrind") {
        let output = memcheck(Leaks::Errors, "tests/c/objects.c", &["leak"])
            .output()
            .expect("valgrind runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(9), "{said}");
        assert!(said.contains("norm_primitive_attr_create"), "{said}");
    }
}
