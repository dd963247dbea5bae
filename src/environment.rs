//! Environment variables: their values, and warnings about invalid ones.

use crate::text::Text;
use std::ffi::{CStr, c_int};
use std::fmt::{self, Write};

/// The prefixes of variables that oneDNN has too, in order of precedence.
const PREFIXES: &[&str] =
    if cfg!(feature = "onednn-abi") { &["NORM", "ONEDNN", "DNNL"] } else { &["NORM"] };

/// The longest value that is read, in bytes.
const LONGEST: usize = 256;

/// A variable that is set, and not to an empty text.
pub(crate) struct Variable {
    name: Text<32>,
    value: Text<LONGEST>,
}

impl Variable {
    /// `NORM_<name>`.
    pub(crate) fn own(name: &str) -> Option<Self> {
        Self::read("NORM", name)
    }

    /// `NORM_<name>` or, with the feature `onednn-abi`, its oneDNN equivalents.
    pub(crate) fn shared(name: &str) -> Option<Self> {
        PREFIXES.iter().find_map(|prefix| Self::read(prefix, name))
    }

    /// Without the standard library, which copies the value to the heap.
    fn read(prefix: &str, name: &str) -> Option<Self> {
        let mut variable = Self { name: Text::new(), value: Text::new() };
        write!(variable.name, "{prefix}_{name}").ok()?;
        // SAFETY: the name is a C string.
        let found = unsafe { libc::getenv(variable.name.as_c_str().as_ptr()) };
        if found.is_null() {
            return None;
        }
        // SAFETY: the environment's values are C strings; the copy is made at once, because they
        // may move when the program sets a variable.
        let value = unsafe { CStr::from_ptr(found) };
        for chunk in value.to_bytes().utf8_chunks() {
            let broken = if chunk.invalid().is_empty() { "" } else { "\u{fffd}" };
            write!(variable.value, "{}{broken}", chunk.valid()).ok()?;
        }
        (!variable.value().is_empty()).then_some(variable)
    }

    /// The value without spaces around it.
    pub(crate) fn value(&self) -> &str {
        self.value.as_str().trim()
    }

    /// Prints on standard error why the value has no effect.
    #[cold]
    pub(crate) fn warn(&self, reason: impl fmt::Display) {
        let mut line = Text::<{ LONGEST + 256 }>::new();
        let (name, value) = (self.name.as_str(), self.value());
        let _ = write!(line, "libnorm: warning: {name}={value} is ignored: {reason}");
        write_to(STDERR, line.as_str().as_bytes());
        write_to(STDERR, b"\n");
    }
}

/// The file descriptors of standard output and standard error.
pub(crate) const STDOUT: c_int = 1;
const STDERR: c_int = 2;

/// Writes to a file descriptor without the standard library's buffer, which is on the heap, and
/// its lock: a child of fork() would wait forever for a thread that held it. Errors are ignored,
/// for example if the file is closed.
pub(crate) fn write_to(file: c_int, mut rest: &[u8]) {
    while !rest.is_empty() {
        // SAFETY: the slice is readable.
        let written = unsafe { libc::write(file, rest.as_ptr().cast(), rest.len() as _) };
        match usize::try_from(written) {
            Ok(written) => rest = &rest[written..],
            Err(_) if is_interrupted() => (),
            Err(_) => return,
        }
    }
}

fn is_interrupted() -> bool {
    std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
}
