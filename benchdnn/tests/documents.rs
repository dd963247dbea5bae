//! The documentation of the program. The reference of its options is generated from the tables that the parser reads,
//! and the commands on the pages and in the README run.

use benchdnn::language::options::Info;
use benchdnn::{drivers, machine};
use std::collections::BTreeMap;
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

/// The README and the pages under `docs/`.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![docs().join("../README.md")];
    let mut folders = vec![docs()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The arguments of a line that calls the program, without a prompt, environment variables and a comment; or the
/// options that it consists of. A line with an ellipsis shows a form, and no command.
fn arguments(line: &str) -> Option<Vec<String>> {
    let line = line.split(" #").next().unwrap_or_default();
    let is_variable = |word: &&str| word.contains('=') && !word.starts_with('-');
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word == "$").collect();
    let words: Vec<&str> = words.into_iter().skip_while(is_variable).collect();
    let rest = match words.as_slice() {
        ["benchdnn", rest @ ..] => rest,
        ["cargo", "run", "--release", "-p", "benchdnn", "--", rest @ ..] => rest,
        [option, ..] if option.starts_with("--") => words.as_slice(),
        _ => return None,
    };
    let is_form = rest.iter().any(|word| word.contains("..."));
    (!is_form).then(|| rest.iter().map(|word| (*word).to_owned()).collect())
}

/// Every command on a page: lines of shell blocks, lines indented by four spaces, and code in the text that has options
/// with values.
fn commands(page: &str) -> Vec<Vec<String>> {
    let (mut fence, mut found, mut prose) = (None, Vec::new(), String::new());
    let page = page.replace("\\\n", "");
    for line in page.lines() {
        let text = line.trim_start();
        if let Some(language) = text.strip_prefix("```") {
            fence = if fence.is_none() { Some(language) } else { None };
        } else if fence.is_none() && !line.starts_with("    ") {
            prose += line;
            prose += " ";
        } else if fence.is_none_or(|language| language == "sh") {
            found.extend(arguments(text));
        }
    }
    let code = prose.split('`').filter(|code| !code.starts_with(' ') && code.contains('='));
    found.extend(code.filter(|code| code.contains("benchdnn ")).filter_map(arguments));
    found
}

/// The library of this build, which is beside the test's own executable.
fn library() -> String {
    let name = format!("{}norm{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = std::env::current_exe().expect("the test knows its executable").with_file_name(name);
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// The arguments with which a test runs a command: the other library is this one, and times are taken briefly. Batches
/// and options without a problem, which gets one here, are only listed.
fn for_a_test(mut words: Vec<String>) -> Vec<String> {
    let is_batch = |word: &String| word.starts_with("--batch=");
    let has_problem = words.iter().any(|word| !word.starts_with('-'));
    let has_batch = words.iter().any(is_batch);
    if !has_problem && !has_batch && !words.contains(&"--help".to_owned()) {
        words.push("32x4096".to_owned());
    }
    for word in &mut words {
        if let Some(name) = word.strip_prefix("--compare=") {
            let pairs = name.find(',').map_or("", |at| &name[at..]);
            *word = format!("--compare={}{pairs}", library());
        } else if word == "--mode=P" {
            "--mode=F".clone_into(word);
        }
    }
    if !has_problem {
        words.retain(|word| !word.starts_with("--mode="));
        words.insert(0, "--mode=L".to_owned());
    }
    words
}

#[test]
fn the_commands_of_the_pages_run() {
    let mut places: BTreeMap<Vec<String>, PathBuf> = BTreeMap::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page is text");
        let found = commands(&text).into_iter().map(for_a_test);
        places.extend(found.map(|words| (words, page.clone())));
    }
    assert!(places.len() >= 40, "only {} commands were found", places.len());
    for (words, page) in places {
        let output = Command::new(env!("CARGO_BIN_EXE_benchdnn")).args(&words).output();
        let output = output.expect("the program can be started");
        let printed = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        let place = format!("{}: {}\n{printed}{error}", page.display(), words.join(" "));
        assert!(output.status.success() && error.is_empty(), "{place}");
        let checks = !words.iter().any(|word| word.starts_with("--mode="));
        assert!(!checks || !printed.contains(" passed:0 "), "{place}");
    }
}

#[test]
fn commands_are_found() {
    let page = "a\n```sh\n$ benchdnn 2x3   # one\nbenchdnn --dt=f32 \\\n    2x4\nbenchdnn ... 2x5\nls\n```\n\n    \
                --tag=ab\n\n`A=B benchdnn\n--dir=FWD_I`, `benchdnn --help`\n```text\nbenchdnn 2x6\n```\n";
    let found: Vec<String> = commands(page).iter().map(|words| words.join(" ")).collect();
    assert_eq!(found, ["2x3", "--dt=f32 2x4", "--tag=ab", "--dir=FWD_I"]);
    let ready = |line: &str| for_a_test(arguments(line).expect("a command")).join(" ");
    assert_eq!(ready("benchdnn --mode=P 2x3"), "--mode=F 2x3");
    assert_eq!(ready("benchdnn --mode=B --batch=a"), "--mode=L --batch=a");
    assert_eq!(ready("--dt=f32"), "--mode=L --dt=f32 32x4096");
    assert_eq!(ready("benchdnn --compare=LIB,A=B 2x3"), format!("--compare={},A=B 2x3", library()));
}
