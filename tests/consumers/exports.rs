//! Whatever stands in several places is the same: the functions that `norm.h` declares, those
//! that the library exports, those that `norm.hpp` reaches and those that the programs call.

use std::collections::BTreeSet;

use crate::programs::{C_PROGRAMS, CPP_PROGRAMS};
use crate::toolchain::{Language, build, command, has, library_dir, root, run};

type Names = BTreeSet<String>;

/// C text without its comments.
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

fn header(name: &str) -> String {
    std::fs::read_to_string(root().join("include").join(name)).expect("the header can be read")
}

/// Symbols of `nm -D` with the given option; versions (`@...`) cut off.
fn symbols(option: &str, file: &std::path::Path) -> Names {
    let table = run(command("nm").arg("-D").arg(option).arg(file));
    let last = |line: &str| line.split_whitespace().last().map(str::to_owned);
    table.lines().filter_map(last).map(|s| s.split('@').next().unwrap_or("").to_owned()).collect()
}

fn of_the_interface(names: Names) -> Names {
    names.into_iter().filter(|name| name.starts_with("norm_")).collect()
}

#[test]
fn declarations_are_found_in_a_header() {
    let sample = "/* NORM_API int norm_no(void); */\n#define NORM_API\nNORM_API int norm_a(void);\n\
                  NORM_API const char *norm_b(\n        int x);\nNORM_API const norm_c_t *norm_c(void);";
    assert_eq!(declared(sample).into_iter().collect::<Vec<_>>(), ["norm_a", "norm_b", "norm_c"]);
}

#[test]
fn the_library_exports_what_the_header_declares() {
    if !has("nm") {
        return;
    }
    let declared = declared(&header("norm.h"));
    assert!(declared.len() > 50, "only {} declarations were found", declared.len());
    let exported = symbols("--defined-only", &library_dir().join("libnorm.so"));
    let (own, other): (Names, Names) = exported.into_iter().partition(|n| n.starts_with("norm_"));
    assert_eq!(own, declared, "exported (left) and declared (right)");
    // The only others there may be are oneDNN's names, which a feature adds.
    let stray: Vec<_> = other.iter().filter(|name| !name.starts_with("dnnl_")).collect();
    assert!(stray.is_empty(), "exported beside the interface: {stray:?}");
}

#[test]
fn the_programs_call_every_function() {
    if !has("nm") {
        return;
    }
    let declared = declared(&header("norm.h"));
    let called = |programs: &[&str], language| -> Names {
        let build = |name: &&str| build(name, language);
        programs.iter().map(build).flat_map(|p| symbols("--undefined-only", &p)).collect()
    };
    let from_c = of_the_interface(called(C_PROGRAMS, Language::C99));
    assert_eq!(from_c, declared, "called from C (left) and declared (right)");
    let from_cpp = of_the_interface(called(CPP_PROGRAMS, Language::Cpp17));
    assert_eq!(from_cpp, declared, "called through norm.hpp (left) and declared (right)");
}
