//! Temporary.
#![allow(missing_docs)]
pub const NORM_ARG_SRC_1: i32 = 2;
pub const NORM_ARG_SRC_2: i32 = 3;
pub const NORM_ARG_ATTR_SCALES: i32 = 4096;
pub const NORM_ARG_ATTR_ZERO_POINTS: i32 = 8192;
pub const NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE: i32 = 32768;
