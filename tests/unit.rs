//! The library's unit tests, in a separate program.
//!
//! They are beside the code that they test, and this program includes the modules by their paths. A test build of the
//! library itself would compile every kernel a second time; this one compiles only what the tests use.
#![allow(dead_code, unused_imports, missing_docs, reason = "the tests reach a part of the library")]

#[path = "../src/cache/mod.rs"]
mod cache;
#[path = "../src/environment.rs"]
mod environment;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/fork.rs"]
mod fork;
#[path = "../src/heap.rs"]
mod heap;
#[path = "../src/mark.rs"]
mod mark;
#[path = "../src/ops/mod.rs"]
mod ops;
#[path = "../src/per_thread.rs"]
mod per_thread;
#[path = "../src/primitive/mod.rs"]
mod primitive;
#[path = "../src/rows/mod.rs"]
mod rows;
#[path = "../src/simd/mod.rs"]
mod simd;
#[path = "../src/tensor/mod.rs"]
mod tensor;
#[path = "../src/text.rs"]
mod text;
#[path = "../src/threads/mod.rs"]
mod threads;
