//! The documentation of the program. The reference of its options is generated from the tables that the parser reads,
//! and the commands on the pages run.

use benchdnn::language::options::Info;
use benchdnn::{drivers, machine};
use std::path::{Path, PathBuf};
use std::process::Command;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|").replace('<', "&lt;")
}

fn row(info: &Info) -> String {
    let short = info.short.map_or_else(String::new, |letter| format!("`-{letter}`, "));
    let value = match info.value {
        "" => String::new(),
        "[BOOL]" => "[=BOOL]".to_owned(),
        value => format!("={value}"),
    };
    let default = match info.default {
        "" => String::new(),
        default => format!("`{default}`"),
    };
    let option = format!("{short}`--{}{}`", info.name, value.replace('|', "\\|"));
    format!("| {option} | {} | {} |\n", default.replace('|', "\\|"), cell(info.help))
}

/// The page of all options: those of every driver first, then each driver's own.
fn reference() -> String {
    let drivers = drivers::all();
    let each: Vec<Vec<Info>> = (0..drivers.len()).map(|i| machine::options(&drivers, i)).collect();
    let mut page = "# benchdnn: options\n\n<!-- Written by `cargo xtask reference` from the tables that the parser reads. -->\n\n\
                    [benchdnn.md](benchdnn.md) explains how options, lists and problems combine.\n"
        .to_owned();
    let mut section = |title: &str, infos: &[&Info]| {
        page += &format!("\n## {title}\n\n| option | default | |\n|---|---|---|\n");
        infos.iter().for_each(|info| page += &row(info));
    };
    let mut topics: Vec<&str> = Vec::new();
    for info in each.iter().flatten() {
        if !topics.contains(&info.topic) {
            topics.push(info.topic);
        }
    }
    // Options of every driver come last in each table, but first on the page.
    let of_all = |topic: &&str| each.iter().all(|all| all.iter().any(|info| info.topic == *topic));
    let (common, own): (Vec<&str>, Vec<&str>) = topics.into_iter().partition(of_all);
    for topic in common.into_iter().chain(own) {
        let of_topic = each.iter().map(|all| all.iter().filter(|info| info.topic == topic));
        let infos: Vec<&Info> = of_topic
            .map(Iterator::collect::<Vec<_>>)
            .max_by_key(Vec::len)
            .expect("there is a driver");
        section(topic, &infos);
    }
    page
}

#[test]
fn the_reference_is_that_of_the_parser() {
    let (path, reference) = (docs().join("benchdnn-options.md"), reference());
    if std::env::var_os("NORM_BLESS").is_some() {
        std::fs::write(&path, &reference).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).expect("the page exists");
    assert!(written == reference, "cargo xtask reference writes docs/benchdnn-options.md again");
    assert!(reference.lines().filter(|line| line.starts_with("| `")).count() > 60);
}

/// The lines of shell blocks that call the program.
fn commands(page: &str) -> Vec<&str> {
    let mut fenced = false;
    let lines = page.lines().filter(|line| {
        fenced ^= line.starts_with("```");
        fenced && line.starts_with("benchdnn ")
    });
    lines.collect()
}

#[test]
fn the_commands_of_the_pages_run() {
    let folder = docs().join("primitives");
    let pages = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let mut count = 0;
    for page in pages.chain([docs().join("getting-started.md")]) {
        let text = std::fs::read_to_string(&page).expect("a page is text");
        for command in commands(&text) {
            let words = command.split_whitespace().skip(1);
            let output = Command::new(env!("CARGO_BIN_EXE_benchdnn")).args(words).output();
            let output = output.expect("the program can be started");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{}: {command}\n{printed}", page.display());
            assert!(!printed.contains(" passed:0 "), "{}: {command}\n{printed}", page.display());
            count += 1;
        }
    }
    assert!(count >= 4, "only {count} commands were found");
}
