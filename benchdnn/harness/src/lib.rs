//! The harness of the library: checks and times its primitives from the command line, in the
//! language of oneDNN's benchdnn.
//!
//! [`machine`] turns words into jobs, with the options of the [`drivers`]. A driver describes a
//! [`problem`]: its tensors, its data and the results that the [`oracle`] expects. The [`modes`] run
//! it on a library, [`harness`] runs them all and [`report`] prints. Nothing here uses the library's
//! own code: [`library`] calls the C functions.
//!
//! Imports go down only, and no driver imports another: `benchdnn/tests/layering.rs` has the
//! order.

#[cfg(test)]
use norm as _;

pub mod attributes;
pub mod check;
pub mod contest;
pub mod data_type;
pub mod direction;
pub mod driver;
pub mod drivers;
pub mod execution;
pub mod executor;
pub mod fill;
pub mod float_mode;
pub mod harness;
pub mod job;
pub mod language;
pub mod library;
pub mod machine;
pub mod modes;
pub mod normalization;
pub mod oracle;
pub mod outcome;
pub mod parallel;
pub mod peer;
pub mod post_op_chain;
pub mod problem;
pub mod progress;
pub mod quiet;
pub mod report;
pub mod roofline;
pub mod rotation;
pub mod run;
pub mod step_chain;
pub mod steps;
pub mod summary;
pub mod template;
pub mod tensor;
pub mod timing;
pub mod verdict;
