//! Errors: a status and a message.
//!
//! Everything below `capi` reports failure with [`Error`]. `capi` turns it into a C status and this thread's last error
//! message. The text is kept in a fixed per-thread buffer, so that errors need no memory and results are small.

use crate::text::Text;
use std::cell::RefCell;
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

/// The longest message in bytes. Longer ones are cut.
const LONGEST: usize = 480;

thread_local! {
    /// The message of this thread's last error.
    static MESSAGE: RefCell<Text<LONGEST>> = const { RefCell::new(Text::new()) };
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
        MESSAGE.with(|stored| *stored.borrow_mut() = text);
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
        MESSAGE.with(|message| f.write_str(message.borrow().as_str()))
    }
}
