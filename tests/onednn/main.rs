//! oneDNN programs on this library. The programs in this folder are compiled with oneDNN's headers,
//! linked with oneDNN, and run on both libraries by changing only the loader's path. Their output
//! must be the same, except for the entries of [`KNOWN`].
//!
//! `ONEDNN_ROOT` names a folder with `include/` and `lib/` of oneDNN 3.13 or later, for example a
//! virtual environment with PyPI's `onednn` and `onednn-devel`. Without it the tests are skipped.
//!
//! The `cfg` below requires the feature. `required-features` would have to name this test in
//! `Cargo.toml`, which the Python package's source distribution includes without this folder.
#![cfg(all(target_os = "linux", feature = "onednn-abi"))]

#[path = "../skipped/mod.rs"]
mod skipped;
#[path = "../consumers/toolchain.rs"]
#[allow(dead_code)] // the consumers use the rest
mod toolchain;

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::process::Command;

use toolchain::{Language, command, library_dir, root, text};

/// A reason for a difference, explained in `docs/onednn.md`, and the output of each library.
struct Known {
    reason: &'static str,
    onednn: &'static [&'static str],
    libnorm: &'static [&'static str],
}

const KNOWN: &[Known] = &[
    Known { reason: "rms_norm gradient", onednn: &["wrong"], libnorm: &["right"] },
    Known { reason: "rows apart", onednn: &["wrong"], libnorm: &["right"] },
    Known { reason: "last dim of dst not dense", onednn: &["wrong"], libnorm: &["right"] },
    Known {
        reason: "stat of another shape",
        onednn: &["success"],
        libnorm: &["invalid_arguments"],
    },
    Known { reason: "dst of another shape", onednn: &["success"], libnorm: &["invalid_arguments"] },
    Known { reason: "src any", onednn: &["any"], libnorm: &["blocked"] },
    Known { reason: "bytes of a part", onednn: &["384"], libnorm: &["544"] },
    Known { reason: "not built", onednn: &["success"], libnorm: &["unimplemented"] },
    Known { reason: "version", onednn: &["oneDNN"], libnorm: &["libnorm"] },
    Known { reason: "frozen weights", onednn: &["unimplemented"], libnorm: &["right"] },
    Known { reason: "reorder bf16 and s32", onednn: &["unimplemented"], libnorm: &["success"] },
    Known { reason: "f64", onednn: &["unimplemented"], libnorm: &["success"] },
    Known { reason: "f8", onednn: &["unimplemented"], libnorm: &["success"] },
    Known { reason: "sum post-operation", onednn: &["unimplemented"], libnorm: &["success"] },
    Known { reason: "scales without integers", onednn: &["unimplemented"], libnorm: &["success"] },
    // Depends on the CPU.
    Known { reason: "f16", onednn: &["unimplemented", "right"], libnorm: &["right"] },
];

/// The folder in `ONEDNN_ROOT`; prints a note if it is not set.
fn onednn() -> Option<PathBuf> {
    let root = std::env::var_os("ONEDNN_ROOT").map(PathBuf::from);
    if root.is_none() {
        skipped::skipped("ONEDNN_ROOT names no oneDNN");
    }
    root
}

/// A folder with this library under oneDNN's file name.
fn folder_of_libnorm() -> PathBuf {
    let folder = library_dir().join("onednn");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let link = folder.join("libdnnl.so.3");
    let target = library_dir().join("libnorm.so");
    if std::fs::read_link(&link).ok().as_ref() != Some(&target) {
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(target, link).expect("a link can be made");
    }
    folder
}

