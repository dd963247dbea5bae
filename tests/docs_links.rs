//! Relative links in the project's Markdown lead to existing files, and to existing headings if they name one. Paths in
//! backquotes that begin with a folder of the project exist.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files that git knows; without git, all outside build folders.
fn pages() -> Vec<PathBuf> {
    let listed = Command::new("git").args(["ls-files", "*.md"]).current_dir(root()).output();
    let listed = listed.ok().filter(|output| output.status.success());
    let mut found: Vec<PathBuf> = listed.map_or_else(Vec::new, |output| {
        String::from_utf8_lossy(&output.stdout).lines().map(|line| root().join(line)).collect()
    });
    found.retain(|path| path.exists());
    if found.is_empty() {
        walk(root(), &mut found);
    }
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() && !name.starts_with("target") && !name.starts_with(".git") {
            walk(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// A page without its fenced blocks.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let outside = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    outside.collect::<Vec<_>>().join("\n")
}

/// The targets of inline links and pictures.
fn links(text: &str) -> Vec<&str> {
    let after = text.match_indices("](").map(|(at, mark)| &text[at + mark.len()..]);
    after.filter_map(|rest| rest.split_once(')').map(|(target, _)| target)).collect()
}

/// GitHub's anchor for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_heading(text: &str, wanted: &str) -> bool {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|found| found == wanted)
}

#[test]
fn links_lead_somewhere() {
    let (mut checked, mut broken) = (0, Vec::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page is text");
        for target in links(&prose(&text)) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() {
                page.clone()
            } else {
                page.parent().expect("a page lies in a folder").join(file)
            };
            let found = path.exists()
                && (heading.is_empty()
                    || std::fs::read_to_string(&path)
                        .is_ok_and(|text| has_heading(&prose(&text), heading)));
            if !found {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(checked > 20, "only {checked} links were found");
    assert!(broken.is_empty(), "broken links: {broken:#?}");
}

#[test]
fn named_files_exist() {
    const FOLDERS: [&str; 16] = [
        "src/",
        "include/",
        "tests/",
        "scripts/",
        "docs/",
        "rfcs/",
        "examples/",
        "benches/",
        "benchdnn/",
        "norm-rs/",
        "norm-sys/",
        "xtask/",
        "fuzz/",
        "python/",
        "packaging/",
        ".ci/",
    ];
    let (mut checked, mut missing) = (0, Vec::new());
    for page in pages() {
        let text = prose(&std::fs::read_to_string(&page).expect("a page is text"));
        for word in text.split('`').skip(1).step_by(2) {
            let path = word.split([' ', '\n', ':']).next().unwrap_or_default();
            let is_pattern = path.contains(['<', '*', '{', '…']);
            if is_pattern || !FOLDERS.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            checked += 1;
            if !root().join(path).exists() {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(checked > 20, "only {checked} paths were found");
    assert!(missing.is_empty(), "named but not there: {missing:#?}");
}

#[test]
fn mistakes_are_seen() {
    assert_eq!(links("[a](b.md#c) ![d](e.svg) (f)"), ["b.md#c", "e.svg"]);
    assert_eq!(prose("a\n```sh\n[x](y)\n```\nb"), "a\nb");
    assert_eq!(anchor(" Modes P and F, `benchdnn`"), "modes-p-and-f-benchdnn");
    assert!(has_heading("# One two\n", "one-two") && !has_heading("One two\n", "one-two"));
}
