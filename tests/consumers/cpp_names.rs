//! oneDNN's C++ names exist in `norm.hpp`: a program uses each name of `tests/symbols/onednn_cpp.txt`.
//! `scripts/check_cpp_names.py` compares the list with oneDNN's headers.

use std::fmt::Write;

use crate::toolchain::{Language, command, library_dir, root, text};

/// A declaration that compiles only if the name exists.
fn use_of(line: &str, number: usize) -> String {
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["enum", scope, name] => format!("constexpr auto e{number} = norm::{scope}::{name};"),
        ["namespace", "norm", name] => format!("namespace n{number} {{ using norm::{name}; }}"),
        // A base class of every handle, and a template.
        ["class", "handle", name] => use_of(&format!("class engine {name}"), number),
        ["class", scope, name] => {
            format!("struct p{number} : norm::{scope} {{ using norm::{scope}::{name}; }};")
        }
        _ => panic!("{line:?} is not a kind, a scope and a name"),
    }
}

/// What the compiler says about a program that uses these names.
fn compile(names: &[&str], language: Language) -> Result<(), String> {
    let mut program = String::from("#include <norm.hpp>\n");
    for (number, line) in names.iter().enumerate() {
        writeln!(program, "{}", use_of(line, number)).expect("strings grow");
    }
    let source = library_dir().join(format!("cpp_names-{language:?}-{}.cpp", names.len()));
    std::fs::write(&source, program).expect("the program can be written");
    let output = command(language.compiler())
        .args(language.flags())
        .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-I"])
        .arg(root().join("include"))
        .arg(&source)
        .output()
        .expect("there is a C++ compiler");
    if output.status.success() { Ok(()) } else { Err(text(&output)) }
}

#[test]
fn norm_hpp_has_the_names_of_onednn() {
    let list = root().join("tests/symbols/onednn_cpp.txt");
    let list = std::fs::read_to_string(list).expect("the list can be read");
    let names: Vec<&str> = list.lines().collect();
    assert!(names.len() > 300 && names.is_sorted(), "{} names", names.len());
    for language in [Language::Cpp17, Language::Cpp17NoExceptions] {
        compile(&names, language).unwrap_or_else(|said| panic!("{said}"));
    }
}

/// Names that are listed as absent do not exist, so the list's reasons still hold.
#[test]
fn absent_names_do_not_exist() {
    let list = root().join("tests/symbols/onednn_cpp_absent.txt");
    let list = std::fs::read_to_string(list).expect("the list can be read");
    let names: Vec<String> =
        list.lines().map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let said = compile(&names, Language::Cpp17).expect_err("no name exists");
    for (number, name) in names.iter().enumerate() {
        // Each name is on its own line, after that of the include.
        let line = number + 2;
        assert!(said.contains(&format!(".cpp:{line}:")), "{name}: norm.hpp has it");
    }
}

#[test]
fn a_missing_name_is_noticed() {
    for missing in ["class memory::desc get_nothing", "class handle take", "enum query nothing"] {
        let said = compile(&[missing], Language::Cpp17).expect_err("the name does not exist");
        let name = missing.rsplit(' ').next().expect("a name");
        assert!(said.contains(name), "{said}");
    }
}
