//! The language of the command line and of batch files.
//!
//! Options change a state, a problem descriptor consumes it: every combination of the values that
//! the state holds becomes a job. [`token`] splits text into words, [`grammar`] recognises options
//! from the tables of [`options`], [`value`] reads their values, [`batch`] finds files, and
//! [`machine`] goes through the words. Everything is read before anything runs, so a mistake in the
//! last line costs no waiting.

pub mod batch;
pub mod descriptor;
pub mod grammar;
pub mod machine;
pub mod options;
pub mod token;
pub mod value;
