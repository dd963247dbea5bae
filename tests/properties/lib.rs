//! `src/tensor` compiled with overflow checks, in every profile: its unit tests, and descriptors
//! with random and extreme parameters. The library itself is compiled without the checks.
#![cfg(test)]
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    missing_docs,
    reason = "the tests reach a part of the library"
)]

mod descriptors;

#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/heap.rs"]
mod heap;
#[path = "../../src/mark.rs"]
mod mark;
#[path = "../../src/per_thread.rs"]
mod per_thread;
#[path = "../../src/tensor/mod.rs"]
mod tensor;
#[path = "../../src/text.rs"]
mod text;

#[test]
fn arithmetic_is_checked() {
    let large = std::hint::black_box(i64::MAX);
    assert!(std::panic::catch_unwind(|| large + 1).is_err());
}
