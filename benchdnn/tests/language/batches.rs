//! Batch files: how they nest, where they are found, and what the ones of the drivers contain.

use super::{batch_option, error, folder, lines};
use benchdnn::language::batch;

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
