//! `--explain` as people use it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command line that must succeed.
fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_benchdnn")).args(arguments).output();
    let output = output.expect("the program can be started");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{arguments:?}\n{text}");
    text
}

fn write_f32(path: &Path, values: impl IntoIterator<Item = f32>) {
    let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_ne_bytes).collect();
    std::fs::write(path, bytes).expect("a writable file");
}

/// The numbers of `docs/explain.md`, from files.
#[test]
fn explain_prints_what_hides_in_a_tensor() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explain");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let prefix = folder.join("row");
    let file = |id: i32| PathBuf::from(format!("{}.{id}.bin", prefix.display()));
    write_f32(&file(1), (0..2048).map(|i| (0.007 * (f64::from(i) / 100.0).sin()) as f32));
    write_f32(&file(51), [0.046; 2048]);
    let from = format!("--buffer-prefix={}", prefix.display());
    let text = run(&["--explain", "--mode=R", "--eps=1e-5", "--flags=CM", &from, "1x2048"]);
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("explain: ")).collect();
    for line in [
        "rows           1 of 2048 elements, epsilon 1.00000e-5",
        "RMS in         0.00495573",
        "divisor        0.00587871",
        "ratio          0.842996",
        "RMS out        0.0387778",
        "warnings       epsilon_dominates",
    ] {
        assert!(lines.contains(&line), "{line} is not in\n{text}");
    }
    let remedies =
        ["smaller_epsilon", "larger_epsilon", "clip_src", "scale_plus_one", "temperature"];
    for name in remedies.into_iter().chain(["fold_ratio"]) {
        assert!(lines.iter().any(|line| line.starts_with(name)), "{name} is not in\n{text}");
    }
    let text = run(&["--explain", "--mode=R", "--softmax", "3x5"]);
    assert!(text.contains("explain: the operation does not normalize rows"), "{text}");
    let text = run(&["--explain", "--mode=R", "--dt=s8", "3x5"]);
    assert!(text.contains("explain: unimplemented: norm_explain: src: s8 is none of"), "{text}");
    let text = run(&["5x33"]);
    assert!(!text.contains("explain"), "{text}");
}
