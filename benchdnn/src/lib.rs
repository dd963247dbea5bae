//! The harness of the library: the data that it feeds, the results that it expects and the
//! bounds that it allows. Nothing here knows the library's own code.

pub mod check;
pub mod fill;
pub mod oracle;
