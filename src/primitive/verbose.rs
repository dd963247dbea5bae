//! Verbose lines, in oneDNN's format: what was created, what was executed and how long it took, and
//! why an implementation was passed over.

use super::{Op, PrimitiveDesc, PropKind};
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
}

/// What was set by call or found in the environment; `UNSET` until then.
static LEVEL: AtomicI32 = AtomicI32::new(UNSET);
const UNSET: i32 = -1;

pub(crate) fn set_verbosity(verbosity: Verbosity) {
    LEVEL.store(verbosity as i32, Ordering::Relaxed);
    print_header(verbosity);
}

/// The level in force: the one set, or that of `NORM_VERBOSE`.
#[inline]
pub(crate) fn verbosity() -> Verbosity {
    Verbosity::from_level(LEVEL.load(Ordering::Relaxed)).unwrap_or_else(verbosity_of_environment)
}

/// Makes the environment's level the one in force, unless one was set meanwhile. Nobody waits for who
/// reads it: after fork() it may not be there.
#[cold]
fn verbosity_of_environment() -> Verbosity {
    let verbosity = std::env::var("NORM_VERBOSE")
        .ok()
        .and_then(|value| value.trim().parse().ok())
        .and_then(Verbosity::from_level)
        .unwrap_or(Verbosity::Silent);
    let found = verbosity as i32;
    match LEVEL.compare_exchange(UNSET, found, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            print_header(verbosity);
            verbosity
        }
        Err(set) => Verbosity::from_level(set).unwrap_or(Verbosity::Silent),
    }
}

/// Which library this is, once, before the first line.
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

/// A closed standard output is not this library's affair.
fn line(text: &str) {
    write(format!("norm_verbose,v1,{text}\n").as_bytes());
}

/// Writes to standard output, past the standard library's lock: a child of fork() would wait for ever
/// for a thread that held it.
#[cfg(unix)]
fn write(mut rest: &[u8]) {
    while !rest.is_empty() {
        // SAFETY: the bytes are there.
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

/// A primitive was executed.
pub(crate) fn executed(desc: &PrimitiveDesc, time: Duration) {
    line(&format!("primitive,exec,cpu,{},{}", describe(desc), milliseconds(time)));
}

/// A primitive descriptor was created.
pub(crate) fn created(desc: &PrimitiveDesc, time: Duration) {
    line(&format!("primitive,create,cpu,{},{}", describe(desc), milliseconds(time)));
}

/// An implementation was passed over.
pub(crate) fn passed_over(op: &dyn Op, name: &str, reason: &str) {
    let (kind, problem) = (op.name(), op.problem());
    line(&format!("primitive,create:dispatch,{kind},{name},{problem},{reason}"));
}

fn describe(desc: &PrimitiveDesc) -> String {
    let op = desc.op();
    let descs: Vec<String> = op
        .arguments()
        .iter()
        .filter(|argument| !argument.is_of_attribute())
        .map(|argument| format!("{}:{}", argument.name, argument.desc.describe()))
        .collect();
    format!(
        "{},{},{},{},{},{},{}",
        op.name(),
        desc.implementation().name(),
        op.prop_kind().map_or("undef", PropKind::name),
        descs.join(" "),
        desc.attr().describe(),
        op.auxiliary(),
        op.problem()
    )
}
