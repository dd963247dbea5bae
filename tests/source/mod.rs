//! Source files for tests: the list of files, and their code without comments and literals.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files with one of these extensions that git does not ignore; without git, all outside build folders. Relative to
/// the root, sorted.
pub(crate) fn files(extensions: &[&str]) -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let listed = listed.ok().filter(|output| output.status.success());
    let mut found: Vec<PathBuf> = listed.map_or_else(Vec::new, |output| {
        String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect()
    });
    if found.is_empty() {
        walk(root(), &mut found);
    }
    let has = |path: &Path| {
        path.extension().is_some_and(|e| extensions.contains(&e.to_string_lossy().as_ref()))
    };
    found.retain(|path| has(path) && root().join(path).exists());
    found.sort();
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if !path.is_dir() {
            found.push(path.strip_prefix(root()).expect("it is below the root").to_path_buf());
        } else if !name.starts_with("target") && !name.starts_with(".git") {
            walk(&path, found);
        }
    }
}

/// The text of a file below the root.
pub(crate) fn text(file: &Path) -> String {
    std::fs::read_to_string(root().join(file)).expect("sources are text")
}

/// Rust code with comments, strings and characters replaced by spaces. Lines and columns stay the same.
pub(crate) fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let in_word = at > 0 && is_word(bytes[at - 1]);
        let end = at + literal(&bytes[at..], in_word);
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("whole characters were replaced")
}

/// C code with preprocessor directives replaced by empty lines.
#[allow(dead_code, reason = "not every program that reads sources needs it")]
pub(crate) fn without_directives(code: &str) -> String {
    let mut continues = false;
    let line = |line: &str| {
        let directive = continues || line.trim_start().starts_with('#');
        continues = directive && line.ends_with('\\');
        if directive { "\n".to_owned() } else { format!("{line}\n") }
    };
    code.lines().map(line).collect()
}

/// Code without its test modules.
#[allow(dead_code, reason = "not every program that reads sources needs it")]
pub(crate) fn without_tests(code: &str) -> String {
    let mut rest = code;
    let mut kept = String::new();
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        let item = &rest[at..];
        let end = item.find(['{', ';']).unwrap_or(item.len());
        let mut depth = 0;
        let length = item[end..].find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        rest = &item[length.map_or(item.len(), |length| end + length + 1)..];
    }
    kept + rest
}

/// Whether the byte may be part of a name.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of the comment, string or character at the start of the text; 0 if there is none.
fn literal(text: &[u8], in_word: bool) -> usize {
    let until = |from: usize, end: &[u8]| {
        let rest = text.get(from..).unwrap_or_default();
        rest.windows(end.len()).position(|w| w == end).map_or(text.len(), |i| from + i + end.len())
    };
    match text {
        [b'/', b'/', ..] => until(0, b"\n") - usize::from(text.contains(&b'\n')),
        [b'/', b'*', ..] => until(2, b"*/"),
        [b'"', ..] => quoted(text),
        [b'r', b'"' | b'#', ..] if !in_word => {
            let marks = text[1..].iter().take_while(|byte| **byte == b'#').count();
            if text.get(1 + marks) != Some(&b'"') {
                return 0; // r#name
            }
            let end: Vec<u8> = [b"\"".as_slice(), &text[1..=marks]].concat();
            until(2 + marks, &end)
        }
        [b'\'', b'\\', ..] => until(3, b"'"),
        // A character, not a lifetime: at most four bytes.
        [b'\'', rest @ ..] => match rest.iter().take(5).position(|byte| *byte == b'\'') {
            Some(length) if length == 1 || (length > 1 && !rest[0].is_ascii()) => length + 2,
            _ => 0,
        },
        _ => 0,
    }
}

/// The length of a string in quotes.
fn quoted(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}
