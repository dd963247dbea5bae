//! Imports in `src/` only go down: `capi -> {ops, cache} -> rows -> primitive -> {simd, tensor, threads}`. Operations
//! never import each other. Modules of a folder do not import each other in a circle, so that a reader can begin with
//! one that needs no other; the same holds in `benchdnn/harness/src/`. Every path that begins with `crate::` or
//! `super::` counts, not only those in `use` lines.

mod source;

use source::{code, files, is_word, text, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The layers. Higher ones may import lower ones; those with equal numbers may not import each
/// other. `simd` imports the data types of its element types from `tensor`.
const LAYERS: &[(&str, u8)] = &[
    ("capi", 9),
    ("ops", 8),
    ("cache", 8),
    ("rows", 7),
    ("primitive", 6),
    ("simd", 5),
    ("tensor", 4),
    ("threads", 5),
    ("heap", 3),
    ("environment", 2),
    ("error", 2),
    ("per_thread", 1),
    ("text", 0),
    ("mark", 0),
    ("fork", 0),
];

fn layer(module: &str) -> Option<u8> {
    LAYERS.iter().find(|(name, _)| *name == module).map(|(_, layer)| *layer)
}

/// Folders whose modules import each other in a circle, and how many modules do. The list may only shrink: it is an
/// error if there are fewer such modules than listed.
const KNOWN_CIRCLES: &[(&str, usize)] = &[];

/// The paths after each `crate::` in a text, with groups in braces expanded, two names deep: `use
/// crate::{ops::layer_normalization::Desc, tensor}` gives `ops::layer_normalization` and `tensor`.
fn crate_paths(text: &str) -> Vec<String> {
    let code = code(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` in a macro is also a path.
        if at == 0 || !is_word(code.as_bytes()[at - 1]) {
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

/// The wrong imports in `files`, which map paths below `src/` to texts.
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

/// A path in code, relative to its module: how many modules up it begins (`None` for the root of the crate), and its
/// names.
type Import = (Option<usize>, Vec<String>);

/// The paths of a file that begin with `crate::` or `super::`, with groups in braces expanded. Modules in the file
/// count as levels; test modules are omitted.
fn imports(text: &str) -> Vec<Import> {
    let code = without_tests(&code(text));
    let bytes = code.as_bytes();
    let (mut found, mut depth, mut inline) = (Vec::new(), 0usize, Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        let starts_word = at == 0 || !is_word(bytes[at - 1]);
        let rest = &code[at..];
        match bytes[at] {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                inline.retain(|opened| *opened < depth);
            }
            b'm' if starts_word && rest.starts_with("mod ") => {
                let end = rest.find(['{', ';']).unwrap_or(rest.len());
                if rest[end..].starts_with('{') {
                    inline.push(depth);
                }
            }
            b'c' if starts_word && rest.starts_with("crate::") => {
                let (names, length) = tree(&rest["crate::".len()..]);
                found.extend(names.into_iter().map(|names| (None, names)));
                at += length;
            }
            b's' if starts_word && rest.starts_with("super::") => {
                let ups = rest.split("::").take_while(|name| *name == "super").count();
                let (names, length) = tree(&rest[ups * "super::".len()..]);
                let above = ups.checked_sub(inline.len()).filter(|above| *above > 0);
                if let Some(above) = above {
                    found.extend(names.into_iter().map(|names| (Some(above), names)));
                }
                at += (ups - 1) * "super::".len() + length;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The expanded paths of one import, and the number of bytes that it spans.
fn tree(text: &str) -> (Vec<Vec<String>>, usize) {
    if let Some(group) = text.strip_prefix('{') {
        let (mut found, mut at) = (Vec::new(), 0);
        loop {
            at += group[at..].len() - group[at..].trim_start_matches([',', ' ', '\n']).len();
            if at >= group.len() || group[at..].starts_with('}') {
                return (found, at + 2);
            }
            let (paths, length) = tree(&group[at..]);
            found.extend(paths);
            at += length.max(1);
            // A rename.
            at += group[at..].find([',', '}']).unwrap_or(0);
        }
    }
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    match text[name.len()..].strip_prefix("::") {
        Some(rest)
            if !name.is_empty()
                && rest.starts_with(|c: char| c == '{' || c == '_' || c.is_alphabetic()) =>
        {
            let (mut paths, length) = tree(rest);
            for path in &mut paths {
                path.insert(0, name.clone());
            }
            (paths, name.len() + 2 + length)
        }
        _ => (vec![vec![name.clone()]], name.len()),
    }
}

/// The module of a file below `src`.
fn module_of(file: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        file.iter().map(|name| name.to_string_lossy().trim_end_matches(".rs").to_owned()).collect();
    if names.last().is_some_and(|name| name == "mod" || name == "lib") {
        names.pop();
    }
    names
}

/// What folders re-export: maps folder and name to the module that has it.
fn handed_on(files: &BTreeMap<PathBuf, String>) -> BTreeMap<Vec<String>, Vec<String>> {
    let mut found = BTreeMap::new();
    for (file, text) in files.iter().filter(|(file, _)| file.ends_with("mod.rs")) {
        let (folder, code) = (module_of(file), code(text));
        let is_public = |(at, _): &(usize, &str)| {
            ["pub ", ") "].iter().any(|visibility| code[..*at].ends_with(visibility))
        };
        for (at, _) in code.match_indices("use ").filter(is_public) {
            for path in tree(&code[at + "use ".len()..]).0 {
                let target: Vec<String> = folder.iter().chain(&path).cloned().collect();
                if let [.., name] = &path[..] {
                    let name: Vec<String> = folder.iter().chain([name]).cloned().collect();
                    found.insert(name, target);
                }
            }
        }
    }
    found
}

/// The name in a graph of the items that stand in a folder's `mod.rs`.
const OWN_ITEMS: &str = "mod";

/// The modules of a folder that its `mod.rs` uses, other than by re-exporting their items.
fn used_by_folder(text: &str, modules: &BTreeSet<Vec<String>>, folder: &[String]) -> Vec<String> {
    let code = without_tests(&code(text));
    let lines = code.split_inclusive(';').filter(|line| !is_re_export(line)).collect::<String>();
    let own = |(at, _): &(usize, &str)| {
        let start = lines[..*at].rfind(|c| !is_word(c as u8)).map_or(0, |before| before + 1);
        (!lines[..start].ends_with("::")).then(|| lines[start..*at].to_owned())
    };
    let is_module =
        |name: &String| modules.contains(&[folder, std::slice::from_ref(name)].concat());
    lines.match_indices("::").filter_map(|found| own(&found)).filter(is_module).collect()
}

fn is_re_export(line: &str) -> bool {
    ["pub(crate) use ", "pub(super) use ", "pub use "].iter().any(|start| line.contains(start))
}

/// Maps a folder to its graph of imports between modules.
type Graphs = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The imports between modules of a folder, and the items in its `mod.rs`.
fn graphs(files: &BTreeMap<PathBuf, String>) -> Graphs {
    let (names, mut graphs) = (handed_on(files), Graphs::new());
    let modules: BTreeSet<Vec<String>> = files.keys().map(|file| module_of(file)).collect();
    for (file, text) in files {
        let from = module_of(file);
        // A folder's own items stand in its `mod.rs`, or in a file beside it.
        let has_modules = modules
            .iter()
            .any(|module| module.split_last().is_some_and(|(_, folder)| folder == from));
        if file.ends_with("mod.rs") || (has_modules && !from.is_empty()) {
            let used = used_by_folder(text, &modules, &from);
            let folder = graphs.entry(from.join("/")).or_default();
            folder.entry(OWN_ITEMS.to_owned()).or_default().extend(used);
        }
        for (above, path) in imports(text) {
            let start = above.map_or(0, |above| from.len().saturating_sub(above));
            let mut to: Vec<String> = from[..start].iter().chain(&path).cloned().collect();
            for length in 1..=to.len() {
                if let Some(target) =
                    names.get(&to[..length]).filter(|_| !modules.contains(&to[..length]))
                {
                    to.splice(..length, target.iter().cloned());
                    break;
                }
            }
            let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if shared == 0 || shared >= from.len() || shared >= to.len() {
                continue;
            }
            let is_module = modules.contains(&to[..=shared]);
            let name = if is_module { to[shared].clone() } else { OWN_ITEMS.to_owned() };
            let folder = graphs.entry(from[..shared].join("/")).or_default();
            folder.entry(from[shared].clone()).or_default().insert(name);
        }
    }
    graphs
}

/// The modules that a module imports, directly or indirectly.
fn reached<'g>(
    graph: &'g BTreeMap<String, BTreeSet<String>>,
    from: &'g String,
) -> BTreeSet<&'g String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(graph.get(module).into_iter().flatten().filter(|next| seen.insert(*next)));
    }
    seen
}

/// The sets of modules that import each other in a circle. Each module reaches all others of its set.
fn circles(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|module| (module, reached(graph, module))).collect();
    let in_circle = reach.iter().filter(|(module, seen)| seen.contains(*module));
    in_circle
        .map(|(module, seen)| {
            let back =
                seen.iter().filter(|other| reach.get(*other).is_some_and(|s| s.contains(module)));
            back.map(|other| (*other).clone()).collect()
        })
        .collect()
}

/// A shortest circle through the first module of a set, as `a -> b -> a`.
fn shown(graph: &BTreeMap<String, BTreeSet<String>>, circle: &[String]) -> String {
    let first = &circle[0];
    let mut ways = vec![vec![first]];
    for _ in 0..circle.len() {
        let mut longer = Vec::new();
        for way in ways {
            for next in &graph[way[way.len() - 1]] {
                if next == first {
                    let names: Vec<&str> =
                        way.iter().chain([&first]).map(|name| name.as_str()).collect();
                    return names.join(" -> ");
                }
                if circle.contains(next) && !way.contains(&next) {
                    longer.push(way.iter().copied().chain([next]).collect());
                }
            }
        }
        ways = longer;
    }
    circle.join(", ")
}

/// What is wrong with the circles of `files`, given the folders with known ones.
fn new_circles(files: &BTreeMap<PathBuf, String>, known: &[(&str, usize)]) -> Vec<String> {
    let (mut wrong, graphs) = (Vec::new(), graphs(files));
    for (folder, graph) in &graphs {
        let circles = circles(graph);
        let count: usize = circles.iter().map(Vec::len).sum();
        let listed = known.iter().find(|(name, _)| name == folder).map_or(0, |(_, count)| *count);
        if count > listed {
            let ways: Vec<String> = circles.iter().map(|circle| shown(graph, circle)).collect();
            let ways = ways.join("; ");
            wrong
                .push(format!("src/{folder}: {count} modules in circles, {listed} listed: {ways}"));
        } else if count < listed {
            wrong.push(format!("src/{folder}: {count} modules in circles: the list says {listed}"));
        }
    }
    let gone = known.iter().filter(|(folder, _)| !graphs.contains_key(*folder));
    wrong.extend(gone.map(|(folder, _)| format!("src/{folder}: gone, but on the list")));
    wrong
}

/// The sources below a folder, by their paths from there.
fn sources(folder: &str) -> BTreeMap<PathBuf, String> {
    let below = |file: PathBuf| {
        let name = file.strip_prefix(folder).ok()?.to_path_buf();
        Some((name, text(&file)))
    };
    files(&["rs"]).into_iter().filter_map(below).collect()
}

#[test]
fn imports_go_downwards_only() {
    let files = sources("src");
    let imports: usize = files.values().map(|text| crate_paths(text).len()).sum();
    assert!(imports > 20, "only {imports} imports were found");
    let wrong = violations(&files);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_do_not_import_in_circles() {
    for folder in ["src", "benchdnn/harness/src"] {
        let files = sources(folder);
        let edges: usize =
            graphs(&files).values().flat_map(BTreeMap::values).map(BTreeSet::len).sum();
        assert!(edges > 100, "only {edges} imports inside the folders of {folder} were found");
        let wrong = new_circles(&files, KNOWN_CIRCLES);
        assert!(wrong.is_empty(), "{folder}:\n{}", wrong.join("\n"));
    }
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

#[test]
fn circles_are_found() {
    let tree = |rows: &[(&str, &str)]| {
        rows.iter().map(|(name, text)| (PathBuf::from(name), (*text).to_owned())).collect()
    };
    let wrong = |rows: &[(&str, &str)]| new_circles(&tree(rows), &[]).join("\n");
    let b = ("rows/b.rs", "fn f() {}\n#[cfg(test)]\nmod tests { use super::super::a::X; }");
    assert_eq!(wrong(&[("rows/a.rs", "use super::b::Y;"), b]), "");
    let c = ("rows/c.rs", "// super::a\nfn f() { super::a::g() }");
    let found = wrong(&[("rows/a.rs", "use super::{b::Y, c::{Z, W as V}};"), b, c]);
    assert_eq!(found, "src/rows: 2 modules in circles, 0 listed: a -> c -> a");
    // Through a name that the folder re-exports, a path from the root, and a folder below.
    let hub = ("rows/mod.rs", "mod a;\npub(crate) use a::{X, Y as Z};");
    assert!(
        wrong(&[hub, ("rows/a.rs", "use super::c::W;"), ("rows/c.rs", "use super::X;")])
            .contains("a -> c")
    );
    let deep = ("rows/c/d.rs", "mod inner { use super::super::super::a::X; }");
    let c = ("rows/c/mod.rs", "");
    assert!(wrong(&[("rows/a.rs", "use crate::rows::c::W;"), c, deep]).contains("a -> c"));
    let own = ("rows/c/d.rs", "mod a { use super::a::X; }");
    assert_eq!(wrong(&[("rows/a.rs", "use crate::rows::c::W;"), c, own]), "");
    let hub = ("rows/mod.rs", "mod a;\nconst N: usize = 1;\nfn f() { a::g() }");
    assert!(wrong(&[hub, ("rows/a.rs", "use super::N;")]).contains("a -> mod -> a"));
    let hub = ("rows/mod.rs", "mod a;\npub(crate) use a::g;\nconst N: usize = 1;");
    assert_eq!(wrong(&[hub, ("rows/a.rs", "use super::N;")]), "");
    let known =
        |rows: &[(&str, &str)], count| new_circles(&tree(rows), &[("rows", count)]).join("");
    let circle = [("rows/a.rs", "use super::c::W;"), ("rows/c.rs", "use super::a::X;")];
    assert_eq!(known(&circle, 2), "");
    assert!(known(&circle, 3).contains("the list says 3"));
    assert!(known(&[b], 2).contains("on the list"));
}
