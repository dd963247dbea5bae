//! The fuzz targets call every exported function except a few, each of which has a reason.

mod source;

use source::{code, files, is_word, text};
use std::collections::BTreeSet;
use std::path::Path;

/// Functions that no target calls.
const LEFT_OUT: &[(&str, &str)] =
    &[("norm_set_verbose", "every call of every thread would print lines from then on")];

/// The names in code that follow `sys::`.
fn used(code: &str) -> impl Iterator<Item = &str> {
    code.split("sys::").skip(1).map(|rest| {
        let end = rest.bytes().position(|byte| !is_word(byte));
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[test]
fn names_are_found_in_code() {
    let sample = "sys::norm_a(sys::norm_b); // sys::norm_c\nnorm_d(\"sys::norm_e\", sys::norm_f)";
    assert_eq!(used(&code(sample)).collect::<Vec<_>>(), ["norm_a", "norm_b", "norm_f"]);
}

#[test]
fn every_function_is_called() {
    let exported = text(Path::new("tests/symbols/libnorm.txt"));
    let exported: BTreeSet<&str> = exported.lines().collect();
    let targets = files(&["rs"]).into_iter().filter(|file| file.starts_with("fuzz/src"));
    let code: String = targets.map(|file| code(&text(&file))).collect();
    let used: BTreeSet<&str> = used(&code).collect();
    let left_out: BTreeSet<&str> = LEFT_OUT.iter().map(|(name, _)| *name).collect();
    let mut wrong = Vec::new();
    for name in exported.iter().filter(|name| !used.contains(*name) && !left_out.contains(*name)) {
        wrong.push(format!("{name}: call it in fuzz/src, or add it to LEFT_OUT with a reason"));
    }
    for name in &left_out {
        if used.contains(name) || !exported.contains(name) {
            wrong.push(format!("{name}: take it off LEFT_OUT: it is called, or not exported"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
