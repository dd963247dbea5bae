//! Imports inside `benchdnn/harness/src` go down only, and no driver imports another.
//!
//! Every path that begins with `crate::` counts, not only those in `use` lines. Paths inside a
//! module (`super::`) are free, but a driver must not leave its folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The layers, lowest first; a module imports from layers below its own.
const LAYERS: &[&[&str]] = &[
    // These depend on nothing.
    &["float_mode", "language", "parallel", "quiet", "timing"],
    &["contest", "data_type", "direction"],
    // Tensors, attributes, and the oracle.
    &["check", "oracle", "tensor"],
    &["attributes", "executor", "steps"],
    &["fill", "library", "outcome"],
    &["execution", "peer", "progress", "summary", "template"],
    // What a driver implements.
    &["problem", "run"],
    &["driver", "job", "post_op_chain", "step_chain"],
    &["normalization"],
    // The modes, and the output.
    &["report"],
    &["rotation", "verdict"],
    &["roofline"],
    &["machine", "modes"],
    &["harness"],
    // Above the harness, in which nothing names a driver.
    &["drivers"],
    &["lib", "main"],
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// A file's code without comments.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// The first two names of each path after `prefix`; a group in braces gives one path for each item.
fn paths(code: &str, prefix: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let items = match rest.strip_prefix('{') {
            Some(group) => items(group),
            None => vec![rest],
        };
        for item in items {
            let module = word(item);
            let inner = item[module.len()..].strip_prefix("::").map_or("", word);
            found.push((module.to_owned(), inner.to_owned()));
        }
    }
    found
}

/// The items of a group, up to its closing brace.
fn items(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let item = group[start..at].trim();
                items.extend((!item.is_empty()).then_some(item));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    items
}

/// What is wrong with the imports of `files`, which map paths below `src/` to texts.
fn violations(files: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, text) in files {
        let shown = file.display();
        let parts: Vec<&str> =
            file.iter().map(|part| part.to_str().expect("names are text")).collect();
        let own = parts[0].trim_end_matches(".rs");
        let Some(own_layer) = layer(own) else {
            wrong.push(format!("{shown}: the module {own} has no layer"));
            continue;
        };
        if own == "lib" {
            continue; // the root names every module
        }
        let driver = parts.get(1).map_or("", |part| part.trim_end_matches(".rs"));
        let code = code(text);
        let prefix = if own == "main" { "benchdnn::" } else { "crate::" };
        for (module, inner) in paths(&code, prefix) {
            match layer(&module) {
                None => wrong.push(format!("{shown}: {prefix}{module} has no layer")),
                Some(other) if module != own && other >= own_layer => {
                    wrong.push(format!("{shown}: {prefix}{module} is not below {own}"));
                }
                Some(_) if own == "drivers" && module == own && inner != driver => {
                    wrong.push(format!("{shown}: {prefix}{module}::{inner} is another driver"));
                }
                Some(_) => {}
            }
        }
        // A path through its parents leaves the driver's folder.
        if own == "drivers" && parts.len() > 2 && code.contains("super::super::") {
            wrong.push(format!("{shown}: super::super:: leaves the driver"));
        }
    }
    wrong
}

fn read(folder: &Path, root: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).expect("src can be read") {
        let path = entry.expect("src can be read").path();
        if path.is_dir() {
            read(&path, root, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("it is below src").to_path_buf();
            files.insert(name, std::fs::read_to_string(&path).expect("sources are text"));
        }
    }
}

fn sources() -> BTreeMap<PathBuf, String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/src");
    let mut files = BTreeMap::new();
    read(&src, &src, &mut files);
    files
}

#[test]
fn imports_go_down_only() {
    let files = sources();
    let imports: usize = files.values().map(|text| paths(&code(text), "crate::").len()).sum();
    assert!(imports > 200, "only {imports} imports were found");
    let wrong = violations(&files);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A mode that names a driver is not a mode of the harness.
#[test]
fn modes_name_no_driver() {
    let files = sources();
    let drivers: Vec<String> = files
        .keys()
        .filter(|file| file.starts_with("drivers") && file.iter().count() == 3)
        .map(|file| file.iter().nth(1).expect("a folder").to_string_lossy().into_owned())
        .collect();
    assert!(drivers.contains(&"lnorm".to_owned()), "{drivers:?}");
    for (file, text) in files.iter().filter(|(file, _)| file.starts_with("modes")) {
        for driver in &drivers {
            let found = code(text).to_lowercase().contains(driver.as_str());
            assert!(!found, "{} names {driver}", file.display());
        }
    }
}

#[test]
fn upward_and_sideways_imports_are_caught() {
    let wrong = |file: &str, text: &str| {
        violations(&BTreeMap::from([(PathBuf::from(file), text.to_owned())])).join("\n")
    };
    assert_eq!(wrong("modes/mod.rs", "use crate::problem::Problem; // crate::drivers"), "");
    assert_eq!(wrong("drivers/mod.rs", "use crate::driver::Driver;"), "");
    assert_eq!(wrong("drivers/lnorm/data.rs", "use crate::drivers::lnorm::ROW;"), "");
    assert_eq!(wrong("main.rs", "use benchdnn::{drivers, harness};"), "");
    assert!(wrong("modes/mod.rs", "crate::drivers::lnorm::ROW").contains("not below"));
    assert!(wrong("check.rs", "use crate::{data_type::X, modes::run};").contains("not below"));
    let other = "use crate::drivers::{lnorm::ROW, reorder};";
    assert!(!wrong("drivers/lnorm/data.rs", other).is_empty());
    let other = "use crate::drivers::reorder::ROW;";
    assert!(wrong("drivers/lnorm/data.rs", other).contains("another driver"));
    let other = "use super::super::reorder::ROW;";
    assert!(wrong("drivers/lnorm/data.rs", other).contains("leaves the driver"));
    assert!(wrong("helpers.rs", "").contains("no layer"));
    assert!(wrong("harness.rs", "use crate::helpers::x;").contains("no layer"));
}
