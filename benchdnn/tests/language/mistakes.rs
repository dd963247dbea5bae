//! Mistakes in command lines and batch files: what the messages say, and where they point.

use super::{batch_option, error, folder, implementations, lines, request};
use benchdnn::machine::Request;

#[test]
fn options_without_effect_in_the_mode_are_refused() {
    let grad = "--check=grad is for --dir=BWD_D and BWD_DW; forward has no gradients";
    for (arguments, message) in [
        (&["--check=grad", "5x3"][..], grad),
        (&["--check=grad", "--dir=BWD_D,FWD_I", "5x3"], grad),
        (&["--mode=P", "--check=grad", "--dir=BWD_D", "5x3"], "--check=grad needs mode C, not P"),
        (&["--mode=B", "--check=grad", "--dir=BWD_D", "5x3"], "--check=grad needs mode C, not B"),
        (&["--reorder", "--check=grad", "5x3"], "--check=grad: a reorder has no gradients"),
        (&["--roofline", "5x3"], "--roofline needs a mode that measures, P or F, not C"),
        (
            &["--mode=B", "--roofline", "5x3"],
            "--roofline needs a mode that measures, P or F, not B",
        ),
        (&["--cold-cache=wei", "5x3"], "--cold-cache needs a mode that measures, P or F, not C"),
        (
            &["--mode=R", "--max-ms-per-prb=9", "5x3"],
            "--max-ms-per-prb needs a mode that measures, P or F, not R",
        ),
        (
            &["--perf-template=csv", "5x3"],
            "--perf-template needs a mode that measures, P or F, not C",
        ),
        (&["--mode=B", "--compare=lib.so", "5x3"], "--compare needs mode C, P, F or I, not B"),
        (&["--mode=R", "--compare=lib.so", "5x3"], "--compare needs mode C, P, F or I, not R"),
        (&["--mode=I", "--explain", "5x3"], "--explain needs a mode that executes, not I"),
        (
            &["--mode=C", "--fix-times-per-prb=2", "5x3"],
            "--fix-times-per-prb needs a mode that measures, P or F (or I with --compare), not C",
        ),
        (
            &["--mode=I", "--fix-times-per-prb=2", "5x3"],
            "--fix-times-per-prb needs a mode that measures, P or F (or I with --compare), not I",
        ),
    ] {
        let count = arguments.len();
        let expected = format!("command line, argument {count}, column 1: {message}");
        assert_eq!(error(arguments), expected);
    }
    assert_eq!(lines(&["--mode=CP", "--check=grad", "--roofline", "--dir=BWD_D", "5x3"]).len(), 1);
    assert_eq!(lines(&["--mode=L", "--check=grad", "--roofline", "5x3"]).len(), 1);
    assert_eq!(lines(&["--mode=CB", "--compare=lib.so", "--perf-template=def", "5x3"]).len(), 1);
    for words in [["--mode=I", "--compare=lib.so"], ["--mode=BP", "--cold-cache=all"]] {
        assert_eq!(lines(&[&words[..], &["--fix-times-per-prb=2", "5x3"]].concat()).len(), 1);
    }
    // Standard output is where the lines go without the option.
    assert_eq!(lines(&["--output=-", "5x3"]), ["--lnorm 5x3"]);
}

#[test]
fn slips_in_dimensions_get_a_hint() {
    let message = error(&["4096,4096"]);
    assert_eq!(
        message,
        "command line, argument 1, column 5: '4096,4096' is not a problem such as 8x128x1024 or \
         8x128x1024_n\"name\": dimensions are joined by x, as in 4096x4096"
    );
    assert!(error(&["4096x"]).ends_with(": a dimension is missing after the last x"));
}

