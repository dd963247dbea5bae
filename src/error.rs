//! Errors: a status and a message.
//!
//! Everything below `capi` reports failure with [`Error`]. `capi` turns it into a C status and this
//! thread's last error message. Creating an error allocates, so only failing paths do.

use std::fmt;

/// The failures of `norm_status_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    OutOfMemory,
    InvalidArguments,
    Unimplemented,
    LastImplReached,
    RuntimeError,
    NotRequired,
}

/// A failure: its status, and a message that names the parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    pub(crate) status: Status,
    pub(crate) message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Status::InvalidArguments, message)
    }

    pub(crate) fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Status::Unimplemented, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
