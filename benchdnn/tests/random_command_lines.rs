//! Pseudo-random command lines for the fuzz target of benchdnn's language.

#[allow(dead_code, unreachable_pub, reason = "for libFuzzer and other targets")]
#[path = "../../fuzz/src/language.rs"]
mod language;
#[allow(dead_code, unreachable_pub, reason = "as above")]
#[path = "../../fuzz/src/source.rs"]
mod source;

use rayon::prelude::*;

/// The bytes of a seed. Few random lines are understood unless they are short.
fn line(seed: u64) -> Vec<u8> {
    let mut bytes = source::random_bytes(seed);
    if !seed.is_multiple_of(8) {
        bytes.truncate(1 + seed as usize % 16);
    }
    bytes
}

#[test]
fn accepted_lines_print_as_lines_that_describe_the_same_job() {
    let read: u64 = (0..40_000).into_par_iter().map(|seed| language::run(&line(seed))).sum();
    assert!(read > 0, "no command line was understood");
}
