//! Finds and reads batch files.
//!
//! A name is looked up beside the file that includes it (on the command line, and from a pipe, in
//! the current folder), then among the files of `inputs/<driver>/`. Those are compiled in, so
//! `--batch=test_lnorm_ci` means the same everywhere and needs no installed files. They are also
//! found by a path that ends in `inputs/<driver>/<file>`, as oneDNN's users write it.

use super::token::{self, Place, Token};
use super::value::nearest;
use std::path::{Path, PathBuf};

/// Name (`lnorm/shapes_ci`) and text of every compiled-in batch file.
static EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The folder of a file that includes others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folder {
    /// On disk; empty for the current folder.
    Disk(PathBuf),
    /// Among the compiled-in files.
    Embedded,
}

/// A batch file that was found and split into words.
#[derive(Debug)]
pub struct Batch {
    /// The name in messages.
    pub name: String,
    /// Where included files are looked up.
    pub folder: Folder,
    /// Its words.
    pub tokens: Vec<Token>,
}

/// Why a batch file cannot be used.
#[derive(Debug)]
pub enum Unusable {
    /// It is missing or unreadable: a sentence.
    Missing(String),
    /// A quote in it is never closed.
    OpenQuote(Place),
}

/// Finds `file`, included from `folder` while `driver` is active.
pub fn open(file: &str, folder: &Folder, driver: &str) -> Result<Batch, Unusable> {
    let mut tried = Vec::new();
    if let Folder::Disk(folder) = folder {
        let path = folder.join(file);
        // Pipes are also accepted.
        if path.exists() && !path.is_dir() {
            return read(&path);
        }
        let found = if path.is_dir() { " (a folder)" } else { "" };
        tried.push(format!("{}{found}", path.display()));
    }
    let name = match file.rfind("inputs/") {
        Some(at) => file[at + "inputs/".len()..].to_owned(),
        None => format!("{driver}/{file}"),
    };
    if let Some((_, text)) = EMBEDDED.iter().find(|(embedded, _)| *embedded == name) {
        return batch(format!("inputs/{name}"), Folder::Embedded, text);
    }
    let name = format!("inputs/{name}");
    if !tried.contains(&name) && !Path::new(file).is_absolute() {
        tried.push(name);
    }
    let end = match nearest(file.rsplit('/').next().unwrap_or(file), embedded(driver)) {
        Some(nearest) => format!("; the nearest of --{driver} is {nearest}"),
        None => String::new(),
    };
    Err(Unusable::Missing(format!("no such batch file: {}{end}", tried.join(", "))))
}

/// Names of the compiled-in batch files of a driver.
pub fn embedded(driver: &str) -> impl Iterator<Item = &'static str> {
    let prefix = format!("{driver}/");
    EMBEDDED.iter().filter_map(move |(name, _)| name.strip_prefix(prefix.as_str()))
}

fn read(path: &Path) -> Result<Batch, Unusable> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Unusable::Missing(format!("cannot read {name}: {error}")))?;
    // A pipe has no folder, so names in it are relative to the current one.
    let folder = match path.is_file() {
        true => path.parent().map(Path::to_path_buf).unwrap_or_default(),
        false => PathBuf::new(),
    };
    batch(name, Folder::Disk(folder), &text)
}

fn batch(name: String, folder: Folder, text: &str) -> Result<Batch, Unusable> {
    let tokens = token::split(&name, text).map_err(Unusable::OpenQuote)?;
    Ok(Batch { name, folder, tokens })
}
