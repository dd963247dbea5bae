//! `--compare` with this library as the other one, since it is always available.

use std::path::PathBuf;
use std::process::{Command, Output};

fn benchdnn(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_benchdnn"))
        .args(arguments)
        .env_remove("NORM_VERBOSE")
        .output()
        .expect("the program can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn run(arguments: &[&str]) -> String {
    let output = benchdnn(arguments);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{out}{err}");
    out
}

/// The library of this build, which is beside the test's own executable.
fn library() -> String {
    let test = std::env::current_exe().expect("the test knows its executable");
    let name = format!("{}norm{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path: PathBuf = test.with_file_name(name);
    assert!(path.is_file(), "no {}", path.display());
    path.to_str().expect("a path in UTF-8").to_owned()
}

fn compare(rest: &str) -> String {
    format!("--compare={}{rest}", library())
}

#[test]
fn a_library_has_the_results_that_it_has_itself() {
    let words = [&compare(""), "--dir=FWD_D,FWD_I,BWD_DW", "--dt=f32,bf16:f32", "--ss_dt=f32,f16"];
    let words = [&words[..], &["--flags=CH,CM,G", "--tag=abx,xba", "30x301"]].concat();
    let text = run(&words);
    let expected = format!("compare: {}, version ", library());
    assert!(text.starts_with(&expected) && text.contains(", norm_*\n"), "{text}");
    assert_eq!(text.matches("\n  compare: all results are equal\n").count(), 72, "{text}");
    let summary = "total compare: compared:72 not_offered:0 equal:72 ours_nearer:0 theirs_nearer:0 \
                   theirs_wrong:0";
    assert!(text.contains(summary), "{text}");
    assert!(text.contains(":PASSED (") && text.contains("\ntests:72 passed:72 "));
}

#[test]
fn in_place_it_is_compared_in_place() {
    let text = run(&[&compare(""), "--inplace=true", "--dir=FWD_D,BWD_D", "30x301"]);
    assert!(text.contains(" compared:2 not_offered:0 equal:2 "), "{text}");
}

#[test]
fn times_have_a_ratio_that_is_a_number() {
    let words = [&compare(""), "--mode=F", "--threads=1,2", "--flags=CM", "32x300", "1x64"];
    let text = run(&words);
    assert_eq!(text.matches("\n  compare: ratio ").count(), 4, "{text}");
    let mean = text.split("total ratio: problems:4 geometric mean:").nth(1).expect(&text);
    let mean: f64 = mean[..mean.find(' ').expect("more")].parse().expect("a number");
    assert!(mean.is_finite() && mean > 0.0, "{text}");
    for template in ["--perf-template=csv", "--perf-template=json"] {
        let text = run(&[&compare(""), "--mode=P", "--fix-times-per-prb=5", template, "9x32"]);
        // Both libraries' implementations are in the line.
        assert!(text.lines().any(|line| line.matches("simd:").count() == 2), "{text}");
    }
    let ratio = run(&[&compare(""), "--mode=F", "--perf-template=%ratio%", "9x32"]);
    let ratio: f64 = ratio.lines().nth(2).expect(&ratio).parse().expect("a number");
    assert!(ratio.is_finite() && ratio > 0.0, "{ratio}");
}

#[test]
fn creating_has_ratios_of_the_first_time_and_of_those_after_it() {
    let words = [&compare(""), "--mode=I", "--dir=FWD_I,BWD_DW", "--flags=CM", "32x300"];
    let text = run(&words);
    for (line, status) in
        text.lines().skip(1).step_by(2).zip(text.lines().skip(2).step_by(2)).take(2)
    {
        assert!(line.starts_with("  compare: creation: first ") && line.contains(" us against "));
        let numbers: Vec<f64> =
            line.split([' ', ',', '[', ']', ';']).filter_map(|word| word.parse().ok()).collect();
        let [ours, theirs, first, again, again_theirs, ratio, low, high] = numbers[..] else {
            panic!("{line}");
        };
        // All have three decimals.
        assert!((first - theirs / ours).abs() <= 0.001 * first + 0.0005, "{line}");
        assert!(low <= ratio && ratio <= high && again > 0.0 && again_theirs > 0.0, "{line}");
        // Medians of times and of ratios need not agree, but they come from the same samples.
        assert!(
            ratio < 30.0 * again_theirs / again && ratio > again_theirs / again / 30.0,
            "{line}"
        );
        assert!(status.contains(":INITIALIZED ("), "{text}");
    }
    for which in ["first", "again"] {
        assert!(text.contains(&format!("\ntotal creation, {which}: problems:2 ")), "{text}");
    }
    assert!(text.contains("total compare: compared:2 not_offered:0 "), "{text}");
}

#[test]
fn the_limit_and_the_other_library_share_a_run() {
    let text = run(&[&compare(""), "--mode=CP", "--max-ms-per-prb=10", "--roofline", "32x300"]);
    for part in ["compare: all results are equal", "compare: ratio ", "roofline: ", ":PASSED ("] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("total compare: compared:1 not_offered:0 equal:1 "), "{text}");
}

#[test]
fn the_environment_is_set_before_the_library_is_opened() {
    let words = [&compare(",NORM_VERBOSE=0,NORM_MAX_CPU_ISA=portable"), "--mode=F"];
    let text = run(&[&words[..], &["--perf-template=%impl%,%peer_impl%", "9x32"]].concat());
    let line = text.lines().nth(2).expect(&text);
    assert!(line.ends_with(",simd:portable"), "{text}");
    // This library has already read its environment.
    if std::env::var_os("NORM_MAX_CPU_ISA").is_none() && cfg!(target_arch = "x86_64") {
        let best = std::process::Command::new(env!("CARGO_BIN_EXE_benchdnn"))
            .args(["--mode=F", "--perf-template=%impl%", "9x32"])
            .output()
            .expect("the program can be started");
        let best = String::from_utf8(best.stdout).expect("UTF-8");
        let best = best.lines().nth(1).expect("a line").to_owned();
        assert_eq!(line, format!("{best},simd:portable"));
    }
}

#[test]
fn the_line_of_a_problem_names_the_library() {
    let text = run(&[&compare(",A=b"), "--mode=L", "9x32"]);
    assert!(text.contains(&format!("__REPRO: --mode=L {} --lnorm 9x32", compare(",A=b"))));
}

#[test]
fn a_library_that_is_none_ends_the_run_before_it_begins() {
    let refused = |option: &str| {
        let output = benchdnn(&[option, "5x33"]);
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert_eq!(text(&output.stdout), "", "{option}");
        text(&output.stderr)
    };
    let message = refused("--compare=/nowhere/libnone.so");
    assert!(message.starts_with("benchdnn: --compare: cannot open /nowhere/libnone.so: "));
    let message = refused(&format!("--compare={}", env!("CARGO_BIN_EXE_benchdnn")));
    assert!(message.starts_with("benchdnn: --compare: cannot open "), "{message}");
    #[cfg(target_os = "linux")]
    {
        let message = refused("--compare=libm.so.6");
        let expected = "benchdnn: --compare: libm.so.6 has neither dnnl_engine_create nor \
                        norm_engine_create; it is not a library like oneDNN\n";
        assert_eq!(message, expected);
    }
    let message = refused("--compare=libnorm.so,A=1,B");
    let expected =
        "benchdnn: command line, argument 1, column 26: --compare: 'B' is not NAME=VALUE\n";
    assert_eq!(message, expected);
}