/// Compiles and links a program against oneDNN, without a run path.
fn build(source: &Path, onednn: &Path) -> PathBuf {
    let is_c = source.extension().is_some_and(|e| e == "c");
    let language = if is_c { Language::C99 } else { Language::Cpp17 };
    let stem = source.file_stem().expect("a source has a name");
    let program = folder_of_libnorm().join(stem);
    let output = Command::new(language.compiler())
        .args(language.flags())
        .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-isystem"])
        .arg(onednn.join("include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg(format!("-L{}", onednn.join("lib").display()))
        // oneDNN's own dependencies are resolved at load time.
        .args(["-ldnnl", "-lm", "-Wl,--allow-shlib-undefined"])
        .output()
        .expect("there is a compiler");
    assert!(output.status.success(), "{}:\n{}", source.display(), text(&output));
    program
}

/// The output of a program with the library that the loader finds in `folder`.
fn printed(program: &Path, folder: &Path) -> String {
    let mut command = command(program);
    // Silences oneDNN's error messages.
    command.env("LD_LIBRARY_PATH", folder).env("ONEDNN_VERBOSE", "none");
    // The SYCL build of oneDNN finds the CPU as an OpenCL device.
    let device = folder.join("libintelocl.so");
    if device.exists() {
        command.env("OCL_ICD_FILENAMES", device);
    }
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    String::from_utf8(output.stdout).expect("programs print text")
}

/// Parses a line `* reason: case: result`.
fn known_difference(line: &str) -> Option<(&str, &str, &str)> {
    let (reason, rest) = line.strip_prefix("* ")?.split_once(": ")?;
    let (case, result) = rest.rsplit_once(": ")?;
    Some((reason, case, result))
}

/// Compares two outputs line by line. Returns the known reasons that occurred, or the first unknown
/// difference.
fn compare(theirs: &str, ours: &str) -> Result<BTreeSet<String>, String> {
    let mut reasons = BTreeSet::new();
    let mut wrong = Vec::new();
    let (theirs, ours): (Vec<_>, Vec<_>) = (theirs.lines().collect(), ours.lines().collect());
    for (their, our) in theirs.iter().zip(&ours) {
        if our.contains("EDGE") {
            wrong.push(format!("the data lie on the edge of a rounding: {our}"));
        }
        let as_expected = match (known_difference(their), known_difference(our)) {
            (Some((reason, case, result)), Some((same_reason, same_case, our_result))) => {
                reasons.insert(reason.to_owned());
                let known = KNOWN.iter().find(|known| known.reason == reason);
                (reason, case) == (same_reason, same_case)
                    && known.is_some_and(|k| {
                        k.onednn.contains(&result) && k.libnorm.contains(&our_result)
                    })
            }
            _ => their == our,
        };
        if !as_expected {
            wrong.push(format!("oneDNN:  {their}\nlibnorm: {our}"));
        }
    }
    if theirs.len() != ours.len() || ours.is_empty() {
        wrong.push(format!("{} and {} lines were printed", theirs.len(), ours.len()));
    }
    if wrong.is_empty() { Ok(reasons) } else { Err(wrong.join("\n")) }
}

fn sources() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("tests/onednn")).expect("the folder can be read");
    let files = folder.map(|file| file.expect("the folder can be read").path());
    let is_program = |path: &PathBuf| path.extension().is_some_and(|e| e == "c" || e == "cpp");
    let mut sources: Vec<_> = files.filter(is_program).collect();
    sources.sort();
    sources
}

/// Whether the machine has the instructions that oneDNN uses for bf16.
fn has_avx512() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "avx512bw")
}

