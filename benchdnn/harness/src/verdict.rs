//! Compares an output with the expected values, and reports differences.

use crate::check::{self, Check};
use crate::execution::Output;
use crate::problem::Expected;
use crate::report::Reporter;

/// Wrong elements that are printed with `-v1`; `-v99` prints every element.
const SHOWN: usize = 10;

/// Compares, and prints as much as the verbosity allows.
pub fn compare(output: &Output, expected: &Expected, reporter: &mut Reporter<'_>) -> Check {
    let dt = output.layout.data_type;
    let got = dt.decode(&output.elements);
    let Expected { kind, values: want, terms, .. } = expected;
    let compared = check::check(output.name, *kind, dt, &got, want, terms);
    let Check { name, total, failed, worst, telling } = compared;
    let at = |index| output.layout.coordinates(index);
    let point = |worst: check::Worst, index: usize| {
        let check::Worst { got, want, error, allowed, .. } = worst;
        let at = at(index);
        format!(
            "  {name}{at}: got {got:?}, want {want:?}, error {error:.3e}, allowed {allowed:.3e}"
        )
    };
    if let Some(worst) = worst {
        let line = point(worst, worst.index);
        if failed > 0 {
            reporter.detail(0, &format!("  {name}: {failed} wrong of {total}, worst:"));
            reporter.detail(0, &line);
        } else {
            reporter.detail(6, &format!("  {name}: {telling} telling of {total}, worst:"));
            reporter.detail(6, &line);
        }
    }
    let everything = reporter.shows(99);
    if everything || (failed > 0 && reporter.shows(1)) {
        let mut shown = 0;
        for index in 0..total {
            let terms = terms.get(index..=index).unwrap_or_default();
            let one =
                check::check(name, *kind, dt, &got[index..=index], &want[index..=index], terms);
            if (everything || !one.passed())
                && let Some(worst) = one.worst
            {
                reporter.detail(1, &point(worst, index));
                shown += 1;
                if !everything && shown == SHOWN {
                    break;
                }
            }
        }
    }
    compared
}
