//! The program as people and scripts use it: output, messages and exit statuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn benchdnn(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_benchdnn"))
        .args(arguments)
        .output()
        .expect("the program can be started")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Runs a command line that must end with this status.
fn run(status: i32, arguments: &[&str]) -> String {
    let output = benchdnn(arguments);
    assert_eq!(
        output.status.code(),
        Some(status),
        "{arguments:?}\n{}{}",
        out(&output),
        err(&output)
    );
    if status == 2 { err(&output) } else { out(&output) }
}

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command_line").join(test);
    std::fs::create_dir_all(&folder).expect("a writable folder");
    folder
}

fn write_f32(path: &Path, values: impl IntoIterator<Item = f32>) {
    let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_ne_bytes).collect();
    std::fs::write(path, bytes).expect("a writable file");
}

#[test]
fn a_problem_passes() {
    let text = run(0, &["--flags=CM", "--dir=FWD_D,BWD_DW", "5x33"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("0:PASSED (") && lines[1].starts_with("1:PASSED ("), "{text}");
    assert!(lines[0].ends_with(" ms) __REPRO: --lnorm --flags=CM 5x33"), "{text}");
    assert!(lines[1].ends_with(" __REPRO: --lnorm --dir=BWD_DW --flags=CM 5x33"), "{text}");
    assert_eq!(lines[2], "= implementations (--summary=no-impl leaves this out)");
    assert!(lines[3].starts_with("| ") && lines[3].ends_with(" : 2 (100%)"), "{text}");
    assert_eq!(
        lines[4],
        "tests:2 passed:2 skipped:0 mistrusted:0 unimplemented:0 invalid_arguments:0 failed:0 \
         listed:0"
    );
    assert!(lines[5].starts_with("total: ") && lines[5].ends_with('s'), "{text}");
    assert_eq!(lines.len(), 6);
}

#[test]
fn a_failed_problem_makes_the_status_1() {
    // The scalar implementation counts as a reference.
    let text = run(1, &["--check-ref-impl=true", "--impl=ref", "5x33"]);
    assert!(text.starts_with("0:FAILED (ref:any is a reference implementation) ("), "{text}");
    assert!(text.contains("__REPRO: --check-ref-impl=true --lnorm --impl=ref 5x33"), "{text}");
    assert!(text.contains("\ntests:1 passed:0 ") && text.contains(" failed:1 "), "{text}");
    // The library refuses src without a layout.
    let text = run(1, &["--tag=any", "5x33"]);
    assert!(text.starts_with("0:INVALID_ARGUMENTS ("), "{text}");
    assert!(text.contains(" invalid_arguments:1 failed:1 "), "{text}");
}

#[test]
fn what_is_not_understood_makes_the_status_2() {
    for (arguments, message) in [
        (
            &["--dri=BWD_D", "5x33"][..],
            "command line, argument 1, column 1: unknown option '--dri'; the nearest is '--dir'",
        ),
        (
            &["--dt=f33", "5x33"],
            "command line, argument 1, column 6: --dt: 'f33' is none of f32, bf16, f16",
        ),
        (&["5x33", "5z33"], "command line, argument 2, column 2: '5z33' is not a problem"),
        (&["--batch=nowhere"], "command line, argument 1, column 9: no such batch file: nowhere"),
        (&[], "no problem given\nusage: benchdnn [driver] [options] problem ..."),
    ] {
        let output = benchdnn(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(err(&output).starts_with(&format!("benchdnn: {message}")), "{}", err(&output));
        assert_eq!(out(&output), "", "nothing runs before everything is understood");
    }
}

#[test]
fn a_batch_file_is_pointed_into() {
    let path = folder("batch").join("wrong");
    std::fs::write(&path, "5x33\n  --flags=CH,X 5x33\n").expect("a writable file");
    let message = run(2, &[&format!("--batch={}", path.display())]);
    assert!(message.starts_with(&format!("benchdnn: {}:2:14: --flags: 'X'", path.display())));
    assert!(
        message.ends_with("\n  included from command line, argument 1, column 1\n"),
        "{message}"
    );
}

#[test]
fn the_drivers_batch_runs_from_any_folder() {
    let output = Command::new(env!("CARGO_BIN_EXE_benchdnn"))
        .args(["--mode=L", "--batch=test_lnorm_ci"])
        .current_dir("/")
        .output()
        .expect("the program can be started");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(text.starts_with("0:LISTED (0 ms) __REPRO: --mode=L --lnorm "), "{text:.200}");
    assert!(text.lines().count() > 2000);
}

#[test]
fn help_goes_to_standard_output() {
    for arguments in [&["--help"][..], &["-h"], &["--lnorm", "--help"]] {
        let text = run(0, arguments);
        assert!(text.contains("Usage: benchdnn") && text.contains("--stat_tag"), "{text}");
    }
}

#[test]
fn problems_that_make_no_sense_are_skipped_with_the_reason() {
    let text = run(0, &["--inplace=true", "--dt=f32:bf16", "5x33"]);
    assert!(
        text.starts_with("0:SKIPPED (in place needs src and dst of the same type) ("),
        "{text}"
    );
    let text = run(0, &["--inplace=true", "--tag=abx:axb", "2x5x33"]);
    assert!(
        text.starts_with("0:SKIPPED (in place needs src and dst with the same layout) ("),
        "{text}"
    );
    let text = run(0, &["--cpu-isa=portable", "--skip-impl=simd:portable,ref", "5x33"]);
    assert!(text.starts_with("0:SKIPPED (no implementation is allowed) ("), "{text}");
    let foreign = if cfg!(target_arch = "aarch64") { "avx2" } else { "neon" };
    let text = run(0, &[&format!("--cpu-isa={foreign}"), "5x33"]);
    assert!(text.starts_with(&format!("0:SKIPPED (this machine has no {foreign}) (")), "{text}");
}

#[test]
fn empty_and_tiny_problems_run() {
    let text = run(0, &["--dir=FWD_D,BWD_DW", "--flags=CH,CM", "0x5", "5x0", "3x0x4", "0x0"]);
    assert!(text.contains("\ntests:16 passed:16 "), "{text}");
    // Given statistics without rows.
    let flags = "--flags=G,GM,GCH";
    let text = run(0, &["--dir=FWD_D,FWD_I,BWD_DW", flags, "0x5", "3x0x4", "0x0", "2x3"]);
    assert!(text.contains("\ntests:36 passed:36 "), "{text}");
    let text = run(0, &["--dir=FWD_D,BWD_DW", "--flags=CHM", "1x1", "1x1x1x1x1", "2x1"]);
    assert!(text.contains("\ntests:6 passed:6 "), "{text}");
}

#[test]
fn a_problem_that_does_not_fit_is_skipped_and_the_rest_runs() {
    for mode in ["--mode=C", "--mode=B", "--mode=F", "--mode=R"] {
        let text = run(0, &[mode, "--summary=no-impl", "400000x400000", "2x3"]);
        let first = text.lines().find(|line| line.contains("__REPRO")).expect(&text);
        assert!(first.starts_with("0:SKIPPED (its tensors need "), "{text}");
        assert!(first.contains(" GB of memory") && first.contains("400000x400000"), "{text}");
        assert!(text.contains("\ntests:2 passed:1 skipped:1 "), "{text}");
    }
    // Strides can need more memory than the elements.
    let text = run(0, &["--reorder", "--strides=17592186044416x1:", "4x2", "--strides=", "4x2"]);
    assert!(text.starts_with("0:SKIPPED (") && text.contains("\n1:PASSED ("), "{text}");
}

#[test]
fn the_version_is_printed() {
    for option in ["--version", "-V"] {
        assert_eq!(run(0, &[option]), concat!("benchdnn ", env!("CARGO_PKG_VERSION"), "\n"));
    }
}

#[cfg(unix)]
#[test]
fn batches_come_through_pipes() {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_benchdnn"))
        .args(["--flags=C", "--batch=/dev/stdin", "6x7"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"2x3 # a comment\n--dir=BWD_D 4x5\n").expect("a reader");
    drop(input);
    let output = child.wait_with_output().expect("the program ends");
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", err(&output));
    assert!(text.contains("__REPRO: --lnorm --flags=C 2x3\n"), "{text}");
    assert!(text.contains("__REPRO: --lnorm --dir=BWD_D --flags=C 6x7\n"), "{text}");
}

#[test]
fn measured_times_go_to_a_file_of_their_own() {
    let folder = folder("output");
    for (template, lines) in [("csv", 3), ("json", 2)] {
        let path = folder.join(template);
        let output = format!("--output={}", path.display());
        let template = format!("--perf-template={template}");
        let words = ["--mode=P", "--fix-times-per-prb=3", &template, &output, "8x32", "9x32"];
        let text = run(0, &words);
        assert!(text.starts_with("0:EXECUTED (") && text.contains("\n1:EXECUTED ("), "{text}");
        assert!(text.contains("\ntests:2 passed:2 ") && !text.contains("engine"), "{text}");
        let table = std::fs::read_to_string(&path).expect("the file is there");
        assert_eq!(table.lines().count(), lines, "{table}");
        assert!(table.lines().all(|line| line.contains("cpu") || line.contains("engine")));
        // The file is overwritten.
        run(0, &words);
        assert_eq!(std::fs::read_to_string(&path).expect("a file").lines().count(), lines);
    }
    let words = ["--mode=P", "--fix-times-per-prb=3", "--perf-template=csv"];
    let text = run(0, &[&words[..], &["--output=-", "8x32"]].concat());
    assert!(text.starts_with("engine,") && !Path::new("-").exists(), "{text}");
    let message = run(2, &["--mode=P", "--output=/nowhere/file", "8x32"]);
    assert!(message.starts_with("benchdnn: --output: cannot write /nowhere/file: "), "{message}");
}

#[test]
fn measuring_prints_a_line_per_problem() {
    let text = run(
        0,
        &[
            "--mode=P",
            "--summary=no-impl",
            "--fix-times-per-prb=3",
            "--dt=bf16:f32",
            "--flags=C",
            "8x32_n\"a name\"",
            "9x32",
        ],
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "perf,engine,impl,name,prb,iobytes,min_time,min_Gbw,avg_time,avg_Gbw,median_time,median_Gbw"
    );
    let fields: Vec<&str> = lines[1].split(',').collect();
    assert_eq!(fields.len(), 12, "{text}");
    assert_eq!(fields[..2], ["perf", "cpu"]);
    assert_eq!(fields[3], "\"a name\"");
    assert_eq!(
        fields[4],
        "--mode=P --fix-times-per-prb=3 --lnorm --dt=bf16:f32 --flags=C 8x32_n\"a name\""
    );
    // src, dst, mean, variance, scale.
    assert_eq!(fields[5], (8 * 32 * (2 + 4) + 2 * 8 * 4 + 32 * 4).to_string());
    let number = |field: &str| field.parse::<f64>().expect(field);
    assert!(fields[6..].iter().all(|field| number(field) > 0.0), "{text}");
    assert!(number(fields[6]) <= number(fields[8]) && number(fields[6]) <= number(fields[10]));
    let rate = number(fields[5]) / number(fields[6]) / 1e6;
    assert!((rate / number(fields[7]) - 1.0).abs() < 0.2, "{text}");
    assert!(lines[2].starts_with("perf,cpu,") && lines[3].starts_with("tests:2 passed:2 "));
    assert!(lines[4].starts_with("total perf: min(ms):"), "{text}");
    let both = run(0, &["--mode=CP", "--fix-times-per-prb=1", "9x32"]);
    assert!(both.contains("\nperf,cpu,") && both.contains("\n0:PASSED ("), "{both}");
}

#[test]
fn measuring_briefly_is_a_mode_of_its_own() {
    let text = run(0, &["--mode=F", "9x32"]);
    assert!(text.contains(",--mode=F --lnorm 9x32,"), "{text}");
    assert!(text.contains("\ntests:1 passed:1 "), "{text}");
}

#[test]
fn times_are_printed_as_the_template_says() {
    let measure = ["--mode=P", "--fix-times-per-prb=3", "--summary=no-impl"];
    let lines = |template: &str| -> Vec<String> {
        let words = [&measure[..], &[template, "--flags=C", "8x32", "9x32"]].concat();
        run(0, &words).lines().map(str::to_owned).collect()
    };
    let custom = lines("--perf-template=%dt% %flags% %desc%: %ibytes%+%obytes%, %idx%");
    let bytes = |rows: usize| format!("{}+{}", (rows * 32 + 32) * 4, (rows * 32 + 2 * rows) * 4);
    assert_eq!(custom[0], "dt flags desc: ibytes+obytes, idx");
    assert_eq!(custom[1], format!("f32 C 8x32: {}, 0", bytes(8)));
    assert_eq!(custom[2], format!("f32 C 9x32: {}, 1", bytes(9)));
    let csv = lines("--perf-template=csv");
    let columns = csv[0].split(',').count();
    assert!(csv[0].starts_with("engine,threads,impl,name,dir,dt,") && columns == 29, "{csv:?}");
    assert_eq!([&csv[1], &csv[2]].map(|line| line.split(',').count()), [columns; 2], "{csv:?}");
    let json = lines("--perf-template=json");
    assert!(json[0].starts_with(r#"{"engine":"cpu","threads":"#) && json[0].ends_with('}'));
    // The number in use, although the option has its default, 0.
    assert!(!json[0].contains(r#""threads":0,"#), "{json:?}");
    let two = run(0, &["--mode=F", "--perf-template=%threads%", "--ctx-exe=2", "9x32"]);
    assert_eq!(two.lines().nth(1), Some("2"), "{two}");
    let names = ["min_time", "min_Gbw", "median_time"];
    for name in names {
        let number = json[1].split(&format!("\"{name}\":")).nth(1).expect(name);
        let number: f64 = number[..number.find(',').expect("more")].parse().expect("a number");
        assert!(number > 0.0, "{name} in {json:?}");
    }
    assert!(json[1].contains(r#""ratio":null"#), "{json:?}");
    let message = run(2, &["--perf-template=%prb%,%tme%", "5x33"]);
    assert!(message.contains("argument 1, column 24: --perf-template: 'tme' is not an entry"));
}

#[test]
fn the_limit_is_measured_with_the_problem() {
    let words = ["--mode=F", "--roofline", "--threads=1,2", "--flags=CH", "--dt=f32,bf16:f32"];
    let words = [&words[..], &["--dir=FWD_I,BWD_DW", "64x300", "15x3"]].concat();
    let text = run(0, &words);
    assert_eq!(text.matches("\n  roofline: ").count(), 16, "{text}");
    assert!(text.contains("\ntotal roofline: problems:16 geometric mean:"), "{text}");
    let share = |template: &str| -> f64 {
        let words = ["--mode=F", "--roofline=true", template, "--summary=no-impl", "300x300"];
        run(0, &words).lines().nth(1).expect("a line").parse().expect("a number")
    };
    // A normalization reads and computes more than a copy of the same bytes.
    let ratio = share("--perf-template=%roof%");
    assert!(ratio.is_finite() && ratio > 0.0, "{ratio}");
    // There are no bytes to copy.
    assert!(!run(0, &["--mode=F", "--roofline", "0x5"]).contains("roofline: "), "no bytes");
    let types = "--dt=f32:s8,s8:f32,f64:u8,u8:f64,f64:bf16,f16:f64,f8_e5m2:s8";
    let words = ["--mode=F", "--max-ms-per-prb=1", "--roofline", "--dir=FWD_I", types, "9x70"];
    assert_eq!(run(0, &words).matches("\n  roofline: ").count(), 7);
    // There may be no copy with this ratio of bytes.
    let words = ["--mode=F", "--max-ms-per-prb=1", "--roofline", "--dir=BWD_D"];
    run(0, &[&words[..], &["--dt=f32:bf16,f64:bf16,bf16:f64", "9x70"]].concat());
}

#[test]
fn caches_are_cold_where_that_is_asked_for() {
    let run = |cold: &str, words: &[&str]| {
        run(0, &[&["-v3", "--mode=P", "--fix-times-per-prb=20", cold], words].concat())
    };
    let sets = |text: &str| -> Option<(usize, usize)> {
        let line = text.lines().find_map(|line| line.strip_prefix("cold cache: "))?;
        let mut numbers = line.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    };
    let text = run("--cold-cache=all", &["--flags=C", "64x1024"]);
    let (count, bytes) = sets(&text).expect(&text);
    assert_eq!(bytes, 4 * (2 * 64 * 1024 + 2 * 64 + 1024));
    assert!(count > 2 && count * bytes > 4 << 20, "{text}");
    assert!(text.contains("--fix-times-per-prb=20 --cold-cache=all --lnorm"), "{text}");
    let (_, bytes) = sets(&run("--cold-cache=wei", &["--flags=CH", "64x1024"])).expect("weights");
    assert_eq!(bytes, 4 * 2 * 1024);
    let text = run("--cold-cache=wei", &["64x1024"]);
    assert!(sets(&text).is_none() && text.contains("  cold cache: none: no such tensor"), "{text}");
    assert_eq!(sets(&run("--cold-cache=none", &["64x1024"])), None);
}

#[test]
fn creating_is_not_running() {
    let text = run(0, &["--mode=I", "--dir=FWD_D,BWD_DW", "9x32"]);
    assert!(text.starts_with("0:INITIALIZED (") && text.contains("\n1:INITIALIZED ("), "{text}");
    assert!(text.contains("\ntests:2 passed:2 "), "{text}");
    let text = run(1, &["--mode=I", "--tag=any", "9x32"]);
    assert!(text.starts_with("0:INVALID_ARGUMENTS ("), "{text}");
}

#[test]
fn the_summary_shows_what_is_asked_for() {
    let failing = ["--check-ref-impl=true", "--impl=ref", "--repeats-per-prb=12", "5x33"];
    let text = run(1, &failing);
    assert!(text.contains("\n= failures (--summary=no-failures "), "{text}");
    assert!(text.contains("\n| FAILED (ref:any is a reference implementation) __REPRO: "));
    assert!(text.contains("\n| and 2 more\n"), "{text}");
    let text = run(1, &[&["--summary=no-failures"], &failing[..]].concat());
    assert!(!text.contains("= failures"), "{text}");
    let text = run(0, &["--summary=no-impl+impl-csv", "--impl=ref", "5x33"]);
    assert!(text.contains("\nimpl,problems\nref:any,1\n"), "{text}");
    assert!(!text.contains("= implementations"), "{text}");
}

#[test]
fn canonical_lines_name_everything_and_run() {
    let text = run(0, &["--canonical=true", "--flags=CM", "5x33"]);
    let line = text.lines().next().expect("a line");
    let (_, words) = line.split_once("__REPRO: ").expect("a command");
    for word in ["--mode=C", "--dir=FWD_D", "--eps=0.0625", "--inplace=false", "--impl="] {
        assert!(words.split(' ').any(|it| it == word), "{word} in {words}");
    }
    let again = run(0, &words.split(' ').collect::<Vec<_>>());
    let rest = |text: &str| text.split_once("__REPRO").map(|(_, rest)| rest.to_owned());
    assert_eq!(rest(again.lines().next().expect("a line")), rest(line));
}

#[test]
fn running_checks_nothing_and_says_so() {
    let text = run(0, &["--mode=R", "9x32"]);
    assert!(text.starts_with("0:EXECUTED (") && text.contains(" passed:1 "), "{text}");
}

#[test]
fn bits_are_compared_and_the_comparisons_named() {
    let text = run(
        0,
        &["--summary=no-impl", "--mode=B", "--dir=BWD_DW", "--flags=CH", "--dt=bf16", "300x801"],
    );
    let lines: Vec<&str> = text.lines().collect();
    for part in [
        "levels ",
        "portable",
        "ref:any",
        "rows alone",
        "rows rotated",
        "misaligned",
        "in place",
        "rows further apart",
        "floating-point modes",
        "repeats",
    ] {
        assert!(lines[0].contains(part), "{part} in {}", lines[0]);
    }
    assert!(lines[1].starts_with("0:PASSED ("), "{text}");
    assert!(lines[3].starts_with("total bits: "), "{text}");
}

#[test]
fn verbosity_adds_detail() {
    let text = run(0, &["-v6", "--flags=C", "5x33"]);
    assert!(text.starts_with("run: --lnorm --flags=C 5x33\nimplementation: "), "{text}");
    for part in [
        "data: src, input, f32 5x33, strides 33x1, from ",
        "data: shift, unused, f32 33, strides 1\n",
        "  dst: ",
        "telling of 165",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = run(0, &["--verbose=99", "2x3"]);
    assert!(text.contains("  dst(1,2): got ") && text.contains("allowed"), "{text}");
    assert!(!run(0, &["5x33"]).contains("implementation:"));
}

#[test]
fn repeats_run_the_same_problem_again() {
    let text = run(0, &["--repeats-per-prb=3", "5x33"]);
    assert!(text.contains("\n2:PASSED (") && text.contains("\ntests:3 passed:3 "), "{text}");
}

#[test]
fn data_comes_from_files() {
    let folder = folder("data");
    let prefix = |name: &str| format!("--buffer-prefix={}", folder.join(name).display());
    write_f32(&folder.join("good.1.bin"), (0..12).map(|i| i as f32 * 0.75 - 3.0));
    write_f32(&folder.join("good.51.bin"), [1.0, -2.0, 0.5, 8.0]);
    let text = run(0, &["-v6", &prefix("good"), "--dir=FWD_D,BWD_DW", "--flags=C", "3x4"]);
    assert!(text.contains("src: read from ") && text.contains("scale: read from "), "{text}");
    assert!(text.contains("diff_dst: no file "), "{text}");
    assert!(text.contains("data: src, input") && text.contains("from -3 to 5.25"), "{text}");
    assert!(text.contains("\ntests:2 passed:2 "), "{text}");
    // The file has the memory layout: transposed, so columns come first.
    let text = run(0, &["-v6", &prefix("good"), "--tag=xba", "3x4"]);
    assert!(text.contains("\ntests:1 passed:1 "), "{text}");

    write_f32(&folder.join("short.1.bin"), [0.0; 11]);
    let message = run(2, &[&prefix("short"), "3x4"]);
    let path = folder.join("short.1.bin");
    assert_eq!(message, format!("benchdnn: {} has 44 bytes, src needs 48\n", path.display()));
    let message = run(2, &[&prefix("none"), "3x4"]);
    assert!(message.starts_with("benchdnn: no input of 3x4 is in a file "), "{message}");
}

#[test]
fn data_of_files_can_prove_nothing() {
    let folder = folder("zeros");
    write_f32(&folder.join("zeros.1.bin"), [0.0; 12]);
    let prefix = format!("--buffer-prefix={}", folder.join("zeros").display());
    let text = run(0, &[&prefix, "3x4"]);
    assert!(text.starts_with("0:MISTRUSTED ("), "{text}");
    assert!(text.contains(" mistrusted:1 ") && text.contains(" failed:0 "), "{text}");
}

#[test]
fn a_reader_that_leaves_early_is_no_crash() {
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_benchdnn"))
        .args(["--mode=L", "--repeats-per-prb=100000", "5x33"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(err(&output), "");
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(libc::SIGPIPE), "{:?}", output.status);
    }
}
