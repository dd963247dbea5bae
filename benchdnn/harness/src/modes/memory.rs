//! Whether a problem fits into memory.
//!
//! The memory for values is allocated infallibly, so the need is estimated before anything is made.
//! A problem that does not fit is skipped, and the rest of the batch runs.

use super::case::Case;
use super::end::{End, skipped};
use super::inputs;
use crate::execution::Role;
use crate::executor::Prepared;
use crate::problem::Spec;
use crate::tensor::Layout;

/// Smaller needs are not checked: that would take longer than many problems.
const SMALL: u128 = 64 << 20;

/// Skips a problem whose tensors do not fit.
pub(super) fn check(case: &Case<'_>, prepared: &dyn Prepared) -> Result<(), End> {
    let specs = case.problem.tensors();
    let layouts = inputs::layouts(&specs, prepared)?;
    let needed: u128 = specs.iter().zip(&layouts).map(|(spec, layout)| bytes(spec, layout)).sum();
    if needed < SMALL {
        return Ok(());
    }
    let fits = match (usize::try_from(needed), available()) {
        (Err(_), _) => false,
        (Ok(_), Some(free)) if needed > free => false,
        (Ok(needed), _) => Vec::<u8>::new().try_reserve_exact(needed).is_ok(),
    };
    match fits {
        true => Ok(()),
        false => {
            let free = available().map_or_else(String::new, |free| {
                format!(", and {} are available", gigabytes(free))
            });
            Err(skipped(format!("its tensors need {} of memory{free}", gigabytes(needed))))
        }
    }
}

/// A lower bound of what the harness allocates for a tensor: its values in f64 (for an output those of the oracle), its
/// elements, and its buffer.
fn bytes(spec: &Spec, layout: &Layout) -> u128 {
    let values = match spec.role {
        Role::Input | Role::Output | Role::Updated => size_of::<f64>(),
        Role::Unused => 0,
    };
    let count: u128 = spec.dims.iter().map(|&dim| dim as u128).product();
    count * (values + spec.data_type.size()) as u128 + layout.wide_span()
}

fn gigabytes(bytes: u128) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// How many bytes the process may use without harm; `None` if the system does not say.
fn available() -> Option<u128> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let entry = |name: &str| -> Option<u128> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u128 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes << 10)
    };
    Some(entry("MemAvailable:")? + entry("SwapFree:").unwrap_or(0))
}
