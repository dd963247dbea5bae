//! The language: the jobs that command lines and batch files make.

use benchdnn::drivers;
use benchdnn::job::Job;
use benchdnn::language::batch;
use benchdnn::library::Connection;
use benchdnn::machine::{self, Request, read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

fn library() -> Rc<Connection> {
    Rc::new(Connection::linked().expect("a library that can be used"))
}

fn request(arguments: &[&str]) -> Result<Request, String> {
    let arguments: Vec<String> = arguments.iter().map(|word| word.to_string()).collect();
    read(&arguments, drivers::all(), &library()).map_err(|error| error.to_string())
}

fn jobs(arguments: &[&str]) -> Vec<Job> {
    match request(arguments) {
        Ok(Request::Jobs { jobs, .. }) => jobs,
        Ok(Request::Help(_)) => panic!("{arguments:?} asks for help"),
        Err(error) => panic!("{arguments:?}: {error}"),
    }
}

fn lines(arguments: &[&str]) -> Vec<String> {
    jobs(arguments).iter().map(Job::line).collect()
}

fn implementations() -> Vec<String> {
    let names = machine::implementations(&library(), &*drivers::all()[0].sample());
    assert!(names.iter().any(|name| name == "simd:portable"), "{names:?}");
    names
}

fn error(arguments: &[&str]) -> String {
    match request(arguments) {
        Ok(_) => panic!("{arguments:?} is understood"),
        Err(error) => error,
    }
}

/// A folder for this test, with these files.
fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("language").join(test);
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        std::fs::write(path, text).expect("a writable file");
    }
    folder
}

fn batch_option(folder: &Path, file: &str) -> String {
    format!("--batch={}", folder.join(file).display())
}

#[test]
fn options_hold_for_the_problems_after_them() {
    assert_eq!(
        lines(&["2x3", "--dir=bwd_d", "--flags=CM", "4x5", "--dir=FWD_I", "6x7", "8x9"]),
        [
            "--lnorm 2x3",
            "--lnorm --dir=BWD_D --flags=CM 4x5",
            "--lnorm --dir=FWD_I --flags=CM 6x7",
            "--lnorm --dir=FWD_I --flags=CM 8x9",
        ]
    );
}

#[test]
fn lists_multiply_out_in_a_fixed_order() {
    assert_eq!(
        lines(&["--inplace=false,1", "--dt=f32,bf16:f32", "--dir=FWD_D,BWD_D", "2x3"]),
        [
            "--lnorm 2x3",
            "--lnorm --inplace=true 2x3",
            "--lnorm --dt=bf16:f32 2x3",
            "--lnorm --dt=bf16:f32 --inplace=true 2x3",
            "--lnorm --dir=BWD_D 2x3",
            "--lnorm --dir=BWD_D --inplace=true 2x3",
            "--lnorm --dir=BWD_D --dt=bf16:f32 2x3",
            "--lnorm --dir=BWD_D --dt=bf16:f32 --inplace=true 2x3",
        ]
    );
    let many = lines(&[
        "--cpu-isa=portable,default",
        "--threads=0,2",
        "--tag=abx,axb:abx,acb",
        "--stat_tag=any,undef",
        "--ss_dt=f32,f16",
        "--flags=,G,GCHM",
        "--eps=0,1e-12",
        "2x3x4",
    ]);
    assert_eq!(many.len(), 2 * 2 * 3 * 2 * 2 * 3 * 2);
    let mut distinct = many.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), many.len());
    assert_eq!(
        many.last().expect("many"),
        "--threads=2 --lnorm --tag=acb --stat_tag=undef --ss_dt=f16 --flags=GCHM --eps=1e-12 2x3x4"
    );
}

