//! The examples in the documentation are compiled and run, and print what the pages show.
//!
//! A block of C or C++ is a whole program. If a comment before it names a file, as in `<!-- examples/c/softmax.c -->`
//! or `<!-- examples/c/guide.c: training -->`, the block is a copy of the file or of its part between `ANCHOR:
//! training` and `ANCHOR_END: training`, and the file is what runs; `NORM_BLESS=1` rewrites the copies. A block of text
//! after a program is its output. `cpp no-exceptions` is compiled without exceptions. Blocks of Rust are doctests of
//! `norm-rs`, which includes their pages, but blocks of `rs` are copies of files that need a feature. The lines of shell
//! blocks that begin with `benchdnn` are run by `benchdnn/tests/documents.rs`.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The README and the pages of the book, by their paths from the root.
fn pages() -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let path = path.strip_prefix(root()).expect("a page of the project");
                found.push(path.to_str().expect("names are text").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// A fenced block.
#[derive(Debug, PartialEq)]
struct Block {
    language: String,
    /// Whether exceptions are disabled.
    no_exceptions: bool,
    text: String,
    /// The index of the line that opens it.
    line: usize,
    /// The file and the anchor in the comment before it.
    source: Option<(String, Option<String>)>,
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut found, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    let mut before = "";
    for (line, text) in page.lines().enumerate() {
        let fence = text.strip_prefix("```");
        open = match (open, fence) {
            (None, None) => None,
            (None, Some(language)) => {
                let (language, rest) = language.split_once(' ').unwrap_or((language, ""));
                let (language, no_exceptions) = (language.to_owned(), rest == "no-exceptions");
                let source = source(before);
                Some(Block { language, no_exceptions, text: String::new(), line, source })
            }
            (Some(block), Some(_)) => {
                found.push(block);
                None
            }
            (Some(mut block), None) => {
                block.text += text;
                block.text += "\n";
                Some(block)
            }
        };
        before = text;
    }
    assert_eq!(open, None, "a block does not end");
    found
}

/// The file and the anchor in a comment.
fn source(line: &str) -> Option<(String, Option<String>)> {
    let inside = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    Some(match inside.split_once(": ") {
        Some((file, anchor)) => (file.to_owned(), Some(anchor.to_owned())),
        None => (inside.to_owned(), None),
    })
}

/// A file without its anchor lines, or the part between those of one anchor, unindented.
fn part(text: &str, anchor: Option<&str>) -> String {
    let is_anchor = |line: &str| line.contains("ANCHOR: ") || line.contains("ANCHOR_END: ");
    let ends = |line: &str, mark: &str| {
        anchor.is_some_and(|anchor| {
            line.trim_end_matches([' ', '*', '/']).ends_with(&format!("{mark}{anchor}"))
        })
    };
    let (mut inside, mut seen, mut lines) = (anchor.is_none(), anchor.is_none(), Vec::new());
    for line in text.lines() {
        if ends(line, "ANCHOR: ") {
            (inside, seen) = (true, true);
        } else if ends(line, "ANCHOR_END: ") {
            inside = false;
        } else if inside && !is_anchor(line) {
            lines.push(line);
        }
    }
    assert!(seen, "there is no anchor {anchor:?}");
    let indent = |line: &&&str| line.len() - line.trim_start().len();
    let least = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(&line)).min();
    let moved =
        lines.iter().map(|line| line.get(least.unwrap_or(0)..).unwrap_or("").to_owned() + "\n");
    moved.collect()
}

/// Compiles a program without warnings, runs it and returns its output.
fn output(source: &Path, Block { language, no_exceptions, .. }: &Block) -> String {
    let here = std::env::current_exe().expect("a test has a path");
    let libraries = here.parent().expect("it lies in a folder");
    let program = source_folder().join(format!(
        "{}-{language}",
        source.file_stem().expect("a source has a name").to_string_lossy()
    ));
    let (variable, compiler, standard) = match language.as_str() {
        "c" => ("CC", "cc", "-std=c99"),
        _ => ("CXX", "c++", "-std=c++17"),
    };
    let built = Command::new(std::env::var(variable).unwrap_or_else(|_| compiler.into()))
        .args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-pthread", "-I"])
        .arg(root().join("include"))
        .arg(source)
        .arg("-L")
        .arg(libraries)
        .arg("-lnorm")
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .args(no_exceptions.then_some("-fno-exceptions"))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("there is a compiler");
    assert!(built.success(), "{} does not compile", source.display());
    let run = Command::new(&program).output().expect("the program runs");
    let error = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}: {}\n{error}", source.display(), run.status);
    String::from_utf8(run.stdout).expect("programs print text")
}

fn source_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documents");
    std::fs::create_dir_all(&folder).expect("the folder can be written");
    folder
}

