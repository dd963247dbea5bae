//! Verbose lines, in oneDNN's format: what was created, what was executed and how long it took, and
//! why an implementation was passed over.

use super::{Op, PrimitiveDesc};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
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

/// What was set by call; -1 until then.
static SET: AtomicI32 = AtomicI32::new(-1);

pub(crate) fn set_verbosity(verbosity: Verbosity) {
    SET.store(verbosity as i32, Ordering::Relaxed);
    print_header(verbosity);
}

/// The level in force: the one set, or that of `NORM_VERBOSE`.
#[inline]
pub(crate) fn verbosity() -> Verbosity {
    static ENVIRONMENT: OnceLock<Verbosity> = OnceLock::new();
    Verbosity::from_level(SET.load(Ordering::Relaxed)).unwrap_or_else(|| {
        *ENVIRONMENT.get_or_init(|| {
            let verbosity = std::env::var("NORM_VERBOSE")
                .ok()
                .and_then(|value| value.trim().parse().ok())
                .and_then(Verbosity::from_level)
                .unwrap_or(Verbosity::Silent);
            print_header(verbosity);
            verbosity
        })
    })
}

/// Which library this is, once, before the first line.
fn print_header(verbosity: Verbosity) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    if verbosity == Verbosity::Silent {
        return;
    }
    ONCE.call_once(|| {
        line(&format!("info,libnorm v{}", env!("CARGO_PKG_VERSION")));
        line(&format!("info,cpu,runtime:own,nthr:{}", crate::threads::default_threads()));
        line(&format!("info,cpu,isa:{}", super::effective_level().name()));
        line(
            "primitive,info,template:operation,engine,primitive,implementation,prop_kind,\
             memory_descriptors,attributes,auxiliary,problem_desc,exec_time",
        );
    });
}

/// A closed standard output is not this library's affair.
fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "norm_verbose,v1,{text}");
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
        .map(|argument| format!("{}:{}", argument.name, argument.desc.describe()))
        .collect();
    format!(
        "{},{},{},{},{},{},{}",
        op.name(),
        desc.implementation().name(),
        op.prop_kind().name(),
        descs.join(" "),
        desc.attr().describe(),
        op.auxiliary(),
        op.problem()
    )
}