#[test]
fn an_empty_value_is_the_default_of_lists_and_where_that_is_empty() {
    for option in ["mode", "check", "perf-template"] {
        let message = error(&["2x3", &format!("--{option}=")]);
        let expected = format!("--{option}: a value is missing; the default is ");
        assert!(message.contains(&expected), "{message}");
    }
    let message = error(&["--mode=", "2x3"]);
    assert_eq!(
        message,
        "command line, argument 1, column 8: --mode: a value is missing; the default is C"
    );
    let lists = ["dir", "dt", "tag", "eps", "ss_dt", "threads"].map(|name| format!("--{name}="));
    let lists: Vec<&str> = lists.iter().map(String::as_str).chain(["2x3"]).collect();
    assert_eq!(lines(&lists), ["--lnorm 2x3"]);
    assert_eq!(lines(&["--dt=f16", "--ss_dt=bf16", "--ss_dt=", "2x3"]), ["--lnorm --dt=f16 2x3"]);
    assert_eq!(lines(&["--impl=ref", "--impl=", "--match=", "2x3"]), ["--lnorm 2x3"]);
    assert_eq!(lines(&["--skip-impl=simple", "2x3"]), ["--lnorm --skip-impl=simple 2x3"]);
    assert_eq!(lines(&["--flags=G,", "2x3"]), ["--lnorm --flags=G 2x3", "--lnorm 2x3"]);
    assert_eq!(lines(&["--flags=G", "--flags=", "2x3"]), ["--lnorm 2x3"]);
}

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
    ] {
        let count = arguments.len();
        let expected = format!("command line, argument {count}, column 1: {message}");
        assert_eq!(error(arguments), expected);
    }
    assert_eq!(lines(&["--mode=CP", "--check=grad", "--roofline", "--dir=BWD_D", "5x3"]).len(), 1);
    assert_eq!(lines(&["--mode=L", "--check=grad", "--roofline", "5x3"]).len(), 1);
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
fn reset_is_about_problems_not_about_the_run() {
    let line = &lines(&[
        "--mode=L",
        "--threads=2",
        "--dir=BWD_D",
        "--match=9x9",
        "--impl=ref",
        "--reset",
        "2x3",
    ])[0];
    assert_eq!(line, "--mode=L --threads=2 --lnorm 2x3");
}

#[test]
fn the_driver_may_be_named_and_values_have_their_case() {
    assert_eq!(lines(&["--mode=l", "--lnorm", "2x3"]), ["--mode=L --lnorm 2x3"]);
    assert_eq!(lines(&["--inplace=TRUE", "2x3"]), ["--lnorm --inplace=true 2x3"]);
    assert!(error(&["--dt=F32", "2x3"]).contains("'F32' is none of f32, bf16, f16"));
    assert_eq!(lines(&["--flags=cm", "2x3"]), ["--lnorm --flags=CM 2x3"]);
    assert!(error(&["--flags=x", "2x3"]).contains("'x' is not a combination of G"));
    assert!(error(&["--tag=ABX", "2x3"]).contains("'ABX' is not a layout"));
}

#[test]
fn match_looks_at_the_line_and_at_names() {
    let words = ["--flags=,CM", "2x3_n\"first one\"", "4x5_nsecond"];
    let matching = |regex: &str| lines(&[&[regex], &words[..]].concat());
    assert_eq!(matching("--match=first").len(), 2);
    assert_eq!(matching("--match=flags=CM.*n\"second"), ["--lnorm --flags=CM 4x5_n\"second\""]);
    assert_eq!(matching("--match=third").len(), 0);
    assert_eq!(matching("--match=").len(), 4);
}

#[test]
fn repeats_and_filters_are_part_of_the_line() {
    let words =
        ["--repeats-per-prb=3", "--skip-impl=ref,simd:portable", "--buffer-prefix=a b", "2x3"];
    let line =
        "--repeats-per-prb=3 '--buffer-prefix=a b' --lnorm --skip-impl=ref,simd:portable 2x3";
    assert_eq!(lines(&words), [line; 3]);
    assert_eq!(
        lines(&["--impl=ref", "--skip-impl=simd", "2x3"]),
        ["--lnorm --skip-impl=simd 2x3"],
        "of the two the later one counts"
    );
}

#[test]
fn batch_files_share_the_state_and_nest() {
    let folder = folder(
        "nest",
        &[
            ("outer", "--dir=BWD_D 2x3 # a comment\n--batch=deep/inner\n6x7\n"),
            ("deep/inner", "--flags=CM\n--batch=shapes   --dir=FWD_I"),
            ("deep/shapes", "4x5_n\"a name # no comment\" \\\n\n\n"),
        ],
    );
    assert_eq!(
        lines(&["--dt=bf16", &batch_option(&folder, "outer"), "8x9"]),
        [
            "--lnorm --dir=BWD_D --dt=bf16 2x3",
            "--lnorm --dir=BWD_D --dt=bf16 --flags=CM 4x5_n\"a name # no comment\"",
            "--lnorm --dir=FWD_I --dt=bf16 --flags=CM 6x7",
            "--lnorm --dir=FWD_I --dt=bf16 --flags=CM 8x9",
        ]
    );
}

#[test]
fn the_drivers_own_files_are_found_from_anywhere() {
    let folder = folder("own", &[("outer", "--batch=shapes_ci")]);
    let direct = lines(&["--batch=shapes_ci"]);
    assert!(!direct.is_empty());
    assert_eq!(lines(&[&batch_option(&folder, "outer")]), direct);
}

#[test]
fn the_drivers_files_may_be_written_as_paths() {
    let direct = lines(&["--batch=shapes_ci"]);
    for path in ["inputs/lnorm/shapes_ci", "./inputs/lnorm/shapes_ci", "/x/inputs/lnorm/shapes_ci"]
    {
        assert_eq!(lines(&[&format!("--batch={path}")]), direct);
    }
    assert_eq!(
        error(&["--batch=inputs/lnorm/nowhere"]),
        "command line, argument 1, column 9: no such batch file: inputs/lnorm/nowhere"
    );
}

