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
fn scales_of_attention_are_pointed_to() {
    let sizes = "1x2x8x16:1x2x16x8:1x2x8x16";
    let (out, _) = run(0, &["--sdpa", "--attr-scales=src:common:2", sizes]);
    let reason = "(attention has no scales but those of --kv-scales)";
    assert!(out.starts_with(&format!("0:SKIPPED {reason} ")), "{out}");
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

/// The sizes can be read, so they are no mistake in the command line, but no machine has room for them.
#[test]
fn a_problem_that_no_machine_can_hold_is_skipped_and_the_rest_runs() {
    let far = "1x1x1099511627776x1:1x1x1x1099511627776:1x1x1099511627776x1";
    let cases: [(&str, &[&str], &str); 11] = [
        ("--lnorm", &[], "99999999999x99999999999"),
        ("--lnorm", &[], "4611686018427387904x4"),
        ("--lnorm", &["--flags=M", "--allow-enum-tags-only=true"], "4x99999999999999999999"),
        ("--softmax", &["--mode=B"], "99999999999x99999999999"),
        ("--reorder", &["--mode=I"], "99999999999x99999999999"),
        ("--gnorm", &["--check=grad", "--dir=BWD_D"], "g4mb2ic99999999999999999999"),
        ("--rope", &[], "600000x600000x64"),
        ("--gated", &["--mode=R"], "0x99999999999999"),
        ("--eltwise", &["--mode=F"], "99999999999x99999999999"),
        ("--binary", &[], "17592186044416x1:1x17592186044416"),
        ("--sdpa", &["--mask=buffer_2d"], far),
    ];
    for (driver, options, size) in cases {
        let small = match driver {
            "--gnorm" => "g2mb2ic4",
            "--sdpa" => "1x2x8x16:1x2x16x8:1x2x8x16",
            "--binary" => "4x8:1x8",
            _ => "4x8",
        };
        let (out, err) = run(0, &[&[driver], options, &[size, small]].concat());
        let first = out.lines().find(|line| line.contains("__REPRO")).expect(&out);
        let reason = "0:SKIPPED (a tensor has more than 17592186044416 elements, ";
        assert!(first.starts_with(reason), "{out}");
        assert!(out.contains("\ntests:2 passed:1 skipped:1 "), "{out}");
        assert_eq!(err, "");
    }
    let (out, _) = run(0, &["--mode=L", "--dt=f32,bf16", "4611686018427387904x4"]);
    assert!(out.contains("__REPRO: --mode=L --lnorm --dt=bf16 4611686018427387904x4\n"), "{out}");
    for wrong in ["99999999999x9999y", "99999999999x99999999999_n\"open", "9999999999999999x"] {
        let (_, err) = run(2, &[wrong, "4x8"]);
        assert!(err.starts_with("benchdnn: command line, argument 1, column "), "{err}");
    }
}
