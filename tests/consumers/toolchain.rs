//! Finds the compilers and the fresh shared library, builds programs and runs them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};

use crate::skipped::skipped;

/// The folder with this build's `libnorm.so`, which cargo puts beside the test executable. The one in the parent folder
/// may be older.
pub(crate) fn library_dir() -> PathBuf {
    let test = std::env::current_exe().expect("the test knows its executable");
    let dir = test.parent().expect("the executable lies in a folder").to_path_buf();
    assert!(dir.join("libnorm.so").is_file(), "no libnorm.so in {}", dir.display());
    dir
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The languages of the programs. The C99 flags enable POSIX where a program requests it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Language {
    C99,
    /// For programs that valgrind runs for seconds, some in less than half the time.
    C99Optimized,
    Cpp17,
    Cpp20,
    /// C++17 without exceptions and run-time type information.
    Cpp17NoExceptions,
}

impl Language {
    pub(crate) fn compiler(self) -> String {
        let (variable, default) = match self {
            Language::C99 | Language::C99Optimized => ("CC", "cc"),
            Language::Cpp17 | Language::Cpp20 | Language::Cpp17NoExceptions => ("CXX", "c++"),
        };
        std::env::var(variable).unwrap_or_else(|_| default.to_owned())
    }

    /// Compiling with optimization takes three times as long. Some warnings need it, so it is on for one language that
    /// includes norm.hpp.
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Language::C99 => &["-std=c99", "-O0"],
            Language::C99Optimized => &["-std=c99", "-O1"],
            Language::Cpp17 => &["-std=c++17", "-O0"],
            Language::Cpp20 => &["-std=c++20", "-O1"],
            Language::Cpp17NoExceptions => &["-std=c++17", "-O0", "-fno-exceptions", "-fno-rtti"],
        }
    }
}

/// A program, set when it has been built.
type Program = Arc<OnceLock<PathBuf>>;

/// Builds `source` (an absolute path, or relative to the repository) once per process, and returns the executable.
/// Warnings are errors.
pub(crate) fn build(source: &str, language: Language) -> PathBuf {
    static BUILT: Mutex<Option<HashMap<(String, Language), Program>>> = Mutex::new(None);
    let mut built = BUILT.lock().expect("no holder fails");
    let program = built.get_or_insert_default().entry((source.to_owned(), language)).or_default();
    let program = program.clone();
    drop(built);
    program.get_or_init(|| compile(source, language, &["-lnorm", "-lm", "-ldl"])).clone()
}

/// Builds a C program that opens the library itself.
pub(crate) fn build_unlinked(source: &str) -> PathBuf {
    compile(source, Language::C99, &["-ldl"])
}

fn compile(source: &str, language: Language, libraries: &[&str]) -> PathBuf {
    let library = library_dir();
    let out = library.join("consumers");
    std::fs::create_dir_all(&out).expect("a folder for the programs can be made");
    let stem = Path::new(source).file_stem().expect("a source has a name").to_string_lossy();
    let program = out.join(format!("{stem}-{language:?}"));
    // Processes run concurrently, so each writes its own file and then renames it.
    let fresh = out.join(format!("{stem}-{language:?}-{}", std::process::id()));
    let output = Command::new(language.compiler())
        .args(language.flags())
        .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-g1"])
        // No contraction, so that the programs' own formulas are not fused.
        .args(["-ffp-contract=off", "-pthread"])
        .arg(format!("-I{}", root().join("include").display()))
        .arg(root().join(source))
        .arg("-o")
        .arg(&fresh)
        .arg(format!("-L{}", library.display()))
        .args(libraries)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .output()
        .unwrap_or_else(|e| panic!("{} cannot be run: {e}", language.compiler()));
    assert!(output.status.success(), "{source} does not compile:\n{}", text(&output));
    std::fs::rename(&fresh, &program).expect("the program can be moved into place");
    program
}

/// A command for `program` without the library's environment variables.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name_of = name.to_string_lossy();
        if ["NORM_", "ONEDNN_", "DNNL_"].iter().any(|prefix| name_of.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// Runs a command that must succeed, and returns its standard output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    println!("{}", text(&output));
    String::from_utf8(output.stdout).expect("programs print text")
}

/// Whether a tool is installed; prints a note if not.
pub(crate) fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        skipped(&format!("there is no {tool} here"));
    }
    found
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