#[test]
fn programs_print_the_same_on_both_libraries() {
    let Some(onednn) = onednn() else { return };
    if !has_avx512() {
        skipped::skipped("without AVX-512 oneDNN refuses many problems in bf16 and f16");
        return;
    }
    let (mut reasons, mut wrong) = (BTreeSet::new(), Vec::new());
    for source in sources() {
        let program = build(&source, &onednn);
        let theirs = printed(&program, &onednn.join("lib"));
        let ours = printed(&program, &folder_of_libnorm());
        println!("{}: {} lines", source.display(), ours.lines().count());
        match compare(&theirs, &ours) {
            Ok(met) => reasons.extend(met),
            Err(what) => wrong.push(format!("{}:\n{what}", source.display())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let known = KNOWN.iter().map(|known| known.reason.to_owned()).collect();
    assert_eq!(reasons, known, "reasons that the programs met (left) and that are listed (right)");
}

/// With the feature, oneDNN's variables are read, and verbose lines have its prefix.
#[test]
fn onednn_variables_are_read() {
    let program = toolchain::build("examples/c/rms_norm.c", Language::C99);
    let lines = |variables: &[(&str, &str)]| {
        let output = toolchain::run(command(&program).envs(variables.iter().copied()));
        let lines = output.lines().filter(|line| line.starts_with("onednn_verbose,v1,"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(lines(&[]).is_empty());
    for (verbose, isa) in
        [("ONEDNN_VERBOSE", "ONEDNN_MAX_CPU_ISA"), ("DNNL_VERBOSE", "DNNL_MAX_CPU_ISA")]
    {
        let printed = lines(&[(verbose, "profile_exec"), (isa, "sse41")]);
        assert!(printed[0].contains(",info,libnorm v"), "{printed:?}");
        let executed =
            printed.iter().filter(|line| line.contains(",exec,cpu,layer_normalization,"));
        assert_eq!(executed.clone().count(), 1, "{printed:?}");
        assert!(executed.clone().all(|line| line.contains(",simd:portable,")), "{printed:?}");
    }
    assert!(lines(&[("NORM_VERBOSE", "0"), ("ONEDNN_VERBOSE", "1")]).is_empty(), "ours come first");
}

/// Calls each function of `src/capi/onednn/unbuilt.rs`.
#[test]
fn unimplemented_functions_say_so() {
    let path = root().join("src/capi/onednn/unbuilt.rs");
    let text = std::fs::read_to_string(path).expect("the list can be read");
    let list = text.split("unbuilt! {\n").nth(1).expect("there is a list");
    let list = list.split('}').next().expect("it ends");
    let library = library_dir().join("libnorm.so").into_os_string().into_string();
    let library = CString::new(library.expect("the path is text")).expect("and has no NUL");
    // SAFETY: the library's constructors are harmless.
    let library = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
    let symbol = |name: &str| {
        let name = CString::new(name).expect("a name has no NUL");
        // SAFETY: the library is loaded.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?} is not exported");
        found
    };
    // SAFETY: this is its declaration in norm.h.
    let last_error: extern "C" fn() -> *const std::ffi::c_char =
        unsafe { std::mem::transmute(symbol("norm_get_last_error")) };
    let mut called = 0;
    for name in list.split_whitespace() {
        // SAFETY: a stub reads no arguments.
        let stub: extern "C" fn() -> u32 = unsafe { std::mem::transmute(symbol(name)) };
        assert_eq!(stub(), 3, "{name}: dnnl_unimplemented");
        // SAFETY: the string belongs to the library.
        let said = unsafe { CStr::from_ptr(last_error()) }.to_string_lossy();
        assert!(said.starts_with(&format!("{name}: ")), "{name}: {said}");
        called += 1;
    }
    assert!(called > 50, "only {called} names were found");
}

#[test]
fn every_known_difference_is_explained() {
    let text = std::fs::read_to_string(root().join("docs/onednn.md")).expect("there is a text");
    for known in KNOWN {
        let row = format!("| {} |", known.reason);
        assert!(text.contains(&row), "docs/onednn.md has no row {row:?}");
    }
}

#[test]
fn differences_are_detected() {
    let wrong = |theirs, ours| compare(theirs, ours).is_err();
    assert!(!wrong("a: success\n", "a: success\n"));
    assert!(wrong("a: success\n", "a: unimplemented\n"));
    assert!(wrong("a: 0.5\nb\n", "a: 0.5\n"));
    assert!(wrong("", ""));
    assert!(wrong("a: EDGE\n", "a: EDGE\n"));
    let (theirs, ours) = ("* rows apart: x: wrong\n", "* rows apart: x: right\n");
    assert!(!wrong(theirs, ours));
    assert!(wrong(ours, ours), "oneDNN was mended: the row goes");
    assert!(wrong(theirs, theirs));
    assert!(wrong(theirs, "* rows apart: y: right\n"));
    assert!(wrong("* rows: x: wrong\n", "* rows: x: right\n"));
}
