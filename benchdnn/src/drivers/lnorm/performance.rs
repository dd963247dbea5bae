//! Mode P: time.

use super::case::{Case, End};
use crate::execution::{Placed, Role};
use crate::executor::{Prepared, Refusal};
use crate::fill::Fill;
use crate::outcome::Performance;
use crate::report::Reporter;
use crate::run::Run;
use crate::timing;

/// Measures executions alone: buffers and primitive are ready beforehand.
pub(super) fn measure(
    case: &Case,
    prepared: &dyn Prepared,
    run: &Run,
    reporter: &mut Reporter<'_>,
) -> Result<Performance, End> {
    let tensors = case.tensors(prepared, Fill::Perf, run, reporter)?;
    let placed = Placed::new(&tensors, case.placement());
    let bound = prepared.bind(&placed.arguments(false))?;
    let timing = timing::measure::<Refusal>(run.max_ms, run.fix_times, || bound.execute())?;
    let bytes = tensors
        .iter()
        .filter(|tensor| tensor.role != Role::Unused)
        .map(|tensor| (tensor.layout.count() * tensor.data_type().size()) as u64)
        .sum();
    Ok(Performance { implementation: prepared.implementation(), bytes, timing })
}
