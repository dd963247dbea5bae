//! Variables of the environment that oneDNN has too.

/// Whose variables are read, in this order.
const PREFIXES: &[&str] =
    if cfg!(feature = "onednn-abi") { &["NORM", "ONEDNN", "DNNL"] } else { &["NORM"] };

/// The value of `NORM_<name>`, or with the feature `onednn-abi` of its oneDNN namesakes.
pub(super) fn variable(name: &str) -> Option<String> {
    PREFIXES.iter().find_map(|prefix| std::env::var(format!("{prefix}_{name}")).ok())
}
