//! Errors: a status and a message.
//!
//! Everything below `capi` reports failure with [`Error`]. `capi` turns it into a C status and this thread's last error
//! message. The text is kept in a buffer of the thread, so that results are small.

use crate::per_thread;
use crate::text::Text;
use std::fmt::{self, Write};

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

/// A failure: its status, and a message that names the parameter. It displays the message, which
/// stays until the thread makes another error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    pub(crate) status: Status,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    #[cold]
    pub(crate) fn new(status: Status, message: impl fmt::Display) -> Self {
        // Displaying a value may itself create errors.
        let mut text = Text::new();
        let _ = write!(text, "{message}");
        per_thread::with(|thread| *thread.message.borrow_mut() = text);
        Self { status }
    }

    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self::new(Status::InvalidArguments, message)
    }

    pub(crate) fn unimplemented(message: impl fmt::Display) -> Self {
        Self::new(Status::Unimplemented, message)
    }

    /// An allocation of `bytes` bytes for `what` failed.
    pub(crate) fn out_of_memory(what: impl fmt::Display, bytes: usize) -> Self {
        let text = format_args!("cannot allocate {bytes} bytes for {what}");
        Self::new(Status::OutOfMemory, text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = per_thread::with(|thread| f.write_str(thread.message.borrow().as_str()));
        shown.unwrap_or_else(|| f.write_str("the message was not kept"))
    }
}