#[test]
fn mistakes_in_arguments_are_pointed_at() {
    let cases: [(&[&str], &str); 18] = [
        (
            &["2x3", "--dri=BWD_D"],
            "command line, argument 2, column 1: unknown option '--dri'; the nearest is '--dir'",
        ),
        (
            &["--fix-time-per-prb=1"],
            "command line, argument 1, column 1: unknown option '--fix-time-per-prb'; the nearest is '--fix-times-per-prb'",
        ),
        (
            &["--lnrom"],
            "command line, argument 1, column 1: unknown option '--lnrom'; the nearest is '--lnorm'",
        ),
        (
            &["--qqqqqqq"],
            "command line, argument 1, column 1: unknown option '--qqqqqqq'; --help lists them all",
        ),
        (
            &["--dt=f32,bf17"],
            "command line, argument 1, column 10: --dt: 'bf17' is none of f32, bf16, f16, f64, s8, u8, f8_e4m3, f8_e5m2",
        ),
        (
            &["--dt=f32:f32:f32"],
            "command line, argument 1, column 6: --dt: 'f32:f32:f32' is neither SRC:DST nor one value for both",
        ),
        (
            &["-v1", "--dir"],
            "command line, argument 2, column 1: '--dir' needs a value: --dir=LIST",
        ),
        (
            &["-v100"],
            "command line, argument 1, column 3: --verbose: '100' is not an integer from 0 to 99",
        ),
        (&["--reset=1"], "command line, argument 1, column 1: '--reset' takes no value"),
        (
            &["4x5", "4y5"],
            "command line, argument 2, column 2: '4y5' is not a problem such as 8x128x1024 or 8x128x1024_n\"name\"",
        ),
        (
            &["--tag=acb", "4x5"],
            "command line, argument 2, column 1: --tag: tag acb is for 3 dimensions, not 2",
        ),
        (
            &["1x2x3x4x5x6"],
            "command line, argument 1, column 11: '1x2x3x4x5x6' has 6 dimensions, not 2 to 5",
        ),
        (
            &["--stat_tag=abc", "4x5"],
            "command line, argument 2, column 1: --stat_tag: tag abc is for 3 dimensions, not 1, \
             which mean and variance have",
        ),
        (
            &["--impl=simd,nonesuch", "4x5"],
            &format!(
                "command line, argument 1, column 13: --impl: 'nonesuch' matches none of {}",
                implementations().join(", ")
            ),
        ),
        (
            &["--skip-impl=nonesuch", "4x5"],
            &format!(
                "command line, argument 1, column 13: --skip-impl: 'nonesuch' matches none of {}",
                implementations().join(", ")
            ),
        ),
        (
            &["4"],
            "command line, argument 1, column 2: '4' is 1 dimension, not 2 to 5; a row is 1x4, without spaces",
        ),
        (
            &["--sdpa", "8"],
            "command line, argument 2, column 1: '8' is not Q:K:V, such as 1x2x8x16:1x2x16x8:1x2x8x16",
        ),
        (
            &["--dt=bfloat16"],
            "command line, argument 1, column 6: --dt: 'bfloat16' is none of f32, bf16, f16, f64, s8, u8, f8_e4m3, f8_e5m2; write bf16",
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(error(arguments), expected, "{arguments:?}");
    }
}

#[test]
fn mistakes_in_files_are_pointed_at_with_the_way_there() {
    let folder = folder(
        "mistakes",
        &[
            ("outer", "2x3\n\n  --batch=inner"),
            ("inner", "# first line\n--dir=FWD_D 4x5   --dt=f32,'bf17'"),
            ("quote", "2x3\n 4x5_n\"open\n6x7"),
            ("self", "2x3 --batch=self"),
            ("missing", "--batch=nowhere"),
            ("deep/inner", "2x3"),
        ],
    );
    let at = |name: &str| folder.join(name).display().to_string();
    assert_eq!(
        error(&["--reset", &batch_option(&folder, "outer")]),
        format!(
            "{}:2:29: --dt: 'bf17' is none of f32, bf16, f16, f64, s8, u8, f8_e4m3, f8_e5m2\n  included from {}:3:3\n  \
             included from command line, argument 2, column 1",
            at("inner"),
            at("outer")
        )
    );
    assert_eq!(
        error(&[&batch_option(&folder, "quote")]),
        format!(
            "{}:2:7: a quote that is never closed\n  included from command line, argument 1, column 1",
            at("quote")
        )
    );
    assert_eq!(
        error(&[&batch_option(&folder, "self")]),
        format!(
            "{}:1:13: {} includes itself\n  included from command line, argument 1, column 1",
            at("self"),
            at("self")
        )
    );
    assert_eq!(
        error(&[&batch_option(&folder, "missing")]),
        format!(
            "{}:1:9: no such batch file: {}, inputs/lnorm/nowhere\n  included from command line, argument 1, column 1",
            at("missing"),
            at("nowhere")
        )
    );
    assert_eq!(
        error(&[&batch_option(&folder, "deep")]),
        format!(
            "command line, argument 1, column 9: no such batch file: {} (a folder)",
            at("deep")
        )
    );
}

#[test]
fn nothing_to_run_is_a_mistake_unless_match_says_so() {
    for arguments in [&[][..], &["--reset"], &["--dir=BWD_D", "-v5"]] {
        assert!(error(arguments).starts_with("no problem given\nusage:"), "{arguments:?}");
    }
    assert_eq!(lines(&["--match=zzz", "2x3"]), Vec::<String>::new());
}

#[test]
fn an_option_without_effect_is_remarked() {
    let remarks = |arguments: &[&str]| match request(arguments) {
        Ok(Request::Jobs { remarks, .. }) => remarks,
        _ => panic!("{arguments:?} are problems"),
    };
    assert_eq!(
        remarks(&["2x3", "--flags=C"]),
        ["command line, argument 2, column 1: an option after the last problem has no effect"]
    );
    assert_eq!(remarks(&["--flags=C", "2x3", "--batch=shapes_ci"]), Vec::<String>::new());
}

/// Types are listed for the option, not all that there are.
#[test]
fn a_wrong_type_gets_the_types_of_the_option() {
    for (words, types) in [
        (["--lnorm", "--dt=s4"], "f32, bf16, f16, f64, s8, u8, f8_e4m3, f8_e5m2"),
        (["--lnorm", "--ss_dt=s4"], "f32, bf16, f16"),
        (["--lnorm", "--residual=s4"], "f32, bf16, f16"),
        (["--lnorm", "--gate=s4"], "f32, bf16, f16"),
        (["--gnorm", "--dt=s4"], "f32, bf16, f16, f64, s8, u8, f8_e4m3, f8_e5m2"),
        (["--softmax", "--sdt=s4"], "f32, bf16, f16, f64, s8, u8, f8_e4m3, f8_e5m2"),
        (["--eltwise", "--dt=s4"], "f32, bf16, f16, f64, f8_e5m2, f8_e4m3, s32, s8, u8"),
        (
            ["--reorder", "--sdt=s5"],
            "f32, bf16, f16, f64, f8_e5m2, f8_e4m3, e8m0, s32, s8, u8, s64",
        ),
        (["--binary", "--ddt=s4"], "f32, bf16, f16, s32, s8, u8, f8_e5m2, f8_e4m3"),
        (["--gated", "--sdt=s4"], "f32, bf16, f16"),
        (["--gated", "--ddt=s4"], "f32, bf16, f16, s8, u8, f8_e5m2, f8_e4m3"),
        (["--rope", "--tables=s4"], "f32, bf16, f16"),
        (["--rope", "--positions=s4"], "s32, s64"),
        (["--sdpa", "--dt=s4"], "f32, bf16, f16, s8, f8_e4m3"),
        (["--sdpa", "--mdt=s4"], "f32, bf16, f16, u8"),
    ] {
        let message = error(&words);
        assert!(message.ends_with(&format!(" is none of {types}")), "{message}");
    }
    // The library itself refuses a type that it has for other operations.
    assert_eq!(lines(&["--dt=s32", "2x3"]), ["--lnorm --dt=s32 2x3"]);
}
