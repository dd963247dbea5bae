//! `--explain`: the library's explanation of the size of its outputs, for the problem's data or that of files.

use super::case::Case;
use super::end::End;
use crate::data_type::DataType;
use crate::execution::Tensor;
use crate::executor::{Explainable, Prepared, RefusalKind};
use crate::fill::Fill;
use crate::report::Reporter;

/// The sums of the elements of two tensors in f32, rounded to a type.
fn sum(src: &Tensor, other: &Tensor, rounded: DataType) -> Vec<u8> {
    let decode = |tensor: &Tensor| tensor.layout.data_type.decode(&tensor.elements);
    let pairs = decode(src).into_iter().zip(decode(other));
    let sums: Vec<f64> = pairs.map(|(x, y)| rounded.round(DataType::F32.round(x + y))).collect();
    rounded.encode(&sums)
}

/// Prints the explanation of all rows, or a line that says why there is none.
pub(super) fn explain(
    case: &Case<'_>,
    prepared: &dyn Prepared,
    reporter: &mut Reporter<'_>,
) -> Result<(), End> {
    let explained = match case.problem.explained() {
        Ok(explained) => explained,
        Err(reason) => {
            reporter.say(&format!("explain: {reason}"));
            return Ok(());
        }
    };
    let tensors = case.tensors(prepared, Fill::Exact, reporter)?;
    let find = |id: i32| tensors.iter().find(|tensor| tensor.id == id);
    let Some(src) = find(explained.src) else { return Ok(()) };
    let typed = |tensor: &Tensor| tensor.layout.data_type;
    let added = explained.added.and_then(|(id, rounded)| Some((find(id)?, rounded)));
    let sum = added.map(|(other, rounded)| (rounded, sum(src, other, rounded)));
    let (data_type, elements) =
        sum.as_ref().map_or((typed(src), &**src.elements), |(rounded, sum)| (*rounded, sum));
    let scale = explained.scale.and_then(find);
    let explainable = Explainable {
        dims: &src.layout.dims,
        data_type,
        elements,
        scale: scale.map(|scale| (typed(scale), scale.elements.as_slice())),
        epsilon: explained.epsilon,
        rms_norm: explained.rms_norm,
        plus_one: explained.plus_one,
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
