//! The sizes that CONTRIBUTING.md allows: at most 500 lines per file, and at most 60 per function in `src/` and
//! `benchdnn/harness/src/`. Also, nothing is compiled twice without need, nothing waits for another thread's
//! initialization, and every crate that is published has a README and the texts of the licenses.
//!
//! Larger ones are listed with their sizes. A list may only shrink: it is also an error if a listed file or function
//! has become small enough.

mod source;

use source::{code, files, is_word, text};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 60;

/// Files that are long for a reason.
const WHOLE: &[(&str, &str)] = &[("norm-sys/src/bindings.rs", "generated from the headers")];

/// Files that are too long, with their lines. They may only get shorter.
const LONG_FILES: &[(&str, usize)] = &[];

/// Functions that are too long: file, name, lines of the body. They may only get shorter.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// The functions of a Rust file: name, line, and lines between the braces of the body.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let code = code(text);
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let name: String = code[at + 3..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || "_$".contains(*c))
            .collect();
        if name.is_empty() || (at > 0 && is_word(bytes[at - 1])) {
            continue;
        }
        let Some(open) = body(&bytes[at..]).map(|offset| at + offset) else { continue };
        let mut depth = 0;
        let close = bytes[open..].iter().position(|byte| {
            depth += i32::from(*byte == b'{') - i32::from(*byte == b'}');
            depth == 0
        });
        let close = open + close.unwrap_or_else(|| panic!("the body of {name} does not end"));
        let lines = code[open..close].matches('\n').count();
        found.push((name, code[..at].matches('\n').count() + 1, lines.saturating_sub(1)));
    }
    found
}

/// Where the body of the function begins; `None` if it is only declared.
fn body(code: &[u8]) -> Option<usize> {
    let mut depth = 0;
    let end = code.iter().position(|byte| {
        depth += i32::from(matches!(byte, b'(' | b'[')) - i32::from(matches!(byte, b')' | b']'));
        depth < 0 || (depth == 0 && matches!(byte, b'{' | b';'))
    })?;
    (code[end] == b'{').then_some(end)
}

/// What is wrong with a size, given the limit and the size that is listed as an exception.
fn verdict(size: usize, most: usize, listed: Option<usize>) -> Option<String> {
    match listed {
        None => {
            (size > most).then(|| format!("{size} lines, at most {most} are allowed: split it"))
        }
        Some(_) if size <= most => Some(format!("{size} lines: take it off the list")),
        Some(listed) => {
            (size > listed).then(|| format!("{size} lines, more than the listed {listed}"))
        }
    }
}

