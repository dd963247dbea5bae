//! The harness of the library: checks and times its primitives from the command line, in the
//! language of oneDNN's benchdnn.
//!
//! [`language`] turns words into jobs, a driver of [`drivers`] turns each job into data and
//! executions on an [`executor`], [`oracle`] and [`check`] say what is right, [`harness`] runs the
//! whole and [`report`] prints. Nothing here knows the library's own code: it is reached through
//! the C functions alone, behind [`library`].

pub mod attributes;
pub mod check;
pub mod contest;
pub mod drivers;
pub mod execution;
pub mod executor;
pub mod fill;
pub mod float_mode;
pub mod harness;
pub mod language;
pub mod library;
pub mod oracle;
pub mod outcome;
pub mod peer;
pub mod quiet;
pub mod report;
pub mod roofline;
pub mod rotation;
pub mod run;
pub mod summary;
pub mod template;
pub mod tensor;
pub mod timing;
pub mod verdict;
