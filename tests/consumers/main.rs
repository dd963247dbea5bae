//! Consumers of the library: C and C++ programs are built against `include/` and the fresh
//! `libnorm.so`, as a user would do, and run. The checks are in the programs (`tests/c/`,
//! `examples/c/`); this folder builds and runs them.
#![cfg(target_os = "linux")]

mod cpp_names;
mod environment;
mod exports;
mod memcheck;
mod programs;
#[path = "../skipped/mod.rs"]
mod skipped;
mod toolchain;
mod verbose;
