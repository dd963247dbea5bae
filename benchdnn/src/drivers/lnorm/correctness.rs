//! Mode C: results against the oracle.

use super::case::{Case, End};
use super::comparison;
use super::data::Prediction;
use crate::check::{self, Check};
use crate::execution::{Output, run_once};
use crate::executor::Prepared;
use crate::outcome::{Outcome, Status};
use crate::report::Reporter;
use crate::run::Run;
use crate::verdict::compare;

/// Executes once and compares every output.
pub(super) fn check(
    case: &Case,
    prepared: &dyn Prepared,
    run: &Run,
    reporter: &mut Reporter<'_>,
) -> Result<Outcome, End> {
    let (tensors, prediction) = case.prediction(prepared, run, reporter)?;
    if reporter.shows(6) {
        for tensor in &tensors {
            let values = tensor.layout.data_type.decode(&tensor.elements);
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (name, role) = (tensor.name, tensor.role);
            let range =
                if values.is_empty() { String::new() } else { format!(", from {least} to {most}") };
            reporter.detail(6, &format!("data: {name}, {role}, {}{range}", tensor.layout));
        }
    }
    let outputs = run_once(prepared, &tensors, case.placement(), None)?;
    let outcome = judge(case, &outputs, &prediction, reporter);
    let compared = match &run.peer {
        None => None,
        Some(peer) => Some(comparison::correctness(
            case,
            peer,
            &tensors,
            &outputs,
            &prediction,
            run,
            reporter,
        )?),
    };
    Ok(Outcome { compared, ..outcome })
}

fn judge(
    case: &Case,
    outputs: &[Output],
    prediction: &Prediction,
    reporter: &mut Reporter<'_>,
) -> Outcome {
    let mut checks = Vec::new();
    for output in outputs {
        let expected = prediction
            .expected
            .iter()
            .find(|expected| expected.id == output.id)
            .expect("the oracle gives every output");
        checks.push(compare(output, expected, reporter));
    }
    let wrong = checks.iter().filter(|check| !check.passed());
    let reason: Vec<String> = wrong
        .map(|check| format!("{} has {} wrong of {}", check.name, check.failed, check.total))
        .collect();
    if !reason.is_empty() {
        return Outcome::because(Status::Failed, reason.join(", "));
    }
    let shape = case.problem.shape();
    // Statistics tell nothing about attributes.
    let behind_attributes =
        |check: &&Check| !case.problem.attributes.is_default() && check.name == "dst";
    let doubtful = check::mistrusted(&checks)
        || checks
            .iter()
            .find(behind_attributes)
            .is_some_and(|check| check::mistrusted(std::slice::from_ref(check)));
    if shape.rows * shape.cols > 0 && doubtful {
        let reason = "too few results that could not be right by chance";
        return Outcome::because(Status::Mistrusted, reason);
    }
    Outcome::new(Status::Passed)
}
