//! Scales that are computed from a result, for groups of its elements.

use norm_rs::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::tensor::Tensor;

/// Element types of the scales.
pub(crate) const SCALES: &[DataType] = &[DataType::F32, DataType::F8E4m3, DataType::E8m0];

/// The number of elements that share a scale of `E8m0`, a power of two.
const POWER_OF_TWO: usize = 32;

/// The number of elements that share a scale, of the `last` ones of a row of the array `name`: all of them unless
/// `group` says otherwise.
pub(crate) fn group_of(group: Option<usize>, last: usize, name: &str) -> PyResult<usize> {
    let group = group.unwrap_or(last.max(1));
    if group == 0 || !last.is_multiple_of(group) {
        return Err(PyValueError::new_err(format!(
            "group is {group}: pass a divisor of {last}, the last dimension of {name}"
        )));
    }
    Ok(group)
}

/// Refuses powers of two for what does not have them.
pub(crate) fn check_scales(
    scales: &Tensor<'_, '_>,
    group: usize,
    dst: &Tensor<'_, '_>,
) -> PyResult<()> {
    let narrow = matches!(dst.data_type, DataType::F8E4m3 | DataType::F8E5m2);
    if scales.data_type != DataType::E8m0 || narrow && group == POWER_OF_TWO {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "{} has elements of float8_e8m0fnu, which are for groups of {POWER_OF_TWO} elements of float8_e4m3fn or \
         float8_e5m2: pass group={POWER_OF_TWO} and such an array as {}, or scales of float32",
        scales.name, dst.name
    )))
}
