//! Verbose lines in oneDNN's format: creations, executions with their times, and why
//! implementations were skipped.

use super::environment::variable;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    Silent,
    Execution,
    Creation,
}

impl Verbosity {
    pub(crate) fn from_level(level: i32) -> Option<Self> {
        [Self::Silent, Self::Execution, Self::Creation].get(usize::try_from(level).ok()?).copied()
    }

    /// Parses the environment variable: a level, or oneDNN's words separated by commas.
    fn from_text(text: &str) -> Option<Self> {
        if let Ok(level) = text.trim().parse() {
            return Self::from_level(level);
        }
        let word = |word: &str| match word.trim() {
            "none" | "error" | "check" | "warn" => Some(Self::Silent),
            "profile_exec" => Some(Self::Execution),
            "profile_create" | "profile" | "dispatch" | "all" => Some(Self::Creation),
            _ => None,
        };
        text.split(',').filter_map(word).max()
    }
}

/// The level set by a call or the environment; `UNSET` before the first use.
static LEVEL: AtomicI32 = AtomicI32::new(UNSET);
const UNSET: i32 = -1;

pub(crate) fn set_verbosity(verbosity: Verbosity) {
    LEVEL.store(verbosity as i32, Ordering::Relaxed);
    print_header(verbosity);
}

/// The current level: the one set, or that of `NORM_VERBOSE`.
#[inline]
pub(crate) fn verbosity() -> Verbosity {
    Verbosity::from_level(LEVEL.load(Ordering::Relaxed)).unwrap_or_else(verbosity_of_environment)
}

/// Applies the environment's level, unless one was set in the meantime. Not a `OnceLock`: after
/// fork() the thread that holds it may not exist.
#[cold]
fn verbosity_of_environment() -> Verbosity {
    let asked = variable("VERBOSE").and_then(|text| Verbosity::from_text(&text));
    let verbosity = asked.unwrap_or(Verbosity::Silent);
    let found = verbosity as i32;
    match LEVEL.compare_exchange(UNSET, found, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            print_header(verbosity);
            verbosity
        }
        Err(set) => Verbosity::from_level(set).unwrap_or(Verbosity::Silent),
    }
}

/// Identifies the library once, before the first line.
fn print_header(verbosity: Verbosity) {
    static PRINTED: AtomicBool = AtomicBool::new(false);
    if verbosity == Verbosity::Silent || PRINTED.swap(true, Ordering::Relaxed) {
        return;
    }
    line(&format!("info,libnorm v{}", env!("CARGO_PKG_VERSION")));
    line(&format!("info,cpu,runtime:own,nthr:{}", crate::threads::default_threads()));
    line(&format!("info,cpu,isa:{}", super::effective_level().name()));
    line(
        "primitive,info,template:operation,engine,primitive,implementation,prop_kind,\
         memory_descriptors,attributes,auxiliary,problem_desc,exec_time",
    );
}

/// The prefix of each line. Tools that parse oneDNN's output look for oneDNN's.
const MARKER: &str = if cfg!(feature = "onednn-abi") { "onednn_verbose" } else { "norm_verbose" };

/// Prints a line. Errors are ignored, for example if standard output is closed.
fn line(text: &str) {
    write(format!("{MARKER},v1,{text}\n").as_bytes());
}

/// Writes to standard output without the standard library's lock: a child of fork() would wait
/// forever for a thread that held it.
#[cfg(unix)]
fn write(mut rest: &[u8]) {
    while !rest.is_empty() {
        // SAFETY: the slice is readable.
        let written = unsafe { libc::write(libc::STDOUT_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(written) => rest = &rest[written..],
            Err(_) if is_interrupted() => (),
            Err(_) => return,
        }
    }
}

#[cfg(unix)]
fn is_interrupted() -> bool {
    std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
}

#[cfg(not(unix))]
fn write(text: &[u8]) {
    use std::io::Write;
    let _ = std::io::stdout().lock().write_all(text);
}

fn milliseconds(time: Duration) -> String {
    format!("{:.6}", time.as_secs_f64() * 1e3)
}

/// Reports an execution of a primitive with this description.
pub(crate) fn executed(primitive: &str, time: Duration) {
    line(&format!("primitive,exec,cpu,{primitive},{}", milliseconds(time)));
}

/// Reports the creation of a primitive descriptor.
pub(crate) fn created(primitive: &str, time: Duration) {
    line(&format!("primitive,create,cpu,{primitive},{}", milliseconds(time)));
}

/// Reports an implementation that was skipped for a problem of an operation.
pub(crate) fn passed_over((kind, problem): (&str, &str), name: &str, reason: &str) {
    line(&format!("primitive,create:dispatch,{kind},{name},{problem},{reason}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_levels_are_numbers_or_words() {
        assert_eq!(Verbosity::from_text(" 1 "), Some(Verbosity::Execution));
        assert_eq!(Verbosity::from_text("3"), None);
        assert_eq!(Verbosity::from_text("all"), Some(Verbosity::Creation));
        assert_eq!(Verbosity::from_text("error,profile_exec"), Some(Verbosity::Execution));
        assert_eq!(Verbosity::from_text("none"), Some(Verbosity::Silent));
        assert_eq!(Verbosity::from_text("loud"), None);
    }
}
