//! Fuzz targets: functions of a byte string, which determines what they do.
//!
//! [`calls`] makes sequences of C calls, [`attention`] the same for attention and KV caches, [`descriptors`]
//! descriptors and blobs, [`language`] command lines of benchdnn. libFuzzer chooses the bytes in `fuzz_targets/`. The
//! tests below use pseudo-random bytes, also under Miri, and so do `soak.rs`, for as long as requested, and
//! `benchdnn/tests/random_command_lines.rs`. A finding is a panic, a fault or a sanitizer report.

pub mod attention;
mod buffers;
mod cache;
mod cache_data;
pub mod calls;
pub mod descriptors;
mod execution;
mod fill;
mod handles;
#[cfg(feature = "language")]
pub mod language;
mod layouts;
mod problems;
mod sdpa;
mod source;

// Links the exported functions.
use norm as _;
pub use source::random_bytes;

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH_FOR_MIRI: usize = 240;

    /// The number of inputs: `NORM_FUZZ_INPUTS`, or enough for a few seconds.
    fn inputs(usual: u64) -> u64 {
        let asked = std::env::var("NORM_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok());
        asked.unwrap_or(if cfg!(miri) { 40 } else { usual })
    }

    /// The input of a seed. Miri takes minutes for a long one, and finds more in many short ones.
    fn bytes(seed: u64) -> Vec<u8> {
        let mut bytes = random_bytes(seed);
        if cfg!(miri) {
            bytes.truncate(LENGTH_FOR_MIRI);
            eprintln!("seed {seed}");
        }
        bytes
    }

    #[test]
    fn random_calls() {
        let executed: u64 = (0..inputs(20_000)).map(|seed| calls::run(&bytes(seed))).sum();
        assert!(executed > 0, "no execution succeeded");
    }

    #[test]
    fn random_attention() {
        let executed: u64 = (0..inputs(10_000)).map(|seed| attention::run(&bytes(seed))).sum();
        assert!(executed > 0, "no execution succeeded");
    }

    #[test]
    fn random_descriptors() {
        let made: u64 = (0..inputs(100_000)).map(|seed| descriptors::run(&bytes(seed))).sum();
        assert!(made > 0, "no descriptor was made");
    }
}
