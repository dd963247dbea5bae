//! Why is an output so small?

use norm_rs::explain::{Explain, Warnings};
use norm_rs::layer_normalization::Flags;
use norm_rs::{DataType, Engine, Memory, MemoryDesc};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments;
use crate::call::{BACKWARD, Given};
use crate::errors::to_python;
use crate::tensor::Tensor;

/// The names of warnings.
const WARNINGS: [(Warnings, &str); 5] = [
    (Warnings::EPSILON_DOMINATES, "epsilon dominates"),
    (Warnings::EPSILON_VANISHES, "epsilon vanishes"),
    (Warnings::SQUARES_OVERFLOW, "squares overflow"),
    (Warnings::ZERO_ROWS, "zero rows"),
    (Warnings::NOT_FINITE, "not finite"),
];

/// A memory object for an array that outlives it.
fn memory(engine: &Engine, tensor: &Tensor<'_, '_>) -> norm_rs::Result<Memory<'static>> {
    let desc = MemoryDesc::with_strides(&tensor.shape, tensor.data_type, &tensor.strides)?;
    // SAFETY: the buffer is the array's, which is only read.
    unsafe { Memory::from_raw(engine, &desc, tensor.data) }
}

/// Explains how a normalization changes the size of an array's rows: why is its output so small?
///
/// Parameters
/// ----------
/// src : array of shape (..., C)
///     float32, bfloat16, float16 or float64.
/// scale : array of shape (C,), optional
///     float32, bfloat16 or float16.
/// epsilon : float
///     The normalization's epsilon.
/// rms : bool
///     RMS normalization; layer normalization if False.
/// scale_plus_one : bool
///     The normalization uses 1 + scale.
/// row : int, optional
///     Explain only this row instead of all.
///
/// Returns
/// -------
/// dict
///     rows, cols, epsilon; rms_in, divisor (sqrt(rms_in**2 + epsilon)), ratio (rms_in / divisor),
///     smallest_ratio and its row; scale_mean, scale_rms and the correlation of abs(scale) with the size of the
///     elements; rms_out, amplification (rms_out / rms_in); warnings, a list of names; report, a text of
///     several lines that lists the remedies and their effect.
///
/// Raises
/// ------
/// TypeError, ValueError
///     An argument is not an array, or has the wrong element type, shape or layout. Nothing is written.
#[pyfunction]
#[pyo3(signature = (src, scale=None, epsilon=1e-5, *, rms=true, scale_plus_one=false, row=None))]
pub(crate) fn explain<'py>(
    src: &Bound<'py, PyAny>,
    scale: Given<'_, 'py>,
    #[pyo3(from_py_with = arguments::plain_epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arguments::rms)] rms: bool,
    #[pyo3(from_py_with = arguments::scale_plus_one)] scale_plus_one: bool,
    #[pyo3(from_py_with = arguments::row)] row: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let tensor = Tensor::read("src", BACKWARD, src)?;
    if tensor.shape.is_empty() {
        return Err(PyValueError::new_err(
            "src has no dimensions: pass an array with at least one",
        ));
    }
    let types = &[DataType::F32, DataType::Bf16, DataType::F16];
    let read = |scale| {
        let scale_or = |error| arguments::shape_error("scale", scale, error);
        Tensor::read("scale", types, scale).map_err(scale_or)
    };
    let scale = scale.map(read).transpose()?;
    if let Some(scale) = &scale {
        scale
            .expect_shape(&tensor.shape[tensor.shape.len() - 1..], "one element for each column")?;
    }
    if scale_plus_one && scale.is_none() {
        return Err(PyValueError::new_err(
            "scale_plus_one needs scale: pass scale, or leave scale_plus_one out",
        ));
    }
    let failed = |error| to_python(&error);
    let engine = Engine::cpu().map_err(failed)?;
    let rows = memory(&engine, &tensor).map_err(failed)?;
    let factors = scale.map(|scale| memory(&engine, &scale)).transpose().map_err(failed)?;
    let set = |is_set: bool, flag| if is_set { flag } else { Flags::NONE };
    let flags = set(rms, Flags::RMS_NORM) | set(scale_plus_one, Flags::SCALE_PLUS_ONE);
    let mut explain = Explain::new(&rows).epsilon(epsilon as f32).flags(flags);
    if let Some(factors) = &factors {
        explain = explain.scale(factors);
    }
    if let Some(row) = row {
        explain = explain.row(row);
    }
    let found = explain.measure().map_err(failed)?;
    let dict = PyDict::new(src.py());
    for (name, count) in [
        ("rows", found.rows),
        ("cols", found.cols),
        ("smallest_ratio_row", found.smallest_ratio_row),
    ] {
        dict.set_item(name, count)?;
    }
    for (name, value) in [
        ("epsilon", found.epsilon),
        ("rms_in", found.rms_in),
        ("divisor", found.divisor),
        ("ratio", found.ratio),
        ("smallest_ratio", found.smallest_ratio),
        ("scale_mean", found.scale_mean),
        ("scale_rms", found.scale_rms),
        ("correlation", found.correlation),
        ("rms_out", found.rms_out),
        ("amplification", found.amplification),
    ] {
        dict.set_item(name, value)?;
    }
    let warnings = WARNINGS.iter().filter(|(warning, _)| found.warnings.contains(*warning));
    dict.set_item("warnings", warnings.map(|(_, name)| *name).collect::<Vec<_>>())?;
    dict.set_item("report", explain.report().map_err(failed)?)?;
    Ok(dict)
}
