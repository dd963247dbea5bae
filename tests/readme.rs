//! The C program of README.md compiles without warnings, runs against the fresh library and prints
//! the output that the README shows. (The Rust program is a doctest of `norm-rs`.)
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

/// The text of the first fenced block of a language.
fn block<'a>(readme: &'a str, kind: &str) -> &'a str {
    let begin =
        readme.find(&format!("```{kind}\n")).expect("the README has the block") + kind.len() + 4;
    let end = begin + readme[begin..].find("```").expect("the block ends");
    &readme[begin..end]
}

#[test]
fn the_c_program_prints_what_the_readme_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("there is a README");
    let here = std::env::current_exe().expect("a test has a path");
    let libraries = here.parent().expect("it lies in a folder");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("readme.c"), folder.join("readme"));
    std::fs::write(&source, block(&readme, "c")).expect("the folder can be written");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let built = Command::new(compiler)
        .args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .arg("-I")
        .arg(root.join("include"))
        .arg(&source)
        .arg("-L")
        .arg(libraries)
        .arg("-lnorm")
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("there is a C compiler");
    assert!(built.success());
    let output = Command::new(&program).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), block(&readme, "text"));
}
