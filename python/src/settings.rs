//! Settings of the process, and information about the library.

use norm_rs::info::{self, CpuIsa};
use norm_rs::{DataType, ErrorKind};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;

use crate::arguments;
use crate::cache_arguments::named_type;
use crate::errors::to_python;
use crate::plan;

/// The names of the instruction sets, as in NORM_MAX_CPU_ISA.
const ISAS: [(&str, CpuIsa); 6] = [
    ("portable", CpuIsa::Portable),
    ("avx2", CpuIsa::Avx2),
    ("avx512", CpuIsa::Avx512),
    ("avx512_bf16", CpuIsa::Avx512Bf16),
    ("avx512_amx", CpuIsa::Avx512Amx),
    ("neon", CpuIsa::Neon),
];

/// The names of those that can be the limit on this machine.
fn names_here() -> String {
    let foreign = |isa| match isa {
        CpuIsa::Portable => false,
        CpuIsa::Neon => !cfg!(target_arch = "aarch64"),
        _ => !cfg!(target_arch = "x86_64"),
    };
    let names = ISAS.iter().filter(|(_, isa)| !foreign(*isa)).map(|(name, _)| *name);
    names.collect::<Vec<_>>().join(", ")
}

/// The names of floating-point types.
const FLOATS: [(&str, DataType); 6] = [
    ("float32", DataType::F32),
    ("bfloat16", DataType::Bf16),
    ("float16", DataType::F16),
    ("float64", DataType::F64),
    ("float8_e4m3fn", DataType::F8E4m3),
    ("float8_e5m2", DataType::F8E5m2),
];

/// The machine epsilon of a floating-point type, the distance from 1 to the next larger number.
///
/// PyTorch's rms_norm uses it if eps is None. It is no default here: that of bfloat16, 0.0078125, makes outputs
/// 0.4 % smaller at a root mean square of 1, and 9 times smaller at 0.01.
///
/// Parameters
/// ----------
/// dtype : str or a type of an array library
///     float32, bfloat16, float16, float64, float8_e4m3fn or float8_e5m2.
///
/// Returns
/// -------
/// float
///
/// Raises
/// ------
/// TypeError, ValueError
///     A value has the wrong type, or is out of its range.
#[pyfunction]
pub(crate) fn machine_epsilon(dtype: &Bound<'_, PyAny>) -> PyResult<f64> {
    let epsilon = named_type(dtype, &FLOATS)?.machine_epsilon();
    Ok(epsilon.expect("a floating-point type").into())
}

/// Sets the number of threads that a call may use, including the calling one: 1 to 255.
///
/// 0 restores the default: the environment variable NORM_NUM_THREADS, or else the processors that the process
/// may use. It applies to the whole process and changes no bit of a result.
///
/// Raises
/// ------
/// TypeError, ValueError
///     A value has the wrong type, or is out of its range.
#[pyfunction]
pub(crate) fn set_num_threads(
    #[pyo3(from_py_with = arguments::num_threads)] num_threads: i64,
) -> PyResult<()> {
    let count = usize::try_from(num_threads).ok().filter(|&count| count <= 255);
    let count = count.ok_or_else(|| {
        PyValueError::new_err(format!(
            "num_threads is {num_threads}: pass 1 to 255, or 0 for the default"
        ))
    })?;
    info::set_num_threads(count).map_err(|error| to_python(&error))
}

/// The number of threads that a call may use.
///
/// Returns
/// -------
/// int
#[pyfunction]
pub(crate) fn get_num_threads() -> usize {
    info::num_threads()
}

/// The number of threads that took part in the calling thread's last call; 0 before the first.
///
/// Returns
/// -------
/// int
#[pyfunction]
pub(crate) fn last_num_threads() -> usize {
    info::last_num_threads()
}

/// Limits the instruction set: "portable", "avx2", "avx512", "avx512_bf16", "avx512_amx" or "neon"; None removes the
/// limit.
///
/// Until the first call the limit is that of the environment variable NORM_MAX_CPU_ISA. It applies to the whole
/// process and changes no bit of a result.
///
/// Raises
/// ------
/// TypeError, ValueError
///     The name is none of these.
/// NotImplementedError
///     It is that of another architecture.
#[pyfunction]
#[pyo3(signature = (cpu_isa, /))]
pub(crate) fn set_max_cpu_isa(
    #[pyo3(from_py_with = arguments::cpu_isa)] cpu_isa: Option<&str>,
) -> PyResult<()> {
    let isa = cpu_isa.map(|given| {
        let found = ISAS.iter().find(|(name, _)| *name == given);
        found.map(|(_, isa)| *isa).ok_or_else(|| {
            let names = names_here();
            PyValueError::new_err(format!("cpu_isa is {given:?}: pass one of {names}, or None"))
        })
    });
    info::set_max_cpu_isa(isa.transpose()?).map_err(|error| match (error.kind(), cpu_isa) {
        (ErrorKind::Unimplemented, Some(given)) => PyNotImplementedError::new_err(format!(
            "cpu_isa is {given:?}, which is of another architecture than this machine: pass one of {}, or None",
            names_here()
        )),
        _ => to_python(&error),
    })
}

/// The instruction set that a call would use now.
///
/// Returns
/// -------
/// str
#[pyfunction]
pub(crate) fn get_cpu_isa() -> &'static str {
    let isa = info::effective_cpu_isa();
    ISAS.iter().find(|(_, own)| *own == isa).map_or("unknown", |(name, _)| name)
}

/// The implementation that the calling thread's last call used, such as "simd:avx512"; None before the
/// first.
///
/// Returns
/// -------
/// str or None
#[pyfunction]
pub(crate) fn last_implementation() -> Option<String> {
    plan::last_implementation()
}

/// The version of the library, such as "0.1.0".
pub(crate) fn version() -> String {
    info::version().to_string()
}
