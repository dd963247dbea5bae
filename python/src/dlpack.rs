//! Arrays of other libraries, read through DLPack: PyTorch, JAX and whatever else has
//! `__dlpack__`.
//!
//! A library that offers DLPack's C exchange API lends a view in some tens of nanoseconds; a capsule
//! from `__dlpack__` takes microseconds. Tensors that record gradients are refused where PyTorch
//! would record the call, because nothing here would.

use dlpark::DlpackFlags;
use dlpark::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLDeviceType};
use dlpark::python::consumer::exchange::ExchangeApi;
use dlpark::python::{ImportRequest, from_dlpack};
use dlpark::tensor::TensorRef;
use norm_rs::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{ffi, intern};

use crate::arguments::described;
use crate::tensor::{Dims, Library, Tensor, check_alignment, layout, type_name};
use crate::wanted::{READ_ONLY, Wanted};

/// Element types and their codes and bits in DLPack.
const TYPES: &[(DataType, DLDataTypeCode, u8)] = &[
    (DataType::F32, DLDataTypeCode::FLOAT, 32),
    (DataType::Bf16, DLDataTypeCode::BFLOAT, 16),
    (DataType::F16, DLDataTypeCode::FLOAT, 16),
    (DataType::F64, DLDataTypeCode::FLOAT, 64),
    (DataType::S8, DLDataTypeCode::INT, 8),
    (DataType::U8, DLDataTypeCode::UINT, 8),
    (DataType::F8E4m3, DLDataTypeCode::FLOAT8_E4M3FN, 8),
    (DataType::F8E5m2, DLDataTypeCode::FLOAT8_E5M2, 8),
    (DataType::E8m0, DLDataTypeCode::FLOAT8_E8M0FNU, 8),
    (DataType::S32, DLDataTypeCode::INT, 32),
    (DataType::S64, DLDataTypeCode::INT, 64),
];

/// The element type in DLPack.
pub(crate) fn dlpack_type(data_type: DataType) -> DLDataType {
    let (_, code, bits) = TYPES.iter().find(|row| row.0 == data_type).expect("a type of arrays");
    DLDataType { code: *code, bits: *bits, lanes: 1 }
}

/// Reads an array through DLPack.
pub(crate) fn read<'a, 'py>(
    wanted: &Wanted<'_>,
    object: &'a Bound<'py, PyAny>,
) -> PyResult<Tensor<'a, 'py>> {
    let name = wanted.name;
    if let Some(api) = ExchangeApi::from_object(object.as_borrowed())? {
        reject_recorded(name, object)?;
        reject_negated(wanted, object)?;
        let view = api.with_tensor_view_no_sync(object.as_borrowed(), |tensor, _| {
            // SAFETY: the library has filled in the view, and the object keeps shape and strides.
            let tensor = unsafe { TensorRef::from_raw(tensor) };
            let tensor = tensor.map_err(|error| unusable(name, &error.to_string()))?;
            view(wanted, object, &tensor, None)
        });
        // If there is no view, the capsule is tried: its error describes the tensor.
        if let Ok(view) = view {
            return view;
        }
    }
    if !object.hasattr(intern!(object.py(), "__dlpack__"))? {
        return Err(PyTypeError::new_err(format!(
            "{name} is {}: pass an array that supports DLPack, such as a NumPy array or a PyTorch tensor",
            described(object),
        )));
    }
    reject_negated(wanted, object)?;
    let detached = reject_recorded(name, object)?;
    let lender = detached.as_ref().unwrap_or(object);
    let refused = |error| refused(name, object.py(), &error);
    let request = ImportRequest::new(lender.as_borrowed()).map_err(refused)?;
    if let Ok(device) = request.device() {
        check_device(wanted, device)?;
    }
    let lent = match request.import(None, None) {
        // The method has no keywords before DLPack 1.0.
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => {
            let capsule = lender.call_method0(intern!(object.py(), "__dlpack__"));
            from_dlpack(capsule.map_err(refused)?.as_borrowed(), None, None)
        }
        lent => lent,
    };
    let lent = lent.map_err(refused)?;
    let read_only = match lent.flags().contains(DlpackFlags::READ_ONLY) {
        true => Some(READ_ONLY),
        false => why_immutable(object)?,
    };
    let tensor = lent.validate().map_err(|error| unusable(name, &error.to_string()))?;
    let mut tensor = view(wanted, object, &tensor, read_only)?;
    tensor.lent = Some(lent);
    Ok(tensor)
}

/// Why an array that is not exported as read-only is immutable: JAX does not always say so.
fn why_immutable(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    if object.get_type().module()?.to_string().starts_with("jax") {
        return Ok(Some(
            "is an array of JAX, which nothing may write: leave it out and use the result, or pass an array of another \
             library",
        ));
    }
    let has_setter = object.hasattr(intern!(object.py(), "__setitem__"))?;
    Ok((!has_setter).then_some(
        "has no __setitem__, so it counts as immutable: give its class that method, or pass an array that has it",
    ))
}

/// The error for an array that its library does not export, with the first line of the reason.
fn unusable(name: &str, reason: &str) -> PyErr {
    let reason = reason.lines().next().unwrap_or_default();
    PyValueError::new_err(format!(
        "{name} does not give access to its memory through DLPack ({reason}): pass a dense tensor on the CPU"
    ))
}

