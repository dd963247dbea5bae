//! Mode C: results against the oracle.

use super::cache::Prediction;
use super::case::Case;
use super::comparison;
use super::end::End;
use crate::check::{self, Check, Kind};
use crate::execution::{Output, Role, Tensor, run_once};
use crate::executor::Prepared;
use crate::outcome::{Outcome, Status};
use crate::problem::Problem;
use crate::report::Reporter;
use crate::verdict::compare;

/// Executes once and compares every output.
pub(super) fn check(
    case: &Case<'_>,
    prepared: &dyn Prepared,
    reporter: &mut Reporter<'_>,
) -> Result<Outcome, End> {
    let (tensors, prediction) = case.prediction(prepared, reporter)?;
    if reporter.shows(6) {
        tensors.iter().for_each(|tensor| reporter.detail(6, &range(tensor)));
    }
    let outputs = run_once(prepared, &tensors, case.placement(), None)?;
    let outcome = judge(case.problem, &tensors, (&outputs, &prediction), reporter);
    let compared = match &case.run.peer {
        None => None,
        Some(peer) => {
            Some(comparison::correctness(case, peer, &tensors, &outputs, &prediction, reporter)?)
        }
    };
    Ok(Outcome { compared, ..outcome })
}

/// Layout and range of a tensor's values.
fn range(tensor: &Tensor) -> String {
    let values = tensor.layout.data_type.decode(&tensor.elements);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (name, role) = (tensor.name, tensor.role);
    let range = if values.is_empty() { String::new() } else { format!(", from {least} to {most}") };
    format!("data: {name}, {role}, {}{range}", tensor.layout)
}

fn judge(
    problem: &dyn Problem,
    tensors: &[Tensor],
    (outputs, prediction): (&[Output], &Prediction),
    reporter: &mut Reporter<'_>,
) -> Outcome {
    let mut checks: Vec<(Kind, Check)> = Vec::new();
    for output in outputs {
        let expected = prediction
            .expected
            .iter()
            .find(|expected| expected.id == output.id)
            .expect("the oracle gives every output");
        checks.push((expected.kind, compare(output, expected, reporter)));
    }
    let wrong = checks.iter().filter(|(_, check)| !check.passed());
    let reason: Vec<String> = wrong
        .map(|(_, check)| format!("{} has {} wrong of {}", check.name, check.failed, check.total))
        .collect();
    if !reason.is_empty() {
        return Outcome::because(Status::Failed, reason.join(", "));
    }
    // Without inputs the results are zeros or nothing by definition.
    let empty = tensors.iter().any(|it| it.role == Role::Input && it.layout.count() == 0);
    // The other outputs say nothing about attributes.
    let chained = checks.iter().filter(|(kind, _)| *kind == Kind::Chain);
    let chained_doubtful = chained.into_iter().any(|(_, check)| check::mistrusted(&[*check]));
    let all: Vec<Check> = checks.iter().map(|(_, check)| *check).collect();
    let needs_trust = !empty && !problem.is_trivial();
    if needs_trust && (check::mistrusted(&all) || chained_doubtful) {
        let reason = "too few results that could not be right by chance";
        return Outcome::because(Status::Mistrusted, reason);
    }
    Outcome::new(Status::Passed)
}