#[test]
fn copies_are_those_of_the_files() {
    let (mut copies, mut wrong) = (0, Vec::new());
    for page in pages() {
        let mut text = read(&root().join(&page));
        // From the end, so that earlier lines keep their numbers.
        for block in blocks(&text).into_iter().rev() {
            let Some((file, anchor)) = &block.source else { continue };
            copies += 1;
            let wanted = part(&read(&root().join(file)), anchor.as_deref());
            if block.text == wanted {
                continue;
            }
            if std::env::var_os("NORM_BLESS").is_none() {
                wrong.push(format!("{page}: line {}: not as {file}", block.line + 1));
                continue;
            }
            let lines: Vec<&str> = text.lines().collect();
            let (head, tail) = lines.split_at(block.line + 1);
            let tail = &tail[block.text.lines().count()..];
            text = format!("{}\n{wanted}{}\n", head.join("\n"), tail.join("\n"));
            std::fs::write(root().join(&page), &text).expect("the page can be written");
        }
    }
    assert!(copies > 5, "only {copies} copies were found");
    assert!(wrong.is_empty(), "{wrong:#?}\nNORM_BLESS=1 copies them again");
}

#[test]
fn programs_print_what_the_pages_show() {
    let (mut programs, mut run) = (0, BTreeSet::new());
    for page in pages() {
        let blocks = blocks(&read(&root().join(&page)));
        for (i, block) in blocks.iter().enumerate() {
            let language = block.language.as_str();
            if !["c", "cpp"].contains(&language) {
                continue;
            }
            let place = format!("{page}: line {}", block.line + 1);
            let shown = blocks[i + 1..].iter().find(|next| next.language != "sh");
            let shown =
                shown.filter(|next| next.language == "text" && block.text.contains("main("));
            let path = match &block.source {
                Some((file, _)) => root().join(file),
                None => {
                    assert!(block.text.contains("main("), "{place}: not a program, and of no file");
                    let name = place.replace(['/', ' ', ':', '.'], "_");
                    let path = source_folder().join(format!("{name}.{language}"));
                    std::fs::write(&path, &block.text).expect("the folder can be written");
                    path
                }
            };
            if shown.is_none() && !run.insert(path.clone()) {
                continue; // Another part of the same file.
            }
            let printed = output(&path, block);
            programs += 1;
            if let Some(shown) = shown {
                assert_eq!(printed, shown.text, "{place}");
            }
        }
    }
    assert!(programs >= 8, "only {programs} programs were found");
}

#[test]
fn examples_in_rust_are_doctests() {
    let crate_root = read(&root().join("norm-rs/src/lib.rs"));
    for page in pages() {
        for block in blocks(&read(&root().join(&page))) {
            let language = block.language.as_str();
            assert!(!language.contains(','), "{page}: line {}: {language}", block.line + 1);
            assert!(language != "rs" || block.source.is_some(), "{page}: of no file");
            if language == "rust" && block.source.is_none() {
                let included = format!("include_str!(\"../../{page}\")");
                assert!(crate_root.contains(&included), "norm-rs/src/lib.rs lacks {included}");
            }
        }
    }
}

/// The summary lists every page once, and no link leads out of the book.
#[test]
fn the_book_is_whole() {
    let summary = read(&root().join("docs/SUMMARY.md"));
    let linked = |text: &str| -> Vec<String> {
        let after = text.match_indices("](").map(|(at, mark)| &text[at + mark.len()..]);
        let targets = after.filter_map(|rest| rest.split_once(')'));
        targets.map(|(target, _)| target.split('#').next().unwrap_or_default().to_owned()).collect()
    };
    let mut listed: Vec<String> =
        linked(&summary).iter().map(|page| format!("docs/{page}")).collect();
    listed.sort();
    let in_book: Vec<String> = pages()
        .into_iter()
        .filter(|page| page.starts_with("docs/") && page != "docs/SUMMARY.md")
        .collect();
    assert_eq!(listed, in_book, "the summary, and the pages");
    for page in in_book {
        let folder = Path::new(&page).parent().expect("a page lies in a folder").to_path_buf();
        for target in linked(&read(&root().join(&page))) {
            let mut depth = folder.components().count();
            for name in target.split('/').filter(|_| !target.contains("://")) {
                depth = if name == ".." { depth - 1 } else { depth + 1 };
                assert!(
                    depth > 0 && (name != ".." || depth >= 1),
                    "{page}: {target} leaves the book"
                );
            }
        }
    }
}

#[test]
fn blocks_and_parts_are_read() {
    let page = "a\n<!-- x.c: one -->\n```c\nint x;\n```\n```sh\nls\n```\n";
    let found = blocks(page);
    assert_eq!((found.len(), found[0].text.as_str()), (2, "int x;\n"));
    assert_eq!(found[0].source, Some(("x.c".into(), Some("one".into()))));
    assert_eq!((found[1].language.as_str(), &found[1].source), ("sh", &None));
    let file = "a\n  // ANCHOR: one\n  b\n\n    c\n  // ANCHOR_END: one\n/* ANCHOR: two */\nd\n/* ANCHOR_END: two */\n";
    assert_eq!(part(file, Some("one")), "b\n\n  c\n");
    assert_eq!(part(file, Some("two")), "d\n");
    assert_eq!(part(file, None), "a\n  b\n\n    c\nd\n");
}
