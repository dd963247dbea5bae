//! What came of a problem.

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
    /// The library does not have it. Counts as failed.
    Unimplemented,
    /// The library says that the problem is wrong. Counts as failed.
    InvalidArguments,
    /// Only listed.
    Listed,
    /// Run without checks. Counts as passed.
    Executed,
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
        }
    }

    /// Whether the run as a whole has failed with a problem of this status.
    pub fn is_failure(self) -> bool {
        matches!(self, Status::Failed | Status::Unimplemented | Status::InvalidArguments)
    }
}

/// What came of one problem.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The status.
    pub status: Status,
    /// Why, where the status alone does not tell.
    pub reason: String,
    /// Time, if it was measured.
    pub performance: Option<Performance>,
    /// In mode B: whether several threads were seen to share the work.
    pub shared: bool,
}

/// A measured problem.
#[derive(Clone, Debug)]
pub struct Performance {
    /// The implementation that was measured.
    pub implementation: String,
    /// Bytes read and written by one execution: every element of every argument once.
    pub bytes: u64,
    /// Time per execution.
    pub timing: Timing,
}

impl Outcome {
    /// An outcome with a status alone.
    pub fn new(status: Status) -> Outcome {
        Outcome { status, reason: String::new(), performance: None, shared: false }
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

/// A mistake of the user that shows only while running, such as a data file of the wrong size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt(pub String);

impl fmt::Display for Halt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Halt {}
