//! What can go wrong: [`Error`], with the library's status as its [`ErrorKind`] and one sentence
//! that names the argument.

use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt;

use norm_sys as sys;

/// `std::result::Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The sort of an [`Error`]: the status codes of the C library that a Rust program can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Memory could not be had (`norm_out_of_memory`).
    OutOfMemory,
    /// An argument is wrong or missing; nothing was done (`norm_invalid_arguments`).
    InvalidArguments,
    /// Legal, but not built in this library (`norm_unimplemented`).
    Unimplemented,
    /// The object has no answer to this question (`norm_not_required`).
    NotRequired,
    /// A defect of the library, caught (`norm_runtime_error`).
    RuntimeError,
}

/// A failed call. `Display` is one sentence that names the argument.
///
/// Whatever fails has written nothing to its outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    argument: Option<Cow<'static, str>>,
    message: Cow<'static, str>,
}

impl Error {
    /// The sort of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The argument at fault, by its name in the documentation (`"src"`, `"scale"`, `"cols"`, ...).
    ///
    /// `None` if no single argument is, or if the failure comes from the C library and its sentence
    /// alone says it.
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }

    /// An argument that this crate itself refuses. The sentence begins with the argument's name.
    pub(crate) fn invalid(argument: &'static str, reason: impl fmt::Display) -> Self {
        Self {
            kind: ErrorKind::InvalidArguments,
            argument: Some(argument.into()),
            message: format!("{argument} {reason}").into(),
        }
    }

    /// What the C library breaks its own contract with; a defect, but no undefined behaviour.
    pub(crate) fn defect(message: &'static str) -> Self {
        Self { kind: ErrorKind::RuntimeError, argument: None, message: message.into() }
    }

    /// The failure that the calling thread's last C call ended with.
    fn from_status(status: sys::norm_status_t) -> Self {
        let kind = match status {
            sys::norm_out_of_memory => ErrorKind::OutOfMemory,
            sys::norm_invalid_arguments => ErrorKind::InvalidArguments,
            sys::norm_unimplemented => ErrorKind::Unimplemented,
            sys::norm_last_impl_reached | sys::norm_not_required => ErrorKind::NotRequired,
            _ => ErrorKind::RuntimeError,
        };
        // SAFETY: the function has no preconditions and returns a NUL-terminated string, never
        // NULL, that stays valid until the next failing call on this thread; it is copied before
        // that.
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

/// Turns the status of the calling thread's last C call into a `Result`.
pub(crate) fn check(status: sys::norm_status_t) -> Result<()> {
    if status == sys::norm_success { Ok(()) } else { Err(Error::from_status(status)) }
}

fn status_name(status: sys::norm_status_t) -> &'static str {
    // SAFETY: any value is allowed, and the string returned is static.
    let name = unsafe { CStr::from_ptr(sys::norm_status2str(status)) };
    name.to_str().unwrap_or("unknown status")
}
