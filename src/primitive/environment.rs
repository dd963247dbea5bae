//! Environment variables that oneDNN has too.

/// The prefixes of the variables, in order of precedence.
const PREFIXES: &[&str] =
    if cfg!(feature = "onednn-abi") { &["NORM", "ONEDNN", "DNNL"] } else { &["NORM"] };

/// The value of `NORM_<name>` or, with the feature `onednn-abi`, of its oneDNN equivalents.
pub(super) fn variable(name: &str) -> Option<String> {
    PREFIXES.iter().find_map(|prefix| std::env::var(format!("{prefix}_{name}")).ok())
}