/// As [`unusable`], for an exception.
fn refused(name: &str, py: Python<'_>, error: &PyErr) -> PyErr {
    unusable(name, &error.value(py).to_string())
}

/// The view of a DLPack tensor.
fn view<'a, 'py>(
    wanted: &Wanted<'_>,
    object: &'a Bound<'py, PyAny>,
    tensor: &TensorRef<'_>,
    read_only: Option<&'static str>,
) -> PyResult<Tensor<'a, 'py>> {
    check_device(wanted, tensor.device())?;
    let data_type = data_type(wanted, tensor.dtype())?;
    let shape = tensor.shape();
    let (shape, strides) = match tensor.strides() {
        Some(strides) => layout(wanted, shape.iter().copied(), strides.iter().copied(), 1)?,
        None => {
            let (shape, _) = layout(wanted, shape.iter().copied(), std::iter::repeat(0), 1)?;
            let strides = dense_strides(&shape);
            (shape, strides)
        }
    };
    // The offset stays within the allocation.
    let offset = usize::try_from(tensor.byte_offset())?;
    let data = tensor.data_ptr().cast_mut().cast::<u8>().wrapping_add(offset);
    check_alignment(wanted, data, data_type)?;
    Ok(Tensor {
        name: wanted.name,
        object,
        library: Library::Dlpack,
        data,
        data_type,
        shape,
        strides,
        is_output: wanted.is_output(),
        read_only,
        lent: None,
    })
}

/// The strides of row-major order.
pub(crate) fn dense_strides(shape: &[usize]) -> Dims {
    let mut strides: Dims = shape.iter().map(|_| 0).collect();
    let mut step = 1;
    for (stride, size) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step *= size;
    }
    strides
}

fn data_type(wanted: &Wanted<'_>, given: DLDataType) -> PyResult<DataType> {
    if wanted.has_bools() && given.code == DLDataTypeCode::BOOL && given.bits == 8 {
        return Ok(DataType::U8);
    }
    let found = TYPES
        .iter()
        .find(|(_, code, bits)| given.lanes == 1 && given.code == *code && given.bits == *bits);
    if let Some((data_type, ..)) = found {
        return match wanted.has(*data_type) {
            true => Ok(*data_type),
            false => Err(wanted.wrong_type(type_name(*data_type))),
        };
    }
    let kind = match given.code {
        DLDataTypeCode::INT => "int",
        DLDataTypeCode::UINT => "uint",
        DLDataTypeCode::FLOAT => "float",
        DLDataTypeCode::COMPLEX => "complex",
        DLDataTypeCode::BOOL => "bool",
        _ => "another type with bits: ",
    };
    Err(wanted.wrong_type(&format!("{kind}{}", given.bits)))
}

/// Rejects memory that the processor cannot read.
fn check_device(wanted: &Wanted<'_>, device: DLDevice) -> PyResult<()> {
    let kind = match device.device_type {
        // Including pinned host memory.
        DLDeviceType::CPU | DLDeviceType::CUDAHOST | DLDeviceType::ROCMHOST => return Ok(()),
        DLDeviceType::CUDA | DLDeviceType::CUDAMANAGED => "a CUDA device",
        DLDeviceType::ROCM => "a ROCm device",
        DLDeviceType::METAL => "a Metal device",
        DLDeviceType::ONEAPI => "a oneAPI device",
        _ => "a device that is not the CPU",
    };
    let name = wanted.name;
    let pass = match wanted.is_output() {
        true => "pass an array on the CPU, and copy the result from it after the call".to_owned(),
        false => format!("copy it to the CPU first, such as with {name}.cpu()"),
    };
    Err(PyValueError::new_err(format!(
        "{name} is on {kind}, and libnorm computes on the CPU: {pass}"
    )))
}

/// Rejects a tensor that requires a gradient while PyTorch records: these functions are not recorded.
///
/// If PyTorch does not record, returns the detached tensor, which PyTorch also exports through `__dlpack__`.
fn reject_recorded<'py>(
    name: &str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let requires = object.getattr_opt(intern!(py, "requires_grad"))?;
    if !requires.is_some_and(|requires| requires.is_truthy().unwrap_or(false)) {
        return Ok(None);
    }
    // SAFETY: the interpreter's own dictionary, borrowed.
    let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyImport_GetModuleDict()) };
    let modules = modules.and_then(|modules| modules.cast_into::<PyDict>().ok());
    let torch = modules.map(|modules| modules.get_item(intern!(py, "torch"))).transpose()?;
    let records = match torch.flatten() {
        Some(torch) => torch.call_method0(intern!(py, "is_grad_enabled"))?.is_truthy()?,
        None => true,
    };
    if records {
        return Err(PyValueError::new_err(format!(
            "{name} requires a gradient, and this function records none: call it inside a \
             torch.autograd.Function or torch.no_grad(), or pass {name}.detach()"
        )));
    }
    object.call_method0(intern!(py, "detach")).map(Some)
}

/// Rejects a PyTorch view whose elements are the negatives of those in memory: DLPack does not report that.
fn reject_negated(wanted: &Wanted<'_>, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let Some(is_neg) = object.getattr_opt(intern!(py, "is_neg"))? else { return Ok(()) };
    if !is_neg.call0()?.is_truthy()? {
        return Ok(());
    }
    Err(wanted.needs_copy("is a view with the opposite sign of its memory", ".resolve_neg()"))
}
