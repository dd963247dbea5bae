//! `--help` of every script prints a text and does nothing else. It runs on a copy, with nothing installed but the
//! interpreters: python3 without packages, bash, and what bash needs to print. All other programs are replaced by ones
//! that record the call and fail.
#![cfg(unix)]

mod skipped;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::yield_now;
use std::time::SystemTime;
use std::{env, fs};

/// Programs that may print a help text.
const PRINTERS: [&str; 4] = ["env", "bash", "sed", "cat"];

/// Programs that `--help` must not start.
const WORKERS: [&str; 16] = [
    "apt-get",
    "c++",
    "cargo",
    "cc",
    "cmake",
    "cp",
    "dpkg-deb",
    "git",
    "make",
    "mkdir",
    "mktemp",
    "pip",
    "qemu-aarch64",
    "rustc",
    "rustup",
    "valgrind",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files that git knows; without git, all outside build folders. Relative to the root.
fn files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard"])
        .current_dir(root())
        .output();
    let listed = listed.ok().filter(|output| output.status.success());
    let mut found: Vec<PathBuf> = listed.map_or_else(Vec::new, |output| {
        String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect()
    });
    if found.is_empty() {
        walk(root(), &mut found);
    }
    found.retain(|file| root().join(file).is_file());
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if !path.is_dir() {
            found.push(path.strip_prefix(root()).expect("it is below the root").to_path_buf());
        } else if !name.starts_with("target") && !name.starts_with(".git") {
            walk(&path, found);
        }
    }
}

/// The scripts of the project: files whose first line names bash or Python.
fn scripts() -> Vec<PathBuf> {
    let mut found = files();
    found.retain(|file| {
        let text = fs::read(root().join(file)).unwrap_or_default();
        let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        first.starts_with(b"#!") && (first.ends_with(b"python3") || first.ends_with(b"bash"))
    });
    found
}

/// Whether the file's name is that of a program for bash or Python.
fn is_code(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "py" || extension == "sh")
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).expect("the folder can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .expect("it can be made executable");
}

fn located(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A copy of the scripts, with its own home, temporary folder and programs.
struct Sandbox(PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        for folder in ["home", "tmp", "bin", "tree"] {
            fs::create_dir_all(root.join(folder)).expect("the folder can be made");
        }
        let bin = root.join("bin");
        for program in PRINTERS {
            let real = located(program).unwrap_or_else(|| panic!("there is no {program}"));
            std::os::unix::fs::symlink(real, bin.join(program)).expect("a link can be made");
        }
        for program in WORKERS {
            let called = root.join("tmp/called");
            let text = format!("#!/bin/sh\necho {program} >>'{}'\nexit 127\n", called.display());
            executable(&bin.join(program), &text);
        }
        if let Some(python) = python() {
            // Isolated and without site-packages. It may write byte code, which the test would then see.
            executable(&bin.join("python3"), &format!("#!/bin/sh\nexec '{python}' -I -S \"$@\"\n"));
        }
        // Scripts, with the files beside them that they may read or import.
        let scripts = scripts();
        let beside = |file: &PathBuf| scripts.iter().any(|script| script.parent() == file.parent());
        for file in files().iter().filter(|file| beside(file)) {
            let copy = root.join("tree").join(file);
            fs::create_dir_all(copy.parent().expect("a file lies in a folder"))
                .expect("it can be made");
            fs::copy(self::root().join(file), copy).expect("a script can be copied");
        }
        Self(root)
    }

    fn help(&self, script: &Path) -> Output {
        let mut command = Command::new(self.0.join("tree").join(script));
        command.arg("--help").current_dir(self.0.join("tree")).env_clear();
        let folders = [("PATH", "bin"), ("HOME", "home"), ("TMPDIR", "tmp")];
        command.envs(folders.map(|(name, folder)| (name, self.0.join(folder))));
        loop {
            match command.output() {
                // Another test may just be starting a process, which has the file open for writing until it executes
                // its program.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => yield_now(),
                output => {
                    return output.unwrap_or_else(|error| panic!("{}: {error}", script.display()));
                }
            }
        }
    }

    /// Every file and folder, with its modification time and size.
    fn state(&self) -> BTreeMap<PathBuf, (SystemTime, u64)> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.0.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).expect("a folder").flatten() {
                let about = fs::symlink_metadata(entry.path()).expect("the file is there");
                let changed = about.modified().expect("the system keeps times");
                found.insert(entry.path(), (changed, about.len()));
                if about.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        found
    }

    /// What is wrong with the script's `--help`; `None` if nothing is.
    fn complaint(&self, script: &Path) -> Option<String> {
        let before = self.state();
        let output = self.help(script);
        let after = self.state();
        let name = script.display();
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || !said.is_empty() {
            return Some(format!("{name} --help: {}: {said}", output.status));
        }
        if String::from_utf8_lossy(&output.stdout).lines().count() < 3 {
            return Some(format!("{name} --help prints no help"));
        }
        let changed = after.iter().find(|(path, state)| before.get(*path) != Some(*state));
        let gone = before.keys().find(|path| !after.contains_key(*path));
        let touched = changed.map(|(path, _)| path).or(gone)?;
        Some(format!("{name} --help touches {}", touched.display()))
    }
}

/// The interpreter itself, not a wrapper that needs its environment.
fn python() -> Option<String> {
    let code = "import sys; print(sys.executable)";
    let output = Command::new("python3").args(["-c", code]).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| path.trim().to_owned())
}

#[test]
fn help_needs_nothing_and_changes_nothing() {
    let sandbox = Sandbox::new("scripts-help");
    let mut scripts = scripts();
    assert!(scripts.len() > 10, "only {} scripts were found", scripts.len());
    // Modules that others import are scripts, too: somebody will start them.
    let skipped: Vec<PathBuf> = files()
        .into_iter()
        .filter(|file| file.starts_with("scripts") && is_code(file) && !scripts.contains(file))
        .collect();
    assert!(skipped.is_empty(), "without bash or python3 in the first line: {skipped:?}");
    if python().is_none() {
        skipped::skipped("there is no python3 here");
        scripts.retain(|script| script.extension().is_none_or(|e| e != "py"));
    }
    let wrong: Vec<String> = scripts.iter().filter_map(|s| sandbox.complaint(s)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Scripts that do work before they read their options, each in another way.
#[test]
fn a_help_that_works_is_seen() {
    let sandbox = Sandbox::new("scripts-wrong");
    let help = "echo usage; echo; echo options";
    for (name, text, complaint) in [
        ("good", help.to_owned(), None),
        ("writes", format!("{help}; echo >\"$HOME/file\""), Some("touches")),
        ("calls", format!("{help}; cargo --version || true"), Some("touches")),
        ("fails", format!("{help}; import_numpy"), Some("import_numpy")),
        ("silent", "echo done".to_owned(), Some("no help")),
    ] {
        let script = Path::new("scripts").join(name);
        executable(
            &sandbox.0.join("tree").join(&script),
            &format!("#!/usr/bin/env bash\n{text}\n"),
        );
        let said = sandbox.complaint(&script);
        match complaint {
            None => assert_eq!(said, None),
            Some(part) => {
                assert!(said.as_ref().is_some_and(|s| s.contains(part)), "{name}: {said:?}")
            }
        }
    }
}
