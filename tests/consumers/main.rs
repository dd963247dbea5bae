//! Consumers of the library: C and C++ programs are built against `include/` and the fresh
//! `libnorm.so`, as a user would, and run. What a program checks stands in the program
//! (`tests/c/`, `examples/c/`); what stands here is how it is built and under what it runs.
#![cfg(target_os = "linux")]

mod exports;
mod memcheck;
mod programs;
mod toolchain;
