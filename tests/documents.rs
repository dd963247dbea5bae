//! The examples in the documentation are compiled and run, and print what the pages show.
//!
//! A block of C or C++ is a whole program. If a comment before it names a file, as in `<!-- examples/c/softmax.c -->`
//! or `<!-- examples/c/guide.c: training -->`, the block is a copy of the file or of its part between `ANCHOR:
//! training` and `ANCHOR_END: training`, and the file is what runs; `NORM_BLESS=1` rewrites the copies. A block of text
//! after a program is its output. `cpp no-exceptions` is compiled without exceptions. Blocks of Rust are doctests of
//! `norm-rs`, which includes their pages, but blocks of `rs` are copies of files that need a feature.
//!
//! Commands that compile a program run here or, with an installed library, in the scripts of `tests/install/`; commands
//! of benchdnn run in `benchdnn/tests/documents.rs`. Cargo resolves the dependencies that the pages declare. Blocks of
//! CMake are copies of a file.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
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
#[derive(Clone, Debug, PartialEq)]
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

/// A program in the pages.
struct Program {
    /// A block with it.
    block: Block,
    /// The places that show its output, with the text.
    outputs: Vec<(String, String)>,
}

#[test]
fn programs_print_what_the_pages_show() {
    let mut programs = BTreeMap::new();
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
            let block = || Program { block: block.clone(), outputs: Vec::new() };
            let outputs = &mut programs.entry(path).or_insert_with(block).outputs;
            outputs.extend(shown.map(|shown| (place, shown.text.clone())));
        }
    }
    assert!(programs.len() >= 8, "only {} programs were found", programs.len());
    let programs: Vec<_> = programs.iter().collect();
    let check = |(path, program): &(&PathBuf, &Program)| {
        let printed = output(path, &program.block);
        program.outputs.iter().for_each(|(place, shown)| assert_eq!(printed, *shown, "{place}"));
    };
    // Compilers use one core.
    let parts = programs.chunks(programs.len().div_ceil(4));
    std::thread::scope(|scope| {
        parts.for_each(|part| _ = scope.spawn(move || part.iter().for_each(check)));
    });
}

#[test]
fn examples_in_rust_are_doctests() {
    let crate_root = read(&root().join("norm-rs/src/lib.rs"));
    for page in pages() {
        for block in blocks(&read(&root().join(&page))) {
            let language = block.language.as_str();
            assert!(!language.contains(','), "{page}: line {}: {language}", block.line + 1);
            let is_copy = ["rs", "cmake"].contains(&language);
            assert!(!is_copy || block.source.is_some(), "{page}: {language} of no file");
            if language == "rust" && block.source.is_none() {
                let included = format!("include_str!(\"../../{page}\")");
                assert!(crate_root.contains(&included), "norm-rs/src/lib.rs lacks {included}");
            }
        }
    }
}

/// The code in the text of a page, with the indices of its lines.
fn code_in_text(page: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let outside = page.lines().map(|line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        if fenced || fence { "\n".to_owned() } else { format!("{line}\n") }
    });
    let (mut line, mut found) = (0, Vec::new());
    for code in outside.collect::<String>().split('`') {
        found.push((line, code.replace('\n', " ")));
        line += code.matches('\n').count();
    }
    found
}

/// The source file that a command names.
fn source_of(command: &str) -> Option<&str> {
    command.split_whitespace().find(|word| word.ends_with(".c") || word.ends_with(".cpp"))
}

/// The lines of shell blocks and the code in the text that compile a program or add a dependency, with the indices of
/// their lines.
fn build_commands(page: &str) -> Vec<(usize, String)> {
    let mut found = code_in_text(page);
    for block in blocks(page).iter().filter(|block| block.language == "sh") {
        let text = block.text.replace("\\\n", "");
        found.extend(text.lines().map(|line| (block.line, line.to_owned())));
    }
    let begins = ["cc ", "c++ ", "cargo add ", "cargo rustc "];
    found.retain(|(_, text)| begins.iter().any(|begin| text.starts_with(begin)));
    found.retain(|(_, text)| text.starts_with("cargo ") || source_of(text).is_some());
    found
}

/// The program that a command at a line of a page compiles: the one before it, or else that of the introduction.
fn program_before(page: &str, line: usize, language: &str) -> String {
    let is_program = |block: &Block| {
        block.line < line && block.language == language && block.text.contains("main(")
    };
    match blocks(page).into_iter().rfind(is_program) {
        Some(block) => block.text,
        None => read(&root().join("examples/c/rms_norm").with_extension(language)),
    }
}

/// An empty folder with symbolic links.
fn folder_with(name: &str, links: &[(&Path, &str)]) -> PathBuf {
    let folder = source_folder().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    for (target, link) in links {
        let link = folder.join(link);
        std::fs::create_dir_all(link.parent().expect("in the folder")).expect("a folder");
        std::os::unix::fs::symlink(target, link).expect("a link");
    }
    folder
}

