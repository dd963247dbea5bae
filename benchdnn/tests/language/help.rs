//! The help, and the options and examples in it and in the manual.

use super::{lines, request};
use benchdnn::machine::Request;

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
    let manual = include_str!("../../../docs/benchdnn.md");
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