#[test]
fn every_file_of_the_driver_can_be_read() {
    let names: Vec<_> = batch::embedded("lnorm").collect();
    assert!(names.contains(&"test_lnorm_ci"), "{names:?}");
    for name in names {
        assert!(!lines(&[&format!("--batch={name}")]).is_empty(), "{name}");
    }
}

#[test]
fn the_suites_for_timing_have_every_shape_in_every_way() {
    for (name, shapes) in [
        ("perf_llm", &["1x1024", "4x3072", "32x5120", "512x8192", "4096x16384"][..]),
        ("perf_narrow", &["16384x16", "262144x192"]),
        ("perf_odd", &["15x3", "31x301", "257x768", "1000x1023", "77x4097"]),
        ("perf_long", &["1x1048576", "4x262144"]),
    ] {
        let lines = lines(&[&format!("--batch={name}")]);
        let count = match name {
            "perf_llm" => 6 * 7,
            "perf_narrow" => 2 * 6,
            _ => shapes.len(),
        };
        // Types, flags, directions.
        assert_eq!(lines.len(), count * 5 * 3 * 3, "{name}");
        let mut distinct = lines.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), lines.len(), "{name}");
        for shape in shapes {
            let of_shape = |words: &str| {
                let line = format!("--lnorm {words} {shape}").replace("  ", " ");
                assert!(lines.contains(&line), "{line} in {name}");
            };
            of_shape("--dir=FWD_I --flags=CH");
            of_shape("--dt=bf16:f32 --flags=CM");
            of_shape("--dir=BWD_DW --dt=f16 --flags=M");
        }
    }
}

#[test]
fn mistakes_in_arguments_are_pointed_at() {
    let cases: [(&[&str], &str); 17] = [
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
            "command line, argument 1, column 10: --dt: 'bf17' is none of f32, bf16, f16, f64, f8_e5m2, f8_e4m3, e8m0, s32, s8, u8, s64",
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
            "command line, argument 1, column 2: '4' is 1 dimension, not 2 to 5; a row is 1x4",
        ),
        (
            &["--dt=bfloat16"],
            "command line, argument 1, column 6: --dt: 'bfloat16' is none of f32, bf16, f16, f64, f8_e5m2, f8_e4m3, e8m0, s32, s8, u8, s64; write bf16",
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
        ],
    );
    let at = |name: &str| folder.join(name).display().to_string();
    assert_eq!(
        error(&["--reset", &batch_option(&folder, "outer")]),
        format!(
            "{}:2:29: --dt: 'bf17' is none of f32, bf16, f16, f64, f8_e5m2, f8_e4m3, e8m0, s32, s8, u8, s64\n  included from {}:3:3\n  \
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

#[test]
fn help_is_general_or_about_a_driver() {
    let help = |arguments: &[&str]| match request(arguments) {
        Ok(Request::Help(text)) => text,
        _ => panic!("{arguments:?} asks for help"),
    };
    let general = help(&["-h"]);
    assert!(general.contains("[driver]") && general.contains("--lnorm  "), "{general}");
    let driver = help(&["--lnorm", "--help"]);
    assert!(driver.contains("benchdnn --lnorm [options]"), "{driver}");
    for text in [&general, &driver] {
        for part in
            ["--flags", "--batch", "--mode", "[0.0625]", "Examples:", "--flags=CM 4096x4096"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

#[test]
fn the_manual_names_options_that_exist() {
    let drivers = ["--lnorm", "--reorder", "--softmax", "--sdpa"];
    let helps = drivers.map(|driver| match request(&[driver, "-h"]) {
        Ok(Request::Help(text)) => text,
        _ => panic!("{driver} has help"),
    });
    let manual = include_str!("../../docs/benchdnn.md");
    let mut count = 0;
    for (at, _) in manual.match_indices("--") {
        let name = manual[at..].split(|c: char| !(c.is_ascii_lowercase() || "-_".contains(c)));
        let name = name.clone().next().unwrap_or_default().trim_end_matches('-');
        if name.len() > 2 && !manual[..at].ends_with("cargo build ") {
            count += 1;
            assert!(helps.iter().any(|help| help.contains(name)), "{name}");
        }
    }
    assert!(count > 60, "only {count} options were found");
}

#[test]
fn the_examples_of_the_help_are_understood() {
    let Ok(Request::Help(text)) = request(&["--help"]) else { panic!("it asks for help") };
    let examples: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("  benchdnn ")).collect();
    assert!(examples.len() >= 4, "{text}");
    for example in examples {
        assert!(!lines(&example.split(' ').collect::<Vec<_>>()).is_empty(), "{example}");
    }
}