/// The lines of the scripts that use an installed library.
fn lines_of_installations() -> BTreeSet<String> {
    let folders = std::fs::read_dir(root().join("tests/install")).expect("a folder").flatten();
    let scripts = folders.map(|entry| entry.path().join("run")).filter(|script| script.is_file());
    scripts
        .flat_map(|script| read(&script).lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[test]
fn commands_that_compile_programs_work() {
    let here = std::env::current_exe().expect("a test has a path");
    let libraries = here.parent().expect("it lies in a folder");
    let include = root().join("include");
    let folder = folder_with("commands", &[(&include, "include"), (libraries, "target/release")]);
    let installed = lines_of_installations();
    let (mut built, mut listed) = (0, 0);
    for page in pages() {
        let text = read(&root().join(&page));
        for (line, command) in build_commands(&text) {
            let place = format!("{page}: line {}: {command}", line + 1);
            if command.contains("pkg-config") || command.starts_with("cargo") {
                assert!(installed.contains(&command), "{place}\nis in no tests/install/*/run");
                listed += 1;
                continue;
            }
            let source = folder.join(source_of(&command).expect("build_commands found it"));
            let language = source.extension().expect("checked").to_str().expect("text");
            let program = program_before(&text, line, language);
            std::fs::write(&source, program).expect("the folder can be written");
            let runs = command.contains("&& ./");
            let output = command.split_whitespace().skip_while(|word| *word != "-o").nth(1);
            let output = output.unwrap_or("a.out");
            let shell = if runs { command.clone() } else { format!("{command} && ./{output}") };
            let mut shell_command = Command::new("sh");
            shell_command.args(["-c", &shell]).current_dir(&folder).env("LIBNORM", &folder);
            let run = shell_command.env_remove("LD_LIBRARY_PATH").output().expect("a shell");
            let error = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success() && !run.stdout.is_empty(), "{place}\n{error}");
            std::fs::remove_file(folder.join(output)).expect("the command wrote it");
            built += 1;
        }
    }
    assert!(built >= 6 && listed >= 6, "only {built} and {listed} commands were found");
}

/// A project beside the library's folder, as the pages describe it.
#[test]
fn cargo_finds_the_dependencies_of_the_pages() {
    let folder = folder_with("dependencies", &[(root(), "libnorm")]);
    let project = folder.join("project");
    std::fs::create_dir_all(project.join("src")).expect("a folder");
    std::fs::write(project.join("src/main.rs"), "fn main() {}\n").expect("a file");
    std::fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).expect("a file");
    let mut count = 0;
    for page in pages() {
        let text = read(&root().join(&page));
        let lines = code_in_text(&text).into_iter().map(|(_, code)| code);
        let lines = lines.filter(|code| code.starts_with("norm-rs = "));
        let tables = lines.map(|line| format!("[dependencies]\n{line}\n"));
        let blocks = blocks(&text).into_iter().filter(|block| block.language == "toml");
        for table in tables.chain(blocks.map(|block| block.text)) {
            let package = "[package]\nname = \"project\"\nedition = \"2024\"\n[workspace]\n";
            std::fs::write(project.join("Cargo.toml"), format!("{package}{table}"))
                .expect("a file");
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let tree = Command::new(cargo)
                .args(["tree", "--offline", "--depth=1", "--prefix=none"])
                .current_dir(&project)
                .output()
                .expect("cargo can be started");
            let error = String::from_utf8_lossy(&tree.stderr);
            let printed = String::from_utf8_lossy(&tree.stdout);
            assert!(printed.contains("\nnorm-rs v"), "{page}: {table}{error}");
            count += 1;
        }
    }
    assert!(count >= 4, "only {count} dependencies were found");
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

/// The sections of a primitive's page, in this order; others may be between them.
const SECTIONS: [&str; 10] = [
    "Formulas",
    "Constructors",
    "Execution arguments",
    "Data types",
    "Layouts",
    "Attributes",
    "Numerics",
    "Errors",
    "Performance advice",
    "Examples",
];

/// The first section that a page lacks, or has before the one that it should follow.
fn missing_section<'a>(page: &str, sections: &[&'a str]) -> Option<&'a str> {
    let (mut fenced, mut headings) = (false, Vec::new());
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        headings.extend(line.strip_prefix("## ").filter(|_| !fenced));
    }
    let mut rest = headings.into_iter();
    sections.iter().find(|section| !rest.any(|heading| heading == **section)).copied()
}

#[test]
fn pages_of_primitives_have_every_section() {
    let (mut found, mut wrong) = (0, Vec::new());
    for page in pages().iter().filter(|page| page.starts_with("docs/primitives/")) {
        // Dropout is an attribute.
        let own: &[&str] = match page.as_str() {
            "docs/primitives/README.md" => continue,
            "docs/primitives/dropout.md" => &["Constructors", "Attributes"],
            _ => &[],
        };
        let sections = SECTIONS.iter().copied().filter(|section| !own.contains(section));
        let missing = missing_section(&read(&root().join(page)), &sections.collect::<Vec<_>>());
        wrong.extend(missing.map(|section| format!("{page}: no \"## {section}\" in its place")));
        found += 1;
    }
    assert!(found >= 10, "only {found} pages were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn missing_sections_are_seen() {
    let page = "# A\n## One\n```sh\n## Two\n```\n## Other\n## Three\n";
    assert_eq!(missing_section(page, &["One", "Three"]), None);
    assert_eq!(missing_section(page, &["One", "Two", "Three"]), Some("Two"));
    assert_eq!(missing_section(page, &["Three", "One"]), Some("One"));
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
    let page = "a `cc` b\n```sh\ncc \\\n    x.c\n./x.c\n```\n`c++\ny.cpp`\n`cargo add z`\n";
    let mut found = build_commands(page);
    found.sort();
    let expected = [(1, "cc     x.c"), (6, "c++ y.cpp"), (8, "cargo add z")];
    assert_eq!(found, expected.map(|(line, command)| (line, command.to_owned())));
}
