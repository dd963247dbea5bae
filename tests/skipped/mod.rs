//! What a test says if this machine lacks what it needs.

use std::fs::OpenOptions;
use std::io::Write;

/// Prints the reason, which cargo hides, and appends it to the file that `NORM_SKIPPED` names, which `.ci/run` shows.
pub(crate) fn skipped(why: &str) {
    let line = format!("skipped: {why}\n");
    print!("{line}");
    if let Some(path) = std::env::var_os("NORM_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file can be written");
    }
}
