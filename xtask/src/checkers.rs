//! Checks that need a nightly compiler or much time: fuzzers, Miri, sanitizers, the soak and mutants. All except
//! mutants use only the portable kernels.

use crate::{Step, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The fuzz targets of `fuzz/`.
const TARGETS: [&str; 4] = ["calls", "attention", "descriptors", "language"];

/// The tests that check the results of operations.
const OPERATION_TESTS: &[&str] = &["variants", "golden", "unit", "layouts", "consumers"];
/// The tests of benchdnn's oracle, as patterns for cargo, besides those in its modules.
const ORACLE_TESTS: &[&str] =
    &["oracle_check", "oracle_inputs", "oracle_lnorm", "oracle_sdpa", "reorder", "*_faults"];

/// The compiler with sanitizers and Miri; `NORM_NIGHTLY` names another.
fn nightly() -> String {
    std::env::var("NORM_NIGHTLY").unwrap_or_else(|_| "nightly".into())
}

/// Whether a command runs and succeeds.
fn succeeds(line: &str) -> bool {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(root()).output().is_ok_and(|output| output.status.success())
}

/// Installs a component of the nightly compiler, and the compiler if it is missing.
fn component(name: &str) -> Step {
    let nightly = nightly();
    if succeeds(&format!("cargo +{nightly} --version")) {
        Step::new(&format!("rustup component add --toolchain {nightly} {name}"))
    } else {
        Step::new(&format!("rustup toolchain install {nightly} --profile minimal -c {name}"))
    }
}

/// `fuzz [short | TARGET [SECONDS]]`: pseudo-random inputs on the stable compiler, or libFuzzer.
pub(crate) fn fuzz(arguments: &[String]) -> Vec<Step> {
    let seconds = arguments.get(1).map_or("60", String::as_str);
    let targets: Vec<&str> = match arguments.first().map(String::as_str) {
        Some("short") => {
            let test =
                "cargo test --release --manifest-path fuzz/Cargo.toml --lib --no-default-features";
            // libFuzzer's programs must compile, too.
            let mut programs = Step::new("cargo check --manifest-path fuzz/Cargo.toml --bins");
            // Nothing is linked, so that libFuzzer itself, in C++, need not be compiled.
            programs.variables.push(("CUSTOM_LIBFUZZER_PATH".into(), "not/linked.a".into()));
            return vec![Step::new(test), programs];
        }
        None | Some("all") => TARGETS.to_vec(),
        Some(target) => vec![target],
    };
    let mut steps = vec![component("rust-src")];
    if !succeeds("cargo fuzz --version") {
        steps.push(Step::new("cargo install cargo-fuzz --locked"));
    }
    let nightly = nightly();
    steps.extend(targets.iter().map(|target| {
        let run = format!("cargo +{nightly} fuzz run {target}");
        Step::new(&format!("{run} -- -max_total_time={seconds} -max_len=2048 -timeout=20"))
    }));
    steps
}

/// `soak [SECONDS [THREADS]]`
pub(crate) fn soak(arguments: &[String]) -> Vec<Step> {
    let mut step = Step::new("cargo run --release --manifest-path fuzz/Cargo.toml");
    step.words.extend(["--no-default-features", "--bin", "soak", "--"].map(str::to_owned));
    step.words.extend_from_slice(arguments);
    vec![step]
}

/// `miri [short | INPUTS]`: sequences of C calls under stacked and, unless `short`, under tree borrows.
pub(crate) fn miri(arguments: &[String]) -> Vec<Step> {
    let is_short = arguments.first().is_some_and(|argument| argument == "short");
    let inputs = if is_short { "2" } else { arguments.first().map_or("40", String::as_str) };
    let run = |flags: &str| {
        let test = format!("cargo +{} miri test --manifest-path fuzz/Cargo.toml --lib", nightly());
        let mut step = Step::new(&format!("{test} --no-default-features"));
        // Otherwise Miri chooses the bits of NaN at random, and the fuzzers compare bits.
        let flags = format!("-Zmiri-disable-isolation -Zmiri-deterministic-floats {flags}");
        step.variables.push(("MIRIFLAGS".into(), flags));
        step.variables.push(("NORM_FUZZ_INPUTS".into(), inputs.into()));
        step
    };
    let mut steps = vec![component("miri"), component("rust-src"), run("")];
    if !is_short {
        steps.push(run("-Zmiri-tree-borrows"));
    }
    steps
}

/// `mutants ops|oracle [ARGUMENTS]`: mistakes in the operations or in benchdnn's oracle, which the tests that check
/// results must detect. The settings are in `.cargo/mutants.toml`.
pub(crate) fn mutants(arguments: &[String]) -> Vec<Step> {
    let oracle = arguments.first().is_some_and(|part| part == "oracle");
    let (package, files) = if oracle {
        ("benchdnn-harness", "benchdnn/harness/src/oracle/**/*.rs")
    } else {
        ("libnorm", "src/ops/**/*.rs")
    };
    let tests = if oracle { ORACLE_TESTS } else { OPERATION_TESTS };
    let mut steps = Vec::new();
    if !succeeds("cargo mutants --version") {
        steps.push(Step::new("cargo install cargo-mutants --locked"));
    }
    let mut run =
        Step::new(&format!("cargo mutants --output target/mutants -p {package} -f {files}"));
    // Arguments of every cargo command, so that the other tests are not even compiled.
    // The oracle's are in its modules, and those of the program.
    let packages = if oracle {
        &["--test-package=benchdnn-harness,benchdnn", "--cargo-arg=--lib"][..]
    } else {
        &["--test-package=libnorm,tensor-properties"]
    };
    run.words.extend(packages.iter().map(|word| (*word).to_owned()));
    let chosen = tests.iter().flat_map(|test| ["--test", test]);
    run.words.extend(chosen.map(|word| format!("--cargo-arg={word}")));
    run.words.extend_from_slice(arguments.get(1..).unwrap_or_default());
    if !oracle {
        // Of the C programs, only those that compute.
        let others = ["memcheck", "exports", "environment", "cpp_names", "out_of_memory"];
        run.words.extend(["--".into(), "--".into()]);
        run.words.extend(others.iter().flat_map(|name| ["--skip".to_owned(), (*name).to_owned()]));
    }
    steps.push(run);
    steps
}

/// A sanitizer of the compilers.
pub(crate) struct Sanitizer {
    name: &'static str,
    /// The runtime's name in the nightly compiler's folder.
    runtime: &'static str,
    /// Whether the standard library must be instrumented, too.
    builds_std: bool,
    /// Programs that cannot run under it, with the reason.
    left_out: &'static [(&'static str, &'static str)],
    options: (&'static str, &'static str),
}

pub(crate) const ADDRESS: Sanitizer = Sanitizer {
    name: "address",
    runtime: "librustc-nightly_rt.asan.a",
    builds_std: false,
    left_out: &[
        ("allocations", "replaces the allocator, as the sanitizer does"),
        ("out_of_memory", "refuses memory to the sanitizer, too, which ends the process"),
    ],
    options: ("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1"),
};

pub(crate) const THREAD: Sanitizer = Sanitizer {
    name: "thread",
    runtime: "librustc-nightly_rt.tsan.a",
    builds_std: true,
    left_out: &[
        ("allocations", "replaces the allocator, as the sanitizer does"),
        ("out_of_memory", "refuses memory to the sanitizer, too, which ends the process"),
        ("stale_handles", "replaces the allocator, as the sanitizer does"),
        ("refused_threads", "replaces pthread_create(), as the sanitizer does"),
        ("fork", "the sanitizer does not follow threads of children"),
        ("fork_first_use", "the sanitizer does not follow threads of children"),
    ],
    options: ("TSAN_OPTIONS", "halt_on_error=1:allocator_may_return_null=1"),
};

/// The argument that shortens a program, as in `tests/consumers/memcheck.rs`.
fn argument(program: &str) -> Option<&'static str> {
    match program {
        "reorder"
        | "layer_normalization"
        | "edge_rows"
        | "execute_many"
        | "threads"
        | "caller_threads"
        | "fork"
        | "kv_cache"
        | "kv_cache_quantized" => Some("emulated"),
        "fork_first_use" => Some("0"),
        _ => None,
    }
}

