//! The programs under valgrind's memcheck: no error, no leak of any kind (`memcheck.supp` holds
//! the one exception, which is glibc's).
//!
//! valgrind knows no AVX-512, so this sees the levels below it; `guard_pages` sees all. That
//! program and `allocations` bring their own means, `float_environment` needs rounding modes that
//! valgrind does not emulate, and the programs with many threads take minutes under it.

use std::process::Command;

use crate::toolchain::{Language, build, command, has, root, run};

fn memcheck(source: &str, arguments: &[&str]) -> Command {
    let language = if source.ends_with(".cpp") { Language::Cpp17 } else { Language::C99 };
    let mut valgrind = command("valgrind");
    valgrind
        .args(["-q", "--error-exitcode=9", "--leak-check=full", "--num-callers=30"])
        .args(["--show-leak-kinds=definite,indirect,possible"])
        .args(["--errors-for-leak-kinds=definite,indirect,possible"])
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
                run(&mut memcheck($source, &[$($argument)?]));
            }
        }
    )*};
}

clean! {
    objects: "tests/c/objects.c";
    names: "tests/c/names.c";
    bad_objects: "tests/c/bad_objects.c";
    bad_descriptors: "tests/c/bad_descriptors.c";
    bad_executions: "tests/c/bad_executions.c";
    layer_normalization: "tests/c/layer_normalization.c" "emulated";
    edge_rows: "tests/c/edge_rows.c" "emulated";
    wrapper: "tests/c/wrapper.cpp";
    rms_norm_example: "examples/c/rms_norm.c";
    training_example: "examples/c/layer_norm_training.cpp";
}

#[test]
fn a_leak_is_seen() {
    if has("valgrind") {
        let output = memcheck("tests/c/objects.c", &["leak"]).output().expect("valgrind runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(9), "{said}");
        assert!(said.contains("norm_primitive_attr_create"), "{said}");
    }
}
