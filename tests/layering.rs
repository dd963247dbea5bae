//! Imports in `src/` go downwards only: `capi -> ops -> primitive -> {simd, tensor, threads}`. An
//! operation never imports another. Every path that begins with `crate::` counts, not only those in
//! `use` lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The layers. Higher ones may import lower ones; those with equal numbers may not import each
/// other. `simd` imports the data types of its element types from `tensor`.
const LAYERS: &[(&str, u8)] = &[
    ("capi", 6),
    ("ops", 5),
    ("rows", 4),
    ("primitive", 3),
    ("simd", 2),
    ("tensor", 1),
    ("threads", 2),
    ("error", 0),
];

fn layer(module: &str) -> Option<u8> {
    LAYERS.iter().find(|(name, _)| *name == module).map(|(_, layer)| *layer)
}

/// The paths after each `crate::` in a text, with groups in braces expanded, two names deep: `use
/// crate::{ops::layer_normalization::Desc, tensor}` gives `ops::layer_normalization` and `tensor`.
fn crate_paths(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let own_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        // `$crate::` in a macro is a path too.
        if own_word {
            expand(&code[at + "crate::".len()..], "", &mut found);
        }
    }
    found
}

/// Parses one path or the group that ends it. Returns the length parsed.
fn expand(text: &str, before: &str, found: &mut Vec<String>) -> usize {
    if let Some(group) = text.strip_prefix('{') {
        let mut taken = 1;
        loop {
            let rest = &text[taken..];
            let skip = rest.len() - rest.trim_start_matches([',', ' ', '\n']).len();
            taken += skip;
            if text[taken..].starts_with('}') {
                return taken + 1;
            }
            assert!(taken < group.len(), "a group does not end: {text:.80}");
            taken += expand(&text[taken..], before, found).max(1);
        }
    }
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let path = if before.is_empty() { name.clone() } else { format!("{before}::{name}") };
    match text[name.len()..].strip_prefix("::") {
        Some(rest) if before.is_empty() && !rest.starts_with('<') => {
            name.len() + 2 + expand(rest, &path, found)
        }
        rest => {
            found.push(path);
            // Deeper names and renames do not matter; groups there contain no modules.
            let tail = rest.unwrap_or(&text[name.len()..]);
            let mut depth = 0;
            let end = tail.find(|c| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth < 0 || (depth == 0 && matches!(c, ',' | ';'))
            });
            text.len() - tail.len() + end.unwrap_or(tail.len())
        }
    }
}

/// The wrong imports in `files`: path from `src/`, and text.
fn violations(files: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, text) in files {
        let mut parts = file.iter().map(|p| p.to_str().expect("names are text"));
        let first = parts.next().expect("a file has a name").trim_end_matches(".rs");
        let op = parts.next().map(|name| name.trim_end_matches(".rs"));
        if first == "lib" {
            continue; // the root names every module
        }
        let Some(own) = layer(first) else {
            wrong.push(format!("{}: the module {first} has no layer", file.display()));
            continue;
        };
        for path in crate_paths(text) {
            let (module, inner) = path.split_once("::").unwrap_or((&path, ""));
            let Some(other) = layer(module) else {
                wrong.push(format!("{}: crate::{path} has no layer", file.display()));
                continue;
            };
            let same_module = module == first;
            if !same_module && other >= own {
                wrong.push(format!("{}: crate::{path} is not below {first}", file.display()));
            }
            if first == "ops" && same_module && op.is_some_and(|op| op != "mod" && op != inner) {
                wrong.push(format!("{}: crate::{path} is another op", file.display()));
            }
        }
    }
    wrong
}

fn read(folder: &Path, root: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).expect("src can be read") {
        let path = entry.expect("src can be read").path();
        if path.is_dir() {
            read(&path, root, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.strip_prefix(root).expect("it is below src").to_path_buf();
            files.insert(name, std::fs::read_to_string(&path).expect("sources are text"));
        }
    }
}

#[test]
fn imports_go_downwards_only() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = BTreeMap::new();
    read(&src, &src, &mut files);
    let imports: usize = files.values().map(|text| crate_paths(text).len()).sum();
    assert!(imports > 20, "only {imports} imports were found");
    let wrong = violations(&files);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn paths_are_parsed() {
    let text = "use crate::{ops::rope::{Desc, kernel::Run}, tensor};\n// crate::capi\n\
                let x: crate::simd::Level = mycrate::y();\nuse crate::threads::{split, join};\n\
                use crate::{\n    primitive::Attr as A,\n    error::{Error, Result},\n};";
    let found = crate_paths(text);
    let expected = [
        "ops::rope",
        "tensor",
        "simd::Level",
        "threads::split",
        "threads::join",
        "primitive::Attr",
        "error::Error",
        "error::Result",
    ];
    assert_eq!(found, expected);
}

#[test]
fn wrong_imports_are_detected() {
    let wrong = |file: &str, text: &str| {
        violations(&BTreeMap::from([(PathBuf::from(file), text.to_owned())])).join("\n")
    };
    assert_eq!(wrong("capi/engine.rs", "use crate::ops::rope::Desc;"), "");
    assert_eq!(wrong("ops/rope/mod.rs", "use crate::ops::rope::kernel::run;"), "");
    assert_eq!(wrong("ops/mod.rs", "pub use crate::ops::rope::Desc;"), "");
    assert_eq!(wrong("primitive/desc.rs", "use crate::error::Error;"), "");
    assert!(wrong("primitive/desc.rs", "use crate::ops::rope::Desc;").contains("not below"));
    assert!(wrong("simd/avx2.rs", "fn f() { crate::threads::split() }").contains("not below"));
    assert!(wrong("threads.rs", "use crate::{error::E, capi::guard};").contains("not below"));
    assert!(wrong("ops/rope/mod.rs", "use crate::ops::softmax::Desc;").contains("another op"));
    assert!(wrong("helpers.rs", "").contains("no layer"));
    assert!(wrong("capi/mod.rs", "use crate::helpers::x;").contains("no layer"));
}
