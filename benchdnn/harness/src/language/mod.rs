//! The language of the command line and of batch files.
//!
//! Options change a state, and a problem descriptor consumes it: every combination of the values in
//! the state becomes a job. [`token`] splits text into words, [`grammar`] recognizes options from
//! the tables of [`options`], [`value`] reads their values, and [`batch`] finds files. The state
//! itself is in [`machine`](crate::machine). Everything is read before anything runs, so an error
//! in the last line shows immediately.

pub mod batch;
pub mod descriptor;
pub mod grammar;
pub mod options;
pub mod token;
pub mod value;
