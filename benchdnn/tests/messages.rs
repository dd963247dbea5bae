//! What the program says about problems: which one a line of a table is, why one was skipped, what was misspelled.

use std::process::Command;

/// Runs a command line that must end with this status, and returns what it printed and its errors.
fn run(status: i32, arguments: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_benchdnn")).args(arguments).output();
    let output = output.expect("the program can be started");
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(status), "{arguments:?}\n{out}{err}");
    (out, err)
}

#[test]
fn tables_say_which_problem_ran() {
    let sizes = "1x2x8x16:1x2x16x8:1x2x8x16";
    for (words, count) in [
        (&["--lnorm", "--residual=,bf16,bf16:none", "--attr-post-ops=,relu", "4x16"][..], 6),
        (&["--sdpa", "--mask=none,causal_bottom_right", "--window=none,with_self:8", sizes], 4),
        (&["--gated", "--alg=SWISH,RELU", "4x16"], 2),
    ] {
        let (listed, _) = run(0, &[&["--mode=L"], words].concat());
        let listed = listed.lines().filter_map(|line| line.split("__REPRO: --mode=L ").nth(1));
        let problems: Vec<&str> = listed.collect();
        assert_eq!(problems.len(), count, "{problems:?}");
        let driver = words[0].trim_start_matches('-');
        for (template, before, after) in [
            ("csv", format!(",{driver},"), ""),
            ("json", format!(r#""driver":"{driver}","prb":""#), "\"}"),
        ] {
            let template = format!("--perf-template={template}");
            let (table, _) = run(0, &[&["--mode=F", &template], words].concat());
            let rows: Vec<&str> = table.lines().filter(|line| line.contains("cpu")).collect();
            assert_eq!(rows.len(), count, "{table}");
            for (row, problem) in rows.iter().zip(&problems) {
                assert!(row.ends_with(&format!("{before}--mode=F {problem}{after}")), "{row}");
            }
        }
    }
}

#[test]
fn skipped_problems_are_said_and_no_failure() {
    let (out, err) = run(0, &["--flags=PM", "2x4", "3x4"]);
    assert!(out.contains("\ntests:2 passed:0 skipped:2 "), "{out}");
    assert_eq!(err, "benchdnn: warning: no problem was run: 2 of 2 skipped\n");
    let (out, err) = run(0, &["--flags=PM,M", "2x4"]);
    assert!(out.contains("\ntests:2 passed:1 skipped:1 "), "{out}");
    assert_eq!(err, "");
    let (_, err) = run(0, &["--match=nothing", "2x4"]);
    assert_eq!(err, "benchdnn: warning: --match leaves out every problem\n");
}

#[test]
fn a_skipped_problem_says_what_does_not_match() {
    let values = "1x2x26x16";
    let shapes = |keys: &str| format!("1x2x26x16:{keys}:{values}");
    for (words, reason) in [
        (&["--gate=bf16"][..], "--gate needs the flag O (output gate) or I (input gate)"),
        (&["--flags=CO"], "the flag O needs --gate"),
        (&["--flags=CI"], "the flag I needs --gate"),
        (&["--flags=CIO"], "the flags O and I exclude each other"),
    ] {
        let (out, _) = run(0, &[words, &["2x4"]].concat());
        assert!(out.starts_with(&format!("0:SKIPPED ({reason}) ")), "{out}");
    }
    for (words, keys, reason) in [
        (
            &["--sdpa"][..],
            "1x2x26x16",
            "keys are D x T, as in oneDNN: 16xT with these queries, not 26x16",
        ),
        (&["--sdpa"], "1x2x16x27", "there are 27 keys and 26 values"),
        (&["--sdpa"], "2x2x16x26", "queries have 1 sequences, keys 2 and values 1"),
        (&["--sdpa"], "1x1x16x26", "keys have 1 heads and values 2"),
        (
            &["--sdpa", "--page-size=16"],
            "1x2x16x26",
            "26 keys are not a multiple of --page-size=16",
        ),
    ] {
        let (out, _) = run(0, &[words, &[&shapes(keys)]].concat());
        assert!(out.starts_with(&format!("0:SKIPPED ({reason}) ")), "{out}");
    }
    let (out, _) = run(0, &["--sdpa", "1x3x8x16:1x2x16x8:1x2x8x16"]);
    assert!(out.contains("(3 heads of queries are not a multiple of 2)"), "{out}");
}

#[test]
fn a_misspelled_batch_has_a_nearest_one() {
    let (_, err) = run(2, &["--batch=test_lnorm_smok"]);
    let expected = "no such batch file: test_lnorm_smok, inputs/lnorm/test_lnorm_smok; the nearest \
                    of --lnorm is test_lnorm_smoke\n";
    assert!(err.ends_with(expected), "{err}");
    let (_, err) = run(2, &["--sdpa", "--batch=inputs/sdpa/test_sdpa_bit"]);
    assert!(err.ends_with("; the nearest of --sdpa is test_sdpa_bits\n"), "{err}");
}

#[test]
fn a_file_for_times_needs_a_mode_that_measures() {
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-times.json");
    // Of a run in which this test failed.
    _ = std::fs::remove_file(path);
    let output = format!("--output={path}");
    for mode in ["C", "B", "R", "I"] {
        let mode_option = format!("--mode={mode}");
        let (_, err) = run(2, &[&mode_option, "--perf-template=json", &output, "2x4"]);
        let expected = format!(": --output needs a mode that measures, P or F, not {mode}\n");
        assert!(err.ends_with(&expected), "{err}");
    }
    assert!(!std::path::Path::new(path).exists(), "an empty file was written");
}

#[test]
fn names_of_options_elsewhere_are_known() {
    for (word, ours) in
        [("--epsilon=1", "eps"), ("--isa=avx2", "cpu-isa"), ("--direction=F", "dir")]
    {
        let (_, said) = run(2, &[word, "2x3"]);
        assert!(said.contains(&format!("the nearest is '--{ours}'")), "{word}: {said}");
    }
}
