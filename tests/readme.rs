//! The C and C++ programs of README.md and docs/ compile without warnings, run against the fresh library and print
//! what the pages show below them. (The Rust programs are doctests of `norm-rs`.)
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

/// A fenced block: the words behind its fence, and its text.
type Block<'a> = (&'a str, &'a str);

/// The fenced blocks of a page, in order.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((_, behind)) = rest.split_once("\n```") {
        let (kind, text) = behind.split_once('\n').expect("a fence ends its line");
        // An empty block ends where it begins.
        let end =
            if text.starts_with("```") { 0 } else { text.find("\n```").expect("it ends") + 1 };
        found.push((kind, &text[..end]));
        rest = &text[end + 3..];
    }
    found
}

/// The programs of a language, each with the next block, which shows its output.
fn programs<'a>(page: &'a str, language: &str) -> Vec<(Block<'a>, &'a str)> {
    let blocks = blocks(page);
    let of_language = |kind: &str| kind.split(' ').next() == Some(language);
    let starts = (0..blocks.len()).filter(|&at| of_language(blocks[at].0));
    let with_output = starts.map(|at| {
        let output = blocks[at + 1..].iter().find(|(kind, _)| *kind == "text");
        (blocks[at], output.expect("the page shows the output").1)
    });
    with_output.collect()
}

/// Builds a program and returns what it prints.
fn run(name: &str, language: &str, (kind, text): Block<'_>) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let here = std::env::current_exe().expect("a test has a path");
    let libraries = here.parent().expect("it lies in a folder");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join(format!("{name}.{language}")), folder.join(name));
    std::fs::write(&source, text).expect("the folder can be written");
    let (variable, default, standard) =
        if language == "c" { ("CC", "cc", "-std=c99") } else { ("CXX", "c++", "-std=c++17") };
    let compiler = std::env::var(variable).unwrap_or_else(|_| default.into());
    let without = kind.ends_with("no-exceptions").then_some("-fno-exceptions");
    let built = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .args(without)
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
        .expect("there is a compiler");
    assert!(built.success(), "{name} does not compile");
    let output = Command::new(&program).output().expect("the program runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("programs print text")
}

/// Runs all programs of a page and compares what they print.
fn check(page: &str, language: &str, count: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join(page)).expect("the page can be read");
    let programs = programs(&text, language);
    assert_eq!(programs.len(), count, "programs in {page}");
    for (number, (program, shown)) in programs.into_iter().enumerate() {
        let name = format!("{}-{number}", page.replace(['/', '.'], "-"));
        assert_eq!(run(&name, language, program), shown, "{name}");
    }
}

#[test]
fn the_c_program_prints_what_the_readme_shows() {
    check("README.md", "c", 1);
}

#[test]
fn the_cpp_programs_print_what_the_pages_show() {
    check("docs/five-minutes-cpp.md", "cpp", 3);
    check("docs/cpp.md", "cpp", 2);
}

#[test]
fn blocks_are_found() {
    let page = "a\n```c\nx\ny\n```\nb\n```sh\n```\n```text\nz\n```\n";
    assert_eq!(blocks(page), [("c", "x\ny\n"), ("sh", ""), ("text", "z\n")]);
    assert_eq!(programs(page, "c"), [(("c", "x\ny\n"), "z\n")]);
}
