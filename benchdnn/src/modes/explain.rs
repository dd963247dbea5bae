//! `--explain`: the library's explanation of the size of its outputs, for the problem's data or that of files.

use super::Case;
use super::end::End;
use crate::execution::Tensor;
use crate::executor::{Explainable, Prepared, RefusalKind};
use crate::fill::Fill;
use crate::report::Reporter;

/// Prints the explanation of all rows, or a line that says why there is none.
pub(super) fn explain(
    case: &Case<'_>,
    prepared: &dyn Prepared,
    reporter: &mut Reporter<'_>,
) -> Result<(), End> {
    let Some(explained) = case.problem.explained() else {
        reporter.say("explain: the operation does not normalize rows");
        return Ok(());
    };
    let tensors = case.tensors(prepared, Fill::Exact, reporter)?;
    let find = |id: i32| tensors.iter().find(|tensor| tensor.id == id);
    let Some(src) = find(explained.src) else { return Ok(()) };
    let typed = |tensor: &Tensor| tensor.layout.data_type;
    let scale = explained.scale.and_then(find);
    let explainable = Explainable {
        dims: &src.layout.dims,
        data_type: typed(src),
        elements: &src.elements,
        scale: scale.map(|scale| (typed(scale), scale.elements.as_slice())),
        epsilon: explained.epsilon,
        rms_norm: explained.rms_norm,
    };
    match case.library().explain(&explainable) {
        Ok(text) => text.lines().for_each(|line| reporter.say(&format!("explain: {line}"))),
        Err(refusal) if refusal.kind == RefusalKind::Unimplemented => {
            reporter.say(&format!("explain: {}", refusal.message));
        }
        Err(refusal) => return Err(refusal.into()),
    }
    Ok(())
}