/// The flags that a program needs, as in `tests/consumers/toolchain.rs`.
fn flags(program: &str) -> &'static [&'static str] {
    if program == "no_exceptions" { &["-fno-exceptions", "-fno-rtti"] } else { &[] }
}

impl Sanitizer {
    /// Builds the library and the programs in `tests/c` and `examples/c` with the sanitizer, and runs all of them or
    /// those that are named.
    pub(crate) fn run(&self, named: &[String]) -> Result<(), String> {
        let sources: Vec<(String, PathBuf)> = (sources()?.into_iter())
            .map(|path| (path.file_stem().unwrap_or_default().to_string_lossy().into(), path))
            .collect();
        if let Some(name) = named.iter().find(|name| !sources.iter().any(|(stem, _)| stem == *name))
        {
            return Err(format!("there is no program {name} in tests/c or examples/c"));
        }
        component("rust-src").run()?;
        let (target, folder) = (host()?, format!("target/{}-sanitizer", self.name));
        let build = format!(
            "cargo +{} rustc --release --config profile.release.opt-level={} -p libnorm --lib \
             --no-default-features --crate-type staticlib --target {target} --target-dir {folder}",
            nightly(),
            // For a few programs, compiling takes longer than running.
            if named.is_empty() { 3 } else { 0 }
        );
        let mut build = Step::new(&build);
        if self.builds_std {
            // Without the crates for backtraces, a quarter of the compile time.
            build
                .words
                .extend(["-Zbuild-std=std", "-Zbuild-std-features=panic-unwind"].map(String::from));
        }
        let flags = format!("-Zsanitizer={} -Cdebug-assertions=on", self.name);
        build.variables.push(("RUSTFLAGS".into(), flags));
        build.run()?;
        let library = root().join(&folder).join(&target).join("release/libnorm.a");
        let runtime = output(&["rustc", &format!("+{}", nightly()), "--print", "target-libdir"])?;
        let runtime = Path::new(&runtime).join(self.runtime);
        let programs = root().join(folder).join("programs");
        std::fs::create_dir_all(&programs).map_err(|error| error.to_string())?;
        let mut failed = Vec::new();
        for (stem, source) in sources {
            if !named.is_empty() && !named.contains(&stem) {
                continue;
            }
            if let Some((_, reason)) = self.left_out.iter().find(|(name, _)| *name == stem) {
                println!("{stem}: left out: {reason}");
                continue;
            }
            let program = programs.join(&stem);
            self.link(&source, &program, &library, &runtime)?;
            let mut run = Step::new(&program.to_string_lossy());
            run.words.extend(argument(&stem).map(str::to_owned));
            run.variables.push((self.options.0.into(), self.options.1.into()));
            if let Err(message) = run.run() {
                eprintln!("{message}");
                failed.push(stem);
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }

    /// Compiles a program with the sanitizer and links it with the library and the Rust compiler's runtime.
    fn link(
        &self,
        source: &Path,
        program: &Path,
        library: &Path,
        runtime: &Path,
    ) -> Result<(), String> {
        let is_c = source.extension().is_some_and(|extension| extension == "c");
        let (compiler, standard) = if is_c { ("cc", "-std=c99") } else { ("c++", "-std=c++17") };
        let object = program.with_extension("o");
        let own = flags(&program.file_name().unwrap_or_default().to_string_lossy());
        let (source, object) = (source.to_string_lossy(), object.to_string_lossy());
        let sanitize = format!("-fsanitize={}", self.name);
        let compile =
            [compiler, standard, "-O1", "-g", "-ffp-contract=off", "-Iinclude", &sanitize];
        Step::of(&[&compile[..], own, &["-c", &source, "-o", &object]].concat()).run()?;
        let (library, runtime) = (library.to_string_lossy(), runtime.to_string_lossy());
        let program = program.to_string_lossy();
        let link = [compiler, "-pthread", &object, &library, "-Wl,--whole-archive", &runtime];
        let rest = ["-Wl,--no-whole-archive", "-rdynamic", "-lm", "-ldl", "-lrt", "-o", &program];
        Step::of(&[&link[..], &rest[..]].concat()).run()
    }
}

/// The first line of a command's output.
fn output(words: &[&str]) -> Result<String, String> {
    let output = Command::new(words[0]).args(&words[1..]).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned).ok_or_else(|| format!("{words:?} prints nothing"))
}

/// The target of this machine.
fn host() -> Result<String, String> {
    output(&["rustc", &format!("+{}", nightly()), "--print", "host-tuple"])
}

fn sources() -> Result<Vec<PathBuf>, String> {
    let mut sources = Vec::new();
    for folder in ["tests/c", "examples/c"] {
        for file in std::fs::read_dir(root().join(folder)).map_err(|error| error.to_string())? {
            let path = file.map_err(|error| error.to_string())?.path();
            if path.extension().is_some_and(|extension| extension == "c" || extension == "cpp") {
                sources.push(path);
            }
        }
    }
    sources.sort();
    Ok(sources)
}
