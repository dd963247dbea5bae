//! Errors: [`Error`] with an [`ErrorKind`] and a message that names the argument.

use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt;

use norm_sys as sys;

/// `std::result::Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an [`Error`], from the status codes of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An allocation failed (`norm_out_of_memory`).
    OutOfMemory,
    /// An argument is wrong or missing; nothing was done (`norm_invalid_arguments`).
    InvalidArguments,
    /// Valid, but not implemented (`norm_unimplemented`).
    Unimplemented,
    /// The queried object does not exist here (`norm_not_required`).
    NotRequired,
    /// An internal error of the library, caught (`norm_runtime_error`).
    RuntimeError,
}

/// A failed call. `Display` prints one sentence that names the argument.
///
/// A failed call has written nothing to its outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    argument: Option<Cow<'static, str>>,
    message: Cow<'static, str>,
}

impl Error {
    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The invalid argument, by its name in the documentation (`"src"`, `"scale"`, `"cols"`, ...).
    ///
    /// `None` if there is no single such argument, or if the error comes from the C library, whose
    /// message names it.
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }

    /// An argument that this crate rejects. The message begins with the argument's name.
    pub(crate) fn invalid(argument: &'static str, reason: impl fmt::Display) -> Self {
        Self {
            kind: ErrorKind::InvalidArguments,
            argument: Some(argument.into()),
            message: format!("{argument} {reason}").into(),
        }
    }

    /// A violation of the C library's contract: an internal error without undefined behaviour.
    pub(crate) fn defect(message: &'static str) -> Self {
        Self { kind: ErrorKind::RuntimeError, argument: None, message: message.into() }
    }

    /// The failure of the calling thread's last C call.
    fn from_status(status: sys::norm_status_t) -> Self {
        let kind = match status {
            sys::norm_out_of_memory => ErrorKind::OutOfMemory,
            sys::norm_invalid_arguments => ErrorKind::InvalidArguments,
            sys::norm_unimplemented => ErrorKind::Unimplemented,
            sys::norm_last_impl_reached | sys::norm_not_required => ErrorKind::NotRequired,
            _ => ErrorKind::RuntimeError,
        };
        // SAFETY: the function has no preconditions. It returns a NUL-terminated string, never
        // NULL, valid until the next failing call on this thread; it is copied before that.
        let sentence = unsafe { CStr::from_ptr(sys::norm_get_last_error()) }.to_string_lossy();
        let message = if sentence.is_empty() {
            Cow::Borrowed(status_name(status))
        } else {
            Cow::Owned(sentence.into_owned())
        };
        Self { kind, argument: None, message }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Converts the status of the calling thread's last C call to a `Result`.
pub(crate) fn check(status: sys::norm_status_t) -> Result<()> {
    if status == sys::norm_success { Ok(()) } else { Err(Error::from_status(status)) }
}

fn status_name(status: sys::norm_status_t) -> &'static str {
    // SAFETY: any value is allowed, and the string returned is static.
    let name = unsafe { CStr::from_ptr(sys::norm_status2str(status)) };
    name.to_str().unwrap_or("unknown status")
}
