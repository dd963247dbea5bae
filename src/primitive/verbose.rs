//! Verbose lines in oneDNN's format: creations, executions with their times, and why
//! implementations were skipped.

use crate::environment::{STDOUT, Variable, write_to};
use std::fmt::{self, Write};
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
    #[inline]
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
    let variable = Variable::shared("VERBOSE");
    let asked = variable.as_ref().and_then(|variable| Verbosity::from_text(variable.value()));
    let verbosity = asked.unwrap_or(Verbosity::Silent);
    let found = verbosity as i32;
    match LEVEL.compare_exchange(UNSET, found, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            if let (Some(variable), None) = (variable, asked) {
                variable.warn("it is not 0, 1 or 2");
            }
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
    line(format_args!("info,libnorm v{}", env!("CARGO_PKG_VERSION")));
    line(format_args!("info,cpu,runtime:own,nthr:{}", crate::threads::default_threads()));
    line(format_args!("info,cpu,isa:{}", super::effective_level().name()));
    line(format_args!(
        "primitive,info,template:operation,engine,primitive,implementation,prop_kind,\
         memory_descriptors,attributes,auxiliary,problem_desc,exec_time"
    ));
}

/// The prefix of each line. Tools that parse oneDNN's output look for oneDNN's.
const MARKER: &str = if cfg!(feature = "onednn-abi") { "onednn_verbose" } else { "norm_verbose" };

/// Prints a line.
fn line(text: fmt::Arguments<'_>) {
    let mut out = Output { bytes: [0; BUFFER], len: 0 };
    let _ = writeln!(out, "{MARKER},v1,{text}");
    out.flush();
}

/// Most lines fit and are written at once, so that lines of several threads do not mix.
const BUFFER: usize = 4096;

/// Standard output with a buffer that is not on the heap.
struct Output {
    bytes: [u8; BUFFER],
    len: usize,
}

impl Output {
    fn flush(&mut self) {
        write_to(STDOUT, &self.bytes[..self.len]);
        self.len = 0;
    }
}

impl Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.as_bytes().chunks(BUFFER) {
            if part.len() > BUFFER - self.len {
                self.flush();
            }
            self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
        Ok(())
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Reports an execution of a primitive with this description.
pub(crate) fn executed(primitive: impl fmt::Display, time: Duration) {
    line(format_args!("primitive,exec,cpu,{primitive},{:.6}", milliseconds(time)));
}

/// Reports the creation of a primitive descriptor.
pub(crate) fn created(primitive: impl fmt::Display, time: Duration) {
    line(format_args!("primitive,create,cpu,{primitive},{:.6}", milliseconds(time)));
}

/// Reports an implementation that was skipped for a problem of an operation.
pub(crate) fn passed_over(
    (kind, problem): (&str, impl fmt::Display),
    name: &str,
    reason: impl fmt::Display,
) {
    line(format_args!("primitive,create:dispatch,{kind},{name},{problem},{reason}"));
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
