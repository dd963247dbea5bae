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

/// A failed call. `Display` prints one sentence that names the argument, if one is to blame.
///
/// A failed call has written nothing to its outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    argument: Option<Cow<'static, str>>,
    message: Cow<'static, str>,
    /// The C library's own sentence.
    c_message: Option<Box<str>>,
}

impl Error {
    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The invalid argument, by its name in the documentation (`"src"`, `"scale"`, `"cols"`, ...). It may be one that a
    /// builder's method sets, such as `"epsilon"`.
    ///
    /// `None` if no argument is to blame, for example if memory ran out.
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }

    /// The sentence of `norm_get_last_error` if the C library refused the call: with the name of the C function and
    /// with C's names of the arguments. `None` if this crate did.
    pub fn c_message(&self) -> Option<&str> {
        self.c_message.as_deref()
    }

    /// An argument that this crate rejects. The message begins with the argument's name.
    pub(crate) fn invalid(argument: &'static str, reason: impl fmt::Display) -> Self {
        Self {
            kind: ErrorKind::InvalidArguments,
            argument: Some(argument.into()),
            message: format!("{argument} {reason}").into(),
            c_message: None,
        }
    }

    /// A violation of the C library's contract: an internal error without undefined behaviour.
    pub(crate) fn defect(message: &'static str) -> Self {
        let kind = ErrorKind::RuntimeError;
        Self { kind, argument: None, message: message.into(), c_message: None }
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
        if sentence.is_empty() {
            let message = status_name(status).into();
            return Self { kind, argument: None, message, c_message: None };
        }
        let c_message = Some(sentence.as_ref().into());
        match translated(&sentence) {
            Some((argument, message)) => {
                let (argument, message) = (Some(argument.into()), message.into());
                Self { kind, argument, message, c_message }
            }
            None => {
                let message = sentence.into_owned().into();
                Self { kind, argument: None, message, c_message }
            }
        }
    }

    /// For functions that have other names for some arguments, given as pairs of old and new.
    pub(crate) fn renamed(self, names: &[(&str, &'static str)]) -> Self {
        let new = |word: &str| {
            let pair = names.iter().find(|(old, _)| *old == word);
            pair.map_or_else(|| word.to_owned(), |(_, new)| (*new).to_owned())
        };
        let argument = self.argument.map(|argument| new(&argument).into());
        Self { argument, message: map_words(&self.message, new).into(), ..self }
    }
}

/// The parameters of C functions that have another name here, other than by the ending `_desc`.
const RENAMED: [(&str, &str); 9] = [
    ("alg_kind", "algorithm"),
    ("in_memory_desc", "self"),
    ("kv_heads", "heads"),
    ("memory_desc", "desc"),
    ("position_desc", "positions"),
    ("rope_dst_desc", "rope_dst_desc"),
    ("softmax_axis", "axis"),
    ("stat_desc", "stats"),
    ("table_desc", "tables"),
];

/// Other words of the C library that have another name here: flags of normalizations, and functions that add what is
/// missing.
const WORDS: [(&str, &str); 10] = [
    ("gate_input", "Flags::GATE_INPUT"),
    ("gate_output", "Flags::GATE_OUTPUT"),
    ("norm_primitive_attr_set_gate", "Attr::set_gate"),
    ("norm_primitive_attr_set_scales_mask", "Attr::set_scales"),
    ("rms_norm", "Flags::RMS_NORM"),
    ("round_before_scale", "Flags::ROUND_BEFORE_SCALE"),
    ("scale_plus_one", "Flags::SCALE_PLUS_ONE"),
    ("use_global_stats", "Flags::GLOBAL_STATS"),
    ("use_scale", "Flags::SCALE"),
    ("use_shift", "Flags::SHIFT"),
];

/// Sentences about flags of rope, which has no flags here, and what they are instead.
const ROPE: [(&str, &str); 2] = [
    (
        "flags: scale_plus_one needs use_scale",
        "norm: scale_plus_one needs a scale; pass its descriptor as Norm::scale",
    ),
    (
        "flags: rope_interleaved_sections needs num_sections of 2 or more",
        "sections: interleaved ones are 2 or more; pass false for one",
    ),
];

/// The argument and the message for a sentence of the C library, `function: parameter: reason` or `function: args:
/// NORM_ARG_X: reason`. `None` if the sentence names no parameter.
fn translated(sentence: &str) -> Option<(String, String)> {
    let (function, rest) = sentence.split_once(": ")?;
    let of_rope = ROPE.iter().find(|(c, _)| function.starts_with("norm_rope_") && *c == rest);
    let message = match of_rope {
        Some((_, rust)) => (*rust).to_owned(),
        None => map_words(rest, |word| match word.strip_prefix("NORM_ARG_") {
            // Its name among the arguments of execution.
            Some(arg) => arg.strip_prefix("ROPE_").unwrap_or(arg).to_lowercase(),
            None => match RENAMED.iter().chain(&WORDS).find(|(c, _)| *c == word) {
                Some((_, rust)) => (*rust).to_owned(),
                None => word.strip_suffix("_desc").unwrap_or(word).to_owned(),
            },
        }),
    };
    let of_execution = message.strip_prefix("args: ").filter(|rest| subject(rest).is_some());
    let message = of_execution.map_or(message.clone(), str::to_owned);
    Some((subject(&message)?.to_owned(), message))
}

/// The name that a message begins with.
fn subject(message: &str) -> Option<&str> {
    let (name, _) = message.split_once(": ")?;
    name.chars().all(is_of_word).then_some(name)
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Replaces each word: a name or a number.
fn map_words(text: &str, new: impl Fn(&str) -> String) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_of_word) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_of_word(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        result += before;
        result += &new(word);
        rest = after;
    }
    result + rest
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
