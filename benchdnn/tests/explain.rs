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

/// The value on a line of the explanation.
fn value<'t>(text: &'t str, name: &str) -> &'t str {
    let line = text.lines().filter_map(|line| line.strip_prefix("explain: "));
    let mut value = line.filter_map(|line| line.strip_prefix(name));
    value.next().unwrap_or_else(|| panic!("{name} is not in\n{text}")).trim()
}

/// The same rows and scales as sums of src and a residual, and as scales to which 1 is added.
#[test]
fn the_explained_problem_is_the_given_one() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explain_sum");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let file = |name: &str, id: i32| folder.join(format!("{name}.{id}.bin"));
    let residual = norm_sys::NORM_ARG_RESIDUAL;
    let numbers = |factor: f32| (0..512).map(move |i| factor * ((i * 37 % 101) - 50) as f32);
    for (name, scale) in [("whole", 1.5), ("parts", 0.5)] {
        write_f32(&file(name, 51), [scale; 256]);
    }
    write_f32(&file("whole", 1), numbers(0.5));
    write_f32(&file("parts", 1), numbers(0.125));
    write_f32(&file("parts", residual), numbers(0.375));
    let explain = |name: &str, options: &[&str]| {
        let from = format!("--buffer-prefix={}", folder.join(name).display());
        let common = ["--explain", "--mode=R", "--eps=1e-5", &from];
        run(&[&common, options, &["2x256"]].concat())
    };
    let whole = explain("whole", &["--flags=CM"]);
    let parts = explain("parts", &["--flags=CMP", "--residual=f32"]);
    let values = ["RMS in", "divisor", "ratio", "RMS out", "amplification"];
    for name in values {
        assert_eq!(value(&whole, name), value(&parts, name), "{name}");
    }
    let backward = explain("whole", &["--dir=BWD_D", "--flags=CM", "--residual=f32"]);
    assert_eq!(value(&whole, "RMS in"), value(&backward, "RMS in"));
    // 0.0625 is lost in the sum that is rounded to bf16, but not in the exact one.
    write_f32(&file("parts", 1), [256.0; 512]);
    write_f32(&file("parts", residual), [0.0625; 512]);
    let rounded = explain("parts", &["--flags=M", "--residual=f32:bf16"]);
    assert_eq!(value(&rounded, "RMS in"), "256.000");
    let exact = explain("parts", &["--flags=M", "--residual=f32:bf16:exact"]);
    assert_eq!(value(&exact, "RMS in"), "256.062");
}

/// What `norm_explain` cannot express is not explained as another problem.
#[test]
fn unknown_steps_are_named() {
    for (options, sentence) in [
        (
            &["--gate=f32", "--flags=MO"][..],
            "--explain does not support gates: remove --gate and its flag",
        ),
        (
            &["--partial=25%", "--flags=M"],
            "--explain does not support partial norms: remove --partial",
        ),
        (&["--flags=G"], "--explain does not support given statistics: remove the flag G"),
    ] {
        let text = run(&[&["--explain", "--mode=R"], options, &["3x40"]].concat());
        assert!(text.contains(&format!("explain: {sentence}")), "{text}");
        assert!(!text.contains("RMS in"), "{text}");
    }
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
