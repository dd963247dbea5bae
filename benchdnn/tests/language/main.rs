//! The language: the jobs that command lines and batch files make.

mod batches;
mod help;
mod mistakes;

use benchdnn::drivers;
use benchdnn::job::Job;
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
