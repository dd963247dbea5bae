//! Lists of functions agree: the functions that `norm.h` declares, that the library exports, that
//! `norm.hpp` uses, that the C programs call, and the reviewed lists in `tests/symbols/`.

use std::collections::BTreeSet;

use crate::programs::{C_PROGRAMS, CPP_PROGRAMS};
use crate::toolchain::{Language, build, command, has, library_dir, root, run};

type Names = BTreeSet<String>;

/// C source without comments.
fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        code.push_str(&rest[..start]);
        let end = rest[start..].find("*/").expect("a comment ends");
        rest = &rest[start + end + 2..];
    }
    code.push_str(rest);
    code.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The functions that a header declares: the name before the first `(` of each `NORM_API`.
fn declared(header: &str) -> Names {
    let code = without_comments(header);
    let statements = code.split("NORM_API ").skip(1);
    statements
        .filter_map(|statement| statement.split_once('('))
        .filter_map(|(before, _)| before.split([' ', '*', '\n']).rfind(|word| !word.is_empty()))
        .filter(|name| name.starts_with("norm_"))
        .map(str::to_owned)
        .collect()
}

/// The functions that `norm.h` and the headers that it includes declare.
fn interface() -> Names {
    let folder = std::fs::read_dir(root().join("include")).expect("the headers can be read");
    folder
        .map(|file| file.expect("the headers can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "h"))
        .flat_map(|path| declared(&std::fs::read_to_string(path).expect("headers are text")))
        .collect()
}

/// Symbols of `nm -D` with the given option, without versions (`@...`).
fn symbols(option: &str, file: &std::path::Path) -> Names {
    let table = run(command("nm").arg("-D").arg(option).arg(file));
    let last = |line: &str| line.split_whitespace().last().map(str::to_owned);
    table.lines().filter_map(last).map(|s| s.split('@').next().unwrap_or("").to_owned()).collect()
}

fn of_the_interface(names: Names) -> Names {
    names.into_iter().filter(|name| name.starts_with("norm_")).collect()
}

/// Fails if a name is only on one side.
fn expect_same(left: (&str, &Names), right: (&str, &Names)) {
    for ((name, names), (other, others)) in [(left, right), (right, left)] {
        let alone: Vec<_> = names.difference(others).collect();
        assert!(alone.is_empty(), "{name}, but not {other}: {alone:?}");
    }
}

#[test]
fn declarations_are_found_in_a_header() {
    let sample = "/* NORM_API int norm_no(void); */\n#define NORM_API\nNORM_API int norm_a(void);\n\
                  NORM_API const char *norm_b(\n        int x);\nNORM_API const norm_c_t *norm_c(void);";
    assert_eq!(declared(sample).into_iter().collect::<Vec<_>>(), ["norm_a", "norm_b", "norm_c"]);
}

/// A committed list of names, sorted, one per line.
fn committed(list: &str) -> Names {
    let path = root().join("tests/symbols").join(list);
    let text = std::fs::read_to_string(path).expect("the list can be read");
    let names: Vec<_> = text.lines().map(str::to_owned).collect();
    assert!(names.is_sorted(), "{list} is not in order");
    names.into_iter().collect()
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let declared = interface();
    assert!(declared.len() > 50, "only {} declarations were found", declared.len());
    if std::env::var_os("NORM_BLESS").is_some() {
        let list: String = declared.iter().map(|name| format!("{name}\n")).collect();
        std::fs::write(root().join("tests/symbols/libnorm.txt"), list).expect("it can be written");
    }
    let listed = committed("libnorm.txt");
    let list = "listed in tests/symbols/libnorm.txt, which `NORM_BLESS=1 cargo test --release -p libnorm --test \
                consumers exports` writes";
    expect_same(("declared", &declared), (list, &listed));
    if !has("nm") {
        return;
    }
    let exported = symbols("--defined-only", &library_dir().join("libnorm.so"));
    let (own, other): (Names, Names) = exported.into_iter().partition(|n| n.starts_with("norm_"));
    expect_same(("exported", &own), ("declared", &declared));
    let feature = if cfg!(feature = "onednn-abi") { committed("onednn.txt") } else { Names::new() };
    expect_same(("exported", &other), ("listed in tests/symbols/onednn.txt", &feature));
}

/// The words in code that begin with `prefix`.
fn words(prefix: &str, code: &str) -> Names {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(prefix)).map(str::to_owned).collect()
}

/// The sources in `src/capi`, without comments, by path.
fn boundary(folder: &std::path::Path, code: &mut Vec<(std::path::PathBuf, String)>) {
    for file in std::fs::read_dir(folder).expect("src/capi can be read") {
        let path = file.expect("src/capi can be read").path();
        if path.is_dir() {
            boundary(&path, code);
        } else {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            code.push((path, without_comments(&text)));
        }
    }
}

/// Every oneDNN function is either implemented or in the list of unimplemented ones. Otherwise, only a build with the
/// feature would notice.
#[test]
fn onednn_functions_are_implemented_or_listed() {
    let mut code = Vec::new();
    boundary(&root().join("src/capi"), &mut code);
    let (lists, sources): (Vec<_>, Vec<_>) =
        code.into_iter().partition(|(path, _)| path.ends_with("onednn/unbuilt.rs"));
    let unbuilt = words("dnnl_", &lists[0].1);
    let built: Names = sources.iter().flat_map(|(_, text)| words("dnnl_", text)).collect();
    let both: Vec<_> = built.intersection(&unbuilt).collect();
    assert!(both.is_empty(), "built, and still in src/capi/onednn/unbuilt.rs: {both:?}");
    let listed = committed("onednn.txt");
    let all: Names = built.union(&unbuilt).cloned().collect();
    expect_same(("built or unbuilt", &all), ("listed in tests/symbols/onednn.txt", &listed));
    // A function implemented only under its own name still has its stub.
    let own: Names = sources.iter().flat_map(|(_, text)| words("norm_", text)).collect();
    let twin = |name: &String| own.contains(&name.replacen("dnnl_", "norm_", 1));
    let forgotten: Vec<_> = unbuilt.iter().filter(|name| twin(name)).collect();
    assert!(forgotten.is_empty(), "write `fn norm_... as` each of these: {forgotten:?}");
}

/// What oneDNN lacks: names by type. The table in norm_own.h has their values (norm-sys/tests/bindings.rs).
fn own_names() -> Vec<(String, String)> {
    let bindings = text("norm-sys/src/bindings.rs");
    let own = |line: &str| -> Option<(String, String)> {
        let (name, rest) = line.strip_prefix("pub const ")?.split_once(": ")?;
        let (kind, value) = rest.strip_suffix(';')?.split_once(" = ")?;
        (value.parse::<i64>().ok()? >= 0x0100_0000).then(|| (kind.to_owned(), name.to_owned()))
    };
    bindings.lines().filter_map(own).collect()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("sources are text")
}

/// The text of the files of a folder whose names end so, one after another.
fn texts(folder: &str, ending: &str) -> String {
    let files = std::fs::read_dir(root().join(folder)).expect("the folder can be read");
    let paths = files.map(|file| file.expect("the folder can be read").path());
    let named = paths.filter(|path| path.to_string_lossy().ends_with(ending));
    named.map(|path| std::fs::read_to_string(path).expect("sources are text")).collect()
}

/// Own argument ids, flags and enumerators are also in the C++ headers and in `norm-rs`, and kinds of primitives have
/// names.
#[test]
fn own_values_are_in_every_interface() {
    // C++ classes have setters or functions for the bits of these.
    let wrapped = [
        "norm_explanation_warning_t",
        "norm_remedy_kind_t",
        "norm_rope_flags_t",
        "norm_sdpa_flags_t",
    ];
    let all = own_names();
    let of = |wanted: &dyn Fn(&str) -> bool| -> Names {
        let own = all.iter().filter(|(kind, _)| wanted(kind));
        own.map(|(_, name)| name.clone()).collect()
    };
    let arguments = of(&|kind| kind == "i32");
    let kinds = of(&|kind| kind == "norm_primitive_kind_t");
    let flags_and_enumerators = of(&|kind| kind != "i32" && !wrapped.contains(&kind));
    for (own, list, code) in [
        (&kinds, "src/capi/names.rs", text("src/capi/names.rs")),
        (&flags_and_enumerators, "include/*.hpp", texts("include", ".hpp")),
        (&arguments, "norm-rs/src/args.rs", text("norm-rs/src/args.rs")),
        (&arguments, "fuzz/src/execution.rs", text("fuzz/src/execution.rs")),
    ] {
        assert!(own.len() > 2, "only {own:?} were found");
        let listed = &words("norm_", &code) | &words("NORM_", &code);
        let missing: Vec<_> = own.difference(&listed).collect();
        assert!(missing.is_empty(), "add these to {list}: {missing:?}");
    }
}

#[test]
fn the_programs_call_every_function() {
    if !has("nm") {
        return;
    }
    let declared = interface();
    let called = |programs: &[&str], language| -> Names {
        let build = |name: &&str| build(name, language);
        programs.iter().map(build).flat_map(|p| symbols("--undefined-only", &p)).collect()
    };
    let from_c = of_the_interface(called(C_PROGRAMS, Language::C99));
    expect_same(("called by a program of tests/c", &from_c), ("declared", &declared));
    let from_cpp = of_the_interface(called(CPP_PROGRAMS, Language::Cpp17));
    expect_same(("called by tests/c/wrapper.cpp", &from_cpp), ("declared", &declared));
}

/// A new function must be called there, with failing allocations.
#[test]
fn every_function_runs_out_of_memory() {
    let declared = interface();
    let program = build("tests/c/out_of_memory.c", Language::C99);
    let printed = run(command(program).arg("list"));
    // The other lines are output of norm_set_verbose.
    let called = printed.lines().filter(|line| !line.contains(',')).map(str::to_owned).collect();
    let called = of_the_interface(called);
    expect_same(("called by out_of_memory.c", &called), ("declared", &declared));
}