#[test]
fn files_are_short() {
    let all = files(&["rs", "c", "cpp", "h", "hpp", "py"]);
    assert!(all.len() > 100, "only {} files were found", all.len());
    let mut wrong = Vec::new();
    for file in &all {
        let name = file.to_str().expect("names are text");
        if WHOLE.iter().any(|(whole, _)| *whole == name) {
            continue;
        }
        let listed = LONG_FILES.iter().find(|(long, _)| *long == name).map(|(_, lines)| *lines);
        let said = verdict(text(file).lines().count(), FILE_LINES, listed);
        wrong.extend(said.map(|said| format!("{name}: {said}")));
    }
    let listed = WHOLE.iter().map(|(name, _)| name).chain(LONG_FILES.iter().map(|(name, _)| name));
    wrong.extend(
        listed
            .filter(|name| !all.contains(&PathBuf::from(name)))
            .map(|name| format!("{name}: not there")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_are_short() {
    let (mut count, mut wrong, mut seen) = (0, Vec::new(), Vec::new());
    for file in files(&["rs"]) {
        if !file.starts_with("src") && !file.starts_with("benchdnn/harness/src") {
            continue;
        }
        let path = file.to_str().expect("names are text");
        let listed =
            |name: &str| LONG_FUNCTIONS.iter().position(|row| row.0 == path && row.1 == name);
        let mut longest: Vec<(String, usize, usize)> = Vec::new();
        for (name, line, lines) in functions(&text(&file)) {
            count += 1;
            // Several `impl` blocks may have the name; the longest function counts.
            match longest.iter_mut().find(|known| known.0 == name) {
                Some(known) if known.2 >= lines => {}
                Some(known) => *known = (name, line, lines),
                None => longest.push((name, line, lines)),
            }
        }
        for (name, line, lines) in longest {
            let row = listed(&name);
            seen.extend(row);
            let said = verdict(lines, FUNCTION_LINES, row.map(|row| LONG_FUNCTIONS[row].2));
            wrong.extend(said.map(|said| format!("{path}:{line}: {name}: {said}")));
        }
    }
    let gone = (0..LONG_FUNCTIONS.len()).filter(|row| !seen.contains(row));
    wrong.extend(gone.map(|row| format!("{:?}: take it off the list", LONG_FUNCTIONS[row])));
    assert!(count > 500, "only {count} functions were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sizes_are_counted() {
    let text = "// fn a() {\nfn b(x: [u8; 2]) -> char {\n    let s = \"}\\\"}\";\n    '}'\n}\ntrait T {\n    \
                fn c<'a>(x: &'a str);\n    fn d() { fn e() {\n\n} }\n}\ntype F = fn (u8);\nconst R: &str = r#\"}\"}\"#;\n";
    let found = functions(text);
    let expected = [("b", 2, 2), ("d", 8, 1), ("e", 8, 1)];
    assert_eq!(found, expected.map(|(name, line, lines)| (name.to_owned(), line, lines)));
    assert_eq!(code("a 'b' 'c: '\\'' /* { */ d"), "a     'c:              d");
}

#[test]
fn lists_only_shrink() {
    assert_eq!(verdict(500, 500, None), None);
    assert!(verdict(501, 500, None).is_some_and(|said| said.contains("at most 500")));
    assert_eq!(verdict(520, 500, Some(520)), None);
    assert!(verdict(521, 500, Some(520)).is_some_and(|said| said.contains("more than the listed")));
    assert!(verdict(500, 500, Some(520)).is_some_and(|said| said.contains("off the list")));
}

/// The lines that a command of cargo prints.
fn cargo(command: &str, arguments: &[&str]) -> BTreeSet<String> {
    let told = Command::new(env!("CARGO"))
        .args([command, "--offline", "--locked"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let lines = String::from_utf8(told.stdout).expect("text");
    lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// The crates that a command compiles, with their versions and features.
fn compiled(selection: &[&str]) -> BTreeSet<String> {
    cargo("tree", &[&["--prefix", "none", "--format", "{p} {f}"], selection].concat())
}

/// A feature that only the tests request would make `cargo test --workspace` compile a crate, and all that use it,
/// again.
#[test]
fn the_tests_compile_nothing_of_benchdnn_a_second_time() {
    let alone = compiled(&["--package", "benchdnn", "--edges", "normal,build"]);
    let all = compiled(&["--workspace", "--edges", "normal,build,dev"]);
    let again: Vec<&String> = alone.difference(&all).collect();
    assert!(alone.len() > 10 && again.is_empty(), "other features with the tests: {again:#?}");
}

/// A child of fork() would wait for ever if another thread of its parent was initializing (RFC 0004).
#[test]
fn no_initialization_is_waited_for() {
    for file in files(&["rs"]).iter().filter(|file| file.starts_with("src")) {
        let code = code(&text(file));
        let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        let found = words.find(|word| ["Once", "OnceLock", "LazyLock"].contains(word));
        assert_eq!(found, None, "{}", file.display());
    }
}

#[test]
fn published_crates_have_their_licenses() {
    for package in ["norm-sys", "libnorm", "norm-rs", "benchdnn-harness", "benchdnn"] {
        let files = cargo("package", &["--list", "--allow-dirty", "--package", package]);
        for name in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
            assert!(files.contains(name), "{package} has no {name}");
        }
    }
}
