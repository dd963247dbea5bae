//! The result of a problem.

use crate::contest::Quartiles;
use crate::executor::{Refusal, RefusalKind};
use crate::timing::Timing;
use std::fmt;

/// The status of a result line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything that was checked is right.
    Passed,
    /// Something is wrong.
    Failed,
    /// Not run, for the reason given.
    Skipped,
    /// Nothing is wrong, but the data could not have shown it.
    Mistrusted,
    /// The library does not support it. Counts as failed.
    Unimplemented,
    /// The library considers the problem invalid. Counts as failed.
    InvalidArguments,
    /// Only listed.
    Listed,
    /// Run without checks. Counts as passed.
    Executed,
    /// Created and not run. Counts as passed.
    Initialized,
}

impl Status {
    /// The word of the result line.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "PASSED",
            Status::Failed => "FAILED",
            Status::Skipped => "SKIPPED",
            Status::Mistrusted => "MISTRUSTED",
            Status::Unimplemented => "UNIMPLEMENTED",
            Status::InvalidArguments => "INVALID_ARGUMENTS",
            Status::Listed => "LISTED",
            Status::Executed => "EXECUTED",
            Status::Initialized => "INITIALIZED",
        }
    }

    /// Whether a problem with this status makes the whole run fail.
    pub fn is_failure(self) -> bool {
        matches!(self, Status::Failed | Status::Unimplemented | Status::InvalidArguments)
    }
}

/// The result of one problem.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The status.
    pub status: Status,
    /// The reason, if the status alone does not tell.
    pub reason: String,
    /// Time, if it was measured.
    pub performance: Option<Box<Performance>>,
    /// The implementation that ran.
    pub implementation: Option<String>,
    /// The comparison with another library.
    pub compared: Option<Compared>,
    /// The times of creation of both libraries.
    pub creation: Option<Box<Creation>>,
    /// Mode B: whether several threads took part.
    pub shared: bool,
}

/// A measured problem.
#[derive(Clone, Debug)]
pub struct Performance {
    /// The implementation that was measured.
    pub implementation: String,
    /// How many threads an execution could use.
    pub threads: u64,
    /// Bytes read by one execution: every element of every input once.
    pub input_bytes: u64,
    /// Bytes written by one execution.
    pub output_bytes: u64,
    /// Time per execution.
    pub timing: Timing,
    /// Time for creating the primitive descriptor.
    pub descriptor: Timing,
    /// Time for creating the primitive from it.
    pub primitive: Timing,
    /// Another library's time.
    pub against: Option<Against>,
    /// A plain copy's time.
    pub roof: Option<Roof>,
}

impl Performance {
    /// A performance that consists of a time alone.
    pub fn of_timing(implementation: String, timing: Timing) -> Performance {
        Performance {
            implementation,
            threads: 1,
            input_bytes: 0,
            output_bytes: 0,
            descriptor: timing,
            primitive: timing,
            timing,
            against: None,
            roof: None,
        }
    }
}

/// Another library's time for the same problem, measured in alternation.
#[derive(Clone, Debug)]
pub struct Against {
    /// Its implementation.
    pub implementation: String,
    /// Its time per execution.
    pub timing: Timing,
    /// Its time over this library's, per round.
    pub ratio: Quartiles,
}

/// The times in which two libraries created the problem's descriptor and primitive.
#[derive(Clone, Debug)]
pub struct Creation {
    /// The first creation in milliseconds: this library and the other.
    pub first_ms: [f64; 2],
    /// Later creations, in alternation.
    pub again: [Timing; 2],
    /// The other library's time over this one's, per round.
    pub ratio: Quartiles,
}

impl Creation {
    /// The other library's first time over this one's.
    pub fn first_ratio(&self) -> f64 {
        self.first_ms[1] / self.first_ms[0]
    }
}

/// The time of the best plain copy of the problem's bytes, measured in alternation.
#[derive(Clone, Debug)]
pub struct Roof {
    /// The kind of copy.
    pub copy: String,
    /// Its time.
    pub timing: Timing,
    /// Its time over the problem's, per round: the fraction of its speed.
    pub share: Quartiles,
}

/// One of two libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The library under test.
    Ours,
    /// The library that it is compared with.
    Theirs,
}

/// Whether another library offers the same problem, and how it compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// It does not offer the problem, for this reason.
    NotOffered(String),
    /// It does.
    Offered {
        /// Whether all results have the same bits, if they were compared.
        equal: Option<bool>,
        /// Which side's results are nearer to the oracle's; `None` if neither's are.
        nearer: Option<Side>,
        /// Whether its results exceed the tolerance.
        wrong: bool,
    },
}

impl Outcome {
    /// An outcome with a status alone.
    pub fn new(status: Status) -> Outcome {
        Outcome {
            status,
            reason: String::new(),
            performance: None,
            implementation: None,
            compared: None,
            creation: None,
            shared: false,
        }
    }

    /// Status and reason, as in the result line.
    pub fn said(&self) -> String {
        let status = self.status.name();
        match self.reason.as_str() {
            "" => status.to_owned(),
            reason => format!("{status} ({reason})"),
        }
    }

    /// An outcome with a reason.
    pub fn because(status: Status, reason: impl Into<String>) -> Outcome {
        Outcome { reason: reason.into(), ..Outcome::new(status) }
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Outcome {
        let status = match refusal.kind {
            RefusalKind::Unimplemented => Status::Unimplemented,
            RefusalKind::InvalidArguments => Status::InvalidArguments,
            RefusalKind::Failure => Status::Failed,
        };
        Outcome::because(status, refusal.message)
    }
}

/// A user error that shows only at run time, such as a data file of the wrong size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt(pub String);

impl fmt::Display for Halt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Halt {}
