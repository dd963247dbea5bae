//! Code behind the C boundary allocates with `src/heap.rs`, which reports a lack of memory. The standard library's
//! functions abort the process.

mod source;

use source::{code, files, is_word, text, without_tests};
use std::collections::BTreeSet;

/// The allocating functions of the standard library, which abort the process on failure.
const ALLOCATING: &[&str] = &[
    "format!",
    "vec!",
    "print!",
    "println!",
    "eprintln!",
    "String",
    "CString",
    "Arc",
    "Rc",
    "HashMap",
    "BTreeMap",
    "Box::new",
    "with_capacity",
    "to_string",
    "to_owned",
    "to_vec",
    "env::var",
    "thread::spawn",
    "Builder::new",
    "available_parallelism",
];

/// Where these words may occur, and why.
const MAY_ALLOCATE: &[(&str, &str, &str)] = &[
    ("threads/worker.rs", "Builder::new", "only where threads are not POSIX's"),
    ("threads/processors.rs", "available_parallelism", "allocates on Linux only"),
    ("threads/team.rs", "Box::new", "after a panic, which has allocated"),
    ("threads/caller.rs", "Box::new", "after a panic, which has allocated"),
];

/// The words of [`ALLOCATING`] in code, and collected lists.
fn allocations(text: &str) -> Vec<&'static str> {
    let code = without_tests(&code(text));
    let is_whole = |at: usize, word: &str| {
        let before = at.checked_sub(1).map_or(b' ', |i| code.as_bytes()[i]);
        let after = code.as_bytes().get(at + word.len()).copied().unwrap_or(b' ');
        !is_word(before) && (word.ends_with('!') || !is_word(after))
    };
    let there = |word: &&str| code.match_indices(word).any(|(at, _)| is_whole(at, word));
    let mut found: Vec<_> = ALLOCATING.iter().copied().filter(there).collect();
    let collects = |statement: &str| {
        let list = statement
            .match_indices("Vec<")
            .any(|(at, _)| !statement[..at].ends_with(|c: char| c.is_alphanumeric()));
        list && (statement.contains(".collect(") || statement.contains(".collect::<"))
    };
    if code.split([';', '{']).any(collects) {
        found.push("collect");
    }
    found
}

/// Files of tests are compiled for tests only.
fn is_of_tests(file: &std::path::Path) -> bool {
    file.to_string_lossy().ends_with("tests.rs")
}

#[test]
fn code_behind_the_boundary_allocates_through_heap() {
    assert_eq!(allocations("let v: Vec<u8> = a.collect(); b(format!(c))"), ["format!", "collect"]);
    assert_eq!(allocations("let v: ArrayVec<u8, 2> = a.collect(); Strings::Box { x }"), [""; 0]);
    let mut used = BTreeSet::new();
    for file in files(&["rs"]).iter().filter(|file| file.starts_with("src") && !is_of_tests(file)) {
        let name = file.strip_prefix("src").expect("it is there").to_str().expect("names are text");
        for word in allocations(&text(file)) {
            let allowed = MAY_ALLOCATE.iter().find(|row| (row.0, row.1) == (name, word));
            assert!(allowed.is_some(), "src/{name}: {word} ends the process if there is no memory");
            used.insert((name.to_owned(), word));
        }
    }
    assert_eq!(used.len(), MAY_ALLOCATE.len(), "only these allocate: {used:?}");
}
