//! mdbook, if it is installed, builds the book without a warning, and the links between its pages lead somewhere, which
//! mdbook does not check. `tests/docs_links.rs` checks those of the sources.

mod skipped;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file's text, empty if it is not text; `None` if there is no such file.
fn text_of(file: &Path) -> Option<String> {
    let bytes = std::fs::read(file).ok()?;
    Some(String::from_utf8(bytes).unwrap_or_default())
}

/// The relative links of a page that lead nowhere.
fn broken(page: &Path, html: &str) -> Vec<String> {
    let after = html.match_indices("href=\"").map(|(at, mark)| &html[at + mark.len()..]);
    let targets = after.filter_map(|rest| rest.split_once('"')).map(|(target, _)| target);
    let leads_nowhere = |target: &&str| {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let other = page.parent().expect("a page lies in a folder").join(file);
        let text = if file.is_empty() { Some(html.to_owned()) } else { text_of(&other) };
        text.is_none_or(|text| !heading.is_empty() && !text.contains(&format!("id=\"{heading}\"")))
    };
    targets
        .filter(|target| !target.contains(':'))
        .filter(leads_nowhere)
        .map(str::to_owned)
        .collect()
}

/// The pages below a folder, without the one that has all of them and the one for a missing page.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|e| e == "html")
            && !path.ends_with("print.html")
            && !path.ends_with("404.html")
        {
            found.push(path);
        }
    }
}

#[test]
fn mdbook_builds_the_book() {
    let book = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
    let mut build = Command::new("mdbook");
    build.args(["build", "docs", "--dest-dir"]).arg(&book);
    let Ok(told) = build.current_dir(env!("CARGO_MANIFEST_DIR")).output() else {
        skipped::skipped("there is no mdbook here");
        return;
    };
    let said = String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned();
    let is_clean = told.status.success() && !said.contains("WARN") && !said.contains("ERROR");
    assert!(is_clean, "{}: {said}", told.status);
    let mut found = Vec::new();
    pages(&book, &mut found);
    assert!(found.len() > 30, "only {} pages were built", found.len());
    for page in found {
        let broken = broken(&page, &text_of(&page).expect("the page can be read"));
        assert!(broken.is_empty(), "{}: broken links: {broken:?}", page.display());
    }
}
