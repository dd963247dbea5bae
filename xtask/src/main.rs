//! The project's task runner, `cargo xtask TASK`. It needs only cargo; a task may need the tools that CONTRIBUTING.md
//! lists for it. Each step prints its command, so that a failing one can be repeated by hand.

mod checkers;
#[cfg(unix)]
mod stage;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
Usage: cargo xtask TASK [ARGUMENTS]

  quick   Format, clippy, unit tests, layering, documents and four small benchdnn batches
  full    Everything that must hold before a change lands: runs .ci/run
  bench   cargo bench -p norm-benches; ARGUMENTS go to criterion
  fuzz [short | TARGET [SECONDS]]
          The fuzz targets of fuzz/ (calls, attention, descriptors, language), 60 s each; short: without libFuzzer
  miri [short | INPUTS]
          Sequences of C calls under Miri, with stacked and with tree borrows; short: 2, with stacked borrows
  asan, tsan [PROGRAM ...]
          The C programs, or those that are named, under the address and the thread sanitizer
  soak [SECONDS [THREADS]]
          Random calls for 10 minutes; memory must stay flat
  mutants ops|oracle [ARGUMENTS]
          cargo mutants on src/ops or benchdnn/harness/src/oracle; --list shows them, --shard 0/20 runs a part
  bless   Regenerate every recorded file: Rust declarations, symbol lists, instruction counts, code size,
          and what `reference` writes
  reference
          Write the parts of docs/ that come from other files: benchdnn's options and the examples
  stage   Lay out an installation in target/stage, as make does; ARGUMENTS go to cargo, after --libdir DIR

CONTRIBUTING.md says what each check proves.";

/// One command of a task: the program, its arguments and extra environment variables.
struct Step {
    words: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Step {
    fn new(line: &str) -> Self {
        Self::of(&line.split(' ').collect::<Vec<_>>())
    }

    fn of(words: &[&str]) -> Self {
        Self { words: words.iter().map(|word| (*word).to_owned()).collect(), variables: Vec::new() }
    }

    /// A step in which tests write their records instead of comparing them.
    fn blessing(line: &str) -> Self {
        Self { variables: vec![("NORM_BLESS".into(), "1".into())], ..Self::new(line) }
    }

    /// Runs the command in the root of the workspace.
    fn run(&self) -> Result<(), String> {
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        let shown: Vec<String> = variables.chain(self.words.iter().cloned()).collect();
        let shown = shown.join(" ");
        println!("\n== {shown}");
        let begin = Instant::now();
        let status = Command::new(&self.words[0])
            .args(&self.words[1..])
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(root())
            .status()
            .map_err(|error| format!("{shown}: {error}"))?;
        if !status.success() {
            return Err(format!("{shown}: {status}"));
        }
        println!("== {:.0} s", begin.elapsed().as_secs_f64());
        Ok(())
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

fn quick() -> Vec<Step> {
    [
        "cargo fmt --all --check",
        "cargo clippy --release --workspace --lib --bins --tests --examples --benches -- -D warnings",
        "cargo test --release --workspace --lib",
        "cargo test --release -p libnorm --test unit --test layering --test house --test docs_links --test documents",
        "cargo run --release -p benchdnn -- --batch=test_lnorm_smoke",
        "cargo run --release -p benchdnn -- --reorder --batch=test_reorder_smoke",
        "cargo run --release -p benchdnn -- --softmax --batch=test_softmax_smoke",
        "cargo run --release -p benchdnn -- --gnorm --batch=test_gnorm_smoke",
    ]
    .map(Step::new)
    .into()
}

fn bench(arguments: &[String]) -> Vec<Step> {
    let mut step = Step::new("cargo bench -p norm-benches --");
    step.words.extend_from_slice(arguments);
    vec![step]
}

fn bless() -> Vec<Step> {
    vec![
        Step::blessing("cargo test --release -p libnorm --test cpp_interface"),
        Step::new("python3 scripts/python_names.py --bless"),
        Step::blessing("cargo test -p norm-sys"),
        Step::blessing("cargo test --release -p libnorm --test consumers exports"),
        Step::new("cargo build --release -p libnorm -p benchdnn"),
        Step::new("python3 scripts/instructions.py --bless"),
        Step::new("python3 scripts/loop_instructions.py --bless"),
        Step::new("python3 scripts/code_size.py --bless"),
    ]
    .into_iter()
    .chain(reference())
    .collect()
}

fn reference() -> Vec<Step> {
    vec![
        Step::blessing("cargo test --release -p benchdnn --test documents the_reference"),
        Step::blessing("cargo test --release -p libnorm --test documents copies"),
    ]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) =
        arguments.split_first().map_or(("", &[][..]), |(t, rest)| (t.as_str(), rest));
    let steps = match task {
        "quick" if rest.is_empty() => quick(),
        "full" if rest.is_empty() => vec![Step::new(".ci/run")],
        "bench" => bench(rest),
        "bless" if rest.is_empty() => bless(),
        "reference" if rest.is_empty() => reference(),
        #[cfg(unix)]
        "stage" if !asks_for_help(rest) => return end(stage::stage(root(), rest)),
        "fuzz" if !asks_for_help(rest) => checkers::fuzz(rest),
        "soak" if !asks_for_help(rest) => checkers::soak(rest),
        "miri" if !asks_for_help(rest) => checkers::miri(rest),
        "mutants" if !asks_for_help(rest) => checkers::mutants(rest),
        "asan" | "tsan" if !asks_for_help(rest) => {
            let sanitizer = if task == "asan" { checkers::ADDRESS } else { checkers::THREAD };
            return end(sanitizer.run(rest));
        }
        _ if asks_for_help(&arguments) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    end(steps.iter().try_for_each(Step::run))
}

/// Whether help is requested. The arguments of `bench` are criterion's.
fn asks_for_help(arguments: &[String]) -> bool {
    arguments.iter().any(|word| ["-h", "--help", "help"].contains(&word.as_str()))
}

fn end(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
