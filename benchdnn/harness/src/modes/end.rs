//! The early end of a problem.

use crate::outcome::{Halt, Outcome, Status};

/// The end of a problem.
pub(super) enum End {
    /// Ends the problem with this outcome.
    Outcome(Outcome),
    /// Ends the whole run.
    Halt(Halt),
}

impl<T: Into<Outcome>> From<T> for End {
    fn from(outcome: T) -> End {
        End::Outcome(outcome.into())
    }
}

impl From<Halt> for End {
    fn from(halt: Halt) -> End {
        End::Halt(halt)
    }
}

/// Skips a problem.
pub(super) fn skipped(reason: String) -> End {
    End::Outcome(Outcome::because(Status::Skipped, reason))
}

/// The outcome of a problem, whether it ran or not.
pub(super) fn outcome(result: Result<Outcome, End>) -> Result<Outcome, Halt> {
    match result {
        Ok(outcome) | Err(End::Outcome(outcome)) => Ok(outcome),
        Err(End::Halt(halt)) => Err(halt),
    }
}
